//! Matrix products and related operations: `tt.dot`, `tt.dot_scaled`, and operands that are widened and scaled.
//!
//! Products of the elements and their sum are exact or in double precision, rounded once at the end. Compiled code
//! adds in another order and in the precision of the accumulator, and matrix units truncate; the bound of each
//! element covers this, from the magnitudes of all terms, and includes the effect of the operands' bounds.

use llopt_dialects::meaning::kinds::ProductOp;
use llopt_dialects::{amdg, tt, ttng};
use llopt_mlir::ir::{AttributeExt, OperationExt};
use melior::ir::OperationRef;

use crate::machine::row::{Real, mask, sext};
use crate::numbers::float::{E2M1, E2M3, E3M2, E4M3, E5M2, Format};
use crate::units::matrix::scale_of;

use super::bound::{epsilon, roundings};
use super::failure::{Interpreted, unknown};
use super::program::Program;
use super::value::{Element, Entry, Tensor, count, shape_of};

/// Powers of two below which a scaled result may be flushed to zero or rounded to a denormal, and the error of that.
const TINY: [f64; 2] = [1.0 / (1u128 << 112) as f64, 1.0 / (1u128 << 116) as f64];

/// A matrix of numbers: batches of rows (of the first operand) or columns (of the second), each with all of k.
struct Factor {
    outer: usize,
    depth: usize,
    values: Vec<f64>,
    /// Empty where all are zero.
    bounds: Vec<f64>,
}

impl Factor {
    /// The matrix of a tensor whose last two dimensions are (outer, k), or (k, outer), by the value of each element.
    fn of(tensor: &Tensor, k_last: bool, value: impl Fn(u64) -> f64) -> Self {
        let rank = tensor.shape.len();
        let (rows, columns) = (tensor.shape[rank - 2], tensor.shape[rank - 1]);
        let (outer, depth) = if k_last {
            (rows, columns)
        } else {
            (columns, rows)
        };
        let batches = tensor.data.len() / (rows * columns).max(1);
        let places = (0..batches).flat_map(move |batch| {
            (0..outer).flat_map(move |i| {
                (0..depth).map(move |k| {
                    let (row, column) = if k_last { (i, k) } else { (k, i) };
                    (batch * rows + row) * columns + column
                })
            })
        });
        let entries = places.map(|at| (value(tensor.data[at]), tensor.bound_at(at)));
        let (values, mut bounds): (Vec<f64>, Vec<f64>) = entries.unzip();
        if tensor.bound.is_empty() {
            bounds.clear();
        }
        Self {
            outer,
            depth,
            values,
            bounds,
        }
    }

    fn bound_at(&self, at: usize) -> f64 {
        self.bounds.get(at).copied().unwrap_or(0.0)
    }

    /// Two elements along k for each element that consists of two codes of four bits.
    fn unpacked(tensor: &Tensor, k_last: bool, packed_along_k: bool) -> Self {
        let bytes = Self::of(tensor, k_last, |bits| bits as f64);
        let (outer, depth) = if packed_along_k {
            (bytes.outer, 2 * bytes.depth)
        } else {
            (2 * bytes.outer, bytes.depth)
        };
        let batches = bytes.values.len() / (bytes.outer * bytes.depth).max(1);
        let mut values = Vec::with_capacity(batches * outer * depth);
        for batch in 0..batches {
            for i in 0..outer {
                for k in 0..depth {
                    let (row, column, half) = if packed_along_k {
                        (i, k / 2, k % 2)
                    } else {
                        (i / 2, k, i % 2)
                    };
                    let byte =
                        bytes.values[(batch * bytes.outer + row) * bytes.depth + column] as u64;
                    values.push(E2M1.decode(byte >> (4 * half) & 15));
                }
            }
        }
        let doubtful = bytes.bounds.iter().any(|&bound| bound > 0.0);
        Self {
            outer,
            depth,
            bounds: if doubtful {
                vec![f64::INFINITY; values.len()]
            } else {
                Vec::new()
            },
            values,
        }
    }

    /// Multiplies each group along k with its scale: a tensor of (.., outer, groups). Compiled code may do that in
    /// `wide`; beyond its range the result is unknown, and in its denormals it is rounded.
    fn scale(&mut self, scales: &Tensor, wide: Real) -> Interpreted<()> {
        let groups = scales.shape.last().copied().unwrap_or(1).max(1);
        let group = self.depth / groups;
        if scales.data.len() * group != self.values.len() {
            return unknown("scales of this shape");
        }
        for (at, value) in self.values.iter_mut().enumerate() {
            let index = at / group;
            let scale = scale_value(scales.element, scales.data[index]);
            let before = value.abs();
            *value *= scale;
            let [largest, normal, step] = range_of(wide);
            let lost = if scales.bound_at(index) > 0.0 || scale > largest || value.abs() > largest {
                f64::INFINITY
            } else if scale < normal || *value != 0.0 && value.abs() < normal {
                before * step + step
            } else {
                continue;
            };
            self.bounds.resize(scales.data.len() * group, 0.0);
            self.bounds[at] = lost;
        }
        Ok(())
    }
}

/// The value of a scale.
fn scale_value(element: Element, bits: u64) -> f64 {
    element
        .decode(bits)
        .unwrap_or_else(|| scale_of(bits & 0xff))
}

impl<'c, 'a> Program<'c, 'a, '_> {
    /// An operation that adds products, or that widens and scales the operands of one.
    pub(super) fn product_operation(&mut self, op: ProductOp<'c, 'a>) -> Interpreted<Tensor> {
        match op {
            ProductOp::TtDot(op) => self.dot(op.operation(), None),
            ProductOp::TtngWarpGroupDot(op) => self.dot(op.operation(), Some(op)),
            ProductOp::TtDotScaled(scaled) => self.dot_scaled(scaled),
            ProductOp::AmdgUpcastMXFP(upcast) => self.upcast(upcast),
            ProductOp::AmdgScaledUpcastFp4(upcast) => {
                let (input, scale) = (self.tensor(upcast.input())?, self.tensor(upcast.scale())?);
                let axis = upcast.axis() as usize;
                scaled_upcast(upcast.operation(), &scale, |c| {
                    let mut from = c.to_vec();
                    from[axis] /= 2;
                    let byte = input.at(&from);
                    (
                        E2M1.decode(byte.bits >> (4 * (c[axis] % 2)) & 15),
                        byte.bound,
                    )
                })
            }
            ProductOp::AmdgScaledUpcastFp8(upcast) => {
                let (input, scale) = (self.tensor(upcast.input())?, self.tensor(upcast.scale())?);
                scaled_upcast(upcast.operation(), &scale, |c| {
                    let entry = input.at(c);
                    (
                        input.element.decode(entry.bits).unwrap_or(f64::NAN),
                        entry.bound,
                    )
                })
            }
        }
    }

    /// A product of two matrices added to an accumulator, by a warp or by a warp group.
    fn dot(
        &mut self,
        op: OperationRef<'c, 'a>,
        group: Option<ttng::WarpGroupDotOp<'c, 'a>>,
    ) -> Interpreted<Tensor> {
        let mut matrices: Vec<Tensor> = (0..3)
            .map(|i| self.matrix(op, i))
            .collect::<Interpreted<_>>()?;
        // A product of a warp group may ignore the old accumulator.
        if let Some(adds) = group.and_then(ttng::WarpGroupDotOp::use_c)
            && self.tensor(adds)?.only()? & 1 == 0
        {
            let before = &mut matrices[2];
            before.data.fill(0);
            before.bound.clear();
        }
        let precision = op.attr("inputPrecision").and_then(|p| p.as_i64());
        let operand = matrices[0].element.bits();
        let arithmetic = Arithmetic {
            // 0 is tf32: ten bits of mantissa for each factor, whose other bits are truncated. Warp groups support no
            // other format of 32 bits. 3 is a sum of two bf16, sixteen bits for each factor, without the product of
            // the lower parts.
            lost: match precision {
                _ if operand != 32 => 0.0,
                _ if group.is_some() => 2f64.powi(-9),
                Some(0) => 2f64.powi(-9),
                Some(3) => 2f64.powi(-15),
                _ => 0.0,
            },
            coarse: operand == 8 && (group.is_some() || may_be_coarse(op)),
        };
        dot(&matrices[0], &matrices[1], &matrices[2], arithmetic)
    }

    fn dot_scaled(&mut self, op: tt::DotScaledOp<'c, 'a>) -> Interpreted<Tensor> {
        let (a, b, c) = (
            self.tensor(op.a())?,
            self.tensor(op.b())?,
            self.tensor(op.c())?,
        );
        let mut first = factor(&a, op.a_elem_type(), true, op.lhs_k_pack())?;
        let mut second = factor(&b, op.b_elem_type(), false, op.rhs_k_pack())?;
        // The format that both operands fit in.
        let halves = tt::ScaleDotElemType::Fp16;
        let wide = match [op.a_elem_type(), op.b_elem_type()].contains(&halves) {
            true => Real::F16,
            false => Real::BF16,
        };
        for (factor, scale) in [(&mut first, op.a_scale()), (&mut second, op.b_scale())] {
            if let Some(scale) = self.optional(scale)? {
                factor.scale(&scale, wide)?;
            }
        }
        multiply(&first, &second, &c, Arithmetic::default())
    }

    /// A matrix operand as wider floats, each multiplied by the scale of its group of 32 along k.
    fn upcast(&mut self, op: amdg::UpcastMXFPOp<'c, 'a>) -> Interpreted<Tensor> {
        let (source, scale) = (self.tensor(op.src())?, self.tensor(op.scale())?);
        let operation = op.operation();
        let shape = operation
            .result_types()
            .next()
            .map(shape_of)
            .unwrap_or_default();
        let rank = shape.len();
        let Some(k) = amdg::upcast_summed_dimension(op) else {
            return unknown("an upcast of what is no operand of a product");
        };
        let outer = 2 * rank - 3 - k;
        let packed = source.shape[k] != shape[k];
        let format = format_of(op.fp_type());
        scaled_entries(operation, |c| {
            let mut from = c.to_vec();
            let mut place = c.to_vec();
            place[rank - 2] = c[outer];
            place[rank - 1] = c[k] / 32;
            let value = if packed {
                from[k] /= 2;
                let byte = source.at(&from);
                (E2M1.decode(byte.bits >> (4 * (c[k] % 2)) & 15), byte.bound)
            } else {
                let entry = source.at(&from);
                let decoded = source.element.decode(entry.bits);
                let value = decoded.or_else(|| Some(format?.decode(entry.bits)));
                (value.unwrap_or(f64::NAN), entry.bound)
            };
            let scale = scale.at(&place);
            (value.0, value.1, scale_of(scale.bits & 0xff), scale.bound)
        })
    }
}

/// The format of elements that have no type.
fn format_of(kind: tt::ScaleDotElemType) -> Option<Format> {
    use tt::ScaleDotElemType as Kind;
    match kind {
        Kind::E4m3 => Some(E4M3),
        Kind::E5m2 => Some(E5M2),
        Kind::E2m3 => Some(E2M3),
        Kind::E3m2 => Some(E3M2),
        Kind::E2m1 => Some(E2M1),
        Kind::Bf16 | Kind::Fp16 => None,
    }
}

/// An operand of a scaled product without its scale.
fn factor(
    tensor: &Tensor,
    kind: tt::ScaleDotElemType,
    k_last: bool,
    packed_along_k: bool,
) -> Interpreted<Factor> {
    if kind == tt::ScaleDotElemType::E2m1 {
        return Ok(Factor::unpacked(tensor, k_last, packed_along_k));
    }
    let format = format_of(kind);
    if tensor.element.decode(0).is_none() && format.is_none() {
        return unknown("a scaled operand of this type");
    }
    Ok(Factor::of(tensor, k_last, |bits| {
        let decoded = tensor.element.decode(bits);
        decoded
            .or_else(|| Some(format?.decode(bits)))
            .unwrap_or(f64::NAN)
    }))
}

/// Elements multiplied by scales of the same shape.
fn scaled_upcast(
    op: OperationRef<'_, '_>,
    scale: &Tensor,
    value: impl Fn(&[usize]) -> (f64, f64),
) -> Interpreted<Tensor> {
    scaled_entries(op, |c| {
        let (value, bound) = value(c);
        let entry = scale.at(c);
        // Hardware uses only the exponent of a scale.
        let factor = scale.element.decode(entry.bits).unwrap_or(f64::NAN);
        let open = !factor.is_normal();
        let bound = if open { f64::INFINITY } else { bound };
        (value, bound, factor, entry.bound)
    })
}

/// A result whose elements are numbers multiplied by scales, with the bounds of both.
fn scaled_entries(
    op: OperationRef<'_, '_>,
    entry: impl Fn(&[usize]) -> (f64, f64, f64, f64),
) -> Interpreted<Tensor> {
    let ty = op.result_types().next();
    let shape = ty.map(shape_of).unwrap_or_default();
    let Some(element @ Element::Real(real)) = ty.and_then(Element::of_tensor) else {
        return unknown("scaled elements of this type");
    };
    Ok(Tensor::generate(&shape, element, |c| {
        let (value, bound, scale, scale_bound) = entry(c);
        let product = value * scale;
        let small = product != 0.0 && product.abs() < TINY[0];
        let bound = if bound == 0.0 && scale_bound == 0.0 {
            if small { TINY[1] } else { 0.0 }
        } else {
            clean(value.abs() * scale_bound + scale.abs() * bound + bound * scale_bound)
        };
        Entry {
            bits: real.encode(product),
            bound,
        }
    }))
}

/// A bound, with infinity for NaN.
fn clean(bound: f64) -> f64 {
    if bound >= 0.0 { bound } else { f64::INFINITY }
}

/// The largest finite number of a type.
fn largest_of(real: Real) -> f64 {
    match real {
        Real::F64 => f64::MAX,
        Real::F32 | Real::F32Flush | Real::F32Quiet | Real::F32FlushQuiet => f64::from(f32::MAX),
        Real::F16 => 65504.0,
        Real::BF16 => LARGEST_BF16,
    }
}

/// For a type of 16 bits: the largest number, the least normal number, and the error of numbers below that: the
/// distance of denormals, or, where they are flushed to zero, the number itself.
fn range_of(real: Real) -> [f64; 3] {
    match real {
        Real::F16 => [largest_of(real), 2f64.powi(-14), 2f64.powi(-24)],
        _ => [largest_of(real), 2f64.powi(-126), 2f64.powi(-126)],
    }
}

/// The smallest normal number of a type.
fn smallest_of(real: Real) -> f64 {
    match real {
        Real::F64 => f64::MIN_POSITIVE,
        Real::F32 | Real::F32Flush | Real::F32Quiet | Real::F32FlushQuiet | Real::BF16 => {
            f64::from(f32::MIN_POSITIVE)
        }
        Real::F16 => 2f64.powi(-14),
    }
}

/// The largest bfloat16.
const LARGEST_BF16: f64 = f32::from_bits(0x7f7f_0000) as f64;

/// The errors of compiled code besides the roundings of its sums.
#[derive(Clone, Copy, Default)]
struct Arithmetic {
    /// The relative error of products whose factors are rounded to fewer bits first.
    lost: f64,
    /// Whether the unit aligns 32 products and the sum before them to the largest, and truncates each after 13 bits.
    coarse: bool,
}

/// Whether a product may be computed by such a unit.
fn may_be_coarse(op: OperationRef<'_, '_>) -> bool {
    tt::DotOp::of(op).is_some_and(|dot| dot.max_num_imprecise_acc() >= 32)
}

/// `a b + c` on the last two axes.
fn dot(a: &Tensor, b: &Tensor, c: &Tensor, arithmetic: Arithmetic) -> Interpreted<Tensor> {
    if let Element::Int(width) = c.element {
        return Ok(integer_dot(a, b, c, width));
    }
    if [a, b].iter().any(|t| t.element.decode(0).is_none()) {
        return unknown("a dot product of mixed kinds");
    }
    let value = |element: Element| move |bits| element.decode(bits).unwrap_or(f64::NAN);
    let first = Factor::of(a, true, value(a.element));
    let second = Factor::of(b, false, value(b.element));
    multiply(&first, &second, c, arithmetic)
}

fn multiply(a: &Factor, b: &Factor, c: &Tensor, arithmetic: Arithmetic) -> Interpreted<Tensor> {
    let Element::Real(real) = c.element else {
        return unknown("a dot product of this type");
    };
    let depth = a.depth;
    let batches = c.data.len() / (a.outer * b.outer).max(1);
    if b.depth != depth
        || a.values.len() != batches * a.outer * depth
        || count(&c.shape) != c.data.len()
    {
        return unknown("a dot product of these shapes");
    }
    // The precision in which products may be added: matrix units truncate, which adds one unit of error, and a format
    // with fewer bits may be used for the operands of single precision.
    let unit = 2.0 * epsilon(c.element) * roundings(depth + 1) + arithmetic.lost;
    let is_doubtful = [&a.bounds, &b.bounds]
        .iter()
        .any(|bounds| !bounds.is_empty());
    let mut result = c.clone();
    result.bound = vec![0.0; result.data.len()];
    for (at, bits) in result.data.iter_mut().enumerate() {
        let (i, j) = (at / b.outer, at % b.outer);
        let batch = i / a.outer;
        let (row, column) = (i * depth, (batch * b.outer + j) * depth);
        let start = real.decode(*bits);
        let (mut sum, mut size) = (0.0, start.abs());
        // The truncation errors, the largest product of an instruction, and the sum before it.
        let (mut cut, mut largest, mut before) = (0.0, 0.0f64, size);
        for k in 0..depth {
            let product = a.values[row + k] * b.values[column + k];
            sum += product;
            size += product.abs();
            largest = largest.max(product.abs());
            if arithmetic.coarse && (k % 32 == 31 || k + 1 == depth) {
                cut += 33.0 * 2f64.powi(-13) * largest.max(before + cut);
                (largest, before) = (0.0, (sum + start).abs());
            }
        }
        let mut carried = c.bound_at(at) + cut;
        if is_doubtful {
            for k in 0..depth {
                let (x, y) = (a.values[row + k].abs(), b.values[column + k].abs());
                let (dx, dy) = (a.bound_at(row + k), b.bound_at(column + k));
                if dx > 0.0 || dy > 0.0 {
                    carried += x * dy + y * dx + dx * dy;
                }
            }
            carried += unit * carried;
        }
        // Where terms exceed the range of the accumulator, the result depends on their order.
        let ordered = (size + carried) * (1.0 + unit) < largest_of(real);
        // Below the normal numbers a rounding is as large as at the smallest of them.
        let rounded = if size > 0.0 {
            size.max(smallest_of(real))
        } else {
            0.0
        };
        let bound = if ordered {
            unit * rounded + carried
        } else {
            f64::INFINITY
        };
        result.bound[at] = clean(bound);
        *bits = real.encode(sum + start);
    }
    Ok(result)
}

fn integer_dot(a: &Tensor, b: &Tensor, c: &Tensor, width: u32) -> Tensor {
    let number = |element: Element| move |bits| sext(bits, element.bits()) as f64;
    let first = Factor::of(a, true, number(a.element));
    let second = Factor::of(b, false, number(b.element));
    let depth = first.depth;
    let mut result = c.clone();
    result.bound.clear();
    let doubtful = [a, b, c].iter().any(|t| !t.bound.is_empty());
    for (at, bits) in result.data.iter_mut().enumerate() {
        let (i, j) = (at / second.outer, at % second.outer);
        let (row, column) = (i * depth, (i / first.outer * second.outer + j) * depth);
        let sum = (0..depth).fold(sext(*bits, width), |sum, k| {
            let product =
                (first.values[row + k] as i64).wrapping_mul(second.values[column + k] as i64);
            sum.wrapping_add(product)
        });
        *bits = sum as u64 & mask(width);
    }
    if doubtful {
        result.bound = vec![f64::INFINITY; result.data.len()];
    }
    result
}
