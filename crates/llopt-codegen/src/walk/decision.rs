//! The decisions of lowering about layouts and memory, op by op, as values for inspection.
//!
//! A decision is recorded where it is followed: it holds the plan that emission follows, so the report about a kernel
//! cannot differ from the emitted code. The rejected plans come from the same planner, which returns all of them with
//! their prices. Types that consist of numbers only are shown to users field by field: its names are part of the JSON
//! of `llopt explain`.

use std::cell::RefCell;

use llopt_layout::plan::{Plan, SharedAccess};
use llopt_mlir::ir::{OperationExt, ValueExt};
use llopt_plan::priced::Priced;
use llopt_plan::product::Selection;
use melior::ir::{Location, OperationRef, Value, ValueLike};
use serde::Serialize;

use crate::walk::location::describe;

/// An op, and its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The name: `ttg.convert_layout`.
    pub op: String,
    /// `file:line:col`, or `unknown`.
    pub location: String,
}

impl Site {
    fn of(op: OperationRef<'_, '_>) -> Self {
        Self::new(op.name_str(), op.loc())
    }

    fn new(op: &str, location: Location<'_>) -> Self {
        Self {
            op: op.to_owned(),
            location: describe(location),
        }
    }
}

/// An operand or a result of an op, and the ops at its other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// The type, with the layout.
    pub r#type: String,
    /// For an operand the op that defines it; for a result the ops that use it. A value that a loop or a branch
    /// carries comes from, or goes to, `block argument`.
    pub others: Vec<Site>,
}

/// The decision about one op.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The op.
    pub site: Site,
    /// Its operands that have a layout.
    pub operands: Vec<Port>,
    /// Its results.
    pub results: Vec<Port>,
    /// The choice.
    pub choice: Choice,
}

/// The kinds of choices.
#[derive(Clone, Debug)]
pub enum Choice {
    /// Elements move from one layout to another.
    Movement {
        /// The plan that is followed.
        chosen: Box<Plan>,
        /// The other feasible ones, cheapest first.
        rejected: Vec<Plan>,
    },
    /// A buffer in shared memory is read or written.
    SharedAccess {
        /// Whether it is written.
        is_store: bool,
        /// The width of an element in bits.
        element_bits: u32,
        /// The instructions.
        access: Box<SharedAccess>,
    },
    /// Global memory is read or written.
    GlobalAccess {
        /// Whether it is written.
        is_store: bool,
        /// The width of an element in bits.
        element_bits: u32,
        /// Elements of one access of a thread.
        width: u32,
        /// Accesses of a thread.
        accesses: u32,
    },
    /// Elements are combined along an axis.
    Reduction(Reduction),
    /// Prefixes along an axis.
    Scan(Scan),
    /// Elements are selected by index.
    Gather(Gather),
    /// Matrices are multiplied.
    Product(Product),
}

/// How elements are combined along an axis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reduction {
    /// Combinations in each thread.
    pub in_thread: u32,
    /// Values of a thread that go through each step between lanes.
    pub values: u32,
    /// Steps between lanes.
    pub lane_steps: u32,
    /// Shuffles of 32-bit registers that they take.
    pub shuffles: u32,
    /// Instructions that combine the values of a whole warp in place of steps.
    pub warp_instructions: u32,
    /// Partial results of each element that warps leave in shared memory; 1 if none are.
    pub partial_results: u32,
    /// Blocks of the cluster that these come from.
    pub blocks: u32,
    /// Bytes of shared memory.
    pub shared_bytes: u32,
}

/// How prefixes along an axis are made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Scan {
    /// Consecutive elements of a thread.
    pub run: u32,
    /// Lanes along the axis.
    pub lanes: u32,
    /// Warps along the axis.
    pub warps: u32,
    /// Repetitions of all that in further registers.
    pub chunks: u32,
    /// Bytes of shared memory.
    pub shared_bytes: u32,
}

/// How elements are picked by index.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gather {
    /// The plan.
    pub chosen: Priced,
    /// The rejected plans.
    pub rejected: Vec<Priced>,
    /// Candidate registers of a reader; each takes a shuffle or a select.
    pub candidates: u32,
    /// Bytes of shared memory.
    pub shared_bytes: u32,
}

/// How matrices are multiplied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Product {
    /// The matrix instruction.
    pub instruction: &'static str,
    /// Its rows, columns, and the extent that it sums over.
    pub extents: [u32; 3],
    /// The number of its executions by a warp.
    pub executions: u32,
    /// Parts of the result with accumulators of their own.
    pub tiles: u32,
    /// Whether its operands are exchanged: it computes the transposed product.
    pub exchanged: bool,
    /// Cycles for which a warp keeps the matrix unit busy.
    pub cycles: u64,
}

impl Product {
    /// By a matrix instruction.
    pub(crate) fn of(selection: &Selection) -> Self {
        let row = selection.instruction;
        Self {
            instruction: row.name,
            extents: [row.m, row.n, row.k],
            executions: selection.division.steps.len() as u32,
            tiles: selection.division.tiles.len() as u32,
            exchanged: selection.exchanged,
            cycles: selection.cycles(),
        }
    }
}

/// The recorded decisions, if they are kept.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    decisions: Option<RefCell<Vec<Decision>>>,
}

impl Journal {
    /// A journal that keeps decisions, or none.
    pub(crate) fn new(is_kept: bool) -> Self {
        Self {
            decisions: is_kept.then(RefCell::default),
        }
    }

    /// Records a decision about an op.
    pub(crate) fn record(&self, op: OperationRef<'_, '_>, choice: impl FnOnce() -> Choice) {
        let Some(decisions) = &self.decisions else {
            return;
        };
        decisions.borrow_mut().push(Decision {
            site: Site::of(op),
            operands: op
                .operand_values()
                .filter(|value| has_layout(*value))
                .map(operand)
                .collect(),
            results: op
                .result_values()
                .filter(|value| has_layout(*value))
                .map(result)
                .collect(),
            choice: choice(),
        });
    }

    /// The recorded decisions.
    pub(crate) fn into_decisions(self) -> Vec<Decision> {
        self.decisions.map(RefCell::into_inner).unwrap_or_default()
    }
}

fn has_layout(value: Value<'_, '_>) -> bool {
    let text = value.r#type().to_string();
    text.starts_with("tensor<") || text.starts_with("!ttg.memdesc<")
}

const CARRIED: &str = "block argument";

fn operand(value: Value<'_, '_>) -> Port {
    let definer = value
        .defining_op()
        .map_or_else(|| Site::new(CARRIED, value.location()), Site::of);
    Port {
        r#type: value.r#type().to_string(),
        others: vec![definer],
    }
}

fn result(value: Value<'_, '_>) -> Port {
    let mut others: Vec<Site> = Vec::new();
    for user in value.users() {
        let site = Site::of(user);
        if !others.contains(&site) {
            others.push(site);
        }
    }
    others.reverse();
    Port {
        r#type: value.r#type().to_string(),
        others,
    }
}
