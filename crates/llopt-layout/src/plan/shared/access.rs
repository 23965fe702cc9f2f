//! One side of a trip through memory: which registers its instructions move, and to which address.

use alloc::vec::Vec;

use crate::banks::Access;
use crate::f2::{Echelon, Matrix, WORD, low_mask, ones};
use crate::instruction::{Bit, Instruction, InstructionKind, MAX_INSTRUCTION_BITS};
use crate::layout::{Dims, LinearLayout};
use crate::plan::endpoint::{Endpoint, Vectors};
use crate::plan::packing;
use crate::plan::shared::space::{End, Located};
use crate::plan::{Costs, Machine, PlanError};
use crate::{Dim, InlineList, LayoutError, Side};

/// One side of a trip through memory: all stores, or all loads, of one warp in one round.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedAccess {
    /// The instruction.
    pub instruction: Instruction,
    /// For each register bit of the instruction the register index that it adds.
    pub registers: InlineList<u32, MAX_INSTRUCTION_BITS>,
    /// For each bit of the index of an instruction the register index that it adds.
    pub repeats: InlineList<u32, WORD>,
    /// For each register index the one that is moved in its place: of registers that hold the same element, one is
    /// stored, and one loaded.
    pub fold: Matrix,
    /// From the lane that gives an address, the warp, the block, and the index of the instruction
    /// (dimension `repeat`), to the offset of the first element of the chunk, in elements, and the
    /// block whose memory it is in.
    pub address: LinearLayout,
    /// For each bit of the index of an instruction the lanes, as a mask of the bits of their numbers, in which it is the
    /// other one if an odd number of these bits are set ([`SharedAccess::turned`]); [`SharedAccess::address`] contains
    /// what that adds.
    pub turns: InlineList<u32, WORD>,
    /// The number of instructions.
    pub instructions: u32,
    /// The wavefronts of all instructions.
    pub wavefronts: u32,
    /// The least number of wavefronts for instructions of this width.
    pub bound: u32,
}

impl SharedAccess {
    /// The byte permutes that bring narrow elements into the words of all instructions of all rounds, or
    /// out of them; `rounds` are what the bits of the index of a round add to the index of a register.
    pub fn permutes(&self, rounds: impl IntoIterator<Item = u32>) -> u32 {
        let mut repeats: Vec<u32> = self.repeats.to_vec();
        repeats.extend(rounds);
        packing::Side {
            instruction: &self.instruction,
            registers: &self.registers,
            repeats: &repeats,
            fold: &self.fold,
        }
        .permutes()
    }

    /// The cost of the access for a warp, with the permutes that pack and unpack narrow elements, and the selects of its
    /// turns.
    pub fn cost(&self, costs: &Costs) -> f32 {
        self.cost_with(self.permutes([]), costs)
    }

    /// The same, given the permutes.
    pub(super) fn cost_with(&self, permutes: u32, costs: &Costs) -> f32 {
        let trip = costs.trip(
            &self.instruction,
            self.instructions,
            self.wavefronts,
            permutes,
        );
        trip + self.selects() as f32 * costs.select
    }

    /// The dimension of [`SharedAccess::address`] that counts instructions.
    pub const REPEAT: Dim = match Dim::new("repeat") {
        Some(dim) => dim,
        None => Dim::REGISTER,
    };

    /// The cheapest access of the registers of `layout` to a memory with the layout `memory`, by
    /// instructions of the given kind or of any.
    ///
    /// In a memory with a given layout, wide instructions may have conflicts that narrow ones do not have. More
    /// narrow ones are needed, and the data that they load has to be packed; the cost includes all three.
    ///
    /// Requires: `memory` has an input dimension `offset`, counted in elements, and holds every element of `layout`;
    /// `element_bits` a power of two from 8 to 128. Ensures: the wavefronts are exact. The other inputs of `memory`,
    /// such as `block`, stand after the offset in the outputs of [`SharedAccess::address`].
    ///
    /// ```
    /// # use llopt_layout::banks::{Access, BankModel, Phase};
    /// # use llopt_layout::plan::{Costs, Machine, SharedAccess};
    /// # use llopt_layout::{Dim, LinearLayout};
    /// # const LANES: &[u32] = &[1, 2, 4, 8, 16];
    /// # const PHASES: &[Phase] = &[Phase { access: Access::Load, bits: 32, lanes: LANES, joined: None }];
    /// # let machine = Machine {
    /// #     lanes_log2: 5,
    /// #     banks: BankModel { banks_log2: 5, bank_bytes_log2: 2, phases: PHASES },
    /// #     max_vector_bits: 32, matrix: &[], shared_bytes: 1 << 16, cluster: false,
    /// #     costs: Costs::default(),
    /// # };
    /// let (row, column) = (Dim::tensor(0), Dim::tensor(1));
    /// let row_major = LinearLayout::identity_1d(32, Dim::OFFSET, column)?
    ///     * LinearLayout::identity_1d(32, Dim::OFFSET, row)?;
    /// // Each lane reads one element of column 0.
    /// let column_of_lanes = LinearLayout::identity_1d(32, Dim::LANE, row)?
    ///     * LinearLayout::zeros_1d(1, Dim::REGISTER, column, 32)?;
    /// let access = SharedAccess::for_memory(
    ///     &column_of_lanes, &row_major, 32, Access::Load, None, &machine)?;
    /// assert_eq!((access.wavefronts, access.bound), (32, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn for_memory(
        layout: &LinearLayout,
        memory: &LinearLayout,
        element_bits: u32,
        access: Access,
        kind: Option<InstructionKind>,
        machine: &Machine<'_>,
    ) -> Result<SharedAccess, PlanError> {
        check_access(layout, memory, element_bits, machine)?;
        let others = memory
            .in_dims()
            .iter()
            .copied()
            .filter(|&dim| dim != Dim::OFFSET);
        let order: InlineList<Dim, { crate::MAX_DIMS }> =
            core::iter::once(Dim::OFFSET).chain(others).collect();
        let places = layout.invert_and_compose(memory)?.transpose_outs(&order)?;
        let ends = Endpoint::new(&places, &places);
        let offset_bits = memory.in_dim_size_log2(Dim::OFFSET);
        let located = |vectors: &Vectors| {
            let cut = |&v: &u32| {
                (
                    v & low_mask(offset_bits),
                    v.checked_shr(offset_bits).unwrap_or(0),
                )
            };
            vectors.iter().map(cut).collect()
        };
        let mut end = End {
            access,
            registers: located(&ends.registers),
            masks: ends.register_masks,
            lanes: located(&ends.lanes),
            warps: located(&ends.warps),
            blocks: located(&ends.blocks),
            fold: ends.fold,
        };
        for (i, block) in end.blocks.iter_mut().enumerate() {
            // Relative to the own block, as everywhere.
            block.1 ^= 1 << i;
        }
        let swizzle = Swizzle {
            offsets: (0..offset_bits).map(|bit| 1 << bit).collect(),
            inverse: Echelon::of(&(0..offset_bits).map(|bit| 1 << bit).collect::<Vectors>()),
            others: places.outs,
        };
        let span = end.span();
        let costs = &machine.costs;
        let mut best: Option<((f32, u32), Assignment)> = None;
        for instruction in options(&end, element_bits, machine, kind) {
            let units: Vectors = (0..instruction.chunk.len()).map(|bit| 1 << bit).collect();
            if !is_aligned(&end, &instruction) {
                continue;
            }
            let value = |j: usize, v: u32| v >> j & 1 == 1;
            let Some(mut own) = Assignment::new(&end, &instruction, &units, value, &span) else {
                continue;
            };
            own.wavefronts = own.count(&end, &swizzle, element_bits, machine);
            let wavefronts = own.instructions() * own.wavefronts;
            let time = costs.trip(
                &instruction,
                own.instructions(),
                wavefronts,
                own.permutes(&end),
            );
            let cost = (time, wavefronts);
            if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                best = Some((cost, own));
            }
        }
        let (_, own) = best.ok_or(PlanError::NoInstruction)?;
        Ok(own.into_access(&end, &swizzle))
    }

    /// The register of element `slot` of instruction `repeat`.
    pub fn register(&self, repeat: u32, slot: u32) -> u32 {
        let sum = |list: &[u32], word: u32| {
            ones(word & low_mask(list.len() as u32)).fold(0, |acc, i| acc ^ list[i as usize])
        };
        sum(&self.repeats, repeat) ^ sum(&self.registers, slot)
    }
}

/// Checks what [`SharedAccess::for_memory`] requires.
fn check_access(
    layout: &LinearLayout,
    memory: &LinearLayout,
    element_bits: u32,
    machine: &Machine<'_>,
) -> Result<(), PlanError> {
    if !element_bits.is_power_of_two() || !(8..=128).contains(&element_bits) {
        return Err(PlanError::ElementBits { bits: element_bits });
    }
    let lanes_log2 = layout.in_dim_size_log2(Dim::LANE);
    if lanes_log2 > machine.lanes_log2 {
        let machine_log2 = machine.lanes_log2;
        return Err(PlanError::TooManyLanes {
            lanes_log2,
            machine_log2,
        });
    }
    if !memory.has_in_dim(Dim::OFFSET) {
        let (side, dim) = (Side::Input, Dim::OFFSET);
        return Err(LayoutError::MissingDim { side, dim }.into());
    }
    Ok(())
}

/// Whether what lanes, warps and blocks add to positions keeps chunks of an instruction whole; lanes that are part of
/// an instruction's chunk must add what the instruction defines.
fn is_aligned(end: &End, instruction: &Instruction) -> bool {
    let aligned = |v: u32| v & low_mask(instruction.chunk.len() as u32) == 0;
    let in_chunk = |lane: u8| instruction.chunk.iter().position(|&b| b == Bit::Lane(lane));
    let mut lanes = (0u8..).zip(&end.lanes);
    let mut others = end.warps.iter().chain(&end.blocks);
    lanes.all(|(i, &(v, other))| match in_chunk(i) {
        Some(j) => (v, other) == (1 << j, 0),
        None => aligned(v),
    }) && others.all(|&(v, _)| aligned(v))
}

/// A memory layout by coordinates, offset bit 0 first, and its inverse.
pub(super) struct Swizzle {
    pub offsets: Vectors,
    pub inverse: Echelon,
    /// The dimensions of a place: the offset, and the outputs after it.
    pub others: Dims,
}

impl Swizzle {
    pub fn offset(&self, coordinates: u32) -> u32 {
        self.inverse.solve(coordinates).unwrap_or(0)
    }
}

/// The registers that an instruction moves, and those that tell instructions apart.
pub(super) struct Assignment {
    pub instruction: Instruction,
    /// Coordinates over the registers of the side: for the instruction's register bits.
    pub registers: InlineList<u32, MAX_INSTRUCTION_BITS>,
    pub repeats: Vectors,
    /// The wavefronts of one instruction.
    pub wavefronts: u32,
}

impl Assignment {
    /// The registers for an instruction whose chunk has these vectors; `value` reads the low
    /// offset bits of a vector. `None` when the registers do not allow the instruction.
    pub fn new(
        end: &End,
        instruction: &Instruction,
        chunk: &[u32],
        value: impl Fn(usize, u32) -> bool,
        span: &Echelon,
    ) -> Option<Assignment> {
        let mut registers = InlineList::new();
        for _ in 0..instruction.registers_log2() {
            registers.add(0u32);
        }
        let mut used = Echelon::new();
        for (bit, &v) in instruction.chunk.iter().zip(chunk) {
            if let Bit::Register(r) = bit {
                let coordinates = span.solve(v)?;
                *registers.get_mut(usize::from(*r))? = coordinates;
                if used.insert(coordinates).is_some() {
                    return None;
                }
            }
        }
        // The other directions, moved to where the low offset bits are zero.
        let mut others = Vectors::new();
        for (i, &(v, _)) in end.registers.iter().enumerate() {
            let mut direction = 1u32 << i;
            for (j, bit) in instruction.chunk.iter().enumerate() {
                if value(j, v) {
                    match bit {
                        Bit::Register(r) => direction ^= registers[usize::from(*r)],
                        Bit::Lane(_) => return None,
                    }
                }
            }
            if !used.contains(direction) {
                let _ = used.insert(direction);
                others.add(direction);
            }
        }
        let mut next = others.iter().copied();
        for bit in &instruction.address {
            if let Bit::Register(r) = bit {
                *registers.get_mut(usize::from(*r))? = next.next()?;
            }
        }
        let repeats = next.collect();
        Some(Assignment {
            instruction: *instruction,
            registers,
            repeats,
            wavefronts: 0,
        })
    }

    pub fn instructions(&self) -> u32 {
        1 << self.repeats.len()
    }

    /// The byte permutes of all instructions.
    pub fn permutes(&self, end: &End) -> u32 {
        let index = |&coordinates: &u32| {
            ones(coordinates).fold(0, |index, i| index ^ end.masks[i as usize])
        };
        let registers: Vectors = self.registers.iter().map(index).collect();
        let repeats: Vectors = self.repeats.iter().map(index).collect();
        packing::Side {
            instruction: &self.instruction,
            registers: &registers,
            repeats: &repeats,
            fold: &end.fold,
        }
        .permutes()
    }

    /// The wavefronts of one instruction.
    pub fn count(
        &self,
        end: &End,
        swizzle: &Swizzle,
        element_bits: u32,
        machine: &Machine<'_>,
    ) -> u32 {
        let bytes = (element_bits / 8).trailing_zeros();
        let addresses: InlineList<u32, MAX_INSTRUCTION_BITS> =
            phase_vectors(end, &self.instruction, self)
                .map(|v| swizzle.offset(v) << bytes)
                .collect();
        let conflicts = machine
            .banks
            .wavefronts(self.instruction.chunk_bytes_log2(), &addresses);
        self.instruction.phases() * conflicts
    }

    pub fn into_access(self, end: &End, swizzle: &Swizzle) -> SharedAccess {
        let sum = |coordinates: u32| -> (u32, Located) {
            ones(coordinates).fold((0, (0, 0)), |(mask, (v, b)), i| {
                let (w, c) = end.registers[i as usize];
                (mask ^ end.masks[i as usize], (v ^ w, b ^ c))
            })
        };
        let instructions = self.instructions();
        let offset_bits = swizzle.offsets.len() as u32;
        let place = |(v, blocks): Located| swizzle.offset(v) | blocks << offset_bits;

        let mut ins = Dims::EMPTY;
        let mut bases = [0; WORD];
        let lanes: Vectors = (0..end.lanes.len())
            .map(|i| match self.instruction.address.get(i) {
                Some(Bit::Lane(lane)) => place(end.lanes[usize::from(*lane)]),
                Some(Bit::Register(r)) => place(sum(self.registers[usize::from(*r)]).1),
                None => 0,
            })
            .collect();
        let warps: Vectors = end.warps.iter().map(|&w| place(w)).collect();
        let blocks: Vectors = (0..)
            .zip(&end.blocks)
            .map(|(i, &(v, b))| place((v, b ^ 1 << i)))
            .collect();
        let repeats: Vectors = self.repeats.iter().map(|&r| place(sum(r).1)).collect();
        let mut next = 0;
        for (dim, list) in [
            (Dim::LANE, &lanes),
            (Dim::WARP, &warps),
            (Dim::BLOCK, &blocks),
            (SharedAccess::REPEAT, &repeats),
        ] {
            let _ = ins.push(Side::Input, dim, list.len() as u32);
            bases[next..next + list.len()].copy_from_slice(list);
            next += list.len();
        }
        SharedAccess {
            registers: self.registers.iter().map(|&r| sum(r).0).collect(),
            repeats: self.repeats.iter().map(|&r| sum(r).0).collect(),
            turns: core::iter::repeat_n(0, self.repeats.len()).collect(),
            address: LinearLayout {
                ins,
                outs: swizzle.others,
                bases,
            },
            instructions,
            fold: end.fold,
            wavefronts: self.wavefronts * instructions,
            bound: self.instruction.phases() * instructions,
            instruction: self.instruction,
        }
    }
}

/// The coordinates of the addresses of one phase.
pub(super) fn phase_vectors<'a>(
    end: &'a End,
    instruction: &'a Instruction,
    own: &'a Assignment,
) -> impl Iterator<Item = u32> + 'a {
    instruction.phase.iter().map(move |&mask| {
        ones(mask).fold(0, |acc, i| {
            acc ^ match instruction.address.get(i as usize) {
                Some(Bit::Lane(lane)) => end.lanes[usize::from(*lane)].0,
                Some(Bit::Register(r)) => ones(own.registers[usize::from(*r)])
                    .fold(0, |acc, k| acc ^ end.registers[k as usize].0),
                None => 0,
            }
        })
    })
}

/// The instructions of one side that the registers allow.
pub(super) fn options(
    end: &End,
    element_bits: u32,
    machine: &Machine<'_>,
    kind: Option<InstructionKind>,
) -> Vec<Instruction> {
    let registers = end.registers.len() as u32;
    let lanes = end.lanes.len() as u32;
    let widest = machine
        .banks
        .widest(end.access)
        .min(machine.max_vector_bits);
    let mut options = Vec::with_capacity(8);
    if kind.is_none_or(|kind| kind == InstructionKind::Vector) {
        let most = registers.min((widest / element_bits).max(1).trailing_zeros());
        for elements in 0..=most {
            let shared = |difference: u32| {
                let images = ones(difference).map(|i| end.lanes.get(i as usize).copied());
                images.fold((0, 0), |a, v| v.map_or((1, 1), |v| (a.0 ^ v.0, a.1 ^ v.1))) == (0, 0)
            };
            options.extend(Instruction::vector(
                end.access,
                &machine.banks,
                element_bits,
                elements,
                lanes,
                shared,
            ));
        }
    }
    if lanes == machine.lanes_log2 {
        let rows = machine.matrix.iter().filter(|row| {
            row.access == end.access
                && row.element_bits == element_bits
                && kind.is_none_or(|kind| kind == row.kind)
        });
        for row in rows {
            let fitting = (0..=row.repeats_log2)
                .filter_map(|repeats| Instruction::matrix(row, repeats))
                .take_while(|instruction| instruction.registers_log2() <= registers);
            options.extend(fitting.last());
        }
    }
    options
}
