//! `--triton-nvidia-tma-objects`: tensor descriptors that a kernel creates, as objects of the bulk copy unit (TMA),
//! for targets with one.
//!
//! An object is 128 bytes of global memory that hold the address, the extents, the strides and the box of a tensor;
//! the unit reads it with each copy. A kernel that creates a descriptor itself first has to write an object to
//! scratch memory, and to order that before the unit's reads. That takes hundreds of cycles, once; the addresses and
//! masks of an access through pointers take a few cycles per element, each time. So objects are made for descriptors
//!
//! - that a loop accesses and that are created outside of it: the cost is paid once and saved in each iteration;
//! - that control flow selects or passes on: later ops have no other way to know the tensor;
//! - through which floats are combined in a way that no atomic supports: the unit has minimum and maximum of 16-bit
//!   floats.
//!
//! All others become pointers ([`crate::descriptor_to_pointer`]), which know the tensor from the op that makes the
//! descriptor. Accesses through objects become copies in [`crate::descriptor_to_copy`].
//!
//! What the hardware requires of addresses and strides, a multiple of 16 bytes and a last stride of one, is what
//! `tt.make_tensor_descriptor` promises.

use llopt_dialects::layout::tensor_descriptor::{DescriptorFields, has_update};
use llopt_dialects::tables::types::{Pointer, TensorDesc};
use llopt_dialects::{tt, ttg, ttng};
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{OperationExt, ValueExt, Walk};
use llopt_mlir::pass::{PassRun, PassSpec};
use llopt_mlir::rewrite::Rewriter;
use melior::dialect::arith;
use melior::ir::attribute::IntegerAttribute;
use melior::ir::r#type::IntegerType;
use melior::ir::{Location, Operation, OperationRef, TypeLike, Value, ValueLike};

use crate::loops::view::For;

/// The pass.
pub static REWRITE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["ttg", "ttng", "arith"],
    ..PassSpec::new(
        "triton-nvidia-tma-objects",
        "make tensor descriptors that loops access, or control flow hands on, in memory",
        run,
    )
};

/// Bytes of an object, and the alignment of its address (PTX ISA, "Tensor-map").
const OBJECT: i64 = 128;

fn run(module: OperationRef<'_, '_>, _run: &mut PassRun) -> Result<(), Complaint> {
    rewrite(module);
    Ok(())
}

/// Creates objects for the descriptors that are worth one.
pub fn rewrite(module: OperationRef<'_, '_>) {
    let mut made = Vec::new();
    module.for_each_op(Walk::PreOrder, |op| {
        if let Some(maker) = tt::MakeTensorDescOp::of(op)
            && is_worth_it(maker)
        {
            made.push(maker);
        }
    });
    for maker in made {
        // Descriptors that the unit does not support stay as they are.
        let _ = Making::of(maker).and_then(Making::rewrite);
    }
}

/// How a descriptor is used.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// The unit has a copy for it, in the same iteration of all loops as the op that creates the descriptor.
    Once,
    /// The unit has a copy for it, in a loop that does not contain the op that creates the descriptor.
    Often,
    /// Only pointers support it.
    Pointers,
    /// Only the unit supports it.
    Unit,
    /// The descriptor is passed on.
    HandedOn,
}

fn use_of(user: OperationRef<'_, '_>, maker: OperationRef<'_, '_>) -> Use {
    if tt::DescriptorGatherOp::of(user).is_some() || tt::DescriptorScatterOp::of(user).is_some() {
        return Use::Pointers;
    }
    let is_copy = tt::DescriptorLoadOp::of(user).is_some()
        || tt::DescriptorStoreOp::of(user).is_some()
        || tt::DescriptorReduceOp::of(user).is_some();
    if !is_copy {
        return Use::HandedOn;
    }
    let is_for_unit = tt::DescriptorReduceOp::of(user).is_some_and(|reduce| {
        let block = TensorDesc::of(reduce.desc().r#type()).and_then(TensorDesc::block);
        let extreme = matches!(
            reduce.kind(),
            tt::DescriptorReduceKind::Min | tt::DescriptorReduceKind::Max
        );
        let of = block.filter(|block| extreme && block.element().is_float());
        of.is_some_and(|block| has_update(reduce.kind(), block.element()))
    });
    if is_for_unit {
        return Use::Unit;
    }
    let mut around = user.parent_op();
    while let Some(op) = around.filter(|op| Some(*op) != maker.parent_op()) {
        if For::of(op).is_some() {
            return Use::Often;
        }
        around = op.parent_op();
    }
    Use::Once
}

fn is_worth_it(maker: tt::MakeTensorDescOp<'_, '_>) -> bool {
    let uses: Vec<Use> = maker
        .result()
        .users()
        .map(|user| use_of(user, maker.operation()))
        .collect();
    let has = |wanted: Use| uses.contains(&wanted);
    !has(Use::Pointers) && (has(Use::Often) || has(Use::HandedOn) || has(Use::Unit))
}

/// A descriptor that becomes an object: new ops are inserted before the op that created it.
struct Making<'c, 'a> {
    maker: tt::MakeTensorDescOp<'c, 'a>,
    fields: DescriptorFields,
    location: Location<'c>,
    rewriter: Rewriter<'c, 'a>,
}

impl<'c: 'a, 'a> Making<'c, 'a> {
    fn of(maker: tt::MakeTensorDescOp<'c, 'a>) -> Option<Self> {
        let descriptor = TensorDesc::of(maker.result().r#type())?;
        let fields = DescriptorFields::of(descriptor).ok()?;
        let mut rewriter = Rewriter::new(maker.operation().ctx());
        rewriter.set_before(maker.operation());
        let rank = maker.shape().len();
        (rank > 1 && fields.box_shape.len() == rank).then(|| Self {
            location: maker.operation().loc(),
            maker,
            fields,
            rewriter,
        })
    }

    fn rewrite(mut self) -> Option<()> {
        let (maker, location) = (self.maker, self.location);
        let bytes = Pointer::get(IntegerType::new(maker.operation().ctx(), 8).into(), 1);
        let scratch = ttg::GlobalScratchAllocOp::build(location, bytes, OBJECT, OBJECT);
        let object = self.put(scratch)?;
        // The unit counts dimensions from the contiguous one.
        let mut boxes = Vec::new();
        let mut steps = Vec::new();
        for extent in self.fields.box_shape.clone().into_iter().rev() {
            boxes.push(self.constant(32, i64::from(extent))?);
            steps.push(self.constant(32, 1)?);
        }
        let extents: Vec<Value> = maker.shape().into_iter().rev().collect();
        let element = self.constant(64, i64::from(self.fields.element_bytes))?;
        let mut strides = Vec::new();
        for stride in maker.strides().into_iter().rev().skip(1) {
            strides.push(self.put(arith::muli(stride, element, location))?);
        }
        let fill = i64::from(maker.padding() == tt::PaddingOption::Nan);
        self.rewriter.insert(ttng::TensormapCreateOp::build(
            location,
            object,
            maker.base(),
            &boxes,
            &extents,
            &strides,
            &steps,
            i64::from(self.fields.element_type),
            0,
            i64::from(self.fields.swizzle_mode),
            fill,
        ));
        self.rewriter
            .insert(ttng::TensormapFenceproxyAcquireOp::build(location, object));
        let result = maker.result().r#type();
        let made = self.put(ttng::ReinterpretTensorDescOp::build(
            location, result, object,
        ))?;
        maker.result().replace_all_uses(made);
        maker.operation().erase();
        Some(())
    }

    fn constant(&mut self, bits: u32, value: i64) -> Option<Value<'c, 'a>> {
        let context = self.maker.operation().ctx();
        let of = IntegerType::new(context, bits).into();
        let attribute = IntegerAttribute::new(of, value).into();
        self.put(arith::constant(context, attribute, self.location))
    }

    /// Inserts an op before the one that created the descriptor; returns its result.
    fn put(&mut self, op: Operation<'c>) -> Option<Value<'c, 'a>> {
        self.rewriter.insert(op).result_value(0)
    }
}
