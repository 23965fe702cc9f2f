//! Instructions that move data between registers and shared memory, as permutations of bits.  Every such instruction,
//! does this: some lanes give addresses, at each address there is a *chunk* of contiguous elements, and each element
//! of each chunk goes to one register of one lane. Both sides are counted in bits, and all known instructions only
//! permute them. A vector load keeps lane bits as address bits and takes register bits for the chunk; `ldmatrix`
//! takes two lane bits into the chunk and leaves the other three, and the register bits that select one of its
//! matrices, for the addresses. Swizzle synthesis needs no more than that, and therefore treats all of them alike.

use crate::InlineList;
use crate::banks::{Access, BankModel};

/// A bit of the place of a value in the registers of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bit {
    /// Bit `i` of the index among the registers that one instruction moves.
    Register(u8),
    /// Bit `i` of the lane.
    Lane(u8),
}

impl Default for Bit {
    fn default() -> Self {
        Bit::Register(0)
    }
}

/// The most bits of a chunk, and the most address bits, of an instruction.
pub const MAX_INSTRUCTION_BITS: usize = 8;

/// A list of the bits of an instruction, least first.
pub type Bits = InlineList<Bit, MAX_INSTRUCTION_BITS>;

/// What kind of instruction it is, for the code generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InstructionKind {
    /// Each lane moves contiguous elements at its own address.
    Vector,
    /// Rows of a matrix are spread over lanes, in the order of the rows (`ldmatrix`, `stmatrix`).
    Matrix,
    /// The columns of a matrix are spread over lanes (`ldmatrix.trans`, `ds_read_tr`).
    MatrixTransposed,
}

/// A row of a target's table of matrix instructions; `'static` data without any vendor in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatrixInstruction {
    /// The name to print.
    pub name: &'static str,
    /// Load or store.
    pub access: Access,
    /// Plain or transposed, never `Vector`.
    pub kind: InstructionKind,
    /// The width of the elements that it permutes.
    pub element_bits: u32,
    /// The bits of a chunk, least first.
    pub chunk: &'static [Bit],
    /// The bits of the index of an address, least first; address `i` is given by lane `i`.
    pub address: &'static [Bit],
    /// How many more register bits, each of which doubles the registers moved, may be appended to
    /// the address bits (`.x2`, `.x4`).
    pub repeats_log2: u32,
    /// The address bits that are served in one phase, as masks over address bits.
    pub phase: &'static [u32],
}

/// One instruction that moves data of one element width between registers and shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// The name to print.
    pub name: &'static str,
    /// Load or store.
    pub access: Access,
    /// Vector, matrix, or transposed matrix.
    pub kind: InstructionKind,
    /// The width of an element, as stored, in bits.
    pub element_bits: u32,
    /// The bits of the place that form the position inside a chunk, least first.
    pub chunk: Bits,
    /// The bits of the place that form the index of the address, least first. Address `i` is given by lane `i`.
    pub address: Bits,
    /// A basis of the address indices served together.
    pub phase: InlineList<u32, MAX_INSTRUCTION_BITS>,
}

impl Instruction {
    /// The access of `2^elements_log2` contiguous elements per lane, where `shared(d)` says whether
    /// lanes whose numbers differ by `d` have equal addresses.
    ///
    /// `None` when the banks know no access that wide, or there are more than 256 lanes.
    pub fn vector(
        access: Access,
        banks: &BankModel,
        element_bits: u32,
        elements_log2: u32,
        lanes_log2: u32,
        shared: impl Fn(u32) -> bool,
    ) -> Option<Instruction> {
        let phase = banks.phase(access, element_bits.checked_shl(elements_log2)?, shared)?;
        let lanes = 1u32.checked_shl(lanes_log2)?;
        if elements_log2.max(lanes_log2) as usize > MAX_INSTRUCTION_BITS {
            return None;
        }
        Some(Instruction {
            name: match access {
                Access::Load => "load",
                Access::Store => "store",
            },
            access,
            kind: InstructionKind::Vector,
            element_bits,
            chunk: (0..elements_log2 as u8).map(Bit::Register).collect(),
            address: (0..lanes_log2 as u8).map(Bit::Lane).collect(),
            phase: phase
                .iter()
                .copied()
                .filter(|&lane| lane < lanes)
                .take(MAX_INSTRUCTION_BITS)
                .collect(),
        })
    }

    /// The instruction of a table row with `2^repeats_log2` times its registers.
    ///
    /// `None` when the row does not allow that many.
    pub fn matrix(row: &MatrixInstruction, repeats_log2: u32) -> Option<Instruction> {
        if repeats_log2 > row.repeats_log2 {
            return None;
        }
        let mut instruction = Instruction {
            name: row.name,
            access: row.access,
            kind: row.kind,
            element_bits: row.element_bits,
            chunk: row
                .chunk
                .iter()
                .copied()
                .take(MAX_INSTRUCTION_BITS)
                .collect(),
            address: row
                .address
                .iter()
                .copied()
                .take(MAX_INSTRUCTION_BITS)
                .collect(),
            phase: row
                .phase
                .iter()
                .copied()
                .take(MAX_INSTRUCTION_BITS)
                .collect(),
        };
        let first = instruction.registers_log2();
        for repeat in 0..repeats_log2 {
            instruction
                .address
                .push(Bit::Register((first + repeat) as u8))
                .ok()?;
        }
        Some(instruction)
    }

    /// The registers that one lane moves with one instruction, in elements, as log2.
    pub fn registers_log2(&self) -> u32 {
        let bits = self.chunk.iter().chain(&self.address);
        bits.filter(|bit| matches!(bit, Bit::Register(_))).count() as u32
    }

    /// The bytes of a chunk as log2; elements narrower than a byte do not occur.
    pub fn chunk_bytes_log2(&self) -> u32 {
        (self.element_bits / 8).max(1).trailing_zeros() + self.chunk.len() as u32
    }

    /// The phases of one instruction.
    pub fn phases(&self) -> u32 {
        1 << (self.address.len() - self.phase.len())
    }

    /// The number of addresses of one instruction, as log2.
    pub fn addresses_log2(&self) -> u32 {
        self.address.len() as u32
    }
}
