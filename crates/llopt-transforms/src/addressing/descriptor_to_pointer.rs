//! `--triton-rewrite-tensor-descriptor-to-pointer`: accesses through tensor descriptors as accesses through
//! pointers, for targets without a copy unit, and before layouts are chosen.
//!
//! A descriptor that `tt.make_tensor_descriptor` makes is a base pointer, extents and strides. An access to a
//! block is one to the tensor of the pointers of its elements, under the mask of those that are inside. All
//! indices are 64 bits wide, so that no product of them wraps.
//!
//! A descriptor has to be known where it is used: one that control flow selects, or that is a parameter of a
//! function, stays as it is, and code generation reports it.

use llopt_dialects::tables::types::{Pointer, RankedTensor, TensorDesc};
use llopt_dialects::tt;
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{OperationExt, ValueExt, Walk};
use llopt_mlir::pass::{PassRun, PassSpec};
use melior::ir::r#type::IntegerType;
use melior::ir::{OperationRef, Value, ValueLike};

use crate::tile_addresses::{TileAddresses, Whole};

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
    tiles: TileAddresses<'c, 'a>,
}

impl<'c: 'a, 'a> Access<'c, 'a> {
    fn of(op: OperationRef<'c, 'a>, descriptor: tt::MakeTensorDescOp<'c, 'a>) -> Self {
        Self {
            op,
            descriptor,
            tiles: TileAddresses::before(op),
        }
    }

    /// The pointers to the elements of a block of the type of `like`, and which of them are inside.
    fn block(
        &mut self,
        indices: &[Value<'c, 'a>],
        rows: Option<Value<'c, 'a>>,
        like: Value<'c, 'a>,
    ) -> Option<(Value<'c, 'a>, Value<'c, 'a>)> {
        let shape = RankedTensor::of(like.r#type())?.shape();
        let whole = Whole {
            base: self.descriptor.base(),
            extents: self.descriptor.shape(),
            strides: self.descriptor.strides(),
        };
        let (pointers, mask) = self
            .tiles
            .pointers(&whole, indices, rows, &shape, |_| true)?;
        Some((pointers, mask?))
    }

    /// Replaces the access; leaves it as it is if pointers have no such access.
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
            self.tiles.rewriter.insert(tt::AtomicRmwOp::build(
                self.tiles.location,
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
        let padding = self.descriptor.padding();
        let outside = self.tiles.outside(padding, element, &tensor.shape())?;
        self.tiles.put(tt::LoadOp::build(
            self.tiles.location,
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
        self.tiles.rewriter.insert(tt::StoreOp::build(
            self.tiles.location,
            pointers,
            value,
            Some(mask),
            &[],
            tt::CacheModifier::None,
            tt::EvictionPolicy::Normal,
        ));
    }

    /// The update of each element in a reduction, if an atomic supports it.
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
}
