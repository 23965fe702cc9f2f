//! Products of few rows: the warps of a block divide k among them.
//!
//! Where a tile has only the rows of one instruction, the warps lie along its columns, and each of them reads all of
//! the first factor. If they divide k instead, each reads its own part of both factors, and nothing is read twice:
//!
//! ```text
//!            columns                       columns
//!          ┌──┬──┬──┬──┐                 ┌───────────┐
//!     rows │0 │1 │2 │3 │            rows │ 0+1+2+3   │
//!          └──┴──┴──┴──┘                 └───────────┘
//!   first factor: each warp all          each warp a quarter of k
//!   second: each warp a quarter          each warp a quarter of k
//! ```
//!
//! Each warp then has its own accumulators for the whole result that the warps share, and so more of them than
//! before: fewer of its instructions wait for one another. When the loop ends, the accumulators are added through
//! shared memory, in pairs of halves, always in the same order.
//!
//! # In the IR
//!
//! A product over k is as many products over slices of k, added up:
//!
//! ```text
//!   for … iter(sum = start)               for … iter(sums = 0)
//!     sum = dot a, b, sum                   sums = dot slices(a), slices(b), sums    : S x M x N
//!                                         sum = start + (sums[0] + sums[1])
//! ```
//!
//! A slice is a matrix of a batch, which `tt.reshape` and `tt.trans` create, and warps are arranged over batches
//! first. So layouts, rings and conversions need no special case, and the two halves of each split are in one thread;
//! the conversion before it moves the accumulators there.
//!
//! # The widened factor first
//!
//! Where one factor is widened, a lane has more neighbours along k than a word holds ([`super::factors`]), and reads
//! those of the other factor from shared memory at once. `mma` takes two words of its first factor that belong to
//! different rows side by side, and two neighbours along k of its second one (PTX ISA, "Matrix Fragments for mma.m16n8k16").
//! Words that are read would be moved for the first place, and for each instruction again, as NVIDIA's assembler
//! copies rather than keeps: 53 of 598 instructions for 16 rows of 64 columns, of four-bit weights. Words that are
//! computed come where they are wanted. So if the second factor is the widened one, the slices are multiplied as
//! `bᵀ aᵀ`, and the sum is transposed after the loop, where it is exchanged between threads anyway.
//!
//! # Profitability
//!
//! In each iteration a warp reads fewer bytes of shared memory, and waits less for its own instructions; once per
//! loop its accumulators are exchanged through shared memory ([`Prices`]). The transformation applies to factors that
//! copies bring ahead to shared memory ([`super::ahead`]), where a warp may read any part of them. A factor that
//! passes through registers should stay as it was loaded until it is stored, so it is not sliced.

use llopt_dialects::meaning::fold;
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::{scf, tt};
use llopt_mlir::ir::{OperationExt, ValueExt, attr};
use llopt_plan::product::UNITS;
use llopt_target::matrix::MatrixInstruction;
use melior::ir::{BlockLike, Location, Operation, OperationRef, Type, TypeLike, Value, ValueLike};

use super::catalog::LayoutId;
use super::engine::Engine;
use super::factors::LoadedFor;
use super::graph::NodeKind;
use super::products::moves_first_factor;
use super::relation::Relation;
use crate::loops::view::For;

/// Operands of `scf.for` before the values that it carries: bounds and step.
const BOUNDS: usize = 3;
/// The largest number of registers of a thread for the accumulators of a warp: factors, addresses and a second block
/// need some too.
const MOST_SUMS: u64 = 64;

/// A product that only adds to an accumulator that a loop carries.
#[derive(Clone, Copy)]
pub(super) struct Summed<'c, 'a> {
    pub(super) dot: tt::DotOp<'c, 'a>,
    pub(super) around: For<'c, 'a>,
    /// The position of the accumulator among the carried values.
    pub(super) carried: usize,
}

/// A product of which warps divide k.
pub(super) struct Slicing<'c, 'a> {
    summed: Summed<'c, 'a>,
    slices: i64,
    /// Whether the transposed product is computed, whose factors are exchanged.
    exchanges: bool,
}

/// The quantities that determine the cost of an iteration of the loop.
#[derive(Clone, Copy, Debug)]
struct Prices {
    /// Rows, columns and k of the product.
    extents: [u64; 3],
    /// Bits that are read for each element of both factors.
    bits: [f32; 2],
    /// Bits of the elements of the accumulator.
    sum_bits: u64,
    /// Rows, columns and k of one instruction.
    tile: [u64; 3],
    /// Cycles for which an execution keeps its unit busy, and cycles until its result can be added to.
    issue: f32,
    latency: f32,
    warps: u64,
    /// Bytes of one wavefront: those of all banks.
    wavefront: u64,
    barrier: f32,
}

impl Prices {
    /// The cost of an iteration for a warp: its reads of factors, and the time for which its instructions wait for
    /// one another beyond their own time, if k has so many slices and warps are arranged so over rows and columns.
    fn iteration(&self, slices: u64, [down, across]: [u64; 2]) -> f32 {
        let [rows, columns, depth] = self.extents;
        let [a, b] = self.bits;
        let (rows, columns, depth) = (rows / down, columns / across, depth / slices);
        let bytes = depth as f32 * (rows as f32 * a + columns as f32 * b) / 8.0;
        let steps = depth / self.tile[2];
        let sums = (rows / self.tile[0]) * (columns / self.tile[1]);
        let busy = sums as f32 * self.issue * (self.warps as f32 / UNITS).max(1.0);
        let waits = steps as f32 * (self.latency - busy).max(0.0);
        bytes / self.wavefront as f32 + waits / self.warps as f32
    }

    /// The cost of an iteration in the cheapest arrangement of warps over rows and columns with so many slices;
    /// `None` if there is no arrangement in which each warp has an instruction of its own and registers for its
    /// accumulators.
    fn best(&self, slices: u64) -> Option<f32> {
        let [rows, columns, depth] = self.extents;
        let left = self.warps / slices;
        let ways = (0..=left.ilog2()).map(|bit| [1 << bit, left >> bit]);
        let fit = ways.filter(|[down, across]| {
            let held = (rows / down) * (columns / across) * self.sum_bits;
            rows / down >= self.tile[0]
                && columns / across >= self.tile[1]
                && depth / slices >= self.tile[2]
                && (slices == 1 || held / (32 * 32) <= MOST_SUMS)
        });
        let costs = fit.map(|way| self.iteration(slices, way));
        costs.min_by(f32::total_cmp)
    }

    /// The cost for a warp of adding the accumulators of so many slices.
    fn end(&self, slices: u64) -> f32 {
        let [rows, columns, _] = self.extents;
        let bytes = slices * rows * columns * self.sum_bits / 8 / self.warps;
        2.0 * (bytes as f32 / self.wavefront as f32) + self.barrier
    }

    /// The best number of slices of k for a loop of so many iterations. Where there are more warps than instructions
    /// over the result, some warps repeat the work of others unless they divide k.
    fn slices(&self, iterations: f32) -> u64 {
        let now = self.best(1).map(|cost| cost * iterations);
        let all = (1..=self.warps.ilog2()).map(|bit| 1 << bit);
        let priced = all.filter_map(|slices| {
            let cost = self.best(slices)? * iterations + self.end(slices);
            Some((cost, slices))
        });
        let best = priced.min_by(|one, other| one.0.total_cmp(&other.0));
        best.filter(|(cost, _)| now.is_none_or(|now| *cost < now))
            .map_or(1, |(_, slices)| slices)
    }
}

impl<'c: 'a, 'a> Engine<'_, 'c, 'a> {
    /// Divides k of products among the warps where that is cheaper with these layouts; returns whether there were
    /// any.
    pub(super) fn slice_products(&self, labels: &[LayoutId]) -> bool {
        let mut sliced = false;
        for number in 0..self.graph.nodes.len() {
            if let Some(slicing) = self.slices_of(number, labels) {
                sliced |= slicing.write().is_some();
            }
        }
        sliced
    }

    /// The product that a node is, if it is best to divide its warps among several slices of k.
    pub(super) fn slices_of(&self, number: usize, labels: &[LayoutId]) -> Option<Slicing<'c, 'a>> {
        let node = &self.graph.nodes[number];
        let NodeKind::Op(operation, Relation::Dot { .. }, _) = &node.kind else {
            return None;
        };
        if self.grid.num_ctas > 1 || node.pinned.is_some() {
            return None;
        }
        let summed = Summed::of(*operation)?;
        let (prices, exchanges) = self.prices(number, labels)?;
        let around = self.graph.frequencies.of_op(summed.around.operation());
        let slices = prices.slices((node.frequency / around) as f32);
        (slices > 1).then_some(Slicing {
            summed,
            slices: slices as i64,
            exchanges,
        })
    }

    /// The prices of a product whose warps all have the same rows, or the same columns, in their present arrangement, and
    /// whether its factors change places.
    fn prices(&self, product: usize, labels: &[LayoutId]) -> Option<(Prices, bool)> {
        let node = &self.graph.nodes[product];
        let dot = self.product(node.operation()?)?;
        let row = dot.instruction(&self.catalog.encoding(labels[product]))?;
        let &[rows, columns] = &dot.shape[..] else {
            return None;
        };
        let shares = u64::from(row.m) >= rows || u64::from(row.n) >= columns;
        if row.warps > 1 || !shares {
            return None;
        }
        let (mut bits, mut is_widened) = ([0.0; 2], [false; 2]);
        let mut doubled = 0;
        for factor in self
            .graph
            .factors
            .iter()
            .filter(|factor| factor.product == product)
        {
            let own = self.graph.nodes[factor.node].bits;
            let mut makers = self.graph.uses.iter();
            let maker = makers.find(|used| used.consumer == factor.node)?;
            let loads = self.loaded_by(maker.producer);
            let are_copied = |loaded: &LoadedFor| self.is_copied_ahead(loaded.load);
            if !loads.iter().all(are_copied) {
                return None;
            }
            let narrowest = loads.iter().min_by_key(|loaded| loaded.bits)?;
            bits[factor.operand] = narrowest.bits.min(own) as f32 / narrowest.uses as f32;
            is_widened[factor.operand] = narrowest.bits < own;
            doubled = doubled.max(self.doublings(factor, labels[factor.node]));
        }
        let is_alike = dot.elements.iter().all(|[a, b, _]| a == b);
        let exchanges = is_alike && is_widened == [false, true] && moves_first_factor(row);
        let banks = self.costs.target.banks();
        let &MatrixInstruction { m, n, k, .. } = row;
        let prices = Prices {
            extents: [rows, columns, dot.depth],
            bits,
            sum_bits: node.bits.into(),
            tile: [m.into(), n.into(), u64::from(k) << doubled],
            issue: row.issue_cycles as f32,
            latency: row.latency as f32,
            warps: self.grid.num_warps.into(),
            wavefront: 1 << (banks.banks_log2 + banks.bank_bytes_log2),
            barrier: self.costs.machine().costs.block_barrier,
        };
        Some((prices, exchanges))
    }
}

impl<'c: 'a, 'a> Summed<'c, 'a> {
    /// The product that an op is, if it is one of matrices without layouts.
    pub(super) fn of(operation: OperationRef<'c, 'a>) -> Option<Self> {
        let dot = tt::DotOp::of(operation)?;
        let around = For::of(operation.parent_op()?)?;
        let sum = dot.c();
        let carried = around.carried().iter().position(|value| *value == sum)?;
        let is_alone = sum.has_one_use() && dot.d().has_one_use();
        let goes_on = around.yielded()[carried] == dot.d();
        let tensors = [dot.a(), dot.b(), dot.d()].map(|value| RankedTensor::of(value.r#type()));
        let are_free = tensors.iter().all(|tensor| {
            tensor.is_some_and(|tensor| tensor.encoding().is_none() && tensor.rank() == 2)
        });
        (is_alone && goes_on && are_free && scf::ForOp::of(around.operation()).is_some()).then_some(
            Self {
                dot,
                around,
                carried,
            },
        )
    }
}

impl<'c: 'a, 'a> Slicing<'c, 'a> {
    /// Rewrites the loop.
    fn write(&self) -> Option<()> {
        let Self {
            summed,
            slices,
            exchanges,
        } = *self;
        let dot = summed.dot.operation();
        let location = dot.loc();
        let sum = RankedTensor::of(summed.dot.d().r#type())?;
        let (mut shape, element) = (sum.shape(), sum.element());
        if exchanges {
            shape.reverse();
        }
        let &[rows, columns] = &shape[..] else {
            return None;
        };
        let depth = *RankedTensor::of(summed.dot.a().r#type())?.shape().last()?;
        let slice = depth / slices;
        let of_shape = |like: Value<'c, 'a>, shape: &[i64]| {
            let element = RankedTensor::of(like.r#type())?.element();
            Some(RankedTensor::get(shape, element, None))
        };
        let sums = RankedTensor::get(&[slices, rows, columns], element, None);

        // Before the loop: zeros.
        let around = summed.around.operation();
        let home = around.parent_block()?;
        let start = summed.around.initial()[summed.carried];
        let zero = melior::dialect::arith::constant(dot.ctx(), attr::splat(sums, 0)?, location);
        let zero = home.insert_operation_before(around, zero).result_value(0)?;
        around.set_operand_value(BOUNDS + summed.carried, zero);

        // In the loop: a batch of slices.
        let body = dot.parent_block()?;
        let put =
            |operation: Operation<'c>| body.insert_operation_before(dot, operation).result_value(0);
        let [a, b] = match exchanges {
            false => [summed.dot.a(), summed.dot.b()],
            true => {
                let transposed = |factor: Value<'c, 'a>| {
                    let mut shape = RankedTensor::of(factor.r#type())?.shape();
                    shape.reverse();
                    let to = of_shape(factor, &shape)?;
                    put(tt::TransOp::build(location, to, factor, &[1, 0]))
                };
                [transposed(summed.dot.b())?, transposed(summed.dot.a())?]
            }
        };
        let apart = of_shape(a, &[rows, slices, slice])?;
        let a = put(tt::ReshapeOp::build(location, apart, a, false, false))?;
        let turned = of_shape(a, &[slices, rows, slice])?;
        let a = put(tt::TransOp::build(location, turned, a, &[1, 0, 2]))?;
        let apart = of_shape(b, &[slices, slice, columns])?;
        let b = put(tt::ReshapeOp::build(location, apart, b, false, false))?;
        let argument = summed.around.carried()[summed.carried];
        argument.set_type(sums);
        let next = put(tt::DotOp::build(
            location,
            a,
            b,
            argument,
            summed.dot.input_precision(),
            summed.dot.max_num_imprecise_acc(),
        ))?;
        summed
            .around
            .terminator()
            .set_operand_value(summed.carried, next);

        // After the loop: all of them added, and the initial value.
        let result = summed.around.results()[summed.carried];
        let users: Vec<_> = result.uses().collect();
        result.set_type(sums);
        let mut last = around;
        let mut add = Addition {
            location,
            put: |operation| {
                last = home.insert_operation_after(last, operation);
                last
            },
        };
        let mut total = add.halves(result, [slices, rows, columns], element)?;
        if exchanges {
            let turned = tt::TransOp::build(location, sum.r#type(), total, &[1, 0]);
            total = (add.put)(turned).result_value(0)?;
        }
        if !fold::is_zero_constant(start) {
            total = add.sum(start, total)?;
        }
        for user in users {
            user.operation.set_operand_value(user.operand, total);
        }
        dot.erase();
        Some(())
    }
}

/// Inserts operations that add the accumulators of a loop.
struct Addition<'c, P> {
    location: Location<'c>,
    put: P,
}

impl<'c: 'a, 'a, P: FnMut(Operation<'c>) -> OperationRef<'c, 'a>> Addition<'c, P> {
    /// The sum of all matrices of a batch: one half is added to the other, until one matrix is left.
    fn halves(
        &mut self,
        batch: Value<'c, 'a>,
        [mut batches, rows, columns]: [i64; 3],
        element: Type<'c>,
    ) -> Option<Value<'c, 'a>> {
        let location = self.location;
        let of_shape = |shape: &[i64]| RankedTensor::get(shape, element, None);
        let mut whole = batch;
        while batches > 1 {
            batches /= 2;
            // The halves become neighbours along a new last dimension.
            let matrices: &[i64] = &[batches, rows, columns];
            let left = if batches > 1 {
                matrices
            } else {
                &matrices[1..]
            };
            let halves = of_shape(&[&[2], left].concat());
            if batches > 1 {
                let apart = tt::ReshapeOp::build(location, halves, whole, false, false);
                whole = (self.put)(apart).result_value(0)?;
            }
            let order: Vec<i32> = (1..=left.len() as i32).chain([0]).collect();
            let pairs = of_shape(&[left, &[2]].concat());
            let pairs = (self.put)(tt::TransOp::build(location, pairs, whole, &order));
            let half = of_shape(left);
            let split = tt::SplitOp::build(location, half, half, pairs.result_value(0)?);
            let split = (self.put)(split);
            whole = self.sum(split.result_value(0)?, split.result_value(1)?)?;
        }
        Some(whole)
    }

    fn sum(&mut self, one: Value<'c, 'a>, other: Value<'c, 'a>) -> Option<Value<'c, 'a>> {
        let is_integer = RankedTensor::of(one.r#type())?.element().is_integer();
        let sum = match is_integer {
            true => melior::dialect::arith::addi(one, other, self.location),
            false => melior::dialect::arith::addf(one, other, self.location),
        };
        (self.put)(sum).result_value(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Halves on `cuda:90` by four warps.
    fn halves(rows: u64, columns: u64, depth: u64) -> Prices {
        Prices {
            extents: [rows, columns, depth],
            bits: [16.0, 16.0],
            sum_bits: 32,
            tile: [16, 8, 16],
            issue: 8.0,
            latency: 25.0,
            warps: 4,
            wavefront: 128,
            barrier: 30.0,
        }
    }

    #[test]
    fn few_rows_are_sliced_in_long_loops() {
        assert_eq!(halves(16, 64, 64).slices(64.0), 4);
        assert_eq!(halves(16, 128, 64).slices(64.0), 4);
        // In a loop of few iterations the cost at its end is too large.
        assert_eq!(halves(16, 128, 64).slices(4.0), 1);
    }

    #[test]
    fn no_warp_repeats_what_another_does() {
        // There are eight instructions over the result, and sixteen warps have one each only if they divide k.
        let prices = Prices {
            warps: 16,
            ..halves(16, 64, 64)
        };
        assert_eq!(prices.best(1), None);
        assert!(prices.slices(64.0) > 1);
    }

    #[test]
    fn slices_have_an_instruction_each_and_sums_have_registers() {
        // 32 along k are two instructions.
        assert_eq!(halves(16, 64, 32).slices(64.0), 2);
        // Accumulators of 16 x 256 take 128 registers of a warp, half of them 64.
        assert_eq!(halves(16, 256, 64).slices(64.0), 2);
    }

    #[test]
    fn a_warp_reads_nothing_that_others_read() {
        let prices = halves(16, 64, 64);
        let bytes = |slices, way| prices.iteration(slices, way) * 128.0;
        // 16 x 16 and 16 x 64 halves, and two chains of instructions less.
        assert_eq!(bytes(4, [1, 1]), f32::from(2u16 * (16 * 16 + 16 * 64)));
        assert!(bytes(1, [1, 4]) > f32::from(2u16 * (16 * 64 + 16 * 64)));
    }
}
