//! Whether wide iterations are faster, by the model of loops with products.
//!
//! # The model
//!
//! Layouts are chosen for two copies of the module, one of them with wide iterations, and the bodies are priced as
//! [the pipeline](crate::pipelining) sees them: `M` cycles of the matrix units, and `T` of the units with which threads compute,
//! the larger one of instructions and special functions. Where a product takes what threads compute from another one, an
//! iteration takes `M + T`, and `max(M, T)` otherwise; and the cycles in which spilled registers are stored and loaded again.
//!
//! In attention `M` and the exponentials of the weights are the same for an element, wide or not, and the rest of `T` is
//! for each row of an iteration. A sum of products alone does nothing for each iteration, so its tiles stay as they are.
//!
//! # Blocks
//!
//! A wide iteration takes more registers and more shared memory, so fewer blocks are resident. That changes nothing as long
//! as each scheduler has two warps, of which one issues while the other waits; a loop of which that is no longer so stays as
//! it was. As many bytes as before are outstanding in half as many stages. A loop has more of them, up to the number that the
//! program asks for, if as many blocks are resident then.

use std::collections::HashMap;

use llopt_mlir::ir::{AttributeExt, OperationExt, Walk, attr};
use llopt_mlir::rewrite::Rewriter;
use llopt_plan::plans::Plans;
use llopt_target::Target;
use melior::ir::{Module, OperationRef};

use super::proof::Proof;
use super::rewrite::{FACTOR, widen};
use crate::layouts::{self, Grid};
use crate::loops::unroll::{RARE, STAGES};
use crate::loops::view::{For, innermost};
use crate::pipelining::LoopPrice;

/// The number of a loop in both copies of a module.
const NUMBER: &str = "llopt.wide_candidate";
/// Warps of a scheduler, of which one issues while the other waits, and schedulers of a multiprocessor.
const WARPS: u32 = 2;
const SCHEDULERS: u32 = 4;
/// By which part of it an iteration must become shorter: prices are whole cycles of many instructions.
const MARGIN: f64 = 0.01;

/// What the model is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The GPU.
    pub target: Target,
    /// Warps and blocks.
    pub grid: Grid,
    /// The stages of loops that do not say so themselves.
    pub stages: u32,
}

/// The cycles of iterations, and the stages of the wide ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cycles {
    /// Of two iterations as they were.
    pub narrow: u32,
    /// Of a wide one.
    pub wide: u32,
    /// The stages of the loop of wide iterations.
    pub stages: u32,
}

/// Compares both forms of all loops of a module that can be widened, in their order.
pub(super) fn compare(
    module: OperationRef<'_, '_>,
    setting: Setting,
    has_boxes: bool,
) -> Vec<Result<Option<Cycles>, String>> {
    let narrow = priced(module, setting, |_| {});
    let wide = priced(module, setting, |of| {
        let mut rewriter = Rewriter::new(of.operation().ctx());
        if let Ok(proof) = Proof::of(of, has_boxes)
            && let Some(rest) = widen(&mut rewriter, of, &proof).and_then(|widened| widened.rest)
        {
            rest.operation().set_discardable_attr(RARE, attr::unit(rewriter.context()));
        }
    });
    let count = innermost(module).len();
    let provable = innermost(module).into_iter().zip(0..count);
    let provable = provable.filter(|(of, _)| super::prove(*of, has_boxes).is_ok());
    let verdict = |(of, number): (For<'_, '_>, usize)| {
        let asked: Option<u32> = of.operation().attr(STAGES).and_then(AttributeExt::as_int);
        let asked = asked.unwrap_or(setting.stages);
        match (narrow.get(&number), wide.get(&number)) {
            (Some(narrow), Some(wide)) => verdict(narrow, wide, asked, setting).map(Some),
            _ => Err("it has no product, by which the model could judge".to_owned()),
        }
    };
    provable.map(verdict).collect()
}

/// The prices of the loops with products of a copy of a module that is changed first, by their numbers.
fn priced(
    module: OperationRef<'_, '_>,
    setting: Setting,
    change: impl for<'c, 'a> Fn(For<'c, 'a>),
) -> HashMap<usize, LoopPrice> {
    let mut prices = HashMap::new();
    let Some(copy) = Module::from_operation(module.clone_op()) else {
        return prices;
    };
    let copy = copy.as_operation();
    for (number, of) in innermost(copy).into_iter().enumerate() {
        let number = attr::i64(copy.ctx(), i64::try_from(number).unwrap_or(i64::MAX));
        of.operation().set_discardable_attr(NUMBER, number);
        change(of);
    }
    if layouts::assign(copy, setting.grid, setting.target).is_err() {
        return prices;
    }
    let plans = Plans::new(setting.target);
    copy.for_each_op(Walk::PreOrder, |operation| {
        let number = operation.discardable_attr(NUMBER).and_then(AttributeExt::as_int);
        let is_main = operation.discardable_attr(RARE).is_none();
        let of = For::of(operation).filter(|_| is_main);
        if let Some((of, number)) = of.zip(number)
            && let Some(price) = LoopPrice::of(of, setting.grid.num_warps, &plans)
        {
            prices.insert(number, price);
        }
    });
    prices
}

/// Whether a loop becomes one of wide iterations, and in how many stages.
fn verdict(
    narrow: &LoopPrice,
    wide: &LoopPrice,
    asked: u32,
    setting: Setting,
) -> Result<Cycles, String> {
    let (target, warps) = (setting.target, setting.grid.num_warps);
    let cycles = |price: &LoopPrice| price.matrix_and_threads() + price.spilling();
    let (two, one) = (f64::from(FACTOR) * cycles(narrow), cycles(wide));
    if one > two * (1.0 - MARGIN) {
        return Err(format!(
            "two iterations take about {two:.0} cycles by the model, and a wide one would take {one:.0}"
        ));
    }
    let fewest = asked.saturating_sub(1).div_ceil(FACTOR).max(1) + 1;
    let resident = |price: &LoopPrice, stages: u32| price.resident_blocks(stages, target);
    let (before, after) = (resident(narrow, asked), resident(wide, fewest));
    let enough = |blocks: u32| blocks * warps >= WARPS * SCHEDULERS;
    if enough(before) && !enough(after) {
        return Err(format!(
            "{after} blocks of {warps} warps would be resident for {before}, too few to hide latencies"
        ));
    }
    let mut depths = (fewest..=asked.max(fewest)).rev();
    let stages = depths.find(|stages| resident(wide, *stages) == after);
    Ok(Cycles {
        narrow: two.ceil() as u32,
        wide: one.ceil() as u32,
        stages: match asked {
            0 => 0,
            _ => stages.unwrap_or(fewest),
        },
    })
}
