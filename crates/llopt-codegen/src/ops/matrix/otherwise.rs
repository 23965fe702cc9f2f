//! Products that no matrix instruction takes as they are.
//!
//! Operands of few bits are numbers of wider formats too: eight-bit floats are halves and bfloat16, and all of these
//! are `tf32`. Widened in registers, a unit may be able to multiply them, with the same result. The remaining
//! products are computed by multiply-adds.

use std::rc::Rc;

use llopt_dialects::tt;
use llopt_layout::matrix_product::{Matrices, NotDivisible};
use llopt_plan::element::Element;
use llopt_plan::product::Problem;
use llopt_plan::tensor::TensorType;

use crate::ops::elementwise::casts;
use crate::ops::matrix::instruction::{self, Factor, Factors, unit_elements};
use crate::ops::matrix::multiply_add;
use crate::targets::hooks::Rounding;
use crate::walk::function::{FunctionLowering, Lowered};

/// Whether every number of one type is one of the other, among the types of operands; in `f32` also of `tf32`.
fn holds(wide: Element, narrow: Element) -> bool {
    match (wide, narrow) {
        (Element::F16 | Element::Bf16 | Element::F32, Element::Float8(_))
        | (Element::F32, Element::F16 | Element::Bf16) => true,
        _ => wide == narrow && wide != Element::F32,
    }
}

/// `tt.dot` of matrices that no instruction takes as they are: for `reason`, or because no instruction has such
/// elements.
pub(super) fn product<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    dot: tt::DotOp<'_, '_>,
    mut factors: Factors<'_, '_, 'ctx>,
    reason: Option<NotDivisible>,
) -> Lowered {
    let op = dot.operation();
    let [a, b] = &mut factors.matrices;
    let matrices = [
        instruction::whole(lowering, a)?,
        instruction::whole(lowering, b)?,
    ];
    let [(of_a, a), (of_b, b)] = &matrices;
    let sum = &factors.sum;
    let narrow = [of_a.element, of_b.element];
    for wide in [Element::F16, Element::Bf16, Element::F32] {
        let changes = narrow.iter().any(|element| *element != wide);
        if !changes || !narrow.iter().all(|element| holds(wide, *element)) {
            continue;
        }
        let Some(unit) = lowering.hooks().matrices() else {
            break;
        };
        let problem = Problem {
            layouts: Matrices {
                a: of_a.layout(),
                b: of_b.layout(),
                c: sum.0.layout(),
            },
            a: unit_elements(wide, true),
            b: unit_elements(wide, true),
            c: unit_elements(sum.0.element, false),
        };
        let found = problem.select(lowering.hooks().target(), |row| row.scale.is_none());
        if let Ok(selection) = found {
            let exact = Rounding::NearestEven;
            let of = |narrow: &TensorType| {
                let mut wider = narrow.clone();
                wider.element = wide;
                Rc::new(wider)
            };
            let widened = [
                (
                    of(of_a),
                    casts::convert(lowering, op, narrow[0], wide, exact, a)?,
                ),
                (
                    of(of_b),
                    casts::convert(lowering, op, narrow[1], wide, exact, b)?,
                ),
            ];
            factors.matrices = widened.map(Factor::emitted);
            let values = instruction::product(lowering, op, unit, &selection, &mut factors)?;
            lowering.bind_result(op, values);
            return Ok(());
        }
    }
    match multiply_add::multiply_add(lowering, op, &matrices, sum)? {
        Ok(values) => {
            lowering.bind_result(op, values);
            Ok(())
        }
        Err(alone) => {
            let unit = match reason {
                Some(reason) => format!("no matrix instruction fits these layouts: {reason}"),
                None => "no matrix instruction has these elements".to_owned(),
            };
            let reason = format!("{unit}; threads by themselves: {alone}");
            Err(lowering.unsupported(op, Some(reason)))
        }
    }
}
