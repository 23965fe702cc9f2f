//! Products of warp groups, `ttng.warp_group_dot`, and waits for them.
//!
//! Four warps compute 64 rows of the result and up to 256 columns with one instruction, from operands that lie in
//! shared memory (the first may be in registers). The layout of the result says which warps do which rows: its
//! registers of one thread are taken apart into the instruction's fragments, and what is left are the repetitions of
//! the instruction and where each begins. The repetitions of a thread are the same for all groups; where a group
//! begins is a linear function of its warps, added to the addresses of both operands.
//!
//! Sums of eight-bit floats lose low bits inside of the unit. `maxNumImpreciseAcc` says after how many products along
//! k what was summed there is added up outside; then partial sums are waited for one after the other.

use std::collections::{HashMap, HashSet};

use inkwell::values::InstructionOpcode;
use llopt_dialects::tt::DotOp;
use llopt_dialects::ttg::LocalLoadOp;
use llopt_dialects::ttng;
use llopt_layout::Dim;
use llopt_mlir::ir::{OperationExt, ValueExt};
use llopt_plan::conversion::moved_bits;
use llopt_plan::element::{Element, Float8};
use llopt_plan::group_operand::{DEPTH_BYTES, GroupOperand, Place, Wanted};
use llopt_plan::tensor::{TensorType, ValueType};
use llopt_target::Feature;
use melior::ir::{OperationRef, Value, ValueLike};

use crate::llvm::emitter::{Emitter, V};
use crate::ops::memory::local::{self, View};
use crate::targets::hooks::{
    Adds, FirstOperand, GroupProduct, GroupStep, GroupTypes, WarpGroupHooks,
};
use crate::values::element::LlvmType;
use crate::values::words;
use crate::walk::function::{FunctionLowering, Lowered};

/// Rows of one instruction, over its four warps.
const ROWS: u32 = 64;
/// The most columns of one instruction.
const MAX_COLUMNS: u32 = 256;
/// Bits of the number of a warp in its group.
const GROUP_WARP_BITS: usize = 2;

/// The repetitions of the instruction in one thread.
#[derive(Debug, PartialEq, Eq)]
struct Repetitions {
    /// Columns of one instruction.
    columns: u32,
    /// For each: row and column where it begins, and the registers of its fragment in the instruction's order.
    tiles: Vec<(u32, u32, Vec<usize>)>,
    /// What each bit of the number of a group of warps adds to row and column.
    groups: Vec<(u32, u32)>,
    /// The same for the block in its cluster.
    blocks: Vec<(u32, u32)>,
}

/// An operand in shared memory with the address from which all repetitions are told by constants.
struct InMemory<'ctx> {
    how: GroupOperand,
    /// The descriptor of the first element, for this group of warps.
    descriptor: V<'ctx>,
    /// Bits of offsets that the descriptor may have taken already.
    taken: u32,
}

/// The instruction set's name of an element of an operand.
fn operand_name(element: Element) -> Option<&'static str> {
    Some(match element {
        Element::F16 => "f16",
        Element::Bf16 => "bf16",
        Element::F32 => "tf32",
        Element::Float8(Float8::E4M3FN) => "e4m3",
        Element::Float8(Float8::E5M2) => "e5m2",
        Element::Int(8) => "s8",
        _ => return None,
    })
}

/// The types of a product, if there is such an instruction.
fn types(result: Element, first: Element, second: Element) -> Option<GroupTypes> {
    let (a, b) = (operand_name(first)?, operand_name(second)?);
    let bits = first.memory_bits();
    let is_eight_bit_float = |of: Element| matches!(of, Element::Float8(_));
    let alike = first == second || is_eight_bit_float(first) && is_eight_bit_float(second);
    let result = match (result, first) {
        (Element::Int(32), Element::Int(8)) => "s32",
        (Element::F32, Element::Int(_)) | (Element::Int(_), _) => return None,
        (Element::F32, _) => "f32",
        (Element::F16, Element::F16 | Element::Float8(_)) => "f16",
        _ => return None,
    };
    alike.then_some(GroupTypes {
        result,
        first: a,
        second: b,
        bits,
        integers: result == "s32",
    })
}

/// Row and column of a row-major number.
fn row_and_column(number: u32, columns: u32) -> (u32, u32) {
    (number / columns, number % columns)
}

impl Repetitions {
    /// Takes the registers of a result apart into fragments.
    fn of(result: &TensorType) -> Result<Self, String> {
        let [_, width] = result.shape[..] else {
            return Err("its result is no matrix".to_owned());
        };
        let split = |number: u32| row_and_column(number, width);
        let (lane_bits, _) = result.thread_bits();
        let bases = result.thread_bases();
        let (lanes, warps) = bases.split_at(lane_bits as usize);
        let fits =
            lanes
                .iter()
                .map(|basis| split(*basis))
                .eq([(0, 2), (0, 4), (1, 0), (2, 0), (4, 0)])
                && warps.len() >= GROUP_WARP_BITS
                && split(warps[0]) == (16, 0)
                && split(warps[1]) == (32, 0);
        if !fits {
            return Err(
                "the layout of its result does not give each warp of a group 16 rows, as the instruction does"
                    .to_owned(),
            );
        }
        let registers: HashMap<u32, usize> = (0..result.registers())
            .filter(|register| result.is_canonical(*register))
            .map(|register| (result.element_in(register), register))
            .collect();
        let has = |row: u32, column: u32| registers.contains_key(&(row * width + column));
        // As many columns as one thread's registers have without a gap.
        let mut columns = 8;
        while columns < MAX_COLUMNS
            && has(0, columns)
            && (0..2 * columns).step_by(8).all(|n| has(0, n))
        {
            columns *= 2;
        }
        let mut begins: Vec<(u32, u32)> = registers
            .keys()
            .map(|number| split(*number))
            .filter(|(row, column)| row & 8 == 0 && column % columns == 0)
            .collect();
        begins.sort_unstable();
        let mut tiles = Vec::with_capacity(begins.len());
        for (row, column) in begins {
            let fragment: Option<Vec<usize>> = (0..columns / 2)
                .map(|register| {
                    let down = 8 * (register >> 1 & 1);
                    let right = (register & 1) + 8 * (register >> 2);
                    registers
                        .get(&((row + down) * width + column + right))
                        .copied()
                })
                .collect();
            tiles.push((row, column, fragment.ok_or_else(incomplete)?));
        }
        if tiles.len() * columns as usize / 2 != registers.len() {
            return Err(incomplete());
        }
        Ok(Self {
            columns,
            tiles,
            groups: warps[GROUP_WARP_BITS..]
                .iter()
                .map(|basis| split(*basis))
                .collect(),
            blocks: result
                .block_bases()
                .iter()
                .map(|basis| split(*basis))
                .collect(),
        })
    }
}

fn incomplete() -> String {
    "the registers of its result are not made of whole fragments of the instruction".to_owned()
}

/// The registers of the first operand that the instruction which begins at a place takes, four words' worth.
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

/// Whether a tensor is computed from what is read from shared memory, and not from a product that comes before.
fn is_read<'c: 'a, 'a>(tensor: Value<'c, 'a>) -> bool {
    let mut open = vec![tensor];
    let mut seen = HashSet::new();
    let mut is_read = false;
    while let Some(value) = open.pop() {
        let Some(maker) = value.defining_op() else {
            continue;
        };
        if LocalLoadOp::of(maker).is_some() {
            is_read = true;
        } else if is_product(maker) || !maker.is_memory_effect_free() {
            return false;
        } else if seen.insert(maker.to_raw().ptr as usize) {
            open.extend(maker.operand_values());
        }
    }
    is_read
}

/// Whether an op multiplies matrices, or waits for products.
fn is_product(op: OperationRef<'_, '_>) -> bool {
    ttng::WarpGroupDotOp::of(op).is_some()
        || ttng::WarpGroupDotWaitOp::of(op).is_some()
        || DotOp::of(op).is_some()
}

/// The vendor's instructions.
fn hooks_of<'r>(
    lowering: &FunctionLowering<'r, '_>,
    op: OperationRef<'_, '_>,
) -> Lowered<&'r dyn WarpGroupHooks> {
    lowering.require(op, Feature::WarpGroupMma)?;
    lowering
        .hooks()
        .warp_group()
        .ok_or_else(|| lowering.unsupported(op, None))
}

/// `ttng.warp_group_dot_wait`.
pub(crate) fn wait<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    op: ttng::WarpGroupDotWaitOp<'_, '_>,
) -> Lowered {
    let operation = op.operation();
    let hooks = hooks_of(lowering, operation)?;
    let pending = u32::try_from(op.pendings()).unwrap_or(0);
    // All registers of all tensors at once: what they hold is known from the wait on.
    let mut all = Vec::new();
    let mut tensors = Vec::new();
    for (index, input) in op.inputs().into_iter().enumerate() {
        let registers = lowering.registers(input);
        match lowering.type_of(input)? {
            ValueType::Scalar(_) => lowering.bind_result_at(operation, index, registers),
            of @ ValueType::Tensor(_) => {
                let distinct: Vec<V<'ctx>> = of
                    .distinct_registers()
                    .map(|register| registers[register])
                    .collect();
                tensors.push((index, of, distinct.len()));
                all.extend(distinct);
            }
        }
    }
    let waited = hooks.wait(lowering.e, pending, &all);
    let mut rest = waited.as_slice();
    for (index, of, count) in tensors {
        let (own, others) = rest.split_at(count);
        rest = others;
        let registers = of.spread(own);
        lowering.bind_result_at(operation, index, registers);
    }
    Ok(())
}

/// `ttng.warp_group_dot`.
pub(crate) fn dot<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    op: ttng::WarpGroupDotOp<'_, '_>,
) -> Lowered {
    let operation = op.operation();
    let hooks = hooks_of(lowering, operation)?;
    let refused = |reason: String| lowering.unsupported(operation, Some(reason));
    let result = lowering.tensor_of(operation, op.d())?;
    let first = match lowering.type_of(op.a())? {
        ValueType::Tensor(tensor) => Some(tensor),
        ValueType::Scalar(_) => None,
    };
    let second = local::view(lowering, operation, op.b())?;
    let first_view = match first {
        Some(_) => None,
        None => Some(local::view(lowering, operation, op.a())?),
    };
    let first_element = match (&first, &first_view) {
        (Some(tensor), _) => tensor.element,
        (None, view) => view.as_ref().map_or(second.element, |view| view.element),
    };
    let types = types(result.element, first_element, second.element).ok_or_else(|| {
        refused("no instruction of a warp group multiplies these types".to_owned())
    })?;
    let repetitions = Repetitions::of(&result).map_err(refused)?;
    let step_depth = DEPTH_BYTES * 8 / types.bits;
    let depth = depth_of(lowering, operation, op.b())?;
    if depth % step_depth != 0 {
        return Err(refused(format!(
            "one instruction takes {step_depth} elements along k, and there are {depth}"
        )));
    }
    let first_memory = match &first_view {
        Some(view) => {
            let wanted = Wanted {
                outer: Dim::tensor(0),
                depth: Dim::tensor(1),
                bits: types.bits,
                extent: ROWS,
            };
            let rows = |places: &[(u32, u32)]| places.iter().map(|place| place.0).collect();
            let (groups, blocks) = (rows(&repetitions.groups), rows(&repetitions.blocks));
            Some(in_memory(
                lowering, operation, "first", view, &wanted, groups, blocks,
            )?)
        }
        None => None,
    };
    let second_memory = {
        let wanted = Wanted {
            outer: Dim::tensor(1),
            depth: Dim::tensor(0),
            bits: types.bits,
            extent: repetitions.columns,
        };
        let columns = |places: &[(u32, u32)]| places.iter().map(|place| place.1).collect();
        let (groups, blocks) = (columns(&repetitions.groups), columns(&repetitions.blocks));
        in_memory(
            lowering, operation, "second", &second, &wanted, groups, blocks,
        )?
    };
    let first_registers = match &first {
        Some(tensor) => Some(FirstRegisters::of(tensor, &result, types.bits).map_err(refused)?),
        None => None,
    };
    let first_values = first.as_ref().map(|_| lowering.registers(op.a()));
    let first_at = |row: u32, depth: u32| -> Lowered<FirstOperand<'ctx>> {
        if let Some(memory) = &first_memory {
            let place = memory.how.place(row, depth);
            return Ok(FirstOperand::Memory(descriptor_at(
                lowering, operation, memory, place,
            )?));
        }
        let registers = first_registers
            .as_ref()
            .and_then(|registers| registers.at(row, depth))
            .ok_or_else(|| refused("its first operand has no such elements".to_owned()))?;
        let values = first_values.as_ref().map_or(&[][..], |values| &values[..]);
        let elements: Vec<V<'ctx>> = registers.iter().map(|&register| values[register]).collect();
        let words = words::packed(
            lowering.e,
            lowering.hooks(),
            &elements,
            (32 / types.bits) as usize,
        );
        Ok(FirstOperand::Registers(words))
    };

    let before = accumulators(lowering, op, &result, &repetitions);
    // How far along k the unit sums by itself.
    let precise_every = imprecise_depth(&op, result.element, first_element, depth);
    let mut steps_of_chunk: Vec<Vec<GroupStep<'ctx>>> = Vec::new();
    for chunk in (0..depth).step_by(precise_every.unwrap_or(depth) as usize) {
        let end = (chunk + precise_every.unwrap_or(depth)).min(depth);
        let mut steps = Vec::new();
        for (number, (row, column, _)) in repetitions.tiles.iter().enumerate() {
            for at in (chunk..end).step_by(step_depth as usize) {
                let place = second_memory.how.place(*column, at);
                steps.push(GroupStep {
                    result: number,
                    first: first_at(*row, at)?,
                    second: descriptor_at(lowering, operation, &second_memory, place)?,
                    adds: if at > chunk {
                        Adds::Always
                    } else {
                        Adds::Never
                    },
                });
            }
        }
        steps_of_chunk.push(steps);
    }
    let per_word = 32 / result.element.memory_bits() as usize;
    let registers = repetitions.columns as usize / 2 / per_word;
    let mut product = GroupProduct {
        types,
        columns: repetitions.columns,
        results: vec![None; repetitions.tiles.len()],
        registers,
        steps: Vec::new(),
        first_transposed: first_memory
            .as_ref()
            .is_some_and(|memory| !memory.how.k_contiguous),
        second_transposed: !second_memory.how.k_contiguous,
        ends: true,
        // Halves of a register are taken out of it, which must wait.
        waits: !op.is_async() || per_word > 1,
    };
    let words: Vec<V<'ctx>> = if precise_every.is_some() {
        product.waits = true;
        let mut sum: Option<Vec<V<'ctx>>> = before.as_ref().map(|(values, adds)| {
            let zero = lowering.e.f32(0.0);
            let values = values.iter().flatten();
            match adds {
                Adds::If(condition) => values
                    .map(|value| lowering.e.select(*condition, *value, zero))
                    .collect(),
                _ => values.copied().collect(),
            }
        });
        for steps in steps_of_chunk {
            product.steps = steps;
            let partial = hooks.multiply(lowering.e, &product);
            sum = Some(match sum {
                None => partial,
                Some(sum) => sum
                    .into_iter()
                    .zip(partial)
                    .map(|(sum, partial)| lowering.e.fadd(sum, partial))
                    .collect(),
            });
        }
        sum.unwrap_or_default()
    } else {
        product.steps = steps_of_chunk.into_iter().flatten().collect();
        if let Some((values, adds)) = before {
            product.results = values.into_iter().map(Some).collect();
            for step in &mut product.steps {
                if matches!(step.adds, Adds::Never) {
                    step.adds = adds;
                }
            }
        }
        match first_values {
            Some(_) if is_read(op.a()) => multiply_in_steps(lowering.e, hooks, product),
            _ => hooks.multiply(lowering.e, &product),
        }
    };
    bind_fragments(lowering, operation, &result, &repetitions, &words, per_word);
    Ok(())
}

/// A product whose first operand is computed in registers: each step along k has a fence of its own. The first begins
/// when its registers are computed, and those of the others are computed beside it.
fn multiply_in_steps<'ctx>(
    e: &Emitter<'ctx>,
    hooks: &dyn WarpGroupHooks,
    product: GroupProduct<'ctx>,
) -> Vec<V<'ctx>> {
    let tiles = product.results.len();
    let depth = product.steps.len() / tiles.max(1);
    if depth < 2 {
        return hooks.multiply(e, &product);
    }
    let mut results = product.results.clone();
    for step in 0..depth {
        let along_k = product.steps.iter().skip(step).step_by(depth);
        let steps: Vec<GroupStep<'ctx>> = along_k.cloned().collect();
        let part = GroupProduct {
            results,
            steps,
            ends: step + 1 == depth,
            waits: product.waits && step + 1 == depth,
            ..product.clone()
        };
        let sums = hooks.multiply(e, &part);
        let sums = sums.chunks(product.registers);
        results = sums.map(|sum| Some(sum.to_vec())).collect();
    }
    results.into_iter().flatten().flatten().collect()
}

/// The extent along k, from the second operand.
fn depth_of(
    lowering: &FunctionLowering<'_, '_>,
    op: OperationRef<'_, '_>,
    second: Value<'_, '_>,
) -> Lowered<u32> {
    llopt_dialects::tables::types::MemDesc::of(second.r#type())
        .and_then(|memory| u32::try_from(*memory.shape().first()?).ok())
        .ok_or_else(|| lowering.invalid(op, "the second operand is a buffer of known extents"))
}

/// After how many elements along k sums of the unit are added up outside of it; `None` if never.
fn imprecise_depth(
    op: &ttng::WarpGroupDotOp<'_, '_>,
    result: Element,
    first: Element,
    depth: u32,
) -> Option<u32> {
    let limit = u32::try_from(op.max_num_imprecise_acc()).ok()?;
    let loses = matches!(first, Element::Float8(_)) && result == Element::F32;
    let step = DEPTH_BYTES * 8 / first.memory_bits();
    (loses && limit <= depth).then(|| limit.next_multiple_of(step).max(step))
}

/// The words of the results before the product, and whether they count; `None` where nothing does.
fn accumulators<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: ttng::WarpGroupDotOp<'_, '_>,
    result: &TensorType,
    repetitions: &Repetitions,
) -> Option<(Vec<Vec<V<'ctx>>>, Adds<'ctx>)> {
    let e = lowering.e;
    let values = lowering.registers(op.c());
    let adds = match op.use_c().map(|condition| lowering.scalar(condition)) {
        Some(condition) if e.is_true(condition) => Adds::Always,
        Some(condition) if e.is_zero(condition) => return None,
        Some(condition) => Adds::If(condition),
        None => Adds::Always,
    };
    if values.iter().all(|value| e.is_zero(*value)) {
        return None;
    }
    let per_word = 32 / result.element.memory_bits() as usize;
    let words = repetitions
        .tiles
        .iter()
        .map(|(_, _, fragment)| {
            let elements: Vec<V<'ctx>> = fragment.iter().map(|&at| values[at]).collect();
            match per_word {
                1 => elements,
                _ => words::packed(e, lowering.hooks(), &elements, per_word),
            }
        })
        .collect();
    Some((words, adds))
}

/// Gives the registers of the fragments to the result.
fn bind_fragments<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    result: &TensorType,
    repetitions: &Repetitions,
    words: &[V<'ctx>],
    per_word: usize,
) {
    let e = lowering.e;
    let element = result.element.llvm(e.context);
    let mut registers = vec![e.poison(element); result.registers()];
    let fragments = repetitions
        .tiles
        .iter()
        .flat_map(|(_, _, fragment)| fragment);
    for (position, register) in fragments.enumerate() {
        let word = words[position / per_word];
        registers[*register] = match per_word {
            1 => word,
            several => {
                let parts = e.bitcast(word, e.vector(element, several as u32).into());
                e.extract(parts, (position % several) as u32)
            }
        };
    }
    let all: Vec<V<'ctx>> = (0..result.registers())
        .map(|register| registers[result.canonical(register)])
        .collect();
    lowering.bind_result(op, all);
}

/// An operand in shared memory: how it is read, and from where by this group of warps in this block.
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
    // What a warp group and a block add lies in the same block, at whole core matrices.
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
    let field = e.and(e.lshr(address, e.i32(4)), e.i32(0x3fff));
    let descriptor = e.or(
        e.zext(field, e.int(64).into()),
        e.i64(how.descriptor().cast_signed()),
    );
    Ok(InMemory {
        how,
        descriptor,
        taken,
    })
}

/// The descriptor of an instruction's operand that begins at a place.
fn descriptor_at<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    operand: &InMemory<'ctx>,
    place: Place,
) -> Lowered<V<'ctx>> {
    if place.block != 0
        || !operand.how.may_begin_at(place.bytes)
        || place.bytes & operand.taken != 0
    {
        let reason = "an instruction would begin inside of a core matrix of an operand";
        return Err(lowering.unsupported(op, Some(reason.to_owned())));
    }
    let groups = lowering.e.i64(i64::from(place.bytes >> 4));
    Ok(lowering.e.add(operand.descriptor, groups))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The layout of a result: registers over columns, rows 8 apart, and more columns; lanes; warps.
    fn result(rows: u32, columns: u32, warps: &[[u32; 2]]) -> TensorType {
        let mut registers = vec![vec![0, 1], vec![8, 0]];
        let mut column = 8;
        while column < columns {
            registers.push(vec![0, column]);
            column *= 2;
        }
        let held = 64 * (1 << warps.len().saturating_sub(GROUP_WARP_BITS));
        let mut row = held;
        while row < rows {
            registers.push(vec![row, 0]);
            row *= 2;
        }
        let lanes = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]].map(|basis| basis.to_vec());
        let warps: Vec<Vec<u32>> = warps.iter().map(|basis| basis.to_vec()).collect();
        let bases: Vec<(Dim, &[Vec<u32>])> = vec![
            (Dim::REGISTER, &registers),
            (Dim::LANE, &lanes),
            (Dim::WARP, &warps),
            (Dim::BLOCK, &[]),
        ];
        let outs = [(Dim::tensor(0), rows), (Dim::tensor(1), columns)];
        let layout = llopt_layout::LinearLayout::from_bases(&bases, &outs).unwrap();
        TensorType::new(Element::F32, vec![rows, columns], &layout).unwrap()
    }

    #[test]
    fn a_result_is_taken_apart_into_instructions() {
        let of = Repetitions::of(&result(128, 512, &[[16, 0], [32, 0]])).unwrap();
        let begins: Vec<(u32, u32)> = of
            .tiles
            .iter()
            .map(|(row, column, _)| (*row, *column))
            .collect();
        assert_eq!(of.columns, 256);
        assert_eq!(begins, [(0, 0), (0, 256), (64, 0), (64, 256)]);
        // The third register of the fragment is eight rows below the first.
        assert_eq!(of.tiles[0].2[..4], [0, 1, 2, 3]);
        let two = Repetitions::of(&result(128, 64, &[[16, 0], [32, 0], [64, 0]])).unwrap();
        assert_eq!((two.columns, two.groups), (64, vec![(64, 0)]));
    }

    #[test]
    fn other_results_are_refused() {
        // The warps of a group side by side instead of below each other.
        let beside = result(64, 64, &[[16, 0], [0, 32]]);
        assert!(Repetitions::of(&beside).is_err());
        let three = result(64, 8, &[[16, 0]]);
        assert!(Repetitions::of(&three).is_err());
    }
}
