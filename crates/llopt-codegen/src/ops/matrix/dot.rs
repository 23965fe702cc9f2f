//! `tt.dot`: executions of a matrix instruction of the target.
//!
//! Which instruction, and which registers each execution of it takes, is decided from the layouts of the three
//! matrices ([`llopt_plan::product`]).

use llopt_dialects::tt;
use llopt_layout::matrix_product::Matrices;
use llopt_plan::product::{Problem, unit_elements};

use crate::ops::matrix::instruction::{self, Factor, Factors};
use crate::ops::matrix::otherwise;
use crate::walk::function::{FunctionLowering, Lowered};

/// `tt.dot`.
pub(crate) fn dot(lowering: &mut FunctionLowering<'_, '_>, op: tt::DotOp<'_, '_>) -> Lowered {
    let operation = op.operation();
    let mut factors = Factors {
        matrices: [
            Factor::of(lowering, operation, op.a())?,
            Factor::of(lowering, operation, op.b())?,
        ],
        packed: [1; 2],
        sum: (
            lowering.tensor_of(operation, op.c())?,
            lowering.registers(op.c()),
        ),
        scales: None,
    };
    let ([a, b], c) = (&factors.matrices, &factors.sum);
    let rounds = op.input_precision() == tt::InputPrecision::Tf32;
    let problem = Problem {
        layouts: Matrices {
            a: a.of.layout(),
            b: b.of.layout(),
            c: c.0.layout(),
        },
        a: unit_elements(a.of.element, rounds),
        b: unit_elements(b.of.element, rounds),
        c: unit_elements(c.0.element, false),
    };
    let target = lowering.hooks().target();
    let Some(unit) = lowering.hooks().matrices() else {
        return otherwise::product(lowering, op, factors, None);
    };
    match problem.select_unless_by_threads(target) {
        Ok(selection) => {
            let values = instruction::product(lowering, operation, unit, &selection, &mut factors)?;
            lowering.bind_result(operation, values);
            Ok(())
        }
        Err(reason) => otherwise::product(lowering, op, factors, reason),
    }
}
