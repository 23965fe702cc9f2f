//! Products of warp groups, `ttng.warp_group_dot`, and waits for them.
//!
//! Four warps compute 64 rows of the result and up to 256 columns with one instruction, from operands that lie in
//! shared memory (the first may be in registers). The layout of the result says which warps do which rows: the
//! registers of one thread are divided into the instruction's fragments; the rest of the layout says how often the
//! instruction is repeated and where each repetition begins. The repetitions of a thread are the same for all groups;
//! the start of a group is a linear function of its warps, added to the addresses of both operands.
//!
//! Sums of eight-bit floats lose low bits inside of the unit. `maxNumImpreciseAcc` is the number of products along k
//! after which the partial sum is added to an accumulator outside the unit; then partial sums are waited for one
//! after the other.

use std::collections::HashSet;

use llopt_dialects::tt::DotOp;
use llopt_dialects::ttg::LocalLoadOp;
use llopt_dialects::ttng;
use llopt_mlir::ir::{OperationExt, ValueExt};
use llopt_plan::element::{Element, Float8};
use llopt_plan::group_operand::DEPTH_BYTES;
use llopt_plan::tensor::{TensorType, ValueType};
use llopt_target::Feature;
use melior::ir::{OperationRef, Value, ValueLike};

use crate::llvm::emitter::{Emitter, V};
use crate::ops::matrix::warp_group_fragments::Repetitions;
use crate::ops::matrix::warp_group_operands::Sources;
use crate::targets::hooks::{Adds, GroupProduct, GroupStep, GroupTypes, WarpGroupHooks};
use crate::values::element::LlvmType;
use crate::values::words;
use crate::walk::function::{FunctionLowering, Lowered};

/// The name of an operand's element in the instruction set.
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

/// Whether a tensor is computed from data read from shared memory, and not from the result of an earlier product.
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
    // All registers of all tensors at once: their contents are defined from the wait on.
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
    let sources = Sources::of(lowering, op)?;
    let [first, second] = sources.elements();
    let types = types(result.element, first, second).ok_or_else(|| {
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
    let operands = sources.operands(lowering, operation, &result, &repetitions, types.bits)?;
    let before = accumulators(lowering, op, &result, &repetitions);
    // How far along k the unit accumulates by itself.
    let precise_every = imprecise_depth(&op, result.element, first, depth);
    let mut chunks: Vec<Vec<GroupStep<'ctx>>> = Vec::new();
    for chunk in (0..depth).step_by(precise_every.unwrap_or(depth) as usize) {
        let end = (chunk + precise_every.unwrap_or(depth)).min(depth);
        let mut steps = Vec::new();
        for (number, (row, column, _)) in repetitions.tiles.iter().enumerate() {
            for at in (chunk..end).step_by(step_depth as usize) {
                steps.push(GroupStep {
                    result: number,
                    first: operands.first_at(lowering, operation, *row, at)?,
                    second: operands.second_at(lowering, operation, *column, at)?,
                    adds: if at > chunk {
                        Adds::Always
                    } else {
                        Adds::Never
                    },
                });
            }
        }
        chunks.push(steps);
    }
    let per_word = 32 / result.element.memory_bits() as usize;
    let [first_transposed, second_transposed] = operands.transposed();
    let mut product = GroupProduct {
        types,
        columns: repetitions.columns,
        results: vec![None; repetitions.tiles.len()],
        registers: repetitions.columns as usize / 2 / per_word,
        steps: Vec::new(),
        first_transposed,
        second_transposed,
        ends: true,
        // Halves of a register are extracted, which has to wait for the product.
        waits: !op.is_async() || per_word > 1,
    };
    let words: Vec<V<'ctx>> = if precise_every.is_some() {
        add_chunks(lowering.e, hooks, product, chunks, before)
    } else {
        product.steps = chunks.into_iter().flatten().collect();
        if let Some((values, adds)) = before {
            product.results = values.into_iter().map(Some).collect();
            for step in &mut product.steps {
                if matches!(step.adds, Adds::Never) {
                    step.adds = adds;
                }
            }
        }
        match operands.has_first_in_registers() && is_read(op.a()) {
            true => multiply_in_steps(lowering.e, hooks, product),
            false => hooks.multiply(lowering.e, &product),
        }
    };
    bind_fragments(lowering, operation, &result, &repetitions, &words, per_word);
    Ok(())
}

/// A product whose sums lose bits inside the unit: the sum of each chunk of steps is waited for, and added to the
/// accumulator outside the unit.
fn add_chunks<'ctx>(
    e: &Emitter<'ctx>,
    hooks: &dyn WarpGroupHooks,
    mut product: GroupProduct<'ctx>,
    chunks: Vec<Vec<GroupStep<'ctx>>>,
    before: Option<(Vec<Vec<V<'ctx>>>, Adds<'ctx>)>,
) -> Vec<V<'ctx>> {
    product.waits = true;
    let mut sum: Option<Vec<V<'ctx>>> = before.as_ref().map(|(values, adds)| {
        let zero = e.f32(0.0);
        let values = values.iter().flatten();
        match adds {
            Adds::If(condition) => values
                .map(|value| e.select(*condition, *value, zero))
                .collect(),
            _ => values.copied().collect(),
        }
    });
    for steps in chunks {
        product.steps = steps;
        let partial = hooks.multiply(e, &product);
        sum = Some(match sum {
            None => partial,
            Some(sum) => sum
                .into_iter()
                .zip(partial)
                .map(|(sum, partial)| e.fadd(sum, partial))
                .collect(),
        });
    }
    sum.unwrap_or_default()
}

/// A product whose first operand is computed in registers: each step along k has its own fence. The first step begins
/// when its registers are computed, and those of the others are computed while it runs.
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

/// The number of elements along k after which sums of the unit are accumulated outside of it; `None` if never.
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

/// The words of the accumulators before the product, and whether they count; `None` if they never do.
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

/// Binds the registers of the fragments to the result.
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
