//! The plans of a matrix product: the layouts in which its result may be computed.
//!
//! A matrix unit has several instructions for a pair of element types, and the warps of a block may be arranged in
//! several ways over the result. An instruction with an arrangement is a *plan*, whose result has a layout of its
//! own; the layouts of the factors follow. More rows of warps mean that each warp needs fewer rows of the first
//! factor and more columns of the second; which is better depends on where the factors come from, and the conversions
//! that move them have their prices. Without an instruction for its elements, and for small results, threads multiply
//! and add: each holds a square of the result.
//!
//! The blocks of a cluster divide rows and columns of the result among them, and each has the parts of the factors
//! that it multiplies: blocks in one row of the result have the same rows of the first one.

use llopt_dialects::layout::encoding::{Blocked, CgaLayout, Encoding};
use llopt_dialects::layout::product;
use llopt_target::Target;
use llopt_target::matrix::{MatrixElement, MatrixInstruction, instructions_for};
use melior::ir::Type;

use super::grid::Grid;
use super::products::{Plan, Product, elements_of};

/// The largest number of columns of one warp-group instruction.
const MOST_COLUMNS: u64 = 256;

/// The layout of the result in which the target's matrix units multiply matrices of these elements (first factor,
/// second, result) in registers, the most square part for each warp; `None` without an instruction for them.
#[must_use]
pub fn unit_layout(
    shape: &[u64],
    depth: u64,
    elements: [Type<'_>; 3],
    target: Target,
    grid: Grid,
) -> Option<Encoding> {
    let [a, b, c] = elements.map(|element| elements_of(element, false).first().copied());
    let elements = vec![[a?, b?, c?]];
    let product = Product::without_units(shape.to_vec(), depth, elements, target, grid);
    product
        .with_units()
        .by_units
        .into_iter()
        .map(|(way, _)| way)
        .next()
}

/// How the blocks of a cluster may share the result of a product: each has all rows, all columns, or neither, those
/// with the most square parts first. No two blocks contribute to the same element.
pub(crate) fn shares_of(shape: &[u64], blocks: u32) -> Vec<CgaLayout> {
    let [batches @ .., rows, columns] = shape else {
        return Vec::new();
    };
    let mut ways: Vec<[u32; 2]> = (0..=blocks.ilog2())
        .map(|bit| [blocks >> bit, 1 << bit])
        .filter(|way| u64::from(way[0]) <= *rows && u64::from(way[1]) <= *columns)
        .collect();
    ways.sort_by_key(|way| {
        let part = [rows / u64::from(way[0]), columns / u64::from(way[1])];
        (part[0].ilog2().abs_diff(part[1].ilog2()), *way)
    });
    let order: Vec<u32> = (0..shape.len() as u32).rev().collect();
    let shares = ways.into_iter().filter_map(|way| {
        let split: Vec<u32> = batches.iter().map(|_| 1).chain(way).collect();
        CgaLayout::from_split(&split, &split, &order).ok()
    });
    shares.collect()
}

impl Product {
    /// The layouts of the result in which it may be computed: those of matrix units, the most square
    /// part for each warp first, and those of threads.
    pub(super) fn encodings(&self) -> impl Iterator<Item = Encoding> {
        let units = self.by_units.iter().map(|(encoding, _)| encoding.clone());
        // Threads do not support scales.
        let threads = self.group.is_none().then(|| self.by_threads());
        units.chain(threads.into_iter().flatten())
    }

    /// How the blocks of a cluster may share the result.
    pub(super) fn shares(&self) -> Vec<CgaLayout> {
        shares_of(&self.shape, self.grid.num_ctas)
    }

    /// The part of a tensor that one block of a cluster has.
    pub(super) fn part(shape: &[u64], blocks: &CgaLayout) -> Option<Vec<u64>> {
        let pieces = blocks.split().ok()?;
        let parts = shape.iter().zip(pieces);
        Some(
            parts
                .map(|(&extent, pieces)| extent / u64::from(pieces))
                .collect(),
        )
    }

    pub(super) fn find_units(&self) -> Vec<Plan> {
        let mut ways = Vec::new();
        for blocks in self.shares() {
            let Some(part) = Self::part(&self.shape, &blocks) else {
                continue;
            };
            for (way, row) in self.units_of_block(&part) {
                ways.extend(product::over_cluster(way, &blocks).map(|way| (way, row)));
            }
        }
        ways
    }

    /// The plans by which one block computes its part of the result.
    fn units_of_block(&self, part: &[u64]) -> Vec<Plan> {
        let [batches @ .., rows, columns] = part else {
            return Vec::new();
        };
        let mut ways = Vec::new();
        for &elements in &self.elements {
            ways.extend(self.find_groups(part, elements));
            let [a, b, c] = elements;
            // Of instructions with one tile, the one with the largest k.
            let mut rows_of_table: Vec<&MatrixInstruction> = instructions_for(self.target, a, b, c)
                .filter(|row| row.warps == 1 && row.scale.map(|scale| scale.group) == self.group)
                .filter(|row| row.steps == 1)
                .filter(|row| u64::from(row.k) <= self.depth)
                .collect();
            // A tile may have more rows or columns than the result if none has as many: repeated work is part of the price.
            let most = |extent: u64, tile: fn(&MatrixInstruction) -> u32| {
                let tiles = rows_of_table.iter().map(|row| u64::from(tile(row)));
                tiles.filter(|tile| *tile >= extent).min().unwrap_or(extent)
            };
            let (most_rows, most_columns) = (most(*rows, |row| row.m), most(*columns, |row| row.n));
            rows_of_table
                .retain(|row| u64::from(row.m) <= most_rows && u64::from(row.n) <= most_columns);
            rows_of_table.sort_by_key(|row| std::cmp::Reverse((row.m * row.n, row.k)));
            let mut tiles = Vec::new();
            for row in rows_of_table {
                if tiles.contains(&(row.m, row.n)) {
                    continue;
                }
                let arrangements = self.arrangements(batches, [*rows, *columns], row);
                let generation = self.target.matrix_generation();
                let encodings: Vec<Encoding> = arrangements
                    .iter()
                    .filter_map(|warps| product::of_instruction(row, generation, warps))
                    .collect();
                if !encodings.is_empty() {
                    tiles.push((row.m, row.n));
                }
                for encoding in encodings {
                    // A smaller instruction may compute the same tile in more executions.
                    if ways.iter().all(|(known, _)| *known != encoding) {
                        ways.push((encoding, row));
                    }
                }
            }
            if !ways.is_empty() {
                break;
            }
        }
        ways
    }

    /// The plans of warp groups: each arrangement in which the groups of a column divide the rows, with the widest
    /// instruction that fits.
    fn find_groups(&self, part: &[u64], [a, b, c]: [MatrixElement; 3]) -> Vec<Plan> {
        let &[rows, columns] = part else {
            return Vec::new();
        };
        if !self.by_groups {
            return Vec::new();
        }
        let table: Vec<&MatrixInstruction> = instructions_for(self.target, a, b, c)
            .filter(|row| row.warps > 1 && row.scale.is_none())
            .filter(|row| u64::from(row.k) <= self.depth)
            .collect();
        let mut ways = Vec::new();
        for bit in 0..=self.grid.num_warps.ilog2() {
            let [down, across] = [self.grid.num_warps >> bit, 1 << bit];
            let part = (columns / u64::from(across)).min(MOST_COLUMNS);
            let row = table.iter().find(|row| {
                u64::from(row.n) == part
                    && down.is_multiple_of(row.warps)
                    && u64::from(row.m * (down / row.warps)) <= rows
            });
            let Some(&row) = row else {
                continue;
            };
            let generation = self.target.matrix_generation();
            let encoding = product::of_instruction(row, generation, &[down, across]);
            ways.extend(encoding.map(|encoding| (encoding, row)));
        }
        ways
    }

    /// The arrangements of warps over the result: batches first, then every arrangement in which each warp has a tile
    /// of its own; if there is none, all arrangements.
    fn arrangements(
        &self,
        batches: &[u64],
        [rows, columns]: [u64; 2],
        row: &MatrixInstruction,
    ) -> Vec<Vec<u32>> {
        let mut warps = self.grid.num_warps;
        let mut before = Vec::new();
        for &batch in batches {
            let taken = u32::try_from(batch).unwrap_or(warps).min(warps);
            before.push(taken);
            warps /= taken;
        }
        let tiles = [rows / u64::from(row.m), columns / u64::from(row.n)];
        let mut ways: Vec<[u32; 2]> = (0..=warps.ilog2())
            .map(|bit| [1 << bit, warps >> bit])
            .collect();
        let fits = |way: &[u32; 2]| {
            u64::from(way[0]) <= tiles[0].max(1) && u64::from(way[1]) <= tiles[1].max(1)
        };
        if ways.iter().any(fits) {
            ways.retain(fits);
        }
        // The difference between the rows and the columns of a warp's own part.
        ways.sort_by_key(|way| {
            let part = [rows / u64::from(way[0]), columns / u64::from(way[1])];
            (
                part[0].max(1).ilog2().abs_diff(part[1].max(1).ilog2()),
                *way,
            )
        });
        let whole = ways.into_iter().map(|way| [&before[..], &way].concat());
        whole.collect()
    }

    /// The layouts of a result that threads compute by multiply-adds: squares, as large as possible while every
    /// thread has one. Where no matrix unit takes the types, rectangles of two squares as well: they read a few more
    /// elements of the factors, but longer vectors of their rows.
    pub(super) fn by_threads(&self) -> Vec<Encoding> {
        let rank = self.shape.len();
        if rank < 2 {
            return Vec::new();
        }
        let elements: u64 = self.shape.iter().product();
        let Grid {
            num_warps,
            threads_per_warp,
            num_ctas,
        } = self.grid;
        let threads = u64::from(num_warps) * u64::from(threads_per_warp);
        let order: Vec<u32> = (0..rank as u32).rev().collect();
        let mut encodings = Vec::new();
        for (rows, columns) in [(4, 4), (2, 4), (2, 2), (1, 2), (1, 1)] {
            let too_large = rows * columns > 1 && elements < threads * u64::from(rows * columns);
            if too_large || (rows != columns && !self.by_units.is_empty()) {
                continue;
            }
            let mut size_per_thread = vec![1; rank];
            size_per_thread[rank - 2] = rows;
            size_per_thread[rank - 1] = columns;
            let encoding = Blocked::spread_over_cluster(
                &self.shape,
                &size_per_thread,
                &order,
                num_warps,
                threads_per_warp,
                num_ctas,
            );
            encodings.extend(encoding.map(Encoding::Blocked));
        }
        encodings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layouts::products::of_halves;

    #[test]
    fn warps_have_tiles_of_their_own_the_most_square_first() {
        let ways = of_halves("cuda:80", [64, 64], 32).by_units;
        let warps: Vec<Vec<u32>> = ways
            .iter()
            .map(|(encoding, _)| match encoding {
                Encoding::NvidiaMma(mma) => mma.warps_per_cta.clone(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(warps, [[2, 2], [1, 4], [4, 1]]);
        // 16 rows are one tile.
        assert_eq!(of_halves("cuda:80", [16, 64], 32).by_units.len(), 1);
    }
}
