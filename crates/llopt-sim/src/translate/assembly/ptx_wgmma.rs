//! PTX's products of warp groups: `wgmma`.

use crate::error::{Decoded, Unknown};
use crate::machine::bytecode::{Async, Collective, SharedOperand, Slot};
use crate::machine::row;
use crate::units::matrix::{Deal, Element, Fragment, Matrix};

use super::matrix::element;
use super::ptx_operands::{Translator, unknown};
use super::ptx_parse::{Instruction, Operand};

/// Translates the instruction if it is of this family.
pub(super) fn translate(t: &mut Translator<'_, '_>, i: &Instruction) -> Decoded<bool> {
    let opcode: Vec<&str> = i.opcode.iter().map(String::as_str).collect();
    match opcode[..] {
        ["wgmma", "fence", ..] => push(t, Async::ProductFence),
        ["wgmma", "commit_group", ..] => push(t, Async::ProductCommit),
        ["wgmma", "wait_group", ..] => {
            let [Operand::Int(pending)] = i.operands[..] else {
                return Err(unknown(i));
            };
            let pending = u32::try_from(pending).map_err(|_| unknown(i))?;
            push(t, Async::ProductWait(pending));
        }
        [
            "wgmma",
            "mma_async",
            "sync",
            "aligned",
            shape,
            ref types @ ..,
        ] => {
            product(t, i, shape, types)?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn push(t: &mut Translator<'_, '_>, what: Async) {
    t.e.asynchronous(what);
}

/// `m64nNkK`, with the depth that the type of A requires: 32 bytes.
fn columns(shape: &str, a: Element) -> Option<(usize, usize)> {
    let rest = shape.strip_prefix("m64n")?;
    let (n, k) = rest.split_once('k')?;
    let (n, k): (usize, usize) = (n.parse().ok()?, k.parse().ok()?);
    let integers = matches!(a, Element::Signed(_) | Element::Unsigned(_));
    // Integers support only multiples of 16 beyond 32 columns.
    let known = n % 8 == 0 && (8..=256).contains(&n) && (!integers || n < 32 || n % 16 == 0);
    (known && k * a.bits() as usize == 256).then_some((n, k))
}

/// The types of the elements of the result, A and B.
fn elements(types: &[&str]) -> Option<(Element, Element, Element)> {
    let types: Vec<&str> = types
        .iter()
        .copied()
        .filter(|m| *m != "satfinite")
        .collect();
    let [d, a, b] = types[..] else {
        return None;
    };
    Some((element(d)?, element(a)?, element(b)?))
}

/// Whether there is an instruction for elements of these types.
fn is_known(c: Element, a: Element, b: Element) -> bool {
    matches!(
        (c, a, b),
        (Element::F32 | Element::F16, Element::F16, Element::F16)
            | (Element::F32, Element::BF16, Element::BF16)
            | (Element::F32, Element::TF32, Element::TF32)
            | (
                Element::F32 | Element::F16,
                Element::E4M3 | Element::E5M2,
                Element::E4M3 | Element::E5M2,
            )
            | (
                Element::Signed(32),
                Element::Signed(8) | Element::Unsigned(8),
                Element::Signed(8) | Element::Unsigned(8),
            )
    )
}

/// The immediate operands of the instruction.
struct Immediates {
    scale_a: i128,
    scale_b: i128,
    transposed_a: bool,
    transposed_b: bool,
}

impl Immediates {
    /// Those of a product whose A is in registers or in shared memory; `None` where the instruction has other
    /// operands.
    fn of(operands: &[Operand], a: Element, c: Element, in_registers: bool) -> Option<Self> {
        let numbers: Vec<i128> = operands
            .iter()
            .map(|operand| match operand {
                Operand::Int(value) => Some(*value),
                _ => None,
            })
            .collect::<Option<_>>()?;
        let halves = a.bits() == 16;
        let integers = c == Element::Signed(32);
        let (scale_a, scale_b, transposed_a, transposed_b) = match (&numbers[..], in_registers) {
            ([], _) if integers => (1, 1, 0, 0),
            ([a, b], _) if !halves && !integers => (*a, *b, 0, 0),
            ([a, b, of_b], true) if halves => (*a, *b, 0, *of_b),
            ([a, b, of_a, of_b], false) if halves => (*a, *b, *of_a, *of_b),
            _ => return None,
        };
        Some(Self {
            scale_a,
            scale_b,
            transposed_a: transposed_a != 0,
            transposed_b: transposed_b != 0,
        })
    }
}

/// A register times a scale, which is one or minus one.
fn scaled(t: &mut Translator<'_, '_>, slot: Slot, of: Element, scale: i128) -> Slot {
    if scale != -1 {
        return slot;
    }
    // Every format with a sign has it in the highest bit.
    let per = 32 / of.bits();
    let signs = (0..per).fold(0u64, |all, i| all | 1 << (of.bits() * (i + 1) - 1));
    let signs = t.e.constant(signs);
    t.e.map2(row::XOR, slot, signs)
}

/// Reads an operand from shared memory into `count` registers.
fn fetch(t: &mut Translator<'_, '_>, operand: SharedOperand, count: usize) -> Vec<Slot> {
    let registers = t.e.slots(count);
    let zero = t.e.constant(0);
    for &register in &registers {
        t.e.copy(register, zero);
    }
    let fields = Fragment::packed(operand.element, operand.deal, &registers, 32).fields;
    push(t, Async::FetchOperand(SharedOperand { fields, ..operand }));
    registers
}

/// The registers of a result of `n` columns.
fn registers_of_result<'i>(
    i: &Instruction,
    out: &'i Operand,
    n: usize,
    c_element: Element,
) -> Decoded<&'i [Operand]> {
    let Operand::Vector(out) = out else {
        return Err(unknown(i));
    };
    let register_bits = 32;
    if out.len() != n / 2 * c_element.bits() as usize / register_bits {
        return Err(Unknown::new(format!(
            "{} registers of the result of {}",
            out.len(),
            i.opcode.join(".")
        )));
    }
    Ok(out)
}

/// A zero, and the registers of the accumulator, or zeros where it is not used.
fn accumulator(
    t: &mut Translator<'_, '_>,
    out: &[Operand],
    wanted: &Operand,
) -> Decoded<(Slot, Vec<Slot>)> {
    let predicate = match wanted {
        Operand::Int(value) => t.e.constant(u64::from(*value != 0)),
        other => t.read(other, 1)?,
    };
    let zero = t.e.constant(0);
    let mut accumulator = Vec::new();
    for register in out {
        let value = t.read(register, 32)?;
        accumulator.push(t.e.select(predicate, value, zero));
    }
    Ok((zero, accumulator))
}

/// `wgmma.mma_async`.
fn product(
    t: &mut Translator<'_, '_>,
    i: &Instruction,
    shape: &str,
    types: &[&str],
) -> Decoded<()> {
    let saturate = i.opcode.iter().any(|m| m == "satfinite");
    let (c_element, a_element, b_element) = elements(types).ok_or_else(|| unknown(i))?;
    let (n, k) = columns(shape, a_element)
        .filter(|_| is_known(c_element, a_element, b_element))
        .ok_or_else(|| unknown(i))?;
    let [out, in_a, in_b, scale_d, more @ ..] = &i.operands[..] else {
        return Err(unknown(i));
    };
    let out = registers_of_result(i, out, n, c_element)?;
    let in_registers = matches!(in_a, Operand::Vector(_));
    let Immediates {
        scale_a,
        scale_b,
        transposed_a,
        transposed_b,
    } = Immediates::of(more, a_element, c_element, in_registers).ok_or_else(|| unknown(i))?;

    let site = t.e.site();
    let mut registers: Vec<Slot> = out
        .iter()
        .map(|register| t.read(register, 32))
        .collect::<Decoded<_>>()?;
    if let Operand::Vector(first) = in_a {
        for register in first {
            registers.push(t.read(register, 32)?);
        }
    }
    let begin = Async::ProductBegin {
        registers,
        assembly: t.e.instruction(),
        site,
    };
    push(t, begin);
    let (zero, accumulator) = accumulator(t, out, scale_d)?;
    let per = (32 / a_element.bits()) as usize;
    let deal_a = Deal::MmaA16 { per };
    let registers_a = match in_a {
        Operand::Vector(registers) if registers.len() == 4 => registers
            .iter()
            .map(|register| t.read(register, 32))
            .collect::<Decoded<_>>()?,
        Operand::Vector(_) => return Err(unknown(i)),
        descriptor => {
            let a = SharedOperand {
                descriptor: t.read(descriptor, 64)?,
                outer: 16,
                element: a_element,
                deal: deal_a,
                fields: Vec::new(),
                k_contiguous: !transposed_a,
                of_warp_group: true,
                site,
            };
            fetch(t, a, 4)
        }
    };
    // B belongs to no lane: its columns are distributed one after the other.
    let deal_b = Deal::Columns { depth: k };
    let count = n.div_ceil(32) * k / per;
    let b = SharedOperand {
        descriptor: t.read(in_b, 64)?,
        outer: n,
        element: b_element,
        deal: deal_b,
        fields: Vec::new(),
        k_contiguous: !transposed_b,
        of_warp_group: false,
        site,
    };
    let registers_b = fetch(t, b, count);
    let registers_a: Vec<Slot> = registers_a
        .into_iter()
        .map(|slot| scaled(t, slot, a_element, scale_a))
        .collect();
    let registers_b: Vec<Slot> = registers_b
        .into_iter()
        .map(|slot| scaled(t, slot, b_element, scale_b))
        .collect();
    let result = t.e.slots(accumulator.len());
    for &slot in &result {
        t.e.copy(slot, zero);
    }
    let matrix = Matrix {
        rows: 16,
        columns: n,
        depth: k,
        blocks: 1,
        a: Fragment::packed(a_element, deal_a, &registers_a, 32),
        b: Fragment::packed(b_element, deal_b, &registers_b, 32),
        c: Fragment::packed(c_element, Deal::WarpGroupC, &accumulator, 32),
        d: Fragment::packed(c_element, Deal::WarpGroupC, &result, 32).fields,
        accumulation: a_element.accumulation(t.e.target, c_element, 4),
        saturate,
        scales: None,
        broadcast: (1, 0),
    };
    let members = t.e.constant(row::mask(32));
    t.e.collective(Collective::Matrix(Box::new(matrix)), Some(members));
    for (register, slot) in out.iter().zip(result) {
        t.write(register, slot, 32)?;
    }
    Ok(())
}
