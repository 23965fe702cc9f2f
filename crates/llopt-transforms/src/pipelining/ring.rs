//! The layout of a tensor in shared memory between its load and its use.

use llopt_dialects::layout::encoding::{Encoding, SharedLinear};
use llopt_dialects::layout::transfer;
use llopt_dialects::tables::types::{MemDesc, MemDescParts, RankedTensor, context_of};
use llopt_dialects::ttg;
use llopt_layout::LinearLayout;
use llopt_plan::global_access::Groups;
use llopt_plan::plans::Plans;
use llopt_plan::ring::{self, Ring};
use llopt_plan::tensor::{TensorType, ValueType};
use melior::ir::{Attribute, Type, Value, ValueLike};

/// The tensor that a type is.
pub(crate) fn tensor(plans: &Plans, of: Type<'_>) -> Option<std::rc::Rc<TensorType>> {
    match plans.types().resolve(of).ok()? {
        ValueType::Tensor(tensor) => Some(tensor),
        ValueType::Scalar(_) => None,
    }
}

/// Registers of a thread for a tensor.
pub(super) fn words(value: Value<'_, '_>, plans: &Plans) -> u32 {
    tensor(plans, value.r#type()).map_or(0, |of| {
        let bits = of.element.memory_bits() * of.registers() as u32;
        bits.div_ceil(u32::BITS)
    })
}

/// The layout in shared memory through which a tensor goes to registers.
pub(crate) struct Passage<'c> {
    pub(crate) encoding: Attribute<'c>,
    /// Whether copies of groups of registers can bring it there.
    pub(super) is_copied: bool,
    /// The cost, for a warp, of moving it there and to the registers.
    pub(super) cost: f32,
}

/// The layout in shared memory through which a tensor goes from one layout to others for the least; `None` if nothing
/// fits. `brought` are the groups of registers that one access each has brought, if it was loaded; `parts` are the bits
/// by which it is taken in parts ([`Ring::parts`]), and `pairs` says whether it is a factor ([`Ring::pairs`]).
pub(crate) fn between<'c>(
    plans: &Plans,
    from: RankedTensor<'c>,
    to: &[Type<'c>],
    copied: Option<&Groups>,
    brought: Option<&Groups>,
    parts: u32,
    pairs: bool,
) -> Option<Passage<'c>> {
    let stored = tensor(plans, from.r#type())?;
    let loaded = to.iter().map(|to| tensor(plans, *to));
    let loaded = loaded.collect::<Option<Vec<_>>>()?;
    if stored.shape.iter().all(|extent| *extent == 1) {
        // The text of the layout of one element does not say how many dimensions there are.
        return None;
    }
    let ring = Ring {
        stored: &stored,
        copied,
        brought,
        parts,
        pairs,
        target: plans.target(),
    };
    let readers: Vec<&TensorType> = loaded.iter().map(|loaded| &**loaded).collect();
    let buffers = ring.to_readers(&readers)?;
    let encoding = Encoding::SharedLinear(SharedLinear::new(buffers.memory, ring::ROW).ok()?);
    Some(Passage {
        encoding: encoding.to_attribute(context_of(from.r#type())),
        is_copied: buffers.is_copied,
        cost: buffers.cost,
    })
}

/// The cost, for a warp, of reading a buffer of a tensor of this type to registers of other types; `None` if there is no
/// plan.
pub(super) fn read<'c>(
    plans: &Plans,
    from: Type<'c>,
    slot: &MemDescParts<'c>,
    to: &[Type<'c>],
) -> Option<f32> {
    let stored = tensor(plans, from)?;
    let layout = layout_of(slot)?;
    let ring = Ring {
        stored: &stored,
        copied: None,
        brought: None,
        parts: 0,
        pairs: false,
        target: plans.target(),
    };
    let costs = to
        .iter()
        .map(|to| ring.loaded_from(&layout, &*tensor(plans, *to)?));
    costs.sum()
}

/// Where the elements of a buffer are.
fn layout_of(slot: &MemDescParts<'_>) -> Option<LinearLayout> {
    let encoding = Encoding::from_attribute(slot.encoding).ok()?;
    encoding.linear_layout(&transfer::extents(&slot.shape)).ok()
}

/// A buffer for a tensor of this type in that layout.
pub(crate) fn slot<'c>(tensor: RankedTensor<'c>, encoding: Attribute<'c>) -> MemDescParts<'c> {
    let context = context_of(tensor.r#type());
    MemDescParts {
        alloc_shape: tensor.shape(),
        shape: tensor.shape(),
        element: tensor.element(),
        encoding,
        memory_space: ttg::attribute::SHARED_MEMORY.get(context, &[]),
        mutable: true,
    }
}

/// So many buffers, one after the other.
pub(super) fn of_slots<'c>(slot: &MemDescParts<'c>, count: usize) -> Type<'c> {
    let shape = [&[count as i64], &slot.shape[..]].concat();
    MemDesc::get(&MemDescParts {
        alloc_shape: shape.clone(),
        shape,
        element: slot.element,
        encoding: slot.encoding,
        memory_space: slot.memory_space,
        mutable: true,
    })
}

/// Whether copies can write a tensor of this type to a buffer.
pub(super) fn takes_copies(
    plans: &Plans,
    from: Type<'_>,
    slot: &MemDescParts<'_>,
    groups: &Groups,
) -> Option<bool> {
    let tensor = tensor(plans, from)?;
    let layout = layout_of(slot)?;
    let ring = Ring {
        stored: &tensor,
        copied: Some(groups),
        brought: None,
        parts: 0,
        pairs: false,
        target: plans.target(),
    };
    Some(ring.is_copied_to(&layout))
}
