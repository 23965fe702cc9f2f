//! `--tritonamdgpu-convert-buffer-ops`: accesses through tensors of pointers as accesses of a buffer by 32-bit offsets.
//!
//! # The benefit
//!
//! A buffer access has its base in scalar registers and adds a 32-bit offset for each lane, where a pointer takes two
//! registers and two additions for each; and a lane whose mask is false gets an offset out of range, whereas a masked
//! access through pointers branches. Two kinds of accesses gain nothing and stay as they are: those whose pointers
//! have other uses, and those without a mask whose offsets are known to be small, because small offsets are added to
//! a common base pointer in the same way.
//!
//! # Correctness
//!
//! The buffer has 2^31 bytes from the base on, and the offset is an unsigned number of bytes. Pointers are taken
//! apart into one scalar base and a tensor of offsets `o`, in elements, which is computed modulo 2^32. That is
//! correct if every access that is made has `0 <= o·bytes < 2^31`. There are two ways to know it:
//!
//! - The base is an argument whose `tt.pointer_range` is 32: the caller promises that the tensor is that small, and
//!   an access outside of it is undefined. The offset must be relative to the argument, so scalars that were added to
//!   the argument become part of the offset, unless neither they nor the rest can be negative.
//! - Ranges of the values from which the offset is computed (`Range`) imply it, whatever the base is.
//!
//! # What all threads add
//!
//! A tensor of offsets is often the sum of a scalar, such as where the tile of an iteration begins, and of offsets within
//! the tile. In a loop the scalar belongs to the base, where a scalar unit adds it and the rest is the same in all iterations, if
//! the rest is known to be a number of the buffer by itself (`Range`): the access is at the same address, and within the
//! 2^31 bytes behind the new base (`uniform.rs`). The same is done with scalars within an expression, such as the first row of
//! a tile that is multiplied by the length of a row; where the rest is not known to be such a number, the scalar is added
//! to it in the iteration (`affine.rs`, a pass of its own, once equal offsets are one value).
//!
//! Before that, loops that carry pointers are rewritten to carry offsets (`carried.rs`).

use std::collections::{HashMap, HashSet};

use llopt_dialects::tables::module as launch;
use llopt_dialects::tables::types::{Pointer, RankedTensor};
use llopt_dialects::ttg::ConvertLayoutOp;
use llopt_dialects::{amdg, arith, tt};
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{AttributeExt, BlockExt, OperationExt, TypeExt, ValueExt, Walk, key};
use llopt_mlir::pass::PassSpec;
use llopt_mlir::rewrite::Rewriter;
use llopt_target::{Feature, Target};
use melior::ir::r#type::IntegerType;
use melior::ir::{BlockLike, Location, Operation, OperationRef, Type, Value, ValueLike};

use crate::axis::AxisAnalysis;
use crate::ranges::Range;

mod affine;
mod carried;
mod uniform;

pub use affine::DIVIDE;

/// The attribute of a function's argument with the number of bits that offsets from it need at most.
const POINTER_RANGE: &str = "tt.pointer_range";
/// The size of a buffer in bytes.
const BUFFER_BYTES: i128 = 1 << 31;

/// The pass.
pub static REWRITE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["tt", "ttg", "amdg", "arith"],
    ..PassSpec::new(
        "tritonamdgpu-convert-buffer-ops",
        "access global memory by offsets into buffers where they fit into 32 bits",
        |module, _run| run(module),
    )
};

fn run(module: OperationRef<'_, '_>) -> Result<(), Complaint> {
    let named = launch::target(module).and_then(|name| Target::parse(name).ok());
    if named.is_some_and(|target| !target.has(Feature::BufferOps)) {
        return Ok(());
    }
    let mut writer = Writer {
        rewriter: Rewriter::new(module.ctx()),
        location: module.loc(),
        written: HashMap::new(),
        zeros: HashSet::new(),
    };
    carried::rewrite(module, &mut writer);
    let facts = AxisAnalysis::of(module);
    let mut accesses = Vec::new();
    module.for_each_op(Walk::PreOrder, |operation| {
        accesses.extend(Access::of(operation))
    });
    let mut ranges = HashMap::new();
    let found: Vec<(Access, Parts)> = accesses
        .into_iter()
        .filter(|access| carried::only_accessed(access.pointers, carried::Loops::Uses))
        .filter_map(|access| {
            let parts = Parts::of(access.pointers)?;
            let parts = parts.fits(&access, &facts, &mut ranges)?;
            let parts = parts.without_uniform(&access, &mut ranges);
            Some((access, parts))
        })
        .collect();
    for (access, parts) in found {
        access.rewrite(&parts, &mut writer);
    }
    Ok(())
}

/// A load or a store of a tensor through pointers.
struct Access<'c, 'a> {
    operation: OperationRef<'c, 'a>,
    pointers: Value<'c, 'a>,
    /// Bytes of an element.
    bytes: i128,
    is_masked: bool,
}

impl<'c: 'a, 'a> Access<'c, 'a> {
    fn of(operation: OperationRef<'c, 'a>) -> Option<Self> {
        let (pointers, mask) = if let Some(load) = tt::LoadOp::of(operation) {
            (!load.is_volatile()).then(|| (load.ptr(), load.mask()))?
        } else {
            let store = tt::StoreOp::of(operation)?;
            (store.ptr(), store.mask())
        };
        let element = RankedTensor::of(pointers.r#type())?.element();
        let bits = match Pointer::of(element)?.pointee() {
            pointee if Pointer::of(pointee).is_some() => 64,
            pointee => pointee.bit_width()?,
        };
        (bits % 8 == 0).then_some(Self {
            operation,
            pointers,
            bytes: i128::from(bits / 8),
            is_masked: mask.is_some(),
        })
    }

    fn rewrite(&self, parts: &Parts<'c, 'a>, writer: &mut Writer<'c, 'a>) {
        let location = self.operation.loc();
        let mut parts = parts.clone();
        writer.rewriter.set_before(self.operation);
        for &scalar in &parts.uniform {
            let moved = tt::AddPtrOp::build(location, parts.base, scalar);
            let Some(moved) = writer.put(moved) else {
                return;
            };
            parts.base = moved;
        }
        let Some(offsets) = writer.offsets(self.pointers, &parts) else {
            return;
        };
        writer.rewriter.set_before(self.operation);
        if let Some(load) = tt::LoadOp::of(self.operation) {
            let loaded = writer.put(amdg::BufferLoadOp::build(
                location,
                load.result().r#type(),
                parts.base,
                offsets,
                None,
                load.cache(),
                load.mask(),
                load.other(),
                1,
            ));
            if let Some(loaded) = loaded {
                load.result().replace_all_uses(loaded);
            }
        } else if let Some(store) = tt::StoreOp::of(self.operation) {
            writer.rewriter.insert(amdg::BufferStoreOp::build(
                location,
                store.value(),
                parts.base,
                offsets,
                None,
                store.cache(),
                store.mask(),
                1,
            ));
        }
        self.operation.erase();
    }
}

/// The parts of a tensor of pointers.
#[derive(Clone)]
struct Parts<'c, 'a> {
    /// The common base pointer of all elements.
    base: Value<'c, 'a>,
    /// Scalars that are part of the offset.
    scalars: Vec<Value<'c, 'a>>,
    /// Tensors whose sum is the rest of the offset.
    tensors: Vec<Value<'c, 'a>>,
    /// Scalars in these tensors that are added to the base instead.
    uniform: Vec<Value<'c, 'a>>,
    /// The tensors without these scalars, by the tensors; nothing of those that are no more than scalars.
    rests: HashMap<usize, Option<Value<'c, 'a>>>,
}

impl<'c: 'a, 'a> Parts<'c, 'a> {
    fn of(pointers: Value<'c, 'a>) -> Option<Self> {
        let mut tensors = Vec::new();
        let mut value = pointers;
        loop {
            let made = value.defining_op()?;
            if let Some(add) = tt::AddPtrOp::of(made) {
                tensors.push(add.offset());
                value = add.ptr();
            } else if let Some(source) = moved(made) {
                value = source;
            } else {
                let base = tt::SplatOp::of(made)?.src();
                return Some(Self {
                    base,
                    scalars: Vec::new(),
                    tensors,
                    uniform: Vec::new(),
                    rests: HashMap::new(),
                });
            }
        }
    }

    /// The parts with which the offset is known to fit, if a buffer access has a benefit.
    fn fits(
        self,
        access: &Access<'c, 'a>,
        facts: &AxisAnalysis,
        ranges: &mut HashMap<usize, Range>,
    ) -> Option<Self> {
        let sum = self
            .tensors
            .iter()
            .try_fold(Range::of_one(0), |sum, &tensor| {
                sum.plus(Range::of(tensor, ranges))
            });
        let most = BUFFER_BYTES / access.bytes;
        if sum.is_some_and(|sum| sum.least >= 0 && sum.most < most) {
            return access.is_masked.then_some(self);
        }
        let counts_up = |value: &Value<'c, 'a>| facts.facts(*value).non_negative;
        let far = self.clone().reach_argument();
        if !is_small(far.base) {
            return None;
        }
        let near = far.scalars.iter().all(counts_up) && self.tensors.iter().all(counts_up);
        Some(if near { self } else { far })
    }

    /// The same with scalars that were added to the base as parts of the offset.
    fn reach_argument(mut self) -> Self {
        while let Some(add) = tt::AddPtrOp::defining(self.base) {
            self.scalars.push(add.offset());
            self.base = add.ptr();
        }
        self
    }
}

/// The operand of an op that only moves the elements of a tensor.
fn moved<'c: 'a, 'a>(operation: OperationRef<'c, 'a>) -> Option<Value<'c, 'a>> {
    let moves = tt::BroadcastOp::of(operation).is_some()
        || tt::ExpandDimsOp::of(operation).is_some()
        || ConvertLayoutOp::of(operation).is_some();
    moves.then(|| operation.operand_value(0))?
}

/// Whether a pointer is an argument whose tensor is promised to be small.
fn is_small(pointer: Value<'_, '_>) -> bool {
    let Some((block, index)) = pointer.argument_of().filter(|(block, _)| block.is_entry()) else {
        return false;
    };
    let promises = block
        .parent_operation()
        .and_then(|function| function.attr("arg_attrs"))
        .and_then(AttributeExt::as_array);
    let bits = promises.and_then(|all| all.get(index)?.get(POINTER_RANGE)?.as_i64());
    bits.is_some_and(|bits| bits <= 32)
}

/// Whether accesses through pointers take a base pointer, an argument of the function, and the sum of what was added
/// to it.
pub(crate) fn is_taken_apart(pointers: Value<'_, '_>) -> bool {
    Parts::of(pointers).is_some_and(|parts| is_small(parts.base))
        && carried::only_accessed(pointers, carried::Loops::Uses)
}

/// Writes offsets, each next to the computation of its pointer.
struct Writer<'c, 'a> {
    rewriter: Rewriter<'c, 'a>,
    location: Location<'c>,
    /// The offsets of pointers from a base.
    written: HashMap<(usize, usize), Value<'c, 'a>>,
    /// Tensors of zeros among them, to which nothing is added.
    zeros: HashSet<usize>,
}

impl<'c: 'a, 'a> Writer<'c, 'a> {
    fn put(&mut self, operation: Operation<'c>) -> Option<Value<'c, 'a>> {
        self.rewriter.insert(operation).result_value(0)
    }

    /// The offsets of pointers from the base, as 32-bit numbers in the layout of the pointers.
    fn offsets(&mut self, pointers: Value<'c, 'a>, parts: &Parts<'c, 'a>) -> Option<Value<'c, 'a>> {
        let mut chain = vec![pointers];
        while let Some(made) = chain.last().and_then(|last| last.defining_op()) {
            match (tt::AddPtrOp::of(made), moved(made)) {
                (Some(add), _) => chain.push(add.ptr()),
                (None, Some(source)) => chain.push(source),
                (None, None) => break,
            }
        }
        let mut offsets = None;
        for &pointers in chain.iter().rev() {
            let place = (key(pointers), key(parts.base));
            let known = self.written.get(&place).copied();
            let next = match (known, offsets) {
                (Some(known), _) => known,
                (None, None) => self.first(pointers, parts)?,
                (None, Some(before)) => self.next(pointers, before, parts)?,
            };
            self.written.insert(place, next);
            offsets = Some(next);
        }
        offsets
    }

    /// The offsets of pointers that are all the same.
    fn first(&mut self, pointers: Value<'c, 'a>, parts: &Parts<'c, 'a>) -> Option<Value<'c, 'a>> {
        let made = pointers.defining_op()?;
        self.rewriter.set_after(made);
        self.location = made.loc();
        let mut sum = None;
        for &scalar in &parts.scalars {
            let scalar = self.narrow(scalar)?;
            sum = match sum {
                None => Some(scalar),
                Some(sum) => self.put(melior::dialect::arith::addi(sum, scalar, self.location)),
            };
        }
        let to = self.like(pointers)?;
        match sum {
            Some(sum) => self.put(tt::SplatOp::build(self.location, to, sum)),
            None => {
                let zero = self.number(0)?;
                let splat = self.put(tt::SplatOp::build(self.location, to, zero))?;
                self.zeros.insert(key(splat));
                Some(splat)
            }
        }
    }

    /// The offsets of pointers that are computed from other pointers, from the offsets of these.
    fn next(
        &mut self,
        pointers: Value<'c, 'a>,
        before: Value<'c, 'a>,
        parts: &Parts<'c, 'a>,
    ) -> Option<Value<'c, 'a>> {
        let made = pointers.defining_op()?;
        self.rewriter.set_after(made);
        self.location = made.loc();
        let (location, to) = (self.location, self.like(pointers)?);
        let next = if let Some(add) = tt::AddPtrOp::of(made) {
            let offset = add.offset();
            let rest = parts.rests.get(&key(offset)).copied();
            let Some(rest) = rest.unwrap_or(Some(offset)) else {
                return Some(before);
            };
            let own = self.narrow(rest)?;
            if self.zeros.contains(&key(before)) {
                return Some(own);
            }
            melior::dialect::arith::addi(before, own, location)
        } else if let Some(expand) = tt::ExpandDimsOp::of(made) {
            tt::ExpandDimsOp::build(location, to, before, expand.axis())
        } else if tt::BroadcastOp::of(made).is_some() {
            tt::BroadcastOp::build(location, to, before)
        } else {
            ConvertLayoutOp::build(location, to, before)
        };
        let next = self.put(next)?;
        if self.zeros.contains(&key(before)) {
            self.zeros.insert(key(next));
        }
        Some(next)
    }

    fn i32(&self) -> Type<'c> {
        IntegerType::new(self.rewriter.context(), 32).into()
    }

    /// The type of 32-bit numbers in the shape and layout of these pointers.
    fn like(&self, pointers: Value<'c, 'a>) -> Option<Type<'c>> {
        Some(RankedTensor::of(pointers.r#type())?.with_element(self.i32()))
    }

    fn number(&mut self, number: i64) -> Option<Value<'c, 'a>> {
        let attribute = melior::ir::attribute::IntegerAttribute::new(self.i32(), number);
        let context = self.rewriter.context();
        self.put(melior::dialect::arith::constant(
            context,
            attribute.into(),
            self.location,
        ))
    }

    /// A number, or a tensor of them, modulo 2^32.
    fn narrow(&mut self, value: Value<'c, 'a>) -> Option<Value<'c, 'a>> {
        let element = value.r#type().element_or_self();
        let to = match RankedTensor::of(value.r#type()) {
            Some(tensor) => tensor.with_element(self.i32()),
            None => self.i32(),
        };
        let location = self.location;
        match element.bit_width()? {
            32 => Some(value),
            64.. => {
                // A value that was only widened for the pointer is used as it was before.
                let widened = value.defining_op().and_then(arith::ExtSIOp::of);
                if let Some(source) = widened.map(arith::ExtSIOp::r#in)
                    && source.r#type() == to
                {
                    return Some(source);
                }
                self.put(melior::dialect::arith::trunci(value, to, location))
            }
            _ => self.put(melior::dialect::arith::extsi(value, to, location)),
        }
    }
}
