//! What ops would save without some masks, by the prices of accesses and of arithmetic, before there are layouts.
//!
//! A thread's elements of an access are `n`, and an instruction moves as many of them as neighbours have one mask and
//! addresses that follow each other. Without the mask there are fewer instructions, and the mask is not computed. What
//! lanes exchange is about the same in both, so it is only estimated, for the sum with which the saving is compared.
//!
//! Beside updates nothing becomes wider: neighbouring lanes update neighbours, so a thread has single elements.

use std::collections::HashMap;
use std::ops::Add;

use llopt_dialects::arith::{AndIOp, ConstantOp, SelectOp};
use llopt_dialects::layout::transfer;
use llopt_dialects::meaning::facts::{Integers, LayoutAnchor, OpFacts};
use llopt_dialects::tables::types::{Pointer, RankedTensor};
use llopt_dialects::tt::{AddPtrOp, LoadOp, ReduceOp, ScanOp, StoreOp};
use llopt_mlir::ir::{OperationExt, Walk, key};
use llopt_plan::global_access::{Addresses, mask_width};
use llopt_plan::search_limit::Gap;
use llopt_plan::{elementwise, types};
use llopt_target::Target;
use melior::ir::{OperationRef, Value, ValueLike};

use crate::axis::AxisAnalysis;

/// The prices, for threads of blocks of a size.
pub(super) struct Prices<'f> {
    pub(super) target: Target,
    /// Threads of a block.
    pub(super) threads: u64,
    pub(super) facts: &'f AxisAnalysis,
}

/// The cost of ops for a warp and the instructions of their code, and what of both masks cause.
#[derive(Clone, Copy, Default)]
pub(super) struct Saving {
    /// The cost.
    all: f32,
    saved: f32,
    /// The instructions.
    code: f32,
    spared: f32,
}

impl Saving {
    /// Whether both the cost and the code shrink by at least this part.
    pub(super) fn is_above(self, share: f32) -> bool {
        self.saved >= share * self.all && self.spared >= share * self.code
    }

    /// What the code costs with masks and without, executed once by a warp.
    pub(super) fn gap(self) -> Gap {
        Gap {
            found: f64::from(self.all),
            bound: f64::from(self.all - self.saved),
            unit: "cycles",
        }
    }

    /// That of so many instructions of this cost.
    fn of(instructions: f32, cost: f32, are_spared: bool) -> Self {
        let spared = f32::from(u8::from(are_spared));
        Self {
            all: instructions * cost,
            saved: spared * instructions * cost,
            code: instructions,
            spared: spared * instructions,
        }
    }
}

impl Add for Saving {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            all: self.all + other.all,
            saved: self.saved + other.saved,
            code: self.code + other.code,
            spared: self.spared + other.spared,
        }
    }
}

/// An access to memory by a tensor of pointers.
struct Access<'c, 'a> {
    pointer: Value<'c, 'a>,
    mask: Option<Value<'c, 'a>>,
    is_load: bool,
    /// Whether each element is updated by itself.
    is_update: bool,
}

impl<'c: 'a, 'a> Access<'c, 'a> {
    fn of(operation: OperationRef<'c, 'a>) -> Option<Self> {
        let (mask, is_load) = match OpFacts::of(operation).anchor? {
            LayoutAnchor::Load => (LoadOp::of(operation)?.mask(), true),
            LayoutAnchor::Store => (StoreOp::of(operation)?.mask(), false),
            LayoutAnchor::Update | LayoutAnchor::CompareAndSwap => (None, false),
            LayoutAnchor::Buffer => return None,
        };
        Some(Self {
            pointer: operation.operand_value(0)?,
            mask,
            is_load,
            is_update: LoadOp::of(operation).is_none() && StoreOp::of(operation).is_none(),
        })
    }
}

/// How many neighbours have one value in masks that follow from some that are true throughout.
#[derive(Default)]
pub(super) struct Widths {
    /// Along each dimension; nothing of masks that are true throughout.
    known: HashMap<usize, Option<Vec<u64>>>,
}

impl Widths {
    /// Those in ops, in their order, if these masks are true throughout.
    pub(super) fn of(
        operations: &[OperationRef<'_, '_>],
        masks: impl Iterator<Item = usize>,
        facts: &AxisAnalysis,
    ) -> Self {
        let mut widths = Self {
            known: masks.map(|mask| (mask, None)).collect(),
        };
        for operation in operations {
            operation.for_each_op(Walk::PreOrder, |inner| widths.add(inner, facts));
        }
        widths
    }

    fn add(&mut self, operation: OperationRef<'_, '_>, facts: &AxisAnalysis) {
        let Some(result) = operation.result_value(0) else {
            return;
        };
        let Some(tensor) = RankedTensor::of(result.r#type()) else {
            return;
        };
        let is_known = |value: Value<'_, '_>| self.known.contains_key(&key(value));
        if let Some(both) = AndIOp::of(operation).filter(|_| !is_known(result)) {
            let operands = [both.lhs(), both.rhs()];
            if operands.into_iter().any(is_known) {
                let is_whole = operands.into_iter().all(|mask| self.is_whole(mask));
                let of_both = |dim| operands.map(|mask| self.along(mask, dim, facts));
                let least = |dim| of_both(dim).into_iter().fold(u64::MAX, u64::min);
                let widths = (!is_whole).then(|| (0..tensor.rank()).map(least).collect());
                self.known.insert(key(result), widths);
            }
            return;
        }
        let is_repeated = matches!(
            OpFacts::of(operation).integers,
            Integers::ExpandDims | Integers::Broadcast
        );
        let operand = operation.operand_value(0);
        if is_repeated && operand.is_some_and(|of| self.is_whole(of)) {
            self.known.insert(key(result), None);
        }
    }

    /// Whether a mask is true throughout.
    pub(super) fn is_whole(&self, mask: Value<'_, '_>) -> bool {
        matches!(self.known.get(&key(mask)), Some(None))
    }

    /// How many neighbours along a dimension have one value in a mask.
    fn along(&self, mask: Value<'_, '_>, dim: usize, facts: &AxisAnalysis) -> u64 {
        match self.known.get(&key(mask)) {
            Some(None) => u64::MAX,
            Some(Some(widths)) => widths.get(dim).copied().unwrap_or(1),
            None => mask_width(Some(&facts.facts(mask)), dim),
        }
    }
}

impl Prices<'_> {
    /// That of some ops and those in their regions, without masks.
    pub(super) fn of(&self, operations: &[OperationRef<'_, '_>], masks: &Widths) -> Saving {
        let mut inner = Vec::new();
        for operation in operations {
            operation.for_each_op(Walk::PreOrder, |operation| inner.push(operation));
        }
        let is_update = |operation: &OperationRef<'_, '_>| {
            let anchor = OpFacts::of(*operation).anchor;
            matches!(
                anchor,
                Some(LayoutAnchor::Update | LayoutAnchor::CompareAndSwap)
            )
        };
        let widens = !inner.iter().any(is_update);
        let of_op = |operation| self.of_op(operation, masks, widens).unwrap_or_default();
        let all = inner.into_iter().map(of_op);
        all.fold(Saving::default(), Saving::add)
    }

    /// The elements of a tensor that a thread has.
    fn of_thread(&self, tensor: RankedTensor<'_>) -> f32 {
        let elements: u64 = transfer::extents(&tensor.shape()).iter().product();
        (elements as f32 / self.threads as f32).max(1.0)
    }

    fn of_op(
        &self,
        operation: OperationRef<'_, '_>,
        masks: &Widths,
        widens: bool,
    ) -> Option<Saving> {
        if let Some(access) = Access::of(operation) {
            return self.of_access(&access, masks, widens);
        }
        let costs = self.target.movement_costs();
        let result = operation.result_value(0)?;
        let combines = ReduceOp::of(operation).is_some() || ScanOp::of(operation).is_some();
        if combines {
            let operand = RankedTensor::of(operation.operand_value(0)?.r#type())?;
            let steps = self.target.warp_size().ilog2() as f32;
            let in_thread = Saving::of(self.of_thread(operand), costs.select, false);
            let in_warp = Saving::of(steps, costs.shuffle + costs.exchange, false);
            return Some(in_thread + in_warp);
        }
        let tensor = RankedTensor::of(result.r#type())?;
        let is_renamed = ConstantOp::of(operation).is_some()
            || AddPtrOp::of(operation).is_some()
            || !matches!(
                OpFacts::of(operation).integers,
                Integers::Unknown | Integers::Elementwise | Integers::IfPure | Integers::Bits
            );
        if is_renamed {
            return None;
        }
        let each = elementwise::instructions_on(operation, self.target);
        let chooses = SelectOp::of(operation).map(|choice| choice.condition());
        let is_known = |value| masks.is_whole(value);
        let follows = is_known(result) || chooses.is_some_and(is_known);
        let instructions = self.of_thread(tensor) * each;
        Some(Saving::of(instructions, costs.arithmetic, follows))
    }

    fn of_access(&self, access: &Access<'_, '_>, masks: &Widths, widens: bool) -> Option<Saving> {
        let costs = self.target.global_costs_among_blocks();
        let tensor = RankedTensor::of(access.pointer.r#type())?;
        let element = types::element(Pointer::of(tensor.element())?.pointee())?;
        let bytes = u64::from(element.memory_bits() / 8).max(1);
        let extents = transfer::extents(&tensor.shape());
        let facts = self.facts.facts(access.pointer);
        let addresses = Addresses::Pointers(&facts);
        let widest = match access.is_update {
            true => 1,
            false => u64::from(self.target.max_global_access_bits() / 8) / bytes,
        };
        let each = self.of_thread(tensor);
        let width = |of_mask: &dyn Fn(usize) -> u64| {
            let along = extents.iter().enumerate().map(|(dim, &extent)| {
                let width = addresses.width_along(dim, bytes).min(of_mask(dim));
                width.min(extent).min(widest)
            });
            (along.max().unwrap_or(1) as f32).min(each)
        };
        let with = |mask: Value<'_, '_>, dim| mask_width(Some(&self.facts.facts(mask)), dim);
        let now = width(&|dim| access.mask.map_or(u64::MAX, |mask| with(mask, dim)));
        let then = width(&|dim| match access.mask {
            Some(mask) => masks.along(mask, dim, self.facts),
            None => u64::MAX,
        });
        let then = if widens { then } else { now };
        let instruction = costs.instruction + if access.is_load { costs.wait } else { 0.0 };
        let sectors =
            each * self.target.warp_size() as f32 * bytes as f32 / costs.sector_bytes as f32;
        let moved = Saving {
            all: sectors * costs.sector,
            ..Saving::default()
        };
        let spared = each / now - each / then;
        Some(
            moved
                + Saving::of(each / then, instruction, false)
                + Saving::of(spared, instruction, true),
        )
    }
}
