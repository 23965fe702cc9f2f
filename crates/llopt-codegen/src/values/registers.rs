//! The registers of a value.

use std::rc::Rc;

use inkwell::types::BasicTypeEnum;

use crate::llvm::emitter::{Emitter, V, bit_width};

/// The LLVM values that carry one source value: one per register, or one for a scalar.
pub(crate) type Registers<'ctx> = Rc<[V<'ctx>]>;

/// The narrowest register.
const HALF: u32 = 16;

/// The integers in the registers that a value of integers or floats occupies, of 16 or of 32 bits each; none for other
/// values, and for truth values.
pub(crate) fn occupied<'ctx>(e: &Emitter<'ctx>, value: V<'ctx>) -> Vec<V<'ctx>> {
    let Some((bits, width)) = occupies(value.get_type()) else {
        return Vec::new();
    };
    let whole = || e.bitcast(value, e.int(bits).into());
    match bits / width {
        0 => vec![e.zext(whole(), e.int(width).into())],
        1 => vec![whole()],
        several => {
            let registers = e.bitcast(value, e.vector(e.int(width).into(), several).into());
            let all = (0..several).map(|index| e.extract(registers, index));
            all.collect()
        }
    }
}

/// The value that has these contents in the registers of another one.
pub(crate) fn in_place_of<'ctx>(e: &Emitter<'ctx>, other: V<'ctx>, contents: &[V<'ctx>]) -> V<'ctx> {
    let of = other.get_type();
    let Some((bits, width)) = occupies(of) else {
        return other;
    };
    let packed = e.pack(contents);
    match bits < width {
        true => e.bitcast(e.trunc(packed, e.int(bits).into()), of),
        false => e.bitcast(packed, of),
    }
}

/// The bits of a value of a type, and those of each register that it occupies.
fn occupies(of: BasicTypeEnum<'_>) -> Option<(u32, u32)> {
    let is_numeric = |of: BasicTypeEnum<'_>| {
        matches!(of, BasicTypeEnum::IntType(_) | BasicTypeEnum::FloatType(_))
    };
    let is_register = match of {
        BasicTypeEnum::VectorType(vector) => is_numeric(vector.get_element_type()),
        other => is_numeric(other),
    };
    let bits = bit_width(of);
    let width = match bits {
        32.. if bits % u32::BITS == 0 => u32::BITS,
        16.. if bits % HALF == 0 => HALF,
        ..HALF => HALF,
        _ => return None,
    };
    (is_register && bits > 1).then_some((bits, width))
}
