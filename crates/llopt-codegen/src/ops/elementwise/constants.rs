//! Constants: numbers, splats, and tables.
//!
//! A splat is one LLVM constant for all registers. A table with different elements becomes constant
//! memory, from which each thread loads the elements of its registers.

use inkwell::AddressSpace;
use inkwell::module::Linkage;
use inkwell::types::BasicTypeEnum;
use inkwell::values::BasicValueEnum;
use llopt_mlir::ir::AttributeExt;
use llopt_plan::element::Element;
use llopt_plan::tensor::{TensorType, ValueType};
use melior::ir::attribute::{DenseElementsAttribute, FloatAttribute, IntegerAttribute};
use melior::ir::operation::OperationLike;
use melior::ir::{Attribute, OperationRef};

use crate::llvm::emitter::{Emitter, V};
use crate::values::element::LlvmType;
use crate::values::float8;
use crate::values::registers::Registers;
use crate::walk::function::{FunctionLowering, Lowered};

/// Constant memory: both vendors number it the same.
const CONSTANT_SPACE: u16 = 4;

/// `arith.constant`.
pub(crate) fn constant<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
) -> Lowered {
    let value = op
        .attribute("value")
        .map_err(|_| lowering.invalid(op, "it has no value"))?;
    let of = lowering.result_type(op)?;
    let element = of.element();
    let unknown = || lowering.unsupported(op, Some(format!("a constant of the form {value}")));
    let registers: Registers<'ctx> = match &of {
        ValueType::Scalar(_) => {
            vec![number(lowering.e, element, value).ok_or_else(unknown)?].into()
        }
        ValueType::Tensor(tensor) => {
            let dense = DenseElementsAttribute::try_from(value).map_err(|_| unknown())?;
            if dense.is_splat() {
                let number =
                    number(lowering.e, element, dense.splat_value()).ok_or_else(unknown)?;
                vec![number; tensor.registers()].into()
            } else {
                let numbers = table(lowering.e, element, value).ok_or_else(unknown)?;
                load_table(lowering, element, &numbers, tensor).into()
            }
        }
    };
    lowering.bind_result(op, registers);
    Ok(())
}

/// The LLVM constant of a number attribute.
fn number<'ctx>(e: &Emitter<'ctx>, element: Element, value: Attribute<'_>) -> Option<V<'ctx>> {
    if let Ok(integer) = IntegerAttribute::try_from(value) {
        let of = element.llvm(e.context);
        let BasicTypeEnum::IntType(of) = of else {
            return None;
        };
        return Some(of.const_int(integer.value() as u64, true).into());
    }
    let float = FloatAttribute::try_from(value).ok()?;
    Some(float_number(e, element, float.value()))
}

fn float_number<'ctx>(e: &Emitter<'ctx>, element: Element, value: f64) -> V<'ctx> {
    match element {
        Element::Float8(format) => e
            .int(8)
            .const_int(u64::from(float8::encode(format, value)), false)
            .into(),
        _ => e.float(element.llvm(e.context), value),
    }
}

/// All elements of a table, row-major.
fn table<'ctx>(e: &Emitter<'ctx>, element: Element, value: Attribute<'_>) -> Option<Vec<V<'ctx>>> {
    let of = element.llvm(e.context);
    let integer = |width: u32, bits: u64| V::from(e.int(width).const_int(bits, false));
    let elements = value.dense_bits()?.into_iter();
    elements
        .map(|bits| {
            Some(match element {
                Element::Int(1) => e.bool(bits & 1 == 1),
                Element::Int(width @ (8 | 16 | 32 | 64)) => integer(width, bits),
                Element::F32 => {
                    let single = f32::from_bits(u32::try_from(bits).ok()?);
                    float_number(e, element, f64::from(single))
                }
                Element::F64 => float_number(e, element, f64::from_bits(bits)),
                Element::F16 | Element::Bf16 => e.bitcast(integer(16, bits), of),
                Element::Float8(_) => integer(8, bits),
                Element::Int(_) | Element::Pointer { .. } => return None,
            })
        })
        .collect()
}

/// Puts a table into constant memory and loads this thread's elements.
fn load_table<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    element: Element,
    numbers: &[V<'ctx>],
    tensor: &TensorType,
) -> Vec<V<'ctx>> {
    let e = lowering.e;
    let of = element.llvm(e.context);
    // One-bit elements take a byte each.
    let stored = if element.bits() < 8 {
        e.int(8).into()
    } else {
        of
    };
    let values: Vec<V<'ctx>> = numbers
        .iter()
        .map(|number| e.zext(*number, stored))
        .collect();
    let data = match stored {
        BasicTypeEnum::IntType(int) => int.const_array(
            &values
                .iter()
                .copied()
                .map(BasicValueEnum::into_int_value)
                .collect::<Vec<_>>(),
        ),
        other => other.into_float_type().const_array(
            &values
                .iter()
                .copied()
                .map(BasicValueEnum::into_float_value)
                .collect::<Vec<_>>(),
        ),
    };
    let global = e.module.add_global(
        data.get_type(),
        Some(AddressSpace::from(CONSTANT_SPACE)),
        "table",
    );
    global.set_initializer(&data);
    global.set_constant(true);
    global.set_linkage(Linkage::Internal);
    let base = global.as_pointer_value().into();
    let indices = lowering.threads.elements(e, lowering.hooks(), tensor);
    lowering
        .map(&[indices.into()], |e, v| {
            let loaded = e.load(stored, e.gep(stored, base, v[0]), element.memory_bits() / 8);
            e.trunc(loaded, of)
        })
        .to_vec()
}
