//! The generator's knowledge about a value beyond its type.

/// Facts about every element of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Whether the bits are determined; those of floating-point arithmetic are not, since a result may be any NaN and
    /// either zero.
    pub bits: bool,
    /// Whether the elements are integers from 0 to this, also in floating point.
    pub bound: Option<u64>,
}

impl Facts {
    /// Determined bits, any value.
    pub const BITS: Self = Self {
        bits: true,
        bound: None,
    };
    /// The result of floating-point arithmetic.
    pub const REAL: Self = Self {
        bits: false,
        bound: None,
    };

    /// Determined bits, integers from 0 to `bound`.
    #[must_use]
    pub const fn small(bound: u64) -> Self {
        Self {
            bits: true,
            bound: Some(bound),
        }
    }

    /// The facts that hold for both.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        Self {
            bits: self.bits && other.bits,
            bound: self.bound.zip(other.bound).map(|(a, b)| a.max(b)),
        }
    }
}
