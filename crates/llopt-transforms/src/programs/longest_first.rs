//! `--longest-programs-first`: programs with more iterations get the blocks that start earlier.
//!
//! The hardware starts blocks in the order of their numbers, each as soon as a multiprocessor has room for it. That is
//! the list scheduling of Graham (*Bounds on multiprocessing timing anomalies*, 1969): whatever the order, the last
//! block ends at most one block's time after the others. When long blocks start first, what remains at the end is
//! short, and multiprocessors become idle at nearly the same time. The opposite order is the worst: the longest blocks
//! start last and run alone.
//!
//! ```text
//! for k = 0 to program_id(x) * 128             program_id(x) := num_programs(x) - 1 - block(x)
//! ```
//!
//! The causal form of attention is such a kernel: a tile of later queries has more keys.
//!
//! # What is known about a loop
//!
//! How the number of its iterations changes with the number of the program, along each axis of the grid: it stays,
//! rises, falls, or is not known. Sums, differences, products with constants, quotients by constants, minima and maxima
//! of such numbers follow from their operands. The axis of a kernel is reversed if a loop rises along it and none
//! falls. Wrapping around and negative counts of iterations are not considered: the order is right in any case.
//!
//! Blocks that compute several programs each pair long ones with short ones instead ([`crate::persistent`]).
//!
//! # Rows of programs
//!
//! The hardware counts along x first. Where x is the axis along which loops rise and the programs of a row (those with the
//! same y) are few, the longest ones of the last rows still start late. They start before all shorter ones if rows take
//! turns:
//!
//! ```text
//! one after the other   row 0: 3 2 1 0   row 1: 3 2 1 0      8 blocks, by the length of their programs
//! in turns              3 3 2 2 1 1 0 0
//! ```
//!
//! On two multiprocessors both take the same time; with 32 programs in each of 128 rows on 132 multiprocessors, list scheduling
//! ends 3 % later than the mean one after the other, and 0.2 % in turns. But the programs of a row share what they read, which
//! stays in the cache between them. So as many rows take turns as the cache has room for: the attribute of `tt.get_program_id` says
//! how many bytes each program of a row adds to what the row reads, and the kernel computes the number of rows from that, the
//! extent of its grid and the target's cache. That number is a power of two, which makes the numbers of programs a few shifts. Rows
//! at the end of the grid that are fewer come one after the other.
//!
//! # When it is correct
//!
//! Programs of a launch may be executed in any order as long as none waits for another one, so the kernel must only
//! load and store, as for [`crate::persistent`]. `tt.get_program_id` keeps its meaning and gets an attribute: which
//! block computes a program is of no interest to analyses before code is emitted.

use std::collections::HashMap;

use llopt_dialects::arith;
use llopt_dialects::llvm::AssumeOp;
use llopt_dialects::meaning::facts::Control;
use llopt_dialects::tables::module::{REVERSED, ROW_BYTES};
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt::{self, GetProgramIdOp};
use llopt_mlir::ir::{BlockExt, OperationExt, RegionExt, TypeExt, Walk, attr, key};
use llopt_mlir::pass::PassSpec;
use melior::ir::{OperationRef, Value, ValueLike};

use crate::loops::induction::constant;
use crate::loops::view::For;

/// The pass.
pub static REWRITE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    ..PassSpec::new(
        "longest-programs-first",
        "give programs with more iterations to blocks that start earlier",
        |module, _run| {
            rewrite(module);
            Ok(())
        },
    )
};

/// Reverses the order of programs in which later ones take longer.
pub fn rewrite(module: OperationRef<'_, '_>) {
    let mut functions = Vec::new();
    let mut waits = false;
    module.for_each_op(Walk::PreOrder, |operation| {
        if Control::of(operation) == Control::Function {
            functions.push(operation);
        } else if operation != module {
            waits |= may_wait(operation);
        }
    });
    let [kernel] = functions[..] else {
        return;
    };
    if waits {
        return;
    }
    let trends = Trends::of(kernel);
    let axes = trends.rising();
    let numbers = numbers(kernel);
    let row_bytes = trends.row_bytes().filter(|_| axes[X] && !axes[Y]);
    for number in numbers {
        let (operation, axis) = (number.operation(), number.axis() as usize);
        if axes[axis] {
            operation.set_discardable_attr(REVERSED, attr::unit(module.ctx()));
        }
        if let Some(bytes) = row_bytes.filter(|_| axis == X || axis == Y) {
            operation.set_discardable_attr(ROW_BYTES, attr::i64(module.ctx(), bytes));
        }
    }
}

/// Whether a program with this operation might wait for another one: it does more than load and store.
pub(crate) fn may_wait(operation: OperationRef<'_, '_>) -> bool {
    let is_access = tt::LoadOp::of(operation).is_some_and(|load| !load.is_volatile())
        || tt::StoreOp::of(operation).is_some()
        || tt::DescriptorLoadOp::of(operation).is_some()
        || tt::DescriptorStoreOp::of(operation).is_some()
        || AssumeOp::of(operation).is_some();
    let is_structure = operation.region_refs().len() > 0
        || matches!(Control::of(operation), Control::Yield | Control::Return);
    !(is_access || is_structure || operation.is_memory_effect_free())
}

/// The axes of the grid along which later programs of a kernel take longer.
pub(crate) fn rising(kernel: OperationRef<'_, '_>) -> [bool; 3] {
    Trends::of(kernel).rising()
}

fn numbers<'c: 'a, 'a>(kernel: OperationRef<'c, 'a>) -> Vec<GetProgramIdOp<'c, 'a>> {
    let mut numbers = Vec::new();
    kernel.for_each_op(Walk::PreOrder, |operation| {
        numbers.extend(GetProgramIdOp::of(operation));
    });
    numbers
}

/// Axes of the grid.
const X: usize = 0;
const Y: usize = 1;

/// How a number changes when the number of the program along one axis becomes larger.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Trend {
    Stays,
    /// At least by so much for each program.
    Rises(f64),
    /// The same for its negative.
    Falls(f64),
    Unknown,
}

impl Trend {
    /// That of the negative number.
    fn negated(self) -> Self {
        match self {
            Self::Rises(by) => Self::Falls(by),
            Self::Falls(by) => Self::Rises(by),
            same => same,
        }
    }

    /// That of a sum.
    fn plus(self, other: Self) -> Self {
        self.and(other, |x, y| x + y)
    }

    /// That of a minimum or a maximum. One of numbers that stay and numbers that change may stay up to a program, and changes from
    /// there.
    fn either(self, other: Self) -> Self {
        self.and(other, f64::min)
    }

    /// What two numbers have in common.
    fn and(self, other: Self, rate: impl Fn(f64, f64) -> f64) -> Self {
        match (self, other) {
            (Self::Stays, of) | (of, Self::Stays) => of,
            (Self::Rises(x), Self::Rises(y)) => Self::Rises(rate(x, y)),
            (Self::Falls(x), Self::Falls(y)) => Self::Falls(rate(x, y)),
            _ => Self::Unknown,
        }
    }

    /// That of a multiple, or of a part.
    fn scaled(self, factor: f64) -> Self {
        match self {
            _ if factor == 0.0 => Self::Stays,
            _ if factor < 0.0 => self.negated().scaled(-factor),
            Self::Rises(by) => Self::Rises(by * factor),
            Self::Falls(by) => Self::Falls(by * factor),
            same => same,
        }
    }
}

/// One for each axis of the grid.
type Along = [Trend; 3];

const STAYS: Along = [Trend::Stays; 3];
const UNKNOWN: Along = [Trend::Unknown; 3];

/// What is known about the numbers of a kernel.
struct Trends {
    known: HashMap<usize, Along>,
    loops: Vec<Iterations>,
}

/// How often a loop is executed.
struct Iterations {
    /// The distance between its bounds.
    distance: Along,
    /// By how much an iteration approaches the upper bound, if that is known.
    step: Option<i64>,
    /// The bytes that an iteration loads.
    bytes: u64,
}

impl Trends {
    fn of<'c: 'a, 'a>(kernel: OperationRef<'c, 'a>) -> Self {
        let mut trends = Self {
            known: HashMap::new(),
            loops: Vec::new(),
        };
        let body = kernel.region_ref(0).and_then(RegionExt::entry);
        for argument in body.into_iter().flat_map(BlockExt::argument_values) {
            trends.known.insert(key(argument), STAYS);
        }
        // Definitions come before uses.
        kernel.for_each_op(Walk::PreOrder, |operation| {
            if let Some(of) = For::of(operation) {
                trends.loops.push(Iterations {
                    distance: trends.difference(of.upper(), of.lower()),
                    step: constant(of.step()),
                    bytes: loaded(operation),
                });
            }
            let result = trends.result(operation);
            for value in operation.result_values() {
                trends.known.insert(key(value), result);
            }
        });
        trends
    }

    fn rising(&self) -> [bool; 3] {
        [0, 1, 2].map(|axis| {
            let mut along = self.loops.iter().map(|of| of.distance[axis]);
            let rises = |trend| matches!(trend, Trend::Rises(_));
            let falls = |trend| matches!(trend, Trend::Falls(_));
            along.clone().any(rises) && !along.any(falls)
        })
    }

    /// The bytes that each program of a row adds to what the row reads: programs with larger x read what those with smaller
    /// x do, and more. Loops of which it is not known that they rise do not count.
    fn row_bytes(&self) -> Option<i64> {
        let of_loop = |of: &Iterations| match (of.distance[X], of.step) {
            (Trend::Rises(by), Some(step)) => by / step as f64 * of.bytes as f64,
            _ => 0.0,
        };
        let bytes: f64 = self.loops.iter().map(of_loop).sum();
        (bytes >= 1.0).then_some(bytes as i64)
    }

    fn get(&self, value: Value<'_, '_>) -> Along {
        self.known.get(&key(value)).copied().unwrap_or(UNKNOWN)
    }

    fn combined(
        &self,
        operation: OperationRef<'_, '_>,
        combine: fn(Trend, Trend) -> Trend,
    ) -> Along {
        let operands = operation.operand_values().map(|operand| self.get(operand));
        operands.fold(STAYS, |x, y| each(|axis| combine(x[axis], y[axis])))
    }

    fn difference(&self, x: Value<'_, '_>, y: Value<'_, '_>) -> Along {
        let (x, y) = (self.get(x), self.get(y));
        each(|axis| x[axis].plus(y[axis].negated()))
    }

    fn result(&self, operation: OperationRef<'_, '_>) -> Along {
        if let Some(number) = GetProgramIdOp::of(operation) {
            let own = number.axis() as usize;
            return each(|axis| match axis == own {
                true => Trend::Rises(1.0),
                false => Trend::Stays,
            });
        }
        let common = self.combined(operation, Trend::either);
        let is_function = operation.region_refs().len() == 0 && operation.is_memory_effect_free();
        if is_function && common == STAYS {
            return STAYS;
        }
        let operands: Vec<_> = operation.operand_values().collect();
        let scaled = |value, factor: Option<f64>| match factor {
            Some(factor) => self.get(value).map(|trend| trend.scaled(factor)),
            None => UNKNOWN,
        };
        let multiple = |value| constant(value).map(|factor| factor as f64);
        let part = |value| {
            constant(value)
                .filter(|parts| *parts != 0)
                .map(|parts| 1.0 / parts as f64)
        };
        let power = |value| constant(value).map(|distance| (distance as f64).exp2());
        match (operation.name_str(), &operands[..]) {
            (arith::SubIOp::NAME, &[x, y]) => self.difference(x, y),
            (arith::AddIOp::NAME, _) => self.combined(operation, Trend::plus),
            (arith::MulIOp::NAME, &[x, y]) => match multiple(x) {
                Some(factor) => scaled(y, Some(factor)),
                None => scaled(x, multiple(y)),
            },
            (arith::DivSIOp::NAME | arith::DivUIOp::NAME, &[x, y]) => scaled(x, part(y)),
            // The distance is not negative: shifts multiply and divide by powers of two.
            (arith::ShLIOp::NAME, &[x, y]) => scaled(x, power(y)),
            (arith::ShRSIOp::NAME | arith::ShRUIOp::NAME, &[x, y]) => {
                scaled(x, power(y).map(f64::recip))
            }
            (
                arith::MinSIOp::NAME
                | arith::MinUIOp::NAME
                | arith::MaxSIOp::NAME
                | arith::MaxUIOp::NAME
                | arith::ExtSIOp::NAME
                | arith::ExtUIOp::NAME
                | arith::TruncIOp::NAME
                | arith::IndexCastOp::NAME,
                _,
            ) => common,
            _ => UNKNOWN,
        }
    }
}

/// The bytes that an operation, or those in it, load.
fn loaded(operation: OperationRef<'_, '_>) -> u64 {
    let mut bytes = 0;
    operation.for_each_op(Walk::PreOrder, |operation| {
        let is_load =
            tt::LoadOp::of(operation).is_some() || tt::DescriptorLoadOp::of(operation).is_some();
        for value in operation.result_values().filter(|_| is_load) {
            let r#type = value.r#type();
            bytes += match RankedTensor::of(r#type) {
                Some(tensor) => tensor.bytes(),
                None => u64::from(r#type.bit_width().unwrap_or(u64::BITS)) / 8,
            };
        }
    });
    bytes
}

fn each(of: impl FnMut(usize) -> Trend) -> Along {
    [0, 1, 2].map(of)
}
