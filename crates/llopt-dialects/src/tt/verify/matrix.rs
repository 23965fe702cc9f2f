//! Verifiers of the matrix products.

use super::{Verified, bits, tensor};
use crate::{
    check::infer::complaint,
    check::infer::encoding_of,
    layout::encoding::Encoding,
    tables::access,
    tables::type_set::TypeSet,
    tables::types::class_of,
    tt::{DotOp, DotScaledOp, InputPrecision, ScaleDotElemType},
};
use llopt_mlir::diagnostic::Complaint;
use melior::Context;

/// Shapes of a matrix product, with a factor on K and on M or N for packed operands.
pub(crate) fn product_shapes(a: &[i64], b: &[i64], c: &[i64], packing: [i64; 4]) -> Verified {
    let rank = c.len();
    if rank != 2 && rank != 3 {
        return Err(Complaint::new(format!(
            "a matrix product has two dimensions, or three with a batch; the result has shape {c:?}"
        )));
    }
    if a.len() != rank || b.len() != rank {
        return Err(Complaint::new(format!(
            "operands and result must have one rank, but have shapes {a:?}, {b:?} and {c:?}"
        )));
    }
    let [a_m, a_k, b_k, b_n] = packing;
    let (k_left, k_right) = (a[rank - 1] * a_k, b[rank - 2] * b_k);
    if k_left != k_right {
        return Err(Complaint::new(format!(
            "K is {k_left} in the left operand {a:?} and {k_right} in the right one {b:?}"
        )));
    }
    if rank == 3 && (a[0] != c[0] || b[0] != c[0]) {
        return Err(Complaint::new(format!(
            "the batch extents differ: {}, {} and {}",
            a[0], b[0], c[0]
        )));
    }
    let (m, n) = (a[rank - 2] * a_m, b[rank - 1] * b_n);
    if m != c[rank - 2] || n != c[rank - 1] {
        return Err(Complaint::new(format!(
            "the operands give a product of {m}x{n}, the result has shape {c:?}"
        )));
    }
    Ok(())
}

/// Shapes fit; operands are equally wide; with layouts, the operands' are those of operands of
/// the result's layout.
pub fn dot(operation: DotOp<'_, '_>) -> Verified {
    let a = tensor(operation.a())?;
    let b = tensor(operation.b())?;
    let c = tensor(operation.c())?;
    product_shapes(&a.shape(), &b.shape(), &c.shape(), [1; 4])?;
    if bits(a.element()) != bits(b.element()) {
        return Err(Complaint::new(format!(
            "the operands must have elements of one width, but have '{}' and '{}'",
            a.element(),
            b.element()
        )));
    }
    let encodings = [a, b, c].map(encoding_of);
    let [left, right, product] = encodings;
    match (
        left.map_err(complaint)?,
        right.map_err(complaint)?,
        product.map_err(complaint)?,
    ) {
        (None, None, _) => Ok(()),
        (Some(left), Some(right), Some(product)) => {
            if let Encoding::NvidiaMma(mma) = &product
                && mma.version_major == 2
                && class_of(a.element()) == TypeSet::F32
                && operation.input_precision() != InputPrecision::Tf32
            {
                return Err(Complaint::new(
                    "f32 operands of version 2 of #ttg.nvidia_mma need inputPrecision = tf32",
                ));
            }
            let context = access::context(operation.operation());
            operand_layouts(&left, &right, &product, context)
        }
        (a, b, c) => Err(Complaint::new(format!(
            "operands and accumulator must all have a layout; missing: {}",
            [("a", a), ("b", b), ("c", c)]
                .into_iter()
                .filter(|(_, encoding)| encoding.is_none())
                .map(|(name, _)| name)
                .collect::<Vec<_>>()
                .join(", ")
        ))),
    }
}

fn operand_layouts(a: &Encoding, b: &Encoding, c: &Encoding, context: &Context) -> Verified {
    let mut widths = Vec::new();
    for (index, (name, encoding)) in [("a", a), ("b", b)].into_iter().enumerate() {
        let Encoding::DotOperand(operand) = encoding else {
            continue;
        };
        if operand.op_idx as usize != index {
            return Err(Complaint::new(format!(
                "operand `{name}` has a layout with opIdx = {}; it must be {index}",
                operand.op_idx
            )));
        }
        if *operand.parent != *c {
            return Err(Complaint::new(format!(
                "operand `{name}` is laid out for a product in the layout {}, the result has {}",
                operand.parent.to_attribute(context),
                c.to_attribute(context)
            )));
        }
        widths.push(operand.k_width);
    }
    match widths[..] {
        [left, right] if left != right => Err(Complaint::new(format!(
            "the operands' layouts have kWidth {left} and {right}; they must agree"
        ))),
        [_] => Err(Complaint::new(
            "one operand has a layout of operands, the other has not",
        )),
        _ => Ok(()),
    }
}

/// Shapes fit, packing included; scales have one entry per M or N and per group along K.
pub fn dot_scaled(operation: DotScaledOp<'_, '_>) -> Verified {
    let a = tensor(operation.a())?.shape();
    let b = tensor(operation.b())?.shape();
    let c = tensor(operation.c())?.shape();
    let packed = |kind: ScaleDotElemType, along_k: bool| match (kind, along_k) {
        (ScaleDotElemType::E2m1, true) => (2, 1),
        (ScaleDotElemType::E2m1, false) => (1, 2),
        _ => (1, 1),
    };
    let (a_k, a_m) = packed(operation.a_elem_type(), operation.lhs_k_pack());
    let (b_k, b_n) = packed(operation.b_elem_type(), operation.rhs_k_pack());
    product_shapes(&a, &b, &c, [a_m, a_k, b_k, b_n])?;
    let rank = c.len();
    let k = a[rank - 1] * a_k;
    for (name, scale, extent, what) in [
        ("a_scale", operation.a_scale(), c[rank - 2], "M"),
        ("b_scale", operation.b_scale(), c[rank - 1], "N"),
    ] {
        let Some(scale) = scale else { continue };
        let scale = tensor(scale)?;
        let shape = scale.shape();
        if shape.len() != rank {
            return Err(Complaint::new(format!(
                "`{name}` has rank {}, the operands {rank}",
                shape.len()
            )));
        }
        if shape[rank - 2] != extent {
            return Err(Complaint::new(format!(
                "`{name}` has {} rows, {what} is {extent}",
                shape[rank - 2]
            )));
        }
        let group = if class_of(scale.element()) == TypeSet::F8E4M3FN {
            16
        } else {
            32
        };
        if shape[rank - 1] != k / group {
            return Err(Complaint::new(format!(
                "`{name}` has {} scales along K; K of {k} in groups of {group} needs {}",
                shape[rank - 1],
                k / group
            )));
        }
    }
    Ok(())
}
