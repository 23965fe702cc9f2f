//! Whether a group of iterations is faster than one after the other, and how many rows it has.
//!
//! # The model
//!
//! The body is priced before there are layouts, for a tile of `r` rows: accesses by their sectors and instructions,
//! arithmetic by the elements of a thread, reductions by their plan ([`llopt_plan::reduction`]) for the layout in which
//! warps lie along rows as far as there are rows, and lanes along each. A loop of `t` iterations takes
//!
//! ```text
//! (t / r) cost(r) + (r - 1) / 2 · cost(1)
//! ```
//!
//! since on average so many iterations are left over. Of all powers of two up to the number of warps the least is taken.
//!
//! # Registers and blocks
//!
//! Threads have as many times the elements. A loop stays as it was where these are more than there are registers, or where
//! so few blocks are resident that schedulers have too few warps to hide latencies.

use std::collections::HashMap;

use llopt_dialects::tables::types::{Pointer, RankedTensor};
use llopt_dialects::tt::{LoadOp, MakeRangeOp, ReduceOp, SplatOp, StoreOp};
use llopt_layout::Dim;
use llopt_mlir::ir::{OperationExt, TypeExt, key};
use llopt_plan::element::Element;
use llopt_plan::reduction::combination::Combination;
use llopt_plan::tensor::TensorType;
use llopt_plan::{elementwise, reduction, types};
use llopt_target::Target;
use melior::ir::{OperationRef, Value, ValueLike};

use super::Body;
use crate::layouts::times;
use crate::pipelining::ISSUERS;

/// The part of its cost that a loop must save to be there a second time.
const SHARE: f64 = 0.05;
/// Warps of a scheduler, of which one issues while the other waits.
const WARPS: u32 = 2;
/// Registers of a thread for addresses and numbers.
const BESIDE: u32 = 24;
/// Bytes that one instruction of a thread accesses at most.
const WIDEST: f64 = 16.0;

/// The number of rows with which a loop of so many warps is cheapest, if there should be several.
pub(super) fn cheapest(body: &Body<'_, '_>, warps: u32, target: Target) -> Option<u32> {
    let tile = |rows: u32| Tile {
        body,
        rows,
        warps,
        target,
    };
    let iterations = times(body.of.operation());
    let one = tile(1).cost()?;
    let mut best: Option<(f64, u32)> = None;
    let counts = std::iter::successors(Some(2), |rows| Some(2 * rows));
    for rows in counts.take_while(|rows| *rows <= warps) {
        let tile = tile(rows);
        if !tile.fits() {
            break;
        }
        let left = f64::from(rows - 1) / 2.0;
        let cost = iterations / f64::from(rows) * tile.cost()? + left * one;
        if best.is_none_or(|(least, _)| cost < least) {
            best = Some((cost, rows));
        }
    }
    best.filter(|(cost, _)| *cost <= (1.0 - SHARE) * iterations * one)
        .map(|(_, rows)| rows)
}

/// A group of iterations.
struct Tile<'b, 'c, 'a> {
    body: &'b Body<'c, 'a>,
    rows: u32,
    warps: u32,
    target: Target,
}

impl<'c: 'a, 'a> Tile<'_, 'c, 'a> {
    /// The cost for a warp.
    fn cost(&self) -> Option<f64> {
        let varying = self.body.operations.iter();
        let varying = varying.filter(|operation| self.body.varies(**operation));
        let costs: Option<Vec<f64>> = varying.map(|operation| self.of(*operation)).collect();
        Some(costs?.into_iter().sum())
    }

    fn of(&self, operation: OperationRef<'c, 'a>) -> Option<f64> {
        if let Some(reduce) = ReduceOp::of(operation) {
            return self.reduction(reduce);
        }
        let is_load = LoadOp::of(operation).is_some();
        if is_load || StoreOp::of(operation).is_some() {
            let pointer = operation.operand_value(0)?;
            return Some(self.access(pointer, is_load));
        }
        let is_renamed = SplatOp::of(operation).is_some() || MakeRangeOp::of(operation).is_some();
        let result = operation.result_value(0)?;
        let is_address = Pointer::of(result.r#type().element_or_self()).is_some();
        if is_renamed || is_address || RankedTensor::of(result.r#type()).is_none() {
            return Some(0.0);
        }
        let each = elementwise::instructions_on(operation, self.target);
        let costs = self.target.movement_costs();
        Some(f64::from(each * costs.arithmetic) * self.of_thread(result))
    }

    /// The elements of a tensor in each thread.
    fn of_thread(&self, value: Value<'c, 'a>) -> f64 {
        let row = RankedTensor::of(value.r#type()).map_or(1, |tensor| tensor.shape()[0]);
        let threads = self.warps * self.target.warp_size();
        (row as f64 * f64::from(self.rows) / f64::from(threads)).max(1.0)
    }

    fn access(&self, pointer: Value<'c, 'a>, is_load: bool) -> f64 {
        let costs = self.target.global_costs_among_blocks();
        let pointee = Pointer::of(pointer.r#type().element_or_self()).map(Pointer::pointee);
        let bits = pointee.and_then(|of| of.bit_width()).unwrap_or(u32::BITS);
        let bytes = self.of_thread(pointer) * f64::from(bits) / 8.0;
        let sectors = bytes * f64::from(self.target.warp_size()) / f64::from(costs.sector_bytes);
        let instruction = costs.instruction + if is_load { costs.wait } else { 0.0 };
        let instructions = (bytes / WIDEST).ceil();
        sectors * f64::from(costs.sector) + instructions * f64::from(instruction)
    }

    fn reduction(&self, reduce: ReduceOp<'c, 'a>) -> Option<f64> {
        let sources = reduce.srcs();
        let elements = sources.iter().map(|value| {
            let tensor = RankedTensor::of(value.r#type())?;
            types::element(tensor.element())
        });
        let elements: Vec<Element> = elements.collect::<Option<_>>()?;
        let row = RankedTensor::of(sources.first()?.r#type())?.shape()[0];
        let tensor = self.tensor(*elements.first()?, u32::try_from(row).ok()?)?;
        let combination = Combination::of(reduce.combine_op());
        let price = reduction::price(&tensor, 1, &elements, &combination, self.target);
        // Other blocks work meanwhile.
        let waits = price.block_barriers as f32 * self.target.movement_costs().barrier_wait;
        Some(f64::from(price.cost - waits))
    }

    /// Rows with warps along them, and lanes along each.
    fn tensor(&self, element: Element, row: u32) -> Option<TensorType> {
        let mut columns = (0..row.ilog2()).map(|bit| 1u32 << bit).collect::<Vec<_>>();
        let mut rows = (0..self.rows.ilog2())
            .map(|bit| row << bit)
            .collect::<Vec<_>>();
        let (lane_bits, warp_bits) = (
            self.target.warp_size().ilog2() as usize,
            self.warps.ilog2() as usize,
        );
        let words = (columns.len() + rows.len()).saturating_sub(lane_bits + warp_bits);
        let first = |from: &mut Vec<u32>, count: usize| -> Vec<u32> {
            from.drain(..count.min(from.len())).collect()
        };
        let mut registers = first(&mut columns, words.min(2));
        let mut lanes = first(&mut columns, lane_bits);
        let mut warps = first(&mut rows, warp_bits);
        let more = first(&mut columns, warp_bits - warps.len());
        warps.extend(more);
        registers.extend(columns);
        registers.extend(rows);
        lanes.resize(lane_bits, 0);
        warps.resize(warp_bits, 0);
        let numbers = [
            (Dim::REGISTER, registers),
            (Dim::LANE, lanes),
            (Dim::WARP, warps),
            (Dim::BLOCK, Vec::new()),
        ];
        TensorType::from_numbers(element, vec![self.rows, row], &numbers).ok()
    }

    /// Whether threads have registers for it, and schedulers enough warps.
    fn fits(&self) -> bool {
        let threads = self.warps * self.target.warp_size();
        let registers = self.registers();
        let blocks = self.target.resident_blocks(threads, registers, 0);
        registers <= self.target.plain_registers_of_each(threads)
            && blocks * self.warps >= WARPS * ISSUERS
    }

    /// The most registers of a thread that are live.
    fn registers(&self) -> u32 {
        let mut last: HashMap<usize, usize> = HashMap::new();
        for (at, operation) in self.body.operations.iter().enumerate() {
            last.extend(operation.operand_values().map(|value| (key(value), at)));
        }
        let words = |value: Value<'c, 'a>| {
            let tensor = RankedTensor::of(value.r#type())?;
            let is_free = Pointer::of(tensor.element()).is_some()
                || SplatOp::defining(value).is_some()
                || !self.body.varying.contains(&key(value));
            let bits = tensor.element().bit_width().unwrap_or(u32::BITS);
            (!is_free).then(|| (self.of_thread(value) * f64::from(bits) / 32.0).ceil() as u32)
        };
        let mut live: Vec<(usize, u32)> = Vec::new();
        let mut most = 0;
        for (at, operation) in self.body.operations.iter().enumerate() {
            live.retain(|(until, _)| *until > at);
            for value in operation.result_values() {
                let until = last.get(&key(value)).copied().unwrap_or(at);
                live.extend(words(value).map(|words| (until, words)));
            }
            most = most.max(live.iter().map(|(_, words)| *words).sum());
        }
        most + BESIDE
    }
}
