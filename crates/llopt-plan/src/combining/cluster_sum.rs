//! Sums over the blocks of a cluster: through the shared memory of all of them.
//!
//! Each block writes its own tensor to its own memory; after a cluster barrier each block reads the elements that it
//! needs from the memory of all blocks and adds them to its own in a fixed order, so that the sum does not depend on
//! time. The memory has the layout of the conversion from the operand's layout to the result's, as both sides of the
//! trip are those of a conversion: it costs no more to sum into the layout in which the sum is stored.
//!
//! # The part of a block
//!
//! Where a block needs only its part of the sum, `2^s` parts along a dimension, the bits of its rank are the highest
//! of that dimension. So the result is a tensor of the operand's shape with these bits as bases of the block. The
//! operand does not depend on the block: each has all elements. Then the rank only moves the address at which a block
//! reads. All blocks together read each element of each memory once, whatever their number.
//!
//! # Alternative rejected
//!
//! A block could write to the memory of the block that needs the element (as reductions do). Then no block would have
//! to wait before it ends until others have read; but it would have to wait before it writes, until the others have
//! left their loops, and needs as many buffers as there are blocks.

use llopt_layout::instruction::InstructionKind;
use llopt_layout::plan::{SharedPlan, SwizzleRequest, synthesize};
use llopt_layout::{Dim, LinearLayout};
use llopt_target::Target;

use crate::conversion::moved_bits;
use crate::tensor::TensorType;

/// The trip through memory by which each of `blocks` blocks gets its part of the sum, in the layout of `to`.
///
/// # Errors
/// There is none; the text says why.
pub fn plan_cluster_sum(
    from: &TensorType,
    to: &TensorType,
    blocks: u32,
    target: Target,
) -> Result<SharedPlan, String> {
    let (source, result) = layouts(from, to, blocks)
        .ok_or_else(|| "its result is no part of its operand".to_owned())?;
    // Matrix instructions read the memory of their own block only.
    let request = SwizzleRequest {
        load: Some(InstructionKind::Vector),
        ..SwizzleRequest::default()
    };
    let bits = moved_bits(from.element);
    synthesize(&source, &result, bits, &target.machine(), request)
        .map_err(|error| error.to_string())
}

/// The layouts of the operand and of the parts of all blocks, as tensors of the operand's shape.
fn layouts(
    from: &TensorType,
    to: &TensorType,
    blocks: u32,
) -> Option<(LinearLayout, LinearLayout)> {
    let rank_bits = blocks.trailing_zeros();
    let divided = (0..from.shape.len()).find(|dim| from.shape.get(*dim) != to.shape.get(*dim));
    // What each bit of the rank adds to the row-major number of an element.
    let of_rank: Vec<u32> = match divided {
        Some(dim) => {
            let below: u32 = from.shape[dim + 1..].iter().product();
            let part = to.shape.get(dim)? * below;
            (0..rank_bits).map(|bit| part << bit).collect()
        }
        None => vec![0; rank_bits as usize],
    };
    let extents = from.shape.iter().rev().zip(to.shape.iter().rev());
    // The row-major number in the whole tensor of an element of the part: a basis has bits of any dimensions.
    let in_whole = |basis: &u32| {
        let (mut number, mut rest, mut shift) = (0, *basis, 0);
        for (whole, part) in extents.clone() {
            number |= (rest & (part - 1)) << shift;
            rest >>= part.trailing_zeros();
            shift += whole.trailing_zeros();
        }
        number
    };
    let of = |tensor: &TensorType, number: &dyn Fn(&u32) -> u32, ranks: Vec<u32>| {
        let bases = |dim| {
            let bases = tensor.layout().flat_bases_of(dim).iter();
            (dim, bases.map(number).collect::<Vec<u32>>())
        };
        let numbers = [
            bases(Dim::REGISTER),
            bases(Dim::LANE),
            bases(Dim::WARP),
            (Dim::BLOCK, ranks),
        ];
        TensorType::from_numbers(tensor.element, from.shape.clone(), &numbers)
            .ok()
            .map(|tensor| tensor.layout().clone())
    };
    let nothing = vec![0; rank_bits as usize];
    Some((
        of(from, &|basis| *basis, nothing)?,
        of(to, &in_whole, of_rank)?,
    ))
}

#[cfg(test)]
mod tests {
    use llopt_layout::plan::SharedAccess;

    use super::*;
    use crate::tensor::fixtures::tensor;

    /// The offset that an instruction accesses for a register of a thread in a block.
    fn offset(access: &SharedAccess, repeat: u32, slot: u32, place: [u32; 3]) -> u32 {
        let selected = |dim, number: u32| {
            let bases = access.address.flat_bases_of(dim).iter().enumerate();
            bases
                .filter(|(bit, _)| number >> bit & 1 == 1)
                .fold(0, |all, (_, basis)| all ^ basis)
        };
        let [lane, warp, block] = place;
        let offset = selected(SharedAccess::REPEAT, repeat)
            ^ selected(Dim::LANE, lane)
            ^ selected(Dim::WARP, warp)
            ^ selected(Dim::BLOCK, block);
        (offset & ((1 << access.address.out_dim_size_log2(Dim::OFFSET)) - 1)) + slot
    }

    /// Every register of the result is read where each block has written the element of the whole tensor that it is.
    fn is_right(from: &TensorType, to: &TensorType, blocks: u32) {
        let target = Target::parse("cuda:90").unwrap();
        let plan = plan_cluster_sum(from, to, blocks, target).unwrap();
        assert!(plan.rounds.is_empty());
        let (source, result) = layouts(from, to, blocks).unwrap();
        let mut memory = vec![None; plan.bytes as usize / 4];
        let number = |layout: &LinearLayout, register: u32, [lane, warp, block]: [u32; 3]| {
            let of = |dim, number: u32| {
                let bases = layout.flat_bases_of(dim).iter().enumerate();
                bases
                    .filter(|(bit, _)| number >> bit & 1 == 1)
                    .fold(0, |all, (_, basis)| all ^ basis)
            };
            of(Dim::REGISTER, register)
                ^ of(Dim::LANE, lane)
                ^ of(Dim::WARP, warp)
                ^ of(Dim::BLOCK, block)
        };
        let each = |access: &SharedAccess, visit: &mut dyn FnMut(u32, u32, u32, u32)| {
            let slots = 1 << access.instruction.registers_log2();
            for repeat in 0..access.instructions {
                for slot in 0..slots {
                    for lane in 0..32 {
                        for warp in 0..4 {
                            visit(repeat, slot, lane, warp);
                        }
                    }
                }
            }
        };
        each(&plan.store, &mut |repeat, slot, lane, warp| {
            let register = plan.store.register(repeat, slot);
            let at = offset(&plan.store, repeat, slot, [lane, warp, 0]);
            memory[at as usize] = Some(number(&source, register, [lane, warp, 0]));
        });
        for block in 0..blocks {
            each(&plan.load, &mut |repeat, slot, lane, warp| {
                let register = plan.load.register(repeat, slot);
                let at = offset(&plan.load, repeat, slot, [lane, warp, block]);
                let wanted = number(&result, register, [lane, warp, block]);
                assert_eq!(memory[at as usize], Some(wanted));
            });
        }
        assert_eq!(plan.load.instruction.kind, InstructionKind::Vector);
        assert_eq!(plan.store.wavefronts, plan.store.bound);
        assert_eq!(plan.load.wavefronts, plan.load.bound);
    }

    #[test]
    fn every_block_reads_its_part_of_what_all_have_written() {
        // Accumulators of products of warps, 64 by 64, four warps along the rows; the parts by rows of 32 bytes.
        let accumulator = tensor(
            &[64, 64],
            &[1, 8 * 64, 8, 16, 32],
            &[2, 4, 64, 2 * 64, 4 * 64],
            &[16 * 64, 32 * 64],
        );
        for blocks in [2u32, 4, 8] {
            let rows = 64 / blocks;
            let shape = [rows, 64];
            let registers: Vec<u32> = (0..(rows * 64 / 128).trailing_zeros())
                .map(|bit| match bit {
                    0..2 => 1 << bit,
                    _ => 1 << (bit + 7),
                })
                .collect();
            let part = tensor(&shape, &registers, &[4, 8, 16, 32, 64], &[128, 256]);
            is_right(&accumulator, &part, blocks);
        }
        // Parts by columns, and all of it.
        let columns = tensor(
            &[64, 32],
            &[1, 2, 512, 1024],
            &[4, 8, 16, 32, 64],
            &[128, 256],
        );
        is_right(&accumulator, &columns, 2);
        let all = tensor(
            &[64, 64],
            &[1, 2, 512, 1024, 2048],
            &[4, 8, 16, 32, 64],
            &[128, 256],
        );
        is_right(&accumulator, &all, 2);
    }
}
