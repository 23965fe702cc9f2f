//! The layout in which a warp touches the fewest sectors of global memory.
//!
//! Along the dimension in which addresses are contiguous, each lane takes a vector, the lanes of a warp take
//! neighbouring vectors, and the remaining lanes and warps go to the other dimensions. The vector is as wide as
//! contiguity, alignment, the tensor and the hardware allow, but narrow enough that every thread has work.
//!
//! A kernel's accesses share their layout through the arithmetic between them, so accesses of the same shape and
//! order should agree: loads take the widest vector among them (a narrower type then reads the same elements per
//! thread with fewer bytes each), while a store never takes more than one instruction's vector, because a warp that
//! stores in two halves leaves gaps in each. This is an access's first proposal. It also proposes its best vector if
//! it were alone, and half of that, since the ops around it (a reduction along the other dimension, a quantiser's
//! groups) may want narrower ones. Where several dimensions are equally contiguous, each may come first.
//

use llopt_dialects::layout::encoding::{Blocked, CgaLayout, EncodingError};
use llopt_plan::global_access::{AccessKind, Addresses, mask_width};
use llopt_target::Target;

use crate::axis::AxisFacts;

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
    pub kind: AccessKind,
}

impl GlobalAccess<'_> {
    /// Dimensions from the one with the longest contiguous runs to the one with the shortest; among
    /// equals the later dimension comes first, as in row-major arrays.
    pub fn order(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.shape.len() as u32).rev().collect();
        order.sort_by_key(|&dim| std::cmp::Reverse(self.contiguity(dim as usize)));
        order
    }

    /// That order, and the others that are equally good.
    fn orders(&self) -> Vec<Vec<u32>> {
        let first = self.order();
        let longest = first.first().map(|&dim| self.contiguity(dim as usize));
        let equal = first
            .iter()
            .filter(|&&dim| Some(self.contiguity(dim as usize)) == longest);
        // Dimensions of one element cannot come first.
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
    fn vector_along(&self, dim: usize, target: Target) -> u64 {
        let addressed = Addresses::Pointers(self.pointer).width_along(dim, self.bytes());
        let widest = match self.kind {
            AccessKind::Load | AccessKind::Store => {
                u64::from(target.max_global_access_bits()) / 8 / self.bytes()
            }
            AccessKind::Atomic { widest } => u64::from(widest),
        };
        let extent = self.shape.get(dim).map_or(1, |extent| *extent);
        let masked = mask_width(self.mask, dim);
        addressed.min(masked).min(widest).min(extent).max(1)
    }

    /// Elements that one instruction may move: a power of two.
    pub fn vector(&self, target: Target) -> u64 {
        let fastest = self.order().first().copied();
        fastest.map_or(1, |dim| self.vector_along(dim as usize, target))
    }

    /// The layouts for this access, given the `others` that its values are connected with; the one that suits all of
    /// them comes first.
    ///
    /// # Errors
    /// When a number of warps, threads or a size is not a power of two.
    pub fn encodings(
        &self,
        others: &[GlobalAccess<'_>],
        num_warps: u32,
        threads_per_warp: u32,
        cga_layout: &CgaLayout,
        target: Target,
    ) -> Result<Vec<Blocked>, EncodingError> {
        let mut encodings = Vec::new();
        for order in self.orders() {
            let grid = (num_warps, threads_per_warp, cga_layout);
            for encoding in self.in_order(&order, others, grid, target)? {
                if !encodings.contains(&encoding) {
                    encodings.push(encoding);
                }
            }
        }
        // What is computed along the slower dimensions may be the cheaper for threads along others of them first.
        if let [fastest, rest @ ..] = &self.order()[..]
            && rest.len() > 1
        {
            let order: Vec<u32> = std::iter::once(fastest)
                .chain(rest.iter().rev())
                .copied()
                .collect();
            let grid = (num_warps, threads_per_warp, cga_layout);
            let others = self.in_order(&order, others, grid, target)?.into_iter();
            encodings.extend(
                others
                    .take(1)
                    .filter(|one| !encodings.contains(one))
                    .collect::<Vec<_>>(),
            );
        }
        Ok(encodings)
    }

    /// The layouts for this access in which threads lie along an axis last: then the fewest threads take part in
    /// combining along that axis. None if it is the axis of the vectors.
    ///
    /// # Errors
    /// When a number of warps, threads or a size is not a power of two.
    pub fn encodings_away_from(
        &self,
        axis: u32,
        others: &[GlobalAccess<'_>],
        num_warps: u32,
        threads_per_warp: u32,
        cga_layout: &CgaLayout,
        target: Target,
    ) -> Result<Vec<Blocked>, EncodingError> {
        let mut order = self.order();
        if order.first() == Some(&axis) || order.last() == Some(&axis) {
            return Ok(Vec::new());
        }
        order.retain(|&dim| dim != axis);
        order.push(axis);
        let grid = (num_warps, threads_per_warp, cga_layout);
        self.in_order(&order, others, grid, target)
    }

    /// The layouts in which no warp lies along an axis, so that no data go from warp to warp for what combines along
    /// it: lanes lie along the axis instead. The lanes of a warp still read as many neighbours as there can be. None
    /// where the other dimensions are too small for all warps, or each warp would read less than a sector of a row.
    pub fn encodings_within_warps(
        &self,
        axis: u32,
        num_warps: u32,
        threads_per_warp: u32,
        cga_layout: &CgaLayout,
        target: Target,
    ) -> Vec<Blocked> {
        let order = self.order();
        let (Some(&fastest), Ok(share)) = (order.first(), cga_layout.share(self.shape)) else {
            return Vec::new();
        };
        let (fastest, axis) = (fastest as usize, axis as usize);
        let own = self.vector_along(fastest, target);
        let threads = u64::from(num_warps) * u64::from(threads_per_warp);
        let most = (share.iter().product::<u64>() / threads).max(1);
        let mut encodings = Vec::new();
        for vector in [own, own / 2] {
            let vector = vector.clamp(1, most);
            let places: Vec<u64> = (0..share.len())
                .map(|dim| match dim == fastest {
                    true => (share[dim] / vector).max(1),
                    false => share[dim],
                })
                .collect();
            let others = places.iter().enumerate().filter(|(dim, _)| *dim != axis);
            let room: u64 = others.map(|(_, places)| places).product();
            let neighbours = match fastest == axis {
                true => places[fastest],
                false => places[fastest].min(room / u64::from(num_warps)),
            };
            let neighbours = neighbours.min(u64::from(threads_per_warp));
            let bytes = neighbours * vector * self.bytes();
            if room < u64::from(num_warps) || bytes < u64::from(target.global_costs().sector_bytes)
            {
                continue;
            }
            let (mut lanes, mut warps) = (vec![1; share.len()], vec![1; share.len()]);
            lanes[fastest] = neighbours as u32;
            let mut left = [threads_per_warp / lanes[fastest], num_warps];
            // Warps come before the lanes that are left, which may lie along the axis.
            for &dim in &order {
                let dim = dim as usize;
                if dim != axis {
                    let free = places[dim] / u64::from(lanes[dim]);
                    warps[dim] = free.clamp(1, u64::from(left[1])) as u32;
                    left[1] /= warps[dim];
                }
            }
            for &dim in &order {
                let dim = dim as usize;
                let free = places[dim] / u64::from(lanes[dim] * warps[dim]);
                let more = free.clamp(1, u64::from(left[0])) as u32;
                lanes[dim] *= more;
                left[0] /= more;
            }
            lanes[axis] *= left[0];
            let mut size_per_thread = vec![1; share.len()];
            size_per_thread[fastest] = vector as u32;
            let encoding = Blocked {
                size_per_thread,
                threads_per_warp: lanes,
                warps_per_cta: warps,
                order: order.clone(),
                cga_layout: cga_layout.clone(),
            };
            if left[1] == 1 && !encodings.contains(&encoding) {
                encodings.push(encoding);
            }
        }
        encodings
    }

    /// The layouts of a load in which each thread has more neighbours than one instruction moves, up to a sector. No two
    /// lanes load parts of one sector then, and ops that combine or compare neighbours exchange less between threads; but
    /// each instruction requests more lines. None for what is stored: parts of a sector are stored one by one. Where other dimensions
    /// have room for lanes, also those with fewer lanes along the neighbours, each of which has several such runs.
    ///
    /// # Errors
    /// When a number of warps, threads or a size is not a power of two.
    pub fn encodings_in_sectors(
        &self,
        num_warps: u32,
        threads_per_warp: u32,
        cga_layout: &CgaLayout,
        target: Target,
    ) -> Result<Vec<Blocked>, EncodingError> {
        let order = self.order();
        let Some(&fastest) = order.first().filter(|_| self.kind == AccessKind::Load) else {
            return Ok(Vec::new());
        };
        let dim = fastest as usize;
        let share = cga_layout.share(self.shape)?;
        let threads = u64::from(num_warps) * u64::from(threads_per_warp);
        let sector = u64::from(target.global_costs().sector_bytes) / self.bytes();
        let most = (share.iter().product::<u64>() / threads)
            .min(share.get(dim).copied().unwrap_or(1))
            .min(self.contiguity(dim))
            .min(sector);
        let vectors = std::iter::successors(Some(2 * self.vector_along(dim, target)), |vector| {
            Some(2 * vector)
        });
        let mut encodings = Vec::new();
        for vector in vectors.take_while(|vector| *vector <= most) {
            let mut size_per_thread = vec![1; self.shape.len()];
            size_per_thread[dim] = vector as u32;
            let cga = cga_layout.clone();
            let lanes = threads_per_warp;
            let mut encoding =
                Blocked::spread(self.shape, &size_per_thread, &order, num_warps, lanes, cga)?;
            loop {
                encodings.push(encoding.clone());
                match fewer_lanes(&encoding, dim, &share) {
                    Some(next) => encoding = next,
                    None => break,
                }
            }
        }
        Ok(encodings)
    }

    /// The layouts with dimensions in this order, one for each width of vectors.
    fn in_order(
        &self,
        order: &[u32],
        others: &[GlobalAccess<'_>],
        (num_warps, threads_per_warp, cga_layout): (u32, u32, &CgaLayout),
        target: Target,
    ) -> Result<Vec<Blocked>, EncodingError> {
        let elements: u64 = self.shape.iter().product();
        let threads = u64::from(num_warps) * u64::from(threads_per_warp);
        let most = (elements / threads).max(1);
        let mut encodings = Vec::new();
        let Some(&fastest) = order.first() else {
            return Ok(encodings);
        };
        let own = self.vector_along(fastest as usize, target);
        let alike = others
            .iter()
            .filter(|other| other.shape == self.shape && other.order().first() == Some(&fastest));
        let widest = alike
            .map(|other| other.vector_along(fastest as usize, target))
            .fold(own, u64::max);
        let first = match self.kind {
            AccessKind::Load => widest,
            AccessKind::Store | AccessKind::Atomic { .. } => own,
        };
        for vector in [first, own, widest, own / 2] {
            let mut size_per_thread = vec![1; self.shape.len()];
            size_per_thread[fastest as usize] = vector.clamp(1, most) as u32;
            let encoding = Blocked::spread(
                self.shape,
                &size_per_thread,
                order,
                num_warps,
                threads_per_warp,
                cga_layout.clone(),
            )?;
            if !encodings.contains(&encoding) {
                encodings.push(encoding);
            }
        }
        Ok(encodings)
    }
}

/// The layout with half as many lanes along a dimension, and twice as many along the next one that has room for them.
fn fewer_lanes(encoding: &Blocked, dim: usize, share: &[u64]) -> Option<Blocked> {
    let has_room = |other: usize| {
        let threads = encoding.threads_per_warp[other] * encoding.warps_per_cta[other];
        u64::from(2 * threads * encoding.size_per_thread[other]) <= share[other]
    };
    let others = encoding.order.iter().map(|other| *other as usize);
    let to = others
        .clone()
        .find(|other| *other != dim && has_room(*other))?;
    let mut fewer = encoding.clone();
    if fewer.threads_per_warp[dim] < 2 {
        return None;
    }
    fewer.threads_per_warp[dim] /= 2;
    fewer.threads_per_warp[to] *= 2;
    Some(fewer)
}

/// The layout with the same lanes and warps in which each thread's elements along an axis follow each other; `None` if
/// they do already.
pub(super) fn in_runs(encoding: &Blocked, axis: u32, shape: &[u64]) -> Option<Blocked> {
    let dim = axis as usize;
    let extent = *encoding.cga_layout.share(shape).ok()?.get(dim)?;
    let threads = encoding.threads_per_warp[dim] * encoding.warps_per_cta[dim];
    let run = u32::try_from(extent / u64::from(threads)).ok()?;
    let mut size_per_thread = encoding.size_per_thread.clone();
    (run > size_per_thread[dim]).then(|| {
        size_per_thread[dim] = run;
        Blocked {
            size_per_thread,
            ..encoding.clone()
        }
    })
}

#[cfg(test)]
mod tests {
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
            kind: AccessKind::Load,
        }
    }

    fn target() -> Target {
        Target::parse("cuda:90").unwrap()
    }

    fn first(access: &GlobalAccess<'_>, others: &[GlobalAccess<'_>]) -> Blocked {
        let cga = CgaLayout::single(access.shape.len());
        let encodings = access.encodings(others, 4, 32, &cga, target()).unwrap();
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
    fn lanes_leave_the_neighbours_where_other_dimensions_have_room() {
        let rows = pointer(4, &[1, 64], &[4, 256]);
        let cga = CgaLayout::single(2);
        let lanes = |rows_of_tile: u64| {
            let shape = [rows_of_tile, 64];
            let access = access(&shape, 32, &rows);
            let found = access.encodings_in_sectors(4, 32, &cga, target()).unwrap();
            let sectors = found.iter().all(|one| one.size_per_thread == [1, 8]);
            assert!(sectors, "{found:?}");
            let lanes = found.into_iter().map(|one| one.threads_per_warp);
            lanes.collect::<Vec<_>>()
        };
        assert_eq!(lanes(16), [[4, 8]]);
        assert_eq!(lanes(32), [[4, 8], [8, 4]]);
        assert_eq!(lanes(128), [[4, 8], [8, 4], [16, 2], [32, 1]]);
    }

    #[test]
    fn lanes_take_the_place_of_warps_along_an_axis() {
        let columns = pointer(4, &[1, 128], &[4, 512]);
        let cga = CgaLayout::single(2);
        let within = |shape: &[u64], axis| {
            access(shape, 32, &columns).encodings_within_warps(axis, 4, 32, &cga, target())
        };
        for (shape, axis) in [
            ([64, 128], 0),
            ([16, 512], 1),
            ([4, 1024], 1),
            ([128, 32], 0),
        ] {
            let found = within(&shape, axis);
            assert!(!found.is_empty(), "{shape:?} {axis}");
            for encoding in found {
                assert_eq!(encoding.warps_per_cta[axis as usize], 1, "{encoding:?}");
                let [lanes, warps] = [&encoding.threads_per_warp, &encoding.warps_per_cta];
                assert_eq!(lanes.iter().product::<u32>(), 32);
                assert_eq!(warps.iter().product::<u32>(), 4);
                let bytes = 4 * encoding.size_per_thread[1] * lanes[1];
                assert!(bytes >= 32, "{encoding:?}");
                // No two threads hold the same element.
                for dim in 0..2 {
                    let held = encoding.size_per_thread[dim] * lanes[dim] * warps[dim];
                    assert!(u64::from(held) <= shape[dim], "{encoding:?}");
                }
            }
        }
        let columns = &within(&[64, 128], 0)[0];
        assert_eq!(columns.threads_per_warp, [4, 8]);
        let runs = in_runs(columns, 0, &[64, 128]).unwrap();
        assert_eq!(runs.size_per_thread, [16, 4]);
        assert_eq!(in_runs(&runs, 0, &[64, 128]), None);
        // One row for four warps.
        assert!(within(&[1, 128], 1).is_empty());
    }

    #[test]
    fn columns_turn_the_order() {
        let pointer = pointer(4, &[64, 1], &[16, 4]);
        let access = access(&[64, 64], 32, &pointer);
        assert_eq!((access.order(), access.vector(target())), (vec![0, 1], 4));
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
        let proposed = single.encodings(others, 4, 32, &cga, target()).unwrap();
        let widths: Vec<u32> = proposed.iter().map(|e| e.size_per_thread[0]).collect();
        assert_eq!(widths, [8, 4, 2]);
        let store = GlobalAccess {
            kind: AccessKind::Store,
            ..single
        };
        assert_eq!(first(&store, others).size_per_thread, [4]);
    }

    #[test]
    fn without_alignment_or_with_a_mask_of_its_own_for_each_element_there_are_no_vectors() {
        let unaligned = pointer(4, &[64], &[4]);
        assert_eq!(access(&[64], 32, &unaligned).vector(target()), 1);
        let aligned = pointer(4, &[64], &[16]);
        let mask = AxisFacts::unknown(1, crate::axis::Pow2::ONE);
        let masked = GlobalAccess {
            mask: Some(&mask),
            ..access(&[64], 32, &aligned)
        };
        assert_eq!(masked.vector(target()), 1);
    }
}
