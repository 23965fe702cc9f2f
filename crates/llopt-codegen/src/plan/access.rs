//! How wide a thread may access memory: what must be known about addresses and masks, and the choice.
//!
//! Registers form a vector when they hold consecutive elements along one tensor dimension, and the
//! addresses of these elements are consecutive, aligned to the vector's size, and share one mask value. The
//! first is a question to the layout; the rest are facts about values that an analysis provides.

use melior::ir::Value;

use crate::values::tensor::TensorType;

/// What is known about a value along one dimension of its tensor; all are powers of two, at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DimFacts {
    /// Aligned groups of this many elements hold consecutive integers or addresses.
    pub contiguity: u64,
    /// A divisor of the first element of each such group (in bytes for addresses).
    pub divisibility: u64,
    /// Aligned groups of this many elements hold one value.
    pub constancy: u64,
}

/// What codegen wants to know about integers, addresses and masks.
pub trait AccessFacts {
    /// The facts about a value, one entry per dimension (a scalar has one); `None` when nothing is known.
    fn facts(&self, value: Value<'_, '_>) -> Option<Vec<DimFacts>>;
}

/// Knows nothing: every access is one element wide.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFacts;

impl AccessFacts for NoFacts {
    fn facts(&self, _value: Value<'_, '_>) -> Option<Vec<DimFacts>> {
        None
    }
}

/// A vector access pattern: which registers go together, in the order of their addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    /// Registers per access.
    pub width: usize,
    /// The accesses; each lists `width` registers.
    pub groups: Vec<Vec<usize>>,
}

/// What limits the width of an access along one dimension, in elements.
pub trait WidthLimit {
    /// The largest width that addresses and masks allow along `dim`.
    fn along(&self, dim: usize) -> u64;
}

impl<F: Fn(usize) -> u64> WidthLimit for F {
    fn along(&self, dim: usize) -> u64 {
        self(dim)
    }
}

/// Chooses the widest groups of registers: along the dimension that allows the most elements per access,
/// up to `max_width`. Repeated registers are in no group.
#[must_use]
pub fn choose_groups(tensor: &TensorType, max_width: u32, limit: &impl WidthLimit) -> Groups {
    let register_bases: Vec<u32> = (0..tensor.registers().trailing_zeros())
        .map(|bit| tensor.element_in(1 << bit))
        .collect();
    let mut best: (u32, Vec<u32>) = (0, Vec::new());
    for dim in 0..tensor.shape.len() {
        let (low, extent_bits) = tensor.bits_of_dim(dim);
        let allowed = limit
            .along(dim)
            .min(u64::from(max_width))
            .max(1)
            .ilog2()
            .min(extent_bits);
        // The register bits that step by 1, 2, 4, … along this dimension.
        let mut bits = Vec::new();
        while (bits.len() as u32) < allowed {
            let step = 1u32 << (low + bits.len() as u32);
            match register_bases.iter().position(|basis| *basis == step) {
                Some(bit) => bits.push(bit as u32),
                None => break,
            }
        }
        // No other bit, of registers, lanes, warps or blocks, may touch the low bits of the dimension.
        let others = register_bases
            .iter()
            .enumerate()
            .filter(|(bit, _)| !bits.contains(&(*bit as u32)))
            .map(|(_, basis)| *basis)
            .chain(tensor.thread_bases())
            .chain(tensor.block_bases().iter().copied());
        let touched = others.fold(0, |all, basis| all | basis) >> low;
        let clean = touched.trailing_zeros().min(bits.len() as u32);
        bits.truncate(clean as usize);
        if bits.len() as u32 > best.0 {
            best = (bits.len() as u32, bits);
        }
    }
    let bits = best.1;
    let inside: usize = bits.iter().map(|bit| 1usize << bit).sum();
    let starts = (0..tensor.registers())
        .filter(|register| register & inside == 0 && tensor.is_canonical(*register));
    let groups = starts
        .map(|start| {
            (0..1usize << bits.len())
                .map(|i| {
                    bits.iter()
                        .enumerate()
                        .fold(start, |register, (at, bit)| register | (i >> at & 1) << bit)
                })
                .collect()
        })
        .collect();
    Groups {
        width: 1 << bits.len(),
        groups,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::element::Element;
    use llopt_layout::{Dim, LinearLayout};

    fn tensor(shape: &[u32], registers: &[[u32; 2]], lanes: &[[u32; 2]]) -> TensorType {
        let vectors =
            |bases: &[[u32; 2]]| bases.iter().map(|basis| basis.to_vec()).collect::<Vec<_>>();
        let (registers, lanes) = (vectors(registers), vectors(lanes));
        let bases: [(Dim, &[Vec<u32>]); 4] = [
            (Dim::REGISTER, &registers),
            (Dim::LANE, &lanes),
            (Dim::WARP, &[]),
            (Dim::BLOCK, &[]),
        ];
        let outs: Vec<_> = shape
            .iter()
            .enumerate()
            .map(|(i, size)| (Dim::tensor(i), *size))
            .collect();
        TensorType::new(
            Element::F32,
            shape.to_vec(),
            &LinearLayout::from_bases(&bases, &outs).unwrap(),
        )
        .unwrap()
    }

    #[test]
    fn vectors_follow_the_facts_and_the_layout() {
        let rows = tensor(&[4, 4], &[[0, 1], [0, 2]], &[[1, 0], [2, 0]]);
        assert_eq!(choose_groups(&rows, 4, &|_| 4).width, 4);
        assert_eq!(choose_groups(&rows, 4, &|_| 2).groups, [[0, 1], [2, 3]]);
        assert_eq!(
            choose_groups(&rows, 4, &|dim| if dim == 0 { 4 } else { 1 }).width,
            1
        );
    }

    #[test]
    fn register_bits_may_stand_in_any_order() {
        let swapped = tensor(&[4, 4], &[[1, 0], [0, 1]], &[[2, 0], [0, 2]]);
        let groups = choose_groups(&swapped, 4, &|dim| if dim == 1 { 4 } else { 1 });
        assert_eq!(groups.groups, [[0, 2], [1, 3]]);
    }

    #[test]
    fn a_lane_that_swizzles_low_bits_forbids_the_vector() {
        let swizzled = tensor(&[4, 4], &[[0, 1], [0, 2]], &[[1, 1], [2, 0]]);
        assert_eq!(choose_groups(&swizzled, 4, &|_| 4).width, 1);
    }

    #[test]
    fn repeated_registers_are_in_no_group() {
        let repeated = tensor(&[4, 4], &[[0, 1], [0, 0], [0, 2]], &[[1, 0], [2, 0]]);
        assert_eq!(choose_groups(&repeated, 4, &|_| 4).groups, [[0, 1, 4, 5]]);
    }
}
