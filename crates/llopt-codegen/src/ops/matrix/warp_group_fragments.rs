//! The repetitions of a warp group's instruction that make a result, and where each begins.
//!
//! The registers of one thread are divided into the fragments of the instruction ("Register fragments for
//! `wgmma.mma_async`" in the PTX ISA); the rest of the layout says where they begin. The repetitions of a thread are
//! the same for all groups of warps; where a group begins is a linear function of its number.

use std::collections::HashMap;

use llopt_plan::tensor::TensorType;

/// The most columns of one instruction.
const MAX_COLUMNS: u32 = 256;
/// Bits of the number of a warp in its group.
pub(super) const GROUP_WARP_BITS: usize = 2;

/// The repetitions of the instruction in one thread.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Repetitions {
    /// Columns of one instruction.
    pub(super) columns: u32,
    /// For each: row and column where it begins, and the registers of its fragment in the instruction's order.
    pub(super) tiles: Vec<(u32, u32, Vec<usize>)>,
    /// What each bit of the number of a group of warps adds to row and column.
    pub(super) groups: Vec<(u32, u32)>,
    /// The same for the block in its cluster.
    pub(super) blocks: Vec<(u32, u32)>,
}

/// Row and column of a row-major number.
pub(super) fn row_and_column(number: u32, columns: u32) -> (u32, u32) {
    (number / columns, number % columns)
}

impl Repetitions {
    /// Divides the registers of a result into fragments.
    pub(super) fn of(result: &TensorType) -> Result<Self, String> {
        let [_, width] = result.shape[..] else {
            return Err("its result is no matrix".to_owned());
        };
        let split = |number: u32| row_and_column(number, width);
        let (lane_bits, _) = result.thread_bits();
        let bases = result.thread_bases();
        let (lanes, warps) = bases.split_at(lane_bits as usize);
        let fits =
            lanes
                .iter()
                .map(|basis| split(*basis))
                .eq([(0, 2), (0, 4), (1, 0), (2, 0), (4, 0)])
                && warps.len() >= GROUP_WARP_BITS
                && split(warps[0]) == (16, 0)
                && split(warps[1]) == (32, 0);
        if !fits {
            return Err(
                "the layout of its result does not give each warp of a group 16 rows, as the instruction does"
                    .to_owned(),
            );
        }
        let registers: HashMap<u32, usize> = (0..result.registers())
            .filter(|register| result.is_canonical(*register))
            .map(|register| (result.element_in(register), register))
            .collect();
        let has = |row: u32, column: u32| registers.contains_key(&(row * width + column));
        // As many columns as one thread's registers have without a gap.
        let mut columns = 8;
        while columns < MAX_COLUMNS
            && has(0, columns)
            && (0..2 * columns).step_by(8).all(|n| has(0, n))
        {
            columns *= 2;
        }
        let mut begins: Vec<(u32, u32)> = registers
            .keys()
            .map(|number| split(*number))
            .filter(|(row, column)| row & 8 == 0 && column % columns == 0)
            .collect();
        begins.sort_unstable();
        let mut tiles = Vec::with_capacity(begins.len());
        for (row, column) in begins {
            let fragment: Option<Vec<usize>> = (0..columns / 2)
                .map(|register| {
                    let down = 8 * (register >> 1 & 1);
                    let right = (register & 1) + 8 * (register >> 2);
                    registers
                        .get(&((row + down) * width + column + right))
                        .copied()
                })
                .collect();
            tiles.push((row, column, fragment.ok_or_else(incomplete)?));
        }
        if tiles.len() * columns as usize / 2 != registers.len() {
            return Err(incomplete());
        }
        Ok(Self {
            columns,
            tiles,
            groups: warps[GROUP_WARP_BITS..]
                .iter()
                .map(|basis| split(*basis))
                .collect(),
            blocks: result
                .block_bases()
                .iter()
                .map(|basis| split(*basis))
                .collect(),
        })
    }
}

fn incomplete() -> String {
    "the registers of its result are not made of whole fragments of the instruction".to_owned()
}

#[cfg(test)]
mod tests {
    use llopt_layout::Dim;
    use llopt_plan::element::Element;

    use super::*;

    /// The layout of a result: registers over columns, rows 8 apart, and more columns; lanes; warps.
    fn result(rows: u32, columns: u32, warps: &[[u32; 2]]) -> TensorType {
        let mut registers = vec![vec![0, 1], vec![8, 0]];
        let mut column = 8;
        while column < columns {
            registers.push(vec![0, column]);
            column *= 2;
        }
        let held = 64 * (1 << warps.len().saturating_sub(GROUP_WARP_BITS));
        let mut row = held;
        while row < rows {
            registers.push(vec![row, 0]);
            row *= 2;
        }
        let lanes = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]].map(|basis| basis.to_vec());
        let warps: Vec<Vec<u32>> = warps.iter().map(|basis| basis.to_vec()).collect();
        let bases: Vec<(Dim, &[Vec<u32>])> = vec![
            (Dim::REGISTER, &registers),
            (Dim::LANE, &lanes),
            (Dim::WARP, &warps),
            (Dim::BLOCK, &[]),
        ];
        let outs = [(Dim::tensor(0), rows), (Dim::tensor(1), columns)];
        let layout = llopt_layout::LinearLayout::from_bases(&bases, &outs).unwrap();
        TensorType::new(Element::F32, vec![rows, columns], &layout).unwrap()
    }

    #[test]
    fn a_result_is_taken_apart_into_instructions() {
        let of = Repetitions::of(&result(128, 512, &[[16, 0], [32, 0]])).unwrap();
        let begins: Vec<(u32, u32)> = of
            .tiles
            .iter()
            .map(|(row, column, _)| (*row, *column))
            .collect();
        assert_eq!(of.columns, 256);
        assert_eq!(begins, [(0, 0), (0, 256), (64, 0), (64, 256)]);
        // The third register of the fragment is eight rows below the first.
        assert_eq!(of.tiles[0].2[..4], [0, 1, 2, 3]);
        let two = Repetitions::of(&result(128, 64, &[[16, 0], [32, 0], [64, 0]])).unwrap();
        assert_eq!((two.columns, two.groups), (64, vec![(64, 0)]));
    }

    #[test]
    fn other_results_are_refused() {
        // The warps of a group next to each other along columns instead of rows.
        let beside = result(64, 64, &[[16, 0], [0, 32]]);
        assert!(Repetitions::of(&beside).is_err());
        let three = result(64, 8, &[[16, 0]]);
        assert!(Repetitions::of(&three).is_err());
    }
}
