//! `--triton-nvidia-tma-lowering`: accesses through tensor descriptors as copies of whole blocks between global
//! and shared memory, for targets with a unit that does so.
//!
//! A load becomes a buffer, a barrier in memory that counts the block's bytes, the copy, the wait, and a load of the
//! buffer; a store is the reverse, with a fence between the threads' writes and the copy unit. Each access waits for
//! its own copy: later passes overlap it with other work. Each block of a cluster moves its part
//! ([`crate::descriptor_blocks`]), with a barrier of its own.
//!
//! Only descriptors that are objects in memory are taken: parameters of the kernel, those that
//! [`crate::descriptor_objects`] wrote there, and descriptors that control flow passes on from these.

use llopt_dialects::layout::encoding::{CgaLayout, Encoding};
use llopt_dialects::layout::tensor_descriptor::{DescriptorFields, encoding_over, has_update};
use llopt_dialects::layout::transfer;
use llopt_dialects::tables::types::{MemDesc, MemDescParts, RankedTensor, TensorDesc};
use llopt_dialects::{layout::encoding, tt, ttg, ttng};
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{OperationExt, TypeExt, ValueExt, Walk};
use llopt_mlir::pass::{PassRun, PassSpec};
use llopt_mlir::rewrite::Rewriter;
use melior::dialect::arith;
use melior::ir::attribute::IntegerAttribute;
use melior::ir::r#type::IntegerType;
use melior::ir::{Location, Operation, OperationRef, Type, Value, ValueLike};

/// The pass.
pub static REWRITE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["ttg", "ttng", "arith"],
    ..PassSpec::new(
        "triton-nvidia-tma-lowering",
        "access blocks of tensors through descriptors in memory by copies through shared memory",
        run,
    )
};

fn run(module: OperationRef<'_, '_>, _run: &mut PassRun) -> Result<(), Complaint> {
    rewrite(module);
    Ok(())
}

/// Rewrites every access through a descriptor that is an object in memory.
pub fn rewrite(module: OperationRef<'_, '_>) {
    let mut accesses = Vec::new();
    module.for_each_op(Walk::PreOrder, |op| {
        let is_access = tt::DescriptorLoadOp::of(op).is_some()
            || tt::DescriptorStoreOp::of(op).is_some()
            || tt::DescriptorReduceOp::of(op).is_some();
        let descriptor = op.operand_value(0).filter(|_| is_access);
        if descriptor.is_some_and(|value| tt::MakeTensorDescOp::defining(value).is_none()) {
            accesses.push(op);
        }
    });
    for op in accesses {
        let mut rewriter = Rewriter::new(op.ctx());
        rewriter.set_before(op);
        let access = Access {
            op,
            location: op.loc(),
            rewriter,
        };
        // An access that cannot become a copy stays as it is, and code generation reports it.
        let _ = access.rewrite();
    }
}

/// An access that is being rewritten: new ops come before it.
struct Access<'c, 'a> {
    op: OperationRef<'c, 'a>,
    location: Location<'c>,
    rewriter: Rewriter<'c, 'a>,
}

impl<'c: 'a, 'a> Access<'c, 'a> {
    fn rewrite(mut self) -> Option<()> {
        let (op, location) = (self.op, self.location);
        if let Some(load) = tt::DescriptorLoadOp::of(op) {
            let buffer_type = self.buffer(load.desc(), load.result(), true)?;
            let bytes = bytes_of(buffer_type)?;
            let blocks = MemDesc::of(buffer_type).and_then(MemDesc::encoding)?;
            let blocks = Encoding::from_attribute(blocks).ok()?.cga_layout();
            let buffer = self.put(ttg::LocalAllocOp::build(location, buffer_type, None, None))?;
            let barrier_type = self.barrier_type(blocks.num_blocks())?;
            let barrier = self.put(ttg::LocalAllocOp::build(location, barrier_type, None, None))?;
            let always = self.constant(1, 1)?;
            let phase = self.constant(32, 0)?;
            let insert = |this: &mut Self, op: Operation<'c>| {
                this.rewriter.insert(op);
            };
            insert(&mut self, ttng::InitBarrierOp::build(location, barrier, 1));
            insert(
                &mut self,
                ttng::BarrierExpectOp::build(location, barrier, bytes, always),
            );
            insert(
                &mut self,
                ttng::AsyncTMACopyGlobalToLocalOp::build(
                    location,
                    load.desc(),
                    &load.indices(),
                    barrier,
                    buffer,
                    always,
                    tt::CacheModifier::None,
                    load.evict(),
                    false,
                ),
            );
            insert(
                &mut self,
                ttng::WaitBarrierOp::build(location, barrier, phase, None, &[]),
            );
            insert(&mut self, ttng::InvalBarrierOp::build(location, barrier));
            let result = load.result().r#type();
            let loaded = self.put(ttg::LocalLoadOp::build(location, result, buffer, None))?;
            load.result().replace_all_uses(loaded);
        } else {
            let store = tt::DescriptorStoreOp::of(op);
            let reduce = tt::DescriptorReduceOp::of(op);
            let (descriptor, source, indices) = match (store, reduce) {
                (Some(store), _) => (store.desc(), store.src(), store.indices()),
                (_, Some(reduce)) => (reduce.desc(), reduce.src(), reduce.indices()),
                _ => return None,
            };
            let element = TensorDesc::of(descriptor.r#type())?.block()?.element();
            if reduce.is_some_and(|reduce| !has_update(reduce.kind(), element)) {
                return None;
            }
            let buffer_type = self.buffer(descriptor, source, false)?;
            let alloc = ttg::LocalAllocOp::build(location, buffer_type, Some(source), None);
            let buffer = self.put(alloc)?;
            self.rewriter
                .insert(ttng::FenceAsyncSharedOp::build(location, false));
            self.rewriter.insert(match reduce {
                Some(reduce) => ttng::AsyncTMAReduceOp::build(
                    location,
                    reduce.kind(),
                    descriptor,
                    &indices,
                    buffer,
                ),
                None => {
                    ttng::AsyncTMACopyLocalToGlobalOp::build(location, descriptor, &indices, buffer)
                }
            });
            self.rewriter
                .insert(ttng::TMAStoreWaitOp::build(location, 0));
        }
        op.erase();
        Some(())
    }

    /// The type of a buffer for a block of the type of `like`.
    fn buffer(
        &self,
        descriptor: Value<'c, 'a>,
        like: Value<'c, 'a>,
        mutable: bool,
    ) -> Option<Type<'c>> {
        let descriptor = TensorDesc::of(descriptor.r#type())?;
        DescriptorFields::of(descriptor).ok()?;
        let tensor = RankedTensor::of(like.r#type())?;
        let block = descriptor.block()?;
        let dropped = block.rank().checked_sub(tensor.rank())?;
        let encoding = match block.encoding() {
            Some(encoding) if dropped == 0 => encoding,
            // Leading extents of 1 that were dropped change nothing in memory.
            encoding => {
                let blocks = encoding.map_or_else(
                    || Some(CgaLayout::single(block.rank())),
                    |encoding| Some(Encoding::from_attribute(encoding).ok()?.cga_layout()),
                )?;
                let blocks = (0..dropped).fold(blocks, |blocks, _| blocks.without_dim(0));
                encoding_over(tensor, blocks)?.to_attribute(self.op.ctx())
            }
        };
        Encoding::from_attribute(encoding).ok()?;
        Some(self.memory(tensor.shape(), tensor.element(), encoding, mutable))
    }

    /// The type of a barrier; each block of a cluster has its own.
    fn barrier_type(&self, blocks: u32) -> Option<Type<'c>> {
        let context = self.op.ctx();
        let bases = vec![vec![0]; blocks.trailing_zeros() as usize];
        let encoding = Encoding::SwizzledShared(encoding::SwizzledShared {
            vec: 1,
            per_phase: 1,
            max_phase: 1,
            order: vec![0],
            cga_layout: CgaLayout::from_bases(1, bases).ok()?,
        });
        let word = IntegerType::new(context, 64).into();
        Some(self.memory(vec![1], word, encoding.to_attribute(context), true))
    }

    fn memory(
        &self,
        shape: Vec<i64>,
        element: Type<'c>,
        encoding: melior::ir::Attribute<'c>,
        mutable: bool,
    ) -> Type<'c> {
        MemDesc::get(&MemDescParts {
            alloc_shape: shape.clone(),
            shape,
            element,
            encoding,
            memory_space: ttg::attribute::SHARED_MEMORY.get(self.op.ctx(), &[]),
            mutable,
        })
    }

    fn constant(&mut self, bits: u32, value: i64) -> Option<Value<'c, 'a>> {
        let context = self.op.ctx();
        let of = IntegerType::new(context, bits).into();
        let attribute = IntegerAttribute::new(of, value).into();
        self.put(arith::constant(context, attribute, self.location))
    }

    /// Inserts an op before the access; returns its result.
    fn put(&mut self, op: Operation<'c>) -> Option<Value<'c, 'a>> {
        self.rewriter.insert(op).result_value(0)
    }
}

/// The bytes of a buffer that one block of a cluster has.
fn bytes_of(buffer: Type<'_>) -> Option<i64> {
    let buffer = MemDesc::of(buffer)?;
    let blocks = Encoding::from_attribute(buffer.encoding()?)
        .ok()?
        .cga_layout();
    let part = blocks.share(&transfer::extents(&buffer.shape())).ok()?;
    let bits = u64::from(buffer.parts()?.element.bit_width()?);
    i64::try_from(part.iter().product::<u64>() * bits / 8).ok()
}
