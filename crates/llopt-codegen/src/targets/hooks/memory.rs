//! What neutral code hands to a target for accesses to global memory, copies, and matrix accesses to shared memory.

use crate::llvm::emitter::V;
use crate::targets::hooks::caching::Caching;

/// The words of one access: `count` contiguous integers of `bits` bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words {
    /// Bits of a word: 8, 16, 32 or 64.
    pub bits: u32,
    /// The number of words.
    pub count: u32,
}

impl Words {
    /// The words of `elements` elements of `element_bits` bits each (whole bytes): 32-bit ones where
    /// the elements are smaller and fill them.
    #[must_use]
    pub fn of(element_bits: u32, elements: u32) -> Self {
        let total = element_bits * elements;
        let bits = total.min(element_bits.max(32));
        Self {
            bits,
            count: total / bits,
        }
    }

    /// Bytes of the whole access.
    #[must_use]
    pub fn bytes(self) -> u32 {
        self.bits * self.count / 8
    }
}

/// One access of a thread to global memory.
#[derive(Clone, Copy, Debug)]
pub struct Access<'ctx> {
    /// The address.
    pub pointer: V<'ctx>,
    /// Whether it happens; always when absent.
    pub mask: Option<V<'ctx>>,
    /// The words that are transferred.
    pub words: Words,
    /// Cache hints.
    pub caching: Caching,
}

/// An access that loads, and the words that are taken where its mask is false.
#[derive(Clone, Debug)]
pub struct MaskedLoad<'ctx> {
    /// The access.
    pub access: Access<'ctx>,
    /// The words; zeros when absent.
    pub other: Option<Vec<V<'ctx>>>,
}

/// An asynchronous copy of one lane from global to shared memory.
#[derive(Clone, Copy, Debug)]
pub struct AsyncCopy<'ctx> {
    /// The destination in shared memory.
    pub to: V<'ctx>,
    /// The source in global memory.
    pub from: V<'ctx>,
    /// The number of bytes.
    pub bytes: u32,
    /// The bytes of the aligned block around the source that should be in the second-level cache afterwards.
    pub cached_block: Option<u32>,
    /// Whether this thread copies; always when absent.
    pub acts: Option<V<'ctx>>,
    /// Whether the data are read; otherwise zeros are written.
    pub mask: Option<V<'ctx>>,
}

/// One matrix instruction that moves data between registers and shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatrixAccess {
    /// The name in the target's table.
    pub name: &'static str,
    /// Whether it transposes.
    pub transposed: bool,
    /// The width of the elements it permutes.
    pub element_bits: u32,
    /// 32-bit registers per lane.
    pub registers: u32,
}

/// The accesses to memory that a warp may have outstanding after a wait; absent kinds are not waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessCounts {
    /// Loads of global memory.
    pub loads: Option<u32>,
    /// Stores to global memory.
    pub stores: Option<u32>,
    /// Accesses to shared memory.
    pub shared: Option<u32>,
}
