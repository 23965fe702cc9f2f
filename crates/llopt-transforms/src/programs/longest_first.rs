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
//! # When it is correct
//!
//! Programs of a launch may be executed in any order as long as none waits for another one, so the kernel must only
//! load and store, as for [`crate::persistent`]. `tt.get_program_id` keeps its meaning and gets an attribute: which
//! block computes a program is of no interest to analyses before code is emitted.

use std::collections::HashMap;

use llopt_dialects::arith;
use llopt_dialects::llvm::AssumeOp;
use llopt_dialects::meaning::facts::Control;
use llopt_dialects::tables::module::REVERSED;
use llopt_dialects::tt::{self, GetProgramIdOp};
use llopt_mlir::ir::{BlockExt, OperationExt, RegionExt, Walk, attr, key};
use llopt_mlir::pass::PassSpec;
use melior::ir::{OperationRef, Value};

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
    let axes = rising(kernel);
    for number in numbers(kernel) {
        if axes[number.axis() as usize] {
            number
                .operation()
                .set_discardable_attr(REVERSED, attr::unit(module.ctx()));
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
    let trips = Trends::of(kernel).trips;
    [0, 1, 2].map(|axis| {
        let mut along = trips.iter().map(|trip| trip[axis]);
        along.clone().any(|trip| trip == Trend::Rises) && along.all(|trip| trip != Trend::Falls)
    })
}

fn numbers<'c: 'a, 'a>(kernel: OperationRef<'c, 'a>) -> Vec<GetProgramIdOp<'c, 'a>> {
    let mut numbers = Vec::new();
    kernel.for_each_op(Walk::PreOrder, |operation| {
        numbers.extend(GetProgramIdOp::of(operation));
    });
    numbers
}

/// How a number changes when the number of the program along one axis becomes larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trend {
    Stays,
    Rises,
    Falls,
    Unknown,
}

impl Trend {
    /// That of the negative number.
    fn negated(self) -> Self {
        match self {
            Self::Rises => Self::Falls,
            Self::Falls => Self::Rises,
            same => same,
        }
    }

    /// That of a sum, a minimum or a maximum: what all parts have in common.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Stays, of) | (of, Self::Stays) => of,
            (x, y) if x == y => x,
            _ => Self::Unknown,
        }
    }

    /// That of a multiple, or of a part.
    fn scaled(self, factor: i64) -> Self {
        match factor {
            0 => Self::Stays,
            1.. => self,
            _ => self.negated(),
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
    /// The numbers of iterations of its loops.
    trips: Vec<Along>,
}

impl Trends {
    fn of<'c: 'a, 'a>(kernel: OperationRef<'c, 'a>) -> Self {
        let mut trends = Self {
            known: HashMap::new(),
            trips: Vec::new(),
        };
        let body = kernel.region_ref(0).and_then(RegionExt::entry);
        for argument in body.into_iter().flat_map(BlockExt::argument_values) {
            trends.known.insert(key(argument), STAYS);
        }
        // Definitions come before uses.
        kernel.for_each_op(Walk::PreOrder, |operation| {
            if let Some(of) = For::of(operation) {
                trends.trips.push(trends.difference(of.upper(), of.lower()));
            }
            let result = trends.result(operation);
            for value in operation.result_values() {
                trends.known.insert(key(value), result);
            }
        });
        trends
    }

    fn get(&self, value: Value<'_, '_>) -> Along {
        self.known.get(&key(value)).copied().unwrap_or(UNKNOWN)
    }

    fn common(&self, operation: OperationRef<'_, '_>) -> Along {
        let operands = operation.operand_values().map(|operand| self.get(operand));
        operands.fold(STAYS, |x, y| each(|axis| x[axis].and(y[axis])))
    }

    fn difference(&self, x: Value<'_, '_>, y: Value<'_, '_>) -> Along {
        let (x, y) = (self.get(x), self.get(y));
        each(|axis| x[axis].and(y[axis].negated()))
    }

    fn result(&self, operation: OperationRef<'_, '_>) -> Along {
        if let Some(number) = GetProgramIdOp::of(operation) {
            let own = number.axis() as usize;
            return each(|axis| match axis == own {
                true => Trend::Rises,
                false => Trend::Stays,
            });
        }
        let common = self.common(operation);
        let is_function = operation.region_refs().len() == 0 && operation.is_memory_effect_free();
        if is_function && common == STAYS {
            return STAYS;
        }
        let operands: Vec<_> = operation.operand_values().collect();
        let scaled = |value, factor: Option<i64>| match factor {
            Some(factor) => self.get(value).map(|trend| trend.scaled(factor)),
            None => UNKNOWN,
        };
        match (operation.name_str(), &operands[..]) {
            (arith::SubIOp::NAME, &[x, y]) => self.difference(x, y),
            (arith::MulIOp::NAME, &[x, y]) => match constant(x) {
                Some(factor) => scaled(y, Some(factor)),
                None => scaled(x, constant(y)),
            },
            (arith::DivSIOp::NAME | arith::DivUIOp::NAME, &[x, y]) => scaled(x, constant(y)),
            // The distance is not negative: shifts multiply and divide by powers of two.
            (arith::ShLIOp::NAME | arith::ShRSIOp::NAME | arith::ShRUIOp::NAME, &[x, y]) => {
                scaled(x, constant(y).map(|_| 1))
            }
            (
                arith::AddIOp::NAME
                | arith::MinSIOp::NAME
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

fn each(of: impl FnMut(usize) -> Trend) -> Along {
    [0, 1, 2].map(of)
}
