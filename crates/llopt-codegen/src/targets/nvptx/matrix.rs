//! NVIDIA's matrix instructions of one warp (`mma.sync`) through LLVM's intrinsics.
//!
//! Operands are registers of 32 bits, each with consecutive elements along k: to LLVM, pairs of halves are vectors of
//! two, and everything else except doubles is an integer. Accumulators are scalars, or pairs of halves. The
//! intrinsics read no memory and have no side effect, so LLVM moves them like any arithmetic.
//!
//! # Eight-bit floats where the unit has none
//!
//! Hopper carries out `mma.m16n8k32` of eight-bit floats as two products of halves, `m16n8k16`, of which the first
//! starts from zero, and adds their sum to the accumulator with separate instructions (`AfterTwoHalves`). These are
//! saved if the halves are multiplied here: a register has four consecutive elements along k, and two registers of
//! halves that are made from it in the same way for both operands have the same k. Widening is exact, and the sum
//! loses less precision.

use llopt_target::matrix::{
    AccumulatorOrder, MatrixElement, MatrixInstruction, Operand, accumulation, instructions_for,
};

use crate::llvm::emitter::{Emitter, V};
use crate::targets::hooks::MatrixHooks;
use crate::targets::nvptx::Nvptx;
use crate::values::words::packed;

/// Bits of a register.
const REGISTER: u32 = 32;

impl MatrixHooks for Nvptx {
    fn pack<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        instruction: &MatrixInstruction,
        operand: &Operand,
        elements: &[V<'ctx>],
    ) -> Vec<V<'ctx>> {
        let bits = operand.element.bits();
        let i32 = e.int(REGISTER).into();
        if bits < REGISTER {
            let words = packed(e, self, elements, (REGISTER / bits) as usize);
            let halves = e.vector(e.context.f16_type().into(), 2).into();
            return match operand.element {
                MatrixElement::F16 => words.iter().map(|word| e.bitcast(*word, halves)).collect(),
                _ => words,
            };
        }
        if operand == &instruction.accumulator || bits > REGISTER {
            return elements.to_vec();
        }
        elements
            .iter()
            .map(|value| e.bitcast(*value, i32))
            .collect()
    }

    fn unpack<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        instruction: &MatrixInstruction,
        accumulator: &[V<'ctx>],
    ) -> Vec<V<'ctx>> {
        if instruction.accumulator.element.bits() >= REGISTER {
            return accumulator.to_vec();
        }
        accumulator
            .iter()
            .flat_map(|pair| e.unpack(*pair))
            .collect()
    }

    fn multiply<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        instruction: &'static MatrixInstruction,
        [a, b]: [&[V<'ctx>]; 2],
        sum: &[V<'ctx>],
        _repeating: u32,
        _scales: Option<[V<'ctx>; 2]>,
    ) -> Vec<V<'ctx>> {
        if let Some(halves) = self.halves(instruction) {
            let elements = [instruction.a.element, instruction.b.element];
            let [a, b] = [(a, elements[0]), (b, elements[1])].map(|(words, element)| {
                let widened = words.iter().map(|word| in_halves(e, *word, element));
                widened.collect::<Option<Vec<_>>>()
            });
            if let (Some(a), Some(b)) = (a, b) {
                return multiply_halves(e, halves, [&a, &b], sum);
            }
        }
        product(e, instruction, &[a, b, sum].concat(), sum.len())
    }
}

impl Nvptx {
    /// The product of halves that the unit executes twice for an instruction.
    fn halves(&self, instruction: &MatrixInstruction) -> Option<&'static MatrixInstruction> {
        let (target, result) = (self.target, instruction.accumulator.element);
        let known = accumulation(target, instruction.a.element, result, instruction.warps)?;
        if known.order != AccumulatorOrder::AfterTwoHalves {
            return None;
        }
        let depth = instruction.k / 2;
        instructions_for(target, MatrixElement::F16, MatrixElement::F16, result)
            .find(|of| of.warps == instruction.warps && of.k == depth)
    }
}

/// The results of an instruction.
fn product<'ctx>(
    e: &Emitter<'ctx>,
    instruction: &MatrixInstruction,
    operands: &[V<'ctx>],
    count: usize,
) -> Vec<V<'ctx>> {
    let sums = e.intrinsic(instruction.intrinsic, &[], operands);
    (0..count as u32).map(|i| e.member(sums, i)).collect()
}

/// The lower and the upper two floats of a register as halves; `None` if nothing widens them.
fn in_halves<'ctx>(
    e: &Emitter<'ctx>,
    word: V<'ctx>,
    element: MatrixElement,
) -> Option<[V<'ctx>; 2]> {
    let widening = match element {
        MatrixElement::E4m3 => "llvm.nvvm.e4m3x2.to.f16x2.rn",
        MatrixElement::E5m2 => "llvm.nvvm.e5m2x2.to.f16x2.rn",
        _ => return None,
    };
    let pairs = e.bitcast(word, e.vector(e.int(16).into(), 2).into());
    Some([0, 1].map(|i| e.intrinsic(widening, &[], &[e.extract(pairs, i)])))
}

/// A product of operands whose registers were widened to two, as two products. Each takes half of the registers,
/// which hold all rows for one half of k.
fn multiply_halves<'ctx>(
    e: &Emitter<'ctx>,
    halves: &MatrixInstruction,
    operands: [&[[V<'ctx>; 2]]; 2],
    sum: &[V<'ctx>],
) -> Vec<V<'ctx>> {
    let mut sums = sum.to_vec();
    for part in 0..2 {
        let of = |words: &[[V<'ctx>; 2]]| -> Vec<V<'ctx>> {
            let each = words.len() / 2;
            let words = &words[part * each..][..each];
            (0..2)
                .flat_map(|half| words.iter().map(move |word| word[half]))
                .collect()
        };
        let terms = [of(operands[0]), of(operands[1]), sums.clone()].concat();
        sums = product(e, halves, &terms, sum.len());
    }
    sums
}
