//! PTX's products of warp groups: `wgmma`.

use crate::error::{Decoded, Unknown};
use crate::machine::bytecode::{Async, Collective, Op, SharedOperand, Slot};
use crate::machine::row;
use crate::units::matrix::{Deal, Element, Field, Fragment, Matrix};

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
    t.e.push(Op::Async(Box::new(what)));
}

/// `m64nNkK`, with the depth that the type of A asks for: 32 bytes.
fn columns(shape: &str, a: Element) -> Option<(usize, usize)> {
    let rest = shape.strip_prefix("m64n")?;
    let (n, k) = rest.split_once('k')?;
    let (n, k): (usize, usize) = (n.parse().ok()?, k.parse().ok()?);
    let integers = matches!(a, Element::Signed(_) | Element::Unsigned(_));
    // Integers know multiples of 16 beyond 32 columns only.
    let known = n % 8 == 0 && (8..=256).contains(&n) && (!integers || n < 32 || n % 16 == 0);
    (known && k * a.bits() as usize == 256).then_some((n, k))
}

fn product(
    t: &mut Translator<'_, '_>,
    i: &Instruction,
    shape: &str,
    types: &[&str],
) -> Decoded<()> {
    let types: Vec<&str> = types
        .iter()
        .copied()
        .filter(|m| *m != "satfinite")
        .collect();
    let saturate = i.opcode.iter().any(|m| m == "satfinite");
    let [d, a, b] = types[..] else {
        return Err(unknown(i));
    };
    let known = || Some((element(d)?, element(a)?, element(b)?));
    let (c_element, a_element, b_element) = known().ok_or_else(|| unknown(i))?;
    let fits = matches!(
        (c_element, a_element, b_element),
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
    );
    let (n, k) = columns(shape, a_element)
        .filter(|_| fits)
        .ok_or_else(|| unknown(i))?;
    let [out, in_a, in_b, scale_d, more @ ..] = &i.operands[..] else {
        return Err(unknown(i));
    };
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
    let in_registers = matches!(in_a, Operand::Vector(_));
    let immediates: Vec<i128> = more
        .iter()
        .map(|operand| match operand {
            Operand::Int(value) => Ok(*value),
            _ => Err(unknown(i)),
        })
        .collect::<Decoded<_>>()?;
    let halves = a_element.bits() == 16;
    let integers = c_element == Element::Signed(32);
    let (scale_a, scale_b, transposed_a, transposed_b) = match (&immediates[..], in_registers) {
        ([], _) if integers => (1, 1, 0, 0),
        ([a, b], _) if !halves && !integers => (*a, *b, 0, 0),
        ([a, b, of_b], true) if halves => (*a, *b, 0, *of_b),
        ([a, b, of_a, of_b], false) if halves => (*a, *b, *of_a, *of_b),
        _ => return Err(unknown(i)),
    };

    let site = t.e.site();
    push(t, Async::ProductBegin(site));
    // The accumulator, or zeros.
    let predicate = match scale_d {
        Operand::Int(value) => t.e.constant(u64::from(*value != 0)),
        other => t.read(other, 1)?,
    };
    let zero = t.e.constant(0);
    let mut accumulator = Vec::new();
    for register in out {
        let value = t.read(register, 32)?;
        accumulator.push(t.e.select(predicate, value, zero));
    }
    let sign = |t: &mut Translator<'_, '_>, slot: Slot, of: Element, scale: i128| {
        if scale != -1 {
            return slot;
        }
        // Every format that can be negated keeps its sign in the highest bit.
        let per = 32 / of.bits();
        let signs = (0..per).fold(0u64, |all, i| all | 1 << (of.bits() * (i + 1) - 1));
        let signs = t.e.constant(signs);
        t.e.map2(row::XOR, slot, signs)
    };
    let fetch = |t: &mut Translator<'_, '_>,
                 operand: &Operand,
                 of: Element,
                 outer: usize,
                 deal: Deal,
                 count: usize,
                 transposed: bool,
                 of_warp_group: bool|
     -> Decoded<Vec<Slot>> {
        let descriptor = t.read(operand, 64)?;
        let registers = t.e.slots(count);
        let zero = t.e.constant(0);
        for &register in &registers {
            t.e.copy(register, zero);
        }
        let fields: Vec<Field> = Fragment::packed(of, deal, &registers, 32).fields;
        push(
            t,
            Async::FetchOperand(SharedOperand {
                descriptor,
                outer,
                element: of,
                deal,
                fields,
                k_contiguous: !transposed,
                of_warp_group,
                site,
            }),
        );
        Ok(registers)
    };
    let per = (32 / a_element.bits()) as usize;
    let deal_a = Deal::MmaA16 { per };
    let registers_a = match in_a {
        Operand::Vector(registers) if registers.len() == 4 => registers
            .iter()
            .map(|register| t.read(register, 32))
            .collect::<Decoded<_>>()?,
        Operand::Vector(_) => return Err(unknown(i)),
        descriptor => fetch(
            t,
            descriptor,
            a_element,
            16,
            deal_a,
            4,
            transposed_a != 0,
            true,
        )?,
    };
    // B belongs to no lane: columns are dealt out one after the other.
    let deal_b = Deal::Columns { depth: k };
    let count = n.div_ceil(32) * k / per;
    let registers_b = fetch(
        t,
        in_b,
        b_element,
        n,
        deal_b,
        count,
        transposed_b != 0,
        false,
    )?;
    let registers_a: Vec<Slot> = registers_a
        .into_iter()
        .map(|slot| sign(t, slot, a_element, scale_a))
        .collect();
    let registers_b: Vec<Slot> = registers_b
        .into_iter()
        .map(|slot| sign(t, slot, b_element, scale_b))
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
