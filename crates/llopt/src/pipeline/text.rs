//! The pipeline as text: for one target on the command line, and for all as a page of the documentation.

use std::fmt::Write;

use super::property::{Property, REQUIRED_BY_CODE_GENERATION};
use super::step::{Stage, Step, Work};
use super::table::{STEPS, steps};
use crate::Options;

/// The pipeline that a kernel goes through under these options, as text for a reader.
///
/// ```
/// # use llopt::{Options, Target, pipeline};
/// let text = pipeline::text(&Options::new(Target::parse("hip:gfx942")?));
/// assert!(text.contains("    allocate-shared-memory"));
/// assert!(!text.contains("triton-nvidia-tma-lowering"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn text(options: &Options) -> String {
    let mut text = format!("pipeline for {}\n", options.target);
    let list = |of: &[Property]| of.iter().map(|p| p.name()).collect::<Vec<_>>().join(", ");
    for (stage, title) in [
        (Stage::Tiles, "a kernel without layouts (.ttir) begins here"),
        (Stage::Layouts, "a kernel with layouts (.ttgir) begins here"),
        (Stage::Memory, "towards code generation"),
    ] {
        let _ = writeln!(text, "\n{title}");
        let steps: Vec<&Step> = steps(stage, options).collect();
        for phase in steps.chunk_by(|one, next| one.phase == next.phase) {
            let _ = writeln!(text, "  {}", phase[0].phase);
            for step in phase {
                let _ = writeln!(text, "    {:<44} {}", step.name(), step.purpose());
                for (word, properties) in [
                    ("requires", step.requires),
                    ("ensures", step.ensures),
                    ("ends", step.ends),
                ] {
                    if !properties.is_empty() {
                        let _ = writeln!(text, "      {word}: {}", list(properties));
                    }
                }
            }
        }
    }
    let needs = list(REQUIRED_BY_CODE_GENERATION);
    let _ = writeln!(text, "\ncode generation\n      requires: {needs}");
    text
}

/// The page `docs/pipeline.md`: all steps, for all targets.
pub fn page() -> String {
    let mut page = "\
<!-- Made by `cargo xtask docs` from crates/llopt/src/pipeline/table.rs; edits here are lost. -->

# Pipeline

What a kernel goes through before code generation. `llopt compile --print-pipeline` prints the part of it
that applies to one target. Each line is a pass, which `llopt FILE --NAME` runs alone, or a function of the
library, set in italics, which reads the options of the compilation.

A step may run when all properties that it *requires* hold. Afterwards those that it *ensures* hold as well,
and those that it *ends* no longer do. A test replays the table for every target and both kinds of input.
"
    .to_owned();
    for (stage, title) in [
        (Stage::Tiles, "Kernels without layouts (`.ttir`)"),
        (Stage::Layouts, "Kernels with layouts (`.ttgir`) begin here"),
        (Stage::Memory, "Towards code generation"),
    ] {
        let _ = write!(
            page,
            "\n## {title}\n\n| phase | step | what for | only with | requires | ensures | ends |\n\
             |---|---|---|---|---|---|---|\n"
        );
        for step in STEPS.iter().filter(|step| step.stage == stage) {
            let name = match step.work {
                Work::Call(..) | Work::PassWith(..) => format!("*{}*", step.name()),
                Work::Pass(_) | Work::Upstream(..) => format!("`{}`", step.name()),
            };
            let list = |of: &[Property]| of.iter().map(|p| p.name()).collect::<Vec<_>>().join(", ");
            let when: Vec<String> = step.when.iter().map(|when| when.text()).collect();
            let _ = writeln!(
                page,
                "| {} | {name} | {} | {} | {} | {} | {} |",
                step.phase,
                step.purpose(),
                when.join(", "),
                list(step.requires),
                list(step.ensures),
                list(step.ends),
            );
        }
    }
    let needs: Vec<_> = REQUIRED_BY_CODE_GENERATION
        .iter()
        .map(|p| p.name())
        .collect();
    let _ = write!(
        page,
        "\nCode generation requires: {}.\n\n## Properties\n\nEvery kernel is structured at first; one with \
         layouts has them.\n\n| property | meaning |\n|---|---|\n",
        needs.join(", ")
    );
    for property in Property::ALL {
        let _ = writeln!(page, "| {} | {} |", property.name(), property.meaning());
    }
    page
}
