//! How many blocks should share the loop of a kernel: decided when it is launched, with what the compiler knows.
//!
//! The number of programs is known only at a launch, as is often that of the iterations. So the compiler proposes:
//! it compiles the kernel as if two blocks shared its loop of products, and keeps the figures of that. A launch of `P`
//! programs with `n` iterations on `M` multiprocessors takes, if `S` blocks share each program, about
//!
//! ```text
//! ceil(P / C(S)) * (ceil(n / S) * I + R(S))                                 R(1) = 0
//! ```
//!
//! cycles, where `I` are the cycles of an iteration, `R(S)` those of the sum, and `C(S)` is the number of clusters that run
//! at a time with a multiprocessor for each block. That is not `M / S`: the multiprocessors of a cluster are neighbours,
//! and the last ones of a neighbourhood are too few for one more (an H100 with 132 has room for 66 clusters of two, 30
//! of four, 15 of eight). The driver knows it. Blocks on one multiprocessor share its
//! units, so a second one on it is assumed to gain nothing. The fewest cycles win, the fewest blocks among equals.
//!
//! Where blocks are left over, they may also divide the columns of a tile, which takes no sum, but each then loads all of
//! the rows; and where there is one row of tiles compute no more rows than there are ([`ProductTile`]).

use std::iter;
use std::str::FromStr;

use llopt_target::{Feature, Target};
use llopt_transforms::split_k::{self, Count};
use serde::{Deserialize, Serialize};

use crate::accounts::loop_schedules::{self, LoopSchedule};
use crate::accounts::shared_loops::{self, SharedLoop};
use crate::accounts::tensor_copies::{self, CopiedLoop};
use crate::own_thread::in_own_thread_within;
use crate::product_tile::{self, Memory, ProductTile, TileAccount, TileLaunch};
use crate::{Error, Options, Source, Timings, compiler, input, session};

/// The numbers of blocks among which a launch chooses.
const BLOCKS: [u32; 4] = [1, 2, 4, 8];
/// Cycles that sharing takes besides the transfers: the launch of clusters, and the meetings. This and the next number choose, of
/// 24 configurations of products of 64 and 128 rows with weights of 16 to 34 megabytes on an H100, forms that take 1.6 % longer
/// than the fastest, at most 13 %.
const SHARING: u64 = 3000;
/// Cycles of a wavefront of the sum that comes from another block. Continued to k = 0, products whose tiles of 64 by 128 two blocks
/// share take 3,900 cycles more than those of one, and 2,100 with tiles of 64 by 64.
const REMOTE: f32 = 40.0;
/// The most blocks that share iterations in a launch whose blocks have a multiprocessor each: larger clusters start only where as
/// many neighbours are free at a time. With 17 tiles of 64 by 128 four blocks with deep rings take 15.6 microseconds, and 12.8 if
/// two blocks fit on a multiprocessor.
const MOST_ALONE: u32 = 2;
/// Cycles in which the copy unit fills a row of a box, up to 128 bytes, that is outside of its tensor. Tiles of 64 to 256
/// rows of a matrix with 16 or 64 rows, on an H100: 12 to 17.
const ROW_OUTSIDE: u64 = 12;
/// Cycles of it where all blocks read the same memory at a time. A product of 128 rows by 7168 columns with k = 2048 in 56 tiles on
/// an H100, whose sums are not divided: 11.8 microseconds by one block for each, 18.3 by two and 116 by four.
const CROWDED: f32 = 12.0;
/// Bytes that the rings which a program asks for hold, from which on deeper ones gain nothing where all factors come from the
/// cache: products of 256 rows by 2048 columns with k = 4096 take 9.0 microseconds with 128 KiB and 11.3 with 224, with 64 KiB
/// 16.5 and with 128 11.5; with 64 rows and 96 KiB 12.3 to 12.8, and with all of the memory 10.9 to 11.0 (H100).
const ENOUGH: u64 = 112 << 10;
/// Bytes of a wavefront of shared memory.
const WAVEFRONT: u64 = 128;

/// What a launch needs to choose the number of blocks that share a loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SplitProposal {
    /// Cycles of an iteration.
    pub interval: u64,
    /// The number of iterations, in postfix order; `a3` is argument 3 of the kernel.
    pub iterations: String,
    /// Bytes of the sums of a block.
    pub sum_bytes: u64,
    /// Whether each block gets only its part of the sum.
    pub is_divided: bool,
    /// Cycles of a wavefront of the own shared memory.
    pub wavefront: f32,
    /// Bytes of a cycle that each multiprocessor takes from the shared cache at most, and by which it falls short of memory
    /// where it only reads.
    #[serde(default = "unlimited")]
    pub streamed_bytes: [u32; 2],
    /// Whether blocks can share the iterations; otherwise the figures of their sums mean nothing.
    #[serde(default = "always")]
    pub is_shared: bool,
    /// The stages that the program asks for, each of a slice of the tiles where they are copied in slices.
    #[serde(default)]
    pub stages: u32,
    /// The tile of the product, if launches may compute less of it.
    #[serde(default)]
    pub tile: Option<ProductTile>,
}

fn always() -> bool {
    true
}

fn unlimited() -> [u32; 2] {
    [u32::MAX; 2]
}

/// The form of a kernel for a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchForm {
    /// The blocks that share the iterations of a program.
    pub blocks: u32,
    /// The blocks that each compute a part of its tile.
    pub parts: u32,
    /// The rows of the tile that are computed; zero for all.
    pub rows: u32,
    /// Whether there are no more blocks than multiprocessors, and deep rings are worth it.
    pub single_wave: bool,
    /// Whether the second factor of the product is larger than the cache.
    pub streamed: bool,
}

/// The figures of a kernel without layouts; `None` if blocks cannot share a loop of it.
///
/// # Errors
/// Those of a [compilation](crate::Compiler::compile).
pub fn propose_split(source: &Source, options: &Options) -> Result<Option<SplitProposal>, Error> {
    let (source, mut options) = (source.clone(), options.clone());
    if options.num_ctas.unwrap_or(1) > 1 {
        return Ok(None);
    }
    options.keep_decisions = true;
    options.split_k = match options.target.has(Feature::Cluster) {
        true => 2,
        false => 1,
    };
    in_own_thread_within(Some(options.budget), move || {
        let context = session::context()?;
        let module = input::read(&context, &source, &options)?;
        if split_k::loops_of_products(module.as_operation()).is_empty() {
            return Ok(None);
        }
        compiler::to_layouts(&context, &module, &options, &mut Timings::default())?;
        let shared = shared_loops::take(module.as_operation());
        let tile = product_tile::take(module.as_operation());
        let schedules = loop_schedules::take(module.as_operation());
        let copied = tensor_copies::take(module.as_operation());
        let shared = shared.into_iter().find(|of| of.reason.is_none());
        Ok(proposal(shared, tile, &schedules, &copied, options.target))
    })
}

/// The figures of a loop that blocks may share or whose tile they may divide, if it is pipelined.
fn proposal(
    shared: Option<SharedLoop>,
    tile: Option<TileAccount>,
    schedules: &[LoopSchedule],
    copied: &[CopiedLoop],
    target: Target,
) -> Option<SplitProposal> {
    let of_shared = shared.as_ref().map(|of| (&of.location, &of.iterations));
    let of_tile = tile.as_ref().map(|of| (&of.location, &of.iterations));
    let (location, iterations) = of_shared.or(of_tile)?;
    let schedule = schedules.iter().find(|one| one.location == *location)?;
    let stages = schedule.pipeline.as_ref()?;
    let slices = copied.iter().find(|one| one.location == *location);
    let slices = slices.map_or(1, |copied| copied.slices);
    // With too few stages, iterations wait for their loads.
    let interval = u64::from(stages.interval);
    let waiting = interval * u64::from(stages.needed) / u64::from(stages.stages.max(1));
    Some(SplitProposal {
        interval: interval.max(waiting),
        iterations: match slices {
            1 => iterations.clone(),
            // The interval is that of a slice.
            slices => format!("{iterations} {slices} *"),
        },
        sum_bytes: shared.as_ref().map_or(0, |of| of.sum_bytes),
        is_divided: shared.as_ref().is_some_and(|of| of.divided.is_some()),
        wavefront: target.movement_costs().wavefront,
        streamed_bytes: streamed_bytes(target),
        is_shared: shared.is_some(),
        stages: stages.wanted * slices,
        tile: tile.map(|of| of.tile.in_slices(slices.into())),
    })
}

fn streamed_bytes(target: Target) -> [u32; 2] {
    let costs = target.global_costs();
    [costs.shared_cache_bytes, costs.streamed_bytes]
}

impl SplitProposal {
    /// The arguments of the kernel that [`Self::blocks`] needs.
    #[must_use]
    pub fn arguments(&self) -> Vec<usize> {
        let tile = self.tile.iter().filter_map(|tile| tile.rows.as_deref());
        let formulas = [self.iterations.as_str()].into_iter().chain(tile);
        let counts = formulas.filter_map(|formula| Count::from_str(formula).ok());
        let mut all: Vec<usize> = counts.flat_map(|count| count.arguments()).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The number of blocks that share each of so many programs, where so many clusters of one, two, four and eight
    /// blocks run at a time; `values` are those of [`Self::arguments`].
    #[must_use]
    pub fn blocks(&self, programs: u64, clusters: [u64; BLOCKS.len()], values: &[i64]) -> u32 {
        if !self.is_shared {
            return 1;
        }
        let Some(iterations) = self.evaluate(&self.iterations, values) else {
            return 1;
        };
        let Ok(iterations) = u64::try_from(iterations) else {
            return 1;
        };
        let possible = BLOCKS.into_iter().zip(clusters);
        let possible = possible.filter(|(_, clusters)| *clusters > 0);
        let cycles = |(blocks, clusters): &(u32, u64)| {
            self.cycles_shared(programs.div_ceil(*clusters), iterations, *blocks)
        };
        possible.min_by_key(cycles).map_or(1, |(blocks, _)| blocks)
    }

    /// Cycles of so many waves of programs, each of which is computed by so many blocks.
    fn cycles_shared(&self, waves: u64, iterations: u64, blocks: u32) -> u64 {
        let blocks = u64::from(blocks);
        let of_loop = iterations.div_ceil(blocks).saturating_mul(self.interval);
        waves.saturating_mul(of_loop.saturating_add(self.sum(blocks)))
    }

    /// The form of the kernel for a launch of so many programs, where so many clusters run at a time; `values` are those of
    /// [`Self::arguments`].
    #[must_use]
    pub fn form(
        &self,
        programs: u64,
        clusters: [u64; BLOCKS.len()],
        memory: Memory,
        values: &[i64],
    ) -> LaunchForm {
        let plain = LaunchForm {
            blocks: self.blocks(programs, clusters, values),
            parts: 1,
            rows: 0,
            single_wave: false,
            streamed: false,
        };
        let Some(tile) = &self.tile else {
            return plain;
        };
        let number = |formula: &str| {
            let number = self.evaluate(formula, values)?;
            u64::try_from(number).ok().filter(|&number| number > 0)
        };
        let Some(iterations) = number(&self.iterations) else {
            return plain;
        };
        let rows = tile.rows.as_deref().map(number);
        if rows == Some(None) {
            return plain;
        }
        let rows = rows.flatten();
        // Of rows that are not known each program may have others.
        let rows_of_tiles = rows.map_or(programs, |rows| rows.div_ceil(tile.extents[0].max(1)));
        let is_one_row = rows.is_some() && rows_of_tiles == 1;
        if !is_one_row && programs > clusters[0] {
            return plain;
        }
        let launch = TileLaunch {
            programs,
            rows_of_tiles,
            iterations,
            interval: self.interval,
            memory,
            streamed_bytes: self.streamed_bytes,
        };
        let computed = rows.map_or(0, |rows| tile.rows_computed(rows));
        match is_one_row && tile.streams(launch) {
            true => self.streaming(tile, launch, clusters, computed, plain),
            false => self.computing(tile, launch, clusters, computed, plain),
        }
    }

    /// The numbers of blocks that may each compute a part of a tile, with a multiprocessor for each.
    fn parts(tile: &ProductTile, programs: u64, multiprocessors: u64) -> impl Iterator<Item = u32> {
        BLOCKS.into_iter().filter(move |&parts| {
            parts <= tile.most_parts && programs * u64::from(parts) <= multiprocessors
        })
    }

    /// The form of a launch with several rows of tiles or whose second factor comes from the cache, so that what a multiprocessor
    /// computes is what takes the time, where so many rows of the tile are computed, or all: `plain`, or parts of tiles and of the
    /// iterations for which each block has a multiprocessor.
    fn computing(
        &self,
        tile: &ProductTile,
        launch: TileLaunch,
        clusters: [u64; BLOCKS.len()],
        computed: u32,
        plain: LaunchForm,
    ) -> LaunchForm {
        let running = clusters[plain.blocks.ilog2() as usize].max(1);
        let waves = launch.programs.div_ceil(running);
        let as_it_is = self.cycles_shared(waves, launch.iterations, plain.blocks);
        let is_deep = |blocks, parts| {
            let asked = u64::from(self.stages) * tile.loaded(computed, parts);
            blocks <= MOST_ALONE && (asked < ENOUGH || tile.streams(launch))
        };
        let sharing = BLOCKS.into_iter().zip(clusters);
        let sharing = sharing.filter(|(blocks, _)| *blocks == 1 || self.is_shared);
        let divided = sharing.flat_map(|(blocks, clusters)| {
            Self::parts(tile, launch.programs, clusters).map(move |parts| LaunchForm {
                blocks,
                parts,
                rows: computed,
                single_wave: is_deep(blocks, parts),
                ..plain
            })
        });
        // Of several rows of tiles, those that are not divided may get deep rings, too.
        let divided = divided.filter(|form| {
            (form.blocks, form.parts, form.rows) != (1, 1, 0)
                || launch.rows_of_tiles > 1 && form.single_wave
        });
        let divided = divided.map(|form| {
            let interval = tile.interval(self.interval, form.rows, form.parts);
            let iterations = launch.iterations.div_ceil(form.blocks.into());
            let of_part = tile.share(form.rows, form.parts);
            let sum = self.sum_of((self.sum_bytes as f64 * of_part) as u64, form.blocks.into());
            (iterations.saturating_mul(interval) + sum, form)
        });
        let possible = divided.chain(iter::once((as_it_is, plain)));
        let fastest = possible.min_by_key(|(cycles, _)| *cycles);
        fastest.map_or(plain, |(_, form)| form)
    }

    /// The form of a launch with one row of tiles whose second factor comes from memory, where so many rows of the tile are
    /// computed, or all: parts of tiles, or blocks that share iterations, or fewer rows of `plain`.
    fn streaming(
        &self,
        tile: &ProductTile,
        launch: TileLaunch,
        clusters: [u64; BLOCKS.len()],
        computed: u32,
        plain: LaunchForm,
    ) -> LaunchForm {
        let sharing = BLOCKS.into_iter().zip(clusters).skip(1);
        let sharing = sharing
            .filter(|(_, clusters)| self.is_shared && launch.programs <= *clusters)
            .map(|(blocks, _)| LaunchForm { blocks, ..plain });
        let dividing = Self::parts(tile, launch.programs, clusters[0]).map(|parts| LaunchForm {
            blocks: 1,
            parts,
            rows: computed,
            ..plain
        });
        let cycles = |form: &LaunchForm| {
            let LaunchForm {
                blocks,
                parts,
                rows,
                ..
            } = *form;
            tile.cycles(launch, rows, parts, blocks) + self.sum(blocks.into())
        };
        let narrow = LaunchForm {
            rows: if plain.blocks == 1 { computed } else { 0 },
            ..plain
        };
        let possible = dividing.chain(sharing).min_by_key(cycles);
        possible.map_or(narrow, |form| LaunchForm {
            single_wave: true,
            streamed: true,
            ..form
        })
    }

    /// Whether tensor copies are no slower than loads for a form in which tiles have fewer rows.
    #[must_use]
    pub fn copies_of_rows_keep_up(&self, form: LaunchForm, values: &[i64]) -> bool {
        let Some(tile) = &self.tile else {
            return true;
        };
        let rows = tile.rows.as_deref();
        let rows = rows.and_then(|rows| self.evaluate(rows, values));
        let rows = rows.unwrap_or_else(|| form.rows.into());
        let outside = i64::from(form.rows)
            .saturating_sub(rows)
            .max(0)
            .unsigned_abs();
        let interval = tile.interval(self.interval, form.rows, form.parts);
        outside * ROW_OUTSIDE <= interval
    }

    /// A formula for the values of [`Self::arguments`].
    fn evaluate(&self, formula: &str, values: &[i64]) -> Option<i64> {
        let count = Count::from_str(formula).ok()?;
        let all = self.arguments();
        let value = |argument: &usize| {
            let position = all.iter().position(|other| other == argument)?;
            values.get(position).copied()
        };
        let own: Option<Vec<i64>> = count.arguments().iter().map(value).collect();
        count.evaluate(&own?)
    }

    /// Whether tensor copies are no slower than loads, if so many rows of the boxes of an iteration are outside of their
    /// tensors. Loads of rows that wrap around come from the cache; the copy unit takes longer to fill rows than to copy.
    #[must_use]
    pub fn copies_keep_up(&self, rows_outside: u64) -> bool {
        rows_outside.saturating_mul(ROW_OUTSIDE) <= self.interval
    }

    /// Cycles to add the sums of so many blocks.
    fn sum(&self, blocks: u64) -> u64 {
        self.sum_of(self.sum_bytes, blocks)
    }

    /// Cycles to add sums of so many bytes. Where each block reads its part, all of their memories are read at a time; where each reads
    /// all, they read one after the other.
    fn sum_of(&self, bytes: u64, blocks: u64) -> u64 {
        if blocks == 1 {
            return 0;
        }
        let whole = (bytes / WAVEFRONT) as f32;
        let blocks = blocks as f32;
        let (read, from_others) = match self.is_divided {
            true => (whole / blocks, whole / blocks * (blocks - 1.0) * REMOTE),
            false => (whole, whole * (blocks - 1.0) * blocks * CROWDED),
        };
        SHARING + ((whole + read) * self.wavefront + from_others) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tile of so many rows and columns of f32, in iterations of 64 along k.
    fn tile(rows: u64, columns: u64, interval: u64) -> SplitProposal {
        SplitProposal {
            interval,
            iterations: "a5 63 + 64 /".to_owned(),
            sum_bytes: rows * columns * 4,
            is_divided: true,
            wavefront: 1.0,
            streamed_bytes: streamed_bytes(Target::parse("cuda:90").unwrap()),
            is_shared: true,
            stages: 4,
            tile: None,
        }
    }

    /// The clusters of an H100.
    const CLUSTERS: [u64; 4] = [132, 66, 30, 15];

    #[test]
    fn loops_are_shared_where_multiprocessors_are_left() {
        let small = tile(16, 128, 288);
        assert_eq!(small.arguments(), [5]);
        // Half of the multiprocessors have no tile, or three quarters.
        assert_eq!(small.blocks(64, CLUSTERS, &[8192]), 2);
        assert_eq!(small.blocks(30, CLUSTERS, &[8192]), 4);
        assert_eq!(tile(128, 256, 512).blocks(64, CLUSTERS, &[8192]), 2);
        // Each has one, or there would be two waves.
        assert_eq!(small.blocks(128, CLUSTERS, &[8192]), 1);
        assert_eq!(small.blocks(67, CLUSTERS, &[8192]), 1);
        // The loop is too short, empty, or unknown.
        assert_eq!(small.blocks(64, CLUSTERS, &[1024]), 1);
        assert_eq!(small.blocks(64, CLUSTERS, &[-5]), 1);
        assert_eq!(small.blocks(64, CLUSTERS, &[]), 1);
        // A GPU with few multiprocessors, or none that is known.
        assert_eq!(small.blocks(1, [2, 1, 0, 0], &[8192]), 2);
        assert_eq!(small.blocks(1, [0; 4], &[8192]), 1);
    }

    /// Products with weights of 8192 by 8192 on an H100: microseconds with one, two and four blocks for each tile.
    #[test]
    fn the_choice_is_the_fastest_measured() {
        let measured = [
            (tile(16, 128, 360), 64, [53.0, 47.4, 52.6]),
            (tile(16, 128, 288), 64, [48.6, 47.1, 54.1]),
            (tile(16, 64, 160), 128, [46.3, 50.0, 58.2]),
            (tile(64, 128, 384), 64, [53.4, 49.5, 60.4]),
            (tile(64, 64, 256), 128, [48.1, 55.9, 72.0]),
            (tile(128, 256, 1024), 64, [97.2, 70.4, 133.0]),
            (tile(128, 128, 512), 128, [63.6, 80.3, 129.8]),
        ];
        for (proposal, programs, times) in measured {
            let least = times.into_iter().fold(f32::INFINITY, f32::min);
            let fastest = times.iter().position(|time| *time == least).unwrap();
            let chosen = proposal.blocks(programs, CLUSTERS, &[8192]);
            assert_eq!(chosen, 1 << fastest, "{programs} of {proposal:?}");
        }
        // Fewer columns: with one, two, four and eight blocks for each tile.
        let measured = [
            (tile(16, 128, 288), 16, [34.9, 19.5, 12.2, 13.9]),
            (tile(16, 128, 288), 8, [30.6, 16.8, 10.6, 8.6]),
            (tile(64, 128, 384), 32, [42.6, 30.6, 32.5, 45.7]),
            (tile(64, 128, 384), 16, [35.0, 22.8, 14.2, 20.5]),
            (tile(128, 256, 1024), 16, [76.4, 49.7, 41.7, 69.3]),
            (tile(128, 256, 1024), 8, [76.5, 49.1, 36.8, 30.6]),
        ];
        for (proposal, programs, times) in measured {
            let least = times.into_iter().fold(f32::INFINITY, f32::min);
            let fastest = times.iter().position(|time| *time == least).unwrap();
            let chosen = proposal.blocks(programs, CLUSTERS, &[8192]);
            assert_eq!(chosen, 1 << fastest, "{programs} of {proposal:?}");
        }
    }

    /// Products with 8192 by 8192 weights on an H100, microseconds with loads and with copies: the interval of a tile, and
    /// the rows of its iteration that are outside of the matrix.
    #[test]
    fn copies_are_chosen_where_they_are_no_slower() {
        let measured = [
            (1024, 224, [57.8, 75.6]),
            (384, 112, [76.2, 103.5]),
            (384, 64, [57.6, 81.5]),
            (1280, 384, [101.2, 204.3]),
            (288, 0, [56.9, 52.0]),
            (384, 0, [58.0, 57.7]),
        ];
        for (interval, outside, [loads, copies]) in measured {
            let proposal = tile(64, 64, interval);
            assert_eq!(proposal.copies_keep_up(outside), copies < loads);
        }
    }

    /// Products with weights of 8192 by 8192 on an H100, by tiles of 64 by 128 halves.
    #[test]
    fn launches_of_one_row_of_tiles_divide_their_columns() {
        let memory = Memory {
            bytes_per_cycle: 1692.0,
            cache: 50 << 20,
        };
        let of_tile = |most_parts| SplitProposal {
            tile: Some(ProductTile {
                extents: [64, 128],
                most_parts,
                rows: Some("a3".to_owned()),
                bytes: [8192, 16384],
            }),
            ..tile(64, 128, 384)
        };
        let form = |most_parts, rows, memory| {
            let proposal: SplitProposal = of_tile(most_parts);
            assert_eq!(proposal.arguments(), [3, 5]);
            let form = proposal.form(64, CLUSTERS, memory, &[rows, 8192]);
            let is_small = memory.cache < 1 << 27 && memory.bytes_per_cycle > 0.0;
            assert_eq!(form.streamed, form.single_wave && is_small && rows <= 64);
            (form.blocks, form.parts, form.rows, form.single_wave)
        };
        assert_eq!(form(8, 64, memory), (1, 2, 0, true));
        assert_eq!(form(8, 16, memory), (1, 2, 16, true));
        // Sixty-four blocks read nearly as fast, so sharing iterations is not worth its sum.
        assert_eq!(form(1, 64, memory), (1, 1, 0, true));
        // Several rows of tiles: two as well, or as many as multiprocessors.
        assert_eq!(form(8, 65, memory), (1, 2, 0, true));
        let many = of_tile(8).form(256, CLUSTERS, memory, &[256, 8192]);
        assert_eq!((many.blocks, many.parts, many.single_wave), (1, 1, false));
        // Rows that are not known.
        let mut unknown = of_tile(8);
        unknown.tile.as_mut().unwrap().rows = None;
        assert_eq!(unknown.arguments(), [5]);
        let of_each = unknown.form(64, CLUSTERS, memory, &[8192]);
        assert_eq!((of_each.blocks, of_each.parts, of_each.rows), (1, 2, 0));
        assert!(!of_each.streamed);
        let many = unknown.form(256, CLUSTERS, memory, &[8192]);
        assert_eq!((many.blocks, many.parts, many.single_wave), (1, 1, false));
        let large = Memory {
            cache: 1 << 30,
            ..memory
        };
        // Weights in the cache: halves of tiles take two thirds of the iterations' time, and half of the iterations half of it and
        // a sum. With half as many programs both together are fastest.
        assert_eq!(form(8, 64, large), (1, 2, 0, true));
        let both = of_tile(8).form(32, CLUSTERS, large, &[64, 8192]);
        assert_eq!((both.blocks, both.parts, both.rows), (2, 2, 0));
        let rows = of_tile(8).form(32, CLUSTERS, large, &[16, 8192]);
        assert_eq!((rows.blocks, rows.parts, rows.rows), (1, 4, 16));
        let few = of_tile(8).form(64, CLUSTERS, large, &[64, 2048]);
        assert_eq!((few.blocks, few.parts, few.single_wave), (1, 2, true));
        let whole = of_tile(1).form(64, CLUSTERS, large, &[64, 2048]);
        assert_eq!((whole.blocks, whole.parts), (1, 1));
        let unknown = Memory {
            bytes_per_cycle: 0.0,
            ..memory
        };
        assert_eq!(form(1, 64, unknown), (2, 1, 0, true));
        // More programs than multiprocessors compute fewer rows all the same.
        let wide = of_tile(8).form(256, CLUSTERS, memory, &[16, 8192]);
        assert_eq!(
            (wide.blocks, wide.parts, wide.rows, wide.single_wave),
            (1, 1, 16, false)
        );
    }

    #[test]
    fn whole_sums_cost_more_than_parts() {
        let divided = tile(128, 128, 100);
        let whole = SplitProposal {
            is_divided: false,
            ..divided.clone()
        };
        for blocks in [2, 4, 8] {
            assert!(whole.sum(blocks) > divided.sum(blocks));
        }
        // 17 tiles with k = 7168 take 33.8 microseconds by one block for each, 31.5 by two and 57.9 by four.
        let store = SplitProposal {
            interval: 512,
            ..whole
        };
        assert_eq!(store.blocks(17, CLUSTERS, &[7168]), 2);
        assert_eq!(store.blocks(56, CLUSTERS, &[2048]), 1);
    }

    #[test]
    fn a_kernel_is_proposed_with_its_figures() {
        let text = include_str!("../tests/data/shared_product.ttir");
        let options = Options::new(Target::parse("cuda:90").unwrap());
        let source = Source::new("product.ttir", text);
        let proposal = propose_split(&source, &options).unwrap().unwrap();
        assert_eq!(proposal.arguments(), [3]);
        assert_eq!(
            (proposal.sum_bytes, proposal.is_divided),
            (64 * 64 * 4, true)
        );
        assert!(proposal.interval >= 256);
        assert_eq!(proposal.blocks(15, CLUSTERS, &[1000]), 8);
        let json = serde_json::to_string(&proposal).unwrap();
        assert_eq!(
            serde_json::from_str::<SplitProposal>(&json).unwrap(),
            proposal
        );
        // Where there are no clusters, and where nothing is multiplied, there is nothing to choose.
        let old = Options::new(Target::parse("cuda:80").unwrap());
        assert_eq!(propose_split(&source, &old).unwrap(), None);
        let other = "tt.func public @f() { tt.return }";
        let other = Source::new("f.ttir", other);
        assert_eq!(propose_split(&other, &options).unwrap(), None);
    }
}
