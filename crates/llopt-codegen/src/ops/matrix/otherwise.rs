//! Products that no matrix instruction takes as they are.
//!
//! Operands of few bits are numbers of wider formats too: eight-bit floats are halves and bfloat16, and all of these
//! are `tf32`. Widened in registers, a unit may be able to multiply them, with the same result
//! ([`llopt_plan::product::widened`]). The remaining products are computed by multiply-adds.

use std::rc::Rc;

use llopt_dialects::tt;
use llopt_layout::matrix_product::{Matrices, NotDivisible};
use llopt_plan::element::Element;
use llopt_plan::product;
use melior::ir::OperationRef;

use crate::ops::elementwise::casts;
use crate::ops::matrix::instruction::{self, Factor, Factors};
use crate::ops::matrix::multiply_add;
use crate::targets::hooks::Rounding;
use crate::walk::function::{FunctionLowering, Lowered};

/// `tt.dot` of matrices that no instruction takes as they are: for `reason`, or because no instruction has such
/// elements.
pub(super) fn product<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    dot: tt::DotOp<'_, '_>,
    mut factors: Factors<'_, '_, 'ctx>,
    reason: Option<NotDivisible>,
) -> Lowered {
    let op = dot.operation();
    let of = [0, 1].map(|operand| Rc::clone(&factors.matrices[operand].of));
    let of_sum = Rc::clone(&factors.sum.0);
    let layouts = Matrices {
        a: of[0].layout(),
        b: of[1].layout(),
        c: of_sum.layout(),
    };
    let narrow = [of[0].element, of[1].element];
    let target = lowering.hooks().target();
    if let Some(unit) = lowering.hooks().matrices()
        && let Some((wide, selection)) = product::widened(layouts, narrow, of_sum.element, target)
    {
        for factor in &mut factors.matrices {
            *factor = widened(lowering, op, factor, wide)?;
        }
        let values = instruction::product(lowering, op, unit, &selection, &mut factors)?;
        lowering.bind_result(op, values);
        return Ok(());
    }
    match multiply_add::multiply_add(lowering, op, &mut factors)? {
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

/// All of an operand, as elements of a wider type.
fn widened<'c, 'a, 'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    factor: &mut Factor<'c, 'a, 'ctx>,
    wide: Element,
) -> Lowered<Factor<'c, 'a, 'ctx>> {
    let (of, values) = instruction::whole(lowering, factor)?;
    let exact = Rounding::NearestEven;
    let values = casts::convert(lowering, op, of.element, wide, exact, &values)?;
    let mut wider = (*of).clone();
    wider.element = wide;
    Ok(Factor::emitted((Rc::new(wider), values)))
}
