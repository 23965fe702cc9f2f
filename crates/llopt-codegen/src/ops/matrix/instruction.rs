//! A product by executions of a matrix instruction.
//!
//! The accumulators stay packed from the first execution to the last; an operand is packed once, however many tiles
//! it is multiplied with. The outer loop of executions is along k, so consecutive executions add to different
//! accumulators, and an operand's fragment is needed only at one k: operands that do not fit into registers are
//! loaded and computed then, together with as many of the next ones as there is room for
//! ([`crate::walk::emit_late`]).

use std::rc::Rc;

use inkwell::IntPredicate;
use llopt_dialects::ttg::{LocalLoadOp, LocalStoreOp};
use llopt_dialects::{Op, amdg, tt};
use llopt_mlir::ir::{OperationExt, ValueExt};
use llopt_plan::late_operands::LATE;
use llopt_plan::product::Selection;
use llopt_plan::tensor::{TensorType, ValueType};
use llopt_target::Feature;
use llopt_target::matrix::{MatrixElement, Operand};
use melior::ir::{BlockLike, OperationRef, Value};

use crate::llvm::emitter::V;
use crate::ops::memory::local;
use crate::targets::hooks::{MatrixHooks, Scheduling};
use crate::values::element::LlvmType;
use crate::values::registers::Registers;
use crate::walk::decision::{Choice, Product};
use crate::walk::emit_late;
use crate::walk::function::{FunctionLowering, Lowered, integer_attribute};
use crate::walk::late::Emitted;

/// Cycles of an execution during which a warp issues many other instructions.
const LONG: u32 = 32;
/// Cycles for which an instruction of a wave of 64 threads keeps its 16 lanes busy.
const CYCLES_OF_ONE: u32 = 4;

/// Whether a product reads its operands unchanged and its block has no other work than this sum of products and
/// addresses, and gives the instruction scheduler no hints itself.
fn is_scheduled_alone(op: OperationRef<'_, '_>) -> bool {
    let is_read = |operand: Value<'_, '_>| LocalLoadOp::defining(operand).is_some();
    op.operand_values().take(2).all(is_read) && is_only_sum(op)
}

/// Whether an operation is a product of matrix units.
fn is_product(op: OperationRef<'_, '_>) -> bool {
    tt::DotOp::of(op).is_some() || tt::DotScaledOp::of(op).is_some()
}

/// Whether each product of a block adds to the one before it, as those of unrolled iterations do, and nothing in the block
/// says how instructions are scheduled.
fn is_only_sum(op: OperationRef<'_, '_>) -> bool {
    let mut next = op.parent_block().and_then(|block| block.first_operation());
    let mut before: Option<OperationRef<'_, '_>> = None;
    while let Some(other) = next {
        if matches!(Op::of(other), Some(Op::Rocdl(_))) {
            return false;
        }
        if is_product(other) {
            let adds = |last: OperationRef<'_, '_>| {
                other
                    .operand_values()
                    .any(|operand| operand.defining_op() == Some(last))
            };
            if !before.is_none_or(adds) {
                return false;
            }
            before = Some(other);
        }
        next = other.next_op();
    }
    true
}

/// How many executions of an instruction that keeps its unit busy for so many cycles are to stand behind the last place
/// at which nothing has waited for global memory yet: as many as hide what becomes of what has been loaded for later
/// iterations. LLVM's scheduler knows a latency that caches do not have, and would wait for it between the first products.
/// `None` if nothing is loaded before the product, in this iteration or the one before, that is stored to shared memory
/// behind it.
fn behind_loads(
    lowering: &FunctionLowering<'_, '_>,
    op: OperationRef<'_, '_>,
    busy: u32,
) -> Option<usize> {
    // An MFMA leaves the wave time for other instructions; a WMMA is over before many are issued.
    if !lowering.hooks().target().has(Feature::Mfma) || !is_only_sum(op) {
        return None;
    }
    let mut instructions = 0;
    let mut next = op.next_op();
    while let Some(other) = next {
        next = other.next_op().filter(|next| !is_product(*next));
        let Some(store) = LocalStoreOp::of(other) else {
            continue;
        };
        let is_before = |load: &OperationRef<'_, '_>| {
            let is_load =
                tt::LoadOp::of(*load).is_some() || amdg::BufferLoadOp::of(*load).is_some();
            is_load && load.parent_block() == op.parent_block() && load.is_before(op)
        };
        let is_loaded = match store.src().defining_op() {
            Some(load) => is_before(&load),
            // The loop carries it from the iteration before.
            None => true,
        };
        if is_loaded {
            let of = lowering.tensor_of(other, store.src()).ok()?;
            // A permute or a move for each word.
            instructions += (of.registers() as u32 * of.element.bits()).div_ceil(u32::BITS);
            let access = local::planned_store(lowering, store)?;
            if access.selects() > 0 {
                // Lanes that store in different orders select words, and have an address of their own for each store.
                instructions += access.selects() + access.instructions;
            }
        }
    }
    // Each takes a quarter of the wave in a cycle.
    let hidden = instructions * CYCLES_OF_ONE;
    (instructions > 0).then(|| hidden.div_ceil(busy.max(1)) as usize)
}

/// The types in which floating-point products of narrow elements are summed.
pub(crate) const SUMS: &[MatrixElement] = &[MatrixElement::F32];

/// A matrix of a product: its type, and its registers.
pub(crate) type Matrix<'ctx> = (Rc<TensorType>, Registers<'ctx>);

/// An operand of a product: its type, and the source of its registers.
pub(crate) struct Factor<'c, 'a, 'ctx> {
    pub(crate) of: Rc<TensorType>,
    /// The registers that have been emitted.
    registers: Vec<Option<V<'ctx>>>,
    /// The source of the others.
    late: Option<Value<'c, 'a>>,
}

impl<'c, 'a, 'ctx> Factor<'c, 'a, 'ctx> {
    /// An operand of a product: in registers, unless the product is one that takes its operands late.
    pub(super) fn of(
        lowering: &FunctionLowering<'_, 'ctx>,
        product: OperationRef<'_, '_>,
        value: Value<'c, 'a>,
    ) -> Lowered<Self> {
        let of = lowering.tensor_of(product, value)?;
        Ok(match lowering.known_registers(value) {
            Some(registers) => Self::emitted((of, registers)),
            None if lowering.late.is_awaited(product) => Self::late(of, value),
            None => Self::emitted((of, lowering.registers(value))),
        })
    }

    /// An operand that is in registers.
    pub(crate) fn emitted((of, registers): Matrix<'ctx>) -> Self {
        Self {
            of,
            registers: registers.iter().copied().map(Some).collect(),
            late: None,
        }
    }

    /// An operand whose registers are emitted when the product uses them.
    fn late(of: Rc<TensorType>, value: Value<'c, 'a>) -> Self {
        Self {
            registers: vec![None; of.registers()],
            of,
            late: Some(value),
        }
    }

    /// Whether some register of a part, in which each register has `packed` elements, has not been emitted.
    pub(super) fn lacks(&self, part: &[Option<u32>], packed: u32) -> bool {
        let mut registers = part.iter().flatten();
        registers.any(|register| self.registers[(register / packed) as usize].is_none())
    }
}

/// The inputs of a product.
pub(crate) struct Factors<'c, 'a, 'ctx> {
    /// The operands.
    pub(crate) matrices: [Factor<'c, 'a, 'ctx>; 2],
    /// The number of elements in one element of the tensor, for each operand; the selection counts them one by one.
    pub(crate) packed: [u32; 2],
    /// The accumulator.
    pub(crate) sum: Matrix<'ctx>,
    /// For each part of the instruction's first and second operand, the word with its scale.
    pub(crate) scales: Option<[Vec<V<'ctx>>; 2]>,
}

/// All registers of an operand.
pub(super) fn whole<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    factor: &mut Factor<'_, '_, 'ctx>,
) -> Lowered<Matrix<'ctx>> {
    let all: Vec<u32> = (0..factor.of.registers() as u32).collect();
    let registers = registers_of(lowering, factor, &all)?;
    Ok((Rc::clone(&factor.of), registers.into()))
}

/// Registers of an operand, emitted if they have not been.
pub(super) fn registers_of<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    factor: &mut Factor<'_, '_, 'ctx>,
    wanted: &[u32],
) -> Lowered<Vec<V<'ctx>>> {
    let mut part = vec![false; factor.registers.len()];
    for register in wanted {
        part[*register as usize] = factor.registers[*register as usize].is_none();
    }
    if let Some(value) = factor.late.filter(|_| part.contains(&true)) {
        let emitted = emit_late::registers(lowering, value, Emitted::Deferred, &mut part)?;
        for (register, _) in part.iter().enumerate().filter(|(_, part)| **part) {
            factor.registers[register].get_or_insert(emitted[register]);
        }
    }
    let registers = wanted
        .iter()
        .map(|register| factor.registers[*register as usize]);
    let registers: Option<Vec<V<'ctx>>> = registers.collect();
    Ok(registers.expect("bug in llopt: an operand is emitted before its product"))
}

/// The fragments of an operand for executions of an instruction: `operand` says how they are packed, the parts which
/// registers they consist of.
fn fragment<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    unit: &dyn MatrixHooks,
    selection: &Selection,
    factors: &mut Factors<'_, '_, 'ctx>,
    (matrix, operand): (usize, &Operand),
    part: &[Option<u32>],
) -> Lowered<Vec<V<'ctx>>> {
    let packed = factors.packed[matrix];
    let part: Vec<Option<u32>> = part
        .iter()
        .step_by(packed as usize)
        .map(|register| Some((*register)? / packed))
        .collect();
    let wanted: Vec<u32> = part.iter().copied().flatten().collect();
    let factor = &mut factors.matrices[matrix];
    let mut registers = registers_of(lowering, factor, &wanted)?.into_iter();
    let (e, row) = (lowering.e, selection.instruction);
    let zero = || e.zero(factor.of.element.llvm(e.context));
    let elements: Vec<V<'ctx>> = part
        .into_iter()
        .map(|register| register.and_then(|_| registers.next()).unwrap_or_else(zero))
        .collect();
    let repeating = match row.steps {
        1 => selection.division.repeating_lanes,
        _ => 0,
    };
    Ok(in_lanes(
        lowering,
        repeating,
        unit.pack(e, row, operand, &elements),
    ))
}

/// The fragments of the two operands of a product: those that are packed already, and what is needed to load others.
struct Fragments<'s, 'ctx> {
    selection: &'s Selection,
    /// The matrix on each side of an execution.
    matrices: [usize; 2],
    /// Whether late registers of it are read unchanged; registers computed from what is read need more registers than
    /// their own.
    is_read: [bool; 2],
    /// Whether some late operand is computed from what is read: then nothing is read ahead.
    is_computed: bool,
    /// The words for which a thread has room in addition to everything else, if operands are late.
    room: Option<u32>,
    /// For each fragment the last execution that uses it.
    last_steps: [Vec<usize>; 2],
    packed: [Vec<Option<Vec<V<'ctx>>>>; 2],
}

impl<'s, 'ctx> Fragments<'s, 'ctx> {
    fn new(selection: &'s Selection, factors: &Factors<'_, '_, 'ctx>, room: Option<u32>) -> Self {
        let division = &selection.division;
        let first = usize::from(selection.exchanged);
        let matrices = [first, 1 - first];
        let counts = [division.a.len(), division.b.len()];
        let mut last_steps = counts.map(|count| vec![0; count]);
        for (at, step) in division.steps.iter().enumerate() {
            last_steps[0][step.a as usize] = at;
            last_steps[1][step.b as usize] = at;
        }
        Self {
            selection,
            matrices,
            is_read: matrices.map(|matrix| {
                let late = factors.matrices[matrix].late;
                late.is_some_and(|late| LocalLoadOp::defining(late).is_some())
            }),
            room,
            is_computed: matrices.iter().any(|matrix| {
                let late = factors.matrices[*matrix].late;
                late.is_some_and(|late| LocalLoadOp::defining(late).is_none())
            }),
            last_steps,
            packed: counts.map(|count| vec![None; count]),
        }
    }

    /// The registers of a fragment, and the form in which the instruction takes them.
    fn part(&self, side: usize, index: usize) -> (&'s Operand, &'s [Option<u32>]) {
        let (row, division) = (self.selection.instruction, &self.selection.division);
        match side {
            0 => (&row.a, &division.a[index]),
            _ => (&row.b, &division.b[index]),
        }
    }

    /// Words that a fragment takes.
    fn words(&self, side: usize, index: usize) -> u32 {
        let (operand, part) = self.part(side, index);
        (part.len() as u32 * operand.element.bits()).div_ceil(u32::BITS)
    }

    /// Whether registers of a fragment have not been emitted.
    fn lacks(&self, factors: &Factors<'_, '_, 'ctx>, side: usize, index: usize) -> bool {
        let matrix = self.matrices[side];
        let (_, part) = self.part(side, index);
        factors.matrices[matrix].lacks(part, factors.packed[matrix])
    }

    /// Emits the fragments of execution `at`, and of the next ones as long as there is room in addition to those that
    /// are still to be used.
    fn bring(
        &mut self,
        lowering: &mut FunctionLowering<'_, 'ctx>,
        unit: &dyn MatrixHooks,
        factors: &mut Factors<'_, '_, 'ctx>,
        at: usize,
    ) -> Lowered {
        let steps = &self.selection.division.steps[at..];
        let Some(step) = steps.first() else {
            return Ok(());
        };
        let wanted = [step.a as usize, step.b as usize];
        let lacking: Vec<usize> = (0..2)
            .filter(|side| self.packed[*side][wanted[*side]].is_none())
            .filter(|side| self.lacks(factors, *side, wanted[*side]))
            .collect();
        if self.room.is_some() && !lacking.is_empty() {
            // LLVM's scheduler would move the loads of all fragments together, and its time grows with the number of
            // loads that it may move together.
            let barrier = Scheduling::Barrier { may_pass: 0 };
            lowering.hooks().schedule(lowering.e, barrier);
        }
        let mut left = self
            .room
            .filter(|_| !lacking.is_empty() && !self.is_computed)
            .unwrap_or(0);
        left = left.saturating_sub(self.held(at));
        for (ahead, next) in steps.iter().enumerate() {
            for (side, index) in [next.a as usize, next.b as usize].into_iter().enumerate() {
                let is_early = ahead > 0;
                if self.packed[side][index].is_some()
                    || is_early && !(self.is_read[side] && self.lacks(factors, side, index))
                {
                    continue;
                }
                let words = self.words(side, index);
                if is_early && words > left {
                    left = 0;
                    continue;
                }
                left = left.saturating_sub(words);
                let (operand, part) = self.part(side, index);
                let of = (self.matrices[side], operand);
                let values = fragment(lowering, unit, self.selection, factors, of, part)?;
                self.packed[side][index] = Some(values);
            }
            if left == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Words of the packed fragments that execution `at` or a later one uses.
    fn held(&self, at: usize) -> u32 {
        let of_side = |side: usize| {
            let last = &self.last_steps[side];
            let held = (0..last.len())
                .filter(move |index| self.packed[side][*index].is_some() && last[*index] >= at);
            held.map(|index| self.words(side, index)).sum::<u32>()
        };
        of_side(0) + of_side(1)
    }
}

/// The registers of a product, by executions of a matrix instruction.
pub(crate) fn product<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    unit: &dyn MatrixHooks,
    selection: &Selection,
    factors: &mut Factors<'_, '_, 'ctx>,
) -> Lowered<Registers<'ctx>> {
    let e = lowering.e;
    let (row, division) = (selection.instruction, &selection.division);
    lowering.record(op, || Choice::Product(Product::of(selection)));
    let (of_sum, sum) = factors.sum.clone();
    let mut sums: Vec<Vec<V<'ctx>>> = division
        .tiles
        .iter()
        .map(|tile| {
            let elements: Vec<V<'ctx>> = tile.iter().map(|i| sum[*i as usize]).collect();
            unit.pack(e, row, &row.accumulator, &elements)
        })
        .collect();
    // Lanes that repeat elements along k get zeros; repeated steps of lanes are left out.
    let repeating_in_steps = match row.steps {
        1 => 0,
        _ => division.repeating_lanes,
    };
    let room = integer_attribute(op, LATE).and_then(|words| u32::try_from(words).ok());
    let mut fragments = Fragments::new(selection, factors, room);
    let is_alone = room.is_none() && row.issue_cycles >= LONG && is_scheduled_alone(op);
    let beside = |lowering: &FunctionLowering<'_, 'ctx>, products: usize| {
        if is_alone {
            let products = Scheduling::BesideProducts(products as u32);
            lowering.hooks().schedule(e, products);
        }
    };
    let steps = division.steps.len();
    let behind = match room {
        None => behind_loads(lowering, op, row.issue_cycles).filter(|behind| *behind < steps),
        Some(_) => None,
    };
    for (at, step) in division.steps.iter().enumerate() {
        if behind.is_some_and(|behind| at + behind == steps) {
            beside(lowering, at);
            let barrier = Scheduling::Barrier { may_pass: 0 };
            lowering.hooks().schedule(e, barrier);
        }
        fragments.bring(lowering, unit, factors, at)?;
        let (a, b) = (step.a as usize, step.b as usize);
        let scales = factors
            .scales
            .as_ref()
            .map(|[of_a, of_b]| [of_a[a], of_b[b]]);
        let sum = &mut sums[step.tile as usize];
        let [lefts, rights] = &fragments.packed;
        let (Some(left), Some(right)) = (&lefts[a], &rights[b]) else {
            continue;
        };
        *sum = unit.multiply(e, row, [left, right], sum, repeating_in_steps, scales);
    }
    beside(lowering, behind.unwrap_or(steps));
    let sums: Vec<Vec<V<'ctx>>> = sums.iter().map(|sum| unit.unpack(e, row, sum)).collect();
    let of = ValueType::Tensor(of_sum);
    let distinct: Vec<V<'ctx>> = of
        .distinct_registers()
        .map(|register| {
            let (tile, place) = division.results[register];
            sums[tile as usize][place as usize]
        })
        .collect();
    Ok(of.spread(&distinct))
}

/// Values that are zero in the lanes whose number has a bit of `repeating`: other lanes add their elements.
fn in_lanes<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    repeating: u32,
    values: Vec<V<'ctx>>,
) -> Vec<V<'ctx>> {
    if repeating == 0 {
        return values;
    }
    let e = lowering.e;
    let lane = lowering.threads.thread(e, lowering.hooks());
    let repeats = e.and(lane, e.i32(i64::from(repeating)));
    let counts = e.icmp(IntPredicate::EQ, repeats, e.i32(0));
    values
        .into_iter()
        .map(|value| e.select(counts, value, e.zero(value.get_type())))
        .collect()
}
