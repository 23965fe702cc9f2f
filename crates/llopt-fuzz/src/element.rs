//! Types of elements, and random contents of buffers.

use fastrand::Rng;

/// A type of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Number {
    /// `i1`; one byte in memory.
    I1,
    /// `i8`
    I8,
    /// `i16`
    I16,
    /// `i32`
    I32,
    /// `i64`
    I64,
    /// `f8E5M2`
    F8E5M2,
    /// `f8E4M3FN`
    F8E4M3,
    /// `f16`
    F16,
    /// `bf16`
    BF16,
    /// `f32`
    F32,
    /// `f64`
    F64,
}

impl Number {
    /// All.
    pub const ALL: [Self; 11] = [
        Self::I1,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::F8E5M2,
        Self::F8E4M3,
        Self::F16,
        Self::BF16,
        Self::F32,
        Self::F64,
    ];
    /// Integers with arithmetic.
    pub const INTEGERS: [Self; 4] = [Self::I8, Self::I16, Self::I32, Self::I64];
    /// Floating-point types with arithmetic.
    pub const REALS: [Self; 4] = [Self::F16, Self::BF16, Self::F32, Self::F64];

    /// The name in the IR.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::I1 => "i1",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::F8E5M2 => "f8E5M2",
            Self::F8E4M3 => "f8E4M3FN",
            Self::F16 => "f16",
            Self::BF16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }

    /// The type with that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|number| number.name() == name)
    }

    /// Bits of a value.
    #[must_use]
    pub fn bits(self) -> u32 {
        match self {
            Self::I1 => 1,
            Self::I8 | Self::F8E5M2 | Self::F8E4M3 => 8,
            Self::I16 | Self::F16 | Self::BF16 => 16,
            Self::I32 | Self::F32 => 32,
            Self::I64 | Self::F64 => 64,
        }
    }

    /// Bytes in memory.
    #[must_use]
    pub fn bytes(self) -> usize {
        self.bits().div_ceil(8) as usize
    }

    /// Whether it is an integer type of more than one bit.
    #[must_use]
    pub fn is_integer(self) -> bool {
        Self::INTEGERS.contains(&self)
    }

    /// Whether it is a floating-point type with arithmetic.
    #[must_use]
    pub fn is_real(self) -> bool {
        Self::REALS.contains(&self)
    }

    /// The largest integer such that all up to it are exact, for floating-point types with arithmetic.
    #[must_use]
    pub fn exact_integers(self) -> u64 {
        match self {
            Self::F16 => 1 << 11,
            Self::BF16 => 1 << 8,
            Self::F32 => 1 << 24,
            Self::F64 => 1 << 53,
            _ => 0,
        }
    }

    /// Exponent mask and highest mantissa bit of a floating-point type with infinities.
    fn exponent(self) -> Option<(u64, u64)> {
        Some(match self {
            Self::F8E5M2 => (0x7c, 0x02),
            Self::F16 => (0x7c00, 0x0200),
            Self::BF16 => (0x7f80, 0x0040),
            Self::F32 => (0x7f80_0000, 0x0040_0000),
            Self::F64 => (0x7ff0_0000_0000_0000, 0x0008_0000_0000_0000),
            _ => return None,
        })
    }

    /// Whether these are the bits of a NaN.
    #[must_use]
    pub fn is_nan(self, bits: u64) -> bool {
        if self == Self::F8E4M3 {
            return bits & 0x7f == 0x7f;
        }
        self.exponent()
            .is_some_and(|(exponent, top)| bits & exponent == exponent && bits & (2 * top - 1) != 0)
    }

    /// Whether two results are the same number: equal bits, or two NaNs, or two zeros.
    #[must_use]
    pub fn same(self, left: u64, right: u64) -> bool {
        if left == right {
            return true;
        }
        if !self.is_real() && !matches!(self, Self::F8E5M2 | Self::F8E4M3) {
            return false;
        }
        let magnitude = (1u64 << (self.bits() - 1)) - 1;
        (self.is_nan(left) && self.is_nan(right))
            || (left & magnitude == 0 && right & magnitude == 0)
    }

    /// The bits of a small integer.
    #[must_use]
    pub fn integer(self, value: u32) -> u64 {
        let double = f64::from(value);
        match self {
            Self::F64 => double.to_bits(),
            Self::F32 => u64::from((double as f32).to_bits()),
            Self::BF16 => u64::from((double as f32).to_bits() >> 16),
            // Subnormals do not appear: the only value below 1 is 0.
            Self::F16 if value == 0 => 0,
            Self::F16 => {
                let bits = (double as f32).to_bits();
                u64::from(((bits >> 23) - 127 + 15) << 10 | (bits >> 13 & 0x3ff))
            }
            Self::F8E5M2 | Self::F8E4M3 if value == 0 => 0,
            // Two or three bits of mantissa represent numbers up to 7.
            Self::F8E5M2 => {
                let bits = (double as f32).to_bits();
                u64::from(((bits >> 23) - 127 + 15) << 2 | (bits >> 21 & 0x3))
            }
            Self::F8E4M3 => {
                let bits = (double as f32).to_bits();
                u64::from(((bits >> 23) - 127 + 7) << 3 | (bits >> 20 & 0x7))
            }
            _ => u64::from(value),
        }
    }
}

/// The contents of a buffer before the kernel runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// Zeros.
    Zero,
    /// Random bits, of floating-point numbers other than signalling NaNs.
    Bits(u64),
    /// Random integers from 0 to a bound: bound and seed.
    Small(u32, u64),
}

impl Data {
    /// The bytes of `length` elements.
    #[must_use]
    pub fn bytes(self, number: Number, length: usize) -> Vec<u8> {
        let mut rng = match self {
            Self::Zero => return vec![0; length * number.bytes()],
            Self::Bits(seed) | Self::Small(_, seed) => Rng::with_seed(seed),
        };
        (0..length)
            .flat_map(|_| {
                let bits = match self {
                    Self::Small(bound, _) => number.integer(rng.u32(0..=bound)),
                    _ => random_bits(number, &mut rng),
                };
                bits.to_le_bytes().into_iter().take(number.bytes())
            })
            .collect()
    }
}

fn random_bits(number: Number, rng: &mut Rng) -> u64 {
    let width = number.bits();
    let mask = u64::MAX >> (64 - width);
    // Mostly any bits; sometimes a corner case.
    let bits = mask
        & match rng.u8(0..16) {
            0 => 0,
            1 => u64::MAX,
            2 => 1 << (width - 1),
            3 => rng.u64(0..4),
            4 => (1u64 << (width - 1)).wrapping_sub(1),
            _ => rng.u64(..),
        };
    match number.exponent() {
        Some((_, quiet)) if number.is_nan(bits) => bits | quiet,
        _ => bits,
    }
}

/// A type of elements of tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// Numbers.
    Number(Number),
    /// Pointers to numbers in global memory.
    Pointer(Number),
}

impl Element {
    /// The name in the IR.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Number(number) => number.name().to_owned(),
            Self::Pointer(to) => format!("!tt.ptr<{}>", to.name()),
        }
    }

    /// The type of numbers, if it is one.
    #[must_use]
    pub fn number(self) -> Option<Number> {
        match self {
            Self::Number(number) => Some(number),
            Self::Pointer(_) => None,
        }
    }
}

impl From<Number> for Element {
    fn from(number: Number) -> Self {
        Self::Number(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_integers_have_their_bits() {
        assert_eq!(Number::F16.integer(3), 0x4200);
        assert_eq!(Number::BF16.integer(1), 0x3f80);
        assert_eq!(Number::F32.integer(2), 0x4000_0000);
        assert_eq!(Number::F8E5M2.integer(7), 0x47);
        assert_eq!(Number::F8E4M3.integer(5), 0x4a);
        assert_eq!(Number::F8E4M3.integer(0), 0);
        assert_eq!(Number::I8.integer(7), 7);
    }

    #[test]
    fn nans_and_zeros_are_one_number_each() {
        assert!(Number::F16.same(0x7e00, 0xfe01) && Number::F16.same(0, 0x8000));
        assert!(!Number::F16.same(0x7c00, 0x7e00) && !Number::I16.same(0, 0x8000));
        assert!(Number::F8E4M3.same(0x7f, 0xff) && !Number::F8E5M2.same(0x7c, 0x7f));
    }
}
