//! Atomics on global memory: how many elements one instruction updates, and which registers it takes.

use llopt_dialects::tt::RmwOp;
use llopt_target::Target;
use llopt_target::atomics::SummedFloat;

use crate::element::Element;
use crate::facts::AxisFacts;
use crate::global_access::{AccessKind, AccessPrice, Addresses, GlobalAccess};
use crate::sectors::Strides;
use crate::tensor::TensorType;

/// How many neighbouring elements one instruction updates, for naturally aligned groups.
#[must_use]
pub fn width(update: RmwOp, element: Element, target: Target) -> u32 {
    let summed = match element {
        Element::F16 => SummedFloat::Half,
        Element::Bf16 => SummedFloat::Bfloat,
        Element::F32 => SummedFloat::Single,
        _ => return 1,
    };
    match update {
        RmwOp::Fadd => target.atomic_sum_width(summed),
        RmwOp::And
        | RmwOp::Or
        | RmwOp::Xor
        | RmwOp::Add
        | RmwOp::Max
        | RmwOp::Min
        | RmwOp::Umax
        | RmwOp::Umin
        | RmwOp::Exch => 1,
    }
}

/// Whether the elements of a group may have different masks: an update of some of them is carried out on the whole
/// group.
#[must_use]
pub fn takes_whole_groups(update: RmwOp, element: Element, target: Target) -> bool {
    target.atomics_take_whole_groups() && width(update, element, target) > 1
}

/// The cost of an update of a tensor, for a warp; `update` is none for a compare-and-swap. It does not include
/// handing the old values to threads that hold copies.
#[must_use]
pub fn price(
    update: Option<RmwOp>,
    tensor: &TensorType,
    addresses: Addresses<'_>,
    strides: Option<&Strides>,
    mask: Option<&AxisFacts>,
    target: Target,
) -> AccessPrice {
    let element = tensor.element;
    let access = |mask| GlobalAccess {
        tensor,
        addresses,
        strides,
        mask,
        kind: AccessKind::Atomic {
            widest: update.map_or(1, |update| width(update, element, target)),
        },
    };
    let of_one_mask = access(mask).price(target);
    match update {
        Some(update) if takes_whole_groups(update, element, target) => {
            let whole = access(None).price(target);
            if whole.width > of_one_mask.width {
                whole
            } else {
                of_one_mask
            }
        }
        _ => of_one_mask,
    }
}

#[cfg(test)]
mod tests {
    use llopt_layout::Dim;

    use super::*;
    use crate::facts::Pow2;

    #[test]
    fn pairs_are_updated_together_where_their_masks_differ_if_the_hardware_does_not_mind() {
        let numbers = [
            (Dim::REGISTER, vec![1, 2]),
            (Dim::LANE, vec![4, 8, 16, 32, 64]),
            (Dim::WARP, Vec::new()),
            (Dim::BLOCK, Vec::new()),
        ];
        let tensor = TensorType::from_numbers(Element::F16, vec![128], &numbers).unwrap();
        let facts = AxisFacts::unknown(1, Pow2::from_log2(1)).with_promises(&[128], &[256], &[]);
        let unknown = AxisFacts::unknown(1, Pow2::ONE);
        let price_on = |name: &str, mask: Option<&AxisFacts>, update| {
            let target = Target::parse(name).unwrap();
            let addresses = Addresses::Pointers(&facts);
            let price = price(update, &tensor, addresses, None, mask, target);
            (price.width, price.instructions)
        };
        assert_eq!(price_on("cuda:80", None, Some(RmwOp::Fadd)), (2, 2));
        assert_eq!(
            price_on("cuda:80", Some(&unknown), Some(RmwOp::Fadd)),
            (1, 4)
        );
        assert_eq!(price_on("cuda:90", None, Some(RmwOp::Fadd)), (4, 1));
        assert_eq!(
            price_on("hip:gfx942", Some(&unknown), Some(RmwOp::Fadd)),
            (2, 2)
        );
        assert_eq!(price_on("hip:gfx942", None, None), (1, 4));
    }
}
