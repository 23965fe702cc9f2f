//! Which bytes of an op's scratch memory each warp touches, where each has a part of its own.
//!
//! Warps that write and read only bytes of their own need not wait for one another: neither inside an op, nor between
//! two ops that divide the same bytes in the same way. Whether two ops do is decided by comparing what each warp
//! touches according to their plans.
//!
//! Plans are linear: the bytes that warp `w` touches are a coset `A w + S` of the span `S` of what its lanes,
//! registers and instructions add. Two plans divide memory alike if `S` is the same space and `A` the same map modulo
//! `S`. The reduced echelon form of `S`, and the columns of `A` reduced by it, are unique, so equality of the spaces and
//! of the maps is equality of these numbers. Parts are disjoint if the reduced columns are independent.

use llopt_layout::f2::Echelon;

/// What each warp touches.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum WarpParts {
    /// The first warp touches all of it, and no other warp any.
    First,
    /// Each warp has a part.
    Divided {
        /// The reduced basis of the part of warp 0, in bytes.
        part: Vec<u32>,
        /// What each bit of the warp's number adds to the first byte, reduced by the part.
        warps: Vec<u32>,
    },
}

impl WarpParts {
    /// The parts whose bytes `inside` spans, where bit `i` of the warp's number adds `warps[i]`; `None` if warps
    /// share bytes.
    #[must_use]
    pub fn divided(inside: impl IntoIterator<Item = u32>, warps: &[u32]) -> Option<Self> {
        let mut span = Echelon::new();
        for byte in inside {
            let _ = span.insert(byte);
        }
        let warps: Vec<u32> = warps.iter().map(|warp| span.reduce(*warp)).collect();
        let mut apart = Echelon::new();
        if !warps.iter().all(|warp| apart.insert(*warp).is_none()) {
            return None;
        }
        Some(Self::Divided {
            part: span.vectors().collect(),
            warps,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn sum(vectors: &[u32], chosen: u32) -> u32 {
        (0..vectors.len())
            .filter(|bit| chosen >> bit & 1 == 1)
            .fold(0, |all, bit| all ^ vectors[bit])
    }

    /// The bytes of each warp, one by one.
    fn bytes(inside: &[u32], warps: &[u32]) -> Vec<BTreeSet<u32>> {
        let of_warp = |warp: u32| {
            let all = 0..1u32 << inside.len();
            all.map(|chosen| sum(inside, chosen) ^ sum(warps, warp))
                .collect()
        };
        (0..1u32 << warps.len()).map(of_warp).collect()
    }

    fn plan() -> impl Strategy<Value = (Vec<u32>, Vec<u32>)> {
        (
            prop::collection::vec(0..16u32, 0..4),
            prop::collection::vec(0..16u32, 2),
        )
    }

    proptest! {
        #[test]
        fn parts_are_equal_where_each_warp_touches_the_same_bytes(
            (a, of_a) in plan(), (b, of_b) in plan(),
        ) {
            let (parts, others) = (bytes(&a, &of_a), bytes(&b, &of_b));
            let disjoint = |parts: &[BTreeSet<u32>]| {
                (0..parts.len()).all(|i| (0..i).all(|j| parts[i].is_disjoint(&parts[j])))
            };
            let (one, other) = (
                WarpParts::divided(a.iter().copied(), &of_a),
                WarpParts::divided(b.iter().copied(), &of_b),
            );
            prop_assert_eq!(one.is_some(), disjoint(&parts));
            prop_assert_eq!(other.is_some(), disjoint(&others));
            if let (Some(one), Some(other)) = (one, other) {
                prop_assert_eq!(one == other, parts == others);
            }
        }
    }
}
