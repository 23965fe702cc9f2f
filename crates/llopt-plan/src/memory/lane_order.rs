//! Copies for which a warp gives one address; the data of its lanes lie one after the other from there.
//!
//! A copy of `2^k` lanes fills a window of `2^k` slots of memory; lane `s` fills slot `s`. A layout says which slot
//! an element belongs to: with `M` the matrix of the lanes, that of lane `l` is `M·l + c`, where `c` depends on the
//! warp, on the block and on which of several copies it is. If `M` is invertible, lane `s` has to copy the data of
//! lane `M⁻¹·(s + c)`. So a swizzle, which exchanges elements within rows, is possible although the hardware only
//! writes in order. Worked example: with eight lanes for a row and a swizzle that adds the number of the row to the
//! column, `M` is the identity where rows belong to warps, and `c` is the row; where rows belong to lanes too, the
//! bits of the row are in `M`.

use llopt_layout::f2::Matrix;

/// A linear function of the thread, the block and the number of the copy, plus a constant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Affine {
    /// What each bit of the thread's number adds, lanes first.
    pub threads: Vec<u32>,
    /// What each bit of the block's number adds.
    pub blocks: Vec<u32>,
    /// What each bit of the copy's number adds.
    pub repeats: Vec<u32>,
    /// What is always added.
    pub constant: u32,
}

impl Affine {
    fn map(&self, apply: impl Fn(u32) -> u32) -> Self {
        let all = |bases: &[u32]| bases.iter().map(|basis| apply(*basis)).collect();
        Self {
            threads: all(&self.threads),
            blocks: all(&self.blocks),
            repeats: all(&self.repeats),
            constant: apply(self.constant),
        }
    }

    /// What is added for a copy, independently of the thread.
    pub fn constant_of(&self, repeat: u32) -> u32 {
        let added = |(bit, _): &(usize, &u32)| repeat >> bit & 1 == 1;
        let bases = self.repeats.iter().enumerate().filter(added);
        bases.fold(self.constant, |all, (_, basis)| all ^ basis)
    }
}

/// Which lane's data each lane copies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneOrder {
    /// The lane whose data a lane has to copy.
    pub source: Affine,
    lane_bits: u32,
}

impl LaneOrder {
    /// The order for data that belong to these places, counted in units of what a lane copies, when warps have
    /// `2^lane_bits` lanes; `None` if the data of a warp do not fill such a window.
    ///
    /// Ensures: the data of lane [`LaneOrder::source`]`(s)` belong to slot `s`.
    pub fn of(places: &Affine, lane_bits: u32) -> Option<Self> {
        let window = (1u32 << lane_bits) - 1;
        let (lanes, warps) = places.threads.split_at_checked(lane_bits as usize)?;
        if lanes.iter().any(|basis| basis & !window != 0) {
            return None;
        }
        let inverse = Matrix::from_columns(lanes).inverse()?;
        let mut source = places.map(|basis| inverse.apply(basis & window));
        // The lane that asks has the number of its slot.
        source.threads = inverse.columns().to_vec();
        source
            .threads
            .extend(warps.iter().map(|basis| inverse.apply(basis & window)));
        Some(Self { source, lane_bits })
    }

    /// Whether each lane copies its own data.
    pub fn is_own(&self) -> bool {
        let Affine {
            threads,
            blocks,
            repeats,
            constant,
        } = &self.source;
        let in_order = |(bit, basis): (usize, &u32)| match bit < self.lane_bits as usize {
            true => *basis == 1 << bit,
            false => *basis == 0,
        };
        threads.iter().enumerate().all(in_order)
            && blocks.iter().chain(repeats).all(|basis| *basis == 0)
            && *constant == 0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn apply(of: &Affine, thread: u32, repeat: u32) -> u32 {
        let bases = of.threads.iter().enumerate();
        bases
            .filter(|(bit, _)| thread >> bit & 1 == 1)
            .fold(of.constant_of(repeat), |all, (_, basis)| all ^ basis)
    }

    #[test]
    fn a_swizzle_by_the_warp_turns_lanes_round() {
        // Eight lanes, four warps; each warp is a row, whose number is added to the column.
        let places = Affine {
            threads: vec![1, 2, 4, 8 | 1, 16 | 2],
            ..Affine::default()
        };
        let order = LaneOrder::of(&places, 3).expect("the lanes fill a window");
        assert!(!order.is_own());
        let of_warp_3: Vec<u32> = (0..8)
            .map(|lane| apply(&order.source, 24 | lane, 0))
            .collect();
        assert_eq!(of_warp_3, [3, 2, 1, 0, 7, 6, 5, 4]);
    }

    #[test]
    fn lanes_in_order_keep_their_own() {
        let places = Affine {
            threads: vec![1, 2, 4, 8, 16],
            repeats: vec![32],
            ..Affine::default()
        };
        assert!(LaneOrder::of(&places, 3).is_some_and(|order| order.is_own()));
    }

    #[test]
    fn lanes_with_gaps_or_copies_have_no_order() {
        for lanes in [[1, 2, 8], [1, 2, 0], [1, 2, 3]] {
            let places = Affine {
                threads: lanes.to_vec(),
                ..Affine::default()
            };
            assert_eq!(LaneOrder::of(&places, 3), None);
        }
    }

    proptest! {
        #[test]
        fn each_slot_gets_what_belongs_there(
            lanes in prop::collection::vec(1..16u32, 4),
            others in prop::collection::vec(0..256u32, 4),
            constant in 0..16u32,
        ) {
            let places = Affine {
                threads: [lanes, others[..2].to_vec()].concat(),
                blocks: Vec::new(),
                repeats: others[2..].to_vec(),
                constant,
            };
            if let Some(order) = LaneOrder::of(&places, 4) {
                for (thread, repeat) in (0..64).flat_map(|t| (0..4).map(move |r| (t, r))) {
                    let source = apply(&order.source, thread, repeat);
                    prop_assert!(source < 16);
                    let place = apply(&places, thread & !15 | source, repeat);
                    prop_assert_eq!(place & 15, thread & 15);
                }
            }
        }
    }
}
