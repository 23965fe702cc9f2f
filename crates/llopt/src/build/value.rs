//! Values: what they are, and how the shapes of two of them meet.

use std::fmt;

use llopt_dialects::check::infer::encoding_of;
use llopt_dialects::layout::encoding::Encoding;
use llopt_dialects::tables::types::{Pointer, RankedTensor, element_or_self};
use llopt_dialects::tt;
use melior::ir::{Type, Value as Raw, ValueLike};

use super::kernel::At;
use super::{Element, KernelBuilder, Operand};

/// A value of a kernel; see [the module](super). Broken after a mistake.
#[derive(Clone, Copy)]
pub struct Value<'k> {
    pub(super) kernel: &'k KernelBuilder<'k>,
    raw: Option<Raw<'k, 'k>>,
}

impl<'k> Value<'k> {
    pub(super) fn new(kernel: &'k KernelBuilder<'k>, raw: Option<Raw<'k, 'k>>) -> Self {
        Self { kernel, raw }
    }

    pub(super) fn is_of(self, kernel: &KernelBuilder<'_>) -> bool {
        std::ptr::eq(
            std::ptr::from_ref(self.kernel).cast::<()>(),
            std::ptr::from_ref(kernel).cast::<()>(),
        )
    }

    /// The value in MLIR's terms, for the generated builders; `None` if broken.
    pub fn raw(self) -> Option<Raw<'k, 'k>> {
        self.raw
    }

    /// The type in MLIR's terms; `None` if broken.
    pub fn raw_type(self) -> Option<Type<'k>> {
        self.raw.map(|raw| raw.r#type())
    }

    /// What the number is, or each number of the tensor; `None` for pointers, and if broken.
    pub fn element(self) -> Option<Element> {
        Element::of(element_or_self(self.raw_type()?))
    }

    /// What the pointer, or each pointer of the tensor, points to; `None` for others.
    pub fn pointee(self) -> Option<Element> {
        Element::of(Pointer::of(element_or_self(self.raw_type()?))?.pointee())
    }

    /// The extents of the tensor; empty for scalars, and if broken.
    pub fn shape(self) -> Vec<u64> {
        let tensor = self.raw_type().and_then(RankedTensor::of);
        tensor.map_or_else(Vec::new, extents)
    }

    /// The layout of the tensor, if it has one.
    pub fn layout(self) -> Option<Encoding> {
        encoding_of(RankedTensor::of(self.raw_type()?)?).ok()?
    }

    /// The value and another operand, in one shape.
    pub(super) fn meet(self, at: At, other: impl Operand<'k>) -> Option<[Raw<'k, 'k>; 2]> {
        let left = self.raw?;
        // A constant beside a pointer is an offset.
        let mut like = left.r#type();
        if Pointer::of(element_or_self(like)).is_some() {
            like = Element::I32.to_type(self.kernel.mlir())?;
        }
        let right = other.place(self.kernel, like, at).raw?;
        self.kernel.meet(at, left, right)
    }
}

pub(super) fn extents(tensor: RankedTensor<'_>) -> Vec<u64> {
    let shape = tensor.shape();
    shape.iter().map(|extent| extent.cast_unsigned()).collect()
}

impl<'k> KernelBuilder<'k> {
    /// Two values in one shape: a scalar is spread, extents of 1 are repeated.
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

    /// A tensor with its extents of 1 repeated.
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

/// The shape that both repeat to; `None` if there is none.
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

impl fmt::Debug for Value<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.raw_type() {
            Some(r#type) => write!(formatter, "Value({type})"),
            None => formatter.write_str("Value(broken)"),
        }
    }
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
