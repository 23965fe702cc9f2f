//! Tensors in shared memory: buffers as layouts that a value may have.
//!
//! A label is a place for every element, and a buffer is as good a place as registers: the encoding of a buffer is
//! a label like any other, of the few ops that can give a tensor to their users without touching it. A load of a buffer
//! can hand on the buffer itself, if nothing is written there afterwards; a transposition can be another name
//! of it; and a product may read its factors there. Everything else works in registers. Between a label in
//! registers and one in memory stands a store or a load instead of a conversion, and nothing brings a
//! tensor from one buffer to another. So whether a factor is loaded, and where a product is computed that
//! needs it in memory, follow from the same search as all layouts.
//!
//! [`Buffers`] writes what was chosen: `ttg.local_alloc` where a tensor goes to memory, `ttg.local_load` where it comes
//! back, `ttg.memdesc_trans` for a transposition in between, and for products that read buffers
//! `ttng.warp_group_dot`, which waits for itself.

use std::collections::HashMap;

use llopt_dialects::layout::encoding::Encoding;
use llopt_dialects::tables::types::{MemDesc, MemDescParts, RankedTensor};
use llopt_dialects::tt::{DotOp, TransOp};
use llopt_dialects::ttg::{self, LocalAllocOp, LocalLoadOp, LocalStoreOp, MemDescTransOp};
use llopt_dialects::ttng::WarpGroupDotOp;
use llopt_mlir::ir::{OperationExt, ValueExt, key};
use melior::ir::{Attribute, BlockLike, OperationRef, Value, ValueLike};

fn encoding_of(buffer: Value<'_, '_>) -> Option<Encoding> {
    let encoding = MemDesc::of(buffer.r#type())?.encoding()?;
    Encoding::from_attribute(encoding).ok()
}

/// The layout of the buffer that an op moves a tensor to or from.
pub(super) fn accessed(operation: OperationRef<'_, '_>) -> Option<Encoding> {
    if let Some(load) = LocalLoadOp::of(operation) {
        return encoding_of(load.src());
    }
    if let Some(store) = LocalStoreOp::of(operation) {
        return encoding_of(store.dst());
    }
    let alloc = LocalAllocOp::of(operation)?;
    alloc.src()?;
    encoding_of(alloc.result())
}

/// The layout of the buffer that a load can hand on instead of what it loads: a whole buffer of the same block, whose
/// other users are loads, or come before this one.
pub(super) fn handed_on(operation: OperationRef<'_, '_>) -> Option<Encoding> {
    let load = LocalLoadOp::of(operation)?;
    let alloc = LocalAllocOp::defining(load.src())?.operation();
    if load.token().is_some() || alloc.parent_block() != operation.parent_block() {
        return None;
    }
    let stays = load.src().users().all(|user| {
        LocalLoadOp::of(user).is_some()
            || user.parent_block() == operation.parent_block() && user.is_before(operation)
    });
    stays.then(|| encoding_of(load.src()))?
}

/// Whether an op can give a tensor in memory another name, so that its label may be a buffer's whatever it is.
pub(super) fn renames(operation: OperationRef<'_, '_>) -> bool {
    TransOp::of(operation).is_some()
}

/// The buffers in which tensors are.
#[derive(Default)]
pub(super) struct Buffers<'c, 'a> {
    of: HashMap<usize, Value<'c, 'a>>,
    /// The ops that buffers have taken the place of, each before its users.
    replaced: Vec<OperationRef<'c, 'a>>,
}

impl<'c: 'a, 'a> Buffers<'c, 'a> {
    /// The buffer in which a tensor is.
    pub(super) fn of(&self, value: Value<'c, 'a>) -> Option<Value<'c, 'a>> {
        self.of.get(&key(value)).copied()
    }

    /// Notes that the buffer that an op loads takes the place of its result.
    pub(super) fn hand_on(&mut self, operation: OperationRef<'c, 'a>) {
        if let Some(load) = LocalLoadOp::of(operation) {
            self.of.insert(key(load.result()), load.src());
            self.replaced.push(operation);
        }
    }

    /// Gives a buffer another name, as an op does with what is in it.
    pub(super) fn rename(&mut self, operation: OperationRef<'c, 'a>, buffer: Value<'c, 'a>) {
        let (Some(trans), Some(block)) = (TransOp::of(operation), operation.parent_block()) else {
            return;
        };
        let Some(view) = MemDescTransOp::infer(operation.loc(), buffer, &trans.order()) else {
            return;
        };
        let view = block.insert_operation_before(operation, view);
        if let Some(view) = view.result_value(0) {
            self.of.insert(key(trans.result()), view);
            self.replaced.push(operation);
        }
    }

    /// Erases the ops that buffers have taken the place of.
    pub(super) fn erase_replaced(self) {
        for operation in self.replaced.into_iter().rev() {
            if !operation.has_result_uses() {
                operation.erase();
            }
        }
    }
}

/// Stores a tensor to a buffer of its own before an op.
pub(super) fn store<'c: 'a, 'a>(
    value: Value<'c, 'a>,
    encoding: Attribute<'c>,
    before: OperationRef<'c, 'a>,
) -> Option<Value<'c, 'a>> {
    let tensor = RankedTensor::of(value.r#type())?;
    let memory = MemDesc::get(&MemDescParts {
        alloc_shape: tensor.shape(),
        shape: tensor.shape(),
        element: tensor.element(),
        encoding,
        memory_space: ttg::attribute::SHARED_MEMORY.get(before.ctx(), &[]),
        mutable: false,
    });
    let alloc = LocalAllocOp::build(before.loc(), memory, Some(value), None);
    let alloc = before
        .parent_block()?
        .insert_operation_before(before, alloc);
    alloc.result_value(0)
}

/// Loads a tensor of this layout from a buffer before an op.
pub(super) fn load<'c: 'a, 'a>(
    tensor: RankedTensor<'c>,
    buffer: Value<'c, 'a>,
    encoding: Attribute<'c>,
    before: OperationRef<'c, 'a>,
) -> Option<Value<'c, 'a>> {
    let to = tensor.with_encoding(Some(encoding));
    let load = LocalLoadOp::build(before.loc(), to, buffer, None);
    let load = before.parent_block()?.insert_operation_before(before, load);
    load.result_value(0)
}

/// Writes a product with factors in memory as one of groups of warps.
pub(super) fn multiply_in_groups(operation: OperationRef<'_, '_>) {
    let (Some(dot), Some(block)) = (DotOp::of(operation), operation.parent_block()) else {
        return;
    };
    if MemDesc::of(dot.b().r#type()).is_none() {
        return;
    }
    let product = WarpGroupDotOp::build(
        operation.loc(),
        dot.a(),
        dot.b(),
        dot.c(),
        None,
        dot.input_precision(),
        dot.max_num_imprecise_acc(),
        false,
    );
    let product = block.insert_operation_before(operation, product);
    if let Some(result) = product.result_value(0) {
        result.set_type(dot.d().r#type());
        dot.d().replace_all_uses(result);
        operation.erase();
    }
}
