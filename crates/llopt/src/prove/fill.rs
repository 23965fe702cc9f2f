//! The contents of the buffers of a proof: tags, random bits, indices, and numbers for products.

/// Bits of random tags for each element, from which fingerprints are computed.
pub(super) const FINGERPRINT_BITS: u32 = 128;

/// The encoding of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Two's complement.
    Integer,
    /// Sign, exponent and fraction.
    Float {
        /// Bits of the exponent.
        exponent: u32,
        /// Bits of the fraction.
        fraction: u32,
        /// The bias of the exponent.
        bias: u32,
    },
}

impl Format {
    /// The format of a type, by its name in the text of IR.
    pub(super) fn of(name: &str) -> Option<Self> {
        let float = |exponent: u32, fraction: u32, more: u32| Self::Float {
            exponent,
            fraction,
            bias: (1 << (exponent - 1)) - 1 + more,
        };
        Some(match name {
            "f64" => float(11, 52, 0),
            "f32" => float(8, 23, 0),
            "f16" => float(5, 10, 0),
            "bf16" => float(8, 7, 0),
            "f8E4M3FN" => float(4, 3, 0),
            "f8E5M2" => float(5, 2, 0),
            "f8E4M3FNUZ" => float(4, 3, 1),
            "f8E5M2FNUZ" => float(5, 2, 1),
            _ if name.starts_with('i') => Self::Integer,
            _ => return None,
        })
    }

    /// The code of a whole number, which the format can represent.
    pub(super) fn encode(self, number: i64) -> u64 {
        let Self::Float {
            exponent,
            fraction,
            bias,
        } = self
        else {
            return number.cast_unsigned();
        };
        let size = number.unsigned_abs();
        if size == 0 {
            return 0;
        }
        let power = size.ilog2();
        // A whole number that the format can represent ends within the fraction.
        let rest = size - (1 << power);
        let aligned = if power <= fraction {
            rest << (fraction - power)
        } else {
            rest >> (power - fraction)
        };
        let sign = u64::from(number < 0) << (exponent + fraction);
        sign | u64::from(power + bias) << fraction | aligned
    }

    /// The largest power of two up to which the format represents all whole numbers, as log2.
    pub(super) fn whole_bits(self, bits: u32) -> u32 {
        match self {
            Self::Integer => bits.saturating_sub(2),
            Self::Float { fraction, .. } => fraction + 1,
        }
    }
}

/// The contents of an input buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fill {
    /// The elements' numbers, or digits of them.
    Tags,
    /// Random bits.
    Random,
    /// Indices below an extent.
    Indices(u64),
    /// Random whole numbers up to a limit, of both signs, new ones in each run.
    Numbers {
        /// Their encoding.
        format: Format,
        /// The largest.
        limit: u64,
        /// The number of runs.
        runs: u32,
    },
    /// Random codes of a range, new ones in each run.
    Codes {
        /// The first.
        first: u64,
        /// The number of codes.
        count: u64,
        /// The number of runs.
        runs: u32,
    },
}

/// The bytes of a buffer of `count` elements in one run.
pub(super) fn contents(
    bits: u32,
    count: u64,
    fill: Fill,
    digit: u32,
    pattern: u32,
    salt: u64,
) -> Vec<u8> {
    let mask = u64::MAX >> (64 - bits);
    let bytes = (bits.max(8) / 8) as usize;
    (0..count)
        .flat_map(|number| {
            let value = match fill {
                // The tags of several operands differ if the elements are wide enough.
                Fill::Tags => {
                    let all = number + salt * count;
                    all.checked_shr(digit * bits).unwrap_or(0)
                }
                Fill::Random => random(number, u64::from(digit) << 8 | salt),
                Fill::Indices(end) => index(number, end, pattern),
                Fill::Numbers { format, limit, .. } => {
                    let drawn = random(number, u64::from(digit) << 8 | salt) % (2 * limit + 1);
                    format.encode(drawn as i64 - limit as i64)
                }
                Fill::Codes {
                    first, count: of, ..
                } => first + random(number, u64::from(digit) << 8 | salt) % of,
            };
            (value & mask).to_le_bytes().into_iter().take(bytes)
        })
        .collect()
}

/// Pattern 0: all zero; then each bit; then all bits; then two random patterns.
fn index(number: u64, end: u64, pattern: u32) -> u64 {
    let bits = end.next_power_of_two().trailing_zeros();
    match pattern {
        0 => 0,
        bit if bit <= bits => 1 << (bit - 1),
        all if all == bits + 1 => end - 1,
        other => random(number, other.into()) % end,
    }
}

/// Bits that look random: SplitMix64.
fn random(number: u64, seed: u64) -> u64 {
    let mut z = (number + 1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(seed.wrapping_mul(0xd1b5_4a32_d192_ed03));
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_have_the_codes_that_tables_say() {
        let code = |name: &str, number| Format::of(name).unwrap().encode(number);
        assert_eq!(code("f16", 3), 0x4200);
        assert_eq!(code("bf16", -2), 0xc000);
        assert_eq!(code("f32", 255), u64::from(255f32.to_bits()));
        assert_eq!(code("f64", -7), (-7f64).to_bits());
        assert_eq!(code("f8E4M3FN", 1), 0x38);
        assert_eq!(code("f8E4M3FN", 16), 0x58);
        assert_eq!(code("f8E5M2", -3), 0xc2);
        assert_eq!(code("f8E4M3FNUZ", 1), 0x40);
        assert_eq!(code("i8", -1) & 0xff, 0xff);
    }
}
