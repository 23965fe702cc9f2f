//! The common shape of two values: scalars are splatted, extents of 1 are broadcast.

use llopt_dialects::tables::types::{Pointer, RankedTensor, element_or_self};
use llopt_dialects::tt;
use melior::ir::{Value as Raw, ValueLike};

use super::kernel::At;
use super::value::extents;
use super::{Element, KernelBuilder, Operand, Value};

impl<'k> Value<'k> {
    /// The value and another operand, in one shape.
    pub(super) fn meet(self, at: At, other: impl Operand<'k>) -> Option<[Raw<'k, 'k>; 2]> {
        let left = self.raw()?;
        // A constant next to a pointer is an offset.
        let mut like = left.r#type();
        if Pointer::of(element_or_self(like)).is_some() {
            like = Element::I32.to_type(self.kernel.mlir())?;
        }
        let right = other.place(self.kernel, like, at).raw()?;
        self.kernel.meet(at, left, right)
    }
}

impl<'k> KernelBuilder<'k> {
    /// Two values in one shape: scalars are splatted, extents of 1 are broadcast.
    pub(super) fn meet(
        &'k self,
        at: At,
        left: Raw<'k, 'k>,
        right: Raw<'k, 'k>,
    ) -> Option<[Raw<'k, 'k>; 2]> {
        let sides = [left, right].map(|raw| RankedTensor::of(raw.r#type()));
        match sides {
            [None, None] => Some([left, right]),
            [Some(tensor), None] => Some([left, self.spread(at, right, tensor)?]),
            [None, Some(tensor)] => Some([self.spread(at, left, tensor)?, right]),
            [Some(one), Some(other)] => {
                let (a, b) = (extents(one), extents(other));
                let joint = joint_shape(&a, &b);
                let (Some(joint), true) = (joint, one.encoding() == other.encoding()) else {
                    let [left, right] = [left, right].map(|raw| raw.r#type());
                    self.fail(at, format!("the shapes of {left} and {right} do not meet"));
                    return None;
                };
                let left = self.repeated(at, left, one, &joint)?;
                let right = self.repeated(at, right, other, &joint)?;
                Some([left, right])
            }
        }
    }

    /// A scalar in the shape and layout of a tensor.
    fn spread(
        &'k self,
        at: At,
        scalar: Raw<'k, 'k>,
        like: RankedTensor<'k>,
    ) -> Option<Raw<'k, 'k>> {
        let r#type = like.with_element(scalar.r#type());
        self.one(tt::SplatOp::build(self.place(at), r#type, scalar))
            .raw()
    }

    /// A tensor with its extents of 1 broadcast.
    fn repeated(
        &'k self,
        at: At,
        value: Raw<'k, 'k>,
        tensor: RankedTensor<'k>,
        shape: &[u64],
    ) -> Option<Raw<'k, 'k>> {
        if extents(tensor) == shape {
            return Some(value);
        }
        let shape: Vec<i64> = shape.iter().map(|extent| extent.cast_signed()).collect();
        let r#type = RankedTensor::get(&shape, tensor.element(), tensor.encoding());
        self.one(tt::BroadcastOp::build(self.place(at), r#type, value))
            .raw()
    }
}

/// The shape to which both can be broadcast; `None` if there is none.
pub(super) fn joint_shape(left: &[u64], right: &[u64]) -> Option<Vec<u64>> {
    if left.len() != right.len() {
        return None;
    }
    let extents = left.iter().zip(right).map(|pair| match pair {
        (&a, &b) if a == b || b == 1 => Some(a),
        (1, &b) => Some(b),
        _ => None,
    });
    extents.collect()
}

#[cfg(test)]
mod tests {
    use super::joint_shape;

    #[test]
    fn extents_of_one_are_repeated() {
        assert_eq!(joint_shape(&[1, 8], &[4, 1]), Some(vec![4, 8]));
        assert_eq!(joint_shape(&[4, 8], &[4, 8]), Some(vec![4, 8]));
        assert_eq!(joint_shape(&[4], &[8]), None);
        assert_eq!(joint_shape(&[4], &[4, 4]), None);
    }
}
