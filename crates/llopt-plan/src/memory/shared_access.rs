//! Accesses to shared memory.
//!
//! A tensor is moved between registers and a buffer by vectors or by matrix instructions, which `llopt_layout::plan`
//! chooses; [`access`] returns its choice, and [`price`] says what the access costs. Data other than tensors (partial
//! results, totals) move by one vector for each lane, at linear addresses: [`wavefronts`].

use llopt_layout::banks::{Access, BankModel};
use llopt_layout::f2::Echelon;
use llopt_layout::instruction::InstructionKind;
use llopt_layout::plan::SharedAccess;
use llopt_layout::{Dim, LinearLayout};
use llopt_target::{Feature, Target};

use crate::conversion::moved_bits;
use crate::element::Element;
use crate::tensor::TensorType;

/// A buffer in shared memory.
#[derive(Clone, Copy, Debug)]
pub struct Buffer<'l> {
    /// From the offset, and the block, to the element.
    pub layout: &'l LinearLayout,
    /// What an element is.
    pub element: Element,
    /// The widest access in bits: unused bytes between elements limit it.
    pub max_bits: u32,
}

/// How a tensor is moved between registers and a buffer, by instructions of the forced kind if there is one.
///
/// # Errors
/// There is no plan; the text says why.
pub fn access(
    tensor: &TensorType,
    buffer: &Buffer<'_>,
    direction: Access,
    kind: Option<InstructionKind>,
    blocks_per_cluster: u32,
    target: Target,
) -> Result<SharedAccess, String> {
    let mut machine = target.machine();
    machine.max_vector_bits = machine.max_vector_bits.min(buffer.max_bits);
    let bits = moved_bits(buffer.element);
    // Matrix instructions move rows of 16 bytes, aligned.
    let kind = if buffer.max_bits < 128 {
        Some(InstructionKind::Vector)
    } else {
        kind
    };
    let mut found = SharedAccess::for_memory(
        tensor.layout(),
        buffer.layout,
        bits,
        direction,
        kind,
        &machine,
    )
    .map_err(|error| error.to_string())?;
    let offset_bits = found.address.out_dim_size_log2(Dim::OFFSET);
    // Data that all blocks hold, each block reads from its own memory.
    let told_apart = buffer
        .layout
        .flat_bases_of(Dim::BLOCK)
        .iter()
        .enumerate()
        .filter(|(_, basis)| **basis != 0)
        .fold(0u32, |all, (bit, _)| all | 1 << bit);
    let block = |basis: u32| basis.checked_shr(offset_bits).unwrap_or(0) & told_apart;
    let ins = found.address.in_dims().to_vec();
    let in_other_block = ins.iter().any(|dim| {
        let bases = found.address.flat_bases_of(*dim);
        bases.iter().enumerate().any(|(bit, basis)| {
            let own = if *dim == Dim::BLOCK { 1 << bit } else { 0 };
            block(*basis) != own & told_apart
        })
    });
    if blocks_per_cluster > 1 {
        if in_other_block {
            let reason = "elements are in the shared memory of another block of the cluster";
            return Err(reason.to_owned());
        }
        found.address = found
            .address
            .sublayout(&ins, &[Dim::OFFSET])
            .map_err(|error| error.to_string())?;
    }
    Ok(found)
}

/// How a tensor is stored to a buffer: by [`access`], with lanes that store in different orders where that avoids
/// conflicts. Copies move what lanes do not have in registers, so they have no such choice.
///
/// # Errors
/// There is no plan; the text says why.
pub fn store(
    tensor: &TensorType,
    buffer: &Buffer<'_>,
    kind: Option<InstructionKind>,
    blocks_per_cluster: u32,
    target: Target,
) -> Result<SharedAccess, String> {
    let found = access(
        tensor,
        buffer,
        Access::Store,
        kind,
        blocks_per_cluster,
        target,
    )?;
    Ok(found.turned(&target.machine()))
}

/// The widest access that one instruction may do two of.
pub const PAIRED_BITS: u32 = 64;

/// What an access takes a warp, in cycles of a multiprocessor.
#[must_use]
pub fn price(access: &SharedAccess, target: Target) -> f32 {
    access.cost(&target.movement_costs())
}

/// The same where instructions that go by one computed address are issued two at a time ([`Feature::LdsPairs`]).
#[must_use]
pub fn price_in_pairs(access: &SharedAccess, target: Target) -> f32 {
    let instruction = &access.instruction;
    let bits = instruction.element_bits << instruction.registers_log2();
    let bases = |dim| access.address.flat_bases_of(dim);
    let threads = [Dim::LANE, Dim::WARP, Dim::BLOCK].into_iter();
    let thread_bits = threads.flat_map(bases).fold(0, |all, basis| all | basis);
    // The sum of an address and what has no bit in common with it is an offset of the instruction.
    let has_pairs = bases(SharedAccess::REPEAT)
        .iter()
        .any(|basis| basis & thread_bits == 0);
    let is_paired = target.has(Feature::LdsPairs)
        && instruction.kind == InstructionKind::Vector
        && (u32::BITS..=PAIRED_BITS).contains(&bits)
        && has_pairs;
    let spared = match is_paired {
        true => access.instructions / 2,
        false => 0,
    };
    price(access, target) - spared as f32 * target.movement_costs().issue
}

/// The passes over the banks of an access of `bits` for each lane, where bit `i` of the lane's number adds `lanes[i]`
/// to the address, in bytes. An access wider than any instruction is taken apart first.
///
/// Requires: addresses are multiples of the bytes that are moved.
#[must_use]
pub fn wavefronts(banks: &BankModel, access: Access, bits: u32, lanes: &[u32]) -> u32 {
    let widest = banks.widest(access).max(8);
    if bits > widest {
        return bits.div_ceil(widest) * wavefronts(banks, access, widest, lanes);
    }
    let address = |lane: u32| {
        let own = lanes.iter().enumerate();
        own.filter(|(bit, _)| lane >> bit & 1 == 1)
            .fold(0, |sum, (_, basis)| sum ^ basis)
    };
    let phase = banks
        .phase(access, bits, |lane| address(lane) == 0)
        .unwrap_or(&[]);
    let mut served = Echelon::new();
    let mut together = Vec::with_capacity(phase.len());
    for lane in phase.iter().filter(|lane| *lane >> lanes.len() == 0) {
        let _ = served.insert(*lane);
        together.push(address(*lane));
    }
    let phases = 1u32 << (lanes.len() as u32 - served.rank());
    let bytes_log2 = (bits / 8).max(1).trailing_zeros();
    phases * banks.wavefronts(bytes_log2, &together)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflicts_are_in_the_price() {
        let numbers = [
            (Dim::REGISTER, vec![32, 64, 128, 256, 512]),
            (Dim::LANE, vec![1, 2, 4, 8, 16]),
            (Dim::WARP, Vec::new()),
            (Dim::BLOCK, Vec::new()),
        ];
        let target = Target::parse("cuda:90").unwrap();
        let price_of = |order: [u32; 5]| {
            let tensor = TensorType::from_numbers(Element::F32, vec![32, 32], &numbers).unwrap();
            let rows = order.iter().map(|bit| vec![0, 1 << bit]);
            let columns = (0..5).map(|bit| vec![1 << bit, 0]);
            let bases: Vec<Vec<u32>> = match order[0] {
                0 => rows.chain(columns).collect(),
                _ => columns.chain(rows).collect(),
            };
            let outs = [(Dim::tensor(0), 32), (Dim::tensor(1), 32)];
            let layout = LinearLayout::from_bases(&[(Dim::OFFSET, &bases[..])], &outs).unwrap();
            let buffer = Buffer {
                layout: &layout,
                element: Element::F32,
                max_bits: u32::MAX,
            };
            let found = access(&tensor, &buffer, Access::Store, None, 1, target);
            price(&found.unwrap(), target)
        };
        // A row next to each other, and a row with a column's distance between its elements.
        assert!(price_of([0, 1, 2, 3, 4]) < price_of([1, 0, 2, 3, 4]));
    }

    #[test]
    fn linear_addresses_take_as_many_passes_as_the_definition_counts() {
        let patterns: [&[u32]; 6] = [
            &[4, 8, 16, 32, 64],
            &[16, 32, 64, 128, 256],
            &[128, 256, 4, 8, 0],
            &[0, 0, 16, 512, 1024],
            &[64, 64, 2048, 16, 32],
            &[0, 0, 0, 0, 0],
        ];
        for name in ["cuda:90", "hip:gfx942", "hip:gfx950", "hip:gfx1100"] {
            let target = Target::parse(name).unwrap();
            let banks = target.banks();
            for pattern in patterns {
                let mut lanes = pattern.to_vec();
                lanes.resize(target.warp_size().trailing_zeros() as usize, 4096);
                let addresses: Vec<u32> = (0..target.warp_size())
                    .map(|lane| {
                        let own = lanes.iter().enumerate();
                        own.filter(|(bit, _)| lane >> bit & 1 == 1)
                            .fold(0, |sum, (_, basis)| sum ^ basis)
                    })
                    .collect();
                for access in [Access::Load, Access::Store] {
                    for bytes in [4, 8, 16] {
                        if addresses.iter().any(|address| address % bytes != 0) {
                            continue;
                        }
                        assert_eq!(
                            Some(wavefronts(&banks, access, bytes * 8, &lanes)),
                            banks.count(access, bytes, &addresses),
                            "{name} {pattern:?} {access:?} {bytes}"
                        );
                    }
                }
            }
        }
    }
}
