//! A function as a graph of program points.
//!
//! Each op is a point; they are numbered in the order of the text, an op before those in its
//! regions. An edge leads from a point to each point that may execute next, through branches and
//! through structured control flow alike. The regions of an op that computes with them (a reduction)
//! are part of that op and have no points of their own.
//!
//! Partitions of a warp specialisation run at the same time. Here they come one after the other, in any order, like
//! the branches of a conditional; users of the graph must take into account what they must not share
//! ([`Program::concurrent`]).

use std::ops::Range;

use llopt_dialects::meaning::facts::Control;
use llopt_mlir::ir::{BlockExt, OperationExt, RegionExt};
use melior::ir::{BlockRef, OperationRef, RegionRef};
use rustc_hash::FxHashMap;

/// A program point.
pub(crate) struct Point<'c, 'a> {
    /// The op.
    pub(crate) operation: OperationRef<'c, 'a>,
    /// The points that may come next.
    pub(crate) successors: Vec<usize>,
    /// The point of the innermost loop op around this one.
    pub(crate) inside_loop: Option<usize>,
}

/// The points of a function, except the function itself.
pub(crate) struct Program<'c, 'a> {
    pub(crate) points: Vec<Point<'c, 'a>>,
    /// The ranges of points within ops whose regions run at the same time, outermost first.
    pub(crate) concurrent: Vec<Range<usize>>,
    numbers: FxHashMap<usize, usize>,
}

fn key(operation: OperationRef<'_, '_>) -> usize {
    operation.to_raw().ptr as usize
}

fn block_key(block: BlockRef<'_, '_>) -> usize {
    use melior::ir::BlockLike;
    block.to_raw().ptr as usize
}

/// How control flows through the regions of an op.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Structure {
    /// It has no regions, or computes with them.
    Simple,
    /// The region runs any number of times.
    Loop,
    /// The first region runs, then perhaps the second, and the first again.
    While,
    /// One of the regions, or none, runs once.
    Choice,
    /// All regions run.
    Concurrent,
    /// It holds the partitions of a concurrent op.
    Partitions,
}

fn structure(operation: OperationRef<'_, '_>) -> Structure {
    match Control::of(operation) {
        Control::For => Structure::Loop,
        Control::While => Structure::While,
        Control::Choice | Control::Masked => Structure::Choice,
        Control::Concurrent => Structure::Concurrent,
        Control::Partitions => Structure::Partitions,
        Control::Computes
        | Control::Function
        | Control::Call
        | Control::Return
        | Control::Condition
        | Control::Yield
        | Control::Result
        | Control::ConcurrentYield
        | Control::PartitionEnd
        | Control::Branch
        | Control::ConditionalBranch => Structure::Simple,
    }
}

impl<'c: 'a, 'a> Program<'c, 'a> {
    /// The points of a function's body.
    pub(crate) fn of(function: OperationRef<'c, 'a>) -> Self {
        let mut program = Self {
            points: Vec::new(),
            concurrent: Vec::new(),
            numbers: FxHashMap::default(),
        };
        let mut first_of_block = FxHashMap::default();
        for region in function.region_refs() {
            program.collect(region, None, &mut first_of_block);
        }
        program.connect(&first_of_block);
        program
    }

    /// The number of an op that is a point of this program.
    pub(crate) fn number(&self, operation: OperationRef<'c, 'a>) -> Option<usize> {
        self.numbers.get(&key(operation)).copied()
    }

    fn collect(
        &mut self,
        region: RegionRef<'c, 'a>,
        inside_loop: Option<usize>,
        first_of_block: &mut FxHashMap<usize, usize>,
    ) {
        for block in region.blocks() {
            first_of_block.insert(block_key(block), self.points.len());
            for operation in block.operations() {
                let number = self.points.len();
                self.numbers.insert(key(operation), number);
                self.points.push(Point {
                    operation,
                    successors: Vec::new(),
                    inside_loop,
                });
                let inside = match structure(operation) {
                    Structure::Simple => continue,
                    Structure::Loop | Structure::While => Some(number),
                    Structure::Choice | Structure::Concurrent | Structure::Partitions => {
                        inside_loop
                    }
                };
                for region in operation.region_refs() {
                    self.collect(region, inside, first_of_block);
                }
                if structure(operation) == Structure::Concurrent {
                    self.concurrent.push(number..self.points.len());
                }
            }
        }
    }

    fn connect(&mut self, first_of_block: &FxHashMap<usize, usize>) {
        for number in 0..self.points.len() {
            let operation = self.points[number].operation;
            let first = |region: Option<RegionRef<'c, 'a>>| {
                let entry = region.and_then(RegionExt::entry)?;
                first_of_block.get(&block_key(entry)).copied()
            };
            let next = operation.next_op().and_then(|next| self.number(next));
            let successors: Vec<usize> = match structure(operation) {
                Structure::Simple => match next {
                    Some(next) => vec![next],
                    None => self.after_terminator(operation, first_of_block, &first),
                },
                Structure::Loop | Structure::Choice => {
                    let entries = operation
                        .region_refs()
                        .filter_map(|region| first(Some(region)));
                    entries.chain(next).collect()
                }
                Structure::While => first(operation.region_ref(0)).into_iter().collect(),
                Structure::Concurrent | Structure::Partitions => {
                    let entries = operation
                        .region_refs()
                        .filter_map(|region| first(Some(region)));
                    let after = next.or_else(|| self.after_parent(operation));
                    entries.chain(after).collect()
                }
            };
            self.points[number].successors = successors;
        }
    }

    /// The point after the op that a terminator belongs to.
    fn after_parent(&self, terminator: OperationRef<'c, 'a>) -> Option<usize> {
        let mut parent = terminator.parent_op()?;
        if structure(parent) == Structure::Partitions {
            parent = parent.parent_op()?;
        }
        self.number(parent)?;
        parent.next_op().and_then(|next| self.number(next))
    }

    fn after_terminator(
        &self,
        terminator: OperationRef<'c, 'a>,
        first_of_block: &FxHashMap<usize, usize>,
        first: &impl Fn(Option<RegionRef<'c, 'a>>) -> Option<usize>,
    ) -> Vec<usize> {
        let branches: Vec<usize> = terminator
            .successor_refs()
            .filter_map(|block| first_of_block.get(&block_key(block)).copied())
            .collect();
        if !branches.is_empty() {
            return branches;
        }
        let Some(parent) = terminator.parent_op() else {
            return Vec::new();
        };
        let back = match (structure(parent), Control::of(terminator)) {
            (Structure::Loop, _) => first(parent.region_ref(0)),
            (Structure::While, Control::Condition) => first(parent.region_ref(1)),
            (Structure::While, _) => {
                return first(parent.region_ref(0)).into_iter().collect();
            }
            _ => None,
        };
        back.into_iter()
            .chain(self.after_parent(terminator))
            .collect()
    }
}
