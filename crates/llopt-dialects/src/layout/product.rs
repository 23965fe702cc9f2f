//! From a matrix instruction to the encoding of a product that it computes.
//!
//! The table in [`llopt_target::matrix`] says how an instruction distributes its matrices; an encoding says how a
//! whole tensor is distributed over registers, lanes and warps. An encoding is *of* an instruction if, on the
//! instruction's own shape and with one warp, its layout and those of its operands are the instruction's. The layouts
//! are compared here, instead of names: an instruction that no encoding describes has none. An operand that can only
//! be in shared memory has no fragment and is not compared; [`in_memory`] gives its layout there.
//!
//! The tile of an encoding may be a multiple of the instruction's. Then registers of the encoding are copies of one
//! another on the instruction's shape, and the instruction computes the tile in as many executions: that of
//! `#ttg.nvidia_mma` has 16 rows, and `mma.m8n8k4` of doubles 8.

use llopt_layout::{Dim, LinearLayout};
use llopt_target::matrix::{Axis, MatrixInstruction, nvptx};

use super::encoding::nvidia_mma::WARP_GROUP_LEVEL;
use super::encoding::{AmdMfma, AmdWmma, CgaLayout, Encoding, Linear, NvidiaMma, NvmmaShared};
use super::{tensor_descriptor, transfer};

/// The candidate encodings of an instruction, with warps in this arrangement. `generation` is the number that
/// attributes give the target's matrix unit.
fn encodings(row: &MatrixInstruction, generation: u32, warps: &[u32]) -> [Encoding; 4] {
    let rank = warps.len();
    let mut per_dim = vec![1; rank.saturating_sub(2)];
    // `mma.sync` has one encoding, whose tile has the rows of its tallest instructions.
    let rows = nvptx::MMA_ACCUMULATOR.extent(Axis::M, 1);
    per_dim.extend([row.m.max(rows), row.n]);
    let cga_layout = CgaLayout::single(rank);
    [
        Encoding::NvidiaMma(NvidiaMma {
            version_major: generation,
            version_minor: 0,
            warps_per_cta: warps.to_vec(),
            cga_layout: cga_layout.clone(),
            instr_shape: per_dim,
        }),
        Encoding::NvidiaMma(NvidiaMma {
            version_major: WARP_GROUP_LEVEL,
            version_minor: 0,
            warps_per_cta: warps.to_vec(),
            cga_layout: cga_layout.clone(),
            instr_shape: vec![row.m / row.warps, row.n, row.k],
        }),
        Encoding::AmdMfma(AmdMfma {
            version: generation,
            warps_per_cta: warps.to_vec(),
            instr_shape: vec![row.m, row.n, row.k],
            is_transposed: false,
            cga_layout: cga_layout.clone(),
            tiles_per_warp: vec![1; rank],
            element_bit_width: row.accumulator.element.bits(),
        }),
        Encoding::AmdWmma(AmdWmma {
            version: generation,
            is_transposed: false,
            warps_per_cta: warps.to_vec(),
            tiles_per_warp: vec![1; rank],
            cga_layout,
            instr_shape: vec![row.m, row.n, row.k],
        }),
    ]
}

/// Whether registers and lanes hold the same elements in both, for any number of warps and blocks and whatever registers
/// of the encoding are copies.
fn agree(encoding: &Encoding, layout: &LinearLayout) -> bool {
    let shape = [0, 1].map(|dim| layout.out_dim_size(Dim::tensor(dim)));
    let Ok(found) = encoding.linear_layout(&shape) else {
        return false;
    };
    // In any order of the dimensions.
    let bases = |layout: &LinearLayout, from: Dim| {
        let bits = 0..layout.in_dim_size_log2(from);
        let basis = |bit| [0, 1].map(|dim| layout.basis_entry(from, bit, Dim::tensor(dim)));
        bits.map(basis).collect::<Vec<_>>()
    };
    let mut registers = bases(&found, Dim::REGISTER);
    registers.retain(|basis| *basis != [0, 0]);
    registers == bases(layout, Dim::REGISTER)
        && bases(&found, Dim::LANE) == bases(layout, Dim::LANE)
}

/// The part of an instruction's result in one warp: the fragment, and in the next registers the warp's columns beyond
/// it.
fn of_result(row: &MatrixInstruction, fragment: &LinearLayout) -> Option<LinearLayout> {
    let columns = fragment.out_dim_size(Dim::tensor(1)) as u32;
    let beyond = LinearLayout::identity_1d(row.n / columns, Dim::REGISTER, Dim::tensor(1));
    fragment.product(&beyond.ok()?).ok()
}

/// The encoding of a product by an instruction, its warps arranged like this over the dimensions of the result;
/// `None` if no encoding is of that instruction. If the encoding can express exchanged operands, with which a lane
/// holds pieces of rows, it does.
pub fn of_instruction(
    row: &MatrixInstruction,
    generation: u32,
    warps_per_cta: &[u32],
) -> Option<Encoding> {
    // The warps of a group divide the rows.
    let down = *warps_per_cta.iter().rev().nth(1)?;
    if !down.is_multiple_of(row.warps) || row.warps > 1 && warps_per_cta.len() > 2 {
        return None;
    }
    let [a, b, sum] = row.fragments();
    let sum = of_result(row, &sum?)?;
    let is_of = |encoding: &Encoding| {
        let operand = |index, bits, fragment: &Option<LinearLayout>| {
            let Some(fragment) = fragment else {
                return true;
            };
            let width = transfer::elements_along_k(encoding, bits);
            let layout = width.and_then(|w| transfer::dot_operand(encoding, index, w).ok());
            layout.is_some_and(|layout| agree(&layout, fragment))
        };
        encoding.verify().is_ok()
            && agree(encoding, &sum)
            && operand(0, row.a.element.bits(), &a)
            && operand(1, row.b.element.bits(), &b)
    };
    let alone = encodings(row, generation, &[1, 1]);
    let position = alone.iter().position(is_of)?;
    let mut encoding = encodings(row, generation, warps_per_cta)
        .into_iter()
        .nth(position)?;
    match &mut encoding {
        Encoding::AmdMfma(mfma) => mfma.is_transposed = true,
        Encoding::AmdWmma(wmma) => wmma.is_transposed = true,
        _ => {}
    }
    encoding.verify().ok()?;
    Some(encoding)
}

/// The encoding of a product by an instruction where the blocks of a cluster share the result like this; `None` for
/// one of threads.
pub fn over_cluster(mut encoding: Encoding, blocks: &CgaLayout) -> Option<Encoding> {
    let place = match &mut encoding {
        Encoding::NvidiaMma(mma) => &mut mma.cga_layout,
        Encoding::AmdMfma(mfma) => &mut mfma.cga_layout,
        Encoding::AmdWmma(wmma) => &mut wmma.cga_layout,
        _ => return None,
    };
    *place = blocks.clone();
    encoding.verify().ok()?;
    Some(encoding)
}

/// The layout in shared memory of an operand that the instruction reads there: rows of the contiguous dimension,
/// which is k or the other one, with the widest swizzle that they fill. `shape` is the shape of one block's part, as
/// `blocks` divides the operand. `None` if a row is shorter than the group that the instruction reads at once.
pub fn in_memory(
    op_idx: usize,
    shape: [u64; 2],
    element_bits: u32,
    k_contiguous: bool,
    blocks: CgaLayout,
) -> Option<Encoding> {
    // k is the last dimension of the first operand, and the first dimension of the second.
    let transposed = k_contiguous == (op_idx == 1);
    let [rows, columns] = if transposed {
        [shape[1], shape[0]]
    } else {
        shape
    };
    let row_bytes = columns * u64::from(element_bits) / 8;
    Some(Encoding::NvmmaShared(NvmmaShared {
        swizzling_byte_width: tensor_descriptor::widest_swizzle(row_bytes, rows)?,
        transposed,
        element_bit_width: element_bits,
        fp4_padded: false,
        cga_layout: blocks,
    }))
}

/// The layout of the scales of an operand of a product: `shape` is the number of scales across and along k, `group`
/// the number of elements along k that share one.
///
/// An instruction takes the scales of its first group from the lanes that hold the first elements of its rows, and
/// those of the next group from the lanes after these: so a scale is in a lane with its row, but not necessarily in
/// one with its elements. Bits beyond the instruction are registers, and bits of warps remain bits of warps. `None`
/// if the operand's lanes do not divide into rows and k.
pub fn scales(operand: &Encoding, op_idx: usize, shape: Vec<u64>, group: u32) -> Option<Encoding> {
    let &[across, groups] = &shape[..] else {
        return None;
    };
    let depth = groups * u64::from(group);
    let extents = match op_idx {
        0 => [across, depth],
        _ => [depth, across],
    };
    let elements = operand.linear_layout(&extents).ok()?;
    let (outer, k) = (Dim::tensor(op_idx), Dim::tensor(1 - op_idx));
    let of = |from: Dim, bit: u32| [outer, k].map(|dim| elements.basis_entry(from, bit, dim));
    let bases = |from: Dim| (0..elements.in_dim_size_log2(from)).map(move |bit| of(from, bit));
    let mut lanes = Vec::new();
    let mut next = 1;
    for [row, along] in bases(Dim::LANE) {
        match (row, along) {
            // The lanes of rows that repeat others, where there are fewer than an instruction has.
            (0, 0) => lanes.push(vec![0, 0]),
            (0, _) => {
                lanes.push(vec![0, if u64::from(next) < groups { next } else { 0 }]);
                next *= 2;
            }
            (_, 0) if next == 1 => lanes.push(vec![row, 0]),
            _ => return None,
        }
    }
    let rows = |from: Dim| bases(from).map(|[row, _]| vec![row, 0]).collect::<Vec<_>>();
    let registers = bases(Dim::REGISTER)
        .map(|[row, along]| vec![row, along / group])
        .filter(|basis| basis.iter().any(|part| *part != 0) && !lanes.contains(basis));
    let registers: Vec<Vec<u32>> = registers.collect();
    let (warps, blocks) = (rows(Dim::WARP), rows(Dim::BLOCK));
    let layout = LinearLayout::from_bases(
        &[
            (Dim::REGISTER, &registers),
            (Dim::LANE, &lanes),
            (Dim::WARP, &warps),
            (Dim::BLOCK, &blocks),
        ],
        &[
            (Dim::tensor(0), across as u32),
            (Dim::tensor(1), groups as u32),
        ],
    );
    Some(Encoding::Linear(Linear::new(layout.ok()?).ok()?))
}

#[cfg(test)]
mod tests {
    use llopt_target::Target;
    use llopt_target::matrix::{MatrixElement, instructions, instructions_for};

    use super::*;

    #[test]
    fn every_target_with_a_matrix_unit_has_an_encoding_for_halves() {
        for (target, shapes) in [
            ("cuda:80", &[[16, 8]][..]),
            ("cuda:90", &[[16, 8]]),
            ("hip:gfx90a", &[[16, 16], [32, 32]]),
            ("hip:gfx942", &[[16, 16], [32, 32]]),
            ("hip:gfx950", &[[16, 16], [32, 32]]),
            ("hip:gfx1100", &[[16, 16]]),
            ("hip:gfx1200", &[[16, 16]]),
        ] {
            let target = Target::parse(target).unwrap();
            let (half, single) = (MatrixElement::F16, MatrixElement::F32);
            let mut found: Vec<[u32; 2]> = instructions_for(target, half, half, single)
                .filter(|row| row.steps == 1)
                .filter(|row| of_instruction(row, target.matrix_generation(), &[2, 2]).is_some())
                .map(|row| [row.m, row.n])
                .collect();
            found.sort_unstable();
            found.dedup();
            assert_eq!(found, shapes, "{target}");
        }
    }

    #[test]
    fn a_tile_of_several_executions_has_the_encoding_of_the_tall_instructions() {
        for (target, element, sum) in [
            ("cuda:75", MatrixElement::S8, MatrixElement::I32),
            ("cuda:80", MatrixElement::F64, MatrixElement::F64),
        ] {
            let target = Target::parse(target).unwrap();
            let row = instructions_for(target, element, element, sum)
                .next()
                .unwrap();
            assert_eq!([row.m, row.n], [8, 8], "{target}");
            let Some(Encoding::NvidiaMma(mma)) =
                of_instruction(row, target.matrix_generation(), &[2, 2])
            else {
                panic!("no encoding for {}", row.name);
            };
            assert_eq!(mma.instr_shape, [16, 8]);
        }
    }

    #[test]
    fn groups_of_warps_stack_their_rows() {
        let target = Target::parse("cuda:90").unwrap();
        let (half, single) = (MatrixElement::F16, MatrixElement::F32);
        let mut rows = instructions_for(target, half, half, single);
        let row = rows.find(|row| row.warps == 4 && row.n == 64).unwrap();
        let generation = target.matrix_generation();
        let Some(Encoding::NvidiaMma(mma)) = of_instruction(row, generation, &[4, 2]) else {
            panic!("no encoding");
        };
        assert_eq!(mma.version_major, 3);
        assert_eq!(mma.instr_shape, [16, 64, 16]);
        assert!(of_instruction(row, generation, &[2, 2]).is_none());
    }

    #[test]
    fn an_encoding_holds_a_whole_tile_in_each_warp() {
        for target in Target::all() {
            for row in instructions(target) {
                let warps = 2 * row.warps;
                let encoding = of_instruction(row, target.matrix_generation(), &[warps, 1]);
                let Some(encoding) = encoding else { continue };
                let shape = [u64::from(row.m) * 2, u64::from(row.n)];
                let layout = encoding.linear_layout(&shape).unwrap();
                assert!(layout.is_surjective(), "{target}: {}", row.name);
                assert_eq!(layout.in_dim_size(Dim::WARP), u64::from(warps));
                assert_eq!(
                    layout.in_dim_size(Dim::LANE),
                    u64::from(target.warp_size()),
                    "{target}: {}",
                    row.name
                );
            }
        }
    }
}
