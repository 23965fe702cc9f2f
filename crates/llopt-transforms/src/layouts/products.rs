//! A matrix product, as far as the choice of layouts asks: what matrices it multiplies, and what each plan costs.
//!
//! What a product is follows from its op: the extents, the element types in which a unit may compute it, scales, and whether
//! its precision allows that groups of warps do. From these follow its plans ([`super::product_plans`]), the buffers that
//! its factors may be in ([`super::product_memory`]), and for how long it keeps a unit busy ([`super::product_time`]).
//!
//! The cost of a plan is the time for which the unit is busy: the instructions that a warp executes, including the
//! repeated work of warps beyond the edge of the result; and the time to read factors in shared memory, as far as
//! that is longer.

use std::cell::OnceCell;

use llopt_dialects::layout::encoding::Encoding;
use llopt_dialects::layout::transfer;
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt;
use llopt_layout::{Dim, LinearLayout};
use llopt_mlir::ir::TypeExt;
use llopt_plan::product::scaled_element;
use llopt_target::Target;
use llopt_target::matrix::{MatrixElement, MatrixInstruction, Operand};
use melior::ir::{OperationRef, Type, TypeLike, Value, ValueLike};

use super::computing::registers;
use super::grid::Grid;

/// The smallest number of products of eight-bit floats that the warp-group unit accumulates in its own precision.
const IMPRECISE: i64 = 32;

/// A layout of the result, and the instruction that leaves it.
pub(super) type Plan = (Encoding, &'static MatrixInstruction);

/// A product, and the target that computes it.
pub(super) struct Product {
    /// The extents of the result.
    pub(super) shape: Vec<u64>,
    /// The extent that is summed over.
    pub(super) depth: u64,
    /// The element types in which a matrix unit may compute it, the best first.
    pub(super) elements: Vec<[MatrixElement; 3]>,
    /// Whether groups of warps may compute it.
    pub(super) by_groups: bool,
    /// Elements along k that share a scale, if its factors have scales.
    pub(super) group: Option<u32>,
    /// Whether the loop copies a factor's next elements while the product runs.
    pub(super) filled: [bool; 2],
    pub(super) target: Target,
    pub(super) grid: Grid,
    /// The layouts of the result that matrix units leave, each with the instruction.
    pub(super) by_units: Vec<Plan>,
    /// [`Product::transposed_before`] of both factors.
    pub(super) transposed: [OnceCell<Option<Encoding>>; 2],
}

/// The types in which a matrix unit may take an element. `rounds` says whether `f32` may lose precision.
pub(crate) fn elements_of(element: Type<'_>, rounds: bool) -> &'static [MatrixElement] {
    match element.to_string().as_str() {
        "f16" => &[MatrixElement::F16],
        "bf16" => &[MatrixElement::Bf16],
        "f32" if rounds => &[MatrixElement::Tf32, MatrixElement::F32],
        "f32" => &[MatrixElement::F32],
        "f64" => &[MatrixElement::F64],
        "i8" => &[MatrixElement::S8],
        "i32" => &[MatrixElement::I32],
        "f8E4M3FN" => &[MatrixElement::E4m3],
        "f8E5M2" => &[MatrixElement::E5m2],
        "f8E4M3FNUZ" => &[MatrixElement::E4m3Fnuz],
        "f8E5M2FNUZ" => &[MatrixElement::E5m2Fnuz],
        _ => &[],
    }
}

/// A factor, as an instruction takes it.
pub(super) fn operand_of(row: &MatrixInstruction, operand: usize) -> &Operand {
    match operand {
        0 => &row.a,
        _ => &row.b,
    }
}

/// Whether an instruction takes words of a factor that are consecutive along k in neighbouring registers.
fn takes_neighbours(row: &MatrixInstruction, operand: usize) -> bool {
    let fragment = row.fragments()[operand].clone();
    let in_word = (32 / operand_of(row, operand).element.bits().max(1)).max(1);
    let next = in_word.ilog2();
    fragment.is_some_and(|fragment| {
        next >= fragment.in_dim_size_log2(Dim::REGISTER)
            || fragment.basis_entry(Dim::REGISTER, next, Dim::tensor(1 - operand)) != 0
    })
}

/// Whether words of the first factor that are consecutive along k have to be moved for an instruction, but none of the
/// second factor.
pub(super) fn moves_first_factor(row: &MatrixInstruction) -> bool {
    !takes_neighbours(row, 0) && takes_neighbours(row, 1)
}

impl Product {
    /// The product that an op is. `may_store` says whether its factors may be stored to shared memory for it.
    pub(super) fn of(
        operation: OperationRef<'_, '_>,
        may_store: bool,
        target: Target,
        grid: Grid,
    ) -> Option<Self> {
        Self::described(operation, may_store, target, grid).map(Self::with_units)
    }

    /// The same without the plans of matrix units, which follow from it.
    pub(super) fn described(
        operation: OperationRef<'_, '_>,
        may_store: bool,
        target: Target,
        grid: Grid,
    ) -> Option<Self> {
        if let Some(dot) = tt::DotScaledOp::of(operation) {
            return Self::of_scaled(dot, target, grid);
        }
        let dot = tt::DotOp::of(operation)?;
        let [a, b, d] = [dot.a(), dot.b(), dot.d()].map(|value| RankedTensor::of(value.r#type()));
        let (a, b, d) = (a?, b?, d?);
        let rounds = dot.input_precision() == tt::InputPrecision::Tf32;
        let mut elements = Vec::new();
        for &a in elements_of(a.element(), rounds) {
            for &b in elements_of(b.element(), rounds) {
                for &c in elements_of(d.element(), false) {
                    elements.push([a, b, c]);
                }
            }
        }
        let shape = transfer::extents(&d.shape());
        let depth = *transfer::extents(&a.shape()).last()?;
        let precise = dot.max_num_imprecise_acc() >= IMPRECISE
            || a.element().bit_width() != Some(8)
            || !d.element().is_f32();
        Some(Self {
            by_groups: may_store && precise,
            ..Self::without_units(shape, depth, elements, target, grid)
        })
    }

    /// The product of factors with scales, if a matrix unit might take them: small floats that are packed along k,
    /// with both scales of one group size, or only one of the factors scaled.
    fn of_scaled(dot: tt::DotScaledOp<'_, '_>, target: Target, grid: Grid) -> Option<Self> {
        let extents = |value: Value| {
            Some(transfer::extents(
                &RankedTensor::of(value.r#type())?.shape(),
            ))
        };
        let (a, packed) = scaled_element(dot.a_elem_type())?;
        let (b, other) = scaled_element(dot.b_elem_type())?;
        let along_k = (packed == 1 || dot.lhs_k_pack()) && (other == 1 || dot.rhs_k_pack());
        let shape = extents(dot.d())?;
        if shape.len() != 2 || !along_k {
            return None;
        }
        let depth = extents(dot.a())?.last()? * u64::from(packed);
        let scales = [dot.a_scale(), dot.b_scale()].into_iter().flatten();
        let groups = scales.map(|scale| {
            let of = RankedTensor::of(scale.r#type()).filter(|of| of.element().is_integer())?;
            u32::try_from(depth.checked_div(u64::try_from(*of.shape().last()?).ok()?)?).ok()
        });
        let groups = groups.collect::<Option<Vec<u32>>>()?;
        if groups.windows(2).any(|pair| pair[0] != pair[1]) {
            return None;
        }
        let sums = elements_of(RankedTensor::of(dot.d().r#type())?.element(), false);
        let elements = sums.iter().map(|&sum| [a, b, sum]).collect();
        Some(Self {
            group: groups.first().copied(),
            ..Self::without_units(shape, depth, elements, target, grid)
        })
    }

    /// Whether both have the same plans, with the same costs, for one target and grid.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let described = |of: &Self| (of.depth, of.by_groups, of.group, of.filled);
        described(self) == described(other)
            && self.shape == other.shape
            && self.elements == other.elements
    }

    /// Whether both are computed by the same plans.
    pub(super) fn has_plans_of(&self, other: &Self) -> bool {
        self.encodings().eq(other.encodings())
    }

    /// Whether a matrix unit computes it.
    pub(super) fn has_unit(&self) -> bool {
        !self.by_units.is_empty()
    }

    /// Cycles for which the fastest plan keeps a unit busy for one multiply-add; infinite without a plan.
    pub(super) fn busy_for_one(&self) -> f32 {
        let rows = self.by_units.iter().map(|(_, row)| {
            let numbers = row.m * row.n * row.k;
            row.issue_cycles as f32 * row.warps as f32 / numbers as f32
        });
        rows.fold(f32::INFINITY, f32::min)
    }

    /// The same product of factors without scales that were widened to these elements.
    pub(super) fn widened(&self, elements: [MatrixElement; 3]) -> Self {
        let (shape, depth) = (self.shape.clone(), self.depth);
        Self::without_units(shape, depth, vec![elements], self.target, self.grid).with_units()
    }

    /// The product with the plans of matrix units.
    pub(super) fn with_units(mut self) -> Self {
        self.by_units = self.find_units();
        self
    }

    /// A product of factors in registers, without scales.
    pub(super) fn without_units(
        shape: Vec<u64>,
        depth: u64,
        elements: Vec<[MatrixElement; 3]>,
        target: Target,
        grid: Grid,
    ) -> Self {
        Self {
            shape,
            depth,
            elements,
            by_groups: false,
            group: None,
            filled: [false; 2],
            target,
            grid,
            by_units: Vec::new(),
            transposed: Default::default(),
        }
    }

    /// Whether the instruction of `encoding` takes a factor from registers.
    pub(super) fn takes_registers(&self, operand: usize, encoding: &Encoding) -> bool {
        self.instruction(encoding)
            .is_none_or(|row| operand_of(row, operand).place.takes_registers())
    }

    /// The instruction whose result has a layout.
    pub(super) fn instruction(&self, encoding: &Encoding) -> Option<&'static MatrixInstruction> {
        let way = self.by_units.iter().find(|(way, _)| way == encoding);
        way.map(|(_, row)| *row)
    }

    /// The cost of the product for a warp with this layout of the result; infinite if there is no plan for it.
    pub(super) fn cost(&self, encoding: &Encoding, layout: &LinearLayout, multiply: f32) -> f32 {
        let held = registers(layout) as f32;
        if transfer::elements_along_k(encoding, 32) == Some(0) {
            return match self.group {
                None => held * self.depth as f32 * multiply,
                Some(_) => f32::INFINITY,
            };
        }
        self.instruction(encoding).map_or(f32::INFINITY, |row| {
            let exposed = self.exposed(row, encoding) / self.grid.num_warps as f32;
            self.time(row, layout) + exposed
        })
    }

    /// The cost for a warp of completing a warp-group product before the next iteration, where it could overlap with
    /// the work of threads that takes longer: the product's own time.
    pub(super) fn cost_of_waiting(&self, encoding: &Encoding, layout: &LinearLayout) -> f32 {
        match self.instruction(encoding) {
            Some(row) if row.warps > 1 => self.time(row, layout),
            _ => 0.0,
        }
    }

    /// The price `moved` of moving each word of a factor, if its words have to be moved: words that are consecutive
    /// along k are loaded to neighbouring registers, but the instruction of `encoding` needs other neighbours.
    pub(super) fn moves_words(&self, operand: usize, encoding: &Encoding, moved: f32) -> f32 {
        let along_k = self
            .instruction(encoding)
            .is_none_or(|row| takes_neighbours(row, operand));
        if along_k { 0.0 } else { moved }
    }

    /// Whether there is a plan that computes the product with this layout of the result.
    pub(super) fn is_possible(&self, encoding: &Encoding) -> bool {
        self.group.is_none() && transfer::elements_along_k(encoding, 32) == Some(0)
            || self.by_units.iter().any(|(way, _)| way == encoding)
    }
}

/// A product of tests: of matrices of halves, by four warps, whose sums are singles.
#[cfg(test)]
pub(super) fn of_halves(target: &str, shape: [u64; 2], depth: u64) -> Product {
    let target = Target::parse(target).unwrap();
    let grid = Grid {
        num_warps: 4,
        threads_per_warp: target.warp_size(),
        num_ctas: 1,
    };
    let elements = [MatrixElement::F16, MatrixElement::F16, MatrixElement::F32];
    let product = Product::without_units(shape.to_vec(), depth, vec![elements], target, grid);
    Product {
        by_groups: true,
        ..product
    }
    .with_units()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_unit_is_cheaper_than_threads() {
        for target in ["cuda:80", "hip:gfx942", "hip:gfx1100"] {
            let product = of_halves(target, [64, 64], 64);
            let price = |encoding: &Encoding| {
                let layout = encoding.linear_layout(&[64, 64]).unwrap();
                product.cost(encoding, &layout, 0.5)
            };
            let threads = product.by_threads();
            let least = threads.iter().map(price).fold(f32::INFINITY, f32::min);
            assert!(!product.by_units.is_empty(), "{target}");
            for (encoding, _) in &product.by_units {
                assert!(price(encoding) < least, "{target}: {encoding:?}");
            }
        }
    }

    #[test]
    fn copies_are_exposed_behind_many_products_with_few_columns() {
        let cycles = |filled| {
            let mut product = of_halves("cuda:90", [128, 256], 64);
            product.filled = filled;
            product.grid.num_warps = 8;
            product.by_units = product.find_units();
            let memory = product.in_memory(0)[0].linear_layout(&[128, 64]).unwrap();
            let groups = product.by_units.iter().filter(|(_, row)| row.warps > 1);
            let ways = groups.map(|(encoding, row)| {
                let result = encoding.linear_layout(&[128, 256]).unwrap();
                let more = product.cost_of_memory(0, (encoding, &result), &memory);
                let cost = product.cost(encoding, &result, 0.0) + more.unwrap();
                (row.n, cost * product.grid.num_warps as f32)
            });
            ways.collect::<Vec<_>>()
        };
        assert_eq!(cycles([false; 2]), [(256, 1024.0), (128, 1024.0)]);
        // Copies of 384 passes, and two products of each of two groups to hide them: 512 cycles, or 256.
        assert_eq!(cycles([true; 2]), [(256, 1024.0), (128, 1152.0)]);
    }
}
