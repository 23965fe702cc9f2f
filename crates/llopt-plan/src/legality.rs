//! Which layouts the code for an op supports, for ops that do not support every layout.

use llopt_dialects::{tables::access, tt};
use llopt_layout::{Dim, LinearLayout};
use melior::ir::{OperationRef, ValueLike};

use crate::plans::Plans;
use crate::reduction::Axis;
use crate::tensor::{TensorType, ValueType};

/// A layout for all operands and results of an op whose code does not support their present layout; `None` if no
/// other layout is needed.
///
/// Ensures: the op has code for the layout.
pub fn wanted_layout(op: OperationRef<'_, '_>, plans: &Plans) -> Option<LinearLayout> {
    let scan = tt::ScanOp::of(op)?;
    let axis = usize::try_from(scan.axis()).ok()?;
    let of = access::operand_at(op, 0).r#type();
    let ValueType::Tensor(tensor) = plans.types().resolve(of).ok()? else {
        return None;
    };
    if plans.scan(&tensor, axis, scan.reverse()).is_some() {
        return None;
    }
    in_order(&tensor, axis)
}

/// The layout in which coordinates count along the axis first and then along the others, through registers, lanes and
/// warps; the lowest bits belong to registers, namely those for which lanes and warps have no room. Blocks keep their
/// split of the other dimensions; in place of a part of the axis they get another bit, or hold copies.
fn in_order(tensor: &TensorType, axis: usize) -> Option<LinearLayout> {
    let layout = tensor.layout();
    let rank = tensor.shape.len();
    let others = (0..rank).rev().filter(|&dim| dim != axis);
    let unit = |dim: usize, bit: u32| {
        let mut vector = vec![0; rank];
        vector[dim] = 1 << bit;
        vector
    };
    let bits_of = |dim: usize| (0..tensor.shape[dim].trailing_zeros()).map(move |bit| (dim, bit));
    let mut free: Vec<(usize, u32)> = others.flat_map(bits_of).collect();
    let mut blocks = Vec::new();
    for basis in tensor.block_bases() {
        let kept = free.iter().position(|&(dim, bit)| {
            let (low, _) = tensor.bits_of_dim(dim);
            *basis == 1 << (low + bit)
        });
        blocks.push(kept.map(|at| free.remove(at)));
    }
    let splits_axis = |basis: &u32| Axis::of(tensor, axis).along(*basis) != 0;
    let blocks: Vec<Vec<u32>> = blocks
        .into_iter()
        .zip(tensor.block_bases())
        .map(|(kept, basis)| {
            let given = kept.or_else(|| if splits_axis(basis) { free.pop() } else { None });
            given.map_or_else(|| vec![0; rank], |(dim, bit)| unit(dim, bit))
        })
        .collect();

    let lanes = layout.in_dim_size_log2(Dim::LANE) as usize;
    let warps = layout.in_dim_size_log2(Dim::WARP) as usize;
    let bits: Vec<Vec<u32>> = bits_of(axis)
        .chain(free)
        .map(|(dim, bit)| unit(dim, bit))
        .collect();
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
            (Dim::BLOCK, &blocks[..]),
        ],
        &outs,
    )
    .ok()
}
