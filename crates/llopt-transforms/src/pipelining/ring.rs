//! How a tensor lies in shared memory between its load and its use.

use llopt_dialects::layout::encoding::{Encoding, SharedLinear};
use llopt_dialects::layout::transfer;
use llopt_dialects::tables::types::{MemDesc, MemDescParts, RankedTensor, context_of};
use llopt_dialects::ttg;
use llopt_layout::banks::Access;
use llopt_layout::instruction::InstructionKind;
use llopt_layout::plan::{SwizzleRequest, synthesize};
use llopt_layout::{Dim, LinearLayout};
use llopt_plan::conversion::moved_bits;
use llopt_plan::plans::Plans;
use llopt_plan::shared_access::{self, Buffer};
use llopt_plan::tensor::{TensorType, ValueType};
use melior::ir::{Attribute, Type};

/// Bytes that the begin of a buffer is a multiple of: a row of all banks.
const ROW: u32 = 128;

/// The tensor that a type is.
pub(super) fn tensor(plans: &Plans, of: Type<'_>) -> Option<std::rc::Rc<TensorType>> {
    match plans.types().resolve(of).ok()? {
        ValueType::Tensor(tensor) => Some(tensor),
        ValueType::Scalar(_) => None,
    }
}

/// A layout of shared memory that a tensor may go through.
struct Candidate<'c> {
    encoding: Attribute<'c>,
    /// The bytes that a thread can put there at once.
    at_once: u32,
    /// What it costs a warp to store registers there, and to load them from there.
    store: f32,
    load: f32,
}

/// The layout in shared memory through which a tensor goes from one layout to another for the least, and whether
/// copies that move so many bytes at once can bring it there; `None` if nothing fits.
///
/// Copies need no instruction for their way into shared memory, but all bytes of one have to lie together there.
pub(super) fn between<'c>(
    plans: &Plans,
    from: RankedTensor<'c>,
    to: RankedTensor<'c>,
    copied: Option<u32>,
) -> Option<(Attribute<'c>, bool)> {
    let (stored, loaded) = (tensor(plans, from.r#type())?, tensor(plans, to.r#type())?);
    let vector = Some(InstructionKind::Vector);
    let kinds = [
        None,
        Some(InstructionKind::Matrix),
        Some(InstructionKind::MatrixTransposed),
    ];
    let mut plans_of_memory: Vec<LinearLayout> = Vec::new();
    // As the loads like it, and as it comes.
    let ways = kinds.map(|load| (&loaded, load));
    for (to, load) in ways.into_iter().chain([(&stored, vector)]) {
        let request = SwizzleRequest {
            store: vector,
            load,
        };
        let bits = moved_bits(stored.element);
        let machine = plans.target().machine();
        let plan = synthesize(stored.layout(), to.layout(), bits, &machine, request);
        let memory = plan.ok().filter(|plan| plan.rounds.is_empty());
        plans_of_memory.extend(memory.map(|plan| plan.memory));
    }
    let outs: Vec<Dim> = (0..from.rank()).map(Dim::tensor).collect();
    let candidates = plans_of_memory.into_iter().filter_map(|memory| {
        let memory = memory.transpose_outs(&outs).ok()?;
        let buffer = Buffer {
            layout: &memory,
            element: stored.element,
            max_bits: u32::MAX,
        };
        let target = plans.target();
        let store =
            shared_access::access(&stored, &buffer, Access::Store, vector, 1, target).ok()?;
        let load = shared_access::access(&loaded, &buffer, Access::Load, None, 1, target).ok()?;
        let elements = 1 << store.instruction.registers_log2();
        let at_once = elements * moved_bits(stored.element) / 8;
        let prices = [&store, &load].map(|access| shared_access::price(access, target));
        let encoding = SharedLinear::new(memory, ROW).ok()?;
        Some(Candidate {
            encoding: Encoding::SharedLinear(encoding).to_attribute(context_of(from.r#type())),
            at_once,
            store: prices[0],
            load: prices[1],
        })
    });
    let priced = candidates.map(|candidate| {
        let is_copied = copied.is_some_and(|bytes| candidate.at_once >= bytes);
        let cost = match is_copied {
            true => candidate.load,
            false => candidate.load + candidate.store,
        };
        (cost, candidate.encoding, is_copied)
    });
    let best = priced.min_by(|one, other| one.0.total_cmp(&other.0))?;
    Some((best.1, best.2))
}

/// A buffer for a tensor of this type in that layout.
pub(super) fn slot<'c>(tensor: RankedTensor<'c>, encoding: Attribute<'c>) -> MemDescParts<'c> {
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

/// So many of a buffer, one after the other.
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

/// The bytes that a thread which holds a tensor of this type can put into a buffer at once.
pub(super) fn bytes_at_once(plans: &Plans, from: Type<'_>, slot: &MemDescParts<'_>) -> Option<u32> {
    let tensor = tensor(plans, from)?;
    let encoding = Encoding::from_attribute(slot.encoding).ok()?;
    let layout = encoding
        .linear_layout(&transfer::extents(&slot.shape))
        .ok()?;
    let buffer = Buffer {
        layout: &layout,
        element: tensor.element,
        max_bits: u32::MAX,
    };
    let kind = Some(InstructionKind::Vector);
    let target = plans.target();
    let access = shared_access::access(&tensor, &buffer, Access::Store, kind, 1, target).ok()?;
    let elements = 1 << access.instruction.registers_log2();
    Some(elements * moved_bits(tensor.element) / 8)
}
