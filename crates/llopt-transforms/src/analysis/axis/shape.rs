//! Transfer functions of the ops that create and rearrange tensors.
//!
//! All of them only relabel positions, so each claim is an earlier one read along the new dimensions.

use llopt_plan::facts::{mask, signed};

use super::{AxisFacts, DimFacts, Pow2};

/// The facts of the integers `start, start + 1, …`, `length` of them, 32 bits wide.
pub fn make_range(start: u32, length: u64) -> AxisFacts {
    if length == 1 {
        return AxisFacts::constant(u64::from(start), 32, &[1]);
    }
    AxisFacts {
        dims: vec![DimFacts {
            contiguity: Pow2::dividing(length),
            divisibility: Pow2::dividing(u64::from(start)),
            constancy: Pow2::ONE,
        }],
        step: Pow2::ONE,
        constant: None,
        non_negative: signed(u64::from(start), 32) >= 0,
    }
}

/// The facts of a scalar copied to every position of a tensor.
pub fn splat(scalar: &AxisFacts, shape: &[u64]) -> AxisFacts {
    let divisibility = scalar.divisor();
    let dim = |&size: &u64| DimFacts {
        contiguity: Pow2::ONE,
        divisibility,
        constancy: Pow2::dividing(size),
    };
    AxisFacts {
        dims: shape.iter().map(dim).collect(),
        ..scalar.clone()
    }
}

/// The facts of some one element of a tensor, as a scalar: `tt.unsplat`, an extracted element, the
/// result of a reduction that picks an element.
pub fn element(tensor: &AxisFacts) -> AxisFacts {
    AxisFacts {
        dims: vec![DimFacts {
            divisibility: tensor.divisor(),
            ..DimFacts::UNKNOWN
        }],
        ..tensor.clone()
    }
}

/// The facts after a dimension of size one is inserted before dimension `axis`.
///
/// Every position along it is the start of a run, so its divisibility is that of all elements.
pub fn expand_dims(x: &AxisFacts, axis: usize) -> AxisFacts {
    let mut facts = x.clone();
    let inserted = DimFacts {
        divisibility: x.divisor(),
        ..DimFacts::UNKNOWN
    };
    facts.dims.insert(axis.min(x.rank()), inserted);
    facts
}

/// The facts after each dimension of size one is repeated to the size of the result.
pub fn broadcast(x: &AxisFacts, from: &[u64], to: &[u64]) -> AxisFacts {
    let mut facts = x.clone();
    for ((dim, &from), &to) in facts.dims.iter_mut().zip(from).zip(to) {
        if from == 1 && to != 1 {
            dim.contiguity = Pow2::ONE;
            dim.constancy = Pow2::dividing(to);
        }
    }
    facts
}

/// The facts after a permutation: dimension `d` of the result is dimension `order[d]` of `x`.
pub fn transpose(x: &AxisFacts, order: &[usize]) -> AxisFacts {
    let dims = order
        .iter()
        .map(|&dim| x.dims.get(dim).copied().unwrap_or(DimFacts::UNKNOWN));
    AxisFacts {
        dims: dims.collect(),
        ..x.clone()
    }
}

/// The facts after the elements, in row-major order, are given a new shape. All sizes are powers
/// of two.
///
/// A row-major position is a string of bits, each dimension a substring, the last one lowest. A
/// step along a dimension of the result that begins at bit `o` of a dimension of `x` is a step of
/// `2^o` there. So for `o = 0` runs are kept up to the smaller size; for `o > 0` a run of `k` equal
/// elements becomes one of `k / 2^o` and contiguity is lost. Equal elements that fill the dimension
/// of `x` go on into the next one.
pub fn reshape(x: &AxisFacts, from: &[u64], to: &[u64]) -> AxisFacts {
    let everywhere = x.divisor();
    let powers_of_two = from.iter().chain(to).all(|size| size.is_power_of_two());
    if !powers_of_two || from.len() != x.rank() {
        return rearranged(x, to);
    }
    let mut dims = vec![DimFacts::UNKNOWN; to.len()];
    // The lowest bit, in the row-major position, of the dimension at hand.
    let mut low_bit = 0;
    for (result, &size) in dims.iter_mut().zip(to).rev() {
        let bits = size.ilog2();
        result.divisibility = everywhere;
        if bits > 0 {
            let (run, constancy) = reshaped_dim(x, from, low_bit, bits);
            result.constancy = constancy;
            if let Some((dim, contiguity)) = run {
                result.contiguity = contiguity;
                result.divisibility = x.divisibility_at(dim, contiguity).max(everywhere);
            }
        }
        low_bit += bits;
    }
    AxisFacts { dims, ..x.clone() }
}

/// For the `bits` bits of the row-major position from `low_bit` on: the dimension of `x` whose runs
/// they begin with and the length of those, if they begin where a dimension does; and the length of
/// runs of equal elements.
fn reshaped_dim(
    x: &AxisFacts,
    from: &[u64],
    low_bit: u32,
    bits: u32,
) -> (Option<(usize, Pow2)>, Pow2) {
    let mut begin = 0;
    let mut run = None;
    let mut constant_bits = 0;
    for dim in (0..from.len()).rev() {
        let size = from[dim].ilog2();
        let end = begin + size;
        let position = low_bit + constant_bits;
        if size > 0 && begin <= position && position < end {
            let offset = position - begin;
            if constant_bits == 0 && offset == 0 {
                let length = x.dims[dim].contiguity.min(Pow2::from_log2(bits));
                run = Some((dim, length));
            }
            let equal = x.dims[dim].constancy.log2().min(size);
            if equal <= offset {
                break;
            }
            constant_bits += equal - offset;
            if equal < size || constant_bits >= bits {
                break;
            }
        }
        begin = end;
    }
    (run, Pow2::from_log2(constant_bits.min(bits)))
}

/// The facts of a tensor with the same elements in an order of which nothing is known.
pub fn rearranged(x: &AxisFacts, to: &[u64]) -> AxisFacts {
    let divisibility = x.divisor();
    let dim = |&size: &u64| DimFacts {
        contiguity: Pow2::ONE,
        divisibility,
        constancy: match x.constant {
            Some(_) => Pow2::dividing(size),
            None => Pow2::ONE,
        },
    };
    AxisFacts {
        dims: to.iter().map(dim).collect(),
        ..x.clone()
    }
}

/// The facts of two tensors interleaved along a new last dimension of size two.
pub fn join(x: &AxisFacts, y: &AxisFacts) -> AxisFacts {
    let mut facts = x.meet(y);
    facts.dims.push(DimFacts {
        divisibility: x.divisor().min(y.divisor()),
        constancy: match facts.constant {
            Some(_) => Pow2::from_log2(1),
            None => Pow2::ONE,
        },
        ..DimFacts::UNKNOWN
    });
    facts
}

/// The facts of either half along the last dimension, of size two, which is dropped.
pub fn split(x: &AxisFacts) -> AxisFacts {
    let mut facts = x.clone();
    facts.dims.pop();
    for dim in &mut facts.dims {
        dim.divisibility = dim.divisibility.max(x.divisor());
    }
    facts
}

/// The facts of two tensors put one after the other in unknown order.
pub fn concatenate(x: &AxisFacts, y: &AxisFacts, to: &[u64]) -> AxisFacts {
    let mut facts = rearranged(&x.meet(y), to);
    for dim in &mut facts.dims {
        dim.divisibility = x.divisor().min(y.divisor());
    }
    facts
}

/// The facts of a dense integer constant, `values` in row-major order, by looking at each element.
pub fn dense(values: &[u64], width: u32, shape: &[u64]) -> AxisFacts {
    let at = |position: usize| values[position] & mask(width);
    let total: usize = shape.iter().map(|&size| size as usize).product();
    if values.is_empty() || values.len() != total {
        return AxisFacts::unknown(shape.len(), Pow2::ONE);
    }
    if values.iter().all(|&value| value == values[0]) {
        return AxisFacts::constant(values[0], width, shape);
    }
    let mut stride = total;
    let dims = shape.iter().map(|&size| {
        stride /= size as usize;
        // Along this dimension, the index of a position and that of its successor.
        let steps = (0..total).filter_map(|position| {
            let index = position / stride % size as usize;
            (index + 1 < size as usize).then_some((index + 1, position, position + stride))
        });
        let longest = |follows: &dyn Fn(u64, u64) -> bool| {
            // A break before index `i` ends every run that would contain both `i - 1` and `i`;
            // aligned runs of 2^b do unless 2^b divides i.
            let breaks = steps.clone();
            breaks
                .filter(|&(_, position, next)| !follows(at(position), at(next)))
                .map(|(index, _, _)| Pow2::dividing(index as u64))
                .min()
                .unwrap_or(Pow2::dividing(size))
                .min(Pow2::dividing(size))
        };
        let contiguity = longest(&|a, b| a.wrapping_add(1) & mask(width) == b);
        let starts = (0..total).filter(|position| {
            let index = (position / stride % size as usize) as u64;
            index.is_multiple_of(contiguity.get())
        });
        DimFacts {
            contiguity,
            divisibility: starts
                .map(|position| Pow2::dividing(at(position)))
                .min()
                .unwrap_or(Pow2::ONE),
            constancy: longest(&|a, b| a == b),
        }
    });
    AxisFacts {
        dims: dims.collect(),
        step: Pow2::ONE,
        constant: None,
        non_negative: values.iter().all(|&value| signed(value, width) >= 0),
    }
}
