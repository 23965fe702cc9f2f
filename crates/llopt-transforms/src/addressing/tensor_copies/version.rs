//! Writing a loop with copies, beside the loop as it was.

use llopt_dialects::arith::{ExtSIOp, TruncIOp};
use llopt_dialects::tables::types::{RankedTensor, TensorDesc};
use llopt_dialects::tt;
use llopt_mlir::ir::{OperationExt, ValueExt, Walk, attr};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::r#type::IntegerType;
use melior::ir::{Location, Operation, OperationRef, Type, Value, ValueLike};

use super::exact::{Exact, Variable};
use super::reading::Reading;
use super::slices::Division;
use super::store_parts;
use super::tile::Tile;
use crate::choice::VERSIONS;
use crate::loops::builder::{Arithmetic, IN_CONTEXT};
use crate::loops::carried;
use crate::loops::clone::Mapping;
use crate::loops::motion::sink_into_branch;
use crate::loops::unroll::{RARE, STAGES};
use crate::loops::view::{For, If};

/// A loop whose loads are to become copies.
pub(super) struct Version<'r, 'c, 'a> {
    pub(super) of: For<'c, 'a>,
    /// Its place in the source. Stores are written when the loop has been erased.
    pub(super) location: Location<'c>,
    pub(super) tiles: &'r [Tile<'c, 'a>],
    /// How its tiles became slices, if they did.
    pub(super) slices: Option<Division>,
    /// The stores after the loop that are to become copies, each with the tile of its first part, and the descriptor of each.
    pub(super) stores: &'r [(Tile<'c, 'a>, Value<'c, 'a>)],
    pub(super) reading: &'r Reading<'c, 'a>,
    /// The descriptor of each tile, if it is a parameter.
    pub(super) parameters: Vec<Option<Value<'c, 'a>>>,
    /// Whether the loop as it was runs only for sizes that no program has, and need not be fast.
    pub(super) is_rare: bool,
    /// Whether it is one of the conditions that the loop has an iteration.
    pub(super) runs: bool,
}

impl<'c: 'a, 'a> Version<'_, 'c, 'a> {
    /// Writes both loops and the choice between them.
    pub(super) fn write(&self) {
        let old = self.of.operation();
        let location = old.loc();
        let mut rewriter = Rewriter::new(old.ctx());
        rewriter.set_before(old);
        let condition = self.writer(&mut rewriter).condition();
        let used: Vec<usize> = (0..self.of.results().len())
            .filter(|&index| self.of.results()[index].has_uses())
            .collect();
        let results_of = |of: OperationRef<'c, 'a>| {
            let results = used.iter().map(|&index| of.result_value(index));
            results.flatten().collect::<Vec<Value<'c, 'a>>>()
        };
        let types: Vec<Type<'c>> = results_of(old).iter().map(|v| v.r#type()).collect();
        let mut with_copies = None;
        let choice = If::build(
            &mut rewriter,
            location,
            condition,
            &types,
            |rewriter| {
                let copy = self.writer(rewriter).with_copies();
                with_copies = For::of(copy);
                results_of(copy)
            },
            |rewriter| {
                let copy = Mapping::new().copy(rewriter, old);
                if self.is_rare {
                    copy.set_discardable_attr(STAGES, attr::i32(old.ctx(), 1));
                    copy.set_discardable_attr(RARE, attr::unit(old.ctx()));
                }
                results_of(copy)
            },
        );
        mark(choice);
        for (from, to) in results_of(old).into_iter().zip(choice.results()) {
            from.replace_all_uses(to);
        }
        old.erase();
        if let Some(of) = with_copies {
            // Pointers through which the loop no longer loads.
            carried::drop_unread(&mut rewriter, of);
        }
        let mut last = choice;
        for (tile, descriptor) in self.stores {
            if let Some(store) = tt::StoreOp::of(tile.access) {
                last = self.write_store(&mut rewriter, condition, tile, store, *descriptor);
            }
        }
        // What only one side of a choice uses is computed only for it.
        let mut before = last.operation().previous_op();
        while let Some(operation) = before {
            before = operation.previous_op();
            sink_into_branch(operation);
        }
    }

    /// Writes the store of a tile by a copy and the store as it was, and the choice between them, which it answers.
    fn write_store(
        &self,
        rewriter: &mut Rewriter<'c, 'a>,
        condition: Value<'c, 'a>,
        tile: &Tile<'c, 'a>,
        store: tt::StoreOp<'c, 'a>,
        descriptor: Value<'c, 'a>,
    ) -> If<'c, 'a> {
        let location = tile.access.loc();
        rewriter.set_before(tile.access);
        // The tile is that of a part.
        let columns = |tensor: RankedTensor| tensor.shape().last().copied().unwrap_or(1);
        let whole = RankedTensor::of(store.value().r#type()).map_or(1, columns);
        let columns = columns(tile.tensor);
        let choice = If::between(
            rewriter,
            location,
            condition,
            |rewriter| {
                let mut writer = self.writer(rewriter);
                let dims = tile.order.iter().map(|&dim| &tile.dims[dim]);
                let mut starts: Vec<Value> =
                    dims.map(|dim| writer.polynomial(&dim.start, 32)).collect();
                let (i32, parts) = (writer.integer(32), whole / columns);
                let values = store_parts::divided(rewriter, location, store.value(), parts);
                for (number, value) in values.into_iter().enumerate() {
                    if number > 0
                        && let Some(start) = starts.last_mut()
                    {
                        let mut arithmetic = Arithmetic { location, rewriter };
                        let by = arithmetic.constant(i32, columns);
                        *start = arithmetic.add(*start, by);
                    }
                    let copy = tt::DescriptorStoreOp::build(location, descriptor, value, &starts);
                    rewriter.insert(copy);
                }
            },
            |rewriter| {
                Mapping::new().copy(rewriter, tile.access);
            },
        );
        mark(choice);
        tile.access.erase();
        choice
    }

    fn writer<'r>(&'r self, rewriter: &'r mut Rewriter<'c, 'a>) -> Writer<'r, 'c, 'a> {
        Writer {
            of: self.of,
            location: self.location,
            tiles: self.tiles,
            slices: self.slices,
            parameters: &self.parameters,
            reading: self.reading,
            runs: self.runs,
            rewriter,
        }
    }
}

/// Marks a conditional as a choice between versions.
fn mark(choice: If<'_, '_>) {
    let branch = choice.operation();
    branch.set_discardable_attr(VERSIONS, attr::unit(branch.ctx()));
}

/// The operations of a kind that a loop contains, in order.
fn loads_of<'c: 'a, 'a>(of: OperationRef<'c, 'a>) -> Vec<tt::LoadOp<'c, 'a>> {
    let mut loads = Vec::new();
    of.for_each_op(Walk::PreOrder, |operation| {
        loads.extend(tt::LoadOp::of(operation))
    });
    loads
}

struct Writer<'r, 'c, 'a> {
    of: For<'c, 'a>,
    location: Location<'c>,
    tiles: &'r [Tile<'c, 'a>],
    slices: Option<Division>,
    parameters: &'r [Option<Value<'c, 'a>>],
    reading: &'r Reading<'c, 'a>,
    runs: bool,
    rewriter: &'r mut Rewriter<'c, 'a>,
}

impl<'c: 'a, 'a> Writer<'_, 'c, 'a> {
    fn arithmetic(&mut self) -> Arithmetic<'_, 'c, 'a> {
        Arithmetic {
            location: self.location,
            rewriter: self.rewriter,
        }
    }

    fn integer(&self, bits: u32) -> Type<'c> {
        IntegerType::new(self.rewriter.context(), bits).into()
    }

    fn put(&mut self, operation: Operation<'c>) -> Value<'c, 'a> {
        let made = self.rewriter.insert(operation);
        made.result_value(0).expect("it has one result")
    }

    fn converted(&mut self, name: &str, value: Value<'c, 'a>, to: Type<'c>) -> Value<'c, 'a> {
        let location = self.location;
        let made = self
            .rewriter
            .create(name, location, &[value], Some(&[to]), &[])
            .expect(IN_CONTEXT);
        made.result_value(0).expect("it has one result")
    }

    /// A signed number with 64 bits.
    fn wide(&mut self, value: Value<'c, 'a>) -> Value<'c, 'a> {
        let to = self.integer(64);
        match value.r#type() == to {
            true => value,
            false => self.converted(ExtSIOp::NAME, value, to),
        }
    }

    /// A number with 32 bits.
    fn narrow(&mut self, value: Value<'c, 'a>) -> Value<'c, 'a> {
        let to = self.integer(32);
        match value.r#type() == to {
            true => value,
            false => self.converted(TruncIOp::NAME, value, to),
        }
    }

    /// A polynomial in scalars, as a number of so many bits, modulo 2^bits.
    fn polynomial(&mut self, polynomial: &Exact, bits: u32) -> Value<'c, 'a> {
        let of = self.integer(bits);
        let mut sum = None;
        for (by, factors) in polynomial.terms() {
            let mut product = None;
            for factor in factors {
                let Variable::Scalar(number) = *factor else {
                    continue;
                };
                let scalar = self.reading.scalar_of(number);
                let scalar = match bits {
                    32 => self.narrow(scalar),
                    _ => self.wide(scalar),
                };
                product = Some(match product {
                    Some(product) => self.arithmetic().multiply(product, scalar),
                    None => scalar,
                });
            }
            let term = match (product, by) {
                (Some(product), 1) => product,
                (Some(product), by) => {
                    let mut arithmetic = self.arithmetic();
                    let by = arithmetic.constant(of, by);
                    arithmetic.multiply(product, by)
                }
                (None, by) => self.arithmetic().constant(of, by),
            };
            sum = Some(match sum {
                Some(sum) => self.arithmetic().add(sum, term),
                None => term,
            });
        }
        sum.unwrap_or_else(|| self.arithmetic().constant(of, 0))
    }

    /// Whether all conditions hold.
    fn condition(&mut self) -> Value<'c, 'a> {
        let of = self.integer(64);
        let mut all = None;
        for (polynomial, least) in self.reading.conditions.all() {
            let value = self.polynomial(&polynomial, 64);
            let mut arithmetic = self.arithmetic();
            // `least` has little more than 32 bits.
            let below = arithmetic.constant(of, least - 1);
            let holds = arithmetic.is_below(below, value, false);
            all = Some(match all {
                Some(all) => arithmetic.both(all, holds),
                None => holds,
            });
        }
        all.unwrap_or_else(|| self.arithmetic().always())
    }

    /// The loop with copies.
    fn with_copies(&mut self) -> OperationRef<'c, 'a> {
        let old = self.of.operation();
        let tiles = self.tiles;
        let mut made: Vec<(usize, Value<'c, 'a>)> = Vec::new();
        for (number, tile) in tiles.iter().enumerate() {
            let same = made.iter().find(|(of, _)| {
                let other = &tiles[*of];
                let fields = |tile: &Tile<'c, 'a>| {
                    let dims = tile.order.iter().map(|&dim| &tile.dims[dim]);
                    dims.map(|dim| (dim.extent.clone(), dim.stride.clone(), dim.size))
                        .collect::<Vec<_>>()
                };
                let is_same = other.base == tile.base && other.block() == tile.block();
                is_same && fields(other) == fields(tile)
            });
            let descriptor = match (self.parameters[number], same) {
                (Some(parameter), _) => parameter,
                (None, Some((_, known))) => *known,
                (None, None) => self.descriptor(tile),
            };
            made.push((number, descriptor));
        }
        let starts: Vec<Vec<Value<'c, 'a>>> = tiles
            .iter()
            .map(|tile| {
                let dims = tile.order.iter().map(|&dim| &tile.dims[dim]);
                dims.map(|dim| self.polynomial(&dim.start, 32)).collect()
            })
            .collect();
        let [lower, upper, step] = self.bounds();
        let copy = Mapping::new().copy(self.rewriter, old);
        let (before, after) = (loads_of(old), loads_of(copy));
        let of = For::of(copy).expect("it is a copy of a loop");
        for (index, bound) in [lower, upper, step].into_iter().enumerate() {
            of.set_bound(index, bound);
        }
        for ((tile, starts), (_, descriptor)) in tiles.iter().zip(starts).zip(made) {
            let Some(place) = before
                .iter()
                .position(|load| load.operation() == tile.access)
            else {
                continue;
            };
            self.copy(of, lower, after[place], tile, &starts, descriptor);
        }
        self.rewriter.set_after(copy);
        copy
    }

    /// The lower bound, the upper bound and the step of the loop with copies. If it has an iteration, its bounds show it.
    fn bounds(&mut self) -> [Value<'c, 'a>; 3] {
        let [lower, upper, step] = self.bounds_of_slices();
        if !self.runs {
            return [lower, upper, step];
        }
        let mut arithmetic = self.arithmetic();
        let one = arithmetic.constant(lower.r#type(), 1);
        let above = arithmetic.add(lower, one);
        [lower, arithmetic.larger(upper, above), step]
    }

    fn bounds_of_slices(&mut self) -> [Value<'c, 'a>; 3] {
        let [lower, upper, step] = self.of.bounds();
        let Some(Division { number, step: own }) = self.slices else {
            return [lower, upper, step];
        };
        let r#type = lower.r#type();
        let mut arithmetic = self.arithmetic();
        if let Some(own) = own {
            return [lower, upper, arithmetic.constant(r#type, own)];
        }
        let number = arithmetic.constant(r#type, number.into());
        let [lower, upper] = [lower, upper].map(|bound| arithmetic.multiply(bound, number));
        [lower, upper, step]
    }

    /// Makes the descriptor of a tile's tensor.
    fn descriptor(&mut self, tile: &Tile<'c, 'a>) -> Value<'c, 'a> {
        let dims: Vec<_> = tile.order.iter().map(|&dim| &tile.dims[dim]).collect();
        let shape: Vec<Value> = dims
            .iter()
            .map(|dim| self.polynomial(&dim.extent, 32))
            .collect();
        let strides: Vec<Value> = dims
            .iter()
            .map(|dim| self.polynomial(&dim.stride, 64))
            .collect();
        self.put(tt::MakeTensorDescOp::build(
            tile.access.loc(),
            TensorDesc::get(tile.block()),
            tile.base,
            &shape,
            &strides,
            tt::PaddingOption::Zero,
        ))
    }

    /// Replaces a load by a copy.
    fn copy(
        &mut self,
        of: For<'c, 'a>,
        lower: Value<'c, 'a>,
        load: tt::LoadOp<'c, 'a>,
        tile: &Tile<'c, 'a>,
        starts: &[Value<'c, 'a>],
        descriptor: Value<'c, 'a>,
    ) {
        let location = load.operation().loc();
        self.rewriter.set_before(load.operation());
        let mut coordinates = Vec::new();
        for (&dim, &start) in tile.order.iter().zip(starts) {
            coordinates.push(match tile.dims[dim].step {
                0 => start,
                step => {
                    let number = self.narrow(of.number());
                    let lower = self.narrow(lower);
                    let i32 = self.integer(32);
                    let mut arithmetic = self.arithmetic();
                    let progress = arithmetic.subtract(number, lower);
                    let by = arithmetic.constant(i32, step);
                    let far = arithmetic.multiply(progress, by);
                    arithmetic.add(start, far)
                }
            });
        }
        let mut loaded = self.put(tt::DescriptorLoadOp::build(
            location,
            tile.block(),
            descriptor,
            &coordinates,
            load.cache(),
            load.evict(),
        ));
        let rank = tile.order.len();
        if !tile.order.iter().copied().eq(0..rank) {
            // Dimension `order[i]` of the tile is dimension `i` of the block.
            let place = |dim: usize| tile.order.iter().position(|&of| of == dim);
            let order: Option<Vec<i32>> =
                (0..rank).map(|dim| place(dim)?.try_into().ok()).collect();
            let order = order.expect("an order has all dimensions");
            let result = tile.tensor.r#type();
            loaded = self.put(tt::TransOp::build(location, result, loaded, &order));
        }
        load.result().replace_all_uses(loaded);
        load.operation().erase();
    }
}
