//! How much shared memory the code for an op uses while it executes.
//!
//! A pass assigns memory before code is emitted, and asks here how much; the attribute `allocation.offset` of the op
//! holds the offset. Emission must use exactly the memory that was assigned, so both follow the same plans.

use std::rc::Rc;

use llopt_dialects::meaning::facts::{OpFacts, ScratchUse};
use llopt_dialects::tables::module::{cluster_split, num_ctas};
use llopt_dialects::{amdg, tables::access, tt};
use llopt_layout::plan::{Movement, Scope};
use llopt_mlir::ir::ValueExt;
use melior::ir::operation::OperationLike;
use melior::ir::{OperationRef, Value, ValueLike};

use crate::conversion::{shared_bytes, warp_parts};
use crate::element::Element;
use crate::gather::GatherPlan;
use crate::plans::Plans;
use crate::reduction::combination::Combination;
use crate::reduction::operand_bytes;
use crate::regroup::Passage;
use crate::tensor::{TensorType, ValueType};
use crate::upcast::scales_of;
use crate::warp_parts::WarpParts;

/// Which warps read the data written to scratch memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readers {
    /// Each warp reads only what it has written itself.
    Warp {
        /// Which bytes each warp touches; `None` where that has no simple form.
        parts: Option<WarpParts>,
    },
    /// The warps of the block, after a barrier.
    Block,
    /// The warps of all blocks of the cluster, with a cluster barrier before and another after they read.
    ClusterReads,
    /// The warps of the block; but all blocks of the cluster write, with a cluster barrier before and another after.
    ClusterWrites,
}

/// Scratch memory of one op.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scratch {
    /// Bytes; not zero.
    pub bytes: u64,
    /// Alignment in bytes.
    pub alignment: u64,
    /// Who reads it.
    pub readers: Readers,
}

/// The alignment of data that vectors read: that of the widest access.
const VECTOR_ALIGNMENT: u64 = 16;

/// Bytes in which a captured value is passed to warp partitions, and their alignment.
pub const CAPTURE_BYTES: u64 = 8;

/// Bytes of shared memory in which a descriptor object is assembled.
const DESCRIPTOR_SCRATCH: u64 = 128;

/// The scratch memory that the code for an op uses; `None` for an op that needs none.
///
/// An op without emission needs none either; it is emission that reports the op.
pub fn scratch(op: OperationRef<'_, '_>, plans: &Plans) -> Option<Scratch> {
    match OpFacts::of(op).scratch {
        ScratchUse::None => None,
        ScratchUse::Update => of_atomic(op, plans),
        ScratchUse::Conversion => of_conversion(op, plans),
        ScratchUse::Scales => of_scales(amdg::UpcastMXFPOp::of(op)?, plans),
        ScratchUse::Reduction => of_reduction(tt::ReduceOp::of(op)?, plans),
        ScratchUse::Scan => of_scan(tt::ScanOp::of(op)?, plans),
        ScratchUse::Gather => of_gather(tt::GatherOp::of(op)?, plans),
        ScratchUse::Histogram => {
            let to = tensor(plans, tt::HistogramOp::of(op)?.result())?;
            Some(Scratch {
                bytes: histogram_bytes(&to),
                alignment: VECTOR_ALIGNMENT,
                readers: Readers::Block,
            })
        }
        ScratchUse::Captures => {
            // The values that the kernel's warps hand to those of the partitions.
            let captured = op.operand_count() as u64;
            (captured > 0).then_some(Scratch {
                bytes: captured * CAPTURE_BYTES,
                alignment: CAPTURE_BYTES,
                readers: Readers::Block,
            })
        }
        // One warp does all the work.
        ScratchUse::TensorMap => Some(Scratch {
            bytes: DESCRIPTOR_SCRATCH,
            alignment: DESCRIPTOR_SCRATCH,
            readers: Readers::Warp {
                parts: Some(WarpParts::First),
            },
        }),
        ScratchUse::Regrouping => of_regrouping(op, plans),
        ScratchUse::ClusterSum => {
            let from = tensor(plans, access::operand_at(op, 0))?;
            let to = tensor(plans, access::result_at(op, 0))?;
            let plan = plans.cluster_sum(&from, &to, cluster_split(op)).ok()?;
            Some(Scratch {
                bytes: u64::from(plan.bytes),
                alignment: VECTOR_ALIGNMENT,
                readers: Readers::ClusterReads,
            })
        }
    }
}

fn of_scales(upcast: amdg::UpcastMXFPOp<'_, '_>, plans: &Plans) -> Option<Scratch> {
    let k = amdg::upcast_summed_dimension(upcast)?;
    let from = tensor(plans, upcast.scale())?;
    let to = scales_of(&*tensor(plans, upcast.result())?, k, &from).ok()?;
    of_movement(upcast.operation(), &from, &to, plans)
}

fn of_reduction(reduce: tt::ReduceOp<'_, '_>, plans: &Plans) -> Option<Scratch> {
    let axis = usize::try_from(reduce.axis()).ok()?;
    let plan = plans.reduction(&*tensor(plans, *reduce.srcs().first()?)?, axis);
    let readers = readers_of(&plan.exchanges);
    let elements = plan.scratch_elements(&Combination::of(reduce.combine_op()));
    of_partial_results(reduce.operation(), plans, elements, readers)
}

fn of_scan(scan: tt::ScanOp<'_, '_>, plans: &Plans) -> Option<Scratch> {
    let axis = usize::try_from(scan.axis()).ok()?;
    let plan = plans.scan(
        &*tensor(plans, *scan.srcs().first()?)?,
        axis,
        scan.reverse(),
    )?;
    let elements = plan.scratch_elements();
    of_partial_results(scan.operation(), plans, elements, Readers::Block)
}

fn of_gather(gather: tt::GatherOp<'_, '_>, plans: &Plans) -> Option<Scratch> {
    let axis = usize::try_from(gather.axis()).ok()?;
    let (from, to) = (
        tensor(plans, gather.src())?,
        tensor(plans, gather.indices())?,
    );
    let chosen = plans.gather(gather.operation(), &from, &to, axis).ok()?;
    match &chosen.plan {
        GatherPlan::Warp(_) => None,
        GatherPlan::Shared(plan) => Some(Scratch {
            bytes: u64::from(plan.bytes),
            alignment: VECTOR_ALIGNMENT,
            readers: match plan.scope {
                Scope::Warp => Readers::Warp {
                    parts: plan.warp_parts(&from),
                },
                Scope::Block => Readers::Block,
                Scope::Cluster => Readers::ClusterReads,
            },
        }),
    }
}

fn tensor(plans: &Plans, value: Value<'_, '_>) -> Option<Rc<TensorType>> {
    match plans.types().resolve(value.r#type()).ok()? {
        ValueType::Tensor(tensor) => Some(tensor),
        ValueType::Scalar(_) => None,
    }
}

fn of_conversion(op: OperationRef<'_, '_>, plans: &Plans) -> Option<Scratch> {
    let from = tensor(plans, access::operand_at(op, 0))?;
    let to = tensor(plans, access::result_at(op, 0))?;
    of_movement(op, &from, &to, plans)
}

/// Ops that renumber elements and then convert to the layout of the result.
fn of_regrouping(op: OperationRef<'_, '_>, plans: &Plans) -> Option<Scratch> {
    let from = tensor(plans, access::operand_at(op, 0))?;
    let to = tensor(plans, access::result_at(op, 0))?;
    let passage = Passage::of(op, &from, &to).ok()??;
    of_movement(op, &passage.from, &passage.to, plans)
}

fn of_movement(
    op: OperationRef<'_, '_>,
    from: &TensorType,
    to: &TensorType,
    plans: &Plans,
) -> Option<Scratch> {
    if from.rename_to(to, |element| element).is_some() {
        return None;
    }
    let plan = plans.conversion(op, from, to).ok()?;
    let Movement::Shared(shared) = &plan.movement else {
        return None;
    };
    Some(Scratch {
        bytes: shared_bytes(from, shared),
        alignment: VECTOR_ALIGNMENT,
        readers: match shared.scope {
            Scope::Warp => Readers::Warp {
                parts: warp_parts(from, shared),
            },
            Scope::Block => Readers::Block,
            Scope::Cluster => Readers::ClusterReads,
        },
    })
}

/// The readers of data that are written to the blocks at these distances.
fn readers_of(distances: &[u32]) -> Readers {
    match distances {
        [] => Readers::Block,
        _ => Readers::ClusterWrites,
    }
}

/// Partial results of each operand, one operand after the other.
fn of_partial_results(
    op: OperationRef<'_, '_>,
    plans: &Plans,
    elements: u32,
    readers: Readers,
) -> Option<Scratch> {
    let mut bytes = 0;
    for i in 0..op.operand_count() {
        let tensor = tensor(plans, access::operand_at(op, i))?;
        bytes += u64::from(operand_bytes(elements, tensor.element));
    }
    (bytes > 0).then_some(Scratch {
        bytes,
        alignment: VECTOR_ALIGNMENT,
        readers,
    })
}

/// An atomic op is done once for each element; threads that hold copies of the element read the
/// old value from shared memory, where elements lie by their row-major number.
fn of_atomic(op: OperationRef<'_, '_>, plans: &Plans) -> Option<Scratch> {
    let result = access::result_at(op, 0);
    if !result.has_uses() {
        return None;
    }
    let of = plans.types().resolve(result.r#type()).ok()?;
    let elements = match &of {
        ValueType::Scalar(_) => 1,
        ValueType::Tensor(tensor) => {
            if tensor.free_threads() == 0 && tensor.free_blocks() == 0 {
                return None;
            }
            tensor
                .shape
                .iter()
                .map(|&extent| u64::from(extent))
                .product()
        }
    };
    let bytes = u64::from(of.element().memory_bits() / 8);
    Some(Scratch {
        bytes: elements * bytes,
        alignment: bytes,
        readers: readers_of(&of.block_copies(num_ctas(op).max(1))),
    })
}

/// The bytes of the counters of a histogram.
fn histogram_bytes(to: &TensorType) -> u64 {
    let elements: u64 = to.shape.iter().map(|&extent| u64::from(extent)).product();
    elements * u64::from(Element::memory_bits(to.element) / 8)
}
