//! Executing matrix instructions, on a target that has some.
//!
//! A call takes its operands packed as the assembler or the intrinsic expects them: vectors, words, one half of a
//! word. The form of a packed operand is private to the vendor; neutral code only stores it and passes it back.

use llopt_target::matrix::{MatrixInstruction, Operand};

use crate::llvm::emitter::{Emitter, V};

/// The matrix instructions whose operands are in registers.
pub trait MatrixHooks {
    /// The elements of one operand or accumulator of `instruction`, in the order of its fragment's registers, as
    /// the call takes them.
    fn pack<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        instruction: &MatrixInstruction,
        operand: &Operand,
        elements: &[V<'ctx>],
    ) -> Vec<V<'ctx>>;

    /// The elements of a packed accumulator.
    fn unpack<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        instruction: &MatrixInstruction,
        accumulator: &[V<'ctx>],
    ) -> Vec<V<'ctx>>;

    /// `a * b + sum`, all packed; for an instruction with scales, the words that have those of `a` and `b` in their
    /// lowest bytes. An instruction of several steps, which takes a block of k from other lanes in each, omits the
    /// steps of lanes with a bit of `repeating`: these lanes repeat the data of others.
    fn multiply<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        instruction: &'static MatrixInstruction,
        operands: [&[V<'ctx>]; 2],
        sum: &[V<'ctx>],
        repeating: u32,
        scales: Option<[V<'ctx>; 2]>,
    ) -> Vec<V<'ctx>>;
}
