//! The table of all steps.
//!
//! A line reads: in this phase, this pass (or a function that reads the options in its place), under these
//! conditions, with what it requires and ensures. Comments say why a step stands where it does, where that is no
//! property.

use llopt_target::Feature;
use llopt_transforms::allocation::{self, global_scratch};
use llopt_transforms::{
    accumulators, barrier, block_pointers, buffer_ops, chosen_offsets, compact_iterations,
    decided_conditions, dependent_launch, descriptor_blocks, descriptor_objects,
    descriptor_to_copy, descriptor_to_pointer, distinct_loads, early_asserts, early_loads, f32_dot,
    idle_iterations, invariant_conditions, invariant_loads, joined_reductions, late_loads,
    late_operands, layouts, legalize, longest_first, loops, narrow_arithmetic, narrow_sums,
    ownership, persistent, pipelining, positive_bounds, products, row_iterations, scaled_dot,
    split_k, staged_conversions, tensor_copies, tile_parts, unswitch, warp_groups, whole_tiles,
    wide_iterations, widened_products,
};

use super::configured;
use super::property::Property as P;
use super::step::{Condition, Phase, Stage, Step, Work};
use crate::{Options, module};

const SIMPLIFY: Phase = Phase::new(Stage::Tiles, "simplify");
const LAYOUTS: Phase = Phase::new(Stage::Tiles, "layouts");
const PIPELINING: Phase = Phase::new(Stage::Tiles, "pipelining");
const BUFFERS: Phase = Phase::new(Stage::Tiles, "buffers");
const TURNS: Phase = Phase::new(Stage::Tiles, "turns");
const UNROLLING: Phase = Phase::new(Stage::Tiles, "unrolling");
const CHECK: Phase = Phase::new(Stage::Layouts, "check");
const SHARED_MEMORY: Phase = Phase::new(Stage::Memory, "shared memory");
const CONTROL_FLOW: Phase = Phase::new(Stage::Memory, "control flow");

const CANONICALIZE: Work = Work::Upstream("canonicalize", "fold constants and simplify each op");
const CSE: Work = Work::Upstream("cse", "compute each value once");

/// When loads of tiles become tensor copies.
const COPIES: &[Condition] = &[
    Condition::Has(Feature::BulkTensorCopy),
    Condition::TensorCopies,
];

fn target(options: &Options) -> String {
    format!("target={}", options.target)
}

fn blocks(options: &Options) -> String {
    format!("num-ctas={}", options.num_ctas.unwrap_or(1))
}

/// All steps, in the order in which they run.
pub(super) const STEPS: &[Step] = &[
    SIMPLIFY
        .upstream(
            "inline",
            "put the bodies of functions in place of their calls",
        )
        .ensures(&[P::Inlined]),
    SIMPLIFY.step(CANONICALIZE),
    SIMPLIFY
        .pass(&loops::CARRY_NUMBERS)
        .requires(&[P::Structured]),
    // What is computed of two numbers that are one now is the same.
    SIMPLIFY
        .pass(&loops::MERGE_INDUCTIONS)
        .requires(&[P::Structured]),
    SIMPLIFY.step(CSE),
    SIMPLIFY
        .upstream("symbol-dce", "drop functions that are no longer called")
        .requires(&[P::Inlined]),
    SIMPLIFY
        .pass(&block_pointers::REWRITE)
        .requires(&[P::Structured, P::Inlined]),
    // Boundaries of block pointers are masks now.
    SIMPLIFY
        .pass(&decided_conditions::REWRITE)
        .requires(&[P::Structured, P::Inlined]),
    // Conditionals around a loop use what it carries.
    SIMPLIFY
        .pass(&positive_bounds::REWRITE)
        .requires(&[P::Structured, P::Inlined]),
    SIMPLIFY
        .pass(&invariant_conditions::REWRITE)
        .requires(&[P::Structured, P::Inlined]),
    SIMPLIFY
        .pass(&idle_iterations::REWRITE)
        .requires(&[P::Structured, P::Inlined]),
    SIMPLIFY
        .pass(&invariant_loads::REWRITE)
        .requires(&[P::Structured, P::Inlined]),
    SIMPLIFY
        .pass(&chosen_offsets::REWRITE)
        .requires(&[P::Structured, P::Inlined]),
    // What loads take is computed of what is left of it.
    SIMPLIFY
        .pass(&distinct_loads::REWRITE)
        .requires(&[P::Structured, P::Inlined]),
    // Before sums are moved out of loops: an order that is narrow leaves less of them there.
    SIMPLIFY.pass(&narrow_sums::REWRITE).requires(&[P::Inlined]),
    // Blocks of descriptors are still what the program loads.
    SIMPLIFY
        .call(&wide_iterations::REWRITE, configured::widen_iterations)
        .when(&[Condition::OneBlock])
        .requires(&[P::Structured, P::Inlined]),
    // Parts of blocks that descriptors move: objects and addresses follow from their types.
    SIMPLIFY
        .call(&tile_parts::REWRITE, configured::divide_tiles)
        .when(&[Condition::TileParts])
        .requires(&[P::Structured, P::Inlined]),
    SIMPLIFY
        .pass(&unswitch::REWRITE)
        .when(&[Condition::TileParts])
        .requires(&[P::Structured, P::Inlined]),
    SIMPLIFY
        .call(&split_k::SPLIT, configured::share_loops)
        .when(&[Condition::SharedLoops])
        .requires(&[P::Structured, P::Inlined]),
    // The box of a descriptor object depends on the part of each block.
    SIMPLIFY
        .pass_with(&descriptor_blocks::SHARE, blocks)
        .when(&[Condition::Has(Feature::BulkTensorCopy), Condition::Clusters])
        .requires(&[P::Inlined]),
    SIMPLIFY
        .pass(&descriptor_objects::REWRITE)
        .when(&[Condition::Has(Feature::BulkTensorCopy)])
        .requires(&[P::Inlined]),
    SIMPLIFY
        .call(
            &descriptor_to_pointer::REWRITE,
            configured::access_through_pointers,
        )
        .requires(&[P::Inlined])
        .ensures(&[P::PointersForMadeDescriptors]),
    SIMPLIFY.step(CSE),
    // Blocks share iterations by their numbers.
    SIMPLIFY
        .pass(&compact_iterations::REWRITE)
        .requires(&[P::Structured, P::Inlined]),
    // A block's part of a loop begins at an iteration that the launch determines; the tiles of copies follow.
    SIMPLIFY
        .call(
            &tensor_copies::REWRITE,
            configured::load_through_descriptors,
        )
        .when(COPIES)
        .requires(&[P::Structured, P::Inlined]),
    SIMPLIFY
        .pass(&unswitch::REWRITE)
        .when(COPIES)
        .requires(&[P::Structured, P::Inlined]),
    SIMPLIFY
        .call(&persistent::REWRITE, configured::loop_over_programs)
        .when(&[
            Condition::Has(Feature::BulkTensorCopy),
            Condition::Has(Feature::TransactionBarrier),
            Condition::Persistent,
        ])
        .requires(&[P::Structured, P::Inlined]),
    // The blocks of a cluster are numbered together.
    SIMPLIFY
        .pass(&longest_first::REWRITE)
        .when(&[Condition::OneBlock])
        .requires(&[P::Structured, P::Inlined]),
    // The descriptors that copies of tiles need.
    SIMPLIFY
        .pass_with(&descriptor_blocks::SHARE, blocks)
        .when(&[
            Condition::Has(Feature::BulkTensorCopy),
            Condition::TensorCopies,
            Condition::Clusters,
        ])
        .requires(&[P::Inlined]),
    SIMPLIFY
        .pass(&descriptor_objects::REWRITE)
        .when(COPIES)
        .requires(&[P::Inlined]),
    SIMPLIFY
        .call(
            &descriptor_to_pointer::REWRITE,
            configured::access_through_pointers,
        )
        .when(COPIES)
        .requires(&[P::Inlined]),
    SIMPLIFY.step(CSE).when(COPIES),
    SIMPLIFY.pass(&loops::FLATTEN).requires(&[P::Structured]),
    SIMPLIFY.pass(&loops::UNROLL).requires(&[P::Structured]),
    SIMPLIFY.pass_with(&f32_dot::REWRITE, |options| {
        format!("emu-tf32={}", options.target.has(Feature::WarpMma))
    }),
    SIMPLIFY.pass_with(&widened_products::REWRITE, target),
    SIMPLIFY.pass_with(&narrow_arithmetic::REWRITE, target),
    SIMPLIFY
        .pass(&descriptor_to_copy::REWRITE)
        .when(&[Condition::Has(Feature::BulkTensorCopy)])
        .requires(&[P::PointersForMadeDescriptors]),
    // What a descriptor loads is an access through pointers now, where there is no copy for it.
    SIMPLIFY
        .call(&row_iterations::REWRITE, configured::group_iterations)
        // With NVIDIA's assembler it has not been timed.
        .when(&[Condition::OneBlock, Condition::AllocatedByLlvm])
        .requires(&[P::Structured, P::Inlined]),
    SIMPLIFY
        .call(&whole_tiles::REWRITE, configured::split_tiles)
        .requires(&[P::Structured, P::Inlined]),
    LAYOUTS
        .call(&layouts::ASSIGN_LAYOUTS, configured::assign_layouts)
        .requires(&[P::Structured, P::Inlined])
        .ensures(&[P::Layouts]),
    LAYOUTS
        .pass(&ownership::VERIFY)
        .when(&[Condition::VerifiesLayouts])
        .requires(&[P::Layouts]),
    SIMPLIFY.step(CANONICALIZE),
    SIMPLIFY.step(CSE),
    SIMPLIFY
        .upstream(
            "loop-invariant-code-motion",
            "move out of a loop what does not change in it",
        )
        .requires(&[P::Structured]),
    // What was moved may be there already.
    SIMPLIFY.step(CSE),
    PIPELINING
        .call(&pipelining::PIPELINE, configured::pipeline_loops)
        .requires(&[P::Structured, P::Layouts]),
    PIPELINING
        .pass(&pipelining::SPREAD_COPIES)
        .when(&[Condition::Has(Feature::AsyncCopy), Condition::OneBlock])
        .requires(&[P::Layouts]),
    // Pipelining recognises the loads of products' factors by their pointers, so this comes after it.
    BUFFERS
        .pass(&buffer_ops::REWRITE)
        .when(&[Condition::Has(Feature::BufferOps)])
        .requires(&[P::Layouts]),
    BUFFERS
        .step(CSE)
        .when(&[Condition::Has(Feature::BufferOps)]),
    BUFFERS
        .pass(&buffer_ops::DIVIDE)
        .when(&[Condition::Has(Feature::BufferOps)])
        .requires(&[P::Layouts]),
    BUFFERS
        .step(CSE)
        .when(&[Condition::Has(Feature::BufferOps)]),
    // Pipelining has placed the buffers; the body is cut before it is unrolled.
    TURNS
        .call(&pipelining::TAKE_TURNS, configured::take_turns)
        .when(&[Condition::Has(Feature::WavePriority), Condition::PingPong])
        .requires(&[P::Structured, P::Layouts]),
    // What pipelining asks for, after offsets have taken the place of pointers in loops.
    UNROLLING.pass(&loops::UNROLL).requires(&[P::Structured]),
    CHECK
        .function(
            "check-layouts",
            "refuse layouts for other warps, blocks or vendors than the options name",
            |_, module, options| module::check_layouts(module, options),
        )
        .requires(&[P::Layouts])
        .ensures(&[P::FitsOptions]),
    SHARED_MEMORY
        .function(
            "name-target",
            "write the target and the forced plans into the module",
            |context, module, options| {
                module::set_target(context, module, options.target);
                module::set_requests(context, module, options);
                Ok(())
            },
        )
        .ensures(&[P::NamesTarget]),
    SHARED_MEMORY
        .pass_with(&scaled_dot::REWRITE, target)
        .requires(&[P::Layouts, P::FitsOptions]),
    SHARED_MEMORY
        .pass(&accumulators::REWRITE)
        .when(&[Condition::Has(Feature::WarpGroupMma)]),
    SHARED_MEMORY
        .pass(&products::COMPLETE)
        .when(&[Condition::Has(Feature::WarpGroupMma)]),
    SHARED_MEMORY
        .pass(&warp_groups::ALLOCATE)
        .requires(&[P::Layouts, P::NamesTarget]),
    SHARED_MEMORY
        .pass(&legalize::LEGALIZE)
        .requires(&[P::Layouts, P::FitsOptions, P::NamesTarget])
        .ensures(&[P::Legal]),
    SHARED_MEMORY
        .pass(&late_loads::SINK)
        .requires(&[P::Layouts, P::NamesTarget]),
    SHARED_MEMORY
        .pass(&staged_conversions::STAGE)
        .requires(&[P::Legal, P::NamesTarget]),
    SHARED_MEMORY
        .pass(&late_operands::SINK)
        .requires(&[P::Layouts, P::NamesTarget]),
    SHARED_MEMORY
        .pass(&joined_reductions::JOIN)
        .requires(&[P::Legal, P::NamesTarget]),
    SHARED_MEMORY.pass(&early_asserts::ADVANCE),
    SHARED_MEMORY
        .pass(&early_loads::ISSUE)
        .requires(&[P::Layouts, P::NamesTarget]),
    SHARED_MEMORY
        .pass_with(&ownership::VERIFY, |_| "regrouping=true".to_owned())
        .when(&[Condition::VerifiesLayouts])
        .requires(&[P::Legal]),
    SHARED_MEMORY
        .pass(&allocation::ALLOCATE)
        .requires(&[P::Legal, P::NamesTarget])
        .ensures(&[P::SharedMemoryPlaced]),
    SHARED_MEMORY
        .pass(&barrier::INSERT_BARRIERS)
        .requires(&[P::SharedMemoryPlaced, P::NamesTarget])
        .ensures(&[P::BarriersPlaced]),
    SHARED_MEMORY
        .pass(&global_scratch::ALLOCATE)
        .ensures(&[P::GlobalScratchPlaced]),
    // No later step accesses global memory.
    SHARED_MEMORY.pass(&dependent_launch::REWRITE).when(&[
        Condition::Has(Feature::DependentLaunch),
        Condition::DependentLaunch,
    ]),
    // Allocation and barriers read the structure of loops and conditions, so this comes last.
    CONTROL_FLOW
        .upstream(
            "convert-scf-to-cf",
            "turn loops and conditions into branches",
        )
        .requires(&[P::BarriersPlaced])
        .ensures(&[P::Branches])
        .ends(&[P::Structured]),
];

/// The steps of a stage under these options.
pub(super) fn steps(stage: Stage, options: &Options) -> impl Iterator<Item = &'static Step> {
    let runs = move |step: &&Step| {
        step.stage == stage && step.when.iter().all(|condition| condition.holds(options))
    };
    STEPS.iter().filter(runs)
}
