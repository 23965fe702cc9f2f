//! Products of matrices by multiply-adds: for elements and layouts that no matrix unit supports.
//!
//! Each thread computes its elements of the result, in the order of k. It must hold the rows of the first operand and
//! the columns of the second that these need, as it does with operand layouts of a blocked layout; the registers
//! follow from the linear layouts, as for a matrix unit whose tile is one element.
//!
//! A thread with m by n elements of the result takes k (m + n) elements of the operands, which for all of k soon are
//! more than it has registers. Operands that do not fit ([`llopt_plan::late_operands`]) are therefore loaded in
//! batches of successive k: while the elements of one batch are multiplied, those of the next are loaded, so each has
//! half of the room.
//!
//! Operands are widened to the accumulator's type first: products of eight and 16 bits are exact in `f32`.

use std::ops::Range;

use llopt_layout::matrix_product::{Division, Matrices, NotDivisible, divide_among_threads};
use llopt_plan::element::Element;
use llopt_plan::late_operands::LATE;
use melior::ir::OperationRef;

use crate::llvm::emitter::{Emitter, V};
use crate::ops::elementwise::casts;
use crate::ops::matrix::instruction::{Factor, Factors, registers_of};
use crate::targets::hooks::{Rounding, Scheduling};
use crate::values::element::LlvmType;
use crate::values::registers::Registers;
use crate::walk::function::{FunctionLowering, Lowered, integer_attribute};

/// The registers of a product by multiply-adds of each thread.
///
/// # Errors
/// A thread cannot compute its part of the result by itself, or an operand cannot be widened; the text says why.
pub(super) fn multiply_add<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    factors: &mut Factors<'_, '_, 'ctx>,
) -> Lowered<Result<Registers<'ctx>, NotDivisible>> {
    let (of_sum, sum) = factors.sum.clone();
    let [a, b] = &mut factors.matrices;
    let tensors = Matrices {
        a: a.of.layout(),
        b: b.of.layout(),
        c: of_sum.layout(),
    };
    let division = match divide_among_threads(&tensors) {
        Ok(division) => division,
        Err(reason) => return Ok(Err(reason)),
    };
    let element = of_sum.element;
    let room = integer_attribute(op, LATE).and_then(|words| u32::try_from(words).ok());
    let batches = batches(&division, element, room);
    let mut a = Operand::new(a, &division.a, element);
    let mut b = Operand::new(b, &division.b, element);
    let mut bring = |lowering: &mut FunctionLowering<'_, 'ctx>, steps: &Range<usize>| {
        let steps = &division.steps[steps.clone()];
        a.bring(lowering, op, steps.iter().map(|step| step.a))?;
        b.bring(lowering, op, steps.iter().map(|step| step.b))?;
        let pairs = steps
            .iter()
            .map(|step| Some((a.at(step.a)?, b.at(step.b)?)));
        Lowered::Ok(pairs.collect::<Vec<_>>())
    };
    let mut sums: Vec<V<'ctx>> = division
        .tiles
        .iter()
        .map(|tile| sum[tile[0] as usize])
        .collect();
    let mut loaded = match batches.first() {
        Some(first) => bring(lowering, first)?,
        None => Vec::new(),
    };
    for (index, batch) in batches.iter().enumerate() {
        let next = match batches.get(index + 1) {
            Some(next) => {
                // LLVM's scheduler would move the loads of all batches together.
                let barrier = Scheduling::Barrier { may_pass: 0 };
                lowering.hooks().schedule(lowering.e, barrier);
                bring(lowering, next)?
            }
            None => Vec::new(),
        };
        for (step, pair) in division.steps[batch.clone()].iter().zip(loaded) {
            if let Some((a, b)) = pair {
                let sum = &mut sums[step.tile as usize];
                *sum = fused(lowering.e, element, a, b, *sum);
            }
        }
        loaded = next;
    }
    let results = division.results.iter();
    Ok(Ok(results.map(|(tile, _)| sums[*tile as usize]).collect()))
}

/// The steps of a product in batches for whose operands there is room twice; a single one if all operands are in
/// registers.
///
/// Ensures: each batch takes a power of two of successive k, as the vectors do that are loaded.
fn batches(division: &Division, element: Element, room: Option<u32>) -> Vec<Range<usize>> {
    let steps = division.steps.len();
    let of_one = division.tiles.len().max(1);
    let depth = (steps / of_one).max(1);
    let together = room.map_or(depth, |room| {
        let words = (division.a.len() + division.b.len()) * element.bits() as usize / 32;
        let fit = room as usize / 2 / words.div_ceil(depth).max(1);
        1 << fit.max(1).ilog2()
    });
    let begins = (0..steps).step_by(of_one * together);
    begins
        .map(|begin| begin..(begin + of_one * together).min(steps))
        .collect()
}

/// An operand, and its elements in the type of the accumulator.
struct Operand<'f, 'c, 'a, 'ctx> {
    factor: &'f mut Factor<'c, 'a, 'ctx>,
    /// The register of each part.
    parts: Vec<Option<u32>>,
    element: Element,
    widened: Vec<Option<V<'ctx>>>,
}

impl<'f, 'c, 'a, 'ctx> Operand<'f, 'c, 'a, 'ctx> {
    fn new(
        factor: &'f mut Factor<'c, 'a, 'ctx>,
        parts: &[Vec<Option<u32>>],
        element: Element,
    ) -> Self {
        Self {
            parts: parts.iter().map(|part| part.first().copied()?).collect(),
            element,
            widened: vec![None; factor.of.registers()],
            factor,
        }
    }

    /// Emits the elements of some parts that have not been emitted.
    fn bring(
        &mut self,
        lowering: &mut FunctionLowering<'_, 'ctx>,
        op: OperationRef<'_, '_>,
        parts: impl Iterator<Item = u32>,
    ) -> Lowered {
        let mut wanted: Vec<u32> = parts.filter_map(|part| self.parts[part as usize]).collect();
        wanted.retain(|register| self.widened[*register as usize].is_none());
        wanted.sort_unstable();
        wanted.dedup();
        let values = registers_of(lowering, self.factor, &wanted)?;
        let from = self.factor.of.element;
        let values = widened(lowering, op, (from, values.into()), self.element)?;
        for (register, value) in wanted.iter().zip(values.iter()) {
            self.widened[*register as usize] = Some(*value);
        }
        Ok(())
    }

    /// The element of a part.
    fn at(&self, part: u32) -> Option<V<'ctx>> {
        self.widened[self.parts[part as usize]? as usize]
    }
}

/// Elements of an operand in the type of the accumulator.
fn widened<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    (from, values): (Element, Registers<'ctx>),
    to: Element,
) -> Lowered<Registers<'ctx>> {
    match (from, to) {
        (Element::Int(narrow), Element::Int(wide)) if narrow < wide => {
            let to = to.llvm(lowering.e.context);
            Ok(lowering.map(std::slice::from_ref(&values), |e, v| e.sext(v[0], to)))
        }
        (Element::Int(_), Element::Int(_)) => Ok(values),
        (_, Element::Int(_)) => {
            let reason = "it adds products of floats to integers";
            Err(lowering.unsupported(op, Some(reason.to_owned())))
        }
        (Element::Int(_), _) => {
            let reason = "it adds products of integers to floats";
            Err(lowering.unsupported(op, Some(reason.to_owned())))
        }
        (from, _) => casts::convert(lowering, op, from, to, Rounding::NearestEven, &values),
    }
}

/// `a * b + c`, rounded once.
fn fused<'ctx>(e: &Emitter<'ctx>, element: Element, a: V<'ctx>, b: V<'ctx>, c: V<'ctx>) -> V<'ctx> {
    if element.is_float() {
        return e.intrinsic("llvm.fma", &[c.get_type()], &[a, b, c]);
    }
    e.add(e.mul(a, b), c)
}
