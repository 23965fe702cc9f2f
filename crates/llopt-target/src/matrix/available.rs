//! The matrix instructions of a target, from the tables of both vendors.

use super::instruction::{MatrixElement, MatrixInstruction};
use super::{amdgpu, nvptx};
use crate::Target;

/// The matrix instructions of a target, in the order of their tables.
pub fn instructions(target: Target) -> impl Iterator<Item = &'static MatrixInstruction> {
    [amdgpu::INSTRUCTIONS, nvptx::INSTRUCTIONS]
        .into_iter()
        .flatten()
        .copied()
        .flatten()
        .filter(move |row| row.exists_on(target))
}

/// The matrix instructions of a target that multiply these elements and add in `accumulator`'s type.
pub fn instructions_for(
    target: Target,
    a: MatrixElement,
    b: MatrixElement,
    accumulator: MatrixElement,
) -> impl Iterator<Item = &'static MatrixInstruction> {
    instructions(target).filter(move |row| {
        [row.a.element, row.b.element, row.accumulator.element] == [a, b, accumulator]
    })
}
