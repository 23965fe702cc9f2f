//! `--triton-rewrite-tensor-descriptor-to-pointer`: accesses through tensor descriptors as accesses through
//! pointers, for targets without a copy unit, and before layouts are chosen.
//!
//! A descriptor that `tt.make_tensor_descriptor` makes is a base pointer, extents and strides. An access to a
//! block is one to the tensor of the pointers of its elements, under the mask of those that are inside. All
//! indices are 64 bits wide, so that no product of them wraps.
//!
//! A descriptor has to be known where it is used: one that control flow chooses, or that a function takes as
//! a parameter, is left alone, and code generation says so.

use llopt_dialects::tables::types::{Pointer, RankedTensor, TensorDesc};
use llopt_dialects::tt;
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{OperationExt, ValueExt, Walk};
use llopt_mlir::pass::{PassRun, PassSpec};
use llopt_mlir::rewrite::Rewriter;
use melior::Context;
use melior::dialect::arith;
use melior::ir::attribute::{FloatAttribute, IntegerAttribute};
use melior::ir::r#type::IntegerType;
use melior::ir::{Attribute, Location, Operation, OperationRef, Type, TypeLike, Value, ValueLike};

/// The pass.
pub static REWRITE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["tt", "arith"],
    ..PassSpec::new(
        "triton-rewrite-tensor-descriptor-to-pointer",
        "access blocks of tensors through pointers instead of descriptors",
        run,
    )
};

fn run(module: OperationRef<'_, '_>, _run: &mut PassRun) -> Result<(), Complaint> {
    rewrite(module);
    Ok(())
}

/// Rewrites every access through a descriptor that is made in the function.
pub fn rewrite(module: OperationRef<'_, '_>) {
    let mut accesses = Vec::new();
    let mut made = Vec::new();
    module.for_each_op(Walk::PreOrder, |op| {
        if tt::MakeTensorDescOp::of(op).is_some() {
            made.push(op);
        } else if descriptor_of(op).is_some() {
            accesses.push(op);
        }
    });
    for access in accesses {
        if let Some(maker) = descriptor_of(access).and_then(tt::MakeTensorDescOp::defining) {
            Access::of(access, maker).rewrite();
        }
    }
    for maker in made {
        if !maker.has_result_uses() {
            maker.erase();
        }
    }
}

/// The descriptor that an op accesses memory through.
fn descriptor_of<'c, 'a>(op: OperationRef<'c, 'a>) -> Option<Value<'c, 'a>> {
    let is_access = tt::DescriptorLoadOp::of(op).is_some()
        || tt::DescriptorStoreOp::of(op).is_some()
        || tt::DescriptorReduceOp::of(op).is_some()
        || tt::DescriptorGatherOp::of(op).is_some()
        || tt::DescriptorScatterOp::of(op).is_some();
    is_access.then(|| op.operand_value(0)).flatten()
}

/// An access that is being rewritten: new ops come before it.
struct Access<'c, 'a> {
    op: OperationRef<'c, 'a>,
    descriptor: tt::MakeTensorDescOp<'c, 'a>,
    context: &'c Context,
    location: Location<'c>,
    rewriter: Rewriter<'c, 'a>,
}

impl<'c: 'a, 'a> Access<'c, 'a> {
    fn of(op: OperationRef<'c, 'a>, descriptor: tt::MakeTensorDescOp<'c, 'a>) -> Self {
        let mut rewriter = Rewriter::new(op.ctx());
        rewriter.set_before(op);
        Self {
            op,
            descriptor,
            context: op.ctx(),
            location: op.loc(),
            rewriter,
        }
    }

    /// Replaces the access; leaves it alone if pointers have no such access.
    fn rewrite(mut self) -> Option<()> {
        let op = self.op;
        if let Some(load) = tt::DescriptorLoadOp::of(op) {
            let (pointers, mask) = self.block(&load.indices(), None, load.result())?;
            let loaded = self.load(pointers, mask, load.cache(), load.evict())?;
            load.result().replace_all_uses(loaded);
        } else if let Some(gather) = tt::DescriptorGatherOp::of(op) {
            let rows = Some(gather.x_offsets());
            let (pointers, mask) = self.block(&[gather.y_offset()], rows, gather.result())?;
            let (cache, evict) = (tt::CacheModifier::None, tt::EvictionPolicy::Normal);
            let loaded = self.load(pointers, mask, cache, evict)?;
            gather.result().replace_all_uses(loaded);
        } else if let Some(store) = tt::DescriptorStoreOp::of(op) {
            let (pointers, mask) = self.block(&store.indices(), None, store.src())?;
            self.store(pointers, store.src(), mask);
        } else if let Some(scatter) = tt::DescriptorScatterOp::of(op) {
            let rows = Some(scatter.x_offsets());
            let (pointers, mask) = self.block(&[scatter.y_offset()], rows, scatter.src())?;
            self.store(pointers, scatter.src(), mask);
        } else if let Some(reduce) = tt::DescriptorReduceOp::of(op) {
            let source = reduce.src();
            let update = self.update(reduce.kind(), reduce.desc())?;
            let (pointers, mask) = self.block(&reduce.indices(), None, source)?;
            self.rewriter.insert(tt::AtomicRmwOp::build(
                self.location,
                source.r#type(),
                update,
                pointers,
                source,
                Some(mask),
                tt::MemSemantic::Relaxed,
                tt::MemSyncScope::Gpu,
            ));
        }
        op.erase();
        Some(())
    }

    fn load(
        &mut self,
        pointers: Value<'c, 'a>,
        mask: Value<'c, 'a>,
        cache: tt::CacheModifier,
        evict: tt::EvictionPolicy,
    ) -> Option<Value<'c, 'a>> {
        let tensor = RankedTensor::of(pointers.r#type())?;
        let element = Pointer::of(tensor.element())?.pointee();
        let outside = self.outside(element)?;
        let outside = self.splat(outside, &tensor.shape());
        self.put(tt::LoadOp::build(
            self.location,
            pointers,
            Some(mask),
            Some(outside),
            &[],
            None,
            cache,
            evict,
            false,
        ))
    }

    fn store(&mut self, pointers: Value<'c, 'a>, value: Value<'c, 'a>, mask: Value<'c, 'a>) {
        self.rewriter.insert(tt::StoreOp::build(
            self.location,
            pointers,
            value,
            Some(mask),
            &[],
            tt::CacheModifier::None,
            tt::EvictionPolicy::Normal,
        ));
    }

    /// What a reduction does to each element, if an atomic does it.
    fn update(
        &self,
        kind: tt::DescriptorReduceKind,
        descriptor: Value<'c, 'a>,
    ) -> Option<tt::RmwOp> {
        use tt::DescriptorReduceKind as Kind;
        let element = TensorDesc::of(descriptor.r#type())?.block()?.element();
        let integer = IntegerType::try_from(element).ok();
        let signed = integer.is_some_and(|integer| integer.is_signed());
        Some(match (kind, integer.is_some()) {
            (Kind::Add, true) => tt::RmwOp::Add,
            (Kind::Add, false) => tt::RmwOp::Fadd,
            (Kind::Min, true) if signed => tt::RmwOp::Min,
            (Kind::Min, true) => tt::RmwOp::Umin,
            (Kind::Max, true) if signed => tt::RmwOp::Max,
            (Kind::Max, true) => tt::RmwOp::Umax,
            (Kind::And, true) => tt::RmwOp::And,
            (Kind::Or, true) => tt::RmwOp::Or,
            (Kind::Xor, true) => tt::RmwOp::Xor,
            _ => return None,
        })
    }

    /// What an element outside of the tensor reads as.
    fn outside(&mut self, element: Type<'c>) -> Option<Value<'c, 'a>> {
        let attribute: Attribute<'c> = if element.is_float() {
            let nan = self.descriptor.padding() == tt::PaddingOption::Nan;
            let value = if nan { f64::NAN } else { 0.0 };
            FloatAttribute::new(self.context, element, value).into()
        } else {
            IntegerAttribute::new(element, 0).into()
        };
        self.put(arith::constant(self.context, attribute, self.location))
    }

    /// The pointers to the elements of a block of the type of `like`, and which of them are inside.
    /// `indices` begin the block, or with `rows` its columns only.
    fn block(
        &mut self,
        indices: &[Value<'c, 'a>],
        rows: Option<Value<'c, 'a>>,
        like: Value<'c, 'a>,
    ) -> Option<(Value<'c, 'a>, Value<'c, 'a>)> {
        let shape = RankedTensor::of(like.r#type())?.shape();
        let (extents, strides) = (self.descriptor.shape(), self.descriptor.strides());
        // A block with fewer dimensions than the tensor has the last ones.
        let before = extents.len().checked_sub(shape.len())?;
        let mut base = self.descriptor.base();
        let base_type = base.r#type();
        let mut offset: Option<Value<'c, 'a>> = None;
        let mut mask: Option<Value<'c, 'a>> = None;
        for dim in 0..extents.len() {
            let extent = self.wide(extents[dim])?;
            if dim < before {
                let index = self.wide(indices[dim])?;
                let by = self.put(arith::muli(index, strides[dim], self.location))?;
                base = self.put(tt::AddPtrOp::build(self.location, base, by))?;
                let inside = self.inside(index, extent, &[])?;
                let inside = self.splat(inside, &shape);
                mask = Some(self.both(mask, inside)?);
                continue;
            }
            let axis = dim - before;
            let index = match rows {
                Some(rows) if dim == 0 => self.wide(rows)?,
                _ => {
                    let first = indices[if rows.is_some() { 0 } else { dim }];
                    let first = self.wide(first)?;
                    self.count_from(first, shape[axis])?
                }
            };
            let (index, row) = self.along(index, axis, &shape)?;
            let stride = self.splat(strides[dim], &row);
            let by = self.put(arith::muli(index, stride, self.location))?;
            let by = self.broadcast(by, &shape)?;
            offset = Some(match offset {
                Some(sum) => self.put(arith::addi(sum, by, self.location))?,
                None => by,
            });
            let inside = self.inside(index, extent, &row)?;
            let inside = self.broadcast(inside, &shape)?;
            mask = Some(self.both(mask, inside)?);
        }
        let bases = self.put(tt::SplatOp::build(
            self.location,
            RankedTensor::get(&shape, base_type, None),
            base,
        ))?;
        let pointers = self.put(tt::AddPtrOp::build(self.location, bases, offset?))?;
        Some((pointers, mask?))
    }

    /// `0 <= index < extent`, where the index is a tensor of this shape, or a number.
    fn inside(
        &mut self,
        index: Value<'c, 'a>,
        extent: Value<'c, 'a>,
        shape: &[i64],
    ) -> Option<Value<'c, 'a>> {
        let zero = IntegerAttribute::new(self.i64(), 0).into();
        let zero = self.put(arith::constant(self.context, zero, self.location))?;
        let (zero, extent) = match shape {
            [] => (zero, extent),
            shape => (self.splat(zero, shape), self.splat(extent, shape)),
        };
        let (context, location) = (self.context, self.location);
        let compare = arith::cmpi;
        let low = compare(context, arith::CmpiPredicate::Sge, index, zero, location);
        let high = compare(context, arith::CmpiPredicate::Slt, index, extent, location);
        let (low, high) = (self.put(low)?, self.put(high)?);
        self.put(arith::andi(low, high, location))
    }

    fn both(&mut self, one: Option<Value<'c, 'a>>, other: Value<'c, 'a>) -> Option<Value<'c, 'a>> {
        match one {
            Some(one) => self.put(arith::andi(one, other, self.location)),
            None => Some(other),
        }
    }

    /// `first, first + 1, …`
    fn count_from(&mut self, first: Value<'c, 'a>, count: i64) -> Option<Value<'c, 'a>> {
        let i32 = IntegerType::new(self.context, 32).into();
        let narrow = RankedTensor::get(&[count], i32, None);
        let range = self.put(tt::MakeRangeOp::build(self.location, narrow, 0, count))?;
        let range = self.wide(range)?;
        let first = self.splat(first, &[count]);
        self.put(arith::addi(first, range, self.location))
    }

    /// A vector as a tensor of the rank of `shape` with all extents 1 but that of `axis`; and its shape.
    fn along(
        &mut self,
        vector: Value<'c, 'a>,
        axis: usize,
        shape: &[i64],
    ) -> Option<(Value<'c, 'a>, Vec<i64>)> {
        let mut row = vec![shape[axis]];
        let mut value = vector;
        for other in 0..shape.len() {
            if other == axis {
                continue;
            }
            // Axes before it are put in front one by one, those behind it at the end.
            let at = if other < axis { 0 } else { row.len() };
            row.insert(at, 1);
            let of = RankedTensor::get(&row, self.i64(), None);
            value = self.put(tt::ExpandDimsOp::build(self.location, of, value, at as i64))?;
        }
        Some((value, row))
    }

    fn broadcast(&mut self, value: Value<'c, 'a>, shape: &[i64]) -> Option<Value<'c, 'a>> {
        let tensor = RankedTensor::of(value.r#type())?;
        if tensor.shape() == shape {
            return Some(value);
        }
        let of = RankedTensor::get(shape, tensor.element(), None);
        self.put(tt::BroadcastOp::build(self.location, of, value))
    }

    /// A number for all elements of a shape.
    fn splat(&mut self, value: Value<'c, 'a>, shape: &[i64]) -> Value<'c, 'a> {
        let of = RankedTensor::get(shape, value.r#type(), None);
        self.put(tt::SplatOp::build(self.location, of, value))
            .unwrap_or(value)
    }

    /// An integer, or a tensor of them, with 64 bits.
    fn wide(&mut self, value: Value<'c, 'a>) -> Option<Value<'c, 'a>> {
        let to = match RankedTensor::of(value.r#type()) {
            Some(tensor) => tensor.with_element(self.i64()),
            None => self.i64(),
        };
        if value.r#type() == to {
            return Some(value);
        }
        self.put(arith::extsi(value, to, self.location))
    }

    fn i64(&self) -> Type<'c> {
        IntegerType::new(self.context, 64).into()
    }

    /// Inserts an op before the access; answers its result.
    fn put(&mut self, op: Operation<'c>) -> Option<Value<'c, 'a>> {
        self.rewriter.insert(op).result_value(0)
    }
}
