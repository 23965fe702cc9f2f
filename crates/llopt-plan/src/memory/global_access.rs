//! How wide a thread may access memory: the facts about addresses and masks that this needs, and the choice.
//!
//! Registers form a vector when they hold consecutive elements along one tensor dimension, and the
//! addresses of these elements are consecutive, aligned to the vector's size, and share one mask value. The
//! first is a question to the layout; the rest are facts about values that an analysis provides ([`crate::facts`]).

use llopt_layout::Dim;
use llopt_target::Target;
use llopt_target::global_memory::GlobalCosts;

use crate::facts::{AxisFacts, Pow2};
use crate::sectors::{self, Sharing, Strides};
use crate::tensor::TensorType;

/// A vector access pattern: which registers go together, in the order of their addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    /// Registers per access.
    pub width: usize,
    /// The accesses; each lists `width` registers.
    pub groups: Vec<Vec<usize>>,
}

/// What limits the width of an access along one dimension, in elements.
pub trait WidthLimit {
    /// The largest width that addresses and masks allow along `dim`.
    fn along(&self, dim: usize) -> u64;
}

impl<F: Fn(usize) -> u64> WidthLimit for F {
    fn along(&self, dim: usize) -> u64 {
        self(dim)
    }
}

/// Chooses the widest groups of registers: along the dimension that allows the most elements per access,
/// up to `max_width`. Repeated registers are in no group.
#[must_use]
pub fn choose_groups(tensor: &TensorType, max_width: u32, limit: &impl WidthLimit) -> Groups {
    let register_bases: Vec<u32> = (0..tensor.registers().trailing_zeros())
        .map(|bit| tensor.element_in(1 << bit))
        .collect();
    let mut best: (u32, Vec<u32>) = (0, Vec::new());
    for dim in 0..tensor.shape.len() {
        let (low, extent_bits) = tensor.bits_of_dim(dim);
        let allowed = limit
            .along(dim)
            .min(u64::from(max_width))
            .max(1)
            .ilog2()
            .min(extent_bits);
        // The register bits that step by 1, 2, 4, … along this dimension.
        let mut bits = Vec::new();
        while (bits.len() as u32) < allowed {
            let step = 1u32 << (low + bits.len() as u32);
            match register_bases.iter().position(|basis| *basis == step) {
                Some(bit) => bits.push(bit as u32),
                None => break,
            }
        }
        // No other bit, of registers, lanes, warps or blocks, may change the low bits of the dimension.
        let others = register_bases
            .iter()
            .enumerate()
            .filter(|(bit, _)| !bits.contains(&(*bit as u32)))
            .map(|(_, basis)| *basis)
            .chain(tensor.thread_bases())
            .chain(tensor.block_bases().iter().copied());
        let touched = others.fold(0, |all, basis| all | basis) >> low;
        let clean = touched.trailing_zeros().min(bits.len() as u32);
        bits.truncate(clean as usize);
        if bits.len() as u32 > best.0 {
            best = (bits.len() as u32, bits);
        }
    }
    let bits = best.1;
    let inside: usize = bits.iter().map(|bit| 1usize << bit).sum();
    let starts = (0..tensor.registers())
        .filter(|register| register & inside == 0 && tensor.is_canonical(*register));
    let groups = starts
        .map(|start| {
            (0..1usize << bits.len())
                .map(|i| {
                    bits.iter()
                        .enumerate()
                        .fold(start, |register, (at, bit)| register | (i >> at & 1) << bit)
                })
                .collect()
        })
        .collect();
    Groups {
        width: 1 << bits.len(),
        groups,
    }
}

/// The addresses of an access, one for each element.
#[derive(Clone, Copy, Debug)]
pub enum Addresses<'f> {
    /// Pointers.
    Pointers(&'f AxisFacts),
    /// Offsets, in elements, from the start of a buffer; `base` divides the address of the start.
    Offsets {
        /// What is known of the offsets.
        offsets: &'f AxisFacts,
        /// A divisor of the address of the start, in bytes.
        base: u64,
    },
}

impl Addresses<'_> {
    fn facts(&self) -> &AxisFacts {
        match self {
            Self::Pointers(facts) => facts,
            Self::Offsets { offsets, .. } => offsets,
        }
    }

    /// The bytes by which the start of each contiguous run along a dimension is divisible.
    fn alignment(&self, dim: usize, element_bytes: u64) -> u64 {
        let divisibility = self.facts().along(dim).divisibility.get();
        match self {
            Self::Pointers(_) => divisibility,
            Self::Offsets { base, .. } => divisibility.saturating_mul(element_bytes).min(*base),
        }
    }

    /// How many neighbouring elements along a dimension one access may have.
    #[must_use]
    pub fn width_along(&self, dim: usize, element_bytes: u64) -> u64 {
        let aligned = (self.alignment(dim, element_bytes) / element_bytes).max(1);
        self.facts().along(dim).contiguity.get().min(aligned)
    }
}

/// How many neighbouring elements along a dimension have one mask value.
#[must_use]
pub fn mask_width(mask: Option<&AxisFacts>, dim: usize) -> u64 {
    mask.map_or(u64::MAX, |mask| mask.along(dim).constancy.get())
}

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// It loads.
    Load,
    /// It stores.
    Store,
    /// It updates, at most so many elements with one instruction.
    Atomic {
        /// The number of elements.
        widest: u32,
    },
}

/// An access to global memory, by a tensor of addresses.
#[derive(Clone, Copy, Debug)]
pub struct GlobalAccess<'f> {
    /// What is moved, and which thread moves what.
    pub tensor: &'f TensorType,
    /// The addresses.
    pub addresses: Addresses<'f>,
    /// The distances of the addresses, as far as they are known. Prices depend on them, what is emitted does not.
    pub strides: Option<&'f Strides>,
    /// What is known of the mask, if there is one.
    pub mask: Option<&'f AxisFacts>,
    /// What it does.
    pub kind: AccessKind,
}

/// The cost of an access, for a warp.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AccessPrice {
    /// Elements per instruction.
    pub width: u32,
    /// The number of instructions.
    pub instructions: u32,
    /// The sectors that each instruction touches, summed over all instructions.
    pub touched: f32,
    /// The lines that the parts of each instruction request, summed over all instructions.
    pub requests: u32,
    /// The warp's share of the distinct sectors that its block touches.
    pub sectors: f32,
    /// The price, in cycles of a multiprocessor.
    pub cost: f32,
}

impl GlobalAccess<'_> {
    /// The groups of registers that each instruction moves.
    #[must_use]
    pub fn groups(&self, target: Target) -> Groups {
        let bits = self.tensor.element.memory_bits();
        let widest = match self.kind {
            AccessKind::Load | AccessKind::Store => target.max_global_access_bits() / bits,
            AccessKind::Atomic { widest } => widest,
        };
        choose_groups(self.tensor, widest.max(1), &|dim| {
            self.addresses
                .width_along(dim, u64::from(bits / 8))
                .min(mask_width(self.mask, dim))
        })
    }

    /// The loads of a thread that load something else than one before: equal elements are loaded once, however many
    /// registers hold them.
    fn distinct(&self, groups: &Groups, registers: &[u32]) -> u32 {
        let facts = self.addresses.facts();
        let equal = sectors::equal(self.tensor, |dim| {
            let masked = self
                .mask
                .map_or(Pow2::MAX, |mask| mask.along(dim).constancy);
            facts.along(dim).constancy.min(masked)
        });
        match equal {
            0 => groups.groups.len() as u32,
            _ => sectors::cosets(registers, equal) / groups.width as u32,
        }
    }

    /// The cost of the access. Which elements share a sector is linear ([`crate::sectors`]).
    #[must_use]
    pub fn price(&self, target: Target) -> AccessPrice {
        self.price_by(&target.global_costs(), target)
    }

    /// The same by other prices.
    #[must_use]
    pub fn price_by(&self, costs: &GlobalCosts, target: Target) -> AccessPrice {
        let tensor = self.tensor;
        let groups = self.groups(target);
        let bytes = tensor.element.memory_bits() / 8;
        let alignment = |dim| self.addresses.alignment(dim, u64::from(bytes));
        let facts = self.addresses.facts();
        let sharing = Sharing::of(tensor, facts, alignment, self.strides, costs);

        let lanes = tensor.layout().flat_bases_of(Dim::LANE);
        let registers = tensor.layout().flat_bases_of(Dim::REGISTER);
        let warps = tensor.layout().flat_bases_of(Dim::WARP);
        let together = groups.groups.first().map_or(&[][..], |group| &group[..]);
        let first = together
            .first()
            .map_or(0, |first| tensor.element_in(*first));
        let of_group = together
            .iter()
            .map(|register| tensor.element_in(*register) ^ first);
        let of_instruction: Vec<u32> = lanes.iter().copied().chain(of_group).collect();
        let instructions = match self.kind {
            AccessKind::Load => self.distinct(&groups, registers),
            AccessKind::Store | AccessKind::Atomic { .. } => groups.groups.len() as u32,
        };
        let touched = instructions as f32 * sharing.sectors(&of_instruction);
        // The lanes that are served together come first.
        let asking = costs.line_bytes / (groups.width as u32 * bytes).max(1);
        let asking = (asking.max(1).ilog2() as usize).min(lanes.len());
        let parts = instructions << (lanes.len() - asking);
        let requests = parts * sharing.lines(&lanes[..asking]);
        let of_block = [registers, lanes, warps].concat();
        let sectors = sharing.sectors(&of_block) / (1u32 << warps.len()) as f32;
        // Of warps that hold the same elements, one writes.
        let (lane_bits, _) = tensor.thread_bits();
        let acting = match self.kind {
            AccessKind::Load => 1.0,
            AccessKind::Store | AccessKind::Atomic { .. } => {
                1.0 / (1u32 << (tensor.free_threads() >> lane_bits).count_ones()) as f32
            }
        };
        let (count, all) = (acting * instructions as f32, acting * touched);
        let again = (all - sectors).max(0.0);
        let traffic = match self.kind {
            AccessKind::Load => {
                let more = (requests - parts) as f32 * costs.request;
                count * costs.wait + sectors * costs.sector + again * costs.again + more
            }
            AccessKind::Store => sectors * costs.sector + again * costs.stored_again,
            // Nothing before the second-level cache combines updates.
            AccessKind::Atomic { .. } => all * costs.sector,
        };
        AccessPrice {
            width: groups.width as u32,
            instructions,
            touched,
            requests,
            sectors,
            cost: count * costs.instruction + traffic,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::Element;
    use crate::facts::Pow2;
    use llopt_layout::{Dim, LinearLayout};

    fn tensor(shape: &[u32], registers: &[[u32; 2]], lanes: &[[u32; 2]]) -> TensorType {
        let vectors =
            |bases: &[[u32; 2]]| bases.iter().map(|basis| basis.to_vec()).collect::<Vec<_>>();
        let (registers, lanes) = (vectors(registers), vectors(lanes));
        let bases: [(Dim, &[Vec<u32>]); 4] = [
            (Dim::REGISTER, &registers),
            (Dim::LANE, &lanes),
            (Dim::WARP, &[]),
            (Dim::BLOCK, &[]),
        ];
        let outs: Vec<_> = shape
            .iter()
            .enumerate()
            .map(|(i, size)| (Dim::tensor(i), *size))
            .collect();
        TensorType::new(
            Element::F32,
            shape.to_vec(),
            &LinearLayout::from_bases(&bases, &outs).unwrap(),
        )
        .unwrap()
    }

    #[test]
    fn vectors_follow_the_facts_and_the_layout() {
        let rows = tensor(&[4, 4], &[[0, 1], [0, 2]], &[[1, 0], [2, 0]]);
        assert_eq!(choose_groups(&rows, 4, &|_| 4).width, 4);
        assert_eq!(choose_groups(&rows, 4, &|_| 2).groups, [[0, 1], [2, 3]]);
        assert_eq!(
            choose_groups(&rows, 4, &|dim| if dim == 0 { 4 } else { 1 }).width,
            1
        );
    }

    #[test]
    fn register_bits_may_stand_in_any_order() {
        let swapped = tensor(&[4, 4], &[[1, 0], [0, 1]], &[[2, 0], [0, 2]]);
        let groups = choose_groups(&swapped, 4, &|dim| if dim == 1 { 4 } else { 1 });
        assert_eq!(groups.groups, [[0, 2], [1, 3]]);
    }

    #[test]
    fn a_lane_that_swizzles_low_bits_forbids_the_vector() {
        let swizzled = tensor(&[4, 4], &[[0, 1], [0, 2]], &[[1, 1], [2, 0]]);
        assert_eq!(choose_groups(&swizzled, 4, &|_| 4).width, 1);
    }

    #[test]
    fn repeated_registers_are_in_no_group() {
        let repeated = tensor(&[4, 4], &[[0, 1], [0, 0], [0, 2]], &[[1, 0], [2, 0]]);
        assert_eq!(choose_groups(&repeated, 4, &|_| 4).groups, [[0, 1, 4, 5]]);
    }

    fn row_major(contiguity: u64, divisibility: u64) -> AxisFacts {
        AxisFacts::unknown(2, Pow2::from_log2(2)).with_promises(
            &[1, contiguity],
            &[divisibility, divisibility],
            &[],
        )
    }

    /// The sectors of addresses `4 (64 row + column)`, counted one by one: per instruction, and in total.
    fn counted(tensor: &TensorType, groups: &Groups, sector: u32) -> (u32, u32) {
        let lanes = tensor.layout().flat_bases_of(Dim::LANE);
        let (_, column_bits) = tensor.bits_of_dim(1);
        let mut all = std::collections::BTreeSet::new();
        let mut touched = 0;
        for group in &groups.groups {
            let mut own = std::collections::BTreeSet::new();
            for lane in 0..1u32 << lanes.len() {
                let of_lane = (0..lanes.len())
                    .filter(|bit| lane >> bit & 1 == 1)
                    .fold(0, |sum, bit| sum ^ lanes[bit]);
                for register in group {
                    let element = tensor.element_in(*register) ^ of_lane;
                    let (row, column) =
                        (element >> column_bits, element & ((1 << column_bits) - 1));
                    own.insert(4 * (64 * row + column) / sector);
                }
            }
            touched += own.len() as u32;
            all.extend(own);
        }
        (touched, all.len() as u32)
    }

    #[test]
    fn lanes_that_ask_together_share_lines() {
        let target = Target::parse("cuda:90").unwrap();
        // Eight lanes with four floats each: one row of 32 floats, or the same columns of eight rows.
        let vectors = [[0, 1], [0, 2]];
        let beside = [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]];
        let below = [[1, 0], [2, 0], [4, 0], [0, 4], [0, 8]];
        let facts = row_major(32, 16);
        let requests = |lanes: &[[u32; 2]]| {
            let tensor = tensor(&[8, 32], &vectors, lanes);
            let access = GlobalAccess {
                tensor: &tensor,
                addresses: Addresses::Pointers(&facts),
                strides: None,
                mask: None,
                kind: AccessKind::Load,
            };
            access.price(target).requests
        };
        assert_eq!(requests(&beside), 4);
        assert_eq!(requests(&below), 32);
    }

    #[test]
    fn sectors_are_those_that_addresses_lie_in() {
        let lanes_first = tensor(
            &[16, 16],
            &[[0, 1], [4, 0], [8, 0]],
            &[[0, 2], [0, 4], [0, 8], [1, 0], [2, 0]],
        );
        let by_rows = tensor(
            &[32, 8],
            &[[0, 1], [0, 2], [0, 4]],
            &[[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]],
        );
        let by_columns = tensor(
            &[32, 8],
            &[[1, 0], [2, 0], [0, 4]],
            &[[4, 0], [8, 0], [16, 0], [0, 1], [0, 2]],
        );
        let facts = row_major(8, 256);
        for tensor in [&lanes_first, &by_rows, &by_columns] {
            for name in ["cuda:90", "hip:gfx1100"] {
                let target = Target::parse(name).unwrap();
                let access = GlobalAccess {
                    tensor,
                    addresses: Addresses::Pointers(&facts),
                    strides: None,
                    mask: None,
                    kind: AccessKind::Load,
                };
                let price = access.price(target);
                // Runs of eight floats: where they are longer than sectors the counts are exact.
                if target.global_costs().sector_bytes == 32 {
                    let counts = counted(tensor, &access.groups(target), 32);
                    assert_eq!(
                        (price.touched as u32, price.sectors as u32),
                        counts,
                        "{name}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_mask_of_unknown_width_is_priced_as_what_is_emitted() {
        let rows = tensor(
            &[32, 8],
            &[[0, 1], [0, 2], [0, 4]],
            &[[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]],
        );
        let facts = row_major(8, 256);
        let unknown = AxisFacts::unknown(2, Pow2::ONE);
        let target = Target::parse("cuda:90").unwrap();
        let price = |mask: Option<&AxisFacts>| {
            GlobalAccess {
                tensor: &rows,
                addresses: Addresses::Pointers(&facts),
                strides: None,
                mask,
                kind: AccessKind::Load,
            }
            .price(target)
        };
        let (plain, masked) = (price(None), price(Some(&unknown)));
        assert_eq!((plain.width, plain.instructions), (4, 2));
        assert_eq!((masked.width, masked.instructions), (1, 8));
        assert_eq!(plain.sectors, masked.sectors);
        assert!(masked.cost > plain.cost);
    }

    #[test]
    fn equal_addresses_share_a_sector_and_unknown_ones_have_their_own() {
        let rows = tensor(
            &[32, 8],
            &[[0, 1], [0, 2], [0, 4]],
            &[[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]],
        );
        let target = Target::parse("cuda:90").unwrap();
        let sectors = |facts: &AxisFacts| {
            GlobalAccess {
                tensor: &rows,
                addresses: Addresses::Pointers(facts),
                strides: None,
                mask: None,
                kind: AccessKind::Load,
            }
            .price(target)
            .sectors
        };
        let unknown = AxisFacts::unknown(2, Pow2::from_log2(2));
        assert_eq!(sectors(&unknown), 256.0);
        // The same row for all lanes.
        let one_row = row_major(8, 256).with_promises(&[], &[], &[32, 1]);
        assert_eq!(sectors(&one_row), 1.0);
        // Of eight places at which rows may start, seven touch one more.
        assert_eq!(sectors(&row_major(8, 4)), 60.0);
    }

    #[test]
    fn offsets_are_as_aligned_as_their_buffer() {
        let offsets = AxisFacts::unknown(1, Pow2::ONE).with_promises(&[64], &[64], &[]);
        let width = |base: u64| {
            Addresses::Offsets {
                offsets: &offsets,
                base,
            }
            .width_along(0, 4)
        };
        assert_eq!(width(256), 64);
        assert_eq!(width(8), 2);
    }
}
