//! Choosing the layouts of a module and writing them into its types.
//!
//! # Steps
//!
//! 0. Scaled matrix products become plain ones of scaled factors ([`crate::scaled_dot`]), where no matrix unit scales them
//!    itself or one takes longer for that. Products whose second factor is widened are transposed where instructions take
//!    only the first one from registers ([`super::transposed_products`]).
//! 1. Ops that cost next to nothing and are used more than once (constants, ranges, splats, and
//!    expansions of those) are copied for each use, so that each copy can have its own layout;
//!    copies that end up equal are merged by CSE afterwards.
//! 2. What proposes layouts does ([`super::candidates`]), and the labelling of least cost is found
//!    ([`super::engine`]).
//! 3. Where it costs less to compute an operand once more in the layout that is wanted than to
//!    convert it ([`super::recompute`]), what computes it is copied, and the labelling is found for
//!    the program with the copies. Layouts, transfers, prices of conversions and facts about addresses
//!    are kept ([`super::kept`]): only what was copied is new. If nothing is copied although the prices of copies were relied on, the
//!    labelling is found anew without these prices.
//! 4. Where a loop adds up reductions and the chosen layout makes it cheaper, partial results stay
//!    in their threads until the loop ends ([`super::locality`]). Where a product has few rows, warps divide k among
//!    them ([`super::slices`]). Both happen together with the copies ([`super::rewriting`]).
//! 5. If all the buffers that the labelling stores tensors to would not fit into shared memory together, it is found
//!    anew without them.
//! 6. Types get their layouts, and where an operand has another layout than its op wants, a
//!    `ttg.convert_layout` is put ([`super::write`]).
//!
//! # Layouts that are there
//!
//! A tensor whose type has a layout keeps it: it is the only label of its node, and the search
//! finds layouts for the others around it; an op that is not analysed, or whose layouts do not follow from each
//! other as its rule says, keeps all of them. So a module in which every tensor has one comes out as
//! it went in. Passes that choose layouts anew take them off first ([`super::pins`]). What is written for another
//! number of warps than requested is an error.

use llopt_dialects::meaning::facts::Control;
use llopt_dialects::tables::module as launch;
use llopt_dialects::tt::DotScaledOp;
use llopt_mlir::ir::{AttributeExt, OperationExt, ValueExt, Walk, attr};
use llopt_target::Target;
use llopt_target::matrix::MatrixElement;
use melior::ir::{BlockLike, OperationRef};

use super::account::Account;
use super::catalog::Catalog;
use super::cost::Costs;
use super::engine::Engine;
use super::facts::Facts;
use super::graph::{Graph, Unrelated, dead};
use super::grid::Grid;
use super::kept::Kept;
use super::pins::{Keep, Pins, release};
use super::products::Product;
use super::recompute::{self, Copies};
use super::relation::is_cheap;
use super::{rewriting, transposed_products, write};
use crate::flow::Symbols;
use crate::program::Program;
use crate::scaled_dot;

/// How often the labelling is found anew after something was copied.
const MOST_ROUNDS: usize = 8;

/// Gives every tensor of a module a layout, and writes grid and target into its attributes.
///
/// # Errors
/// An op on tensors whose layouts are not related in a way that is known, and a module that is laid
/// out for another grid already.
pub fn assign<'c: 'a, 'a>(
    module: OperationRef<'c, 'a>,
    grid: Grid,
    target: Target,
) -> Result<(), Unrelated<'c, 'a>> {
    choose(module, grid, target, None, false).map(drop)
}

/// The same, and an account of what was chosen.
///
/// # Errors
/// Those of [`assign`].
pub fn assign_with_account<'c: 'a, 'a>(
    module: OperationRef<'c, 'a>,
    grid: Grid,
    target: Target,
) -> Result<Option<Account>, Unrelated<'c, 'a>> {
    choose(module, grid, target, None, true)
}

/// Gives every tensor of a module a layout, or, if it says what to keep, chooses the others anew. With an account, if
/// one is asked for.
pub(super) fn choose<'c: 'a, 'a>(
    module: OperationRef<'c, 'a>,
    grid: Grid,
    target: Target,
    keep: Option<Keep>,
    accounts: bool,
) -> Result<Option<Account>, Unrelated<'c, 'a>> {
    declare_launch(module, grid, target)?;
    let mut functions = Vec::new();
    module.for_each_op(Walk::PreOrder, |operation| {
        if Control::of(operation) == Control::Function {
            functions.push(operation);
        }
    });
    for &function in &functions {
        let is_faster = |dot| scales_itself(dot, target, grid);
        scaled_dot::decompose(function, Some(target), &is_faster).map_err(|failed| Unrelated {
            operation: failed.operation,
            reason: "has operands that cannot be widened",
        })?;
        if keep.is_none() {
            transposed_products::transpose(function, target);
        }
        copy_for_each_use(function);
    }
    let account = label(module, &functions, (grid, target), keep, accounts)?;
    for function in functions {
        write::retype_function(function);
    }
    Ok(account)
}

/// Writes grid and target into the attributes of a module.
fn declare_launch<'c: 'a, 'a>(
    module: OperationRef<'c, 'a>,
    grid: Grid,
    target: Target,
) -> Result<(), Unrelated<'c, 'a>> {
    let context = module.ctx();
    let numbers = [
        (launch::NUM_WARPS, grid.num_warps),
        (launch::THREADS_PER_WARP, grid.threads_per_warp),
        (launch::NUM_CTAS, grid.num_ctas),
    ];
    for (name, number) in numbers {
        let written = module.attr(name).and_then(AttributeExt::as_i64);
        if written.is_some_and(|written| written != i64::from(number)) {
            return Err(Unrelated {
                operation: module,
                reason: "is laid out for another number of warps, threads or blocks",
            });
        }
        module.set_attr(name, attr::i32(context, number as i32));
    }
    module.set_attr(launch::TARGET, attr::string(context, &target.to_string()));
    Ok(())
}

/// Finds the labelling of least cost of the functions, again whenever something was copied or rewritten for it, and writes it
/// into the types.
fn label<'c: 'a, 'a>(
    module: OperationRef<'c, 'a>,
    functions: &[OperationRef<'c, 'a>],
    (grid, target): (Grid, Target),
    keep: Option<Keep>,
    accounts: bool,
) -> Result<Option<Account>, Unrelated<'c, 'a>> {
    let pins = keep.map_or_else(Pins::default, |keep| release(functions, keep, grid));
    let symbols = Symbols::of(module);
    let catalog = Catalog::default();
    let kept = Kept::default();
    let multiplied = kept.multiplied_by(functions, target, grid);
    let costs = Costs::new(target, functions, grid, multiplied);
    let mut facts = Facts::of(module);
    let mut may_store = true;
    // Once values are copied, or none is, all prices are those of what is written.
    let mut may_compute = true;
    let mut account = None;
    for round in 0..=MOST_ROUNDS {
        let graph = Graph::of(functions, &symbols, &catalog, &pins)?;
        let engine = Engine {
            may_store,
            may_compute: may_compute && round < MOST_ROUNDS,
            ..Engine::new(&graph, &catalog, &costs, (&facts, &kept), &pins, grid)
        };
        let labels = engine.choose();
        let limit = u64::from(target.shared_memory_limit());
        if engine.stored_bytes(&labels, limit) > limit && round < MOST_ROUNDS {
            may_store = false;
            continue;
        }
        let is_last = round == MOST_ROUNDS;
        let may_slice = keep.is_none();
        let (rewritten, mut copies) = match is_last {
            true => (Vec::new(), Copies::default()),
            false => (
                rewriting::rewritten(&engine, &labels, may_slice),
                recompute::instead_of_converting(&engine, &labels),
            ),
        };
        if !rewritten.is_empty() {
            let is_in_the_way = || rewriting::rewritten(&engine, &labels, may_slice) != rewritten;
            if !copies.is_empty() && is_in_the_way() {
                std::mem::take(&mut copies).undo();
            }
            // The rewriting may erase what was copied.
            let copied = copies.facts(&facts);
            if rewriting::rewrite(&engine, &labels, may_slice) {
                costs.forget_ops();
                may_compute &= copies.is_empty();
                facts.copied(copied);
                continue;
            }
        }
        may_compute = false;
        if copies.is_empty() {
            if engine.relies_on_computing(&labels) {
                // Nothing was copied for prices that this labelling was chosen by, so they are not what it costs.
                continue;
            }
            account = accounts.then(|| engine.account(&labels));
            if let Some(account) = account.as_mut().filter(|_| round == MOST_ROUNDS) {
                let limit = format!("{MOST_ROUNDS} rounds in which values are computed anew");
                account.limits.push(limit);
            }
            erase_dead(functions);
            write::write(&engine, &labels);
            break;
        }
        let copied = copies.facts(&facts);
        facts.copied(copied);
    }
    Ok(account)
}

/// Whether a matrix unit takes the factors of a scaled product as they are, and no longer than widened ones.
fn scales_itself(dot: DotScaledOp<'_, '_>, target: Target, grid: Grid) -> bool {
    let Some(scaled) = Product::of(dot.operation(), false, target, grid) else {
        return false;
    };
    let widened = [MatrixElement::Bf16, MatrixElement::Bf16, MatrixElement::F32];
    scaled.has_unit() && scaled.busy_for_one() <= scaled.widened(widened).busy_for_one()
}

/// Erases what has no effect and is used by nothing that has.
fn erase_dead(functions: &[OperationRef<'_, '_>]) {
    for &function in functions {
        let points = Program::of(function).points.into_iter();
        let operations: Vec<OperationRef> = points.map(|point| point.operation).collect();
        let dead = dead(&operations);
        for operation in operations.into_iter().rev() {
            if dead.contains(&(operation.to_raw().ptr as usize)) {
                operation.erase();
            }
        }
    }
}

/// Copies cheap ops with several uses. Users come before definitions here, so that the operands of
/// copies are copied in their turn.
fn copy_for_each_use(function: OperationRef<'_, '_>) {
    let mut operations = Vec::new();
    function.for_each_op(Walk::PreOrder, |operation| operations.push(operation));
    while let Some(operation) = operations.pop() {
        let Some(result) = operation.result_value(0).filter(|_| is_cheap(operation)) else {
            continue;
        };
        let uses: Vec<_> = result.uses().collect();
        for used in uses.iter().skip(1) {
            let Some(block) = operation.parent_block() else {
                continue;
            };
            let copy = block.insert_operation_before(operation, operation.clone_op());
            if let Some(value) = copy.result_value(0) {
                used.operation.set_operand_value(used.operand, value);
            }
            operations.push(copy);
        }
    }
}
