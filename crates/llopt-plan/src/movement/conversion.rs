//! How elements move from one layout to another: the plan of `llopt-layout` that an op's code follows, and the
//! memory that it takes.

use llopt_dialects::tt::{DotOp, TransOp};
use llopt_dialects::ttg::ConvertLayoutOp;
use llopt_dialects::ttng::WarpGroupDotOp;
use llopt_layout::Dim;
use llopt_layout::f2::Echelon;
use llopt_layout::instruction::InstructionKind;
use llopt_layout::plan::{
    Machine, Movement, Plan, Scope, SharedAccess, SharedPlan, SwizzleRequest, cheapest,
    cheapest_with, plan, plan_as,
};
use llopt_mlir::ir::ValueExt;
use llopt_target::Target;
use melior::ir::{OperationRef, Value};

use crate::element::Element;
use crate::operand_words;
use crate::product::{MatrixProduct, is_by_threads};
use crate::request::conversion_request;
use crate::tensor::TensorType;
use crate::types::Types;
use crate::warp_parts::WarpParts;
use crate::words::has_free_words;

/// The share of its permutes that a conversion is charged for where the words of its operand and result may have any
/// order. It needs few: only where it does not keep together what the other conversions keep together.
const FREE: f32 = 0.25;

/// The kinds of loads by which factors are read otherwise than by the cheapest ones.
const LOADS: [InstructionKind; 3] = [
    InstructionKind::Matrix,
    InstructionKind::MatrixTransposed,
    InstructionKind::Vector,
];

/// The bits of an element on its way: whole bytes.
pub fn moved_bits(element: Element) -> u32 {
    element.memory_bits().next_power_of_two()
}

/// The plan of the conversion that `op` is or needs: the cheapest, or that of the forced kind. Where the result is a
/// factor of a product of matrix units, words that have to be moved to their operands count as well.
///
/// # Errors
/// There is no plan, or none of the forced kind; the text says which.
pub fn plan_conversion(
    op: OperationRef<'_, '_>,
    from: &TensorType,
    to: &TensorType,
    is_factor: bool,
    target: Target,
) -> Result<Plan, String> {
    let (layouts, bits) = ((from.layout(), to.layout()), moved_bits(from.element));
    let machine = machine(op, from, target);
    match conversion_request(op)? {
        None => {
            let found = cheapest(layouts.0, layouts.1, bits, &machine);
            let found = found.map_err(|error| error.to_string())?;
            if !is_factor || pairs(&found, target) == 0.0 {
                return Ok(found);
            }
            let others = LOADS.into_iter().filter_map(|load| {
                let request = SwizzleRequest {
                    load: Some(load),
                    ..SwizzleRequest::default()
                };
                cheapest_with(layouts.0, layouts.1, bits, &machine, request).ok()
            });
            let all = others.chain([found.clone()]);
            let whole = |plan: &Plan| plan.cost + pairs(plan, target);
            let best = all.min_by(|one, other| whole(one).total_cmp(&whole(other)));
            Ok(best.unwrap_or(found))
        }
        Some(request) => plan_as(layouts.0, layouts.1, bits, &machine, request)
            .map_err(|error| format!("the plan '{request}' is not possible here: {error}")),
    }
}

/// What it takes a warp to bring together the words that the loads of a plan have brought apart
/// ([`operand_words::price_of_pairs`]).
fn pairs(plan: &Plan, target: Target) -> f32 {
    match &plan.movement {
        Movement::Shared(shared) => {
            let rounds = 1u32 << shared.rounds.len();
            rounds as f32 * operand_words::price_of_pairs(&shared.load, target)
        }
        _ => 0.0,
    }
}

/// Whether a conversion makes factors of products of matrix units, and nothing else. A transposition in between renames
/// registers only.
pub(crate) fn makes_factor(op: OperationRef<'_, '_>, types: &Types, target: Target) -> bool {
    ConvertLayoutOp::of(op).is_some_and(|of| is_factor(of.result(), types, target))
}

fn is_factor<'c: 'a, 'a>(value: Value<'c, 'a>, types: &Types, target: Target) -> bool {
    let takes = |user: OperationRef<'c, 'a>| {
        if let Some(dot) = DotOp::of(user) {
            return dot.c() != value && !is_by_threads(MatrixProduct::Plain(dot), types, target);
        }
        WarpGroupDotOp::of(user).is_some_and(|dot| dot.a() == value)
            || TransOp::of(user).is_some_and(|trans| is_factor(trans.result(), types, target))
    };
    value.users().next().is_some() && value.users().all(takes)
}

/// What the planner knows of the target, with the prices of the conversion that `op` is or needs.
fn machine(op: OperationRef<'_, '_>, from: &TensorType, target: Target) -> Machine<'static> {
    let mut machine = target.machine();
    if has_free_words(op, from.element, target) {
        machine.costs.permute *= FREE;
    }
    machine
}

/// The feasible plans of a conversion other than the one that is followed, cheapest first.
pub fn other_plans(
    op: OperationRef<'_, '_>,
    from: &TensorType,
    to: &TensorType,
    target: Target,
    followed: &Plan,
) -> Vec<Plan> {
    let bits = moved_bits(from.element);
    let mut all =
        plan(from.layout(), to.layout(), bits, &machine(op, from, target)).unwrap_or_default();
    all.retain(|plan| plan != followed);
    all
}

/// The bits of the warp's number that only repeat data: warps that differ in them store the same elements.
///
/// Where each warp reads what it has written itself, such warps get memory of their own: otherwise one could read
/// while another writes, even if it writes the same bits.
pub fn repeating_warps(from: &TensorType) -> Vec<u32> {
    let layout = from.layout();
    let mut held = Echelon::of(layout.flat_bases_of(Dim::REGISTER));
    for lane in layout.flat_bases_of(Dim::LANE) {
        held.insert(*lane);
    }
    let warps = layout.flat_bases_of(Dim::WARP);
    (0..warps.len() as u32)
        .filter(|bit| held.insert(warps[*bit as usize]).is_some())
        .collect()
}

/// The bytes of shared memory that a plan of a conversion from `from` needs.
pub fn shared_bytes(from: &TensorType, plan: &SharedPlan) -> u64 {
    let bytes = u64::from(plan.bytes);
    match plan.scope {
        Scope::Warp => bytes << repeating_warps(from).len(),
        Scope::Block | Scope::Cluster => bytes,
    }
}

/// The bytes that each warp touches where it reads only what it has written itself.
#[must_use]
pub fn warp_parts(from: &TensorType, plan: &SharedPlan) -> Option<WarpParts> {
    let bytes_log2 = (moved_bits(from.element) / 8).trailing_zeros();
    let bases = |access: &SharedAccess, dim: Dim| -> Vec<u32> {
        let offset_bits = access.address.out_dim_size_log2(Dim::OFFSET);
        let offset = |basis: &u32| basis & (((1u64 << offset_bits) - 1) as u32);
        let all = access.address.flat_bases_of(dim).iter();
        all.map(|basis| offset(basis) << bytes_log2).collect()
    };
    let mut inside: Vec<u32> = Vec::new();
    for access in [&plan.store, &plan.load] {
        let chunk = bytes_log2 + access.instruction.chunk.len() as u32;
        inside.extend((0..chunk).map(|bit| 1 << bit));
        inside.extend(bases(access, Dim::LANE));
        inside.extend(bases(access, SharedAccess::REPEAT));
    }
    let (mut warps, read) = (bases(&plan.store, Dim::WARP), bases(&plan.load, Dim::WARP));
    let (_, warp_bits) = from.thread_bits();
    warps.resize(warp_bits as usize, 0);
    // What a warp reads is what it has written.
    inside.extend(
        warps
            .iter()
            .zip(&read)
            .map(|(written, read)| written ^ read),
    );
    let apart = plan.bytes.next_power_of_two();
    for (i, bit) in repeating_warps(from).into_iter().enumerate() {
        warps[bit as usize] ^= apart.checked_shl(i as u32)?;
    }
    WarpParts::divided(inside, &warps)
}
