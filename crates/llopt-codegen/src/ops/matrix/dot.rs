//! `tt.dot`: a matrix instruction of the target, as often as the layouts ask for it.
//!
//! Which instruction, and which registers each execution of it takes, is decided from the layouts of the three
//! matrices ([`crate::plan::product`]). The sums stay packed from the first execution to the last; an operand is
//! packed once, however many tiles it is multiplied with. Executions go along k in the outer loop, so that those that
//! follow each other add to different sums, and an operand's fragment is wanted only while the loop is at its k: what
//! does not fit into registers is loaded and computed then, with as many of the next ones as there is room for
//! ([`crate::walk::emit_late`]).

use std::rc::Rc;

use inkwell::IntPredicate;
use llopt_dialects::ttg::LocalLoadOp;
use llopt_dialects::{Op, tt};
use llopt_layout::matrix_product::Matrices;
use llopt_mlir::ir::OperationExt;
use llopt_target::matrix::{MatrixElement, Operand};
use melior::ir::{BlockLike, OperationRef, Value};

use crate::llvm::emitter::V;
use crate::targets::hooks::{MatrixHooks, Scheduling};
use crate::values::element::LlvmType;
use crate::walk::decision::{Choice, Product};
use crate::walk::function::{FunctionLowering, Lowered, Registers, integer_attribute};
use crate::walk::late::Emitted;
use llopt_plan::element::{Element, Float8};
use llopt_plan::late_operands::LATE;
use llopt_plan::product::{Problem, Selection};
use llopt_plan::tensor::{TensorType, ValueType};

/// The types in which a matrix unit may take these elements. `rounds` says whether f32 may lose bits.
pub(super) fn unit_elements(element: Element, rounds: bool) -> &'static [MatrixElement] {
    match element {
        Element::F16 => &[MatrixElement::F16],
        Element::Bf16 => &[MatrixElement::Bf16],
        Element::F32 if rounds => &[MatrixElement::Tf32, MatrixElement::F32],
        Element::F32 => &[MatrixElement::F32],
        Element::F64 => &[MatrixElement::F64],
        Element::Int(8) => &[MatrixElement::S8],
        Element::Int(32) => &[MatrixElement::I32],
        Element::Float8(Float8::E4M3FN) => &[MatrixElement::E4m3],
        Element::Float8(Float8::E5M2) => &[MatrixElement::E5m2],
        Element::Float8(Float8::E4M3FNUZ) => &[MatrixElement::E4m3Fnuz],
        Element::Float8(Float8::E5M2FNUZ) => &[MatrixElement::E5m2Fnuz],
        Element::Int(_) | Element::Pointer { .. } => &[],
    }
}

/// Cycles of an execution beside which a warp issues many other instructions.
const LONG: u32 = 32;

/// Whether a product reads its operands as they are and is the only one of its block, where other work is of addresses
/// alone, and the block tells the scheduler of instructions nothing itself.
fn is_scheduled_alone(op: OperationRef<'_, '_>) -> bool {
    let is_read = |operand: Value<'_, '_>| LocalLoadOp::defining(operand).is_some();
    if !op.operand_values().take(2).all(is_read) {
        return false;
    }
    let mut next = op.parent_block().and_then(|block| block.first_operation());
    while let Some(other) = next {
        let is_product = tt::DotOp::of(other).is_some() || tt::DotScaledOp::of(other).is_some();
        if other != op && is_product || matches!(Op::of(other), Some(Op::Rocdl(_))) {
            return false;
        }
        next = other.next_op();
    }
    true
}

/// The types in which floating-point products of narrow elements are summed.
pub(crate) const SUMS: &[MatrixElement] = &[MatrixElement::F32];

/// A matrix of a product: its type, and its registers.
pub(crate) type Matrix<'ctx> = (Rc<TensorType>, Registers<'ctx>);

/// An operand of a product: its type, and where its registers come from.
pub(crate) struct Factor<'c, 'a, 'ctx> {
    pub(crate) of: Rc<TensorType>,
    /// The registers that have been emitted.
    registers: Vec<Option<V<'ctx>>>,
    /// What the others are emitted from.
    late: Option<Value<'c, 'a>>,
}

impl<'ctx> Factor<'_, '_, 'ctx> {
    /// An operand that is in registers.
    pub(crate) fn emitted((of, registers): Matrix<'ctx>) -> Self {
        Self {
            of,
            registers: registers.iter().copied().map(Some).collect(),
            late: None,
        }
    }

    /// Whether some register of a part, of which `packed` elements each lie in one, has not been emitted.
    fn lacks(&self, part: &[Option<u32>], packed: u32) -> bool {
        let mut registers = part.iter().flatten();
        registers.any(|register| self.registers[(register / packed) as usize].is_none())
    }
}

/// What a product is made from.
pub(crate) struct Factors<'c, 'a, 'ctx> {
    /// The operands.
    pub(crate) matrices: [Factor<'c, 'a, 'ctx>; 2],
    /// How many elements lie in one of the tensor's, for each operand; the selection counts them one by one.
    pub(crate) packed: [u32; 2],
    /// The accumulator.
    pub(crate) sum: Matrix<'ctx>,
    /// For each part of the instruction's first and second operand the word with its scale.
    pub(crate) scales: Option<[Vec<V<'ctx>>; 2]>,
}

impl<'r, 'c: 'a, 'a, 'ctx> FunctionLowering<'r, 'c, 'a, 'ctx> {
    /// `tt.dot`.
    pub(crate) fn dot(&mut self, op: tt::DotOp<'c, 'a>) -> Lowered {
        let operation = op.operation();
        let is_late = self.late.is_awaited(operation);
        let factor = |value| {
            let of = self.tensor_of(operation, value)?;
            Ok(match self.known_registers(value) {
                Some(registers) => Factor::emitted((of, registers)),
                None if is_late => Factor {
                    registers: vec![None; of.registers()],
                    of,
                    late: Some(value),
                },
                None => Factor::emitted((of, self.registers(value))),
            })
        };
        let mut factors = Factors {
            matrices: [factor(op.a())?, factor(op.b())?],
            packed: [1; 2],
            sum: (self.tensor_of(operation, op.c())?, self.registers(op.c())),
            scales: None,
        };
        let ([a, b], c) = (&factors.matrices, &factors.sum);
        let rounds = op.input_precision() == tt::InputPrecision::Tf32;
        let problem = Problem {
            layouts: Matrices {
                a: a.of.layout(),
                b: b.of.layout(),
                c: c.0.layout(),
            },
            a: unit_elements(a.of.element, rounds),
            b: unit_elements(b.of.element, rounds),
            c: unit_elements(c.0.element, false),
        };
        let target = self.hooks().target();
        let Some(unit) = self.hooks().matrices() else {
            return self.otherwise(op, factors, None);
        };
        match problem.select(target, |row| row.scale.is_none()) {
            Ok(selection) => {
                let values = self.by_instruction(operation, unit, &selection, &mut factors)?;
                self.bind_result(operation, values);
                Ok(())
            }
            Err(reason) => self.otherwise(op, factors, reason),
        }
    }

    /// All registers of an operand.
    pub(super) fn whole(&mut self, factor: &mut Factor<'c, 'a, 'ctx>) -> Lowered<Matrix<'ctx>> {
        let all: Vec<u32> = (0..factor.of.registers() as u32).collect();
        let registers = self.registers_of(factor, &all)?;
        Ok((Rc::clone(&factor.of), registers.into()))
    }

    /// Registers of an operand, emitted if they have not been.
    fn registers_of(
        &mut self,
        factor: &mut Factor<'c, 'a, 'ctx>,
        wanted: &[u32],
    ) -> Lowered<Vec<V<'ctx>>> {
        let mut part = vec![false; factor.registers.len()];
        for register in wanted {
            part[*register as usize] = factor.registers[*register as usize].is_none();
        }
        if let Some(value) = factor.late.filter(|_| part.contains(&true)) {
            let emitted = self.late_registers(value, Emitted::Deferred, &mut part)?;
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

    /// The fragments of an operand that executions of an instruction take: `operand` says how they are packed, the
    /// parts which registers they are of.
    fn fragment(
        &mut self,
        unit: &dyn MatrixHooks,
        selection: &Selection,
        factors: &mut Factors<'c, 'a, 'ctx>,
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
        let mut registers = self.registers_of(factor, &wanted)?.into_iter();
        let (e, row) = (self.e, selection.instruction);
        let zero = || e.zero(factor.of.element.llvm(e.context));
        let elements: Vec<V<'ctx>> = part
            .into_iter()
            .map(|register| register.and_then(|_| registers.next()).unwrap_or_else(zero))
            .collect();
        let repeating = match row.steps {
            1 => selection.division.repeating_lanes,
            _ => 0,
        };
        Ok(self.in_lanes(repeating, unit.pack(e, row, operand, &elements)))
    }

    /// The registers of a product, by executions of a matrix instruction.
    pub(crate) fn by_instruction(
        &mut self,
        op: OperationRef<'c, 'a>,
        unit: &dyn MatrixHooks,
        selection: &Selection,
        factors: &mut Factors<'c, 'a, 'ctx>,
    ) -> Lowered<Registers<'ctx>> {
        let e = self.e;
        let (row, division) = (selection.instruction, &selection.division);
        self.record(op, || Choice::Product(Product::of(selection)));
        let (of_sum, sum) = factors.sum.clone();
        let mut sums: Vec<Vec<V<'ctx>>> = division
            .tiles
            .iter()
            .map(|tile| {
                let elements: Vec<V<'ctx>> = tile.iter().map(|i| sum[*i as usize]).collect();
                unit.pack(e, row, &row.accumulator, &elements)
            })
            .collect();
        // Who repeats elements along k has zeros, or where lanes give them one after the other, is left out.
        let repeating_in_steps = match row.steps {
            1 => 0,
            _ => division.repeating_lanes,
        };
        let room = integer_attribute(op, LATE).and_then(|words| u32::try_from(words).ok());
        let first = usize::from(selection.exchanged);
        let sides = [
            ((first, &row.a), &division.a),
            ((1 - first, &row.b), &division.b),
        ];
        let mut fragments = sides.map(|(_, parts)| vec![None; parts.len()]);
        // What is computed on its way takes more registers than its own.
        let is_read = sides.map(|((matrix, _), _)| {
            let late = factors.matrices[matrix].late;
            late.is_some_and(|late| LocalLoadOp::defining(late).is_some())
        });
        let mut last_steps = sides.map(|(_, parts)| vec![0; parts.len()]);
        for (at, step) in division.steps.iter().enumerate() {
            last_steps[0][step.a as usize] = at;
            last_steps[1][step.b as usize] = at;
        }
        for (at, step) in division.steps.iter().enumerate() {
            let (a, b) = (step.a as usize, step.b as usize);
            let lacks = |factors: &Factors<'c, 'a, 'ctx>, side: usize, index: usize| {
                let ((matrix, _), parts) = &sides[side];
                factors.matrices[*matrix].lacks(&parts[index], factors.packed[*matrix])
            };
            let is_lacking = (fragments[0][a].is_none() && lacks(factors, 0, a))
                || (fragments[1][b].is_none() && lacks(factors, 1, b));
            if is_lacking && room.is_some() {
                // LLVM's scheduler would bring the loads of all fragments together, and takes the longer the more it
                // may bring together.
                let barrier = Scheduling::Barrier { may_pass: 0 };
                self.hooks().schedule(e, barrier);
            }
            // Those of this step, and of the next ones as far as there is room beside those that are still to be used.
            let words = |side: usize, index: usize| {
                let ((_, operand), parts) = &sides[side];
                (parts[index].len() as u32 * operand.element.bits()).div_ceil(u32::BITS)
            };
            let mut left = room.filter(|_| is_lacking).unwrap_or(0);
            for (side, last) in last_steps.iter().enumerate() {
                let held = (0..last.len())
                    .filter(|index| fragments[side][*index].is_some() && last[*index] >= at);
                left = left.saturating_sub(held.map(|index| words(side, index)).sum());
            }
            for (ahead, next) in division.steps[at..].iter().enumerate() {
                for (side, index) in [next.a as usize, next.b as usize].into_iter().enumerate() {
                    let is_known = fragments[side][index].is_some();
                    if is_known || ahead > 0 && !(is_read[side] && lacks(factors, side, index)) {
                        continue;
                    }
                    let (of, parts) = sides[side];
                    let part = &parts[index];
                    let words = words(side, index);
                    if ahead > 0 && words > left {
                        left = 0;
                        continue;
                    }
                    left = left.saturating_sub(words);
                    fragments[side][index] =
                        Some(self.fragment(unit, selection, factors, of, part)?);
                }
                if left == 0 {
                    break;
                }
            }
            let scales = factors
                .scales
                .as_ref()
                .map(|[of_a, of_b]| [of_a[a], of_b[b]]);
            let sum = &mut sums[step.tile as usize];
            let [lefts, rights] = &fragments;
            let (Some(left), Some(right)) = (&lefts[a], &rights[b]) else {
                continue;
            };
            *sum = unit.multiply(e, row, [left, right], sum, repeating_in_steps, scales);
        }
        if room.is_none() && row.issue_cycles >= LONG && is_scheduled_alone(op) {
            let products = Scheduling::BesideProducts(division.steps.len() as u32);
            self.hooks().schedule(e, products);
        }
        let sums: Vec<Vec<V<'ctx>>> = sums.iter().map(|sum| unit.unpack(e, row, sum)).collect();
        let of = ValueType::Tensor(of_sum);
        let distinct: Vec<V<'ctx>> = self
            .distinct_registers(&of)
            .map(|register| {
                let (tile, place) = division.results[register];
                sums[tile as usize][place as usize]
            })
            .collect();
        Ok(self.spread(&of, &distinct))
    }

    /// Values that are zero in the lanes whose number has a bit of `repeating`: their elements are summed elsewhere.
    fn in_lanes(&self, repeating: u32, values: Vec<V<'ctx>>) -> Vec<V<'ctx>> {
        if repeating == 0 {
            return values;
        }
        let e = self.e;
        let lane = self.threads.thread(e, self.hooks());
        let repeats = e.and(lane, e.i32(i64::from(repeating)));
        let counts = e.icmp(IntPredicate::EQ, repeats, e.i32(0));
        values
            .into_iter()
            .map(|value| e.select(counts, value, e.zero(value.get_type())))
            .collect()
    }
}
