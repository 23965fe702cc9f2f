//! Products of matrices on matrix units.
//!
//! A row of the target's table of matrix instructions is chosen, and layouts that it supports: for the result, with
//! or without exchanged operands, and for the operands, with vectors along k as wide as the instruction's or wider.
//! The extents are the instruction's, twice those, or half of them. Elements are small integers, so that no sum
//! rounds.

use std::rc::Rc;

use llopt_dialects::layout::encoding::{AmdMfma, AmdWmma, CgaLayout, DotOperand, Encoding};
use llopt_target::Feature;
use llopt_target::matrix::{MatrixElement, MatrixInstruction, instructions};

use crate::element::{Data, Number};
use crate::facts::Facts;
use crate::layouts;
use crate::program::Value;

use super::Generator;

/// The largest element.
const LARGEST: u32 = 3;

/// The type of the tensor's elements, if tensors can have it.
fn number_of(element: MatrixElement) -> Option<Number> {
    Some(match element {
        MatrixElement::F16 => Number::F16,
        MatrixElement::Bf16 => Number::BF16,
        MatrixElement::F32 | MatrixElement::Tf32 => Number::F32,
        MatrixElement::F64 => Number::F64,
        MatrixElement::E5m2 => Number::F8E5M2,
        MatrixElement::E4m3 => Number::F8E4M3,
        MatrixElement::S8 => Number::I8,
        MatrixElement::I32 => Number::I32,
        _ => return None,
    })
}

impl Generator {
    pub(super) fn product(&mut self) -> Option<()> {
        if self.machine.blocks > 1 {
            return None;
        }
        let rows: Vec<&MatrixInstruction> = instructions(self.machine.target)
            .filter(|row| row.scale.is_none() && row.warps == 1)
            .collect();
        if rows.is_empty() {
            return None;
        }
        let row = self.pick(&rows);
        let (a, b, sum) = (
            number_of(row.a.element)?,
            number_of(row.b.element)?,
            number_of(row.accumulator.element)?,
        );
        let extent = |this: &mut Self, of: u32| match this.rng.u8(0..4) {
            0 => of * 2,
            1 if of > 16 => of / 2,
            _ => of,
        };
        let (m, n, k) = (
            extent(self, row.m),
            extent(self, row.n),
            extent(self, row.k.max(2)),
        );
        let largest = u64::from(k * LARGEST * LARGEST + LARGEST);
        if largest > sum.exact_integers() {
            return None;
        }
        let (encoding, widths) = self.result_of(row)?;
        let width = self.pick(&widths);
        let operand = |op_idx| {
            Rc::new(Encoding::DotOperand(DotOperand {
                op_idx,
                parent: Box::new(encoding.clone()),
                k_width: width,
            }))
        };
        let (of_a, of_b, of_sum) = (operand(0), operand(1), Rc::new(encoding.clone()));
        if !layouts::fits(&of_a, &[m, k])
            || !layouts::fits(&of_b, &[k, n])
            || !layouts::fits(&of_sum, &[m, n])
        {
            return None;
        }
        let a = self.small(&[m, k], a, &of_a);
        let b = self.small(&[k, n], b, &of_b);
        let c = self.small(&[m, n], sum, &of_sum);
        let precision = match row.a.element {
            MatrixElement::Tf32 => ", inputPrecision = tf32",
            _ => "",
        };
        let template = format!("$r = tt.dot $0, $1, $2{precision} : $t0 * $t1 -> $T0");
        let of = self.of(c);
        self.add(&template, &[a, b, c], of, Facts::small(largest));
        Some(())
    }

    /// Small integers in a layout, loaded in it or in another.
    fn small(&mut self, shape: &[u32], number: Number, layout: &Rc<Encoding>) -> Value {
        let seed = self.rng.u64(..);
        let data = (Data::Small(LARGEST, seed), Facts::small(LARGEST.into()));
        if self.rng.bool() {
            return self.load_data(shape, number, layout, data);
        }
        let other = self.layout(shape);
        let loaded = self.load_data(shape, number, &other, data);
        self.in_layout(loaded, layout)
    }

    /// A layout for the result of an instruction, and the widths along k that its operands may have.
    fn result_of(&mut self, row: &MatrixInstruction) -> Option<(Encoding, Vec<u32>)> {
        let warps = self.machine.warps;
        let along = 1 << self.rng.u32(0..=warps.trailing_zeros());
        let warps_per_cta = vec![along, warps / along];
        let is_transposed = self.rng.bool();
        let cga_layout = CgaLayout::single(2);
        if self.machine.target.has(Feature::Mfma) {
            // The blocks of the smallest instruction share its first operand.
            let (m, n) = match (row.m, row.n) {
                (4, 64) if is_transposed => (64, 4),
                shape => shape,
            };
            let encoding = Encoding::AmdMfma(AmdMfma {
                version: 3,
                warps_per_cta,
                instr_shape: vec![m, n, row.k],
                is_transposed,
                cga_layout,
                tiles_per_warp: vec![1; 2],
                element_bit_width: if row.accumulator.element.bits() == 64 {
                    64
                } else {
                    32
                },
            });
            return Some((encoding, vec![row.a.width, 2 * row.a.width]));
        }
        if !self.machine.target.has(Feature::Wmma) {
            return None;
        }
        let is_whole = row.a.width == row.k;
        let encoding = Encoding::AmdWmma(AmdWmma {
            version: if is_whole { 1 } else { 2 },
            is_transposed,
            warps_per_cta,
            tiles_per_warp: vec![1; 2],
            cga_layout,
            instr_shape: vec![16, 16, 16],
        });
        Some((encoding, vec![row.a.width]))
    }
}
