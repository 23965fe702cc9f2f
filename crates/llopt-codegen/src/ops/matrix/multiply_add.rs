//! Products of matrices by multiply-adds: for elements and layouts that no matrix unit supports.
//!
//! Each thread computes its elements of the result, in the order of k. It must hold the rows of the first operand and
//! the columns of the second that these need, as it does with operand layouts of a blocked layout; the registers
//! follow from the linear layouts, as for a matrix unit whose tile is one element.
//!
//! Operands are widened to the accumulator's type first: products of eight and 16 bits are exact in `f32`.

use llopt_layout::matrix_product::{Matrices, NotDivisible, divide_among_threads};
use llopt_plan::element::Element;
use melior::ir::OperationRef;

use crate::llvm::emitter::{Emitter, V};
use crate::ops::elementwise::casts;
use crate::ops::matrix::instruction::Matrix;
use crate::targets::hooks::Rounding;
use crate::values::element::LlvmType;
use crate::values::registers::Registers;
use crate::walk::function::{FunctionLowering, Lowered};

/// The registers of a product by multiply-adds of each thread.
///
/// # Errors
/// A thread cannot compute its part of the result by itself, or an operand cannot be widened; the text says why.
pub(super) fn multiply_add<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    [a, b]: &[Matrix<'ctx>; 2],
    (of_sum, sum): &Matrix<'ctx>,
) -> Lowered<Result<Registers<'ctx>, NotDivisible>> {
    let tensors = Matrices {
        a: a.0.layout(),
        b: b.0.layout(),
        c: of_sum.layout(),
    };
    let division = match divide_among_threads(&tensors) {
        Ok(division) => division,
        Err(reason) => return Ok(Err(reason)),
    };
    let element = of_sum.element;
    let (a, b) = (
        widened(lowering, op, a, element)?,
        widened(lowering, op, b, element)?,
    );
    let mut sums: Vec<V<'ctx>> = division
        .tiles
        .iter()
        .map(|tile| sum[tile[0] as usize])
        .collect();
    let register = |part: &[Option<u32>]| part.first().copied().flatten().unwrap_or(0) as usize;
    for step in &division.steps {
        let left = a[register(&division.a[step.a as usize])];
        let right = b[register(&division.b[step.b as usize])];
        let sum = &mut sums[step.tile as usize];
        *sum = fused(lowering.e, element, left, right, *sum);
    }
    let results = division.results.iter();
    Ok(Ok(results.map(|(tile, _)| sums[*tile as usize]).collect()))
}

/// The registers of an operand in the type of the accumulator.
fn widened<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    (of, values): &Matrix<'ctx>,
    to: Element,
) -> Lowered<Registers<'ctx>> {
    match (of.element, to) {
        (Element::Int(narrow), Element::Int(wide)) if narrow < wide => {
            let to = to.llvm(lowering.e.context);
            Ok(lowering.map(std::slice::from_ref(values), |e, v| e.sext(v[0], to)))
        }
        (Element::Int(_), Element::Int(_)) => Ok(values.clone()),
        (_, Element::Int(_)) => {
            let reason = "it adds products of floats to integers";
            Err(lowering.unsupported(op, Some(reason.to_owned())))
        }
        (Element::Int(_), _) => {
            let reason = "it adds products of integers to floats";
            Err(lowering.unsupported(op, Some(reason.to_owned())))
        }
        (from, _) => casts::convert(lowering, op, from, to, Rounding::NearestEven, values),
    }
}

/// `a * b + c`, rounded once.
fn fused<'ctx>(e: &Emitter<'ctx>, element: Element, a: V<'ctx>, b: V<'ctx>, c: V<'ctx>) -> V<'ctx> {
    if element.is_float() {
        return e.intrinsic("llvm.fma", &[c.get_type()], &[a, b, c]);
    }
    e.add(e.mul(a, b), c)
}
