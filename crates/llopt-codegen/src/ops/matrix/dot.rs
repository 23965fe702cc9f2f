//! `tt.dot`: a matrix instruction of the target, as often as the layouts ask for it.
//!
//! Which instruction, and which registers each execution of it takes, is decided from the layouts of the three
//! matrices ([`crate::plan::product`]). The sums stay packed from the first execution to the last; an operand is
//! packed once, however many tiles it is multiplied with. Executions go along k in the outer loop, so that those that
//! follow each other add to different sums.

use std::rc::Rc;

use inkwell::IntPredicate;
use llopt_dialects::tt;
use llopt_layout::matrix_product::Matrices;
use llopt_target::matrix::{MatrixElement, Operand};
use melior::ir::OperationRef;

use crate::llvm::emitter::V;
use crate::targets::hooks::MatrixHooks;
use crate::walk::decision::{Choice, Product};
use crate::walk::function::{FunctionLowering, Lowered, Registers};
use llopt_plan::element::{Element, Float8};
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

/// The types in which floating-point products of narrow elements are summed.
pub(crate) const SUMS: &[MatrixElement] = &[MatrixElement::F32];

/// A matrix of a product: its type, and its registers.
pub(crate) type Matrix<'ctx> = (Rc<TensorType>, Registers<'ctx>);

/// What a product is made from.
pub(crate) struct Factors<'ctx> {
    /// The operands.
    pub(crate) matrices: [Matrix<'ctx>; 2],
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
        let matrix = |value| Ok((self.tensor_of(operation, value)?, self.registers(value)));
        let factors = Factors {
            matrices: [matrix(op.a())?, matrix(op.b())?],
            packed: [1; 2],
            sum: matrix(op.c())?,
            scales: None,
        };
        let ([a, b], c) = (&factors.matrices, &factors.sum);
        let rounds = op.input_precision() == tt::InputPrecision::Tf32;
        let problem = Problem {
            layouts: Matrices {
                a: a.0.layout(),
                b: b.0.layout(),
                c: c.0.layout(),
            },
            a: unit_elements(a.0.element, rounds),
            b: unit_elements(b.0.element, rounds),
            c: unit_elements(c.0.element, false),
        };
        let target = self.hooks().target();
        let Some(unit) = self.hooks().matrices() else {
            return self.otherwise(op, &factors, None);
        };
        match problem.select(target, |row| row.scale.is_none()) {
            Ok(selection) => {
                let values = self.by_instruction(operation, unit, &selection, &factors);
                self.bind_result(operation, values);
                Ok(())
            }
            Err(reason) => self.otherwise(op, &factors, reason),
        }
    }

    /// The registers of a product, by executions of a matrix instruction.
    pub(crate) fn by_instruction(
        &self,
        op: OperationRef<'c, 'a>,
        unit: &dyn MatrixHooks,
        selection: &Selection,
        factors: &Factors<'ctx>,
    ) -> Registers<'ctx> {
        let e = self.e;
        let (row, division) = (selection.instruction, &selection.division);
        self.record(op, || Choice::Product(Product::of(selection)));
        let (of_sum, sum) = &factors.sum;
        let mut sums: Vec<Vec<V<'ctx>>> = division
            .tiles
            .iter()
            .map(|tile| {
                let elements: Vec<V<'ctx>> = tile.iter().map(|i| sum[*i as usize]).collect();
                unit.pack(e, row, &row.accumulator, &elements)
            })
            .collect();
        // Who repeats elements along k has zeros, or where lanes give them one after the other, is left out.
        let (repeating_in_lanes, repeating_in_steps) = match row.steps {
            1 => (division.repeating_lanes, 0),
            _ => (0, division.repeating_lanes),
        };
        let pack = |matrix: usize, operand: &Operand, parts: &[Vec<Option<u32>>]| {
            let (registers, packed) = (&factors.matrices[matrix].1, factors.packed[matrix]);
            let parts = parts.iter().map(|part| {
                let part: Vec<Option<u32>> =
                    part.iter().step_by(packed as usize).copied().collect();
                let place = |register: u32| registers[(register / packed) as usize];
                let zero = e.zero(registers[0].get_type());
                let elements: Vec<V<'ctx>> = part
                    .into_iter()
                    .map(|register| register.map_or(zero, place))
                    .collect();
                self.in_lanes(repeating_in_lanes, unit.pack(e, row, operand, &elements))
            });
            parts.collect::<Vec<_>>()
        };
        let first = usize::from(selection.exchanged);
        let lefts = pack(first, &row.a, &division.a);
        let rights = pack(1 - first, &row.b, &division.b);
        for step in &division.steps {
            let (a, b) = (step.a as usize, step.b as usize);
            let scales = factors
                .scales
                .as_ref()
                .map(|[of_a, of_b]| [of_a[a], of_b[b]]);
            let sum = &mut sums[step.tile as usize];
            let operands = [&lefts[a][..], &rights[b][..]];
            *sum = unit.multiply(e, row, operands, sum, repeating_in_steps, scales);
        }
        let sums: Vec<Vec<V<'ctx>>> = sums.iter().map(|sum| unit.unpack(e, row, sum)).collect();
        let of = ValueType::Tensor(Rc::clone(of_sum));
        let distinct: Vec<V<'ctx>> = self
            .distinct_registers(&of)
            .map(|register| {
                let (tile, place) = division.results[register];
                sums[tile as usize][place as usize]
            })
            .collect();
        self.spread(&of, &distinct)
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
