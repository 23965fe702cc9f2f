//! Operations on a module before code generation: read it, check that it fits the options, run passes, print it.

use std::rc::Rc;

use llopt_dialects::tables::module as launch;
use llopt_dialects::tables::module::TARGET;
use llopt_dialects::tt;
use llopt_mlir::diagnostic;
use llopt_mlir::ir::{AttributeExt, LocationExt, OperationExt, Walk, attr};
use llopt_mlir::pass::{PipelineError, run_pipeline_sharing};
use llopt_plan::plans::Plans;
use llopt_plan::request::{CONVERSION_PLAN, GATHER_PLAN};
use llopt_target::{Feature, Target};
use llopt_transforms::layouts::{self, Grid, Unrelated};
use llopt_transforms::persistent::{self, Block, PersistentAccount};
use llopt_transforms::tensor_copies::{self as copies, Maker, Narrow, Room};
use llopt_transforms::{
    descriptor_blocks, pipelining, split_k, tile_parts, whole_tiles, wide_iterations,
};
use melior::Context;
use melior::ir::attribute::StringAttribute;
use melior::ir::{Module, OperationRef};

use crate::chosen_layouts::ChosenLayouts;
use crate::loop_schedules::{self, LoopSchedule};
use crate::persistent_program::{self, Persistent};
use crate::product_tile;
use crate::shared_loops::{self, SharedLoop};
use crate::tensor_copies::{self, CopiedLoop, TensorCopies};
use crate::{
    Artifact, ArtifactKind, Compilation, Diagnostic, Error, Metadata, Options, Source, Timings,
    search_limits, wide_loops,
};

/// Parses and verifies a source.
///
/// # Errors
/// Of class invalid input, with the messages of the parser or a verifier.
pub(crate) fn parse<'c>(context: &'c Context, source: &Source) -> Result<Module<'c>, Error> {
    llopt_mlir::parse_module(context, source.contents(), source.name()).map_err(|diagnostics| {
        Error::invalid(diagnostics.iter().map(Diagnostic::from_mlir).collect())
    })
}

/// Warps of a block that the module is laid out for, without those that only issue copies.
pub(crate) fn num_warps(module: &Module<'_>, options: &Options) -> u32 {
    let own = number(module.as_operation(), launch::NUM_WARPS).or(options.num_warps);
    own.unwrap_or(4)
}

/// Whether the module specifies the number of warps of its layouts.
pub(crate) fn has_layouts(module: &Module<'_>) -> bool {
    number(module.as_operation(), launch::NUM_WARPS).is_some()
}

/// Chooses the layouts of a module that has none.
///
/// # Errors
/// Of class unsupported, with the op that the layout engine does not support yet.
pub(crate) fn assign_layouts(
    context: &Context,
    module: &Module<'_>,
    options: &Options,
) -> Result<(), Error> {
    // The pass adds attributes and ops of these dialects to a module that has none of them.
    for dialect in layouts::ASSIGN_LAYOUTS.dependencies {
        context.get_or_load_dialect(dialect);
    }
    let mut grid = Grid {
        num_warps: options.num_warps.unwrap_or(4),
        threads_per_warp: options.target.warp_size(),
        num_ctas: options.num_ctas.unwrap_or(1),
    };
    if options.chooses_warps() {
        let (operation, stages) = (module.as_operation(), options.num_stages);
        grid.num_warps = pipelining::choose_warps(operation, grid, stages, options.target);
    }
    for (name, number) in [("warps", grid.num_warps), ("blocks", grid.num_ctas)] {
        if !number.is_power_of_two() {
            let message = format!("the number of {name} is {number}, not a power of two");
            return Err(Error::invalid(vec![Diagnostic::error("", message)]));
        }
    }
    check_threads(grid.num_warps, options.target)
        .map_err(|message| Error::invalid(vec![Diagnostic::error("", message)]))?;
    let (operation, target) = (module.as_operation(), options.target);
    let assigned = match options.keep_decisions {
        true => layouts::assign_with_account(operation, grid, target),
        false => layouts::assign(operation, grid, target).map(|()| None),
    };
    let account = assigned.map_err(unrelated)?;
    if let Some(account) = account {
        search_limits::add(account.search_limits(operation), operation);
        ChosenLayouts::from(account).write(operation);
    }
    Ok(())
}

/// The error for an op whose layouts are not related in a known way.
pub(crate) fn unrelated(unrelated: Unrelated<'_, '_>) -> Error {
    let operation = unrelated.operation;
    let reason = format!("it {}", unrelated.reason);
    Error::unsupported(location_of(operation), operation.name_str(), reason)
}

/// Pipelines the loops of a module whose layouts were chosen here.
///
/// # Errors
/// None so far: a loop that cannot be pipelined is not changed.
pub(crate) fn pipeline_loops(
    context: &Context,
    module: &Module<'_>,
    options: &Options,
) -> Result<(), Error> {
    for dialect in ["ttg", "ttng", "arith", "scf"] {
        context.get_or_load_dialect(dialect);
    }
    let plans = Plans::new(options.target);
    let operation = module.as_operation();
    let accounts = pipelining::pipeline(operation, options.num_stages, &plans);
    if options.keep_decisions {
        let limits = accounts
            .iter()
            .flat_map(pipelining::LoopAccount::search_limits);
        search_limits::add(limits.collect(), operation);
        let schedules: Vec<LoopSchedule> = accounts.into_iter().map(LoopSchedule::from).collect();
        loop_schedules::write(&schedules, operation);
    }
    Ok(())
}

/// Lets the halves of blocks take turns in pipelined loops of products.
pub(crate) fn take_turns(
    context: &Context,
    module: &Module<'_>,
    options: &Options,
) -> Result<(), Error> {
    let Some(request) = options.block_pingpong.request() else {
        return Ok(());
    };
    for dialect in pipelining::TURN_DIALECTS {
        context.get_or_load_dialect(dialect);
    }
    let plans = Plans::new(options.target);
    let operation = module.as_operation();
    let accounts = pipelining::take_turns(operation, request, &plans);
    if options.keep_decisions && !accounts.is_empty() {
        loop_schedules::add_turns(accounts, operation);
    }
    Ok(())
}

/// Makes one iteration of two where a loop reduces over tiles, if the options ask for it.
///
/// # Errors
/// None.
pub(crate) fn widen_iterations(
    context: &Context,
    module: &Module<'_>,
    options: &Options,
) -> Result<(), Error> {
    let Some(request) = options.wide_iterations.request() else {
        return Ok(());
    };
    for dialect in wide_iterations::REWRITE.dependencies {
        context.get_or_load_dialect(dialect);
    }
    // The model takes four warps where the number is still to be chosen.
    let warps = options.num_warps.filter(|warps| *warps > 0);
    let setting = wide_iterations::Setting {
        target: options.target,
        num_warps: warps.unwrap_or(4),
        stages: options.num_stages,
        // Blocks that compute several programs run two loops in sequence as one.
        concatenates: options.persistent != Persistent::Off,
    };
    let operation = module.as_operation();
    let accounts = wide_iterations::widen(operation, request, setting);
    if options.keep_decisions {
        wide_loops::write(accounts, operation);
    }
    Ok(())
}

/// Lets blocks compute parts of tiles, and no more rows than there are.
///
/// # Errors
/// Of class invalid input for numbers of parts or rows that no tile has.
pub(crate) fn divide_tiles(
    context: &Context,
    module: &Module<'_>,
    options: &Options,
) -> Result<(), Error> {
    for dialect in tile_parts::REWRITE.dependencies {
        context.get_or_load_dialect(dialect);
    }
    let (parts, rows) = (options.tile_parts, options.tile_rows);
    if !tile_parts::is_number_of_parts(parts) || !tile_parts::is_number_of_rows(rows) {
        let message = format!("no tile has {parts} parts, or {rows} rows of a larger one");
        return Err(Error::invalid(vec![Diagnostic::error("", message)]));
    }
    let operation = module.as_operation();
    if options.keep_decisions {
        product_tile::write(operation);
    }
    // A kernel of which it is not possible stays as it is.
    let _ = tile_parts::narrow(operation, rows);
    let _ = tile_parts::divide(operation, parts);
    if options.single_row {
        tile_parts::read_columns_once(operation);
        operation.set_discardable_attr(launch::SINGLE_ROW, attr::unit(context));
    }
    Ok(())
}

/// Lets the blocks of a cluster share the iterations of loops of products.
///
/// # Errors
/// Of class unsupported, with the loop, if the target has no clusters; of class invalid input for a number of blocks
/// that no cluster has.
pub(crate) fn share_loops(
    context: &Context,
    module: &Module<'_>,
    options: &Options,
) -> Result<(), Error> {
    for dialect in split_k::SPLIT.dependencies {
        context.get_or_load_dialect(dialect);
    }
    let (operation, blocks) = (module.as_operation(), options.split_k);
    if !split_k::is_number_of_blocks(blocks) {
        let message = format!("{blocks} blocks cannot share a loop; 1, 2, 4 or 8 can");
        return Err(Error::invalid(vec![Diagnostic::error("", message)]));
    }
    if !options.target.has(Feature::Cluster) {
        return match split_k::loops_of_products(operation).first() {
            None => Ok(()),
            Some(of) => {
                let of = of.operation();
                let reason = format!(
                    "to share it among blocks needs {}, which {} does not have",
                    Feature::Cluster.name(),
                    options.target
                );
                Err(Error::unsupported(location_of(of), of.name_str(), reason))
            }
        };
    }
    // The cluster of the options is known before layouts have it.
    let accounts = split_k::split(operation, blocks, options.num_ctas.unwrap_or(1));
    if options.keep_decisions {
        let accounts = accounts.into_iter();
        let loops: Vec<SharedLoop> = accounts
            .map(|account| SharedLoop::of(account, blocks))
            .collect();
        shared_loops::write(&loops, operation);
    }
    Ok(())
}

/// Loads tiles through descriptors instead of pointers, if the options ask for it.
///
/// # Errors
/// None: loops that cannot do so remain as they are.
pub(crate) fn load_through_descriptors(
    context: &Context,
    module: &Module<'_>,
    options: &Options,
) -> Result<(), Error> {
    let maker = match options.tensor_copies {
        TensorCopies::Off => return Ok(()),
        TensorCopies::Kernel => Maker::Kernel,
        TensorCopies::Launcher => Maker::Launcher,
    };
    for dialect in copies::REWRITE.dependencies {
        context.get_or_load_dialect(dialect);
    }
    let operation = module.as_operation();
    let narrow = match options.persistent {
        // A warp of its own issues the copies for the next program, if there are only copies.
        Persistent::On => Narrow::Copied,
        Persistent::Off | Persistent::Propose => Narrow::Loaded,
    };
    let accounts = copies::rewrite(operation, maker, room_of_tiles(options), narrow);
    if options.keep_decisions {
        let loops: Vec<CopiedLoop> = accounts.into_iter().map(CopiedLoop::from).collect();
        tensor_copies::write(&loops, operation);
    }
    Ok(())
}

/// What the tiles of a loop's copies have.
fn room_of_tiles(options: &Options) -> Room {
    Room {
        bytes: options.target.shared_memory_limit().into(),
        stages: stages_asked_for(options),
    }
}

/// The stages of loops that do not say so themselves.
fn stages_asked_for(options: &Options) -> u32 {
    match options.num_stages {
        // The model will find how many it takes.
        0 => Options::new(options.target).num_stages,
        stages => stages,
    }
}

/// Lets each block of a kernel compute several programs, where that is possible and faster.
///
/// # Errors
/// None: other kernels remain as they are.
pub(crate) fn loop_over_programs(
    context: &Context,
    module: &Module<'_>,
    options: &Options,
) -> Result<(), Error> {
    if options.split_k > 1 || options.num_ctas.unwrap_or(1) > 1 {
        return Ok(());
    }
    for dialect in persistent::REWRITE.dependencies {
        context.get_or_load_dialect(dialect);
    }
    let operation = module.as_operation();
    let block = Block {
        target: options.target,
        warps: num_warps(module, options),
        stages: stages_asked_for(options),
    };
    let account = match options.persistent {
        Persistent::On => persistent::rewrite(operation, Some(block)),
        Persistent::Off | Persistent::Propose => persistent::propose(operation, block)
            .map(|account| propose_with_copies(module, options, block).unwrap_or(account)),
    };
    if let Some(account) = account.filter(|_| options.keep_decisions) {
        persistent_program::write(&account.into(), operation);
    }
    Ok(())
}

/// Proposes blocks of several programs for a kernel that would copy its factors only in such blocks: as one program it
/// loads narrow factors through pointers, and with them it may have no tile that is worth a copy. None if there is no such
/// proposal.
fn propose_with_copies(
    module: &Module<'_>,
    options: &Options,
    block: Block,
) -> Option<PersistentAccount> {
    let maker = match options.tensor_copies {
        TensorCopies::Launcher => Maker::Launcher,
        // The kernel itself would make its descriptors once for each program.
        TensorCopies::Off | TensorCopies::Kernel => return None,
    };
    let operation = module.as_operation();
    let mut has_copies = false;
    operation.for_each_op(Walk::PreOrder, |of| {
        has_copies |= tt::DescriptorLoadOp::of(of).is_some();
    });
    if has_copies {
        return None;
    }
    let trial = Module::from_operation((*operation).clone())?;
    let copied = trial.as_operation();
    copies::rewrite(copied, maker, room_of_tiles(options), Narrow::Copied);
    let account = persistent::propose(copied, block)?;
    let proposal = copied.attr(launch::PERSISTENT_PROPOSAL)?;
    operation.set_discardable_attr(launch::PERSISTENT_PROPOSAL, proposal);
    Some(account)
}

/// Divides the boxes of tensor descriptors among the blocks of a cluster.
///
/// # Errors
/// Of the pass.
pub(crate) fn divide_descriptors(
    context: &Context,
    module: &Module<'_>,
    options: &Options,
) -> Result<(), Error> {
    run_alone(
        context,
        module,
        options,
        &format!(
            "{}{{num-ctas={}}}",
            descriptor_blocks::SHARE.argument,
            options.num_ctas.unwrap_or(1)
        ),
    )
}

/// Splits products of f32 as they request, into formats that the target multiplies.
///
/// # Errors
/// Of the pass.
pub(crate) fn split_f32_products(
    context: &Context,
    module: &Module<'_>,
    options: &Options,
) -> Result<(), Error> {
    let tf32 = options.target.has(Feature::WarpMma);
    run_alone(
        context,
        module,
        options,
        &format!("tritongpu-F32DotTC{{emu-tf32={tf32}}}"),
    )
}

/// Widens the operands of products of eight-bit floats that no matrix unit of the target supports.
///
/// # Errors
/// Of the pass.
pub(crate) fn widen_products(
    context: &Context,
    module: &Module<'_>,
    options: &Options,
) -> Result<(), Error> {
    run_alone(
        context,
        module,
        options,
        &format!("widen-products{{target={}}}", options.target),
    )
}

/// Computes tiles that are whole without masks, and the last one apart.
///
/// # Errors
/// None.
pub(crate) fn split_tiles(
    context: &Context,
    module: &Module<'_>,
    options: &Options,
) -> Result<(), Error> {
    for dialect in whole_tiles::REWRITE.dependencies {
        context.get_or_load_dialect(dialect);
    }
    let (target, warps) = (options.target, u64::from(num_warps(module, options)));
    let threads = warps.max(1) * u64::from(target.warp_size());
    let operation = module.as_operation();
    match options.keep_decisions {
        true => {
            let limits = whole_tiles::rewrite_with_limits(operation, threads, target);
            search_limits::add(limits, operation);
        }
        false => whole_tiles::rewrite(operation, threads, target),
    }
    Ok(())
}

/// Decomposes products of scaled operands that no matrix unit of the target supports.
///
/// # Errors
/// Of class invalid input, if operands have layouts in which they cannot be widened.
pub(crate) fn decompose_scaled_products(
    context: &Context,
    module: &Module<'_>,
    options: &Options,
) -> Result<(), Error> {
    run_alone(
        context,
        module,
        options,
        &format!("decompose-scaled-dot{{target={}}}", options.target),
    )
}

/// Checks that each thread holds the elements that it computes with, except for ops that regroup elements themselves.
///
/// # Errors
/// Of class invalid input, with the op.
pub(crate) fn verify_written_layouts(
    context: &Context,
    module: &Module<'_>,
    options: &Options,
) -> Result<(), Error> {
    run_alone(context, module, options, "verify-layouts{regrouping=true}")
}

/// Checks that the loops of a module with layouts are shared by the blocks that the options name, if they name any.
///
/// # Errors
/// Of class invalid input if they are not: it is too late to share them.
pub(crate) fn check_split(module: &Module<'_>, options: &Options) -> Result<(), Error> {
    let root = module.as_operation();
    if options.split_k == 1 || launch::cluster_split(root) == options.split_k {
        return Ok(());
    }
    let message =
        "blocks can share loops of kernels without layouts (.ttir) only; this one has layouts";
    Err(Error::invalid(vec![Diagnostic::error(
        location_of(root),
        message.to_owned(),
    )]))
}

/// Checks that the layouts of a module are for the warps, blocks and the GPU of the options.
///
/// # Errors
/// Of class invalid input if one of them does not fit.
pub(crate) fn check_layouts(module: &Module<'_>, options: &Options) -> Result<(), Error> {
    let root = module.as_operation();
    let invalid =
        |message: String| Error::invalid(vec![Diagnostic::error(location_of(root), message)]);
    let num_warps = number(root, launch::NUM_WARPS).unwrap_or(4);
    let num_ctas = number(root, launch::NUM_CTAS).unwrap_or(1);
    let wanted = options.num_warps.filter(|_| !options.chooses_warps());
    if let Some(wanted) = wanted.filter(|&wanted| wanted != num_warps) {
        return Err(invalid(format!(
            "the module is laid out for {num_warps} warps, not for the {wanted} of --num-warps"
        )));
    }
    if let Some(wanted) = options.num_ctas.filter(|&wanted| wanted != num_ctas) {
        return Err(invalid(format!(
            "the module is laid out for {num_ctas} blocks per cluster, not for the {wanted} of \
             --num-ctas"
        )));
    }
    let target = options.target;
    let threads = number(root, launch::THREADS_PER_WARP).unwrap_or(32);
    let written = root.attr(launch::TARGET).and_then(AttributeExt::as_str);
    let vendor = written
        .and_then(|name| Target::parse(name).ok())
        .map(Target::vendor);
    if threads != target.warp_size() || vendor.is_some_and(|vendor| vendor != target.vendor()) {
        let written = written.unwrap_or("a target it does not name");
        return Err(invalid(format!(
            "the module is laid out for {written} with {threads} threads per warp, which {target} \
             cannot run"
        )));
    }
    check_threads(num_warps, target).map_err(invalid)
}

/// Whether a block can have this many warps; the reason otherwise.
fn check_threads(num_warps: u32, target: Target) -> Result<(), String> {
    let threads = u64::from(num_warps) * u64::from(target.warp_size());
    let most = target.max_threads_per_block();
    if threads > u64::from(most) {
        return Err(format!(
            "{num_warps} warps are {threads} threads of a block; {target} has {most} at most"
        ));
    }
    Ok(())
}

/// Writes the GPU into the module, where the passes that plan code read it.
pub(crate) fn set_target<'c>(context: &'c Context, module: &Module<'c>, target: Target) {
    let name = StringAttribute::new(context, &target.to_string());
    module.as_operation().set_attr(TARGET, name.into());
}

/// Writes the requested kinds of plans to the module, where code generation reads them.
pub(crate) fn set_requests<'c>(context: &'c Context, module: &Module<'c>, options: &Options) {
    let conversion = options.conversion_plan.map(|plan| plan.to_string());
    let gather = options.gather_plan.map(|plan| plan.to_string());
    for (name, plan) in [(CONVERSION_PLAN, conversion), (GATHER_PLAN, gather)] {
        if let Some(plan) = plan {
            let plan = StringAttribute::new(context, &plan);
            module.as_operation().set_attr(name, plan.into());
        }
    }
}

/// Runs a pass that does not share plans with others.
///
/// # Errors
/// Of the pass.
fn run_alone(
    context: &Context,
    module: &Module<'_>,
    options: &Options,
    pass: &str,
) -> Result<(), Error> {
    let plans = Rc::new(Plans::new(options.target));
    run_passes(context, module, pass, &plans)
}

/// Runs a textual pipeline whose passes share plans.
///
/// # Errors
/// Of class invalid input if a pass reports an error, of class bug if the pipeline is malformed.
pub(crate) fn run_passes(
    context: &Context,
    module: &Module<'_>,
    pipeline: &str,
    plans: &Rc<Plans>,
) -> Result<(), Error> {
    let (result, diagnostics) = diagnostic::capture(context, || {
        run_pipeline_sharing(module.as_operation(), pipeline, false, plans)
    });
    match result {
        Ok(()) => Ok(()),
        Err(PipelineError::Failed { .. }) if !diagnostics.is_empty() => Err(Error::invalid(
            diagnostics.iter().map(Diagnostic::from_mlir).collect(),
        )),
        Err(error) => Err(Error::bug(error.to_string())),
    }
}

/// The module as text.
pub(crate) fn text(module: &Module<'_>) -> String {
    format!("{}\n", module.as_operation())
}

/// The module as the artefact of a compilation that ends before code generation.
pub(crate) fn printed(
    module: &Module<'_>,
    kind: ArtifactKind,
    options: &Options,
    timings: Timings,
) -> Compilation {
    let root = module.as_operation();
    let num_warps = number(root, launch::NUM_WARPS).or(options.num_warps);
    let num_ctas = number(root, launch::NUM_CTAS).or(options.num_ctas);
    let num_ctas = num_ctas.unwrap_or(1) * launch::cluster_split(root);
    Compilation {
        artifact: Artifact::new(kind, text(module)),
        kept: Vec::new(),
        metadata: Metadata::of_module(num_warps.unwrap_or(4), num_ctas, options),
        libraries: Vec::new(),
        timings,
        warnings: Vec::new(),
    }
}

fn number(operation: OperationRef<'_, '_>, name: &str) -> Option<u32> {
    u32::try_from(operation.attr(name)?.as_bits()?).ok()
}

/// The location of an op as `file:line:col`.
pub(crate) fn location_of(operation: OperationRef<'_, '_>) -> String {
    match operation.loc().file_position() {
        Some((file, line, column)) => format!("{file}:{line}:{column}"),
        None => String::new(),
    }
}
