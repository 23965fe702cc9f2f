//! The instructions of a block as a graph, the registers that an order of them takes, and the change of the order.
//!
//! An order is judged by the words of the block's own values that are live at the same time. Addresses and conditions count by
//! their widths like all others; a boolean takes a bit of a scalar or predicate register, and counts nothing.

use std::collections::HashMap;

use inkwell::AddressSpace;
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::basic_block::BasicBlock;
use inkwell::builder::Builder;
use inkwell::module::Module;
use inkwell::types::{AnyTypeEnum, BasicTypeEnum};
use inkwell::values::{
    BasicValue, BasicValueEnum, CallSiteValue, FunctionValue, InstructionOpcode, InstructionValue,
};
use llopt_plan::late_operands::is_scarce;
use llopt_target::Target;

use crate::llvm::instructions::users;
use crate::llvm::liveness::{Flow, Liveness};
use crate::targets::back_end::BackEnd;

/// An instruction of a block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    /// Registers of 32 bits that its result takes.
    pub(crate) words: u32,
    /// The positions in the block of the instructions that define its operands.
    pub(crate) operands: Vec<usize>,
    /// The positions in the block of its users.
    pub(crate) users: Vec<usize>,
    /// Whether it only computes, and all its users follow it in the block.
    pub(crate) moves: bool,
    /// Whether its result has a user outside of the block.
    pub(crate) is_kept: bool,
    /// Whether it only renames bits of its first operand: all of them, or a part.
    pub(crate) renames: Option<Renamed>,
}

/// The bits that an instruction renames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Renamed {
    All,
    /// Those from this bit on.
    From(u32),
}

/// A block of a kernel whose instructions may need more registers than there are.
pub(crate) struct LongBlock<'ctx> {
    /// Threads of the kernel.
    pub(crate) threads: u32,
    pub(crate) instructions: Vec<InstructionValue<'ctx>>,
    pub(crate) nodes: Vec<Node>,
    /// Words of values that come from other blocks.
    pub(crate) from_outside: u32,
}

impl LongBlock<'_> {
    /// The instructions as nodes, and behind them the values of other blocks that nothing needs behind this block: these are
    /// there when it begins, and free their registers in it.
    pub(crate) fn nodes_with_ending(&self) -> Vec<Node> {
        let mut nodes = self.nodes.clone();
        let block = self
            .instructions
            .first()
            .and_then(|first| first.get_parent());
        let function = block.and_then(BasicBlock::get_parent);
        let (Some(block), Some(function)) = (block, function) else {
            return nodes;
        };
        let flow = Flow::of(function.get_basic_blocks());
        let Some(number) = flow.number(block) else {
            return nodes;
        };
        let liveness = Liveness::of(&flow, |value| words(value.get_type()));
        let mut places = HashMap::new();
        for (index, instruction) in self.instructions.iter().enumerate() {
            if instruction.get_opcode() == InstructionOpcode::Phi {
                continue;
            }
            let made = operands(*instruction).filter_map(|operand| operand.as_instruction_value());
            for made in made.filter(|made| made.get_parent() != Some(block)) {
                let words = words(made.get_type());
                if words == 0 || liveness.is_live_behind(made, number) {
                    continue;
                }
                let place = *places.entry(made).or_insert(nodes.len());
                if place == nodes.len() {
                    nodes.push(Node {
                        words,
                        ..Node::default()
                    });
                }
                nodes[index].operands.push(place);
                if nodes[place].users.last() != Some(&index) {
                    nodes[place].users.push(index);
                }
            }
        }
        nodes
    }
}

/// The blocks of a module's kernels that have as many instructions as it takes to fill the registers. Only of kernels the
/// threads are known.
pub(crate) fn long_blocks<'ctx>(
    module: &Module<'ctx>,
    target: Target,
    back_end: &dyn BackEnd,
) -> Vec<LongBlock<'ctx>> {
    let mut found = Vec::new();
    for function in module.get_functions() {
        let Some(threads) = back_end.threads(function) else {
            continue;
        };
        for block in function.get_basic_block_iter() {
            let instructions: Vec<InstructionValue<'_>> = block.get_instructions().collect();
            if is_scarce(instructions.len() as u32, target, threads) {
                let (nodes, from_outside) = nodes(block, &instructions);
                found.push(LongBlock {
                    threads,
                    instructions,
                    nodes,
                    from_outside,
                });
            }
        }
    }
    found
}

/// The instructions of a block, and the words of values that come from other blocks.
fn nodes<'ctx>(
    block: BasicBlock<'ctx>,
    instructions: &[InstructionValue<'ctx>],
) -> (Vec<Node>, u32) {
    let places: HashMap<InstructionValue<'ctx>, usize> = instructions
        .iter()
        .enumerate()
        .map(|(place, instruction)| (*instruction, place))
        .collect();
    let mut outside = HashMap::new();
    let mut nodes = Vec::with_capacity(instructions.len());
    for instruction in instructions {
        let mut node = Node {
            words: words(instruction.get_type()),
            renames: renames(*instruction),
            ..Node::default()
        };
        if instruction.get_opcode() != InstructionOpcode::Phi {
            for made in operands(*instruction).filter_map(|operand| operand.as_instruction_value())
            {
                match places.get(&made) {
                    Some(place) => node.operands.push(*place),
                    None => {
                        outside.insert(made, words(made.get_type()));
                    }
                }
            }
        }
        for user in users(*instruction) {
            let place = user
                .filter(|user| {
                    user.get_opcode() != InstructionOpcode::Phi && user.get_parent() == Some(block)
                })
                .and_then(|user| places.get(&user));
            match place {
                Some(place) => node.users.push(*place),
                None => node.is_kept = true,
            }
        }
        node.users.sort_unstable();
        node.users.dedup();
        node.moves = !node.is_kept && only_computes(*instruction);
        nodes.push(node);
    }
    (nodes, outside.values().sum())
}

fn operands<'ctx>(
    instruction: InstructionValue<'ctx>,
) -> impl Iterator<Item = BasicValueEnum<'ctx>> {
    let operands = instruction.get_operands().flatten();
    operands.filter_map(|operand| operand.value())
}

/// Whether an instruction only computes from its operands, in each lane by itself.
pub(crate) fn only_computes(instruction: InstructionValue<'_>) -> bool {
    use InstructionOpcode as Op;
    match instruction.get_opcode() {
        Op::Add | Op::Sub | Op::Mul | Op::FAdd | Op::FSub | Op::FMul | Op::FNeg => true,
        Op::And | Op::Or | Op::Xor | Op::Shl | Op::LShr | Op::AShr => true,
        Op::Trunc | Op::ZExt | Op::SExt | Op::FPTrunc | Op::FPExt | Op::BitCast => true,
        Op::FPToUI | Op::FPToSI | Op::UIToFP | Op::SIToFP => true,
        Op::ExtractElement | Op::InsertElement | Op::ShuffleVector => true,
        Op::Select | Op::ICmp | Op::FCmp | Op::Freeze => true,
        Op::Call => {
            let called = CallSiteValue::try_from(instruction).ok();
            called
                .and_then(CallSiteValue::get_called_fn_value)
                .is_some_and(is_arithmetic)
        }
        _ => false,
    }
}

/// Whether a function is one of LLVM's intrinsics that accesses no memory and no other lane.
fn is_arithmetic(function: FunctionValue<'_>) -> bool {
    has_no_memory(function) && attribute(function, "convergent").is_none()
}

/// Whether an instruction is a call of one of LLVM's intrinsics that accesses no memory, as an exchange between lanes.
pub(crate) fn touches_no_memory(instruction: InstructionValue<'_>) -> bool {
    let called = CallSiteValue::try_from(instruction).ok();
    called
        .and_then(CallSiteValue::get_called_fn_value)
        .is_some_and(has_no_memory)
}

fn has_no_memory(function: FunctionValue<'_>) -> bool {
    let touches_nothing =
        attribute(function, "memory").is_some_and(|memory| memory.get_enum_value() == 0);
    function.get_intrinsic_id() != 0 && touches_nothing
}

fn attribute(function: FunctionValue<'_>, name: &str) -> Option<Attribute> {
    let kind = Attribute::get_named_enum_kind_id(name);
    function.get_enum_attribute(AttributeLoc::Function, kind)
}

/// Whether an instruction computes nothing, and its result is in registers of its operand.
pub(crate) fn only_renames(instruction: InstructionValue<'_>) -> bool {
    renames(instruction).is_some()
}

/// The bits of its first operand that an instruction renames, if it does nothing else.
fn renames(instruction: InstructionValue<'_>) -> Option<Renamed> {
    match instruction.get_opcode() {
        InstructionOpcode::BitCast => Some(Renamed::All),
        InstructionOpcode::ExtractElement => {
            let index = instruction.get_operand(1)?.value()?;
            let index = index.into_int_value().get_zero_extended_constant()?;
            let bits = bits(instruction.get_type())?;
            Some(Renamed::From(u32::try_from(index).ok()? * bits))
        }
        InstructionOpcode::Trunc => Some(Renamed::From(0)),
        _ => None,
    }
}

/// Bits of a value of a type; `None` if no register holds one.
fn bits(of: AnyTypeEnum<'_>) -> Option<u32> {
    Some(match of {
        AnyTypeEnum::IntType(of) => of.get_bit_width(),
        AnyTypeEnum::FloatType(of) => of.get_bit_width(),
        AnyTypeEnum::VectorType(of) => {
            let element = match of.get_element_type() {
                BasicTypeEnum::IntType(element) => element.get_bit_width(),
                BasicTypeEnum::FloatType(element) => element.get_bit_width(),
                _ => u32::BITS,
            };
            of.get_size() * element
        }
        // Pointers to global memory are of 64 bits.
        AnyTypeEnum::PointerType(of) => {
            let is_in = |space: u16| of.get_address_space() == AddressSpace::from(space);
            match is_in(0) || is_in(1) {
                true => 2 * u32::BITS,
                false => u32::BITS,
            }
        }
        _ => return None,
    })
}

/// Registers of 32 bits that a value of a type takes in a lane. A boolean takes a bit of a scalar register.
pub(crate) fn words(of: AnyTypeEnum<'_>) -> u32 {
    match bits(of) {
        None | Some(1) => 0,
        Some(bits) => bits.div_ceil(u32::BITS),
    }
}

/// What is kept beside loops, given by the numbers of their blocks, of those at a place of which more words are live than there
/// are registers.
pub(crate) fn scarce<T>(flow: &Flow<'_>, registers: u32, loops: Vec<(Vec<usize>, T)>) -> Vec<T> {
    if loops.is_empty() {
        return Vec::new();
    }
    let liveness = Liveness::of(flow, |value| words(value.get_type()));
    let is_scarce = |blocks: &[usize]| {
        let mut all = blocks.iter();
        all.any(|&block| liveness.most_words(flow, block) > registers)
    };
    let scarce = loops.into_iter().filter(|(blocks, _)| is_scarce(blocks));
    scarce.map(|(_, kept)| kept).collect()
}

/// The largest number of words of a block's own values that are live at the same time, in an order of its instructions.
pub(crate) fn peak(nodes: &[Node], sequence: &[usize]) -> u32 {
    let mut is_alive: Vec<bool> = nodes.iter().map(|node| node.is_kept).collect();
    let kept = nodes.iter().filter(|node| node.is_kept);
    let mut alive: u32 = kept.map(|node| node.words).sum();
    let mut peak = alive;
    for &index in sequence.iter().rev() {
        if is_alive[index] {
            alive -= nodes[index].words;
        }
        for operand in &nodes[index].operands {
            if !is_alive[*operand] {
                is_alive[*operand] = true;
                alive += nodes[*operand].words;
            }
        }
        peak = peak.max(alive);
    }
    peak
}

/// Puts the instructions of a block in that order.
pub(crate) fn apply<'ctx>(
    builder: &Builder<'ctx>,
    instructions: &[InstructionValue<'ctx>],
    sequence: &[usize],
) {
    let Some(end) = instructions.last() else {
        return;
    };
    let is_fixed = |instruction: &InstructionValue<'ctx>| {
        instruction.get_opcode() == InstructionOpcode::Phi || instruction == end
    };
    for place in sequence {
        let instruction = &instructions[*place];
        if is_fixed(instruction) {
            continue;
        }
        builder.position_before(instruction);
        let location = builder.get_current_debug_location();
        instruction.remove_from_basic_block();
        builder.position_before(end);
        match location {
            Some(location) => builder.set_current_debug_location(location),
            None => builder.unset_current_debug_location(),
        }
        builder.insert_instruction(instruction, None);
    }
}
