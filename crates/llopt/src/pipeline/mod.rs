//! The pipeline as data: one table of the steps that a module goes through before code generation.
//!
//! A `Step` is a pass (llopt's or MLIR's) or a function of this crate that reads the options. It belongs to a
//! `Stage` and to a phase, which is the unit of [`Timings`], and it may be conditional on features of the target. A
//! kernel without layouts (`.ttir`) goes through all stages, a kernel with layouts (`.ttgir`) skips the steps of
//! `Stage::Tiles`.
//!
//! The preconditions and the postconditions of a step are `Property`s. A step may run if every property that it
//! requires holds; afterwards those that it ensures hold, and those that it ends no longer hold. A test replays the
//! table for every target and both kinds of input, so a step in the wrong place is found without a kernel that would
//! show it.
//!
//! The table alone defines the order: compilation runs it, `llopt compile --print-pipeline` prints it, and
//! `docs/pipeline.md` is made from it.

mod configured;
mod property;
mod step;
mod table;
mod text;

use std::rc::Rc;

use llopt_plan::plans::Plans;
use melior::Context;
use melior::ir::Module;
use property::Property;
pub(crate) use step::Stage;
use step::{Step, Work};
use table::steps;
pub use text::{page, text};

use crate::{Error, Options, Timings, module};

/// Runs a stage. Passes of one phase that follow one another run in one pass manager; all of them share the plans of
/// ops.
///
/// # Errors
/// Those of the steps; a pass that fails reports invalid input.
pub(crate) fn run<'c>(
    stage: Stage,
    context: &'c Context,
    module: &Module<'c>,
    options: &Options,
    plans: &Rc<Plans>,
    time: &mut Timings,
) -> Result<(), Error> {
    let steps: Vec<&Step> = steps(stage, options).collect();
    run_steps(&steps, context, module, options, plans, time)
}

/// Runs a stage as far as loops and conditions remain ops of `scf`.
///
/// # Errors
/// Those of the steps.
pub(crate) fn run_structured<'c>(
    stage: Stage,
    context: &'c Context,
    module: &Module<'c>,
    options: &Options,
    plans: &Rc<Plans>,
    time: &mut Timings,
) -> Result<(), Error> {
    let keeps = |step: &&Step| !step.ends.contains(&Property::Structured);
    let steps: Vec<&Step> = steps(stage, options).take_while(keeps).collect();
    run_steps(&steps, context, module, options, plans, time)
}

fn run_steps<'c>(
    steps: &[&'static Step],
    context: &'c Context,
    module: &Module<'c>,
    options: &Options,
    plans: &Rc<Plans>,
    time: &mut Timings,
) -> Result<(), Error> {
    for phase in steps.chunk_by(|one, next| one.phase == next.phase) {
        time.phase(phase[0].phase, || {
            let calls = |step: &Step| matches!(step.work, Work::Call(..));
            for group in phase.chunk_by(|one, next| !calls(one) && !calls(next)) {
                if let Work::Call(.., function) = group[0].work {
                    function(context, module, options)?;
                } else {
                    let passes = group.iter().map(|step| step.in_pipeline(options));
                    let passes: Vec<String> = passes.collect();
                    module::run_passes(context, module, &passes.join(","), plans)?;
                }
            }
            Ok::<(), Error>(())
        })?;
    }
    Ok(())
}

/// Replays the requirements of the steps; returns the first that is not met.
#[cfg(test)]
fn replay<'a>(
    given: &[Property],
    steps: impl Iterator<Item = &'a Step>,
) -> Result<Vec<Property>, String> {
    let mut held = given.to_vec();
    for step in steps {
        if let Some(missing) = step.requires.iter().find(|needed| !held.contains(needed)) {
            return Err(format!("{} requires: {}", step.name(), missing.name()));
        }
        held.extend(step.ensures);
        held.retain(|property| !step.ends.contains(property));
    }
    Ok(held)
}

#[cfg(test)]
mod tests {
    use llopt_target::Target;

    use super::property::REQUIRED_BY_CODE_GENERATION;
    use super::table::STEPS;
    use super::*;

    /// All targets, each with and without clusters.
    fn all_options() -> Vec<Options> {
        let targets = Target::all();
        let options = targets.flat_map(|target| {
            [1, 2].map(|num_ctas| {
                let mut options = Options::new(target);
                options.num_ctas = Some(num_ctas);
                options
            })
        });
        options.collect()
    }

    #[test]
    fn every_step_finds_what_it_requires_for_every_target_and_input() {
        let all = all_options();
        assert!(all.len() > 20);
        for options in all {
            let memory = || steps(Stage::Layouts, &options).chain(steps(Stage::Memory, &options));
            let with_layouts = replay(&[Property::Structured, Property::Layouts], memory());
            let without = replay(
                &[Property::Structured],
                steps(Stage::Tiles, &options).chain(memory()),
            );
            for held in [with_layouts, without] {
                let held = held.unwrap_or_else(|error| panic!("{}: {error}", options.target));
                for needed in REQUIRED_BY_CODE_GENERATION {
                    assert!(held.contains(needed), "{}", needed.name());
                }
            }
        }
    }

    #[test]
    fn a_step_in_the_wrong_place_is_found() {
        let barriers = STEPS.iter().filter(|step| step.name() == "insert-barriers");
        let given = [Property::Structured, Property::NamesTarget];
        let error = replay(&given, barriers).expect_err("no shared memory is placed yet");
        assert_eq!(error, "insert-barriers requires: shared memory placed");
    }

    #[test]
    fn stages_follow_one_another_and_each_property_is_used() {
        assert!(STEPS.is_sorted_by_key(|step| step.stage as u8));
        for property in Property::ALL {
            let required = STEPS.iter().flat_map(|step| step.requires);
            let ended = STEPS.iter().flat_map(|step| step.ends);
            let mut all = required.chain(ended).chain(REQUIRED_BY_CODE_GENERATION);
            assert!(all.any(|of| *of == property), "{}", property.name());
        }
    }

    #[test]
    fn copies_of_blocks_are_for_targets_with_the_unit_and_clusters_divide_them() {
        let [copies, divides] = [
            "triton-nvidia-tma-lowering",
            "triton-nvidia-optimize-descriptor-encoding",
        ];
        let mut options = Options::new(Target::parse("cuda:90").expect("it is a target"));
        assert!(text(&options).contains(copies) && !text(&options).contains(divides));
        options.num_ctas = Some(2);
        assert!(text(&options).contains(copies) && text(&options).contains(divides));
        options = Options::new(Target::parse("cuda:80").expect("it is a target"));
        options.num_ctas = Some(2);
        assert!(!text(&options).contains(copies) && !text(&options).contains(divides));
    }
}
