//! What a loop's schedule would be with another number of stages or of warps.
//!
//! Nothing is extrapolated: the kernel is compiled again for each change, and the loop is scheduled, its code emitted and
//! its time predicted as in the kernel itself. A tile's extents are constants of the program, so they are not changed.

use llopt_dialects::tables::make;
use llopt_mlir::ir::{AttributeExt, OperationExt, Walk};
use llopt_transforms::loops::unroll::STAGES;
use melior::Context;
use melior::ir::Module;

use super::prediction::Alternative;
use crate::accounts::loop_schedules::LoopSchedule;

/// A change of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// So many stages more or less.
    Stages(i32),
    /// Twice as many warps.
    MoreWarps,
    /// Half as many warps.
    FewerWarps,
}

impl Change {
    /// All of them.
    pub(super) const ALL: [Self; 4] = [
        Self::Stages(-1),
        Self::Stages(1),
        Self::FewerWarps,
        Self::MoreWarps,
    ];

    /// The number of warps in place of another one; `None` if there is none.
    pub(super) fn warps(self, now: u32) -> Option<u32> {
        match self {
            Self::Stages(_) => Some(now),
            Self::MoreWarps => now.checked_mul(2).filter(|&warps| warps <= 32),
            Self::FewerWarps => (now > 1).then_some(now / 2),
        }
    }

    /// The number of stages in place of another one.
    pub(super) fn stages(self, now: u32) -> u32 {
        match self {
            Self::Stages(more) => now.saturating_add_signed(more).max(1),
            Self::MoreWarps | Self::FewerWarps => now,
        }
    }

    /// Changes the loops that have a number of stages of their own.
    pub(super) fn apply<'c>(self, context: &'c Context, module: &Module<'c>) {
        if !matches!(self, Self::Stages(_)) {
            return;
        }
        module.as_operation().for_each_op(Walk::PreOrder, |op| {
            let own = op.attr(STAGES).and_then(AttributeExt::as_i64);
            if let Some(own) = own.and_then(|own| u32::try_from(own).ok()) {
                let number = i64::from(self.stages(own));
                op.set_attr(STAGES, make::integer(context, 32, number));
            }
        });
    }
}

/// Adds to each loop of a kernel what it would be in a changed one, which has so many warps, and so many bytes of shared
/// memory.
pub(super) fn add(
    to: &mut [LoopSchedule],
    changed: &[LoopSchedule],
    num_warps: u32,
    shared_bytes: u32,
) {
    if to.len() != changed.len() {
        return;
    }
    let asked = |of: &LoopSchedule| of.pipeline.as_ref().map(|of| of.wanted);
    for (of, other) in to.iter_mut().zip(changed) {
        if of.location != other.location || of.pipeline.is_none() && other.pipeline.is_none() {
            continue;
        }
        let pipeline = other.pipeline.as_ref();
        let predicted = other.predicted.as_ref();
        of.alternatives.push(Alternative {
            num_warps,
            wanted: asked(other).unwrap_or(1),
            stages: pipeline.map(|of| of.stages),
            interval: pipeline.map(|of| of.interval),
            bytes: pipeline.map(|of| of.bytes),
            shared_bytes,
            blocks: predicted.map(|of| of.blocks),
            cycles: predicted.map(|of| of.cycles),
            reason: other.reason.clone(),
        });
    }
}
