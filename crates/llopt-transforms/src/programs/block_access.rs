//! Accesses to blocks through tensor descriptors, which a program may make smaller.
//!
//! The type of a descriptor has the extents of the block that an access moves: whoever makes the descriptor, the program or
//! its launcher, takes them from there. So a program that needs a part of a block changes that type, and moves the first
//! element of its accesses:
//!
//! ```text
//! load b[n * 128, k * 64]  of 128 x 64           load b[n * 128 + part * 64, k * 64]  of 64 x 64
//! ```
//!
//! Other accesses through the same descriptor may remain as they are: they move several blocks. But elements are swizzled in
//! shared memory by the shape of one block, which must then be as before, and rows that are no longer whole must be so for all.

use llopt_dialects::layout::tensor_descriptor::DescriptorFields;
use llopt_dialects::meaning::facts::Control;
use llopt_dialects::tables::types::{RankedTensor, TensorDesc};
use llopt_dialects::tt::{DescriptorLoadOp, DescriptorStoreOp, MakeTensorDescOp};
use llopt_mlir::ir::{BlockExt, OperationExt, ValueExt};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::{BlockLike, OperationRef, Type, Value, ValueLike};

use crate::descriptor_parts::passed_extents;
use crate::layouts::retype_function;
use crate::loops::builder::Arithmetic;

/// A load or a store of a block that has the dimensions of its tensor.
#[derive(Clone, Copy)]
pub(crate) struct BlockAccess<'c, 'a> {
    pub(crate) operation: OperationRef<'c, 'a>,
    descriptor: Value<'c, 'a>,
    /// What is loaded or stored.
    pub(crate) moved: Value<'c, 'a>,
    /// The number of the operand that is the first index.
    first_index: usize,
}

impl<'c: 'a, 'a> BlockAccess<'c, 'a> {
    /// An operation as such an access.
    pub(crate) fn of(operation: OperationRef<'c, 'a>) -> Option<Self> {
        let (descriptor, moved, first_index) = match DescriptorLoadOp::of(operation) {
            Some(load) => (load.desc(), load.result(), 1),
            None => {
                let store = DescriptorStoreOp::of(operation)?;
                (store.desc(), store.src(), 2)
            }
        };
        let access = Self {
            operation,
            descriptor,
            moved,
            first_index,
        };
        let shape = RankedTensor::of(moved.r#type())?.shape();
        (shape.len() == access.block()?.len()).then_some(access)
    }

    /// Extents of the block.
    fn block(self) -> Option<Vec<i64>> {
        let block = TensorDesc::of(self.descriptor.r#type())?.block()?;
        Some(block.shape())
    }

    /// The number of the operand that is stored.
    pub(crate) fn stored_operand(self) -> Option<usize> {
        DescriptorStoreOp::of(self.operation).map(|_| 1)
    }

    /// The coordinate in the tensor of the first element along a dimension.
    pub(crate) fn first(self, dim: usize) -> Option<Value<'c, 'a>> {
        self.operation.operand_value(self.first_index + dim)
    }

    /// The extent of the tensor along a dimension. After a parameter that is a descriptor, launchers pass the extents and the
    /// strides of its tensor.
    pub(crate) fn extent_of_tensor(self, dim: usize) -> Option<Value<'c, 'a>> {
        if let Some(maker) = MakeTensorDescOp::defining(self.descriptor) {
            return maker.shape().get(dim).copied();
        }
        passed_extents(self.descriptor)?.get(dim).copied()
    }

    /// Whether a dimension is that of the rows' elements.
    fn is_within_rows(self, dim: usize) -> bool {
        self.block().is_some_and(|block| dim + 1 == block.len())
    }

    /// The accesses whose blocks have fewer elements along a dimension if those of this one have.
    pub(crate) fn that_shrink_together(self, dim: usize) -> Vec<Self> {
        match self.is_within_rows(dim) {
            true => self.descriptor.users().filter_map(Self::of).collect(),
            false => vec![self],
        }
    }

    /// The type of the descriptor for blocks with no more than so many elements along a dimension.
    fn shrunk(self, dim: usize, to: i64) -> Option<Type<'c>> {
        let block = TensorDesc::of(self.descriptor.r#type())?.block()?;
        let mut shape = block.shape();
        let extent = shape.get_mut(dim)?;
        *extent = to.min(*extent);
        let block = RankedTensor::get(&shape, block.element(), block.encoding());
        Some(TensorDesc::get(block))
    }

    /// Whether blocks may have only so many elements along a dimension, if all of these accesses have so few.
    pub(crate) fn may_shrink(self, dim: usize, to: i64, together: &[OperationRef<'c, 'a>]) -> bool {
        let is_parameter = || {
            let block = self.descriptor.argument_of().map(|(block, _)| block);
            let of = block.and_then(|block| block.parent_operation());
            block.is_some_and(BlockExt::is_entry)
                && of.is_some_and(|of| Control::of(of) == Control::Function)
        };
        if MakeTensorDescOp::defining(self.descriptor).is_none() && !is_parameter() {
            return false;
        }
        let swizzle = |of| Some(DescriptorFields::of(TensorDesc::of(of)?).ok()?.swizzle_mode);
        let Some(shrunk) = self.shrunk(dim, to).and_then(swizzle) else {
            return false;
        };
        let others_stay =
            !self.is_within_rows(dim) && swizzle(self.descriptor.r#type()) == Some(shrunk);
        self.descriptor
            .users()
            .all(|user| Self::of(user).is_some() && (others_stay || together.contains(&user)))
    }

    /// Moves blocks with so many elements along a dimension, the first of them further by `first`. The type of what is moved is
    /// changed by the caller.
    pub(crate) fn shrink(
        self,
        rewriter: &mut Rewriter<'c, 'a>,
        dim: usize,
        to: i64,
        first: Option<Value<'c, 'a>>,
    ) {
        if let Some(shrunk) = self.shrunk(dim, to) {
            self.descriptor.set_type(shrunk);
        }
        let of = self.descriptor.argument_of().map(|(block, _)| block);
        if let Some(function) = of.and_then(|block| block.parent_operation()) {
            retype_function(function);
        }
        if let (Some(by), Some(start)) = (first, self.first(dim)) {
            rewriter.set_before(self.operation);
            let location = self.operation.loc();
            let moved = Arithmetic { rewriter, location }.add(start, by);
            self.operation
                .set_operand_value(self.first_index + dim, moved);
        }
    }
}
