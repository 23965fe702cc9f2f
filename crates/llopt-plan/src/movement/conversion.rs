//! How elements move from one layout to another: the plan of `llopt-layout` that an op's code follows, and the
//! memory that it takes.

use llopt_layout::Dim;
use llopt_layout::f2::Echelon;
use llopt_layout::plan::{Machine, Plan, Scope, SharedAccess, SharedPlan, cheapest, plan, plan_as};
use llopt_target::Target;
use melior::ir::OperationRef;

use crate::element::Element;
use crate::request::conversion_request;
use crate::tensor::TensorType;
use crate::warp_parts::WarpParts;
use crate::words::has_free_words;

/// The share of its permutes that a conversion is charged for where the words of its operand and result may have any
/// order. It needs few: only where it does not keep together what the other conversions keep together.
const FREE: f32 = 0.25;

/// The bits of an element on its way: whole bytes.
pub fn moved_bits(element: Element) -> u32 {
    element.memory_bits().next_power_of_two()
}

/// The plan of the conversion that `op` is or needs: the cheapest, or that of the forced kind.
///
/// # Errors
/// There is no plan, or none of the forced kind; the text says which.
pub fn plan_conversion(
    op: OperationRef<'_, '_>,
    from: &TensorType,
    to: &TensorType,
    target: Target,
) -> Result<Plan, String> {
    let (layouts, bits) = ((from.layout(), to.layout()), moved_bits(from.element));
    let machine = machine(op, from, target);
    match conversion_request(op)? {
        None => cheapest(layouts.0, layouts.1, bits, &machine).map_err(|error| error.to_string()),
        Some(request) => plan_as(layouts.0, layouts.1, bits, &machine, request)
            .map_err(|error| format!("the plan '{request}' is not possible here: {error}")),
    }
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
