//! Bank conflicts: how many passes a memory of banks needs for one access of a warp.
//!
//! # The model
//!
//! A memory has `2^b` banks, each `w` bytes wide; consecutive words of `w` bytes lie in
//! consecutive banks. One pass, a *wavefront*, delivers one word of every bank. An instruction in
//! which every lane moves at most `w` bytes serves all lanes at once; wider ones are served in
//! *phases*, each a group of lanes whose data fills the banks once. Inside a phase, lanes that
//! want the same word share it (reads are broadcast, writes of different bytes of a word merge);
//! lanes that want different words of one bank are served one after another. So a phase takes as
//! many wavefronts as the busiest bank has distinct words, and an access takes the sum over its
//! phases.
//!
//! # The lemma
//!
//! When addresses are a linear function of the lane, and the lanes of a phase are a subspace (as on all known
//! hardware, even where the lanes of a phase are not consecutive), then the words `W` that a phase wants are a
//! subspace of all words, all occupied banks are equally busy, and the number of wavefronts is `2^dim(W & K)`, where
//! `K` are the words of bank 0. In the terms of a memory layout whose offset bits are cut into bytes inside a word,
//! banks, and *segments* (which row of banks), `K` is the span of the segment bases: an access has conflicts exactly
//! to the extent that the span of its lanes intersects the span of the segments. The other phases are translates of
//! the first and take as many.
//!
//! [`BankModel::wavefronts`] is this formula, exact for every linear access, also for vectors narrower than a bank.
//! [`BankModel::count`] is the definition, for arbitrary addresses.

use alloc::vec::Vec;

use crate::f2::{Echelon, Subspace, low_mask};

/// The direction of an access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Memory to registers.
    Load,
    /// Registers to memory.
    Store,
}

/// Which lanes are served together, for accesses up to a width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// The direction of the accesses.
    pub access: Access,
    /// The widest access, in bits per lane, that the row applies to.
    pub bits: u32,
    /// A basis of the lanes of the phase that has lane 0; the others are its translates. Entries
    /// beyond the lanes of a warp do not count, so that one row serves warps of both sizes.
    pub lanes: &'static [u32],
    /// Hardware may join phases when lanes share addresses.
    pub joined: Option<Joined>,
}

/// The condition for joined phases: lanes whose numbers differ by one of `equal` all have equal addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Joined {
    /// The differences of lane numbers, one of which suffices.
    pub equal: &'static [u32],
    /// A basis of the lanes of the joined phase that has lane 0.
    pub lanes: &'static [u32],
}

/// A memory of banks, as data; the rows for real hardware are not in this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BankModel {
    /// The number of banks as log2.
    pub banks_log2: u32,
    /// The width of a bank in bytes as log2.
    pub bank_bytes_log2: u32,
    /// The phases, narrow accesses before wide ones; the widest row of each direction is the
    /// widest access there is.
    pub phases: &'static [Phase],
}

impl BankModel {
    /// The basis of the lanes that are served together in an access of `bits` per lane, where
    /// `shared(d)` says whether all lanes whose numbers differ by `d` have equal addresses.
    ///
    /// `None` when no instruction is that wide.
    pub fn phase(
        &self,
        access: Access,
        bits: u32,
        shared: impl Fn(u32) -> bool,
    ) -> Option<&'static [u32]> {
        let row = self
            .phases
            .iter()
            .find(|p| p.access == access && p.bits >= bits)?;
        Some(match row.joined {
            Some(joined) if joined.equal.iter().any(|&d| shared(d)) => joined.lanes,
            _ => row.lanes,
        })
    }

    /// Whether lanes have equal addresses as they must for other lanes to be served together, by the rows of phases, as bits.
    /// Whatever else addresses are, [`BankModel::phase`] follows from that.
    pub fn joined(&self, shared: impl Fn(u32) -> bool) -> u32 {
        let rows = self.phases.iter().enumerate();
        let is_joined = |joined: &Joined| joined.equal.iter().any(|&d| shared(d));
        let joined = rows.filter(|(_, row)| row.joined.as_ref().is_some_and(is_joined));
        joined.fold(0, |rows, (row, _)| rows | 1 << row)
    }

    /// The widest access, in bits per lane; 0 when there is none.
    pub fn widest(&self, access: Access) -> u32 {
        self.phases
            .iter()
            .filter(|p| p.access == access)
            .map(|p| p.bits)
            .max()
            .unwrap_or(0)
    }

    /// The wavefronts of one phase whose lanes move `2^bytes_log2` bytes each, at addresses
    /// spanned by `addresses` (in bytes): the lemma.
    ///
    /// Requires addresses that are multiples of the bytes moved.
    /// Ensures: equal to [`BankModel::count`] over the same lanes; 1 when there is no conflict.
    pub fn wavefronts(&self, bytes_log2: u32, addresses: &[u32]) -> u32 {
        let mut words = Echelon::new();
        let mut banks = Echelon::new();
        let own_words = (0..bytes_log2.saturating_sub(self.bank_bytes_log2)).map(|bit| 1 << bit);
        let lanes = addresses
            .iter()
            .map(|&address| address >> self.bank_bytes_log2);
        for word in own_words.chain(lanes) {
            let _ = words.insert(word);
            let _ = banks.insert(word & low_mask(self.banks_log2));
        }
        1 << (words.rank() - banks.rank())
    }

    /// The wavefronts of one instruction in which lane `i` moves `bytes` bytes at `addresses[i]`:
    /// the definition, for any addresses.
    ///
    /// Ensures: at least one wavefront per phase; `None` when no instruction is that wide.
    pub fn count(&self, access: Access, bytes: u32, addresses: &[u32]) -> Option<u32> {
        let shared = |d: u32| {
            let lanes = || (0u32..).zip(addresses);
            lanes().all(|(l, address)| addresses.get((l ^ d) as usize).is_none_or(|a| a == address))
        };
        let phase = self.phase(access, bytes.saturating_mul(8), shared)?;
        Some(self.count_in_phases(phase, bytes, addresses))
    }

    /// As [`BankModel::count`], with the phases given: a basis of the indices of the addresses that
    /// are served together with index 0.
    pub fn count_in_phases(&self, phase: &[u32], bytes: u32, addresses: &[u32]) -> u32 {
        let lanes = addresses.len() as u32;
        let group = Subspace::span(&in_warp(phase, lanes));
        let mut total = 0;
        for leader in (0..lanes).filter(|&lane| group.reduce(lane) == lane) {
            let mut words: Vec<u32> = Vec::new();
            for lane in (0..lanes).filter(|&lane| group.reduce(lane) == leader) {
                let first = addresses[lane as usize] >> self.bank_bytes_log2;
                let last = addresses[lane as usize].wrapping_add(bytes.max(1) - 1);
                words.extend(first..=(last >> self.bank_bytes_log2));
            }
            words.sort_unstable();
            words.dedup();
            let busiest = (0..1u32 << self.banks_log2)
                .map(|bank| {
                    words
                        .iter()
                        .filter(|&&w| w & low_mask(self.banks_log2) == bank)
                        .count() as u32
                })
                .max();
            total += busiest.unwrap_or(0);
        }
        total
    }
}

/// The vectors of a phase that name lanes of the warp.
fn in_warp(phase: &[u32], lanes: u32) -> Vec<u32> {
    phase.iter().copied().filter(|&lane| lane < lanes).collect()
}
