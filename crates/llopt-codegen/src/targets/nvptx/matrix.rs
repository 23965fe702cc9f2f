//! NVIDIA's matrix instructions of one warp (`mma.sync`) through LLVM's intrinsics.
//!
//! Operands are registers of 32 bits, each with elements that follow each other along k: pairs of halves are vectors
//! of two to LLVM, everything else is an integer, but for doubles. Accumulators are scalars, or pairs of halves. The
//! intrinsics read no memory and have no side effect, so LLVM moves them as it moves any arithmetic.

use llopt_target::matrix::{MatrixElement, MatrixInstruction, Operand};

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
        let sums = e.intrinsic(instruction.intrinsic, &[], &[a, b, sum].concat());
        (0..sum.len() as u32).map(|i| e.member(sums, i)).collect()
    }
}
