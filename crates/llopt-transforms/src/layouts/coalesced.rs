//! The layout in which a warp touches the fewest sectors of global memory.
//!
//! Along the dimension in which addresses are contiguous, each lane takes a vector, the lanes of a
//! warp take neighbouring vectors, and what is left goes to the other dimensions. The vector is as
//! wide as contiguity, alignment, the tensor and the hardware allow, but no wider than leaves every
//! thread something to do.
//!
//! A kernel's accesses share their layout through the arithmetic between them, so accesses of the
//! same shape and order should agree: loads take the widest vector among them (a narrower type then
//! reads the same elements per thread with fewer bytes each), while a store never takes more than one
//! instruction's worth, because a warp that stores in two halves leaves gaps in each. That is what an
//! access proposes first. What it would like if it were alone, and half of that, it proposes as well:
//! what is around it (a reduction along the other dimension, a quantiser's groups) may want less. Where
//! several dimensions are as contiguous, each may come first.
//!
//! # What an access costs
//!
//! Addresses are known by runs: along the dimension `f` of an access, aligned runs of `c` elements are
//! contiguous, and along any dimension aligned runs of `k` elements may have one address. So the
//! *place* of an element, which tells sectors apart, is its coordinates without the bits that do not
//! leave the sector: those below `min(c, elements of a sector)` of dimension `f`, and those below `k`
//! of each dimension. Taking bits away is linear, so a set of registers, lanes and warps touches
//! `2^r` sectors, where `r` is the rank of what is left of its basis vectors. Nothing is
//! enumerated, and the order in which a layout lists its bits does not matter.
//!
//! Where nothing is contiguous, every element is a sector in every order. Then, and only then, the last
//! dimension counts as the better one, by a hair: rows are more often near each other than columns.

use llopt_dialects::layout::encoding::{Blocked, CgaLayout, EncodingError};
use llopt_layout::f2::Echelon;
use llopt_layout::{Dim, LinearLayout};
use llopt_target::global_memory::Prices;

use crate::axis::AxisFacts;

/// What the sectors of an access along its last dimension count if nothing is known of its addresses,
/// as a part of their price.
const PRIOR: f32 = 1.0 / 256.0;

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It loads.
    Load,
    /// It stores.
    Store,
    /// It updates, at most this many elements with one instruction.
    Atomic {
        /// The number of elements.
        widest: u64,
    },
}

/// An access to global memory through a tensor of addresses.
#[derive(Clone, Debug)]
pub struct GlobalAccess<'f> {
    /// The part of the tensor that one block holds.
    pub shape: &'f [u64],
    /// Bits of one element.
    pub element_bits: u32,
    /// What is known of the addresses.
    pub pointer: &'f AxisFacts,
    /// What is known of the mask.
    pub mask: Option<&'f AxisFacts>,
    /// What it does.
    pub kind: Kind,
}

/// How registers are accessed.
struct Vector {
    /// The register bits that one instruction covers.
    bits: Vec<u32>,
}

impl GlobalAccess<'_> {
    /// Dimensions from the one with the longest contiguous runs to the one with the shortest; among
    /// equals the later dimension comes first, as in row-major arrays.
    pub fn order(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.shape.len() as u32).rev().collect();
        order.sort_by_key(|&dim| std::cmp::Reverse(self.contiguity(dim as usize)));
        order
    }

    /// That order, and the others of which it is only the first.
    fn orders(&self) -> Vec<Vec<u32>> {
        let first = self.order();
        let longest = first.first().map(|&dim| self.contiguity(dim as usize));
        let equal = first
            .iter()
            .filter(|&&dim| Some(self.contiguity(dim as usize)) == longest);
        // Dimensions of one element have nothing to put first.
        let equal = equal.filter(|&&dim| self.shape[dim as usize] > 1);
        let mut orders = vec![first.clone()];
        for &fastest in equal {
            let rest = first.iter().copied().filter(|&dim| dim != fastest);
            let order: Vec<u32> = std::iter::once(fastest).chain(rest).collect();
            if !orders.contains(&order) {
                orders.push(order);
            }
        }
        orders
    }

    /// Whether both would propose the same.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.shape == other.shape
            && self.element_bits == other.element_bits
            && self.kind == other.kind
            && self.pointer == other.pointer
            && self.mask == other.mask
    }

    fn contiguity(&self, dim: usize) -> u64 {
        let facts = self.pointer.dims.get(dim);
        facts.map_or(1, |facts| facts.contiguity.get())
    }

    fn bytes(&self) -> u64 {
        u64::from(self.element_bits / 8).max(1)
    }

    /// Elements along a dimension that one instruction may move: a power of two.
    fn vector_along(&self, dim: usize, prices: &Prices) -> u64 {
        let aligned = self
            .pointer
            .dims
            .get(dim)
            .map_or(1, |facts| facts.aligned_contiguity(self.pointer.step).get());
        let masked = self.mask.map_or(u64::MAX, |mask| {
            mask.dims.get(dim).map_or(1, |facts| facts.constancy.get())
        });
        let widest = match self.kind {
            Kind::Load | Kind::Store => u64::from(prices.widest_access_bits) / 8 / self.bytes(),
            Kind::Atomic { widest } => widest,
        };
        let extent = self.shape.get(dim).map_or(1, |extent| *extent);
        aligned.min(masked).min(widest).min(extent).max(1)
    }

    /// Elements that one instruction may move: a power of two.
    pub fn vector(&self, prices: &Prices) -> u64 {
        let fastest = self.order().first().copied();
        fastest.map_or(1, |dim| self.vector_along(dim as usize, prices))
    }

    /// The layouts for this access among `others` that its values are connected with, the one that
    /// suits them all first.
    ///
    /// # Errors
    /// When a number of warps, threads or a size is no power of two.
    pub fn encodings(
        &self,
        others: &[GlobalAccess<'_>],
        num_warps: u32,
        threads_per_warp: u32,
        cga_layout: &CgaLayout,
        prices: &Prices,
    ) -> Result<Vec<Blocked>, EncodingError> {
        let elements: u64 = self.shape.iter().product();
        let threads = u64::from(num_warps) * u64::from(threads_per_warp);
        let most = (elements / threads).max(1);
        let mut encodings = Vec::new();
        for order in self.orders() {
            let Some(&fastest) = order.first() else {
                continue;
            };
            let own = self.vector_along(fastest as usize, prices);
            let alike = others
                .iter()
                .filter(|other| other.shape == self.shape && other.order() == order);
            let widest = alike
                .map(|other| other.vector_along(fastest as usize, prices))
                .fold(own, u64::max);
            let first = match self.kind {
                Kind::Load => widest,
                Kind::Store | Kind::Atomic { .. } => own,
            };
            for vector in [first, own, widest, own / 2] {
                let mut size_per_thread = vec![1; self.shape.len()];
                size_per_thread[fastest as usize] = vector.clamp(1, most) as u32;
                let encoding = Blocked::spread(
                    self.shape,
                    &size_per_thread,
                    &order,
                    num_warps,
                    threads_per_warp,
                    cga_layout.clone(),
                )?;
                if !encodings.contains(&encoding) {
                    encodings.push(encoding);
                }
            }
        }
        Ok(encodings)
    }

    /// The registers that one instruction accesses in a layout: those that hold consecutive elements
    /// along one dimension, which no other bit of the layout divides.
    fn registers(&self, layout: &LinearLayout, prices: &Prices) -> Vector {
        let count = layout.in_dim_size_log2(Dim::REGISTER);
        let mut best: Vec<u32> = Vec::new();
        for dim in 0..self.shape.len() {
            let out = Dim::tensor(dim);
            let allowed = self.vector_along(dim, prices).ilog2();
            let mut bits: Vec<u32> = Vec::new();
            while (bits.len() as u32) < allowed {
                let step = 1u32 << bits.len();
                let here = (0..count).find(|&bit| {
                    let basis = layout.basis(Dim::REGISTER, bit);
                    let other =
                        |(at, value): (usize, &u32)| *value == if at == dim { step } else { 0 };
                    basis.is_some_and(|basis| basis.iter().enumerate().all(other))
                });
                let Some(bit) = here else { break };
                bits.push(bit);
            }
            let others = layout.in_dims().iter().flat_map(|&place| {
                let all = 0..layout.in_dim_size_log2(place);
                let bits = &bits;
                all.filter(move |bit| place != Dim::REGISTER || !bits.contains(bit))
                    .map(move |bit| layout.basis_entry(place, bit, out))
            });
            let touched = others.fold(0, |all, entry| all | entry);
            bits.truncate(touched.trailing_zeros() as usize);
            if bits.len() > best.len() {
                best = bits;
            }
        }
        Vector { bits: best }
    }

    /// What the access costs a warp in a layout, in the unit of the prices.
    pub fn cost(&self, layout: &LinearLayout, prices: &Prices) -> f32 {
        let global = &prices.global;
        let vector = self.registers(layout, prices);
        let repeated = repeated_registers(layout);
        let all = layout.in_dim_size_log2(Dim::REGISTER);
        let used: Vec<u32> = (0..all).filter(|bit| repeated >> bit & 1 == 0).collect();
        let instructions = (1u64 << used.len()) as f32 / (1u64 << vector.bits.len()) as f32;

        let places = Places::of(self, global.sector_bytes, None);
        let (each, total, of_block) = places.sectors(layout, &used, &vector.bits);
        let warps = layout.in_dim_size(Dim::WARP) as f32;
        let touched = instructions * each;
        let distinct = of_block / warps;
        let again = (touched - distinct).max(0.0);
        let mut cost = instructions * global.instruction;
        cost += match self.kind {
            Kind::Load => {
                instructions * global.wait + distinct * global.sector + again * global.again
            }
            Kind::Store => distinct * global.sector + again * global.stored_again,
            // Nothing on the way to the second cache collects updates.
            Kind::Atomic { .. } => touched * global.sector,
        };
        let unknown = (0..self.shape.len()).all(|dim| self.contiguity(dim) == 1);
        if unknown && total > 1.0 {
            let places = Places::of(self, global.sector_bytes, self.shape.len().checked_sub(1));
            let (each, ..) = places.sectors(layout, &used, &vector.bits);
            cost += PRIOR * global.sector * instructions * each;
        }
        cost
    }
}

/// Which elements share a sector.
struct Places {
    /// For each dimension, the low bits of a coordinate that do not leave the sector.
    inside: Vec<u32>,
}

impl Places {
    /// `contiguous` is a dimension to take for contiguous although nothing says so.
    fn of(access: &GlobalAccess<'_>, sector_bytes: u32, contiguous: Option<usize>) -> Self {
        let elements = (u64::from(sector_bytes) / access.bytes()).max(1);
        let fastest = access.order().first().map(|&dim| dim as usize);
        let inside = (0..access.shape.len()).map(|dim| {
            let constancy = access
                .pointer
                .dims
                .get(dim)
                .map_or(0, |facts| facts.constancy.log2());
            let run = if contiguous == Some(dim) {
                elements
            } else if fastest == Some(dim) {
                elements.min(access.contiguity(dim))
            } else {
                1
            };
            constancy.max(run.ilog2())
        });
        Self {
            inside: inside.collect(),
        }
    }

    /// The place of what a basis vector reaches, as one number.
    fn place(&self, layout: &LinearLayout, from: Dim, bit: u32) -> u32 {
        let mut place = 0;
        let mut shift = 0;
        for (dim, &inside) in self.inside.iter().enumerate() {
            let out = Dim::tensor(dim);
            let coordinate = layout.basis_entry(from, bit, out);
            let left = coordinate.checked_shr(inside).unwrap_or(0);
            place |= left.checked_shl(shift).unwrap_or(0);
            shift += layout.out_dim_size_log2(out);
        }
        place
    }

    /// Sectors that one instruction touches, that all of a warp touch, and all of a block.
    fn sectors(&self, layout: &LinearLayout, used: &[u32], vector: &[u32]) -> (f32, f32, f32) {
        let mut places = Echelon::of(&[]);
        let sectors = |places: &Echelon| (1u64 << places.rank()) as f32;
        for bit in 0..layout.in_dim_size_log2(Dim::LANE) {
            places.insert(self.place(layout, Dim::LANE, bit));
        }
        for &bit in vector {
            places.insert(self.place(layout, Dim::REGISTER, bit));
        }
        let each = sectors(&places);
        for &bit in used {
            places.insert(self.place(layout, Dim::REGISTER, bit));
        }
        let of_warp = sectors(&places);
        for bit in 0..layout.in_dim_size_log2(Dim::WARP) {
            places.insert(self.place(layout, Dim::WARP, bit));
        }
        (each, of_warp, sectors(&places))
    }
}

/// The register bits that lead to an element which a lower register of the thread holds.
pub(super) fn repeated_registers(layout: &LinearLayout) -> u32 {
    let masks = layout.free_variable_masks();
    let repeated = masks.iter().find(|(dim, _)| *dim == Dim::REGISTER);
    repeated.map_or(0, |(_, mask)| *mask)
}

#[cfg(test)]
mod tests {
    use llopt_dialects::layout::encoding::Encoding;

    use super::*;
    use crate::axis::address;

    /// Addresses of elements of `bytes` with this contiguity and divisibility for each dimension.
    fn pointer(bytes: u64, contiguity: &[u64], divisibility: &[u64]) -> AxisFacts {
        address::unknown_address(contiguity.len(), bytes).with_promises(
            contiguity,
            divisibility,
            &[],
        )
    }

    fn access<'f>(shape: &'f [u64], bits: u32, pointer: &'f AxisFacts) -> GlobalAccess<'f> {
        GlobalAccess {
            shape,
            element_bits: bits,
            pointer,
            mask: None,
            kind: Kind::Load,
        }
    }

    fn prices() -> Prices {
        llopt_target::Target::parse("cuda:90").unwrap().prices()
    }

    fn first(access: &GlobalAccess<'_>, others: &[GlobalAccess<'_>]) -> Blocked {
        let cga = CgaLayout::single(access.shape.len());
        let encodings = access.encodings(others, 4, 32, &cga, &prices()).unwrap();
        encodings.into_iter().next().unwrap()
    }

    #[test]
    fn rows_are_read_in_vectors_of_sixteen_bytes() {
        let pointer = pointer(2, &[1, 64], &[2, 128]);
        let layout = first(&access(&[128, 64], 16, &pointer), &[]);
        assert_eq!(layout.size_per_thread, [1, 8]);
        assert_eq!(layout.threads_per_warp, [4, 8]);
        assert_eq!(layout.warps_per_cta, [4, 1]);
        assert_eq!(layout.order, [1, 0]);
    }

    #[test]
    fn columns_turn_the_order() {
        let pointer = pointer(4, &[64, 1], &[16, 4]);
        let access = access(&[64, 64], 32, &pointer);
        assert_eq!((access.order(), access.vector(&prices())), (vec![0, 1], 4));
    }

    #[test]
    fn where_no_dimension_is_better_each_may_come_first() {
        let pointer = pointer(4, &[1, 1], &[4, 4]);
        assert_eq!(
            access(&[64, 64], 32, &pointer).orders(),
            [vec![1, 0], vec![0, 1]]
        );
    }

    #[test]
    fn every_thread_has_something_to_do() {
        let pointer = pointer(1, &[256], &[16]);
        assert_eq!(
            first(&access(&[256], 8, &pointer), &[]).size_per_thread,
            [2]
        );
    }

    #[test]
    fn a_load_follows_the_widest_and_a_store_its_own() {
        let (narrow, wide) = (pointer(2, &[4096], &[16]), pointer(4, &[4096], &[16]));
        let half = access(&[4096], 16, &narrow);
        let single = access(&[4096], 32, &wide);
        let cga = CgaLayout::single(1);
        let others = std::slice::from_ref(&half);
        let proposed = single.encodings(others, 4, 32, &cga, &prices()).unwrap();
        let widths: Vec<u32> = proposed.iter().map(|e| e.size_per_thread[0]).collect();
        assert_eq!(widths, [8, 4, 2]);
        let store = GlobalAccess {
            kind: Kind::Store,
            ..single
        };
        assert_eq!(first(&store, others).size_per_thread, [4]);
    }

    #[test]
    fn without_alignment_or_with_a_mask_of_its_own_for_each_element_there_are_no_vectors() {
        let unaligned = pointer(4, &[64], &[4]);
        assert_eq!(access(&[64], 32, &unaligned).vector(&prices()), 1);
        let aligned = pointer(4, &[64], &[16]);
        let mask = AxisFacts::unknown(1, crate::axis::Pow2::ONE);
        let masked = GlobalAccess {
            mask: Some(&mask),
            ..access(&[64], 32, &aligned)
        };
        assert_eq!(masked.vector(&prices()), 1);
    }

    #[test]
    fn sectors_that_one_thread_reads_in_two_halves_travel_once() {
        // Two words of 16 bytes in a row of each thread, and the same tile with the words of a thread
        // a row apart.
        let pointer = pointer(4, &[1, 64], &[4, 256]);
        let access = access(&[64, 64], 32, &pointer);
        let layout = |per_thread| {
            let blocked =
                Blocked::spread(&[64, 64], per_thread, &[1, 0], 4, 32, CgaLayout::single(2));
            Encoding::Blocked(blocked.unwrap())
                .linear_layout(&[64, 64])
                .unwrap()
        };
        let (wide, narrow) = (layout(&[1, 8]), layout(&[1, 4]));
        let again = prices().global.again;
        let difference = access.cost(&wide, &prices()) - access.cost(&narrow, &prices());
        // 8 instructions of 32 lanes touch half of a sector each.
        assert!(
            (difference - 8.0 * 16.0 * again).abs() < 1e-3,
            "{difference}"
        );
    }

    mod counted {
        use std::collections::BTreeSet;

        use proptest::prelude::*;

        use super::*;

        /// A layout with these basis vectors of registers, lanes and warps on 16x16.
        fn layout(bases: &[(u32, u32)]) -> LinearLayout {
            let vectors: Vec<Vec<u32>> = bases.iter().map(|(a, b)| vec![*a, *b]).collect();
            let (registers, rest) = vectors.split_at(3);
            let (lanes, warps) = rest.split_at(3);
            let outs = [(Dim::tensor(0), 16), (Dim::tensor(1), 16)];
            let ins = [
                (Dim::REGISTER, registers),
                (Dim::LANE, lanes),
                (Dim::WARP, warps),
            ];
            LinearLayout::from_bases(&ins, &outs).unwrap()
        }

        proptest! {
            /// Sectors by rank are sectors counted one by one.
            #[test]
            fn ranks_count_sectors(
                bases in prop::collection::vec((0u32..16, 0u32..16), 8),
                contiguity in 0u32..5,
                constancy in 0u32..3,
            ) {
                let layout = layout(&bases);
                let mut facts = pointer(4, &[1, 1 << contiguity], &[4, 4]);
                facts.dims[0].constancy = crate::axis::Pow2::from_log2(constancy);
                let access = access(&[16, 16], 32, &facts);
                let places = Places::of(&access, 32, None);
                let used: Vec<u32> = vec![0, 1, 2];
                let (each, warp, block) = places.sectors(&layout, &used, &[0]);
                // With nothing contiguous either dimension may be the first; none leaves its bits.
                let sector = |register: u32, lane: u32, thread: u32| {
                    let input = [
                        (Dim::REGISTER, register),
                        (Dim::LANE, lane),
                        (Dim::WARP, thread),
                    ];
                    let at = layout.apply(&input).unwrap();
                    let coordinates: Vec<u32> = at.iter().map(|(_, value)| *value).collect();
                    (coordinates[0] >> constancy, coordinates[1] >> contiguity.min(3))
                };
                let count = |registers: u32, warps: u32| {
                    let mut sectors = BTreeSet::new();
                    for register in 0..registers {
                        for lane in 0..8 {
                            for warp in 0..warps {
                                sectors.insert(sector(register, lane, warp));
                            }
                        }
                    }
                    sectors.len() as f32
                };
                prop_assert_eq!(each, count(2, 1));
                prop_assert_eq!(warp, count(8, 1));
                prop_assert_eq!(block, count(8, 4));
            }
        }
    }
}
