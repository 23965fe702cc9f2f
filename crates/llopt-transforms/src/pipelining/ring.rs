//! How a tensor lies in shared memory between its load and its use.

use llopt_dialects::layout::encoding::{Encoding, SharedLinear};
use llopt_dialects::layout::transfer;
use llopt_dialects::tables::types::{MemDesc, MemDescParts, RankedTensor, context_of};
use llopt_dialects::ttg;
use llopt_layout::banks::Access;
use llopt_layout::instruction::InstructionKind;
use llopt_layout::plan::{Chunk, SwizzleRequest, synthesize};
use llopt_layout::{Dim, LinearLayout};
use llopt_plan::conversion::moved_bits;
use llopt_plan::copy_sectors::Copies;
use llopt_plan::global_access::Groups;
use llopt_plan::plans::Plans;
use llopt_plan::shared_access::{self, Buffer};
use llopt_plan::tensor::{TensorType, ValueType};
use melior::ir::{Attribute, Type};

/// Bytes that the begin of a buffer is a multiple of: a row of all banks.
const ROW: u32 = 128;
/// Bytes of the widest asynchronous copy.
const WIDEST_COPY: u32 = 16;

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
    /// Whether copies can bring it there.
    is_copied: bool,
    /// What it costs a warp that copies ask for sectors more than once, to store registers there, and to load them from
    /// there.
    copy: f32,
    store: f32,
    load: f32,
}

/// The layout in shared memory through which a tensor goes from one layout to another for the least, and whether
/// copies of groups of registers can bring it there; `None` if nothing fits.
///
/// Copies need no instruction for their way into shared memory, but all bytes of one have to lie together there.
pub(super) fn between<'c>(
    plans: &Plans,
    from: RankedTensor<'c>,
    to: RankedTensor<'c>,
    copied: Option<&Groups>,
) -> Option<(Attribute<'c>, bool)> {
    let (stored, loaded) = (tensor(plans, from.r#type())?, tensor(plans, to.r#type())?);
    let vector = Some(InstructionKind::Vector);
    let kinds = [
        None,
        Some(InstructionKind::Matrix),
        Some(InstructionKind::MatrixTransposed),
    ];
    let outs: Vec<Dim> = (0..from.rank()).map(Dim::tensor).collect();
    let mut plans_of_memory: Vec<LinearLayout> = Vec::new();
    let bits = moved_bits(stored.element);
    // As the loads like it, as copies can bring it, and as it comes.
    let free = Chunk::default();
    let as_loaded = kinds.map(|load| (&loaded, load, free));
    let chunk = copied.and_then(|groups| {
        let group = groups.groups.first()?;
        let first = stored.element_in(*group.first()?);
        let widest = (WIDEST_COPY * 8 / bits).min(group.len() as u32).ilog2();
        let vectors = (0..widest).map(|bit| stored.element_in(group[1 << bit]) ^ first);
        Some(vectors.collect::<Chunk>())
    });
    let copies = copied.map(|groups| Copies {
        tensor: &stored,
        groups,
        line: ROW,
    });
    let own = stored.layout();
    let by_line = copies.and_then(|copies| copies.in_lines());
    let as_copied = [Some(own), by_line.as_ref()].into_iter().flatten();
    let as_copied = chunk.into_iter().flat_map(|chunk| {
        let from = as_copied.clone();
        from.flat_map(move |from| kinds.map(|load| (from, load, chunk)))
    });
    let as_copied = as_copied.map(|(from, load, chunk)| (from, &loaded, load, chunk));
    let as_loaded = as_loaded.map(|(to, load, chunk)| (own, to, load, chunk));
    let as_it_comes = [(own, &stored, vector, free)];
    for (from, to, load, store_chunk) in as_loaded.into_iter().chain(as_copied).chain(as_it_comes) {
        let request = SwizzleRequest {
            store: vector,
            load,
            store_chunk,
        };
        let machine = plans.target().machine();
        let plan = synthesize(from, to.layout(), bits, &machine, request);
        let plan = plan.ok().filter(|plan| plan.rounds.is_empty());
        let memory = plan.and_then(|plan| plan.memory.transpose_outs(&outs).ok());
        plans_of_memory.extend(memory.filter(|memory| !plans_of_memory.contains(memory)));
    }
    // What conflicts does not depend on what lies in a line, but how often copies ask for a sector does.
    let lined: Vec<LinearLayout> = copies
        .iter()
        .flat_map(|copies| {
            plans_of_memory
                .iter()
                .map(|memory| copies.with_lines(memory))
        })
        .collect();
    let candidates = lined
        .into_iter()
        .chain(plans_of_memory)
        .filter_map(|memory| {
            let buffer = Buffer {
                layout: &memory,
                element: stored.element,
                max_bits: u32::MAX,
            };
            let target = plans.target();
            let store =
                shared_access::access(&stored, &buffer, Access::Store, vector, 1, target).ok()?;
            let load =
                shared_access::access(&loaded, &buffer, Access::Load, None, 1, target).ok()?;
            let is_copied =
                copied.is_some_and(|groups| copies_fit(plans, &stored, &memory, groups));
            let prices = [&store, &load].map(|access| shared_access::price(access, target));
            let again = copies.map_or(0, |copies| copies.asked_again(&memory, target));
            let encoding = SharedLinear::new(memory, ROW).ok()?;
            Some(Candidate {
                encoding: Encoding::SharedLinear(encoding).to_attribute(context_of(from.r#type())),
                is_copied,
                copy: again as f32 * target.global_costs().sector,
                store: prices[0],
                load: prices[1],
            })
        });
    // What comes through registers is waited for once more.
    let waited = copied.map_or(0.0, |groups| {
        groups.groups.len() as f32 * plans.target().global_costs().wait
    });
    let priced = candidates.map(|candidate| {
        let cost = match candidate.is_copied {
            true => candidate.load + candidate.copy,
            false => candidate.load + candidate.store + waited,
        };
        (cost, candidate.encoding, candidate.is_copied)
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

/// Whether copies bring a tensor of this type to a buffer.
pub(super) fn takes_copies(
    plans: &Plans,
    from: Type<'_>,
    slot: &MemDescParts<'_>,
    groups: &Groups,
) -> Option<bool> {
    let tensor = tensor(plans, from)?;
    let encoding = Encoding::from_attribute(slot.encoding).ok()?;
    let layout = encoding
        .linear_layout(&transfer::extents(&slot.shape))
        .ok()?;
    Some(copies_fit(plans, &tensor, &layout, groups))
}

/// Whether copies bring a tensor to memory: what each of them moves lies together there as it does where it comes from,
/// where groups of registers lie together.
fn copies_fit(plans: &Plans, tensor: &TensorType, memory: &LinearLayout, groups: &Groups) -> bool {
    let bits = moved_bits(tensor.element);
    let bytes = (groups.width as u32 * bits / 8).min(WIDEST_COPY);
    let buffer = Buffer {
        layout: memory,
        element: tensor.element,
        max_bits: bytes * 8,
    };
    let vector = Some(InstructionKind::Vector);
    let target = plans.target();
    let Ok(access) = shared_access::access(tensor, &buffer, Access::Store, vector, 1, target)
    else {
        return false;
    };
    let slots = 1u32 << access.instruction.registers_log2();
    let moves_all = slots * bits / 8 == bytes;
    moves_all
        && (0..access.instructions).all(|repeat| {
            let piece: Vec<usize> = (0..slots)
                .map(|slot| access.register(repeat, slot) as usize)
                .collect();
            let mut parts = groups
                .groups
                .iter()
                .flat_map(|group| group.windows(piece.len()));
            parts.any(|part| part == piece)
        })
}
