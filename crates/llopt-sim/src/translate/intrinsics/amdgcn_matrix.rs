//! AMD's matrix intrinsics: `mfma` of the CDNA chips, `wmma` of the RDNA chips.
//!
//! The shape and types are in the name, in two spellings (`16x16x16f16` and `16x16x32.f16`); the type of the operand
//! gives the number of elements of a lane, from which the number of independent products (blocks) follows.

use llopt_target::Feature;

use crate::error::{Decoded, Unknown};
use crate::machine::bytecode::{Collective, Slot};
use crate::translate::emit::Emitter;
use crate::units::matrix::{Deal, Element, Field, Fragment, Matrix, Scales};

use super::Invocation;

/// Translates `llvm.amdgcn.<name>` if it is a matrix product.
pub(super) fn translate(
    e: &mut Emitter<'_>,
    name: &str,
    call: &Invocation<'_>,
) -> Decoded<Option<Vec<Slot>>> {
    if let Some(rest) = name.strip_prefix("mfma.scale.") {
        return scaled_mfma(e, rest, call).map(Some);
    }
    if let Some(rest) = name.strip_prefix("mfma.") {
        return mfma(e, rest, call).map(Some);
    }
    if let Some(rest) = name.strip_prefix("wmma.") {
        return wmma(e, rest, call).map(Some);
    }
    Ok(None)
}

/// `MxNxK` at the beginning of a text, and what follows.
fn shape(text: &str) -> Option<([usize; 3], &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != 'x')
        .unwrap_or(text.len());
    let mut numbers = text[..end].split('x').map(str::parse);
    let mut next = || numbers.next()?.ok();
    Some(([next()?, next()?, next()?], &text[end..]))
}

fn element(e: &Emitter<'_>, name: &str) -> Option<Element> {
    let fnuz = e.target.has(Feature::Fp8FnuzConvert);
    Some(match name {
        "f16" => Element::F16,
        "bf16" => Element::BF16,
        "f32" => Element::F32,
        "xf32" => Element::TF32,
        "f64" => Element::F64,
        "i8" => Element::Signed(8),
        "i32" => Element::Signed(32),
        "fp8" if fnuz => Element::E4M3Fnuz,
        "bf8" if fnuz => Element::E5M2Fnuz,
        "fp8" => Element::E4M3,
        "bf8" => Element::E5M2,
        _ => return None,
    })
}

/// Elements of an operand as bit fields of its leaves.
fn fragment(
    call: &Invocation<'_>,
    index: usize,
    element: Element,
    deal: Deal,
) -> Decoded<Fragment> {
    let argument = call.argument(index)?;
    let register = argument.leaves.first().map_or(0, |l| l.bits);
    if register < element.bits() {
        return Err(call.unknown());
    }
    Ok(Fragment::packed(element, deal, &argument.slots, register))
}

/// Pushes the product; D starts as a copy of C where C is wider than the written bits.
fn product(
    e: &mut Emitter<'_>,
    call: &Invocation<'_>,
    mut matrix: Matrix,
    c: &[Slot],
) -> Decoded<Vec<Slot>> {
    let result = e.slots(call.result.len());
    if result.len() != c.len() {
        return Err(call.unknown());
    }
    for (&to, &from) in result.iter().zip(c) {
        e.copy(to, from);
    }
    matrix.d = matrix
        .c
        .fields
        .iter()
        .map(|field| {
            let index = c.iter().position(|&slot| slot == field.slot).unwrap_or(0);
            Field {
                slot: result[index],
                ..*field
            }
        })
        .collect();
    e.collective(Collective::Matrix(Box::new(matrix)), None);
    Ok(result)
}

/// Makes C's slots distinct, so that the number of a slot identifies it.
fn distinct(e: &mut Emitter<'_>, slots: &[Slot]) -> Vec<Slot> {
    slots
        .iter()
        .map(|&slot| {
            let copy = e.slot();
            e.copy(copy, slot);
            copy
        })
        .collect()
}

fn mfma(e: &mut Emitter<'_>, rest: &str, call: &Invocation<'_>) -> Decoded<Vec<Slot>> {
    let error = || call.unknown();
    let (output, rest) = rest.split_once('.').ok_or_else(error)?;
    let ([m, n, k], types) = shape(rest).ok_or_else(error)?;
    let types: Vec<&str> = types
        .split('.')
        .filter(|t| !t.is_empty() && *t != "1k")
        .collect();
    let (a, b) = match types[..] {
        [both] => (both, both),
        [a, b] => (a, b),
        _ => return Err(error()),
    };
    // Groups of blocks that share A; no order of B's lanes except the plain one is known.
    let (group, chosen) = (
        1usize << (call.constant(3)? & 7),
        call.constant(4)? as usize,
    );
    if call.constant(5)? != 0 || chosen >= group {
        return Err(Unknown::new(format!(
            "a broadcast control in @{}",
            call.name
        )));
    }
    let (a, b) = (
        element(e, a).ok_or_else(error)?,
        element(e, b).ok_or_else(error)?,
    );
    let output = element(e, output).ok_or_else(error)?;
    let held = |index: usize, element: Element| -> Decoded<usize> {
        let bits: u32 = call.argument(index)?.leaves.iter().map(|l| l.bits).sum();
        Ok((bits / element.bits()) as usize)
    };
    let width = held(0, a)?;
    let blocks = (64 * width)
        .checked_div(m * k)
        .filter(|&b| b >= 1)
        .ok_or_else(error)?;
    if m != n || blocks * m * k != 64 * width || held(1, b)? != width || blocks % group != 0 {
        return Err(error());
    }
    let deal_c = match (m, output) {
        (32, Element::F32 | Element::Signed(_)) => Deal::MfmaC32,
        (16, Element::F32 | Element::Signed(_)) => Deal::MfmaC16,
        (4, Element::F32 | Element::Signed(_)) => Deal::MfmaC4,
        (16, Element::F64) => Deal::MfmaC16Double,
        (4, Element::F64) => Deal::MfmaC4Double,
        _ => return Err(error()),
    };
    let c = distinct(e, &call.argument(2)?.slots);
    let register = call.argument(2)?.leaves.first().map_or(32, |l| l.bits);
    let input = |outer| Deal::MfmaInput {
        outer,
        blocks,
        width,
    };
    let matrix = Matrix {
        rows: m,
        columns: n,
        depth: k,
        blocks,
        a: fragment(call, 0, a, input(m))?,
        b: fragment(call, 1, b, input(n))?,
        c: Fragment::packed(output, deal_c, &c, register),
        d: Vec::new(),
        accumulation: None,
        saturate: false,
        scales: None,
        broadcast: (group, chosen),
    };
    product(e, call, matrix, &c)
}

/// `mfma.scale.f32.MxNxK.f8f6f4`: a, b, c, the formats of a and b, and for each the byte of a register with its
/// scales, and the register. Both zero means no scales: the instruction without them.
fn scaled_mfma(e: &mut Emitter<'_>, rest: &str, call: &Invocation<'_>) -> Decoded<Vec<Slot>> {
    let error = || call.unknown();
    let rest = rest.strip_prefix("f32.").ok_or_else(error)?;
    let ([m, n, k], types) = shape(rest).ok_or_else(error)?;
    if !types.starts_with(".f8f6f4") || m != n || m * k != 2048 {
        return Err(error());
    }
    let format = |index: usize| -> Decoded<Element> {
        Ok(match call.constant(index)? {
            0 => Element::E4M3,
            1 => Element::E5M2,
            2 => Element::E2M3,
            3 => Element::E3M2,
            4 => Element::E2M1,
            _ => return Err(call.unknown()),
        })
    };
    let input = |index: usize, element: Element| -> Decoded<Fragment> {
        let deal = match element.bits() {
            8 => Deal::MfmaInputTwice { outer: m },
            _ => Deal::MfmaInput {
                outer: m,
                blocks: 1,
                width: 32,
            },
        };
        let mut input = fragment(call, index, element, deal)?;
        // Registers beyond 32 elements are not read.
        input.fields.truncate(32);
        if input.fields.len() < 32 {
            return Err(call.unknown());
        }
        Ok(input)
    };
    let scale = |at: usize| -> Decoded<Scales> {
        let argument = call.argument(at + 1)?;
        let byte = call.constant(at)?;
        match argument.slots[..] {
            [slot] if (0..4).contains(&byte) => Ok(Scales {
                slot,
                shift: 8 * byte as u32,
            }),
            _ => Err(call.unknown()),
        }
    };
    let is_plain = [5, 6, 7, 8]
        .into_iter()
        .all(|index| matches!(call.constant(index), Ok(0)));
    let scales = if is_plain {
        None
    } else {
        Some([scale(5)?, scale(7)?])
    };
    let c = distinct(e, &call.argument(2)?.slots);
    let deal_c = if m == 32 {
        Deal::MfmaC32
    } else {
        Deal::MfmaC16
    };
    let matrix = Matrix {
        rows: m,
        columns: n,
        depth: k,
        blocks: 1,
        a: input(0, format(3)?)?,
        b: input(1, format(4)?)?,
        c: Fragment::packed(Element::F32, deal_c, &c, 32),
        d: Vec::new(),
        accumulation: None,
        saturate: false,
        scales,
        broadcast: (1, 0),
    };
    product(e, call, matrix, &c)
}

fn wmma(e: &mut Emitter<'_>, rest: &str, call: &Invocation<'_>) -> Decoded<Vec<Slot>> {
    let error = || call.unknown();
    let (output, rest) = rest.split_once('.').ok_or_else(error)?;
    let ([m, n, k], types) = shape(rest).ok_or_else(error)?;
    if (m, n) != (16, 16) || e.target.warp_size() != 32 {
        return Err(error());
    }
    // Type names up to the overload suffixes that LLVM appends.
    let types: Vec<&str> = types
        .split('.')
        .filter(|t| !t.is_empty() && !t.starts_with('v'))
        .collect();
    // Integer products have a signedness before each operand and a clamp after them; others may select the half of
    // the accumulator's registers that is used.
    let (a, b, at_a, at_b, at_c) = match types[..] {
        ["iu8" | "iu4"] => {
            let bits = if types[0] == "iu8" { 8 } else { 4 };
            let kind = |signed: bool| {
                if signed {
                    Element::Signed(bits)
                } else {
                    Element::Unsigned(bits)
                }
            };
            (
                kind(call.constant(0)? != 0),
                kind(call.constant(2)? != 0),
                1,
                3,
                4,
            )
        }
        [both] => {
            let both = element(e, both).ok_or_else(error)?;
            (both, both, 0, 1, 2)
        }
        [a, b] => (
            element(e, a).ok_or_else(error)?,
            element(e, b).ok_or_else(error)?,
            0,
            1,
            2,
        ),
        _ => return Err(error()),
    };
    let output = element(e, output).ok_or_else(error)?;
    let held = |index: usize, element: Element| -> Decoded<usize> {
        let bits: u32 = call.argument(index)?.leaves.iter().map(|l| l.bits).sum();
        Ok((bits / element.bits()) as usize)
    };
    let width = held(at_a, a)?;
    let whole = width == k;
    if !whole && 2 * width != k {
        return Err(error());
    }
    let deal = if whole {
        Deal::WmmaInputWhole
    } else {
        Deal::WmmaInputHalves { width }
    };
    let c_slots = distinct(e, &call.argument(at_c)?.slots);
    let register = call.argument(at_c)?.leaves.first().map_or(32, |l| l.bits);
    let mut c = Fragment::packed(output, Deal::WmmaOutputHalves, &c_slots, register);
    let mut saturate = false;
    if whole {
        c.deal = Deal::WmmaOutputInterleaved;
        if output.bits() == 16 {
            // Every second element is used: the lower or the upper half of each register.
            let upper = usize::from(call.constant(3)? != 0);
            c.fields = c.fields.into_iter().skip(upper).step_by(2).collect();
        }
    }
    if matches!(output, Element::Signed(_)) {
        saturate = call.constant(5)? != 0;
    }
    if c.fields.len() != 8 {
        return Err(error());
    }
    let matrix = Matrix {
        rows: 16,
        columns: 16,
        depth: k,
        blocks: 1,
        a: fragment(call, at_a, a, deal)?,
        b: fragment(call, at_b, b, deal)?,
        c,
        d: Vec::new(),
        accumulation: None,
        saturate,
        scales: None,
        broadcast: (1, 0),
    };
    product(e, call, matrix, &c_slots)
}
