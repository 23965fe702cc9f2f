//! Which layouts the code for an op can work on, where that is not all of them.

use llopt_dialects::{access, tt};
use llopt_layout::{Dim, LinearLayout};
use melior::ir::{OperationRef, ValueLike};

use crate::scan::ScanPlan;
use crate::tensor::{TensorType, ValueType};
use crate::types::Types;

/// A layout for all operands and results of an op, if it has code, but none for the layout that they have.
///
/// Ensures: the op has code for the layout.
pub fn wanted_layout(op: OperationRef<'_, '_>) -> Option<LinearLayout> {
    let scan = tt::ScanOp::of(op)?;
    let axis = usize::try_from(scan.axis()).ok()?;
    let of = access::operand_at(op, 0).r#type();
    let ValueType::Tensor(tensor) = Types::default().resolve(of).ok()? else {
        return None;
    };
    if ScanPlan::new(&tensor, axis, scan.reverse()).is_some() {
        return None;
    }
    in_order(&tensor, axis)
}

/// The layout in which coordinates count along the axis first and then along the others, through registers,
/// lanes and warps; the bits that lanes and warps have no room for are registers', the lowest ones.
fn in_order(tensor: &TensorType, axis: usize) -> Option<LinearLayout> {
    let layout = tensor.layout();
    if layout.in_dim_size_log2(Dim::BLOCK) != 0 {
        return None;
    }
    let rank = tensor.shape.len();
    let others = (0..rank).rev().filter(|&dim| dim != axis);
    let mut bits = Vec::new();
    for dim in std::iter::once(axis).chain(others) {
        for bit in 0..tensor.shape[dim].trailing_zeros() {
            let mut vector = vec![0; rank];
            vector[dim] = 1 << bit;
            bits.push(vector);
        }
    }
    let lanes = layout.in_dim_size_log2(Dim::LANE) as usize;
    let warps = layout.in_dim_size_log2(Dim::WARP) as usize;
    let registers = bits.len().saturating_sub(lanes + warps);
    let mut rest = bits.into_iter();
    let mut take = |count: usize| -> Vec<Vec<u32>> {
        let mut taken: Vec<Vec<u32>> = rest.by_ref().take(count).collect();
        taken.resize(count, vec![0; rank]);
        taken
    };
    let (register, lane, warp) = (take(registers), take(lanes), take(warps));
    let outs: Vec<(Dim, u32)> = (0..rank)
        .map(|dim| (Dim::tensor(dim), tensor.shape[dim]))
        .collect();
    LinearLayout::from_bases(
        &[
            (Dim::REGISTER, &register[..]),
            (Dim::LANE, &lane[..]),
            (Dim::WARP, &warp[..]),
            (Dim::BLOCK, &[]),
        ],
        &outs,
    )
    .ok()
}
