//! PTX's `mma`, `ldmatrix` and `stmatrix`, whether written as assembly or as intrinsics.

use crate::machine::bytecode::{AccessKind, Collective, Op, Slot, Tile, TileAccess};
use crate::machine::row::mask;
use crate::translate::emit::Emitter;
use crate::units::matrix::{Deal, Element, Fragment, Matrix};

/// Types of the four matrices by their PTX names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MmaTypes<'a> {
    pub(crate) d: &'a str,
    pub(crate) a: &'a str,
    pub(crate) b: &'a str,
    pub(crate) c: &'a str,
}

/// The element type of a PTX name.
pub(crate) fn element(name: &str) -> Option<Element> {
    Some(match name {
        "f16" => Element::F16,
        "bf16" => Element::BF16,
        "tf32" => Element::TF32,
        "f32" => Element::F32,
        "f64" => Element::F64,
        "e4m3" => Element::E4M3,
        "e5m2" => Element::E5M2,
        "s8" => Element::Signed(8),
        "u8" => Element::Unsigned(8),
        "s4" => Element::Signed(4),
        "u4" => Element::Unsigned(4),
        "s32" => Element::Signed(32),
        _ => return None,
    })
}

/// `m16n8k16` as numbers.
fn shape(name: &str) -> Option<(usize, usize, usize)> {
    let (m, rest) = name.strip_prefix('m')?.split_once('n')?;
    let (n, k) = rest.split_once('k')?;
    Some((m.parse().ok()?, n.parse().ok()?, k.parse().ok()?))
}

/// A product `D = A B + C` with row-major A and column-major B. `registers` holds those of A, B and C in this order;
/// the result those of D. `None` if PTX has no such instruction.
pub(crate) fn mma(
    e: &mut Emitter<'_>,
    name: &str,
    types: &MmaTypes<'_>,
    registers: &[Slot],
    saturate: bool,
) -> Option<Vec<Slot>> {
    let (m, n, k) = shape(name)?;
    let (a, b, c) = (element(types.a)?, element(types.b)?, element(types.c)?);
    if n != 8 || !matches!(m, 8 | 16) || element(types.d)? != c || a.bits() != b.bits() {
        return None;
    }
    let depth_bits = k as u32 * a.bits();
    let known = match a {
        Element::F64 => matches!((m, k), (8, 4) | (16, 4 | 8 | 16)),
        // The first generation's 8x8x4 product of halves has another shape of fragment.
        _ if m == 8 => depth_bits == 128 && matches!(a, Element::Signed(_) | Element::Unsigned(_)),
        _ => matches!(depth_bits, 128 | 256),
    };
    if !known {
        return None;
    }
    let width = |element: Element| element.bits().max(32);
    let count = |element: Element, size: usize| {
        size / 32 * element.bits() as usize / width(element) as usize
    };
    let (in_a, in_b, in_c) = (count(a, m * k), count(b, n * k), count(c, m * n));
    if registers.len() != in_a + in_b + in_c {
        return None;
    }
    let per = (width(a) / a.bits()) as usize;
    let deal_a = if m == 16 {
        Deal::MmaA16 { per }
    } else {
        Deal::MmaA8 { per }
    };
    let fragment_c = Fragment::packed(c, Deal::MmaC, &registers[in_a + in_b..], width(c));
    let result = e.slots(in_c);
    let zero = e.constant(0);
    for &slot in &result {
        e.copy(slot, zero);
    }
    let matrix = Matrix {
        rows: m,
        columns: n,
        depth: k,
        blocks: 1,
        a: Fragment::packed(a, deal_a, &registers[..in_a], width(a)),
        b: Fragment::packed(
            b,
            Deal::MmaB { per },
            &registers[in_a..in_a + in_b],
            width(b),
        ),
        d: Fragment::packed(c, Deal::MmaC, &result, width(c)).fields,
        c: fragment_c,
        accumulation: a.accumulation(e.target, c, 1),
        saturate,
        scales: None,
        broadcast: (1, 0),
    };
    let members = e.constant(mask(32));
    e.collective(Collective::Matrix(Box::new(matrix)), Some(members));
    Some(result)
}

/// `ldmatrix` and `stmatrix` by the parts of their name after `aligned` (or in any order, without the state space):
/// `m8n8`, `x1|x2|x4`, `trans`, `b16`; or `m16n16` for loads and `m16n8` for stores, with `trans` and `b8`. Returns the
/// registers loaded.
pub(crate) fn tiles(
    e: &mut Emitter<'_>,
    form: &[&str],
    kind: AccessKind,
    address: Slot,
    values: &[Slot],
) -> Option<Vec<Slot>> {
    let mut count = None;
    let mut transposed = false;
    let (mut shape, mut element) = (None, None);
    for part in form {
        match *part {
            "p3" | "shared" | "shared::cta" | "p0" => {}
            "m8n8" | "m16n16" | "m16n8" => shape = Some(*part),
            "b16" | "b8" => element = Some(*part),
            "x1" => count = Some(1),
            "x2" => count = Some(2),
            "x4" => count = Some(4),
            "trans" => transposed = true,
            _ => return None,
        }
    }
    let tile = match (shape?, element?, transposed) {
        ("m8n8", "b16", false) => Tile::Halves,
        ("m8n8", "b16", true) => Tile::TransposedHalves,
        ("m16n16", "b8", true) if kind == AccessKind::Load => Tile::TransposedBytes,
        ("m16n8", "b8", true) if kind == AccessKind::Store => Tile::TransposedBytes,
        _ => return None,
    };
    let count: usize = count?;
    let wanted = count * tile.registers(kind) as usize;
    let registers = if kind == AccessKind::Store {
        values.to_vec()
    } else {
        e.slots(wanted)
    };
    let rows = count * tile.rows(kind) as usize;
    if registers.len() != wanted || rows > 32 {
        return None;
    }
    let site = e.site();
    e.push(Op::Tiles(Box::new(TileAccess {
        kind,
        tile,
        tiles: count as u32,
        address,
        registers: registers.clone(),
        site,
    })));
    Some(registers)
}
