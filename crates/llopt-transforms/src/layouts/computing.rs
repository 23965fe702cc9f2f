//! The cost of ops that compute each element of a tensor by itself.
//!
//! Such an op takes some instructions for each element that a thread computes, of one word or more. A thread computes the elements
//! that it holds, but where the matrix units take longest: there arithmetic beside them costs its issue ([`super::cost`]).
//!
//! Of integers and addresses that follow from one another, a *run*, code computes one and has constants for the others. In a layout
//! in which a thread holds `2^k` elements of a run, that is one element of `2^k`: of the bits of an element's place, those within a
//! run do not count.
//!
//! # Ops that are alike
//!
//! So the cost depends on four things: the instructions, the bits of an element, the runs, and the linear map. A program has hundreds
//! of ops, each with a dozen layouts, and hardly ever more than some dozen such computations; each has a price for each map.

use llopt_dialects::tables::types::{Pointer, RankedTensor};
use llopt_dialects::tt::AddPtrOp;
use llopt_layout::f2::Echelon;
use llopt_layout::{Dim, LinearLayout};
use llopt_mlir::ir::{OperationExt, TypeExt, ValueExt};
use llopt_plan::elementwise;
use llopt_target::{Feature, Target};
use melior::ir::{OperationRef, TypeLike, ValueLike};
use rustc_hash::FxHashMap;

use super::catalog::MapId;
use super::facts::Facts;
use super::relation::{element_bits, is_cheap, only_renames};

/// What an op takes for its elements, whatever the layout.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Computation {
    /// Instructions for one element.
    instructions: f32,
    /// The bits of an element that they work on.
    bits: u32,
    /// For integers and addresses the elements along each dimension that follow from one another, as log2.
    runs: Option<Vec<u32>>,
}

impl Computation {
    pub(super) const NOTHING: Self = Self {
        instructions: 0.0,
        bits: 0,
        runs: None,
    };

    /// What an op takes that computes each element of a tensor of so many bits by itself.
    pub(super) fn of<'c: 'a, 'a>(
        operation: OperationRef<'c, 'a>,
        bits: u32,
        target: Target,
        facts: &Facts,
    ) -> Self {
        if is_cheap(operation) || only_renames(operation) {
            return Self::NOTHING;
        }
        let runs = operation.result_value(0).filter(|result| {
            let element = result.r#type().element_or_self();
            element.is_integer() || element.is_index() || Pointer::of(element).is_some()
        });
        let runs = runs.map(|result| {
            let facts = facts.of_value(result);
            let dims = facts.dims.iter();
            let runs = dims.map(|dim| dim.contiguity.max(dim.constancy).log2());
            runs.collect()
        });
        let Some(address) = AddPtrOp::of(operation) else {
            return Self {
                instructions: elementwise::instructions_on(operation, target),
                bits,
                runs,
            };
        };
        // Accesses by offsets from a base pointer add it themselves.
        let is_base = address.ptr().defining_op().is_some_and(is_cheap);
        if is_base && target.has(Feature::BufferOps) {
            return Self::NOTHING;
        }
        // One instruction widens an offset, multiplies it by the element's size, and adds it.
        let offset = RankedTensor::of(address.offset().r#type());
        Self {
            instructions: 1.0,
            bits: offset.map_or(bits, element_bits),
            runs,
        }
    }

    /// The number of a thread's elements that code computes.
    pub(super) fn elements(&self, layout: &LinearLayout) -> u64 {
        let runs = self.runs.as_ref();
        let Some(runs) = runs.filter(|runs| runs.len() == layout.out_dims().len()) else {
            return registers(layout);
        };
        // The bits of a place that runs do not cover, of all dimensions together.
        let (mut outside, mut first) = (0u64, 0);
        for (axis, run) in layout.out_dims().iter().zip(runs) {
            let extent = layout.out_dim_size_log2(*axis);
            outside |= (1 << (first + extent)) - (1 << (first + extent.min(*run)));
            first += extent;
        }
        let mut span = Echelon::new();
        for basis in layout.flat_bases_of(Dim::REGISTER) {
            let _ = span.insert(basis & outside as u32);
        }
        1 << span.rank()
    }
}

/// The computations of a program, and what they cost.
#[derive(Default)]
pub(super) struct Computations {
    different: Vec<Computation>,
    /// By op and the bits of an element. It follows from the op and the facts about its result, so it holds for as long as there
    /// is the op.
    of_ops: FxHashMap<(usize, u32), usize>,
    /// The instructions of a thread, counted once for each word, by computation and map.
    words: FxHashMap<(usize, MapId), f32>,
}

impl Computations {
    /// Forgets which ops do what, as some are no longer there.
    pub(super) fn forget_ops(&mut self) {
        self.of_ops.clear();
    }

    /// The number of a computation. There are few different ones, so they are compared one by one.
    fn number(&mut self, computation: Computation) -> usize {
        let mut known = self.different.iter();
        known
            .position(|known| *known == computation)
            .unwrap_or_else(|| {
                self.different.push(computation);
                self.different.len() - 1
            })
    }

    /// The instructions of a thread for an op, counted once for each word that they work on, in a layout. `describe` says what the op
    /// takes, and `elements` how many elements code computes.
    pub(super) fn words(
        &mut self,
        key: (usize, u32),
        describe: impl Fn() -> Computation,
        (map, layout): (MapId, &LinearLayout),
        elements: impl Fn(&Computation, &LinearLayout) -> u64,
    ) -> f32 {
        let known = self.of_ops.get(&key).copied();
        let number = known.unwrap_or_else(|| {
            let number = self.number(describe());
            self.of_ops.insert(key, number);
            number
        });
        let computation = &self.different[number];
        debug_assert!(*computation == describe(), "another computation");
        let counted = self.words.entry((number, map));
        *counted.or_insert_with(|| {
            let words = computation.bits.div_ceil(32) as f32;
            computation.instructions * (elements(computation, layout) as f32 * words)
        })
    }
}

/// The number of registers whose element no lower register of the thread holds: no code is emitted for the others.
pub(super) fn registers(layout: &LinearLayout) -> u64 {
    let repeated = layout.free_variable_mask(Dim::REGISTER);
    layout.in_dim_size(Dim::REGISTER) >> repeated.count_ones()
}
