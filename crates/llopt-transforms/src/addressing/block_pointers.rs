//! `--triton-rewrite-tensor-pointer`: accesses through pointers to tiles as accesses through tensors of pointers,
//! before layouts are chosen.
//!
//! A pointer to a tile (`tt.make_tensor_ptr`) is a tensor in memory (base, extents, strides), which does not change,
//! and the offsets of the tile in it, which `tt.advance` changes. So the pointer becomes a list of offsets. A loop
//! that carries the pointer carries the offsets instead; an access computes the pointers of its elements from them,
//! and checks those dimensions that it names.
//!
//! Other control flow that chooses among pointers is not supported: an access through such a pointer is rejected.

use std::collections::HashMap;

use llopt_dialects::meaning::facts::Control;
use llopt_dialects::tables::types::{Pointer, RankedTensor};
use llopt_dialects::{arith, tt};
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{BlockExt, OperationExt, RegionExt, ValueExt, Walk, key};
use llopt_mlir::pass::{PassRun, PassSpec};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::{BlockRef, OperationRef, Value, ValueLike};

use crate::loops::carried;
use crate::loops::view::For;
use crate::tile_addresses::{TileAddresses, Whole};

/// The pass.
pub static REWRITE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["tt", "arith"],
    ..PassSpec::new(
        "triton-rewrite-tensor-pointer",
        "access tiles of tensors through pointers to their elements instead of pointers to tiles",
        run,
    )
};

fn run(module: OperationRef<'_, '_>, _run: &mut PassRun) -> Result<(), Complaint> {
    let mut functions = Vec::new();
    module.for_each_op(Walk::PreOrder, |op| {
        if Control::of(op) == Control::Function {
            functions.push(op);
        }
    });
    functions.into_iter().try_for_each(rewrite)
}

/// Rewrites a function.
fn rewrite(function: OperationRef<'_, '_>) -> Result<(), Complaint> {
    let mut rewriting = Rewriting {
        rewriter: Rewriter::new(function.ctx()),
        known: HashMap::new(),
        loops: Vec::new(),
        made: Vec::new(),
    };
    for region in function.region_refs() {
        for block in region.blocks() {
            rewriting.block(block)?;
        }
    }
    // The accesses have pointers of their own now, so the pointers to tiles are dead.
    for around in rewriting.loops {
        if let Some(around) = For::of(around) {
            carried::drop_needless(&mut rewriting.rewriter, around);
        }
    }
    for made in rewriting.made.into_iter().rev() {
        if !made.has_result_uses() {
            made.erase();
        }
    }
    Ok(())
}

/// A pointer to a tile.
#[derive(Clone)]
struct Tile<'c, 'a> {
    whole: Whole<'c, 'a>,
    offsets: Vec<Value<'c, 'a>>,
}

struct Rewriting<'c, 'a> {
    rewriter: Rewriter<'c, 'a>,
    known: HashMap<usize, Tile<'c, 'a>>,
    /// Loops that carry offsets and, for now, pointers to tiles; each follows those around it.
    loops: Vec<OperationRef<'c, 'a>>,
    /// Ops that make pointers to tiles.
    made: Vec<OperationRef<'c, 'a>>,
}

/// Whether a value is a pointer to a tile.
fn is_tile(value: Value<'_, '_>) -> bool {
    Pointer::of(value.r#type()).is_some_and(|of| RankedTensor::of(of.pointee()).is_some())
}

impl<'c: 'a, 'a> Rewriting<'c, 'a> {
    fn tile(&self, pointer: Value<'c, 'a>) -> Result<Tile<'c, 'a>, Complaint> {
        self.known.get(&key(pointer)).cloned().ok_or_else(|| {
            Complaint::new("is through a pointer to a tile that is chosen by more than a loop")
        })
    }

    fn block(&mut self, block: BlockRef<'c, 'a>) -> Result<(), Complaint> {
        let operations: Vec<_> = block.operations().collect();
        for operation in operations {
            let done = self.operation(operation);
            // The report belongs to the op.
            done.map_err(|complaint| complaint.report_on(operation))?;
        }
        Ok(())
    }

    fn operation(&mut self, operation: OperationRef<'c, 'a>) -> Result<(), Complaint> {
        if let Some(make) = tt::MakeTensorPtrOp::of(operation) {
            let whole = Whole {
                base: make.base(),
                extents: make.shape(),
                strides: make.strides(),
            };
            let offsets = make.offsets();
            self.known
                .insert(key(make.result()), Tile { whole, offsets });
            self.made.push(operation);
        } else if let Some(advance) = tt::AdvanceOp::of(operation) {
            let mut tile = self.tile(advance.ptr())?;
            for (offset, by) in tile.offsets.iter_mut().zip(advance.offsets()) {
                *offset = self.sum(operation, *offset, by)?;
            }
            self.known.insert(key(advance.result()), tile);
            self.made.push(operation);
        } else if let Some(load) = tt::LoadOp::of(operation) {
            if is_tile(load.ptr()) {
                let tile = self.tile(load.ptr())?;
                load_elements(load, &tile).ok_or("reads a tile that has no pointers")?;
            }
        } else if let Some(store) = tt::StoreOp::of(operation) {
            if is_tile(store.ptr()) {
                let tile = self.tile(store.ptr())?;
                store_elements(store, &tile).ok_or("writes a tile that has no pointers")?;
            }
        } else if let Some(around) = For::of(operation) {
            self.carry(around)?;
        } else {
            for region in operation.region_refs() {
                for block in region.blocks() {
                    self.block(block)?;
                }
            }
        }
        Ok(())
    }

    fn sum(
        &mut self,
        before: OperationRef<'c, 'a>,
        x: Value<'c, 'a>,
        y: Value<'c, 'a>,
    ) -> Result<Value<'c, 'a>, Complaint> {
        self.rewriter.set_before(before);
        let types = [x.r#type()];
        let made = self.rewriter.create(
            arith::AddIOp::NAME,
            before.loc(),
            &[x, y],
            Some(&types[..]),
            &[],
        );
        let sum = made.ok().and_then(|made| made.result_value(0));
        sum.ok_or_else(|| Complaint::new("has offsets that cannot be added"))
    }

    /// A loop: offsets are carried with each pointer to a tile.
    fn carry(&mut self, around: For<'c, 'a>) -> Result<(), Complaint> {
        let mut tiles = Vec::new();
        for (position, value) in around.initial().into_iter().enumerate() {
            if is_tile(value) {
                tiles.push((position, self.tile(value)?));
            }
        }
        if tiles.is_empty() {
            return self.block(around.body());
        }
        let initial: Vec<Value> = tiles
            .iter()
            .flat_map(|(_, tile)| tile.offsets.clone())
            .collect();
        let with_offsets = |tile: &Tile<'c, 'a>, left: &mut &[Value<'c, 'a>]| {
            let (offsets, rest) = left.split_at(tile.offsets.len());
            *left = rest;
            Tile {
                whole: tile.whole.clone(),
                offsets: offsets.to_vec(),
            }
        };
        let mut outcome = Ok(());
        let mut rewriter = Rewriter::new(around.operation().ctx());
        let place = self.loops.len();
        let new = carried::add(&mut rewriter, around, &initial, |_, new, arguments| {
            let mut left = arguments;
            for (position, tile) in &tiles {
                let tile = with_offsets(tile, &mut left);
                self.known.insert(key(new.carried()[*position]), tile);
            }
            outcome = self.block(new.body());
            let mut next = Vec::new();
            for (position, tile) in &tiles {
                match self.known.get(&key(new.yielded()[*position])) {
                    Some(yielded) if yielded.whole == tile.whole => next.extend(&yielded.offsets),
                    _ => {
                        let what = "goes on with a pointer to a tile of another tensor";
                        let complaint = Complaint::new(what).report_on(new.terminator());
                        outcome =
                            std::mem::replace(&mut outcome, Ok(())).and(Err(complaint.into()));
                    }
                }
                // The pointer itself no longer changes, so that it can be dropped.
                let argument = new.carried()[*position];
                new.terminator().set_operand_value(*position, argument);
            }
            if outcome.is_err() {
                next = arguments.to_vec();
            }
            next
        });
        outcome?;
        let results = new.results();
        let mut left = &results[results.len() - initial.len()..];
        for (position, tile) in &tiles {
            let tile = with_offsets(tile, &mut left);
            self.known.insert(key(results[*position]), tile);
        }
        self.loops.insert(place, new.operation());
        Ok(())
    }
}

fn load_elements<'c: 'a, 'a>(load: tt::LoadOp<'c, 'a>, tile: &Tile<'c, 'a>) -> Option<()> {
    let mut tiles = TileAddresses::before(load.operation());
    let tensor = RankedTensor::of(load.result().r#type())?;
    let checks = load.boundary_check();
    let (pointers, mask) =
        tiles.pointers(&tile.whole, &tile.offsets, None, &tensor.shape(), |dim| {
            checks.contains(&(dim as i32))
        })?;
    let outside = match (mask, load.padding()) {
        (Some(_), Some(padding)) => {
            Some(tiles.outside(padding, tensor.element(), &tensor.shape())?)
        }
        _ => None,
    };
    let location = tiles.location;
    let loaded = tiles.put(tt::LoadOp::build(
        location,
        pointers,
        mask,
        outside,
        &[],
        None,
        load.cache(),
        load.evict(),
        load.is_volatile(),
    ))?;
    load.result().replace_all_uses(loaded);
    load.operation().erase();
    Some(())
}

fn store_elements<'c: 'a, 'a>(store: tt::StoreOp<'c, 'a>, tile: &Tile<'c, 'a>) -> Option<()> {
    let mut tiles = TileAddresses::before(store.operation());
    let tensor = RankedTensor::of(store.value().r#type())?;
    let checks = store.boundary_check();
    let (pointers, mask) =
        tiles.pointers(&tile.whole, &tile.offsets, None, &tensor.shape(), |dim| {
            checks.contains(&(dim as i32))
        })?;
    tiles.rewriter.insert(tt::StoreOp::build(
        tiles.location,
        pointers,
        store.value(),
        mask,
        &[],
        store.cache(),
        store.evict(),
    ));
    store.operation().erase();
    Some(())
}
