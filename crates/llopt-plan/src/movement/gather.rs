//! How a gather reaches its elements, decided by the two layouts and the target's prices.
//!
//! # Where the wanted element is
//!
//! Let `A` be the layout of the source and `B` that of the indices and the result. The element wanted for the
//! result's place `p` with index `a` is number `rest(B(p)) + a * stride` of the source, where `rest` maps the
//! result's coordinates outside of the axis to a number of the source. Both parts are linear over F2, so with a right
//! inverse of `A` restricted to the registers and lanes of one warp the register and the lane that hold the element
//! are a *linear function of the place and the index*. The inverse exists if each warp holds the whole axis for what
//! it wants; then
//!
//! * if the lane is always the reader's own, the element is selected among the thread's registers;
//! * otherwise it comes by a shuffle, and if its register depends on what only the reader knows (its lane, its
//!   index), there is one shuffle for each candidate register, and selects among the results.
//!
//! Elements narrower than 32 bits: candidate registers travel in one word, and the reader shifts the one that it
//! wants to the low bits.
//!
//! Rejected: to let the sender choose the register. It does not know what its reader wants.
//!
//! # Through shared memory
//!
//! The source is stored with the bits of its numbers in an order that the plan chooses; the result takes one address
//! and one load per element. Three orders compete: row by row, which makes stores wide; one that puts lowest the bits
//! outside of the axis in which the reading lanes differ, so that lanes which must read different elements read
//! different banks, whatever their indices are; and one that puts lowest the bits in which the storing lanes differ,
//! so that they store to different banks. A source larger than shared memory is gathered in rounds. It is split along
//! bits that only registers decide on both sides, then along the axis; there, too, the bits that the storing thread's
//! registers decide come before those that need a condition on the thread. The rounds along the axis follow each
//! other directly, so that few elements, indices and results are alive at once.
//!
//! Where the inverse above exists and no two warps hold the same element, each warp reads only what it has written
//! itself. Then the lanes of a warp synchronise and the block does not.
//!
//! All prices are those of conversions ([`llopt_layout::plan::Costs`]).

mod frame;
mod shared;
mod warp;

use llopt_layout::plan::Scope;
use llopt_target::Target;
use melior::ir::OperationRef;

pub use frame::Frame;
pub use shared::{CrossesBlocks, SharedGather};
use warp::Preferred;
pub use warp::{Holder, WarpGather};

use crate::conversion::repeating_warps;
use crate::priced::Priced;
use crate::request::{GatherRequest, gather_request};
use crate::tensor::TensorType;

/// A plan of a gather.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GatherPlan {
    /// Inside each warp.
    Warp(WarpGather),
    /// Through shared memory.
    Shared(SharedGather),
}

/// The plan that is followed, and those that were not.
#[derive(Clone, Debug, PartialEq)]
pub struct ChosenGather {
    /// The plan.
    pub plan: GatherPlan,
    /// Its price.
    pub cost: f32,
    /// The other plans, cheapest first.
    pub rejected: Vec<Priced>,
}

impl GatherPlan {
    /// The plan by which `op` gathers from `from` along dimension `axis` by indices in the layout of `to`: the
    /// cheapest, or that of the forced kind.
    ///
    /// # Errors
    /// There is no plan, or none of the forced kind; the text says which.
    pub fn of(
        op: OperationRef<'_, '_>,
        from: &TensorType,
        to: &TensorType,
        axis: usize,
        target: Target,
    ) -> Result<ChosenGather, String> {
        let mut plans = Self::priced(from, to, axis, target).map_err(|error| error.to_string())?;
        let wanted = gather_request(op)?;
        let is_wanted =
            |(plan, _): &(Self, f32)| wanted.is_none_or(|kind| plan.kind() == kind.name());
        let Some(place) = plans.iter().position(is_wanted) else {
            let possible: Vec<&str> = plans.iter().map(|(plan, _)| plan.kind()).collect();
            let wanted = wanted.map_or("", GatherRequest::name);
            return Err(format!(
                "the plan '{wanted}' is not possible here; possible: {}",
                possible.join(", ")
            ));
        };
        let (plan, cost) = plans.remove(place);
        Ok(ChosenGather {
            plan,
            cost,
            rejected: plans
                .iter()
                .map(|&(ref plan, cost)| Priced {
                    way: plan.kind(),
                    cost,
                })
                .collect(),
        })
    }

    /// The plans with their prices, cheapest first: at most one inside warps and one through shared memory.
    pub fn priced(
        from: &TensorType,
        to: &TensorType,
        axis: usize,
        target: Target,
    ) -> Result<Vec<(Self, f32)>, CrossesBlocks> {
        let frame = Frame::new(from, to, axis);
        let warp = [Preferred::Registers, Preferred::Lanes]
            .into_iter()
            .filter_map(|preferred| WarpGather::new(&frame, preferred))
            .flat_map(|plan| [plan.packing(&frame), plan])
            .map(|plan| (plan.cost(&frame, target), plan))
            .min_by(|a, b| a.0.total_cmp(&b.0));
        let scope = if warp.is_some() && repeating_warps(from).is_empty() {
            Scope::Warp
        } else {
            Scope::Block
        };
        let mut plans: Vec<(Self, f32)> = Vec::new();
        plans.extend(warp.map(|(cost, plan)| (Self::Warp(plan), cost)));
        match SharedGather::new(&frame, target, scope) {
            Ok((shared, cost)) => plans.push((Self::Shared(shared), cost)),
            Err(crosses) if plans.is_empty() => return Err(crosses),
            Err(_) => {}
        }
        // The sort is stable: at equal prices the plan inside warps comes first.
        plans.sort_by(|a, b| a.1.total_cmp(&b.1));
        Ok(plans)
    }

    /// Its name: `thread`, `shuffle` or `shared`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Warp(plan) if plan.is_local => "thread",
            Self::Warp(_) => "shuffle",
            Self::Shared(_) => "shared",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::fixtures::tensor;

    fn sum(bases: &[u32], number: u32) -> u32 {
        (0..bases.len())
            .filter(|bit| number >> bit & 1 == 1)
            .fold(0, |all, bit| all ^ bases[bit])
    }

    /// Every place of the result and every index: the holder is in the reader's warp and has the element.
    fn check(from: &TensorType, to: &TensorType, axis: usize, preferred: Preferred) -> WarpGather {
        let frame = Frame::new(from, to, axis);
        let plan = WarpGather::new(&frame, preferred).unwrap();
        let (lane_bits, warp_bits) = to.thread_bits();
        let (low, bits) = frame.axis();
        let follow = |holders: &[Holder], number: u32| {
            (0..holders.len())
                .filter(|bit| number >> bit & 1 == 1)
                .fold(Holder::default(), |all, bit| all ^ holders[bit])
        };
        for thread in 0..1u32 << (lane_bits + warp_bits) {
            for register in 0..to.registers() {
                for index in 0..1u32 << bits {
                    let holder = plan.registers[register]
                        ^ follow(&plan.threads, thread)
                        ^ follow(&plan.axis, index);
                    let element = to.element_in(register) ^ sum(&to.thread_bases(), thread);
                    let holding = holder.lane | thread >> lane_bits << lane_bits;
                    assert_eq!(
                        from.element_in(holder.register as usize)
                            ^ sum(&from.thread_bases(), holding),
                        frame.embed(element) | index << low,
                    );
                }
            }
        }
        plan
    }

    #[test]
    fn holders_have_what_readers_want() {
        // 8 x 8: rows of the warp's lanes and registers; the result has four columns.
        let from = tensor(&[8, 8], &[1, 16], &[2, 4, 8], &[32]);
        let to = tensor(&[8, 4], &[8], &[1, 2, 4], &[16]);
        for preferred in [Preferred::Registers, Preferred::Lanes] {
            let plan = check(&from, &to, 1, preferred);
            assert!(!plan.is_local);
        }
        // Vectors that mix both dimensions, and a repeated lane.
        let from = tensor(&[4, 4], &[5, 2], &[1, 8, 0], &[]);
        let to = tensor(&[4, 4], &[4], &[8, 3, 0], &[]);
        for axis in 0..2 {
            check(&from, &to, axis, Preferred::Registers);
            check(&from, &to, axis, Preferred::Lanes);
        }
    }

    #[test]
    fn a_thread_that_holds_its_row_asks_nobody() {
        let rows = tensor(&[8, 4], &[1, 2], &[4, 8, 0], &[16]);
        let plan = check(&rows, &rows, 1, Preferred::Registers);
        assert!(plan.is_local);
        assert_eq!(plan.choices.len(), 2);
    }

    #[test]
    fn an_axis_across_warps_is_not_in_the_warp() {
        let columns = tensor(&[8], &[], &[1, 2], &[4]);
        let frame = Frame::new(&columns, &columns, 0);
        assert!(WarpGather::new(&frame, Preferred::Registers).is_none());
    }

    #[test]
    fn large_sources_go_in_rounds_along_registers_first() {
        // 512 x 128 floats, 64 lanes along the row: 256 KiB, where shared memory has 64.
        let registers: Vec<u32> = (6..14).map(|bit| 1 << bit).collect();
        let lanes: Vec<u32> = (0..6).map(|bit| 1 << bit).collect();
        let large = tensor(&[512, 128], &registers, &lanes, &[1 << 14, 1 << 15]);
        let target = Target::parse("hip:gfx942").unwrap();
        let plans = GatherPlan::priced(&large, &large, 0, target).unwrap();
        let (GatherPlan::Shared(plan), _) = &plans[0] else {
            panic!("through shared memory");
        };
        assert_eq!(plan.rounds, [13, 6]);
        assert_eq!(plan.bytes, 1 << 16);
    }
}
