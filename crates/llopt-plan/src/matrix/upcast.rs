//! Upcasts of microscaled operands: which scale each register of the result needs.
//!
//! A scale belongs to 32 elements along k. The layout of the result, with each group of 32 as one element, is the
//! layout that the scales must have: the coordinate along k loses five bits, and becomes the last one of the scales.
//! A conversion moves the scales there.

use llopt_layout::{Dim, LayoutError};

use crate::tensor::TensorType;

/// Elements along k that share a scale.
const GROUP: u32 = 32;

/// The type that has, in each register, the scale of the operand's register.
///
/// `k` is the operand's dimension that is summed over; scales have the shape (.., outer, groups along k).
///
/// # Errors
/// When there are not as many scales as groups.
pub fn scales_of(
    operand: &TensorType,
    k: usize,
    scale: &TensorType,
) -> Result<TensorType, LayoutError> {
    let rank = operand.shape.len();
    let outer = if k + 1 == rank { rank - 2 } else { rank - 1 };
    let field = |number: u32, dim: usize| {
        let (low, bits) = operand.bits_of_dim(dim);
        number >> low & ((1 << bits) - 1)
    };
    let number = |element: u32| {
        let batches = (0..rank - 2).fold(0, |all, dim| {
            all | field(element, dim) << scale.bits_of_dim(dim).0
        });
        let (row, group) = (field(element, outer), field(element, k) / GROUP);
        batches | row << scale.bits_of_dim(rank - 2).0 | group << scale.bits_of_dim(rank - 1).0
    };
    let numbers: Vec<(Dim, Vec<u32>)> = [Dim::REGISTER, Dim::LANE, Dim::WARP, Dim::BLOCK]
        .into_iter()
        .map(|dim| {
            let bases = operand.layout().flat_bases_of(dim).iter();
            (dim, bases.map(|basis| number(*basis)).collect())
        })
        .collect();
    TensorType::from_numbers(scale.element, scale.shape.clone(), &numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::Element;

    #[test]
    fn each_register_has_the_scale_of_its_group() {
        // 2 rows over lanes; k of 64 over registers, of which the last bit tells the groups apart.
        let numbers = [
            (Dim::REGISTER, vec![1, 2, 4, 8, 16, 32]),
            (Dim::LANE, vec![64]),
            (Dim::WARP, vec![]),
            (Dim::BLOCK, vec![]),
        ];
        let operand = TensorType::from_numbers(Element::Bf16, vec![2, 64], &numbers).unwrap();
        let scale_numbers = [(Dim::REGISTER, vec![1, 2])];
        let scale = TensorType::from_numbers(Element::Int(8), vec![2, 2], &scale_numbers).unwrap();
        let wanted = scales_of(&operand, 1, &scale).unwrap();
        let of: Vec<u32> = [0, 31, 32, 63]
            .map(|register| wanted.element_in(register))
            .to_vec();
        assert_eq!(of, [0, 0, 1, 1]);
        assert_eq!(wanted.thread_bases(), [2]);
    }
}
