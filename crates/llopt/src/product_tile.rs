//! The tile of a kernel's product, and what it becomes in a launch with few rows.
//!
//! Where one row of tiles covers the matrix, each element of the other factor is read once. Blocks that only read fall
//! short of memory, the fewer of them the more, and none gets more than its multiprocessor takes from the shared cache:
//!
//! ```text
//! max(n * I, P * n * B * max(1 / memory + 1 / (blocks * M), 1 / (blocks * C))) + R
//! ```
//!
//! cycles for `P` programs of `n` iterations, where `I` are the cycles of an iteration, `B` the bytes of the second factor in
//! it, `M` and `C` the target's figures for one multiprocessor, and `R` what a sum over blocks takes. Fewer rows and
//! columns of a tile make an iteration shorter in proportion to its bytes, which is what takes its time where rows are
//! few.

use llopt_transforms::tile_parts;
use melior::ir::OperationRef;
use serde::{Deserialize, Serialize};

use crate::accounts;

/// The attribute of the module that contains it.
const ATTRIBUTE: &str = "llopt.product_tile";

/// The tile of a kernel's product of two matrices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProductTile {
    /// Its rows and columns.
    pub extents: [u64; 2],
    /// The most blocks that can each compute a part of its columns.
    pub most_parts: u32,
    /// The rows that there are, in postfix order; `a3` is argument 3 of the kernel. `None` if that does not follow from arguments.
    #[serde(default)]
    pub rows: Option<String>,
    /// Bytes of both factors in an iteration.
    pub bytes: [u64; 2],
}

/// The tile, and the loop in which it is computed.
#[derive(Serialize, Deserialize)]
pub(crate) struct TileAccount {
    /// `file:line:col` of the loop.
    pub(crate) location: String,
    /// The number of its iterations, in postfix order.
    pub(crate) iterations: String,
    /// The tile.
    pub(crate) tile: ProductTile,
}

/// The memory of a GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Memory {
    /// Bytes that it delivers in a cycle of the multiprocessors; zero if that is not known.
    pub bytes_per_cycle: f64,
    /// Bytes of the cache that all multiprocessors share.
    pub cache: u64,
}

/// A launch of a kernel with a product.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TileLaunch {
    /// Its programs.
    pub(crate) programs: u64,
    /// The rows of tiles, each of which reads the second factor.
    pub(crate) rows_of_tiles: u64,
    /// The iterations of each.
    pub(crate) iterations: u64,
    /// The cycles of an iteration of the whole tile.
    pub(crate) interval: u64,
    /// Its memory.
    pub(crate) memory: Memory,
    /// Bytes of a cycle that each multiprocessor takes at most, and by which it falls short of memory.
    pub(crate) streamed_bytes: [u32; 2],
}

impl ProductTile {
    /// The tile with the factors of an iteration in which so many slices are copied one after another.
    pub(crate) fn in_slices(self, slices: u64) -> Self {
        Self {
            bytes: self.bytes.map(|bytes| bytes / slices.max(1)),
            ..self
        }
    }

    /// The rows of tiles that are computed for so many rows of the matrix: as few as products have, if that is fewer than
    /// the tile has; zero for all.
    pub(crate) fn rows_computed(&self, rows: u64) -> u32 {
        let fewest = rows
            .max(tile_parts::FEWEST.unsigned_abs())
            .next_power_of_two();
        match fewest < self.extents[0] {
            true => u32::try_from(fewest).unwrap_or(0),
            false => 0,
        }
    }

    /// Cycles of an iteration of so many rows, or of all, and of a part of the columns.
    pub(crate) fn interval(&self, interval: u64, rows: u32, parts: u32) -> u64 {
        let all = self.loaded(0, 1).max(1);
        (interval * self.loaded(rows, parts)).div_ceil(all)
    }

    /// Bytes of both factors in an iteration of so many rows, or of all, and of a part of the columns.
    pub(crate) fn loaded(&self, rows: u32, parts: u32) -> u64 {
        let [first, second] = self.bytes;
        let first = match rows {
            0 => first,
            rows => first * u64::from(rows) / self.extents[0].max(1),
        };
        first + second / u64::from(parts)
    }

    /// The share of the tile that so many rows, or all, and a part of the columns are.
    pub(crate) fn share(&self, rows: u32, parts: u32) -> f64 {
        let rows = match rows {
            0 => 1.0,
            rows => f64::from(rows) / self.extents[0].max(1) as f64,
        };
        rows / f64::from(parts)
    }

    /// Whether the second factor of a launch is larger than the cache.
    pub(crate) fn streams(&self, of: TileLaunch) -> bool {
        of.memory.bytes_per_cycle > 0.0 && self.streamed(of) > of.memory.cache
    }

    fn streamed(&self, of: TileLaunch) -> u64 {
        let of_row = of.programs / of.rows_of_tiles.max(1);
        let iterations = of_row.saturating_mul(of.iterations);
        iterations.saturating_mul(self.bytes[1])
    }

    /// Cycles until so many blocks for each program have read the second factor, where each computes so many rows and a part
    /// of the columns, and shares the iterations with so many others.
    pub(crate) fn cycles(&self, of: TileLaunch, rows: u32, parts: u32, sharing: u32) -> u64 {
        let iterations = of.iterations.div_ceil(sharing.into());
        let computed = iterations.saturating_mul(self.interval(of.interval, rows, parts));
        let blocks = of.programs * u64::from(parts) * u64::from(sharing);
        let [taken, short] = of
            .streamed_bytes
            .map(|each| (blocks as f64 * f64::from(each)).recip());
        let of_byte = taken.max(of.memory.bytes_per_cycle.recip() + short);
        computed.max((self.streamed(of) as f64 * of_byte) as u64)
    }
}

/// Writes the tile of a module's product to an attribute, if launches may compute less of it.
pub(crate) fn write(module: OperationRef<'_, '_>) {
    let tile = tile_parts::tile(module).filter(|tile| tile.most_parts > 1 || tile.rows.is_some());
    let found = tile.map(|tile| TileAccount {
        location: tile.location,
        iterations: tile.iterations.to_string(),
        tile: ProductTile {
            extents: tile.extents,
            most_parts: tile.most_parts,
            rows: tile.rows.map(|rows| rows.to_string()),
            bytes: tile.bytes,
        },
    });
    accounts::write(found.as_slice(), ATTRIBUTE, module);
}

/// Takes it from the module.
pub(crate) fn take(module: OperationRef<'_, '_>) -> Option<TileAccount> {
    accounts::take(ATTRIBUTE, module).pop()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tile of halves, 64 along k.
    fn tile(rows: u64, columns: u64) -> ProductTile {
        ProductTile {
            extents: [rows, columns],
            most_parts: 8,
            rows: Some("a3".to_owned()),
            bytes: [128 * rows, 128 * columns],
        }
    }

    /// A launch with weights of 8192 by 8192 on an H100.
    fn launch(programs: u64, interval: u64) -> TileLaunch {
        TileLaunch {
            programs,
            rows_of_tiles: 1,
            iterations: 128,
            interval,
            memory: Memory {
                bytes_per_cycle: 1692.0,
                cache: 50 << 20,
            },
            streamed_bytes: [64, 280],
        }
    }

    #[test]
    fn as_many_rows_are_computed_as_products_have() {
        let rows = [1, 16, 17, 40, 64, 65].map(|rows| tile(128, 64).rows_computed(rows));
        assert_eq!(rows, [16, 16, 32, 64, 64, 0]);
        assert_eq!(tile(16, 64).rows_computed(3), 0);
    }

    #[test]
    fn an_iteration_takes_as_long_as_its_bytes() {
        let tile = tile(64, 128);
        assert_eq!(tile.interval(384, 0, 1), 384);
        assert_eq!(tile.interval(384, 0, 2), 256);
        assert_eq!(tile.interval(384, 16, 2), 160);
    }

    #[test]
    fn memory_is_what_takes_time_where_enough_blocks_ask_for_it() {
        let tile = tile(64, 128);
        let few = tile.cycles(launch(64, 384), 0, 1, 1);
        let all = tile.cycles(launch(64, 384), 0, 2, 1);
        assert!(few > all && all == tile.cycles(launch(64, 384), 0, 1, 2));
        assert!(tile.streams(launch(64, 384)));
        // Sixteen programs have 2048 columns, which the cache holds.
        assert!(!tile.streams(launch(16, 384)));
    }
}
