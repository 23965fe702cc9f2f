//! Plans as text, for people.

use core::fmt;

use super::{Condition, Exchange, Movement, Plan, Scope, SharedAccess, SharedPlan, ShufflePlan};
use crate::f2::Matrix;

impl fmt::Display for Plan {
    /// The kind and the counts on the first line, then the steps.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (cost {:.1}", self.kind(), self.cost)?;
        let counts = &self.counts;
        for (count, what) in [
            (counts.shuffles, "shuffle"),
            (counts.swaps, "swap"),
            (counts.selects, "select"),
            (counts.permutes, "byte permute"),
            (counts.shared_stores, "store"),
            (counts.shared_loads, "load"),
            (
                counts.store_wavefronts + counts.load_wavefronts,
                "wavefront",
            ),
            (counts.barriers, "barrier"),
            (counts.shared_bytes, "byte"),
        ] {
            if count > 0 {
                write!(f, ", {count} {what}{}", if count == 1 { "" } else { "s" })?;
            }
        }
        write!(f, ")")?;
        match &self.movement {
            Movement::Nothing => Ok(()),
            Movement::Registers { sources } => {
                write!(f, "\n  register ")?;
                linear(f, sources)
            }
            Movement::Shuffle(plan) => shuffle(f, plan),
            Movement::Shared(plan) => shared(f, plan),
        }
    }
}

/// `1 from 4, 2 from 1`: the images of the bits of an index.
fn linear(f: &mut fmt::Formatter<'_>, map: &Matrix) -> fmt::Result {
    for (bit, column) in map.columns().iter().enumerate() {
        let comma = if bit == 0 { "" } else { ", " };
        write!(f, "{comma}{} from {column}", 1u64 << bit)?;
    }
    Ok(())
}

impl fmt::Display for Condition {
    /// `parity of lane & 16, warp & 1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "parity of")?;
        let parts = [
            ("lane", self.lanes),
            ("warp", self.warps),
            ("block", self.blocks),
        ];
        for (i, (name, mask)) in parts.into_iter().filter(|p| p.1 != 0).enumerate() {
            write!(f, "{} {name} & {mask}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl fmt::Display for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "where {} is odd, words i and i ^ {} trade places",
            self.condition, self.xor
        )
    }
}

fn shuffle(f: &mut fmt::Formatter<'_>, plan: &ShufflePlan) -> fmt::Result {
    if plan.slots_log2 > 0 {
        write!(
            f,
            "\n  pack {} elements into each word",
            1 << plan.slots_log2
        )?;
    }
    for swap in &plan.swaps {
        write!(
            f,
            "\n  words i without {} and i ^ {} change lanes: with bit {} of the one, without it of the other",
            swap.side, swap.xor, swap.lane
        )?;
    }
    for exchange in &plan.before {
        write!(f, "\n  {exchange}")?;
    }
    if !plan.is_butterfly() {
        write!(f, "\n  lane bits read from lanes {:?}", &*plan.lanes)?;
        if plan.warps.iter().chain(&plan.blocks).any(|&lane| lane != 0) {
            write!(
                f,
                ", warp bits add {:?}, block bits {:?}",
                &*plan.warps, &*plan.blocks
            )?;
        }
    }
    for (round, step) in plan.steps.iter().enumerate() {
        write!(f, "\n  word {round}: word {}", step.word)?;
        match (step.moves, plan.is_butterfly()) {
            (false, _) => write!(f, " of the own lane")?,
            (true, true) => write!(f, " of lane ^ {}", step.lane_xor)?,
            (true, false) => write!(f, " of the lane read, ^ {}", step.lane_xor)?,
        }
        if step.slot_xor != 0 {
            write!(f, ", slots ^ {}", step.slot_xor)?;
        }
    }
    for exchange in &plan.after {
        write!(f, "\n  {exchange}")?;
    }
    Ok(())
}

fn shared(f: &mut fmt::Formatter<'_>, plan: &SharedPlan) -> fmt::Result {
    if !plan.rounds.is_empty() {
        write!(f, "\n  {} rounds", 1u64 << plan.rounds.len())?;
    }
    access(f, &plan.store)?;
    let scope = match plan.scope {
        Scope::Warp => "warp",
        Scope::Block => "block",
        Scope::Cluster => "cluster",
    };
    write!(f, "\n  barrier of the {scope}")?;
    access(f, &plan.load)
}

fn access(f: &mut fmt::Formatter<'_>, access: &SharedAccess) -> fmt::Result {
    write!(
        f,
        "\n  {} x {} of {} bits per lane, {} wavefronts (bound {})",
        access.instructions,
        access.instruction.name,
        access.instruction.element_bits << access.instruction.registers_log2(),
        access.wavefronts,
        access.bound
    )
}
