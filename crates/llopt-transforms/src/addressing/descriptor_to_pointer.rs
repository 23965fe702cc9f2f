//! `--triton-rewrite-tensor-descriptor-to-pointer`: accesses through tensor descriptors as accesses through
//! pointers, for targets without a copy unit, and before layouts are chosen.
//!
//! A descriptor that `tt.make_tensor_descriptor` makes is a base pointer, extents and strides. An access to a
//! block is one to the tensor of the pointers of its elements, under the mask of those that are inside. All
//! indices are 64 bits wide, so that no product of them wraps.
//!
//! A descriptor has to be known where it is used. Where it is not, because it is a parameter of a function or control
//! flow hands it on, it is made of its parts there first (`descriptor_parts`); for targets with a copy unit,
//! such descriptors stay, as the unit reads them from memory ([`crate::descriptor_objects`]).

use llopt_dialects::arith::SelectOp;
use llopt_dialects::tables::types::{Pointer, RankedTensor, TensorDesc};
use llopt_dialects::tt;
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{OperationExt, ValueExt, Walk};
use llopt_mlir::pass::{PassOption, PassRun, PassSpec};
use melior::ir::r#type::IntegerType;
use melior::ir::{OperationRef, TypeLike, Value, ValueLike};

use crate::descriptor_parts::{Opaque, decompose};
use crate::tile_addresses::{TileAddresses, Whole};

/// The pass.
pub static REWRITE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["tt", "arith"],
    options: &[PassOption::flag(
        ONLY_MADE,
        "leave parameters, and descriptors that control flow hands on, to the target's copy unit",
    )],
    ..PassSpec::new(
        "triton-rewrite-tensor-descriptor-to-pointer",
        "access blocks of tensors through pointers instead of descriptors",
        run,
    )
};

const ONLY_MADE: &str = "only-made";

/// The descriptors to rewrite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Those that an op makes where they are known.
    Made,
    /// All.
    All,
}

fn run(module: OperationRef<'_, '_>, run: &mut PassRun) -> Result<(), Complaint> {
    let which = match run.flag(ONLY_MADE) {
        true => Which::Made,
        false => Which::All,
    };
    // The report belongs to the op.
    rewrite(module, which).map_err(|opaque| {
        let complaint = Complaint::new(opaque.reason);
        complaint.report_on(opaque.operation).into()
    })
}

/// Rewrites accesses through descriptors.
///
/// # Errors
/// A descriptor that is to be rewritten has no known parts.
pub fn rewrite<'c: 'a, 'a>(
    module: OperationRef<'c, 'a>,
    which: Which,
) -> Result<(), Opaque<'c, 'a>> {
    if which == Which::All {
        decompose(module)?;
    }
    let mut accesses = Vec::new();
    let mut descriptors = Vec::new();
    module.for_each_op(Walk::PreOrder, |op| {
        if descriptor_of(op).is_some() {
            accesses.push(op);
        } else if Tensor::of_result(op).is_some() {
            descriptors.push(op);
        }
    });
    for access in accesses {
        let descriptor = descriptor_of(access).and_then(ValueExt::defining_op);
        if let Some(tensor) = descriptor.and_then(Tensor::of_result) {
            Access::of(access, tensor).rewrite();
        }
    }
    // One that selects is after those from which it does.
    for descriptor in descriptors.into_iter().rev() {
        if !descriptor.has_result_uses() {
            descriptor.erase();
        }
    }
    Ok(())
}

/// A tensor that a descriptor describes.
struct Tensor<'c, 'a> {
    whole: Whole<'c, 'a>,
    padding: Padding<'c, 'a>,
}

/// What is read outside of a tensor.
enum Padding<'c, 'a> {
    Always(tt::PaddingOption),
    /// NaN if a flag is set, otherwise zero.
    NanIf(Value<'c, 'a>),
}

impl<'c: 'a, 'a> Tensor<'c, 'a> {
    /// The tensor of the descriptor that is the result of an op.
    fn of_result(op: OperationRef<'c, 'a>) -> Option<Self> {
        if let Some(maker) = tt::MakeTensorDescOp::of(op) {
            return Some(Self::of(maker));
        }
        // A padding that is known when the program runs selects one of two descriptors of a tensor.
        let select = SelectOp::of(op)?;
        let (x, y) = (select.true_value(), select.false_value());
        let x = Self::of(tt::MakeTensorDescOp::defining(x)?);
        let y = Self::of(tt::MakeTensorDescOp::defining(y)?);
        use Padding::{Always, NanIf};
        use tt::PaddingOption::{Nan, Zero};
        let padding = match (x.padding, y.padding) {
            (Always(Nan), Always(Zero)) => NanIf(select.condition()),
            _ => return None,
        };
        (x.whole == y.whole).then_some(Self {
            whole: x.whole,
            padding,
        })
    }

    fn of(maker: tt::MakeTensorDescOp<'c, 'a>) -> Self {
        let whole = Whole {
            base: maker.base(),
            extents: maker.shape(),
            strides: maker.strides(),
        };
        let padding = Padding::Always(maker.padding());
        Self { whole, padding }
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
    tensor: Tensor<'c, 'a>,
    tiles: TileAddresses<'c, 'a>,
}

impl<'c: 'a, 'a> Access<'c, 'a> {
    fn of(op: OperationRef<'c, 'a>, tensor: Tensor<'c, 'a>) -> Self {
        Self {
            op,
            tensor,
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
        let (pointers, mask) =
            self.tiles
                .pointers(&self.tensor.whole, indices, rows, &shape, |_| true)?;
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
        let shape = tensor.shape();
        let outside = match self.tensor.padding {
            Padding::NanIf(is_nan) if element.is_float() => {
                self.tiles.outside_if_nan(is_nan, element, &shape)?
            }
            Padding::NanIf(_) => self
                .tiles
                .outside(tt::PaddingOption::Zero, element, &shape)?,
            Padding::Always(padding) => self.tiles.outside(padding, element, &shape)?,
        };
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
