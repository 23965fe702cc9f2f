//! The record of one matrix instruction, and the table of all of them.
//!
//! A row describes what the hardware multiplies in one instruction: the extents `m x n x k`, the elements, how each
//! matrix is distributed over registers and lanes (a [`Fragment`]) or that it is read from shared memory, and the
//! cost. Selection, emission, prices and documentation read only these rows.
//!
//! Whether an instruction fits a product is decided by linear layouts: each of the product's layouts must be the
//! fragment, followed by bits that repeat it. An instruction can also compute the transposed product, with its
//! operands exchanged; rows do not describe that.
//!
//! One instruction of one name has a row for each generation with a different timing. Cycles are those of a unit
//! (SIMD, SM partition) at the clock of its shader: `issue_cycles` until the next independent instruction of the same
//! kind may begin, `latency` until another kind of instruction can read the result.

use llopt_layout::{Dim, LinearLayout};

use super::{Axis, Fragment};
use crate::arch::Family;
use crate::feature::Available;
use crate::{Feature, Target};

/// Type of the elements of a matrix, as a matrix unit takes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatrixElement {
    /// IEEE half.
    F16,
    /// bfloat16.
    Bf16,
    /// A single, of which the unit uses the upper 19 bits.
    Tf32,
    /// IEEE single.
    F32,
    /// IEEE double.
    F64,
    /// OCP E4M3.
    E4m3,
    /// OCP E5M2.
    E5m2,
    /// E4M3 without negative zero.
    E4m3Fnuz,
    /// E5M2 without negative zero and infinities.
    E5m2Fnuz,
    /// OCP E2M3, six bits.
    E2m3,
    /// OCP E3M2, six bits.
    E3m2,
    /// OCP E2M1, four bits.
    E2m1,
    /// Signed integer of eight bits.
    S8,
    /// Unsigned integer of eight bits.
    U8,
    /// Signed integer of four bits.
    S4,
    /// Unsigned integer of four bits.
    U4,
    /// Integer of 32 bits.
    I32,
}

impl MatrixElement {
    /// Bits of an element in a register; of `Tf32` those of the single that carries it.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Self::S4 | Self::U4 | Self::E2m1 => 4,
            Self::E2m3 | Self::E3m2 => 6,
            Self::E4m3 | Self::E5m2 | Self::E4m3Fnuz | Self::E5m2Fnuz | Self::S8 | Self::U8 => 8,
            Self::F16 | Self::Bf16 => 16,
            Self::Tf32 | Self::F32 | Self::I32 => 32,
            Self::F64 => 64,
        }
    }
}

/// Where an operand of a matrix instruction may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OperandPlace {
    /// In the registers of the warps that execute it, distributed as the fragment says.
    Registers,
    /// In shared memory, named by a descriptor.
    Shared,
    /// In registers or in shared memory.
    RegistersOrShared,
}

impl OperandPlace {
    /// Whether the operand may be in registers.
    #[must_use]
    pub const fn takes_registers(self) -> bool {
        matches!(self, Self::Registers | Self::RegistersOrShared)
    }

    /// Whether the operand may be in shared memory.
    #[must_use]
    pub const fn takes_shared(self) -> bool {
        matches!(self, Self::Shared | Self::RegistersOrShared)
    }
}

/// One matrix of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Operand {
    /// The type of its elements.
    pub element: MatrixElement,
    /// Its distribution over registers and lanes; `None` if it can only be in shared memory.
    pub fragment: Option<&'static Fragment>,
    /// The fragment's width: consecutive elements along k in a lane.
    pub width: u32,
    /// Where it may be.
    pub place: OperandPlace,
}

/// The scales by which an instruction multiplies its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockScale {
    /// Elements along k that share a scale.
    pub group: u32,
}

/// One row of the table: `d = a * b + c`, where `a` is `m x k`, `b` is `k x n`, `c` and `d` are `m x n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MatrixInstruction {
    /// The name, as the vendor's assembler spells it without its types' suffixes where those are operands.
    pub name: &'static str,
    /// LLVM's intrinsic, before the suffixes of overloads; empty if it is emitted as assembly.
    pub intrinsic: &'static str,
    /// The capability that messages name where it is missing.
    pub feature: Feature,
    /// The architectures that have it with this row's timing.
    pub available: &'static [Available],
    /// Rows of the result.
    pub m: u32,
    /// Columns of the result.
    pub n: u32,
    /// The extent that is summed over.
    pub k: u32,
    /// The first operand.
    pub a: Operand,
    /// The second operand.
    pub b: Operand,
    /// The accumulator and the result.
    pub accumulator: Operand,
    /// The scales of both operands, if it has scales.
    pub scale: Option<BlockScale>,
    /// How many instructions of that name make up the row's product, one after the other (1 but for MFMA that
    /// broadcast one of their blocks).
    pub steps: u32,
    /// How many warps execute it together.
    pub warps: u32,
    /// Cycles for which it keeps the unit busy, all steps together.
    pub issue_cycles: u32,
    /// Cycles until its result can be read.
    pub latency: u32,
    /// The source of the figures.
    pub source: &'static str,
}

impl MatrixInstruction {
    /// Whether `target` has it, with the cycles of this row.
    #[must_use]
    pub fn exists_on(&self, target: Target) -> bool {
        let covers = |place: &Available| place.covers(target.architecture());
        self.available.iter().any(covers)
    }

    /// The fragments as layouts: of `a` with the outputs (m, k), of `b` with (k, n), of the accumulator with (m, n),
    /// each as `dim0` and `dim1`; `None` for an operand that registers do not hold.
    #[must_use]
    pub fn fragments(&self) -> [Option<LinearLayout>; 3] {
        let layout = |operand: &Operand, outer: usize, inner: Axis| {
            let dim_of = |axis| Dim::tensor(if axis == inner { 1 - outer } else { outer });
            operand.fragment?.layout(operand.width, dim_of).ok()
        };
        [
            layout(&self.a, 0, Axis::K),
            layout(&self.b, 1, Axis::K),
            layout(&self.accumulator, 0, Axis::N),
        ]
    }

    /// All fragments; `None` if registers do not hold all of them.
    #[must_use]
    pub fn layouts(&self) -> Option<[LinearLayout; 3]> {
        let [a, b, accumulator] = self.fragments();
        Some([a?, b?, accumulator?])
    }

    /// Multiplications and additions of one execution.
    #[must_use]
    pub const fn operations(&self) -> u64 {
        2 * self.m as u64 * self.n as u64 * self.k as u64
    }
}

impl Target {
    /// The number that layout attributes give the matrix unit whose results and operands are in registers: the
    /// version of `#ttg.nvidia_mma`, `#ttg.amd_mfma` or `#ttg.amd_wmma`.
    #[must_use]
    pub fn matrix_generation(self) -> u32 {
        match self.architecture().family {
            Family::Volta | Family::Rdna3 => 1,
            Family::Turing
            | Family::Ampere
            | Family::Ada
            | Family::Hopper
            | Family::Blackwell
            | Family::BlackwellWorkstation
            | Family::Cdna2
            | Family::Rdna4 => 2,
            Family::Cdna3 | Family::Gfx1250 => 3,
            Family::Cdna4 => 4,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{amdgpu, instructions, nvptx};
    use super::*;
    use std::collections::HashSet;

    fn all() -> impl Iterator<Item = &'static MatrixInstruction> {
        [amdgpu::INSTRUCTIONS, nvptx::INSTRUCTIONS]
            .into_iter()
            .flatten()
            .copied()
            .flatten()
    }

    #[test]
    fn every_row_exists_somewhere_and_once_on_each_target() {
        for row in all() {
            assert!(
                Target::all().any(|target| row.exists_on(target)),
                "{} exists nowhere",
                row.name
            );
            assert!(!row.source.is_empty() && row.issue_cycles > 0 && row.latency > 0);
        }
        for target in Target::all() {
            let mut seen = HashSet::new();
            for row in instructions(target) {
                assert!(target.has(row.feature), "{}: {}", target, row.name);
                let key = (
                    row.name,
                    row.m,
                    row.n,
                    row.k,
                    row.a.element,
                    row.b.element,
                    row.accumulator.element,
                );
                assert!(seen.insert(key), "{target} has {} twice", row.name);
            }
        }
    }

    /// Each fragment holds its whole matrix; the warps of a group stack what they hold, and columns beyond an
    /// accumulator's fragment are the next registers.
    #[test]
    fn fragments_hold_their_matrices() {
        for row in all() {
            let Some(layouts) = row.layouts() else {
                let places = [row.a.place, row.b.place];
                assert!(
                    places.iter().any(|place| !place.takes_registers()),
                    "{}",
                    row.name
                );
                continue;
            };
            let extents = [[row.m, row.k], [row.k, row.n], [row.m, row.n]];
            for (layout, extents) in layouts.iter().zip(extents) {
                let size = |dim| layout.out_dim_size(Dim::tensor(dim)) as u32;
                assert_eq!(layout.rank(), layout.total_out_size_log2(), "{}", row.name);
                if row.warps == 1 {
                    assert_eq!([size(0), size(1)], extents, "{}", row.name);
                }
            }
        }
    }
}

#[cfg(test)]
mod division {
    use super::super::instructions;
    use super::*;
    use llopt_layout::matrix_product::{Matrices, divide};

    /// Each instruction makes the product of matrices that are its own fragments in one step.
    #[test]
    fn fragments_divide_into_one_step() {
        let all =
            Target::all().flat_map(|target| instructions(target).map(move |row| (target, row)));
        for (target, row) in all.filter(|(_, row)| row.warps == 1) {
            let Some([a, b, c]) = row.layouts() else {
                continue;
            };
            let own = Matrices {
                a: &a,
                b: &b,
                c: &c,
            };
            let division =
                divide(&own, &own).unwrap_or_else(|error| panic!("{target} {}: {error}", row.name));
            assert_eq!(division.steps.len(), 1, "{target} {}", row.name);
            assert_eq!(division.repeating_lanes, 0, "{target} {}", row.name);
        }
    }
}
