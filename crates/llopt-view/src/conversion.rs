//! The conversion between two layouts: the planner's plans as JSON and as text.

use std::fmt::Write;

use llopt::explain::PlanJson;
use llopt_layout::LinearLayout;
use llopt_layout::plan::{Exchange, Movement, Plan, PlanError, Scope, SharedPlan, ShufflePlan};
use llopt_target::Target;
use serde::Serialize;

use crate::memory::access_line;
use crate::text;

/// All plans for a conversion, cheapest first.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversion {
    plans: Vec<Plan>,
}

/// Plans the conversion of a tensor from one distributed layout to another.
///
/// # Errors
/// When the layouts do not fit together, with dimension and basis vector; when an element's width is
/// no power of two from 8 to 128 bits; when the target has no way.
pub fn conversion(
    from: &LinearLayout,
    to: &LinearLayout,
    element_bits: u32,
    target: Target,
) -> Result<Conversion, PlanError> {
    let plans = llopt_layout::plan::plan(from, to, element_bits, &target.machine())?;
    Ok(Conversion { plans })
}

/// Plans as JSON: `{"plans":[{"kind":"shuffle",…},…]}`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConversionJson {
    /// The plans, cheapest first.
    pub plans: Vec<PlanJson>,
}

impl From<&Conversion> for ConversionJson {
    fn from(conversion: &Conversion) -> Self {
        Self {
            plans: conversion.plans.iter().map(PlanJson::from).collect(),
        }
    }
}

impl Conversion {
    /// The plans, cheapest first.
    #[must_use]
    pub fn plans(&self) -> &[Plan] {
        &self.plans
    }

    /// The plans for a person to read: the steps of each, and its cost.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (index, plan) in self.plans.iter().enumerate() {
            if index > 0 {
                text.push('\n');
            }
            let _ = writeln!(
                text,
                "{}. {}: cost {:.1}",
                index + 1,
                plan.kind(),
                plan.cost
            );
            describe(plan, &mut text);
        }
        text
    }
}

fn describe(plan: &Plan, text: &mut String) {
    match &plan.movement {
        Movement::Nothing => text.push_str("   every element is already in its place\n"),
        Movement::Registers { sources } => {
            let columns: Vec<String> = sources
                .columns()
                .iter()
                .enumerate()
                .map(|(bit, source)| format!("{} <- {source}", 1u64 << bit))
                .collect();
            let _ = writeln!(
                text,
                "   registers are renamed, nothing runs; bits of the register: {}",
                columns.join(", ")
            );
        }
        Movement::Shuffle(shuffle) => describe_shuffle(shuffle, plan, text),
        Movement::Shared(shared) => describe_shared(shared, text),
    }
    let counts = [
        (plan.counts.shuffles, "shuffle"),
        (plan.counts.swaps, "swap"),
        (plan.counts.selects, "select"),
        (plan.counts.permutes, "byte permute"),
        (plan.counts.barriers, "barrier"),
        (plan.counts.extra_registers, "extra register"),
    ];
    let counts: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}{}", if *count == 1 { "" } else { "s" }))
        .collect();
    if !counts.is_empty() {
        let _ = writeln!(text, "   in each warp: {}", counts.join(", "));
    }
}

fn describe_shuffle(shuffle: &ShufflePlan, plan: &Plan, text: &mut String) {
    if shuffle.slots_log2 > 0 {
        let _ = writeln!(
            text,
            "   {} elements travel in one word",
            1 << shuffle.slots_log2
        );
    }
    for swap in &shuffle.swaps {
        let _ = writeln!(
            text,
            "   words i without {} and i ^ {}: the lanes with bit {} of the one and those without it of the other change places",
            swap.side, swap.xor, swap.lane
        );
    }
    describe_exchanges("before", &shuffle.before, text);
    if plan.counts.shuffles > 0 {
        let rounds: Vec<String> = shuffle
            .steps
            .iter()
            .enumerate()
            .filter(|(_, step)| step.moves)
            .map(
                |(round, step)| match (shuffle.is_butterfly(), step.lane_xor) {
                    (true, xor) => format!("word {} from lane ^ {xor} to word {round}", step.word),
                    (false, 0) => format!("word {} to word {round}", step.word),
                    (false, xor) => format!("word {} ^ {xor} to word {round}", step.word),
                },
            )
            .collect();
        if !shuffle.is_butterfly() {
            let lanes: Vec<String> = shuffle
                .lanes
                .iter()
                .enumerate()
                .map(|(bit, lane)| format!("{} <- {lane}", 1u64 << bit))
                .collect();
            let _ = writeln!(
                text,
                "   lanes read, by bits of the lane: {}",
                lanes.join(", ")
            );
        }
        let _ = writeln!(text, "   shuffles: {}", shortened(&rounds));
    }
    describe_exchanges("after", &shuffle.after, text);
}

fn describe_exchanges(when: &str, exchanges: &[Exchange], text: &mut String) {
    for exchange in exchanges {
        let condition = exchange.condition;
        let parts = [
            ("lane", condition.lanes),
            ("warp", condition.warps),
            ("block", condition.blocks),
        ];
        let parts: Vec<String> = parts
            .iter()
            .filter(|(_, mask)| *mask != 0)
            .map(|(name, mask)| format!("{name} & {mask}"))
            .collect();
        let _ = writeln!(
            text,
            "   {when} the shuffles: words i and i ^ {} change places where {} has odd parity",
            exchange.xor,
            parts.join(" with ")
        );
    }
}

/// A list whose middle is omitted when it is long.
fn shortened(items: &[String]) -> String {
    const SHOWN: usize = 8;
    if items.len() <= SHOWN {
        return items.join(", ");
    }
    let left_out = items.len() - SHOWN + 1;
    let (head, last) = (&items[..SHOWN - 1], &items[items.len() - 1]);
    format!("{}, … {left_out} more … , {last}", head.join(", "))
}

pub(crate) fn describe_shared(shared: &SharedPlan, text: &mut String) {
    let scope = match shared.scope {
        Scope::Warp => "inside each warp",
        Scope::Block => "inside each block",
        Scope::Cluster => "across the blocks of a cluster",
    };
    let rounds = match 1u32 << shared.rounds.len() {
        1 => String::new(),
        rounds => format!(", in {rounds} rounds"),
    };
    let _ = writeln!(
        text,
        "   through {} bytes of shared memory {scope}{rounds}",
        shared.bytes
    );
    let _ = writeln!(text, "   store: {}", access_line(&shared.store));
    let _ = writeln!(text, "   load:  {}", access_line(&shared.load));
    text.push_str("   memory:\n");
    for line in text::bases(&shared.memory).lines() {
        let _ = writeln!(text, "     {line}");
    }
}

#[cfg(test)]
mod tests {
    use llopt_target::Target;

    use crate::{conversion, read};

    /// Registers, lanes and warps over 64 elements.
    fn layout(register: &str, lane: &str) -> llopt_layout::LinearLayout {
        let text = format!(
            r#"{{"in":[{{"name":"register","bases":{register}}},{{"name":"lane","bases":{lane}}}],
                "out":[{{"name":"dim0","size":64}}]}}"#
        );
        read(&text, None).unwrap()
    }

    #[test]
    fn plans_say_what_they_do() {
        let target = Target::parse("cuda:90").unwrap();
        let plain = layout("[[32]]", "[[1],[2],[4],[8],[16]]");
        let cases = [
            (
                "[[32]]",
                "[[1],[2],[4],[8],[16]]",
                "1. none: cost 0.0\n   every element is",
            ),
            ("[[16]]", "[[1],[2],[4],[8],[32]]", "1. shuffle: cost"),
            (
                "[[16]]",
                "[[1],[2],[4],[8],[32]]",
                "   in each warp: 1 shuffle, ",
            ),
            ("[[16]]", "[[1],[2],[4],[8],[32]]", "\n2. shared: cost"),
        ];
        for (register, lane, expected) in cases {
            let to = layout(register, lane);
            let text = conversion(&plain, &to, 32, target).unwrap().text();
            assert!(text.contains(expected), "{expected} is not in\n{text}");
        }
    }

    #[test]
    fn ends_must_fit_together() {
        let target = Target::parse("cuda:90").unwrap();
        let plain = layout("[[32]]", "[[1],[2],[4],[8],[16]]");
        let memory = read("64:1", None).unwrap();
        let error = conversion(&plain, &memory, 32, target).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the layout has no input dimension `offset`"
        );
    }
}
