//! The plans of a matrix product: the layout of its result in each, and its cost.
//!
//! A matrix unit has several instructions for a pair of element types, and the warps of a block may be arranged in
//! several ways over the result. An instruction with an arrangement is a *plan*, whose result has a layout of its
//! own; the layouts of the factors follow. More rows of warps mean that each warp needs fewer rows of the first
//! factor and more columns of the second; which is better depends on where the factors come from, and the conversions
//! that move them have their prices. Without an instruction for its elements, and for small results, threads multiply
//! and add: each holds a square of the result.
//!
//! Some instructions read factors in shared memory: the second always, the first if it is not in registers. Whether a
//! buffer can be read depends only on its layout ([`llopt_plan::group_operand`]), so any encoding of such a layout is
//! accepted; [`Product::in_memory`] says which buffers are proposed.
//!
//! The blocks of a cluster divide rows and columns of the result among them, and each has the parts of the factors
//! that it multiplies: blocks in one row of the result have the same rows of the first one.
//!
//! The cost of a plan is the time for which the unit is busy: the instructions that a warp executes, including the
//! repeated work of warps beyond the edge of the result; and the time to read factors in shared memory, as far as
//! that is longer.

use std::cell::OnceCell;

use llopt_dialects::layout::encoding::{Blocked, CgaLayout, Encoding};
use llopt_dialects::layout::{product, transfer};
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt;
use llopt_layout::{Dim, LinearLayout};
use llopt_mlir::ir::TypeExt;
use llopt_plan::group_operand::{GroupOperand, Wanted};
use llopt_plan::product::{UNITS, scaled_element};
use llopt_target::Target;
use llopt_target::matrix::{MatrixElement, MatrixInstruction, Operand, instructions_for};
use melior::ir::{OperationRef, Type, TypeLike, Value, ValueLike};

use super::computing::registers;
use super::grid::Grid;

/// The largest number of columns of one warp-group instruction.
const MOST_COLUMNS: u64 = 256;
/// The smallest number of products of eight-bit floats that the warp-group unit accumulates in its own precision.
const IMPRECISE: i64 = 32;

/// A product, and the target that computes it.
pub(super) struct Product {
    /// The extents of the result.
    shape: Vec<u64>,
    /// The extent that is summed over.
    depth: u64,
    /// The element types in which a matrix unit may compute it, the best first.
    elements: Vec<[MatrixElement; 3]>,
    /// Whether groups of warps may compute it.
    by_groups: bool,
    /// Elements along k that share a scale, if its factors have scales.
    group: Option<u32>,
    /// Whether the loop copies a factor's next elements while the product runs.
    pub(super) filled: [bool; 2],
    pub(super) target: Target,
    pub(super) grid: Grid,
    /// The layouts of the result that matrix units leave, each with the instruction.
    by_units: Vec<(Encoding, &'static MatrixInstruction)>,
    /// [`Product::transposed_before`] of both factors.
    transposed: [OnceCell<Option<Encoding>>; 2],
}

/// The types in which a matrix unit may take an element. `rounds` says whether `f32` may lose precision.
pub(crate) fn elements_of(element: Type<'_>, rounds: bool) -> &'static [MatrixElement] {
    match element.to_string().as_str() {
        "f16" => &[MatrixElement::F16],
        "bf16" => &[MatrixElement::Bf16],
        "f32" if rounds => &[MatrixElement::Tf32, MatrixElement::F32],
        "f32" => &[MatrixElement::F32],
        "f64" => &[MatrixElement::F64],
        "i8" => &[MatrixElement::S8],
        "i32" => &[MatrixElement::I32],
        "f8E4M3FN" => &[MatrixElement::E4m3],
        "f8E5M2" => &[MatrixElement::E5m2],
        "f8E4M3FNUZ" => &[MatrixElement::E4m3Fnuz],
        "f8E5M2FNUZ" => &[MatrixElement::E5m2Fnuz],
        _ => &[],
    }
}

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

/// Whether neighbouring elements in a buffer of a factor have neighbouring k.
fn k_is_contiguous(buffer: &Encoding, operand: usize, shape: &[u64]) -> bool {
    let memory = buffer.linear_layout(shape);
    memory.is_ok_and(|memory| {
        memory.in_dim_size_log2(Dim::OFFSET) > 0
            && memory.basis_entry(Dim::OFFSET, 0, Dim::tensor(1 - operand)) != 0
    })
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

fn operand_of(row: &MatrixInstruction, operand: usize) -> &Operand {
    match operand {
        0 => &row.a,
        _ => &row.b,
    }
}

impl Product {
    /// The product that an op is. `may_store` says whether its factors may be stored to shared memory for it.
    pub(super) fn of(
        operation: OperationRef<'_, '_>,
        may_store: bool,
        target: Target,
        grid: Grid,
    ) -> Option<Self> {
        Self::described(operation, may_store, target, grid).map(Self::with_units)
    }

    /// The same without the plans of matrix units, which follow from it.
    pub(super) fn described(
        operation: OperationRef<'_, '_>,
        may_store: bool,
        target: Target,
        grid: Grid,
    ) -> Option<Self> {
        if let Some(dot) = tt::DotScaledOp::of(operation) {
            return Self::of_scaled(dot, target, grid);
        }
        let dot = tt::DotOp::of(operation)?;
        let [a, b, d] = [dot.a(), dot.b(), dot.d()].map(|value| RankedTensor::of(value.r#type()));
        let (a, b, d) = (a?, b?, d?);
        let rounds = dot.input_precision() == tt::InputPrecision::Tf32;
        let mut elements = Vec::new();
        for &a in elements_of(a.element(), rounds) {
            for &b in elements_of(b.element(), rounds) {
                for &c in elements_of(d.element(), false) {
                    elements.push([a, b, c]);
                }
            }
        }
        let shape = transfer::extents(&d.shape());
        let depth = *transfer::extents(&a.shape()).last()?;
        let precise = dot.max_num_imprecise_acc() >= IMPRECISE
            || a.element().bit_width() != Some(8)
            || !d.element().is_f32();
        Some(Self {
            by_groups: may_store && precise,
            ..Self::without_units(shape, depth, elements, target, grid)
        })
    }

    /// The product of factors with scales, if a matrix unit might take them: small floats that are packed along k,
    /// with both scales of one group size, or only one of the factors scaled.
    fn of_scaled(dot: tt::DotScaledOp<'_, '_>, target: Target, grid: Grid) -> Option<Self> {
        let extents = |value: Value| {
            Some(transfer::extents(
                &RankedTensor::of(value.r#type())?.shape(),
            ))
        };
        let (a, packed) = scaled_element(dot.a_elem_type())?;
        let (b, other) = scaled_element(dot.b_elem_type())?;
        let along_k = (packed == 1 || dot.lhs_k_pack()) && (other == 1 || dot.rhs_k_pack());
        let shape = extents(dot.d())?;
        if shape.len() != 2 || !along_k {
            return None;
        }
        let depth = extents(dot.a())?.last()? * u64::from(packed);
        let scales = [dot.a_scale(), dot.b_scale()].into_iter().flatten();
        let groups = scales.map(|scale| {
            let of = RankedTensor::of(scale.r#type()).filter(|of| of.element().is_integer())?;
            u32::try_from(depth.checked_div(u64::try_from(*of.shape().last()?).ok()?)?).ok()
        });
        let groups = groups.collect::<Option<Vec<u32>>>()?;
        if groups.windows(2).any(|pair| pair[0] != pair[1]) {
            return None;
        }
        let sums = elements_of(RankedTensor::of(dot.d().r#type())?.element(), false);
        let elements = sums.iter().map(|&sum| [a, b, sum]).collect();
        Some(Self {
            group: groups.first().copied(),
            ..Self::without_units(shape, depth, elements, target, grid)
        })
    }

    /// Whether both have the same plans, with the same costs, for one target and grid.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let described = |of: &Self| (of.depth, of.by_groups, of.group, of.filled);
        described(self) == described(other)
            && self.shape == other.shape
            && self.elements == other.elements
    }

    /// Whether both are computed by the same plans.
    pub(super) fn has_plans_of(&self, other: &Self) -> bool {
        self.encodings().eq(other.encodings())
    }

    /// Whether a matrix unit computes it.
    pub(super) fn has_unit(&self) -> bool {
        !self.by_units.is_empty()
    }

    /// Cycles for which the fastest plan keeps a unit busy for one multiply-add; infinite without a plan.
    pub(super) fn busy_for_one(&self) -> f32 {
        let rows = self.by_units.iter().map(|(_, row)| {
            let numbers = row.m * row.n * row.k;
            row.issue_cycles as f32 * row.warps as f32 / numbers as f32
        });
        rows.fold(f32::INFINITY, f32::min)
    }

    /// The same product of factors without scales that were widened to these elements.
    pub(super) fn widened(&self, elements: [MatrixElement; 3]) -> Self {
        let (shape, depth) = (self.shape.clone(), self.depth);
        Self::without_units(shape, depth, vec![elements], self.target, self.grid).with_units()
    }

    /// The product with the plans of matrix units.
    pub(super) fn with_units(mut self) -> Self {
        self.by_units = self.find_units();
        self
    }

    /// A product of factors in registers, without scales.
    fn without_units(
        shape: Vec<u64>,
        depth: u64,
        elements: Vec<[MatrixElement; 3]>,
        target: Target,
        grid: Grid,
    ) -> Self {
        Self {
            shape,
            depth,
            elements,
            by_groups: false,
            group: None,
            filled: [false; 2],
            target,
            grid,
            by_units: Vec::new(),
            transposed: Default::default(),
        }
    }

    /// The layouts of the result in which it may be computed: those of matrix units, the most square
    /// part for each warp first, and those of threads.
    pub(super) fn encodings(&self) -> impl Iterator<Item = Encoding> {
        let units = self.by_units.iter().map(|(encoding, _)| encoding.clone());
        // Threads do not support scales.
        let threads = self.group.is_none().then(|| self.by_threads());
        units.chain(threads.into_iter().flatten())
    }

    /// How the blocks of a cluster may share the result.
    fn shares(&self) -> Vec<CgaLayout> {
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

    fn find_units(&self) -> Vec<(Encoding, &'static MatrixInstruction)> {
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
    fn units_of_block(&self, part: &[u64]) -> Vec<(Encoding, &'static MatrixInstruction)> {
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
    fn find_groups(
        &self,
        part: &[u64],
        [a, b, c]: [MatrixElement; 3],
    ) -> Vec<(Encoding, &'static MatrixInstruction)> {
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

    /// The buffers in shared memory that a factor may be read from: with k or the other dimension contiguous, as the
    /// instruction requires. None if no instruction reads it from shared memory.
    pub(super) fn in_memory(&self, operand: usize) -> Vec<Encoding> {
        let Some(&[rows, columns]) = self.shape.first_chunk() else {
            return Vec::new();
        };
        let shape = [[rows, self.depth], [self.depth, columns]][operand];
        let mut known: Vec<CgaLayout> = Vec::new();
        let mut buffers = Vec::new();
        for (way, row) in &self.by_units {
            let factor = operand_of(row, operand);
            // Blocks with different parts of the result may have the same part of a factor.
            let blocks = way.cga_layout().shared_along(1 - operand);
            if !factor.place.takes_shared() || known.contains(&blocks) {
                continue;
            }
            let part = Self::part(&shape, &blocks);
            let Some(&[rows, columns]) = part.as_deref().and_then(<[u64]>::first_chunk) else {
                continue;
            };
            for k_contiguous in [true, false] {
                buffers.extend(product::in_memory(
                    operand,
                    [rows, columns],
                    factor.element.bits(),
                    k_contiguous,
                    blocks.clone(),
                ));
            }
            known.push(blocks);
        }
        buffers
    }

    /// The buffer with k contiguous that a factor may be read from, if no instruction transposes it while reading:
    /// none reads it where the other dimension is contiguous.
    pub(super) fn transposed_before(&self, operand: usize) -> Option<Encoding> {
        let known = &self.transposed[operand];
        known
            .get_or_init(|| self.find_transposed_before(operand))
            .clone()
    }

    fn find_transposed_before(&self, operand: usize) -> Option<Encoding> {
        let &[rows, columns] = &self.shape[..] else {
            return None;
        };
        let shape = [[rows, self.depth], [self.depth, columns]][operand];
        let is_read = |buffer: &Encoding| {
            let memory = buffer.linear_layout(&shape).ok();
            let read = |(way, _): &(Encoding, _)| {
                let result = way.linear_layout(&self.shape).ok()?;
                self.cost_of_memory(operand, (way, &result), memory.as_ref()?)
            };
            self.by_units.iter().any(|way| read(way).is_some())
        };
        let (along, across): (Vec<_>, Vec<_>) = self
            .in_memory(operand)
            .into_iter()
            .partition(|buffer| k_is_contiguous(buffer, operand, &shape));
        let is_needed = !across.iter().any(is_read);
        along.into_iter().find(is_read).filter(|_| is_needed)
    }

    /// How the blocks of a cluster may share a factor.
    pub(super) fn shares_of_factor(&self, operand: usize) -> Vec<CgaLayout> {
        let mut shares: Vec<CgaLayout> = Vec::new();
        if let Some(other) = self.shape.len().checked_sub(1 + operand) {
            for blocks in self.shares() {
                let blocks = blocks.shared_along(other);
                if !shares.contains(&blocks) {
                    shares.push(blocks);
                }
            }
        }
        shares
    }

    /// The cost for a warp, in addition to [`Product::cost`], of a factor that is in shared memory in this layout;
    /// `None` if the instruction of `encoding` cannot read it there.
    pub(super) fn cost_of_memory(
        &self,
        operand: usize,
        (encoding, result): (&Encoding, &LinearLayout),
        memory: &LinearLayout,
    ) -> Option<f32> {
        let row = self.instruction(encoding)?;
        let factor = operand_of(row, operand);
        let extent = [row.m, row.n][operand];
        if !factor.place.takes_shared() {
            return None;
        }
        let bits = factor.element.bits();
        let (outer, depth) = (Dim::tensor(operand), Dim::tensor(1 - operand));
        let wanted = Wanted {
            outer,
            depth,
            bits,
            extent,
        };
        // Each block has the parts that it multiplies.
        let blocks = 0..memory
            .in_dim_size_log2(Dim::BLOCK)
            .max(result.in_dim_size_log2(Dim::BLOCK));
        let shares = |bit: u32| {
            let at =
                |layout: &LinearLayout, dim: Dim| match bit < layout.in_dim_size_log2(Dim::BLOCK) {
                    true => layout.basis_entry(Dim::BLOCK, bit, dim),
                    false => 0,
                };
            at(memory, outer) == at(result, outer) && at(memory, depth) == 0
        };
        if !blocks.into_iter().all(shares) {
            return None;
        }
        let pieces = encoding.cga_layout().shared_along(1 - operand).num_pieces();
        let part = memory.out_dim_size(outer) / u64::from(pieces);
        let how = GroupOperand::derive(memory, &wanted).ok()?;
        let begins = |extent: u64, step: u32| (0..extent as u32).step_by(step as usize);
        let bytes = part * memory.out_dim_size(depth) * u64::from(bits / 8);
        let fits = begins(part, extent).all(|outer| {
            begins(memory.out_dim_size(depth), row.k)
                .all(|depth| how.may_begin_at(how.place(outer, depth).bytes))
        });
        // All that is stored at one time is counted when layouts are chosen ([`super::stored`]).
        if !fits || bytes > u64::from(self.target.shared_memory_limit()) {
            return None;
        }
        let more = match operand {
            0 => self.busy(row, true) - self.busy(row, false),
            _ => 0.0,
        };
        Some(self.executions(row, result) * more / UNITS)
    }

    /// Whether the instruction of `encoding` takes a factor from registers.
    pub(super) fn takes_registers(&self, operand: usize, encoding: &Encoding) -> bool {
        self.instruction(encoding)
            .is_none_or(|row| operand_of(row, operand).place.takes_registers())
    }

    /// The instruction whose result has a layout.
    pub(super) fn instruction(&self, encoding: &Encoding) -> Option<&'static MatrixInstruction> {
        let way = self.by_units.iter().find(|(way, _)| way == encoding);
        way.map(|(_, row)| *row)
    }

    /// The extents of the result.
    pub(super) fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The extent that is summed over.
    pub(super) fn depth(&self) -> u64 {
        self.depth
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
    fn by_threads(&self) -> Vec<Encoding> {
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

    /// The cost of the product for a warp with this layout of the result; infinite if there is no plan for it.
    pub(super) fn cost(&self, encoding: &Encoding, layout: &LinearLayout, multiply: f32) -> f32 {
        let held = registers(layout) as f32;
        if transfer::elements_along_k(encoding, 32) == Some(0) {
            return match self.group {
                None => held * self.depth as f32 * multiply,
                Some(_) => f32::INFINITY,
            };
        }
        self.instruction(encoding).map_or(f32::INFINITY, |row| {
            let exposed = self.exposed(row, encoding) / self.grid.num_warps as f32;
            self.time(row, layout) + exposed
        })
    }

    /// The cost for a warp of completing a warp-group product before the next iteration, where it could overlap with
    /// the work of threads that takes longer: the product's own time.
    pub(super) fn cost_of_waiting(&self, encoding: &Encoding, layout: &LinearLayout) -> f32 {
        match self.instruction(encoding) {
            Some(row) if row.warps > 1 => self.time(row, layout),
            _ => 0.0,
        }
    }

    /// The price `moved` of moving each word of a factor, if its words have to be moved: words that are consecutive
    /// along k are loaded to neighbouring registers, but the instruction of `encoding` needs other neighbours.
    pub(super) fn moves_words(&self, operand: usize, encoding: &Encoding, moved: f32) -> f32 {
        let along_k = self.instruction(encoding).is_none_or(|row| {
            let fragment = row.fragments()[operand].clone();
            let in_word = (32 / operand_of(row, operand).element.bits().max(1)).max(1);
            let next = in_word.ilog2();
            fragment.is_some_and(|fragment| {
                next >= fragment.in_dim_size_log2(Dim::REGISTER)
                    || fragment.basis_entry(Dim::REGISTER, next, Dim::tensor(1 - operand)) != 0
            })
        });
        if along_k { 0.0 } else { moved }
    }

    /// Whether there is a plan that computes the product with this layout of the result.
    pub(super) fn is_possible(&self, encoding: &Encoding) -> bool {
        self.group.is_none() && transfer::elements_along_k(encoding, 32) == Some(0)
            || self.by_units.iter().any(|(way, _)| way == encoding)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product(target: &str, shape: [u64; 2], depth: u64) -> Product {
        let target = Target::parse(target).unwrap();
        let grid = Grid {
            num_warps: 4,
            threads_per_warp: target.warp_size(),
            num_ctas: 1,
        };
        let elements = [MatrixElement::F16, MatrixElement::F16, MatrixElement::F32];
        let product = Product::without_units(shape.to_vec(), depth, vec![elements], target, grid);
        Product {
            by_groups: true,
            ..product
        }
        .with_units()
    }

    #[test]
    fn warps_have_tiles_of_their_own_the_most_square_first() {
        let ways = product("cuda:80", [64, 64], 32).by_units;
        let warps: Vec<Vec<u32>> = ways
            .iter()
            .map(|(encoding, _)| match encoding {
                Encoding::NvidiaMma(mma) => mma.warps_per_cta.clone(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(warps, [[2, 2], [1, 4], [4, 1]]);
        // 16 rows are one tile.
        assert_eq!(product("cuda:80", [16, 64], 32).by_units.len(), 1);
    }

    #[test]
    fn a_matrix_unit_is_cheaper_than_threads() {
        for target in ["cuda:80", "hip:gfx942", "hip:gfx1100"] {
            let product = product(target, [64, 64], 64);
            let price = |encoding: &Encoding| {
                let layout = encoding.linear_layout(&[64, 64]).unwrap();
                product.cost(encoding, &layout, 0.5)
            };
            let threads = product.by_threads();
            let least = threads.iter().map(price).fold(f32::INFINITY, f32::min);
            assert!(!product.by_units.is_empty(), "{target}");
            for (encoding, _) in &product.by_units {
                assert!(price(encoding) < least, "{target}: {encoding:?}");
            }
        }
    }

    #[test]
    fn groups_of_warps_read_factors_in_memory() {
        let product = product("cuda:90", [128, 128], 64);
        let (encoding, row) = &product.by_units[0];
        assert_eq!((row.warps, row.n), (4, 128));
        let result = encoding.linear_layout(&[128, 128]).unwrap();
        let read = |operand: usize, shape: [u64; 2], buffer: &Encoding| {
            let memory = buffer.linear_layout(&shape).unwrap();
            product.cost_of_memory(operand, (encoding, &result), &memory)
        };
        for (operand, shape) in [(0, [128, 64]), (1, [64, 128])] {
            let buffers = product.in_memory(operand);
            // Halves are transposed while they are read.
            assert_eq!(buffers.len(), 2);
            for buffer in &buffers {
                assert_eq!(read(operand, shape, buffer), Some(0.0), "{buffer:?}");
            }
        }
        // The second factor is never in registers.
        assert!(product.takes_registers(0, encoding) && !product.takes_registers(1, encoding));
    }

    #[test]
    fn copies_are_exposed_behind_many_products_with_few_columns() {
        let cycles = |filled| {
            let mut product = product("cuda:90", [128, 256], 64);
            product.filled = filled;
            product.grid.num_warps = 8;
            product.by_units = product.find_units();
            let memory = product.in_memory(0)[0].linear_layout(&[128, 64]).unwrap();
            let groups = product.by_units.iter().filter(|(_, row)| row.warps > 1);
            let ways = groups.map(|(encoding, row)| {
                let result = encoding.linear_layout(&[128, 256]).unwrap();
                let more = product.cost_of_memory(0, (encoding, &result), &memory);
                let cost = product.cost(encoding, &result, 0.0) + more.unwrap();
                (row.n, cost * product.grid.num_warps as f32)
            });
            ways.collect::<Vec<_>>()
        };
        assert_eq!(cycles([false; 2]), [(256, 1024.0), (128, 1024.0)]);
        // Copies of 384 passes, and two products of each of two groups to hide them: 512 cycles, or 256.
        assert_eq!(cycles([true; 2]), [(256, 1024.0), (128, 1152.0)]);
    }

    #[test]
    fn reading_the_first_factor_takes_time_where_there_are_few_columns() {
        let product = product("cuda:90", [64, 16], 64);
        let (encoding, _) = &product.by_units[0];
        let result = encoding.linear_layout(&[64, 16]).unwrap();
        let memory = product.in_memory(0)[0].linear_layout(&[64, 64]).unwrap();
        let more = product.cost_of_memory(0, (encoding, &result), &memory);
        // 16 passes for the first factor and 4 for the second, where the units take 8 cycles, four times.
        assert_eq!(more, Some(4.0 * (20.0 - 8.0) / UNITS));
    }
}
