//! `tt.print` and `tt.assert`.
//!
//! A print shows one line per element, with the program's position and the element's; the text is Triton's,
//! so that its tests read ours. A scalar is printed by each thread.

use llopt_dialects::tt;
use llopt_plan::element::Element;
use llopt_plan::tensor::ValueType;
use melior::ir::Value;
use melior::ir::operation::OperationLike;

use crate::llvm::emitter::V;
use crate::ops::elementwise::tile;
use crate::targets::hooks::SourcePlace;
use crate::walk::function::{FunctionLowering, Lowered};
use crate::walk::location::place;

/// The most arguments that a print call of NVIDIA's driver reads.
const MAX_ARGUMENTS: usize = 32;

/// The conversion for one printed value.
fn conversion(element: Element, hex: bool, width: Option<usize>, signed: bool) -> String {
    if matches!(element, Element::Pointer { .. }) {
        return "%p".to_owned();
    }
    if hex {
        let length = if element.bits() > 32 { "ll" } else { "" };
        return format!("%0{}{length}x", element.bits() / 4).replacen('%', "0x%", 1);
    }
    let width = width.map_or_else(String::new, |width| width.to_string());
    match element {
        Element::F16 | Element::Bf16 | Element::F32 | Element::F64 => format!("%{width}f"),
        _ if element.bits() == 64 => format!("%{width}{}", if signed { "lli" } else { "llu" }),
        _ => format!("%{width}{}", if signed { "i" } else { "u" }),
    }
}

/// `tt.print`.
pub(crate) fn print<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: tt::PrintOp<'_, '_>,
) -> Lowered {
    let (e, hooks) = (lowering.e, lowering.hooks());
    let program: Vec<(V<'ctx>, bool)> = (0..3)
        .map(|axis| {
            (
                hooks.program_id(e, axis, lowering.program.blocks_per_cluster()),
                false,
            )
        })
        .collect();
    let arguments = op.args();
    if arguments.is_empty() {
        let text = format!("pid (%u, %u, %u){}\n", op.prefix());
        hooks.print(
            e,
            e.string(&text, "printfFormat_"),
            text.len() + 1,
            &program,
        );
        return Ok(());
    }
    for (number, value) in arguments.into_iter().enumerate() {
        print_operand(lowering, op, (number, value), &program)?;
    }
    Ok(())
}

/// Prints one operand, each element by itself: the number of the program, the element's position, and its value.
fn print_operand<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: tt::PrintOp<'_, '_>,
    (number, value): (usize, Value<'_, '_>),
    program: &[(V<'ctx>, bool)],
) -> Lowered {
    let (e, hooks) = (lowering.e, lowering.hooks());
    let of = lowering.type_of(value)?;
    let signed = op.is_signed().get(number).is_some_and(|sign| *sign > 0);
    let registers = lowering.registers(value);
    let (extents, coordinates) = match &of {
        ValueType::Scalar(_) => (Vec::new(), Vec::new()),
        ValueType::Tensor(tensor) => {
            let all = (0..tensor.shape.len())
                .map(|dim| lowering.threads.coordinates(e, hooks, tensor, dim))
                .collect::<Vec<_>>();
            (tensor.shape.clone(), all)
        }
    };
    let rank = extents.len().min(MAX_ARGUMENTS - 5);
    let mut places: Vec<String> = extents[..rank]
        .iter()
        .map(|extent| conversion(Element::Int(32), false, Some(digits(*extent)), false))
        .collect();
    if rank < extents.len() {
        places.push("... (truncated)".to_owned());
    }
    let which = if op.args().len() > 1 {
        format!("(operand {number}) ")
    } else {
        String::new()
    };
    let text = format!(
        "pid (%u, %u, %u) idx ({}){}{which}{}\n",
        places.join(", "),
        op.prefix(),
        conversion(of.element(), op.hex(), None, signed)
    );
    let format = e.string(&text, "printfFormat_");
    // Of the threads that hold the same elements, one prints them; every thread prints a scalar.
    let acts = match &of {
        ValueType::Scalar(_) => None,
        ValueType::Tensor(tensor) => lowering.threads.acts_for_copies(e, hooks, tensor),
    };
    let after = acts.map(|acts| {
        let function = e.function();
        let (prints, after) = (e.new_block(function), e.new_block(function));
        e.branch_if(acts, prints, after);
        e.enter(prints);
        after
    });
    for register in of.distinct_registers().collect::<Vec<_>>() {
        let mut values = program.to_vec();
        values.extend(
            coordinates[..rank]
                .iter()
                .map(|along| (along[register], signed)),
        );
        values.push((registers[register], signed));
        hooks.print(e, format, text.len() + 1, &values);
    }
    if let Some(after) = after {
        e.branch(after);
        e.enter(after);
    }
    Ok(())
}

/// `tt.assert`: a thread that holds a false element reports it and stops the kernel.
pub(crate) fn assertion<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: tt::AssertOp<'_, '_>,
) -> Lowered {
    let (e, hooks) = (lowering.e, lowering.hooks());
    let registers = lowering.registers(op.condition());
    let mut holds: Option<V<'ctx>> = None;
    for register in lowering
        .type_of(op.condition())?
        .distinct_registers()
        .collect::<Vec<_>>()
    {
        let value = tile::is_nonzero(e, registers[register]);
        holds = Some(holds.map_or(value, |so_far| e.and(so_far, value)));
    }
    let Some(holds) = holds else { return Ok(()) };
    let function = e.function();
    let (fails, after) = (e.new_block(function), e.new_block(function));
    e.branch_if(holds, after, fails);
    e.enter(fails);
    let here = place(op.operation().location());
    let file = here.as_ref().map_or("unknown", |place| &place.file);
    hooks.assert_fail(
        e,
        op.message(),
        SourcePlace {
            file,
            line: here.as_ref().map_or(0, |place| place.line),
        },
    );
    e.branch(after);
    e.enter(after);
    if registers.len() > 1 || matches!(lowering.type_of(op.condition())?, ValueType::Tensor(_)) {
        // The next op may trap in a thread before its neighbours have reported.
        lowering.barrier();
    }
    Ok(())
}

/// Decimal digits of the largest coordinate of an extent.
fn digits(extent: u32) -> usize {
    if extent == 0 {
        0
    } else {
        f64::from(extent).log10().ceil() as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_are_those_of_c() {
        assert_eq!(conversion(Element::Int(32), false, None, true), "%i");
        assert_eq!(conversion(Element::Int(64), false, Some(3), false), "%3llu");
        assert_eq!(conversion(Element::F16, true, None, false), "0x%04x");
        assert_eq!(conversion(Element::Int(64), true, None, false), "0x%016llx");
        assert_eq!(conversion(Element::Bf16, false, None, false), "%f");
    }
}
