//! `ttg.fp4_to_fp`: pairs of 4-bit floats (e2m1, OCP MX) in bytes to wider floats.
//!
//! The lower half of a byte comes first along the axis. Seven of the eight magnitudes are a linear function of the
//! code: in the wider format the numbers from 1 on are consecutive half steps of the exponent, as their codes are; a
//! half and zero are multiples of the code.

use inkwell::IntPredicate;
use llopt_dialects::ttg;
use llopt_plan::element::Element;
use llopt_plan::tensor::TensorType;
use melior::ir::OperationRef;

use crate::llvm::emitter::{Emitter, V};
use crate::ops::elementwise::casts;
use crate::targets::hooks::{Hooks, Rounding, SmallFloat};
use crate::values::element::LlvmType;
use crate::values::registers::Registers;
use crate::values::words::packed;
use crate::walk::function::{FunctionLowering, Lowered};

/// `ttg.fp4_to_fp`.
pub(crate) fn unpack(
    lowering: &mut FunctionLowering<'_, '_>,
    op: ttg::Fp4ToFpOp<'_, '_>,
) -> Lowered {
    let operation = op.operation();
    let from = lowering.tensor_of(operation, op.src())?;
    let to = lowering.tensor_of(operation, op.result())?;
    let axis = usize::try_from(op.axis()).unwrap_or(usize::MAX);
    if axis >= to.shape.len() {
        return Err(lowering.invalid(operation, "it has no such axis"));
    }
    let bytes = lowering.registers(op.src());
    let values = values(lowering, operation, &from, &to, to.element, axis, &bytes)?;
    lowering.bind_result(operation, values);
    Ok(())
}

/// The values of pairs of 4-bit floats along `axis`, in the registers of `to`, as another type.
pub(crate) fn values<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    operation: OperationRef<'_, '_>,
    from: &TensorType,
    to: &TensorType,
    element: Element,
    axis: usize,
    pairs: &Registers<'ctx>,
) -> Lowered<Vec<V<'ctx>>> {
    let places = byte_registers(from, to, axis).ok_or_else(|| {
        let reason = "a byte and its two values are in different threads";
        lowering.unsupported(operation, Some(reason.to_owned()))
    })?;
    let e = lowering.e;
    if let Some(values) = looked_up(lowering, from, to, element, axis, &places, pairs) {
        return Ok(values);
    }
    if element == Element::F32 {
        // A bf16 has the exponents of an f32.
        let values = values(lowering, operation, from, to, Element::Bf16, axis, pairs)?;
        let rounding = Rounding::NearestEven;
        let singles = casts::convert(
            lowering,
            operation,
            Element::Bf16,
            Element::F32,
            rounding,
            &values.into(),
        )?;
        return Ok(singles.to_vec());
    }
    // The exponent of one half, in its position, and the lowest bit of the code's mantissa, in its position.
    let (half, step) = match element {
        Element::F16 => (0x3800, 0x200),
        Element::Bf16 => (0x3f00, 0x40),
        _ => {
            let reason = "4-bit floats become f16 or bf16";
            return Err(lowering.unsupported(operation, Some(reason.to_owned())));
        }
    };
    let bits = element.memory_bits();
    let word = e.int(bits.max(16)).into();
    let coordinates = lowering.threads.coordinates(e, lowering.hooks(), to, axis);
    let constant = |value: i64| e.int(bits).const_int(value as u64, false).into();
    let values: Vec<V<'ctx>> = places
        .iter()
        .zip(coordinates)
        .enumerate()
        .map(|(value, (register, coordinate))| {
            if lowering.late.leaves_out(value, places.len()) {
                return e.poison(element.llvm(e.context));
            }
            let pair = e.zext(pairs[*register as usize], word);
            let second = e.and(coordinate, e.i32(1));
            let shift = e.shl(second, e.i32(2));
            let shift = if bits < 32 {
                e.trunc(shift, word)
            } else {
                shift
            };
            let code = e.lshr(pair, shift);
            let magnitude = e.and(code, constant(7));
            let small = e.icmp(IntPredicate::ULT, magnitude, constant(2));
            let line = e.add(e.mul(magnitude, constant(step)), constant(half));
            let value = e.select(small, e.mul(magnitude, constant(half)), line);
            let sign = e.shl(e.and(code, constant(8)), constant(i64::from(bits) - 4));
            e.bitcast(e.or(value, sign), element.llvm(e.context))
        })
        .collect();
    Ok(values)
}

/// The same in words of eight codes, if the target has a table lookup and all threads agree which half of a byte a
/// register holds. `places` are the bytes' registers.
fn looked_up<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    from: &TensorType,
    to: &TensorType,
    element: Element,
    axis: usize,
    places: &[u32],
    bytes: &Registers<'ctx>,
) -> Option<Vec<V<'ctx>>> {
    let halves = halves_of(to, axis)?;
    let mut is_wanted = vec![false; from.registers()];
    for (value, place) in places.iter().enumerate() {
        is_wanted[from.canonical(*place as usize)] |=
            !lowering.late.leaves_out(value, places.len());
    }
    let distinct: Vec<usize> = (0..from.registers())
        .filter(|register| is_wanted[*register])
        .collect();
    let mut values = vec![None; 2 * from.registers()];
    for four in distinct.chunks(4) {
        let of_word: Vec<V<'ctx>> = four.iter().map(|register| bytes[*register]).collect();
        let word = *packed(lowering.e, lowering.hooks(), &of_word, of_word.len()).first()?;
        let codes = lowering.hooks().widen_fp4(lowering.e, word, element)?;
        for (register, pair) in four.iter().zip(codes.chunks(2)) {
            values[2 * register] = pair.first().copied();
            values[2 * register + 1] = pair.get(1).copied();
        }
    }
    places
        .iter()
        .zip(halves)
        .map(|(place, half)| {
            let place = from.canonical(*place as usize);
            match is_wanted[place] {
                true => values[2 * place + half],
                false => Some(lowering.e.poison(element.llvm(lowering.e.context))),
            }
        })
        .collect()
}

/// The values times their scales, by an instruction that does both, if the two values of a byte have the same scale.
/// `scales` are the registers from which `factors`, in `f32`, were computed.
pub(crate) fn scaled<'ctx>(
    e: &Emitter<'ctx>,
    hooks: &dyn Hooks,
    from: &TensorType,
    to: &TensorType,
    axis: usize,
    bytes: &Registers<'ctx>,
    [scales, factors]: [&Registers<'ctx>; 2],
) -> Option<Vec<V<'ctx>>> {
    let halves = halves_of(to, axis)?;
    let places = byte_registers(from, to, axis)?;
    let places: Vec<usize> = places
        .into_iter()
        .map(|place| from.canonical(place as usize))
        .collect();
    // The register that has the scale of each byte.
    let mut scaled_by: Vec<Option<usize>> = vec![None; from.registers()];
    for (register, place) in places.iter().enumerate() {
        let first = *scaled_by[*place].get_or_insert(register);
        if scales[first] != scales[register] {
            return None;
        }
    }
    let distinct: Vec<usize> = (0..from.registers())
        .filter(|register| scaled_by[*register].is_some())
        .collect();
    let mut values = vec![None; from.registers()];
    for four in distinct.chunks(4) {
        let of_word: Vec<V<'ctx>> = four.iter().map(|register| bytes[*register]).collect();
        let word = *packed(e, hooks, &of_word, of_word.len()).first()?;
        for (place, register) in four.iter().enumerate() {
            let factor = factors[scaled_by[*register]?];
            let kind = SmallFloat::E2m1;
            let pair = hooks.widen_scaled_pair(e, kind, word, place as u32, factor, to.element)?;
            values[*register] = Some(e.unpack(pair));
        }
    }
    places
        .iter()
        .zip(halves)
        .map(|(place, half)| values[*place].as_ref()?.get(half).copied())
        .collect()
}

/// For each register of values the register with its byte, for pairs along `axis`; `None` if that is in another
/// thread.
pub(crate) fn byte_registers(from: &TensorType, to: &TensorType, axis: usize) -> Option<Vec<u32>> {
    let (low, _) = to.bits_of_dim(axis);
    from.rename_to(to, |number| byte_of(number, low))
}

/// The row-major number of a byte, from that of one of its values; the axis begins at the bit `low`.
fn byte_of(number: u32, low: u32) -> u32 {
    let below = number & ((1 << low) - 1);
    below | number >> (low + 1) << low
}

/// Which half of its byte each register's value is, if all threads agree.
fn halves_of(to: &TensorType, axis: usize) -> Option<Vec<usize>> {
    let (low, _) = to.bits_of_dim(axis);
    let half = |number: u32| (number >> low & 1) as usize;
    let agree = to
        .thread_bases()
        .iter()
        .chain(to.block_bases())
        .all(|basis| half(*basis) == 0);
    agree.then(|| {
        let registers = 0..to.registers();
        registers
            .map(|register| half(to.element_in(register)))
            .collect()
    })
}
