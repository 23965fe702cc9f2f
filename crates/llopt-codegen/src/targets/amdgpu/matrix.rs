//! AMD's matrix instructions through LLVM's intrinsics: MFMA, and WMMA.
//!
//! An operand is one vector, or a single word. The types depend on the age of an intrinsic: bf16 is a vector of `i16`
//! in all but the latest, and operands of eight bits are one integer of up to 64 bits in older ones, and vectors of
//! words in later ones.
//!
//! The MFMA of 16 blocks of 4x4 takes its first operand from one block for all of them (`cbsz` = 4, `abid` = the
//! block): 16 steps, one for each block's part of k, each with registers of its own of the second operand.

use inkwell::types::BasicTypeEnum;
use llopt_target::Feature;
use llopt_target::matrix::{MatrixElement, MatrixInstruction, Operand};

use crate::llvm::emitter::{Emitter, V, bit_width};
use crate::targets::amdgpu::Amdgpu;
use crate::targets::hooks::MatrixHooks;
use crate::values::words::packed;

/// Bits of the words of operands of small elements.
const WORD: u32 = 32;

impl MatrixHooks for Amdgpu {
    fn pack<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        instruction: &MatrixInstruction,
        operand: &Operand,
        elements: &[V<'ctx>],
    ) -> Vec<V<'ctx>> {
        let bits = bit_width(elements[0].get_type());
        if fills_lower_halves(instruction, operand) {
            let zero = e.zero(elements[0].get_type());
            let halves: Vec<V<'ctx>> = elements.iter().flat_map(|value| [*value, zero]).collect();
            return vec![as_packed(e, instruction, operand, e.pack(&halves))];
        }
        // The elements of one instruction: all, or the registers of one step.
        let taken = elements.len().min(if operand == &instruction.accumulator {
            elements.len()
        } else {
            operand.width.max(elements.len() as u32 / instruction.steps) as usize
        });
        elements
            .chunks(taken)
            .map(|elements| {
                if bits >= WORD {
                    return e.pack(elements);
                }
                let words = packed(e, self, elements, (WORD / bits) as usize);
                as_packed(e, instruction, operand, e.pack(&words))
            })
            .collect()
    }

    fn unpack<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        instruction: &MatrixInstruction,
        accumulator: &[V<'ctx>],
    ) -> Vec<V<'ctx>> {
        let operand = &instruction.accumulator;
        let vector = match operand.element {
            MatrixElement::Bf16 => {
                let count = bit_width(accumulator[0].get_type()) / operand.element.bits();
                let of = e.vector(e.context.bf16_type().into(), count);
                e.bitcast(accumulator[0], of.into())
            }
            _ => accumulator[0],
        };
        let step = if fills_lower_halves(instruction, operand) {
            2
        } else {
            1
        };
        e.unpack(vector).into_iter().step_by(step).collect()
    }

    fn multiply<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        instruction: &'static MatrixInstruction,
        [a, b]: [&[V<'ctx>]; 2],
        sum: &[V<'ctx>],
        repeating: u32,
        scales: Option<[V<'ctx>; 2]>,
    ) -> Vec<V<'ctx>> {
        let product = if instruction.feature == Feature::MfmaScaled {
            narrow_mfma(e, instruction, [a[0], b[0]], sum[0], scales)
        } else if instruction.feature == Feature::Wmma {
            wmma(e, instruction, [a[0], b[0]], sum[0])
        } else if instruction.steps > 1 {
            // The lanes of each block follow those of the block before.
            let first_lane = |block: u32| block * (WAVE / instruction.steps);
            let blocks = (0..instruction.steps).filter(|block| first_lane(*block) & repeating == 0);
            blocks.fold(sum[0], |sum, block| {
                let broadcast = [4, block, 0];
                mfma(e, instruction, [a[0], b[block as usize]], sum, broadcast)
            })
        } else {
            mfma(e, instruction, [a[0], b[0]], sum[0], [0; 3])
        };
        vec![product]
    }
}

/// Lanes of the waves whose matrix cores take an operand in several steps.
const WAVE: u32 = 64;

/// Whether an accumulator of 16-bit elements has one of them in each word: as when each half-wave has every second
/// row of the matrix.
fn fills_lower_halves(instruction: &MatrixInstruction, operand: &Operand) -> bool {
    operand == &instruction.accumulator
        && operand.element.bits() < WORD
        && instruction.a.width == instruction.k
}

/// The type in which the intrinsic takes so many bits of an operand.
fn packed_type<'ctx>(
    e: &Emitter<'ctx>,
    instruction: &MatrixInstruction,
    operand: &Operand,
    bits: u32,
) -> BasicTypeEnum<'ctx> {
    let vector = |of: BasicTypeEnum<'ctx>| e.vector(of, bits / bit_width(of)).into();
    let is_matrix_core = instruction.feature != Feature::Wmma;
    match operand.element {
        MatrixElement::F16 => vector(e.context.f16_type().into()),
        MatrixElement::Bf16 if is_matrix_core && !instruction.intrinsic.ends_with(".1k") => {
            vector(e.context.bf16_type().into())
        }
        MatrixElement::Bf16 => vector(e.int(16).into()),
        _ if bits == WORD => e.int(WORD).into(),
        _ if is_matrix_core && bits == 64 => e.int(64).into(),
        _ => vector(e.int(WORD).into()),
    }
}

/// A vector of the intrinsic's type with these bits.
fn as_packed<'ctx>(
    e: &Emitter<'ctx>,
    instruction: &MatrixInstruction,
    operand: &Operand,
    vector: V<'ctx>,
) -> V<'ctx> {
    let bits = bit_width(vector.get_type());
    e.bitcast(vector, packed_type(e, instruction, operand, bits))
}

/// One MFMA, with the fields that broadcast or permute blocks of its operands.
fn mfma<'ctx>(
    e: &Emitter<'ctx>,
    instruction: &'static MatrixInstruction,
    [a, b]: [V<'ctx>; 2],
    sum: V<'ctx>,
    blocks: [u32; 3],
) -> V<'ctx> {
    let [cbsz, abid, blgp] = blocks.map(|field| e.i32(i64::from(field)));
    e.intrinsic(instruction.intrinsic, &[], &[a, b, sum, cbsz, abid, blgp])
}

/// One MFMA of narrow elements, whose formats are fields. Without scales their operands are zero, which means the
/// instruction that has none.
fn narrow_mfma<'ctx>(
    e: &Emitter<'ctx>,
    instruction: &'static MatrixInstruction,
    [a, b]: [V<'ctx>; 2],
    sum: V<'ctx>,
    scales: Option<[V<'ctx>; 2]>,
) -> V<'ctx> {
    let format = |operand: &Operand| {
        e.i32(match operand.element {
            MatrixElement::E4m3 => 0,
            MatrixElement::E5m2 => 1,
            MatrixElement::E2m3 => 2,
            MatrixElement::E3m2 => 3,
            _ => 4,
        })
    };
    let [scale_a, scale_b] = scales.unwrap_or([e.i32(0); 2]);
    e.intrinsic(
        instruction.intrinsic,
        &[a.get_type(), b.get_type()],
        &[
            a,
            b,
            sum,
            format(&instruction.a),
            format(&instruction.b),
            e.i32(0),
            scale_a,
            e.i32(0),
            scale_b,
        ],
    )
}

/// One WMMA.
fn wmma<'ctx>(
    e: &Emitter<'ctx>,
    instruction: &'static MatrixInstruction,
    [a, b]: [V<'ctx>; 2],
    sum: V<'ctx>,
) -> V<'ctx> {
    let overload = [sum.get_type(), a.get_type()];
    let signed = |operand: &Operand| {
        e.bool(matches!(
            operand.element,
            MatrixElement::S8 | MatrixElement::S4
        ))
    };
    let arguments = match instruction.accumulator.element {
        MatrixElement::I32 => {
            let (left, right) = (signed(&instruction.a), signed(&instruction.b));
            vec![left, a, right, b, sum, e.bool(false)]
        }
        // The lower half of each word of the result.
        MatrixElement::F16 | MatrixElement::Bf16 => vec![a, b, sum, e.bool(false)],
        _ => vec![a, b, sum],
    };
    e.intrinsic(instruction.intrinsic, &overload, &arguments)
}
