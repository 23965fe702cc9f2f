//! Products of matrices of any extents, on NVIDIA's matrix units and by multiply-adds.
//!
//! Floats are small whole numbers, whose sums are exact in any order; integers are arbitrary.

use std::rc::Rc;

use llopt_dialects::layout::encoding::{DotOperand, Encoding};

use crate::element::{Data, Number};
use crate::facts::Facts;
use crate::layouts;
use crate::program::Value;

use super::{Generator, MOST_ELEMENTS_LOG2};

/// Operands' and accumulators' types.
const TYPES: [(Number, Number); 9] = [
    (Number::F16, Number::F32),
    (Number::F16, Number::F16),
    (Number::BF16, Number::F32),
    (Number::F32, Number::F32),
    (Number::F64, Number::F64),
    (Number::I8, Number::I32),
    (Number::I32, Number::I32),
    (Number::F8E5M2, Number::F32),
    (Number::F8E4M3, Number::F32),
];
/// The largest number of an operand: three bits are exact in every format.
const LARGEST: u64 = 7;

impl Generator {
    /// `tt.dot`.
    pub(super) fn dot(&mut self) -> Option<()> {
        let (operand, sum) = self.pick(&TYPES);
        let rank = if self.once_in(4) { 3 } else { 2 };
        let batch = if rank == 3 { self.rng.u32(0..3) } else { 0 };
        let [m, n, k] = [(); 3].map(|()| self.rng.u32(0..6));
        if [m + k, k + n, m + n]
            .iter()
            .any(|log2| log2 + batch > MOST_ELEMENTS_LOG2)
        {
            return None;
        }
        let shape = |row: u32, column: u32| {
            let matrix = [1 << row, 1 << column];
            let batch = (rank == 3).then_some(1 << batch);
            batch.into_iter().chain(matrix).collect::<Vec<u32>>()
        };
        let shapes = [shape(m, k), shape(k, n), shape(m, n)];
        let (result, k_width) = self.layouts_of_product(rank, operand, sum)?;
        let layouts = [0, 1].map(|op_idx| {
            Encoding::DotOperand(DotOperand {
                op_idx,
                parent: Box::new(result.clone()),
                k_width,
            })
        });
        let all = [layouts[0].clone(), layouts[1].clone(), result];
        if !all
            .iter()
            .zip(&shapes)
            .all(|(layout, shape)| layouts::fits(layout, shape))
        {
            return None;
        }
        let [a, b, c] = [(operand, 0), (operand, 1), (sum, 2)].map(|(number, matrix)| {
            let layout = Rc::new(all[matrix].clone());
            // A unit's sums of bytes saturate or wrap, so they stay within their 32 bits.
            let any_bits = number.is_integer() && (matrix < 2 || operand == sum);
            self.factor(&shapes[matrix], number, &layout, any_bits)
        });
        let precision = match (operand, k_width) {
            (Number::F32, 1..) => ", inputPrecision = tf32",
            _ => "",
        };
        let template = format!("$r = tt.dot $0, $1, $2{precision} : $t0 * $t1 -> $T0");
        let facts = if sum.is_integer() {
            Facts::BITS
        } else {
            Facts::small(((LARGEST * LARGEST) << k) + LARGEST)
        };
        self.add(&template, &[a, b, c], self.of(c), facts);
        Some(())
    }

    /// The layout of a result, and `kWidth` of its operands.
    fn layouts_of_product(
        &mut self,
        rank: usize,
        operand: Number,
        sum: Number,
    ) -> Option<(Encoding, u32)> {
        let is_unit = !matches!((operand, sum), (Number::I32, _)) && !self.once_in(3);
        let found = is_unit.then(|| {
            layouts::product(
                &mut self.rng,
                self.machine,
                rank,
                operand.bits(),
                sum.bits(),
            )
        });
        match found.flatten() {
            Some(found) => Some(found),
            None => Some((layouts::blocked(&mut self.rng, self.machine, rank), 0)),
        }
    }

    /// A matrix of numbers whose products are exact, loaded in that layout or converted to it.
    fn factor(
        &mut self,
        shape: &[u32],
        number: Number,
        layout: &Rc<Encoding>,
        any_bits: bool,
    ) -> Value {
        let seed = self.rng.u64(..);
        let (data, facts) = if any_bits {
            (Data::Bits(seed), Facts::BITS)
        } else {
            (Data::Small(3, seed), Facts::small(LARGEST))
        };
        if self.rng.bool() {
            return self.load_data(shape, number, layout, (data, facts));
        }
        let other = self.layout(shape);
        let value = self.load_data(shape, number, &other, (data, facts));
        self.in_layout(value, layout)
    }
}
