//! Arithmetic, comparisons, conversions, vectors and structures.

use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValue, BasicValueEnum, FastMathFlags, InstructionOpcode};
use inkwell::{FloatPredicate, IntPredicate};

use super::{Emitter, V, built};

impl<'ctx> Emitter<'ctx> {
    // Integer arithmetic.

    fn binary(&self, op: InstructionOpcode, a: V<'ctx>, b: V<'ctx>) -> V<'ctx> {
        built(self.builder.build_binop(op, a, b, ""))
    }

    /// `a + b`, wrapping.
    pub fn add(&self, a: V<'ctx>, b: V<'ctx>) -> V<'ctx> {
        if self.is_zero(a) {
            return b;
        }
        if self.is_zero(b) {
            return a;
        }
        self.binary(InstructionOpcode::Add, a, b)
    }

    /// `a - b`, wrapping.
    pub fn sub(&self, a: V<'ctx>, b: V<'ctx>) -> V<'ctx> {
        if self.is_zero(b) {
            return a;
        }
        self.binary(InstructionOpcode::Sub, a, b)
    }

    /// `a * b`, wrapping.
    pub fn mul(&self, a: V<'ctx>, b: V<'ctx>) -> V<'ctx> {
        if self.constant_int(b) == Some(1) {
            return a;
        }
        if self.constant_int(a) == Some(1) {
            return b;
        }
        self.binary(InstructionOpcode::Mul, a, b)
    }

    /// Signed quotient.
    pub fn sdiv(&self, a: V<'ctx>, b: V<'ctx>) -> V<'ctx> {
        self.binary(InstructionOpcode::SDiv, a, b)
    }

    /// Unsigned quotient.
    pub fn udiv(&self, a: V<'ctx>, b: V<'ctx>) -> V<'ctx> {
        self.binary(InstructionOpcode::UDiv, a, b)
    }

    /// Signed remainder.
    pub fn srem(&self, a: V<'ctx>, b: V<'ctx>) -> V<'ctx> {
        self.binary(InstructionOpcode::SRem, a, b)
    }

    /// Unsigned remainder.
    pub fn urem(&self, a: V<'ctx>, b: V<'ctx>) -> V<'ctx> {
        self.binary(InstructionOpcode::URem, a, b)
    }

    /// Bitwise and.
    pub fn and(&self, a: V<'ctx>, b: V<'ctx>) -> V<'ctx> {
        if self.constant_int(b) == Some(-1) {
            return a;
        }
        if self.constant_int(a) == Some(-1) {
            return b;
        }
        self.binary(InstructionOpcode::And, a, b)
    }

    /// Bitwise or.
    pub fn or(&self, a: V<'ctx>, b: V<'ctx>) -> V<'ctx> {
        if self.is_zero(a) {
            return b;
        }
        if self.is_zero(b) {
            return a;
        }
        self.binary(InstructionOpcode::Or, a, b)
    }

    /// Bitwise or of values that have no set bit in common: an addition that cannot wrap.
    pub fn or_disjoint(&self, a: V<'ctx>, b: V<'ctx>) -> V<'ctx> {
        let value = self.or(a, b);
        if let Some(instruction) = value.as_instruction_value()
            && value != a
            && value != b
            && instruction.get_opcode() == InstructionOpcode::Or
        {
            // Fails only for another opcode, which was just excluded.
            let _ = instruction.set_disjoint_flag(true);
        }
        value
    }

    /// Bitwise exclusive or.
    pub fn xor(&self, a: V<'ctx>, b: V<'ctx>) -> V<'ctx> {
        if self.is_zero(a) {
            return b;
        }
        if self.is_zero(b) {
            return a;
        }
        self.binary(InstructionOpcode::Xor, a, b)
    }

    /// Shift left.
    pub fn shl(&self, a: V<'ctx>, b: V<'ctx>) -> V<'ctx> {
        if self.is_zero(b) {
            return a;
        }
        self.binary(InstructionOpcode::Shl, a, b)
    }

    /// Shift right, filling with zeros.
    pub fn lshr(&self, a: V<'ctx>, b: V<'ctx>) -> V<'ctx> {
        if self.is_zero(b) {
            return a;
        }
        self.binary(InstructionOpcode::LShr, a, b)
    }

    /// Shift right, filling with the sign.
    pub fn ashr(&self, a: V<'ctx>, b: V<'ctx>) -> V<'ctx> {
        if self.is_zero(b) {
            return a;
        }
        self.binary(InstructionOpcode::AShr, a, b)
    }

    /// Integer comparison.
    pub fn icmp(&self, predicate: IntPredicate, a: V<'ctx>, b: V<'ctx>) -> V<'ctx> {
        match (a, b) {
            (BasicValueEnum::PointerValue(a), BasicValueEnum::PointerValue(b)) => {
                built(self.builder.build_int_compare(predicate, a, b, "")).into()
            }
            (BasicValueEnum::VectorValue(a), BasicValueEnum::VectorValue(b)) => {
                built(self.builder.build_int_compare(predicate, a, b, "")).into()
            }
            _ => built(self.builder.build_int_compare(
                predicate,
                a.into_int_value(),
                b.into_int_value(),
                "",
            ))
            .into(),
        }
    }

    /// `condition ? a : b`.
    pub fn select(&self, condition: V<'ctx>, a: V<'ctx>, b: V<'ctx>) -> V<'ctx> {
        if a == b || self.is_true(condition) {
            return a;
        }
        if self.is_zero(condition) && condition.is_int_value() {
            return b;
        }
        match condition {
            BasicValueEnum::VectorValue(c) => built(self.builder.build_select(c, a, b, "")),
            _ => built(
                self.builder
                    .build_select(condition.into_int_value(), a, b, ""),
            ),
        }
    }

    // Floating-point arithmetic.

    fn float_binary(&self, op: InstructionOpcode, a: V<'ctx>, b: V<'ctx>) -> V<'ctx> {
        let value = self.binary(op, a, b);
        if self.contract
            && let Some(instruction) = value.as_instruction_value()
            && instruction.can_use_fast_math_flags()
        {
            // Refused only for instructions that cannot carry the flag.
            let _ = instruction.set_fast_math_flags(FastMathFlags::AllowContract);
        }
        value
    }

    /// `a + b`.
    pub fn fadd(&self, a: V<'ctx>, b: V<'ctx>) -> V<'ctx> {
        self.float_binary(InstructionOpcode::FAdd, a, b)
    }

    /// `a - b`.
    pub fn fsub(&self, a: V<'ctx>, b: V<'ctx>) -> V<'ctx> {
        self.float_binary(InstructionOpcode::FSub, a, b)
    }

    /// `a * b`.
    pub fn fmul(&self, a: V<'ctx>, b: V<'ctx>) -> V<'ctx> {
        self.float_binary(InstructionOpcode::FMul, a, b)
    }

    /// `a / b`, correctly rounded.
    pub fn fdiv(&self, a: V<'ctx>, b: V<'ctx>) -> V<'ctx> {
        self.binary(InstructionOpcode::FDiv, a, b)
    }

    /// The remainder with the sign of `a`.
    pub fn frem(&self, a: V<'ctx>, b: V<'ctx>) -> V<'ctx> {
        self.binary(InstructionOpcode::FRem, a, b)
    }

    /// `-a`.
    pub fn fneg(&self, a: V<'ctx>) -> V<'ctx> {
        match a {
            BasicValueEnum::VectorValue(v) => built(self.builder.build_float_neg(v, "")).into(),
            _ => built(self.builder.build_float_neg(a.into_float_value(), "")).into(),
        }
    }

    /// Floating-point comparison.
    pub fn fcmp(&self, predicate: FloatPredicate, a: V<'ctx>, b: V<'ctx>) -> V<'ctx> {
        match (a, b) {
            (BasicValueEnum::VectorValue(a), BasicValueEnum::VectorValue(b)) => {
                built(self.builder.build_float_compare(predicate, a, b, "")).into()
            }
            _ => built(self.builder.build_float_compare(
                predicate,
                a.into_float_value(),
                b.into_float_value(),
                "",
            ))
            .into(),
        }
    }

    // Conversions.

    /// Any of LLVM's cast instructions; nothing when the type is already `to`.
    pub fn cast(&self, op: InstructionOpcode, value: V<'ctx>, to: BasicTypeEnum<'ctx>) -> V<'ctx> {
        if value.get_type() == to {
            return value;
        }
        built(self.builder.build_cast(op, value, to, ""))
    }

    /// Reinterprets the bits.
    pub fn bitcast(&self, value: V<'ctx>, to: BasicTypeEnum<'ctx>) -> V<'ctx> {
        self.cast(InstructionOpcode::BitCast, value, to)
    }

    /// Widens with zeros.
    pub fn zext(&self, value: V<'ctx>, to: BasicTypeEnum<'ctx>) -> V<'ctx> {
        self.cast(InstructionOpcode::ZExt, value, to)
    }

    /// Widens with the sign.
    pub fn sext(&self, value: V<'ctx>, to: BasicTypeEnum<'ctx>) -> V<'ctx> {
        self.cast(InstructionOpcode::SExt, value, to)
    }

    /// Drops high bits.
    pub fn trunc(&self, value: V<'ctx>, to: BasicTypeEnum<'ctx>) -> V<'ctx> {
        self.cast(InstructionOpcode::Trunc, value, to)
    }

    /// Widens a float, exactly.
    pub fn fpext(&self, value: V<'ctx>, to: BasicTypeEnum<'ctx>) -> V<'ctx> {
        self.cast(InstructionOpcode::FPExt, value, to)
    }

    /// Narrows a float, rounding to nearest even.
    pub fn fptrunc(&self, value: V<'ctx>, to: BasicTypeEnum<'ctx>) -> V<'ctx> {
        self.cast(InstructionOpcode::FPTrunc, value, to)
    }

    // Vectors and aggregates.

    /// A vector of the given elements (of one type); a single one stays a scalar.
    pub fn pack(&self, elements: &[V<'ctx>]) -> V<'ctx> {
        if let [single] = elements {
            return *single;
        }
        let of = self.vector(elements[0].get_type(), elements.len() as u32);
        elements
            .iter()
            .enumerate()
            .fold(of.get_poison().into(), |vector: V<'ctx>, (i, element)| {
                built(self.builder.build_insert_element(
                    vector.into_vector_value(),
                    *element,
                    self.context.i32_type().const_int(i as u64, false),
                    "",
                ))
                .into()
            })
    }

    /// The elements of a vector; of a scalar, itself.
    pub fn unpack(&self, value: V<'ctx>) -> Vec<V<'ctx>> {
        match value {
            BasicValueEnum::VectorValue(vector) => (0..vector.get_type().get_size())
                .map(|i| {
                    built(self.builder.build_extract_element(
                        vector,
                        self.context.i32_type().const_int(u64::from(i), false),
                        "",
                    ))
                })
                .collect(),
            _ => vec![value],
        }
    }

    /// One element of a vector.
    pub fn extract(&self, vector: V<'ctx>, index: u32) -> V<'ctx> {
        built(self.builder.build_extract_element(
            vector.into_vector_value(),
            self.context.i32_type().const_int(u64::from(index), false),
            "",
        ))
    }

    /// One member of a structure.
    pub fn member(&self, aggregate: V<'ctx>, index: u32) -> V<'ctx> {
        built(
            self.builder
                .build_extract_value(aggregate.into_struct_value(), index, ""),
        )
    }

    /// A structure of the given members.
    pub fn structure(&self, members: &[V<'ctx>]) -> V<'ctx> {
        let types: Vec<BasicTypeEnum> = members.iter().map(BasicValueEnum::get_type).collect();
        let of = self.context.struct_type(&types, false);
        members
            .iter()
            .enumerate()
            .fold(of.get_poison().into(), |value: V<'ctx>, (i, member)| {
                built(self.builder.build_insert_value(
                    value.into_struct_value(),
                    *member,
                    i as u32,
                    "",
                ))
                .as_basic_value_enum()
            })
    }
}
