//! The operands of a warp group's product: in shared memory, given to the instruction by descriptors, or, for the
//! first one, in registers.

use std::collections::HashMap;
use std::rc::Rc;

use inkwell::values::InstructionOpcode;
use llopt_dialects::ttng::WarpGroupDotOp;
use llopt_layout::Dim;
use llopt_plan::conversion::moved_bits;
use llopt_plan::element::Element;
use llopt_plan::group_operand::{GroupOperand, Place, Wanted};
use llopt_plan::tensor::{TensorType, ValueType};
use melior::ir::OperationRef;

use crate::llvm::emitter::V;
use crate::ops::matrix::warp_group_fragments::{GROUP_WARP_BITS, Repetitions, row_and_column};
use crate::ops::memory::local::{self, View};
use crate::targets::hooks::FirstOperand;
use crate::targets::hooks::warp_group::MatrixDescriptor;
use crate::values::words;
use crate::walk::function::{FunctionLowering, Lowered};

/// Rows of one instruction, over its four warps.
const ROWS: u32 = 64;
/// Where the operands of a product are.
pub(super) struct Sources<'ctx> {
    first: Source<'ctx>,
    second: View<'ctx>,
}

/// Where one operand is.
enum Source<'ctx> {
    Memory(Box<View<'ctx>>),
    Registers(Rc<TensorType>, Vec<V<'ctx>>),
}

impl<'ctx> Sources<'ctx> {
    pub(super) fn of(
        lowering: &FunctionLowering<'_, 'ctx>,
        op: WarpGroupDotOp<'_, '_>,
    ) -> Lowered<Self> {
        let second = local::view(lowering, op.operation(), op.b())?;
        let first = match lowering.type_of(op.a())? {
            ValueType::Tensor(tensor) => {
                Source::Registers(tensor, lowering.registers(op.a()).to_vec())
            }
            ValueType::Scalar(_) => {
                Source::Memory(Box::new(local::view(lowering, op.operation(), op.a())?))
            }
        };
        Ok(Self { first, second })
    }

    /// The element types of both.
    pub(super) fn elements(&self) -> [Element; 2] {
        let first = match &self.first {
            Source::Memory(view) => view.element,
            Source::Registers(tensor, _) => tensor.element,
        };
        [first, self.second.element]
    }

    /// The operands as the instructions of a result take them; its elements have so many bits.
    pub(super) fn operands(
        &self,
        lowering: &FunctionLowering<'_, 'ctx>,
        op: OperationRef<'_, '_>,
        result: &TensorType,
        repetitions: &Repetitions,
        bits: u32,
    ) -> Lowered<Operands<'ctx>> {
        let first = match &self.first {
            Source::Memory(view) => {
                let wanted = Wanted {
                    outer: Dim::tensor(0),
                    depth: Dim::tensor(1),
                    bits,
                    extent: ROWS,
                };
                let rows = |places: &[(u32, u32)]| places.iter().map(|place| place.0).collect();
                let (groups, blocks) = (rows(&repetitions.groups), rows(&repetitions.blocks));
                let memory = in_memory(lowering, op, "first", view, &wanted, groups, blocks)?;
                First::Memory(memory)
            }
            Source::Registers(tensor, values) => {
                let registers = FirstRegisters::of(tensor, result, bits);
                let registers = registers.map_err(|why| lowering.unsupported(op, Some(why)))?;
                First::Registers(registers, values.clone())
            }
        };
        let wanted = Wanted {
            outer: Dim::tensor(1),
            depth: Dim::tensor(0),
            bits,
            extent: repetitions.columns,
        };
        let columns = |places: &[(u32, u32)]| places.iter().map(|place| place.1).collect();
        let (groups, blocks) = (columns(&repetitions.groups), columns(&repetitions.blocks));
        let second = in_memory(
            lowering,
            op,
            "second",
            &self.second,
            &wanted,
            groups,
            blocks,
        )?;
        Ok(Operands { first, second })
    }
}

/// The operands of a product as its instructions take them.
pub(super) struct Operands<'ctx> {
    first: First<'ctx>,
    second: InMemory<'ctx>,
}

/// The first operand.
enum First<'ctx> {
    Memory(InMemory<'ctx>),
    Registers(FirstRegisters, Vec<V<'ctx>>),
}

impl<'ctx> Operands<'ctx> {
    /// Whether the first one is in registers.
    pub(super) fn has_first_in_registers(&self) -> bool {
        matches!(self.first, First::Registers(..))
    }

    /// For each, whether neighbouring elements in memory are along another dimension than k.
    pub(super) fn transposed(&self) -> [bool; 2] {
        let first = match &self.first {
            First::Memory(memory) => !memory.how.k_contiguous,
            First::Registers(..) => false,
        };
        [first, !self.second.how.k_contiguous]
    }

    /// The first operand of the instruction that begins at a row and so far along k.
    pub(super) fn first_at(
        &self,
        lowering: &FunctionLowering<'_, 'ctx>,
        op: OperationRef<'_, '_>,
        row: u32,
        depth: u32,
    ) -> Lowered<FirstOperand<'ctx>> {
        match &self.first {
            First::Memory(memory) => {
                let place = memory.how.place(row, depth);
                let descriptor = descriptor_at(lowering, op, memory, place)?;
                Ok(FirstOperand::Memory(descriptor))
            }
            First::Registers(registers, values) => {
                let own = registers.at(row, depth).ok_or_else(|| {
                    let reason = "its first operand has no such elements";
                    lowering.unsupported(op, Some(reason.to_owned()))
                })?;
                let elements: Vec<V<'ctx>> = own.iter().map(|&at| values[at]).collect();
                let per_word = registers.width as usize;
                let words = words::packed(lowering.e, lowering.hooks(), &elements, per_word);
                Ok(FirstOperand::Registers(words))
            }
        }
    }

    /// The descriptor of the second operand of the instruction that begins at a column and so far along k.
    pub(super) fn second_at(
        &self,
        lowering: &FunctionLowering<'_, 'ctx>,
        op: OperationRef<'_, '_>,
        column: u32,
        depth: u32,
    ) -> Lowered<MatrixDescriptor<'ctx>> {
        let place = self.second.how.place(column, depth);
        descriptor_at(lowering, op, &self.second, place)
    }
}

/// An operand in shared memory, with an address from which all repetitions differ by constants.
struct InMemory<'ctx> {
    how: GroupOperand,
    /// The descriptor's field of the address of the first element, for this group of warps.
    address: V<'ctx>,
    /// Bits of offsets that the descriptor may contain already.
    taken: u32,
}

/// The registers of the first operand for the instruction that begins at a position: four words.
struct FirstRegisters {
    registers: HashMap<u32, usize>,
    depth: u32,
    width: u32,
}

impl FirstRegisters {
    /// Requires the layout of the operand to fit that of the result.
    fn of(operand: &TensorType, result: &TensorType, bits: u32) -> Result<Self, String> {
        let ([_, depth], [_, columns]) = (&operand.shape[..], &result.shape[..]) else {
            return Err("its first operand is no matrix".to_owned());
        };
        let (depth, width) = (*depth, 32 / bits);
        let (lane_bits, _) = result.thread_bits();
        let (of_operand, of_result) = (operand.thread_bases(), result.thread_bases());
        let lanes = [(0, width), (0, 2 * width), (1, 0), (2, 0), (4, 0)];
        let fits = of_operand.len() == of_result.len()
            && of_operand
                .iter()
                .zip(&of_result)
                .enumerate()
                .all(|(bit, (own, other))| {
                    let expected = match lanes.get(bit) {
                        Some(place) if bit < lane_bits as usize => *place,
                        _ => (row_and_column(*other, *columns).0, 0),
                    };
                    row_and_column(*own, depth) == expected
                });
        if !fits {
            return Err(
                "the layout of its first operand does not give each thread what the instruction takes from it"
                    .to_owned(),
            );
        }
        let registers = (0..operand.registers())
            .filter(|register| operand.is_canonical(*register))
            .map(|register| (operand.element_in(register), register))
            .collect();
        Ok(Self {
            registers,
            depth,
            width,
        })
    }

    /// The registers from which four words are packed.
    fn at(&self, row: u32, depth: u32) -> Option<Vec<usize>> {
        (0..4 * self.width)
            .map(|element| {
                let (word, within) = (element / self.width, element % self.width);
                let at_row = row + 8 * (word & 1);
                let at_depth = depth + 4 * self.width * (word >> 1) + within;
                self.registers
                    .get(&(at_row * self.depth + at_depth))
                    .copied()
            })
            .collect()
    }
}

/// An operand in shared memory: how it is read, and the position from which this group of warps in this block reads
/// it.
fn in_memory<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    which: &str,
    view: &View<'ctx>,
    wanted: &Wanted,
    groups: Vec<u32>,
    blocks: Vec<u32>,
) -> Lowered<InMemory<'ctx>> {
    let e = lowering.e;
    let refused = |reason: String| {
        lowering.unsupported(
            op,
            Some(format!("its {which} operand cannot be read: {reason}")),
        )
    };
    if moved_bits(view.element) != wanted.bits || !view.place.pads.is_empty() {
        return Err(refused("its elements do not follow each other".to_owned()));
    }
    let how = GroupOperand::derive(&view.layout, wanted).map_err(refused)?;
    let begins = view.place.xor;
    // The positions that a warp group and a block add are in the same block, at whole core matrices.
    let told_apart: u32 = view
        .layout
        .flat_bases_of(Dim::BLOCK)
        .iter()
        .enumerate()
        .filter(|(_, basis)| **basis != 0)
        .fold(0, |mask, (bit, _)| mask | 1 << bit);
    let mut taken = begins;
    let mut add = |outer: u32, block: u32| -> Lowered<u32> {
        let place = how.place(outer, 0);
        if place.block != block & told_apart {
            return Err(refused(
                "elements are in the shared memory of another block of the cluster".to_owned(),
            ));
        }
        if !how.may_begin_at(place.bytes) {
            return Err(refused(
                "a group of warps begins inside of a core matrix".to_owned(),
            ));
        }
        taken |= place.bytes;
        Ok(place.bytes)
    };
    let of_groups: Vec<u32> = groups
        .iter()
        .map(|at| add(*at, 0))
        .collect::<Lowered<_>>()?;
    let of_blocks: Vec<u32> = blocks
        .iter()
        .enumerate()
        .map(|(bit, at)| add(*at, 1 << bit))
        .collect::<Lowered<_>>()?;
    if !how.may_begin_at(begins) {
        return Err(refused(
            "the view begins inside of a core matrix".to_owned(),
        ));
    }
    let lane_bits = lowering.program.threads_per_warp.trailing_zeros() as usize;
    let mut threads = vec![0; lane_bits + GROUP_WARP_BITS];
    threads.extend(of_groups);
    let address = e.cast(
        InstructionOpcode::PtrToInt,
        view.place.base,
        e.int(32).into(),
    );
    let moving =
        threads.iter().any(|basis| *basis != 0) || of_blocks.iter().any(|basis| *basis != 0);
    let offset = if moving {
        let groups = lowering
            .hooks()
            .partitions()
            .ok_or_else(|| lowering.unsupported(op, None))?;
        lowering
            .threads
            .linear_of_group(e, lowering.hooks(), groups, &threads, &of_blocks)
    } else {
        e.i32(0)
    };
    let offset = e.xor(offset, e.i32(i64::from(begins)));
    let address = e.add(address, offset);
    // The field has bits 4 to 17 of the address.
    let address = e.and(e.lshr(address, e.i32(4)), e.i32(0x3fff));
    Ok(InMemory {
        how,
        address,
        taken,
    })
}

/// The descriptor of an instruction's operand that begins at a position.
fn descriptor_at<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    operand: &InMemory<'ctx>,
    place: Place,
) -> Lowered<MatrixDescriptor<'ctx>> {
    if place.block != 0
        || !operand.how.may_begin_at(place.bytes)
        || place.bytes & operand.taken != 0
    {
        let reason = "an instruction would begin inside of a core matrix of an operand";
        return Err(lowering.unsupported(op, Some(reason.to_owned())));
    }
    Ok(MatrixDescriptor {
        address: operand.address,
        constant: operand.how.descriptor() + u64::from(place.bytes >> 4),
    })
}
