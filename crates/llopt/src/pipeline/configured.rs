//! The passes that read more options of a compilation than their text could carry, or keep an account of what they
//! decided.
//!
//! Each function does the work of the pass that its line of the table names; run by name (`llopt FILE --NAME`), the
//! pass takes its few options as text instead.

use llopt_dialects::tables::module as launch;
use llopt_dialects::tt;
use llopt_mlir::ir::{OperationExt, Walk, attr};
use llopt_plan::plans::Plans;
use llopt_target::Feature;
use llopt_transforms::descriptor_to_pointer::{self, Which};
use llopt_transforms::layouts::{self, Grid};
use llopt_transforms::persistent::{self, Block, PersistentAccount};
use llopt_transforms::tensor_copies::{self as copies, Maker, Narrow, Room};
use llopt_transforms::{
    pipelining, row_iterations, split_k, tile_parts, whole_tiles, wide_iterations,
};
use melior::Context;
use melior::ir::Module;

use crate::accounts::chosen_layouts::ChosenLayouts;
use crate::accounts::loop_schedules::{self, LoopSchedule};
use crate::accounts::persistent_program::{self, Persistent};
use crate::accounts::search_limits;
use crate::accounts::shared_loops::{self, SharedLoop};
use crate::accounts::tensor_copies::{self, CopiedLoop, TensorCopies};
use crate::accounts::wide_loops;
use crate::module::{check_threads, location_of, num_warps, unrelated};
use crate::product_tile;
use crate::{Diagnostic, Error, Options};

/// Chooses the layouts of a module that has none.
///
/// # Errors
/// Of class unsupported, with the op that the layout engine does not support yet.
pub(super) fn assign_layouts(
    context: &Context,
    module: &Module<'_>,
    options: &Options,
) -> Result<(), Error> {
    load_dialects(context, layouts::ASSIGN_LAYOUTS.dependencies);
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
    if options.num_stages == 1 {
        pipelining::ask_for_one_stage(operation);
    }
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

/// Pipelines the loops of a module whose layouts were chosen here.
///
/// # Errors
/// None so far: a loop that cannot be pipelined is not changed.
pub(super) fn pipeline_loops(
    context: &Context,
    module: &Module<'_>,
    options: &Options,
) -> Result<(), Error> {
    load_dialects(context, &["ttg", "ttng", "arith", "scf"]);
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
pub(super) fn take_turns(
    context: &Context,
    module: &Module<'_>,
    options: &Options,
) -> Result<(), Error> {
    let Some(request) = options.block_pingpong.request() else {
        return Ok(());
    };
    load_dialects(context, pipelining::TURN_DIALECTS);
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
pub(super) fn widen_iterations(
    context: &Context,
    module: &Module<'_>,
    options: &Options,
) -> Result<(), Error> {
    let Some(request) = options.wide_iterations.request() else {
        return Ok(());
    };
    load_dialects(context, wide_iterations::REWRITE.dependencies);
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
pub(super) fn divide_tiles(
    context: &Context,
    module: &Module<'_>,
    options: &Options,
) -> Result<(), Error> {
    load_dialects(context, tile_parts::REWRITE.dependencies);
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
    if options.streamed {
        tile_parts::read_columns_once(operation);
    }
    if options.single_wave {
        operation.set_discardable_attr(launch::SINGLE_WAVE, attr::unit(context));
    }
    Ok(())
}

/// Accesses blocks of tensors through pointers: those of all descriptors, or where a unit copies the blocks, those of
/// descriptors that it need not know.
///
/// # Errors
/// Of class unsupported, with the op, if only that unit could read a descriptor and the target has none.
pub(super) fn access_through_pointers(
    context: &Context,
    module: &Module<'_>,
    options: &Options,
) -> Result<(), Error> {
    load_dialects(context, descriptor_to_pointer::REWRITE.dependencies);
    let unit = Feature::BulkTensorCopy;
    let which = match options.target.has(unit) {
        true => Which::Made,
        false => Which::All,
    };
    descriptor_to_pointer::rewrite(module.as_operation(), which).map_err(|opaque| {
        let mut reason = format!("it {}", opaque.reason);
        if opaque.is_in_memory {
            let (unit, target) = (unit.name(), options.target);
            reason += &format!("; only {unit}, which {target} does not have, reads it from memory");
        }
        let of = opaque.operation;
        Error::unsupported(location_of(of), of.name_str(), reason)
    })
}

/// Lets the blocks of a cluster share the iterations of loops of products.
///
/// # Errors
/// Of class unsupported, with the loop, if the target has no clusters; of class invalid input for a number of blocks
/// that no cluster has.
pub(super) fn share_loops(
    context: &Context,
    module: &Module<'_>,
    options: &Options,
) -> Result<(), Error> {
    load_dialects(context, split_k::SPLIT.dependencies);
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
pub(super) fn load_through_descriptors(
    context: &Context,
    module: &Module<'_>,
    options: &Options,
) -> Result<(), Error> {
    let maker = match options.tensor_copies {
        TensorCopies::Off => return Ok(()),
        TensorCopies::Kernel => Maker::Kernel,
        TensorCopies::Launcher => Maker::Launcher,
    };
    load_dialects(context, copies::REWRITE.dependencies);
    let operation = module.as_operation();
    let narrow = match options.persistent {
        // A warp of its own issues the copies for the next program, if there are only copies.
        Persistent::On => Narrow::copied_for(options.target),
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
pub(super) fn loop_over_programs(
    context: &Context,
    module: &Module<'_>,
    options: &Options,
) -> Result<(), Error> {
    if options.split_k > 1 || options.num_ctas.unwrap_or(1) > 1 {
        return Ok(());
    }
    load_dialects(context, persistent::REWRITE.dependencies);
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
        persistent_program::write(account.into(), operation);
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
    let narrow = Narrow::copied_for(options.target);
    copies::rewrite(copied, maker, room_of_tiles(options), narrow);
    let account = persistent::propose(copied, block)?;
    let proposal = copied.attr(launch::PERSISTENT_PROPOSAL)?;
    operation.set_discardable_attr(launch::PERSISTENT_PROPOSAL, proposal);
    Some(account)
}

/// Computes tiles that are whole without masks, and the last one apart.
///
/// # Errors
/// None.
pub(super) fn split_tiles(
    context: &Context,
    module: &Module<'_>,
    options: &Options,
) -> Result<(), Error> {
    load_dialects(context, whole_tiles::REWRITE.dependencies);
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

/// Makes rows of a tile of several iterations, where that is faster.
///
/// # Errors
/// None.
pub(super) fn group_iterations(
    context: &Context,
    module: &Module<'_>,
    options: &Options,
) -> Result<(), Error> {
    load_dialects(context, row_iterations::REWRITE.dependencies);
    let warps = num_warps(module, options).max(1);
    let settings = (warps, options.num_stages);
    row_iterations::rewrite(module.as_operation(), settings, options.target);
    Ok(())
}

/// Loads the dialects of what a rewrite adds to a module, which may have had nothing of them.
fn load_dialects(context: &Context, names: &[&str]) {
    for name in names {
        context.get_or_load_dialect(name);
    }
}
