//! Element types: what a register of a tensor, or a scalar, holds.

/// Numbers of address spaces, as LLVM has them on both vendors' GPUs.
pub mod space {
    /// Where allocas and byval parameters live on NVIDIA; "flat" on AMD.
    pub const GENERIC: u16 = 0;
    /// Global memory.
    pub const GLOBAL: u16 = 1;
    /// Shared memory (LDS).
    pub const SHARED: u16 = 3;
    /// AMD's buffer descriptors.
    pub const BUFFER: u16 = 8;
}

/// One of the four eight-bit float formats. LLVM knows none of them: their values travel as `i8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Float8 {
    /// OCP E4M3: no infinities, NaN is S.1111.111, largest value 448.
    E4M3FN,
    /// OCP E5M2: IEEE-like, largest value 57344.
    E5M2,
    /// E4M3 with a bias of 8 and one NaN, 0x80; largest value 240.
    E4M3FNUZ,
    /// E5M2 with a bias of 16 and one NaN, 0x80; largest value 57344.
    E5M2FNUZ,
}

impl Float8 {
    /// Bits of the mantissa, without the hidden one.
    #[must_use]
    pub fn mantissa_bits(self) -> u32 {
        match self {
            Self::E4M3FN | Self::E4M3FNUZ => 3,
            Self::E5M2 | Self::E5M2FNUZ => 2,
        }
    }

    /// Exponent bias.
    #[must_use]
    pub fn bias(self) -> u32 {
        match self {
            Self::E4M3FN => 7,
            Self::E5M2 => 15,
            Self::E4M3FNUZ => 8,
            Self::E5M2FNUZ => 16,
        }
    }

    /// The code of the largest finite value.
    #[must_use]
    pub fn largest_code(self) -> u32 {
        match self {
            Self::E4M3FN => 0x7e,
            Self::E5M2 => 0x7b,
            Self::E4M3FNUZ | Self::E5M2FNUZ => 0x7f,
        }
    }

    /// The largest finite value.
    #[must_use]
    pub fn largest(self) -> f32 {
        match self {
            Self::E4M3FN => 448.0,
            Self::E4M3FNUZ => 240.0,
            Self::E5M2 | Self::E5M2FNUZ => 57344.0,
        }
    }

    /// A code that means "not a number".
    #[must_use]
    pub fn nan_code(self) -> u32 {
        match self {
            Self::E4M3FN | Self::E5M2 => 0x7f,
            Self::E4M3FNUZ | Self::E5M2FNUZ => 0x80,
        }
    }

    /// Whether zero has no sign and the code of minus zero means NaN.
    #[must_use]
    pub fn is_unsigned_zero(self) -> bool {
        matches!(self, Self::E4M3FNUZ | Self::E5M2FNUZ)
    }
}

/// The type of one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// An integer of this many bits; also `index`, as 64 bits.
    Int(u32),
    /// An eight-bit float.
    Float8(Float8),
    /// IEEE half.
    F16,
    /// bfloat16.
    Bf16,
    /// IEEE single.
    F32,
    /// IEEE double.
    F64,
    /// A pointer into an address space, with the width of what it points to.
    Pointer {
        /// LLVM's number of the address space.
        space: u16,
        /// Bits of the pointee as it lies in memory (8 for `i1`).
        pointee_bits: u32,
    },
}

impl Element {
    /// Bits of a value of this type in memory and in shuffles.
    #[must_use]
    pub fn bits(self) -> u32 {
        match self {
            Self::Int(bits) => bits,
            Self::Float8(_) => 8,
            Self::F16 | Self::Bf16 => 16,
            Self::F32 => 32,
            Self::F64 => 64,
            Self::Pointer { space, .. } if space == space::SHARED => 32,
            Self::Pointer { .. } => 64,
        }
    }

    /// Bits of a value of this type in memory: whole bytes.
    #[must_use]
    pub fn memory_bits(self) -> u32 {
        self.bits().max(8)
    }

    /// Whether arithmetic on it is floating point in LLVM (eight-bit floats are not).
    #[must_use]
    pub fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16 | Self::F32 | Self::F64)
    }
}
