//! Layout transfer: the layout of a result from that of an operand, and back, such that no
//! element moves.
//!
//! Every function works in two steps. The linear-layout algebra says what the result's layout *is*, for every
//! encoding alike. Then a *candidate* in a short attribute form (a blocked layout for a blocked one, a slice for a
//! reduction) is guessed and kept only if its linear layout is the right one; otherwise the result is `#ttg.linear`
//! or `#ttg.shared_linear`. The guess can therefore be simple: a wrong one costs a longer name, never a wrong layout.
//!
//! Worked example: `reshape` of 32x4 with `sizePerThread = [4, 4]` to 128. The basis vectors of
//! the registers, (0,1) (0,2) (1,0) (2,0), become 1 2 4 8 in row-major order; that is the
//! blocked layout with `sizePerThread = [16]`, so the result stays blocked.

use crate::layout::encoding::{
    Blocked, CgaLayout, DotOperand, Encoding, EncodingError, Linear, PaddedShared, SharedLinear,
    Slice, SwizzledShared,
};
use llopt_layout::f2::Echelon;
use llopt_layout::{Dim, LayoutError, LinearLayout, out_bit};

/// Why a layout cannot be transferred.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// The encoding stands for no layout on the shape.
    #[error(transparent)]
    Encoding(#[from] EncodingError),
    /// The layout has no counterpart on the other side of the operation.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// An axis beyond the rank.
    #[error("axis {axis} is out of range for rank {rank}")]
    Axis {
        /// The axis.
        axis: i64,
        /// The rank.
        rank: usize,
    },
    /// A list that is not a permutation.
    #[error("order {order:?} is no permutation of the {rank} dimensions")]
    Order {
        /// The order.
        order: Vec<i32>,
        /// The rank.
        rank: usize,
    },
    /// An axis whose two halves are not in one thread.
    #[error("neighbours along axis {axis} are not in the registers of one thread")]
    NotInRegisters {
        /// The axis.
        axis: usize,
    },
    /// The operation does not support layouts of this kind.
    #[error("`{encoding}` is {problem}")]
    Kind {
        /// The encoding's name.
        encoding: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
}

/// The extents of a shape, as layouts take them.
pub fn extents(shape: &[i64]) -> Vec<u64> {
    // A negative extent is replaced by one that no layout can have.
    shape
        .iter()
        .map(|extent| u64::try_from(*extent).unwrap_or(0))
        .collect()
}

fn small(shape: &[i64]) -> Vec<u32> {
    shape
        .iter()
        .map(|extent| u32::try_from(*extent).unwrap_or(0))
        .collect()
}

/// Whether two encodings stand for the same layout on a shape.
pub fn are_equal(left: &Encoding, right: &Encoding, shape: &[i64]) -> bool {
    if left == right {
        return true;
    }
    let shape = extents(shape);
    // Padding is not part of the linear layout.
    let pads = |encoding: &Encoding| match encoding {
        Encoding::PaddedShared(padded) => padded.pads().to_vec(),
        _ => Vec::new(),
    };
    pads(left) == pads(right)
        && matches!(
            (left.linear_layout(&shape), right.linear_layout(&shape)),
            (Ok(left), Ok(right)) if left == right
        )
}

/// Whether no element moves between threads where a tensor of shape `from`, laid out as `held`, becomes one of shape
/// `to`, laid out as `wanted`: each thread has the elements that it needs, in any registers. Along dimensions in
/// which `from` has one element, all coordinates refer to it.
pub fn stays_in_threads(held: &Encoding, from: &[i64], wanted: &Encoding, to: &[i64]) -> bool {
    let (Ok(held), Ok(wanted)) = (
        held.linear_layout(&extents(from)),
        wanted.linear_layout(&extents(to)),
    ) else {
        return false;
    };
    // The number of the operand's element, in row-major order, that a bit of a place adds.
    let number = |layout: &LinearLayout, dim: Dim, bit: u32| {
        if bit >= layout.in_dim_size_log2(dim) {
            return 0;
        }
        let axes = small(from).into_iter().zip(layout.out_dims());
        axes.fold(0u32, |number, (extent, axis)| match extent {
            1 => number,
            extent => {
                let coordinate = layout.basis_entry(dim, bit, *axis);
                number.wrapping_mul(extent).wrapping_add(coordinate)
            }
        })
    };
    let bits = |layout: &LinearLayout, dim: Dim| 0..layout.in_dim_size_log2(dim);
    let registers: Vec<u32> = bits(&held, Dim::REGISTER)
        .map(|bit| number(&held, Dim::REGISTER, bit))
        .collect();
    let registers = Echelon::of(&registers);
    let needed = bits(&wanted, Dim::REGISTER).map(|bit| number(&wanted, Dim::REGISTER, bit));
    let elsewhere = [Dim::LANE, Dim::WARP, Dim::BLOCK]
        .into_iter()
        .flat_map(|dim| {
            let bits = bits(&held, dim).end.max(bits(&wanted, dim).end);
            (0..bits).map(move |bit| (dim, bit))
        })
        .map(|(dim, bit)| number(&held, dim, bit) ^ number(&wanted, dim, bit));
    needed
        .chain(elsewhere)
        .all(|element| registers.contains(element))
}

/// The first candidate with this layout, else the layout itself.
fn shortest(
    layout: LinearLayout,
    shape: &[i64],
    candidates: impl IntoIterator<Item = Encoding>,
) -> Result<Encoding, TransferError> {
    let shape = extents(shape);
    for candidate in candidates {
        if candidate
            .linear_layout(&shape)
            .is_ok_and(|found| found == layout)
        {
            return Ok(candidate);
        }
    }
    Ok(Encoding::Linear(Linear::new(layout)?))
}

/// A blocked encoding that may have this layout, read off its basis vectors.
fn blocked_candidate(layout: &LinearLayout) -> Option<Encoding> {
    let rank = layout.tensor_rank().ok()?;
    if layout.in_dim_size_log2(Dim::BLOCK) != 0 {
        return None;
    }
    let mut reached = vec![0u32; rank];
    let mut order: Vec<u32> = Vec::new();
    // Takes the next bit of one dimension; `None` when the vector is anything else.
    let mut take = |basis: u32, per_dim: &mut [u32]| -> Option<bool> {
        if basis == 0 {
            return Some(false);
        }
        let (axis, bit) = out_bit(layout, basis.trailing_zeros())?;
        if !basis.is_power_of_two() || bit != reached[axis] {
            return None;
        }
        reached[axis] += 1;
        per_dim[axis] *= 2;
        let axis = u32::try_from(axis).ok()?;
        if !order.contains(&axis) {
            order.push(axis);
        }
        Some(true)
    };
    let mut per_thread = vec![1; rank];
    for &basis in layout.flat_bases_of(Dim::REGISTER) {
        // Registers beyond the tile start where lanes and warps ended.
        if take(basis, &mut per_thread) != Some(true) {
            break;
        }
    }
    let mut grids = Vec::new();
    for dim in [Dim::LANE, Dim::WARP] {
        let mut per_dim = vec![1; rank];
        let mut idle = 1;
        for &basis in layout.flat_bases_of(dim) {
            if !take(basis, &mut per_dim)? {
                idle *= 2;
            }
        }
        grids.push((per_dim, idle));
    }
    for axis in (0..rank).rev() {
        let axis = u32::try_from(axis).ok()?;
        if !order.contains(&axis) {
            order.push(axis);
        }
    }
    // Threads that hold copies count along the slowest dimension.
    let slowest = *order.last()? as usize;
    let mut grids = grids.into_iter().map(|(mut per_dim, idle)| {
        per_dim[slowest] *= idle;
        per_dim
    });
    Some(Encoding::Blocked(Blocked {
        size_per_thread: per_thread,
        threads_per_warp: grids.next()?,
        warps_per_cta: grids.next()?,
        order,
        cga_layout: CgaLayout::single(rank),
    }))
}

/// `order` as a permutation of `rank` axes.
fn permutation(order: &[i32], rank: usize) -> Result<Vec<usize>, TransferError> {
    let wrong = || TransferError::Order {
        order: order.to_vec(),
        rank,
    };
    let axes: Vec<usize> = order
        .iter()
        .map(|axis| usize::try_from(*axis).map_err(|_| wrong()))
        .collect::<Result<_, _>>()?;
    let mut sorted = axes.clone();
    sorted.sort_unstable();
    if sorted.into_iter().ne(0..rank) {
        return Err(wrong());
    }
    Ok(axes)
}

/// The inverse of a permutation.
pub fn inverse(order: &[i32]) -> Vec<i32> {
    let mut inverse = vec![0; order.len()];
    for (position, axis) in order.iter().enumerate() {
        let place = usize::try_from(*axis)
            .ok()
            .and_then(|axis| inverse.get_mut(axis));
        if let Some(place) = place {
            *place = i32::try_from(position).unwrap_or(i32::MAX);
        }
    }
    inverse
}

fn permuted<T: Clone>(values: &[T], order: &[usize]) -> Vec<T> {
    order
        .iter()
        .filter_map(|axis| values.get(*axis).cloned())
        .collect()
}

fn permuted_cga(cga: &CgaLayout, order: &[usize]) -> Result<CgaLayout, EncodingError> {
    let bases = cga
        .bases()
        .iter()
        .map(|basis| permuted(basis, order))
        .collect();
    CgaLayout::from_bases(order.len(), bases)
}

/// A list of axes, fastest first, after the permutation.
fn permuted_order(fastest: &[u32], order: &[usize]) -> Vec<u32> {
    fastest
        .iter()
        .filter_map(|axis| order.iter().position(|from| from == &(*axis as usize)))
        .filter_map(|position| u32::try_from(position).ok())
        .collect()
}

/// The layout after `trans`, where axis `i` of the result is axis `order[i]` of the operand. The reverse transfer is
/// the inverse permutation on the result's shape.
///
/// # Errors
/// An order that is not a permutation of the encoding's axes.
pub fn trans(encoding: &Encoding, shape: &[i64], order: &[i32]) -> Result<Encoding, TransferError> {
    let axes = permutation(order, encoding.rank())?;
    if axes.iter().copied().eq(0..axes.len()) {
        return Ok(encoding.clone());
    }
    let cga = || permuted_cga(&encoding.cga_layout(), &axes);
    Ok(match encoding {
        Encoding::Blocked(blocked) => Encoding::Blocked(Blocked {
            size_per_thread: permuted(&blocked.size_per_thread, &axes),
            threads_per_warp: permuted(&blocked.threads_per_warp, &axes),
            warps_per_cta: permuted(&blocked.warps_per_cta, &axes),
            order: permuted_order(&blocked.order, &axes),
            cga_layout: cga()?,
        }),
        Encoding::SwizzledShared(swizzled) => Encoding::SwizzledShared(SwizzledShared {
            order: permuted_order(&swizzled.order, &axes),
            cga_layout: cga()?,
            ..swizzled.clone()
        }),
        Encoding::NvmmaShared(shared) if order == [1, 0] => {
            let mut exchanged = shared.clone();
            exchanged.transposed = !exchanged.transposed;
            exchanged.cga_layout = cga()?;
            let exchanged = Encoding::NvmmaShared(exchanged);
            let Ok(layout) = encoding.linear_layout(&extents(shape)) else {
                return Ok(exchanged);
            };
            // Without a swizzle the flag has no effect: both values mean rows, one after the other.
            let layout = layout.permute_axes(&axes)?;
            match exchanged.linear_layout(&extents(&permuted(shape, &axes))) {
                Ok(found) if found == layout => exchanged,
                _ => in_memory(layout, alignment(encoding))?,
            }
        }
        Encoding::PaddedShared(padded) => {
            let component = padded.component().permute_axes(&axes)?;
            Encoding::PaddedShared(PaddedShared::new(padded.pads().to_vec(), component)?)
        }
        _ => {
            let layout = encoding
                .linear_layout(&extents(shape))?
                .permute_axes(&axes)?;
            if encoding.is_distributed() {
                shortest(layout, &permuted(shape, &axes), [])?
            } else {
                in_memory(layout, alignment(encoding))?
            }
        }
    })
}

/// The alignment in bytes that a buffer of a shared encoding needs.
pub fn alignment(encoding: &Encoding) -> u32 {
    match encoding {
        Encoding::NvmmaShared(shared) => shared.alignment(),
        Encoding::SharedLinear(shared) => shared.alignment(),
        _ => 16,
    }
}

/// The layout after `reshape` from one shape to another, in row-major order. The reverse transfer is the same with
/// the shapes exchanged.
///
/// # Errors
/// Shapes of different size; an encoding without a layout on the first.
pub fn reshape(encoding: &Encoding, from: &[i64], to: &[i64]) -> Result<Encoding, TransferError> {
    if from == to {
        return Ok(encoding.clone());
    }
    if let Encoding::PaddedShared(padded) = encoding {
        let component = padded.component().reshape_tensor(&small(to))?;
        return Ok(Encoding::PaddedShared(PaddedShared::new(
            padded.pads().to_vec(),
            component,
        )?));
    }
    let layout = encoding.linear_layout(&extents(from))?;
    if encoding.is_distributed() {
        return reshape_registers(&layout, to).map(|(encoding, _)| encoding);
    }
    let layout = layout.reshape_tensor(&small(to))?;
    if let Encoding::NvmmaShared(shared) = encoding {
        let mut candidate = shared.clone();
        candidate.cga_layout = CgaLayout::single(to.len());
        let candidate = Encoding::NvmmaShared(candidate);
        if candidate
            .linear_layout(&extents(to))
            .is_ok_and(|found| found == layout)
        {
            return Ok(candidate);
        }
    }
    in_memory(layout, alignment(encoding))
}

/// The same for a distributed layout that is known, with the layout after it.
///
/// # Errors
/// A shape of another size.
pub fn reshape_registers(
    layout: &LinearLayout,
    to: &[i64],
) -> Result<(Encoding, LinearLayout), TransferError> {
    let layout = layout.reshape_tensor(&small(to))?;
    let candidate = blocked_candidate(&layout);
    let encoding = shortest(layout.clone(), to, candidate)?;
    Ok((encoding, layout))
}

/// The encoding of memory that has a given layout. That of a single element is written with its order: a
/// layout without basis vectors does not say its rank.
fn in_memory(layout: LinearLayout, alignment: u32) -> Result<Encoding, TransferError> {
    let is_empty = layout
        .in_dims()
        .iter()
        .all(|dim| layout.in_dim_size_log2(*dim) == 0);
    let rank = layout.out_dims().len();
    Ok(if is_empty {
        Encoding::SwizzledShared(SwizzledShared {
            vec: 1,
            per_phase: 1,
            max_phase: 1,
            order: (0..rank as u32).rev().collect(),
            cga_layout: CgaLayout::single(rank),
        })
    } else {
        Encoding::SharedLinear(SharedLinear::new(layout, alignment)?)
    })
}

/// The layout after `expand_dims` at `axis`: the parent of a slice along that axis.
///
/// # Errors
/// An axis beyond the rank; an encoding without a layout on the shape.
pub fn expand_dims(
    encoding: &Encoding,
    shape: &[i64],
    axis: i64,
) -> Result<Encoding, TransferError> {
    let position = checked_axis(axis, shape.len() + 1)?;
    if let Encoding::Slice(slice) = encoding
        && slice.dim as usize == position
    {
        return Ok((*slice.parent).clone());
    }
    let layout = encoding
        .linear_layout(&extents(shape))?
        .expand_axis(position)?;
    let mut expanded = shape.to_vec();
    expanded.insert(position, 1);
    let candidate = blocked_candidate(&layout);
    shortest(layout, &expanded, candidate)
}

/// The layout before `expand_dims`, or after a reduction along `axis`: a slice.
///
/// # Errors
/// An axis beyond the rank, or an encoding of one dimension.
pub fn slice(encoding: &Encoding, axis: i64) -> Result<Encoding, TransferError> {
    let rank = encoding.rank();
    let dim = checked_axis(axis, rank)?;
    let slice = Encoding::Slice(Slice {
        dim: u32::try_from(dim).unwrap_or(u32::MAX),
        parent: Box::new(encoding.clone()),
    });
    slice.verify()?;
    Ok(slice)
}

fn checked_axis(axis: i64, rank: usize) -> Result<usize, TransferError> {
    usize::try_from(axis)
        .ok()
        .filter(|position| *position < rank)
        .ok_or(TransferError::Axis { axis, rank })
}

/// The layout after `join` of two tensors of this shape.
///
/// # Errors
/// An encoding without a layout on the shape.
pub fn join(encoding: &Encoding, shape: &[i64]) -> Result<Encoding, TransferError> {
    let layout = encoding.linear_layout(&extents(shape))?.join()?;
    let mut joined = shape.to_vec();
    joined.push(2);
    if let Encoding::Slice(slice) = encoding
        && slice.dim as usize == shape.len()
        && split(&slice.parent, &joined).is_ok_and(|half| are_equal(&half, encoding, shape))
    {
        return Ok((*slice.parent).clone());
    }
    let mut candidates = Vec::new();
    if let Encoding::Blocked(blocked) = encoding {
        let append = |values: &[u32], last: u32| {
            let mut values = values.to_vec();
            values.push(last);
            values
        };
        let new_axis = u32::try_from(shape.len()).unwrap_or(u32::MAX);
        let mut order = vec![new_axis];
        order.extend(&blocked.order);
        let bases = blocked
            .cga_layout
            .bases()
            .iter()
            .map(|basis| append(basis, 0))
            .collect();
        candidates.push(Encoding::Blocked(Blocked {
            size_per_thread: append(&blocked.size_per_thread, 2),
            threads_per_warp: append(&blocked.threads_per_warp, 1),
            warps_per_cta: append(&blocked.warps_per_cta, 1),
            order,
            cga_layout: CgaLayout::from_bases(joined.len(), bases)?,
        }));
    }
    shortest(layout, &joined, candidates)
}

/// The layout after `split` of a tensor of this shape along its last axis.
///
/// # Errors
/// When the last axis has not extent 2, or its two elements are in different threads.
pub fn split(encoding: &Encoding, shape: &[i64]) -> Result<Encoding, TransferError> {
    let layout = encoding.linear_layout(&extents(shape))?.split()?.0;
    let half = &shape[..shape.len().saturating_sub(1)];
    let mut candidates = Vec::new();
    if let Encoding::Blocked(blocked) = encoding {
        let drop_last = |values: &[u32]| values[..half.len()].to_vec();
        let bases = blocked
            .cga_layout
            .bases()
            .iter()
            .map(|basis| drop_last(basis))
            .collect();
        if let Ok(cga_layout) = CgaLayout::from_bases(half.len(), bases) {
            candidates.push(Encoding::Blocked(Blocked {
                size_per_thread: drop_last(&blocked.size_per_thread),
                threads_per_warp: drop_last(&blocked.threads_per_warp),
                warps_per_cta: drop_last(&blocked.warps_per_cta),
                order: blocked
                    .order
                    .iter()
                    .copied()
                    .filter(|axis| (*axis as usize) < half.len())
                    .collect(),
                cga_layout,
            }));
        }
    }
    shortest(layout, half, candidates)
}

/// The layout after each element along `axis` became two (unpacking of 4-bit elements).
///
/// # Errors
/// An axis beyond the rank; an encoding without a layout on the shape.
pub fn unpack(encoding: &Encoding, shape: &[i64], axis: i64) -> Result<Encoding, TransferError> {
    let position = checked_axis(axis, shape.len())?;
    let layout = encoding.linear_layout(&extents(shape))?;
    let pair = LinearLayout::identity_1d(2, Dim::REGISTER, Dim::tensor(position))?;
    let names: Vec<Dim> = (0..shape.len()).map(Dim::tensor).collect();
    let unpacked = pair
        .product(&layout)?
        .transpose_ins(layout.in_dims())?
        .transpose_outs(&names)?;
    let mut doubled = shape.to_vec();
    doubled[position] *= 2;
    let mut candidates = Vec::new();
    match encoding {
        Encoding::Blocked(blocked) => {
            let mut blocked = blocked.clone();
            blocked.size_per_thread[position] *= 2;
            candidates.push(Encoding::Blocked(blocked));
        }
        Encoding::DotOperand(operand) if operand.k_width != 0 => {
            candidates.push(Encoding::DotOperand(DotOperand {
                k_width: operand.k_width * 2,
                ..operand.clone()
            }));
        }
        _ => {}
    }
    shortest(unpacked, &doubled, candidates)
}

/// The layout before [`unpack`], from the unpacked shape.
///
/// # Errors
/// When neighbours along the axis are not in the registers of one thread.
pub fn pack(encoding: &Encoding, shape: &[i64], axis: i64) -> Result<Encoding, TransferError> {
    let position = checked_axis(axis, shape.len())?;
    let layout = encoding.linear_layout(&extents(shape))?;
    let mut found = false;
    let mut bases = Vec::new();
    for in_dim in layout.in_dims() {
        let mut vectors = Vec::new();
        for bit in 0..layout.in_dim_size_log2(*in_dim) {
            let mut vector: Vec<u32> = (0..shape.len())
                .map(|axis| layout.basis_entry(*in_dim, bit, Dim::tensor(axis)))
                .collect();
            let mut pair = vec![0; shape.len()];
            pair[position] = 1;
            if !found && *in_dim == Dim::REGISTER && vector == pair {
                found = true;
                continue;
            }
            if !vector[position].is_multiple_of(2) {
                return Err(TransferError::NotInRegisters { axis: position });
            }
            vector[position] /= 2;
            vectors.push(vector);
        }
        bases.push((*in_dim, vectors));
    }
    if !found {
        return Err(TransferError::NotInRegisters { axis: position });
    }
    let mut halved = shape.to_vec();
    halved[position] /= 2;
    let outs: Vec<(Dim, u32)> = small(&halved)
        .into_iter()
        .enumerate()
        .map(|(axis, extent)| (Dim::tensor(axis), extent))
        .collect();
    let bases: Vec<(Dim, &[Vec<u32>])> = bases
        .iter()
        .map(|(dim, vectors)| (*dim, vectors.as_slice()))
        .collect();
    let packed = LinearLayout::from_bases(&bases, &outs)?;
    let mut candidates = Vec::new();
    match encoding {
        Encoding::Blocked(blocked) if blocked.size_per_thread.get(position) > Some(&1) => {
            let mut blocked = blocked.clone();
            blocked.size_per_thread[position] /= 2;
            candidates.push(Encoding::Blocked(blocked));
        }
        Encoding::DotOperand(operand) if operand.k_width > 1 => {
            candidates.push(Encoding::DotOperand(DotOperand {
                k_width: operand.k_width / 2,
                ..operand.clone()
            }));
        }
        _ => {}
    }
    shortest(packed, &halved, candidates)
}

/// The number of consecutive elements along k, of this many bits, in one lane in the factors of a matrix product with
/// this result: zero if threads multiply and add, those of a word for `mma`, those that one instruction takes from a
/// lane for MFMA and WMMA, but at most those of four registers for MFMA, as longer ones take two vectors of bytes.
/// `None` for a result that no matrix product has.
pub fn elements_along_k(result: &Encoding, element_bits: u32) -> Option<u32> {
    match result {
        Encoding::Blocked(_) => Some(0),
        Encoding::NvidiaMma(_) => Some((32 / element_bits.max(1)).max(1)),
        // The lanes of a wave of 64 divide the instruction's rows and k among them.
        Encoding::AmdMfma(mfma) => match mfma.instr_shape[..] {
            [rows, _, k] => Some((rows * k / 64).clamp(1, (128 / element_bits.max(1)).max(1))),
            _ => None,
        },
        // RDNA3 gives each half of a wave all of k, later architectures one half of it.
        Encoding::AmdWmma(wmma) => match (wmma.version, &wmma.instr_shape[..]) {
            (1, _) => Some(16),
            (_, [.., k]) => Some((k / 2).min(16)),
            _ => None,
        },
        _ => None,
    }
}

/// The layout of an operand of a matrix product in which each lane has `1 << doubled` times as many consecutive
/// elements along k; `None` if it is no such layout.
#[must_use]
pub fn doubled_along_k(operand: &Encoding, doubled: u32) -> Option<Encoding> {
    let Encoding::DotOperand(operand) = operand else {
        return None;
    };
    let k_width = operand.k_width.checked_shl(doubled)?;
    dot_operand(&operand.parent, operand.op_idx, k_width).ok()
}

/// How many times the number of consecutive elements along k, of this many bits, in a lane is doubled in a layout of
/// an operand, compared to [`elements_along_k`]: zero for a layout of anything else.
#[must_use]
pub fn doublings_along_k(operand: &Encoding, element_bits: u32) -> u32 {
    let Encoding::DotOperand(operand) = operand else {
        return 0;
    };
    match elements_along_k(&operand.parent, element_bits) {
        Some(own) if own > 0 => (operand.k_width / own).max(1).ilog2(),
        _ => 0,
    }
}

/// The layout in registers that an operand of a matrix product with this result must have.
///
/// # Errors
/// A result encoding that no matrix product has, or a `k_width` that it does not support.
pub fn dot_operand(
    result: &Encoding,
    op_idx: u32,
    k_width: u32,
) -> Result<Encoding, TransferError> {
    let operand = Encoding::DotOperand(DotOperand {
        op_idx,
        parent: Box::new(result.clone()),
        k_width,
    });
    operand.verify()?;
    Ok(operand)
}
