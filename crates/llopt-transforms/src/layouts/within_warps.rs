//! The layout in which an access is coalesced while every warp keeps the elements that a product gives it.
//!
//! What a warp has of a product's result is a rectangle of several rows. If its lanes exchange these elements among
//! themselves, rows are stored in full vectors, and no other warp takes part: the exchange needs neither a barrier of
//! the block nor a second warp's memory. [`super::coalesced`] spreads a tensor over the warps without
//! knowing the product, and what it proposes mostly moves elements from warp to warp as well. So it is with the result of a
//! reduction along rows, of which each warp has those of its own rows, all lanes the same.
//!
//! ```text
//!        a product's result               the same elements, in vectors
//!   t0 t0 t1 t1 t2 t2 t3 t3 …             t0 t0 t0 t0 t1 t1 t1 t1 …
//!   t4 t4 t5 t5 t6 t6 t7 t7 …      →      t2 t2 t2 t2 t3 t3 t3 t3 …
//! ```

use llopt_dialects::layout::encoding::{Encoding, Linear};
use llopt_layout::{Dim, LinearLayout};
use llopt_target::Target;

use super::coalesced::GlobalAccess;

/// A basis vector, one entry for each dimension of the tensor.
type Basis = Vec<u32>;

impl GlobalAccess<'_> {
    /// The coalesced layout in which warps and blocks have the elements that they have in `other`; `None` if these are no
    /// rectangles.
    pub(super) fn within_warps(&self, other: &LinearLayout, target: Target) -> Option<Encoding> {
        let rank = self.shape.len();
        let bases = |dim: Dim| -> Vec<Basis> {
            (0..other.in_dim_size_log2(dim))
                .map(|bit| {
                    (0..rank)
                        .map(|axis| other.basis_entry(dim, bit, Dim::tensor(axis)))
                        .collect()
                })
                .collect()
        };
        let step = |basis: &Basis| -> Option<(usize, u32)> {
            let mut along = (0..rank).filter(|&axis| basis[axis] != 0);
            let axis = along.next()?;
            (along.next().is_none() && basis[axis].is_power_of_two())
                .then(|| (axis, basis[axis].ilog2()))
        };
        let nothing = |basis: &Basis| basis.iter().all(|&entry| entry == 0);
        let moving = |basis: &Basis| !nothing(basis);
        let lanes = bases(Dim::LANE);
        let held: Vec<Basis> = bases(Dim::REGISTER)
            .into_iter()
            .chain(lanes.iter().cloned())
            .filter(moving)
            .collect();
        let mut steps: Vec<(usize, u32)> = held.iter().map(step).collect::<Option<_>>()?;
        // The fastest dimension first, and the nearest elements along it.
        let order = self.order();
        let place = |axis: usize| order.iter().position(|&dim| dim as usize == axis);
        steps.sort_by_key(|&(axis, bit)| (place(axis), bit));
        steps.dedup();
        let fastest = *order.first()? as usize;
        let most = (held.len()).saturating_sub(lanes.len());
        let vector = self.vector(target).ilog2().min(most as u32);
        let together = (0..vector)
            .take_while(|&bit| steps.get(bit as usize) == Some(&(fastest, bit)))
            .count();
        let basis = |(axis, bit): (usize, u32)| -> Basis {
            let mut basis = vec![0; rank];
            basis[axis] = 1 << bit;
            basis
        };
        let (in_vector, rest) = steps.split_at(together);
        let (in_lanes, others) = rest.split_at(lanes.len().min(rest.len()));
        let registers: Vec<Basis> = in_vector.iter().chain(others).copied().map(basis).collect();
        let mut lanes_of: Vec<Basis> = in_lanes.iter().copied().map(basis).collect();
        lanes_of.resize(lanes.len(), vec![0; rank]);
        let (warps, blocks) = (bases(Dim::WARP), bases(Dim::BLOCK));
        let linear = Linear::from_bases(rank, &registers, &lanes_of, &warps, &blocks).ok()?;
        Some(Encoding::Linear(linear))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::address;
    use llopt_plan::global_access::AccessKind;

    /// Two rows of sixteen elements for each of two warps, pairs of neighbours in a lane.
    fn product() -> LinearLayout {
        let registers = vec![vec![0, 1], vec![0, 8]];
        let lanes = vec![vec![0, 2], vec![0, 4], vec![1, 0]];
        let warps = vec![vec![2, 0]];
        let bases: [(Dim, &[Vec<u32>]); 4] = [
            (Dim::REGISTER, &registers),
            (Dim::LANE, &lanes),
            (Dim::WARP, &warps),
            (Dim::BLOCK, &[]),
        ];
        let outs = [(Dim::tensor(0), 4), (Dim::tensor(1), 16)];
        LinearLayout::from_bases(&bases, &outs).unwrap()
    }

    fn stored(contiguity: &[u64]) -> LinearLayout {
        let pointer = address::unknown_address(2, 4).with_promises(contiguity, &[16, 16], &[]);
        let access = GlobalAccess {
            shape: &[4, 16],
            element_bits: 32,
            pointer: &pointer,
            mask: None,
            kind: AccessKind::Store,
        };
        let target = Target::parse("cuda:90").unwrap();
        let encoding = access.within_warps(&product(), target).unwrap();
        encoding.linear_layout(&[4, 16]).unwrap()
    }

    #[test]
    fn lanes_take_vectors_of_their_warp_s_rows() {
        let layout = stored(&[1, 16]);
        let flat = |dim| layout.flat_bases_of(dim).to_vec();
        assert_eq!(layout.basis_entry(Dim::REGISTER, 0, Dim::tensor(1)), 1);
        assert_eq!(layout.basis_entry(Dim::REGISTER, 1, Dim::tensor(1)), 2);
        assert_eq!(layout.basis_entry(Dim::LANE, 0, Dim::tensor(1)), 4);
        assert_eq!(layout.basis_entry(Dim::LANE, 2, Dim::tensor(0)), 1);
        assert_eq!(flat(Dim::WARP), product().flat_bases_of(Dim::WARP));
    }

    #[test]
    fn columns_are_stored_as_far_as_a_warp_has_them() {
        let layout = stored(&[4, 1]);
        assert_eq!(layout.basis_entry(Dim::REGISTER, 0, Dim::tensor(0)), 1);
        assert_eq!(layout.basis_entry(Dim::LANE, 0, Dim::tensor(1)), 1);
        assert_eq!(layout.basis_entry(Dim::WARP, 0, Dim::tensor(0)), 2);
    }
}
