//! Random layouts: every distributed encoding of the dialect, arbitrary linear maps, and every encoding of
//! shared memory.

use std::rc::Rc;

use fastrand::Rng;
use llopt_dialects::layout::encoding::{
    AmdMfma, AmdRotatingShared, AmdWmma, Blocked, CgaLayout, DotOperand, Encoding, Linear,
    NvidiaMma, NvmmaShared, PaddedShared, SharedLinear, Slice, SwizzledShared,
};
use llopt_layout::Dim;
use llopt_target::{Target, Vendor};

/// The most registers of a tensor in one thread: more take time and find nothing new.
const MOST_REGISTERS: u32 = 32;

/// The machine for which layouts are made.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// The GPU.
    pub target: Target,
    /// Warps of the block.
    pub warps: u32,
    /// Blocks of the cluster.
    pub blocks: u32,
}

/// A random distributed encoding for a shape.
pub fn distributed(rng: &mut Rng, machine: Machine, shape: &[u32]) -> Rc<Encoding> {
    for _ in 0..20 {
        let Some(encoding) = candidate(rng, machine, shape, 2) else {
            continue;
        };
        if fits(&encoding, shape) {
            return Rc::new(encoding);
        }
    }
    let mut encoding = blocked(rng, machine, shape.len());
    if let Encoding::Blocked(blocked) = &mut encoding {
        // For any shape: all blocks hold all of it.
        for dim in 0..shape.len() {
            blocked.cga_layout = blocked.cga_layout.shared_along(dim);
        }
    }
    Rc::new(encoding)
}

/// The encoding in which each lane has a number of consecutive elements, along the last dimension first, then along
/// the one before it.
pub fn in_order(machine: Machine, shape: &[u32], elements: u32) -> Option<Rc<Encoding>> {
    let extents: Vec<u64> = shape.iter().map(|&extent| extent.into()).collect();
    let mut size_per_thread = vec![1; shape.len()];
    *size_per_thread.last_mut()? = elements.min(*shape.last()?);
    let order: Vec<u32> = (0..shape.len() as u32).rev().collect();
    let lanes = machine.target.warp_size();
    let cga_layout = CgaLayout::single(shape.len());
    Blocked::spread(
        &extents,
        &size_per_thread,
        &order,
        machine.warps,
        lanes,
        cga_layout,
    )
    .ok()
    .map(|blocked| Rc::new(Encoding::Blocked(blocked)))
}

/// Row by row, with or without a swizzle of vectors.
pub fn rows(rng: &mut Rng, rank: usize, vec: u32) -> Rc<Encoding> {
    Rc::new(Encoding::SwizzledShared(SwizzledShared {
        vec,
        per_phase: pick(rng, &[1, 1, 2]),
        max_phase: pick(rng, &[1, 4, 8]),
        order: (0..rank as u32).rev().collect(),
        cga_layout: CgaLayout::single(rank),
    }))
}

/// Whether the encoding has a layout for the shape with not too many registers.
pub(crate) fn fits(encoding: &Encoding, shape: &[u32]) -> bool {
    let extents: Vec<u64> = shape.iter().map(|&extent| extent.into()).collect();
    encoding.verify().is_ok()
        && encoding.linear_layout(&extents).is_ok_and(|layout| {
            layout.in_dim_size_log2(Dim::REGISTER) <= MOST_REGISTERS.trailing_zeros()
        })
}

fn candidate(rng: &mut Rng, machine: Machine, shape: &[u32], depth: u32) -> Option<Encoding> {
    let rank = shape.len();
    let is_matrix = rank == 2 || (rank == 3 && rng.bool());
    match rng.u8(0..12) {
        0..4 => Some(blocked(rng, machine, rank)),
        4..7 => linear(rng, machine, shape),
        7 | 8 if depth > 0 && rank < 5 => {
            let dim = rng.usize(0..=rank);
            let mut wider = shape.to_vec();
            wider.insert(dim, 1);
            let parent = candidate(rng, machine, &wider, depth - 1)?;
            Some(Encoding::Slice(Slice {
                dim: dim as u32,
                parent: Box::new(parent),
            }))
        }
        9 | 10 if is_matrix => matrix(rng, machine, rank),
        11 if is_matrix => {
            let parent = if rng.u8(0..3) == 0 {
                blocked(rng, machine, rank)
            } else {
                matrix(rng, machine, rank)?
            };
            let k_width = match parent {
                Encoding::Blocked(_) => 0,
                _ => pick(rng, &[1, 2, 4, 8, 16]),
            };
            Some(Encoding::DotOperand(DotOperand {
                op_idx: rng.u32(0..2),
                parent: Box::new(parent),
                k_width,
            }))
        }
        _ => None,
    }
}

fn pick<T: Copy>(rng: &mut Rng, from: &[T]) -> T {
    from[rng.usize(0..from.len())]
}

/// `log2` factors of two, distributed over `rank` dimensions.
fn deal(rng: &mut Rng, log2: u32, rank: usize) -> Vec<u32> {
    let mut counts = vec![1; rank];
    // In runs, so that long dimensions are as frequent as short ones.
    let mut left = log2;
    while left > 0 {
        let run = rng.u32(1..=left);
        counts[rng.usize(0..rank)] <<= run;
        left -= run;
    }
    counts
}

/// Blocks that split dimensions, or have copies, in random order.
fn cluster(rng: &mut Rng, machine: Machine, rank: usize) -> CgaLayout {
    let mut pieces = vec![1; rank];
    let mut bases = vec![vec![0; rank]; machine.blocks.ilog2() as usize];
    for basis in &mut bases {
        if rng.u8(0..4) != 0 {
            let dim = rng.usize(0..rank);
            basis[dim] = pieces[dim];
            pieces[dim] *= 2;
        }
    }
    rng.shuffle(&mut bases);
    CgaLayout::from_bases(rank, bases).unwrap_or_else(|_| CgaLayout::single(rank))
}

/// A random blocked encoding.
pub fn blocked(rng: &mut Rng, machine: Machine, rank: usize) -> Encoding {
    let mut order: Vec<u32> = (0..rank as u32).collect();
    rng.shuffle(&mut order);
    let per_thread = rng.u32(0..4);
    Encoding::Blocked(Blocked {
        size_per_thread: deal(rng, per_thread, rank),
        threads_per_warp: deal(rng, machine.target.warp_size().trailing_zeros(), rank),
        warps_per_cta: deal(rng, machine.warps.trailing_zeros(), rank),
        order,
        cga_layout: cluster(rng, machine, rank),
    })
}

/// Bits of a shape, each a unit vector, in random order; sometimes combined by a triangular matrix within a
/// dimension, which keeps them independent.
fn directions(rng: &mut Rng, shape: &[u32]) -> Vec<Vec<u32>> {
    let mixes = rng.u8(0..3) == 0;
    let mut list = Vec::new();
    for (dim, extent) in shape.iter().enumerate() {
        for bit in 0..extent.trailing_zeros() {
            let mut vector = vec![0; shape.len()];
            vector[dim] = 1 << bit;
            if mixes {
                vector[dim] |= rng.u32(..) & ((1 << bit) - 1);
            }
            list.push(vector);
        }
    }
    if rng.u8(0..4) != 0 {
        rng.shuffle(&mut list);
    }
    list
}

fn linear(rng: &mut Rng, machine: Machine, shape: &[u32]) -> Option<Encoding> {
    let rank = shape.len();
    let list = directions(rng, shape);
    let lanes = machine.target.warp_size().trailing_zeros() as usize;
    let warps = machine.warps.trailing_zeros() as usize;
    // The number of bits of each kind of place; bits that threads cannot have go to registers.
    let bits = list.len();
    let most_lanes = lanes.min(bits);
    let of_lanes = if rng.bool() {
        most_lanes
    } else {
        rng.usize(0..=most_lanes)
    };
    let most_warps = warps.min(bits - of_lanes);
    let of_warps = if rng.bool() {
        most_warps
    } else {
        rng.usize(0..=most_warps)
    };
    let blocks = machine.blocks.ilog2() as usize;
    let most_blocks = blocks.min(bits - of_lanes - of_warps);
    let of_blocks = if most_blocks == 0 {
        0
    } else {
        rng.usize(0..=most_blocks)
    };
    let of_registers = bits - of_lanes - of_warps - of_blocks;
    let (register, rest) = list.split_at(of_registers);
    let (lane, rest) = rest.split_at(of_lanes);
    let (warp, block) = rest.split_at(of_warps);
    // Places with copies: a zero basis vector, or sometimes that of another place.
    let echoes = rng.u8(0..6) == 0;
    let extra = rng.usize(0..8).saturating_sub(6);
    let mut filled = |mut of: Vec<Vec<u32>>, to: usize| {
        while of.len() < to {
            let copy = if echoes && !list.is_empty() && rng.bool() {
                list[rng.usize(0..list.len())].clone()
            } else {
                vec![0; rank]
            };
            of.insert(rng.usize(0..=of.len()), copy);
        }
        of
    };
    let lane = filled(lane.to_vec(), lanes);
    let warp = filled(warp.to_vec(), warps);
    let register = filled(register.to_vec(), of_registers + extra);
    let block = filled(block.to_vec(), blocks);
    Linear::from_bases(rank, &register, &lane, &warp, &block)
        .ok()
        .map(Encoding::Linear)
}

fn matrix(rng: &mut Rng, machine: Machine, rank: usize) -> Option<Encoding> {
    let cga_layout = cluster(rng, machine, rank);
    let mut warps_per_cta = deal(rng, machine.warps.trailing_zeros(), rank);
    let lanes = machine.target.warp_size();
    let with_rank = |shape: &[u32]| -> Vec<u32> {
        let ones = std::iter::repeat_n(1, rank.saturating_sub(2));
        ones.chain(shape.iter().copied()).collect()
    };
    if machine.target.vendor() == Vendor::Nvptx {
        let version_major = if rank == 2 && machine.warps.is_multiple_of(4) && rng.bool() {
            warps_per_cta = vec![machine.warps, 1];
            3
        } else {
            2
        };
        let instr_shape = if version_major == 3 {
            vec![16, pick(rng, &[8, 16, 32, 64]), 16]
        } else {
            with_rank(&[16, 8])
        };
        return Some(Encoding::NvidiaMma(NvidiaMma {
            version_major,
            version_minor: 0,
            warps_per_cta,
            cga_layout,
            instr_shape,
        }));
    }
    if lanes == 64 {
        return Some(Encoding::AmdMfma(AmdMfma {
            version: 3,
            warps_per_cta,
            instr_shape: pick(rng, &[[32, 32, 8], [16, 16, 16]]).to_vec(),
            is_transposed: rng.bool(),
            cga_layout,
            tiles_per_warp: vec![1; rank],
            element_bit_width: 32,
        }));
    }
    Some(Encoding::AmdWmma(AmdWmma {
        version: pick(rng, &[1, 2]),
        is_transposed: rng.bool(),
        warps_per_cta,
        tiles_per_warp: vec![1; rank],
        cga_layout,
        instr_shape: vec![16, 16, 16],
    }))
}

/// A random encoding of the result of a product on a matrix unit whose operands and sums have these bits, and a width
/// of its operands along k; `None` where there is none.
pub fn product(
    rng: &mut Rng,
    machine: Machine,
    rank: usize,
    operand_bits: u32,
    sum_bits: u32,
) -> Option<(Encoding, u32)> {
    let result = matrix(rng, machine, rank)?;
    match &result {
        Encoding::NvidiaMma(mma) if mma.version_major == 2 => {
            let per_register = (32 / operand_bits).max(1);
            let widths = [per_register, per_register, 2 * per_register, 1, 8];
            let width = if sum_bits == 64 {
                1
            } else {
                pick(rng, &widths)
            };
            Some((result, width))
        }
        _ => None,
    }
}

/// A random encoding of shared memory for a buffer of a shape, with elements of this many bits.
pub fn shared(rng: &mut Rng, machine: Machine, shape: &[u32], bits: u32) -> Rc<Encoding> {
    for _ in 0..20 {
        let Some(encoding) = memory(rng, machine, shape, bits) else {
            continue;
        };
        let extents: Vec<u64> = shape.iter().map(|&extent| extent.into()).collect();
        if encoding.verify().is_ok() && encoding.linear_layout(&extents).is_ok() {
            return Rc::new(encoding);
        }
    }
    let rank = shape.len();
    Rc::new(Encoding::SwizzledShared(SwizzledShared {
        vec: 1,
        per_phase: 1,
        max_phase: 1,
        order: (0..rank as u32).rev().collect(),
        cga_layout: CgaLayout::single(rank),
    }))
}

fn memory(rng: &mut Rng, machine: Machine, shape: &[u32], bits: u32) -> Option<Encoding> {
    let rank = shape.len();
    let cga_layout = CgaLayout::single(rank);
    let mut order: Vec<u32> = (0..rank as u32).collect();
    rng.shuffle(&mut order);
    let is_amd = machine.target.vendor() == Vendor::Amdgpu;
    let (vec, per_phase, max_phase) = (
        pick(rng, &[1, 2, 4, 8]),
        pick(rng, &[1, 2, 4]),
        pick(rng, &[1, 2, 4, 8]),
    );
    match rng.u8(0..8) {
        0..3 => Some(Encoding::SwizzledShared(SwizzledShared {
            vec,
            per_phase,
            max_phase,
            order,
            cga_layout,
        })),
        3 | 4 => {
            let offsets = directions(rng, shape);
            // Without an offset the attribute does not determine its rank.
            offsets.first()?;
            SharedLinear::from_bases(rank, &offsets, &[], pick(rng, &[16, 128]))
                .ok()
                .map(Encoding::SharedLinear)
        }
        5 => {
            let extents: Vec<u64> = shape.iter().map(|&extent| extent.into()).collect();
            let pads = vec![(pick(rng, &[4, 8, 16, 32, 64]), pick(rng, &[1, 2, 4, 8]))];
            PaddedShared::identity(pads, &order, &extents)
                .ok()
                .map(Encoding::PaddedShared)
        }
        6 if is_amd => Some(Encoding::AmdRotatingShared(AmdRotatingShared {
            vec,
            per_phase,
            max_phase,
            order,
            cga_layout,
        })),
        7 if !is_amd && rank == 2 && bits >= 8 => Some(Encoding::NvmmaShared(NvmmaShared {
            swizzling_byte_width: pick(rng, &[0, 32, 64, 128]),
            transposed: rng.bool(),
            element_bit_width: bits,
            fp4_padded: false,
            cga_layout,
        })),
        _ => None,
    }
}
