//! `tt.dot_scaled` by a matrix instruction that takes scales.
//!
//! The instruction's first lanes give the scales of the first group of its k, one for each row, the next lanes those
//! of the next group; so a scale comes from another lane than the elements that it multiplies, and has a layout of
//! its own. That layout is derived from the operand's: rows as the operand's lanes have them, groups where the
//! instruction expects them, and one register of scales for each repetition of the instruction over registers. The
//! tensor of scales is then converted to it; if it already has this layout, nothing moves. Where all scales are one
//! constant, each thread has it, and groups need not fit; a constant of one is no scale.
//!
//! Elements of four bits are packed two to a byte along k: counted as elements, their layout has one more register
//! bit, the lowest.

use llopt_dialects::{arith, tt};
use llopt_layout::f2::Subspace;
use llopt_layout::matrix_product::Matrices;
use llopt_layout::{Dim, LayoutError, LinearLayout};
use llopt_mlir::ir::AttributeExt;
use llopt_target::matrix::Operand;
use melior::ir::{OperationRef, Value};

use crate::llvm::emitter::V;
use crate::ops::matrix::instruction::{self, Factor, Factors, SUMS};
use crate::values::registers::Registers;
use crate::walk::function::{FunctionLowering, Lowered};
use llopt_plan::product::{Problem, Selection, scaled_element};
use llopt_plan::tensor::TensorType;

/// The code of a scale of one.
const ONE: i64 = 127;

/// The code of all scales, if these are one constant.
fn constant(scales: Value<'_, '_>) -> Option<u64> {
    arith::ConstantOp::defining(scales)?.value()?.splat_bits()
}

/// The layout of elements that are packed two to a byte along dimension `k`: it has one more register bit.
fn unpacked(layout: &LinearLayout, k: usize) -> Result<LinearLayout, LayoutError> {
    let rank = layout.out_dims().len();
    let mut pair = vec![0; rank];
    pair[k] = 1;
    let bases: Vec<(Dim, Vec<Vec<u32>>)> = layout
        .in_dims()
        .iter()
        .map(|&from| {
            let first = (from == Dim::REGISTER).then(|| pair.clone());
            let rest = (0..layout.in_dim_size_log2(from)).map(|bit| {
                (0..rank)
                    .map(|dim| {
                        layout.basis_entry(from, bit, Dim::tensor(dim)) << u32::from(dim == k)
                    })
                    .collect()
            });
            (from, first.into_iter().chain(rest).collect())
        })
        .collect();
    let bases: Vec<(Dim, &[Vec<u32>])> = bases.iter().map(|(dim, v)| (*dim, &v[..])).collect();
    let outs: Vec<(Dim, u32)> = (0..rank)
        .map(|dim| {
            let size = layout.out_dim_size(Dim::tensor(dim)) as u32;
            (Dim::tensor(dim), size << u32::from(dim == k))
        })
        .collect();
    LinearLayout::from_bases(&bases, &outs)
}

/// The layout of the scales of an operand for an instruction.
struct ScalePlan {
    /// The layout of the scales.
    to: TensorType,
    /// The register of scales for each part of the operand.
    registers: Vec<u32>,
}

/// The elements of an operand as (outer, k).
struct Elements<'l> {
    layout: &'l LinearLayout,
    outer: usize,
    k: usize,
}

impl Elements<'_> {
    fn basis(&self, from: Dim, bit: u32) -> [u32; 2] {
        [self.outer, self.k].map(|dim| self.layout.basis_entry(from, bit, Dim::tensor(dim)))
    }

    fn bases(&self, from: Dim) -> impl Iterator<Item = [u32; 2]> + '_ {
        (0..self.layout.in_dim_size_log2(from)).map(move |bit| self.basis(from, bit))
    }

    fn register(&self, register: u32) -> [u32; 2] {
        let bases = self.bases(Dim::REGISTER).enumerate();
        bases.fold([0, 0], |[outer, k], (bit, basis)| {
            let chosen = register >> bit & 1;
            [outer ^ (chosen * basis[0]), k ^ (chosen * basis[1])]
        })
    }

    /// The plan for the parts that an instruction takes, each the registers of its fragment; `None` where the
    /// instruction's groups are not those of the scales.
    fn plan(
        &self,
        operand: &Operand,
        group: u32,
        parts: &[Vec<Option<u32>>],
        scale: &TensorType,
    ) -> Option<ScalePlan> {
        let fragment = operand.fragment?;
        let inner = |axis| Dim::tensor(usize::from(axis == llopt_target::matrix::Axis::K));
        let fragment = fragment.layout(operand.width, inner).ok()?;
        let rows = fragment.out_dim_size_log2(Dim::tensor(0));
        let groups = fragment.out_dim_size(Dim::tensor(1)) as u32 / group;
        // The group of the tensor for each group of the instruction except the first.
        let first = parts.first()?;
        let start = self.register((*first.first()?)?)[1] / group;
        let mut found = vec![None; groups as usize];
        for lane in 0..fragment.in_dim_size(Dim::LANE) as u32 {
            let along = (0..fragment.in_dim_size_log2(Dim::LANE))
                .filter(|bit| lane >> bit & 1 == 1)
                .fold(0, |k, bit| k ^ self.basis(Dim::LANE, bit)[1]);
            for (index, register) in first.iter().enumerate() {
                let place = [(Dim::REGISTER, index as u32), (Dim::LANE, lane)];
                let place = fragment.apply(&place).ok()?;
                let (_, k) = place.iter().find(|(dim, _)| *dim == Dim::tensor(1))?;
                let here = ((self.register((*register)?)[1] ^ along) / group) ^ start;
                if *found[(*k / group) as usize].get_or_insert(here) != here {
                    return None;
                }
            }
        }
        let number = |outer: u32, at: u32| outer << scale.bits_of_dim(0).0 | at;
        let mut lanes: Vec<u32> = (0..rows)
            .map(|bit| number(self.basis(Dim::LANE, bit)[0], 0))
            .collect();
        for bit in 0..groups.trailing_zeros() {
            lanes.push(number(0, found[1 << bit]?));
        }
        for (at, here) in found.iter().enumerate() {
            let sum = (0..groups.trailing_zeros()).filter(|bit| at >> bit & 1 == 1);
            if sum.fold(0, |sum, bit| sum ^ found[1 << bit].unwrap_or(0)) != (*here)? {
                return None;
            }
        }
        let mut span = Subspace::span(&lanes);
        let mut registers = Vec::new();
        for [outer, k] in self.bases(Dim::REGISTER) {
            let basis = number(outer, k / group);
            if basis != 0 && span.add(basis) {
                registers.push(basis);
            }
        }
        let outer_alone = |from| {
            self.bases(from)
                .map(|[outer, _]| number(outer, 0))
                .collect()
        };
        let numbers = [
            (Dim::REGISTER, registers),
            (Dim::LANE, lanes),
            (Dim::WARP, outer_alone(Dim::WARP)),
            (Dim::BLOCK, outer_alone(Dim::BLOCK)),
        ];
        let to = TensorType::from_numbers(scale.element, scale.shape.clone(), &numbers).ok()?;
        let of_part = parts.iter().map(|part| {
            let [outer, k] = self.register((*part.first()?)?);
            let wanted = number(outer, k / group);
            (0..to.registers() as u32).find(|register| to.element_in(*register as usize) == wanted)
        });
        let registers = of_part.collect::<Option<_>>()?;
        Some(ScalePlan { to, registers })
    }
}

/// `tt.dot_scaled`.
pub(crate) fn dot(lowering: &mut FunctionLowering<'_, '_>, op: tt::DotScaledOp<'_, '_>) -> Lowered {
    let operation = op.operation();
    let because = |reason: &str| lowering.unsupported(operation, Some(reason.to_owned()));
    let (Some((left, a_packed)), Some((right, b_packed))) = (
        scaled_element(op.a_elem_type()),
        scaled_element(op.b_elem_type()),
    ) else {
        return Err(because(
            "matrix instructions scale e4m3, e5m2 and e2m1; --decompose-scaled-dot widens others",
        ));
    };
    if a_packed > 1 && !op.lhs_k_pack() || b_packed > 1 && !op.rhs_k_pack() {
        return Err(because("elements that are packed along rows or columns"));
    }
    let [a, b] = [op.a(), op.b()].map(|value| Factor::of(lowering, operation, value));
    let (a, b) = (a?, b?);
    let sum = (
        lowering.tensor_of(operation, op.c())?,
        lowering.registers(op.c()),
    );
    if sum.0.shape.len() != 2 {
        return Err(because("batches of scaled products"));
    }
    let elements = |of: &TensorType, packed: u32, k: usize| match packed {
        1 => Ok(of.layout().clone()),
        _ => unpacked(of.layout(), k),
    };
    let error = |error: LayoutError| because(&error.to_string());
    let a_layout = elements(&a.of, a_packed, 1).map_err(error)?;
    let b_layout = elements(&b.of, b_packed, 0).map_err(error)?;
    let problem = Problem {
        layouts: Matrices {
            a: &a_layout,
            b: &b_layout,
            c: sum.0.layout(),
        },
        a: &[left],
        b: &[right],
        c: SUMS,
    };
    // A scale of one changes nothing.
    let [a_scale, b_scale] = [op.a_scale(), op.b_scale()]
        .map(|scale| scale.filter(|scale| constant(*scale) != Some(ONE as u64)));
    let has_scales = a_scale.is_some() || b_scale.is_some();
    let Some(unit) = lowering.hooks().matrices() else {
        return Err(lowering.unsupported(operation, None));
    };
    let selection = problem
        .select(lowering.hooks().target(), |row| {
            !has_scales || row.scale.is_some()
        })
        .map_err(|reason| match reason {
            Some(reason) => because(&format!(
                "no matrix instruction fits these layouts: {reason}"
            )),
            None => because("no matrix instruction scales these elements"),
        })?;
    let scales = if has_scales {
        let a_elements = Elements {
            layout: &a_layout,
            outer: 0,
            k: 1,
        };
        let b_elements = Elements {
            layout: &b_layout,
            outer: 1,
            k: 0,
        };
        let sides = [(a_scale, a_elements), (b_scale, b_elements)];
        Some(scales(lowering, operation, &selection, sides)?)
    } else {
        None
    };
    let mut factors = Factors {
        matrices: [a, b],
        packed: [a_packed, b_packed],
        sum,
        scales,
    };
    let values = instruction::product(lowering, operation, unit, &selection, &mut factors)?;
    lowering.bind_result(operation, values);
    Ok(())
}

/// For the instruction's first and second operand the scale of each part, as a word.
fn scales<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    selection: &Selection,
    sides: [(Option<Value<'_, '_>>, Elements<'_>); 2],
) -> Lowered<[Vec<V<'ctx>>; 2]> {
    let row = selection.instruction;
    let group = row.scale.map_or(1, |scale| scale.group);
    let [a, b] = sides;
    let [first, second] = if selection.exchanged { [b, a] } else { [a, b] };
    let mut words = Vec::with_capacity(2);
    let roles = [
        (first, &row.a, &selection.division.a),
        (second, &row.b, &selection.division.b),
    ];
    for ((scale, elements), operand, parts) in roles {
        let Some(scale) = scale else {
            words.push(vec![lowering.e.i32(ONE); parts.len()]);
            continue;
        };
        if let Some(code) = constant(scale) {
            words.push(vec![lowering.e.i32(code as i64); parts.len()]);
            continue;
        }
        let from = lowering.tensor_of(op, scale)?;
        let plan = elements.plan(operand, group, parts, &from).ok_or_else(|| {
            let reason = "the groups of the scales are not those of the matrix instruction";
            lowering.unsupported(op, Some(reason.to_owned()))
        })?;
        let values = lowering.registers(scale);
        let Some(places) = from.rename_to(&plan.to, |element| element) else {
            let reason = "the scales are in other threads than the matrix instruction wants";
            return Err(lowering.unsupported(op, Some(reason.to_owned())));
        };
        let placed: Registers<'ctx> = places
            .into_iter()
            .map(|register| values[register as usize])
            .collect();
        let word = lowering.e.int(32).into();
        let placed = lowering.map(&[placed], |e, v| {
            let bits = e.bitcast(v[0], e.int(8).into());
            e.zext(bits, word)
        });
        words.push(plan.registers.iter().map(|i| placed[*i as usize]).collect());
    }
    let mut words = words.into_iter();
    Ok([
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    ])
}
