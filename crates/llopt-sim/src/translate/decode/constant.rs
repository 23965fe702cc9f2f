//! Constants and constant expressions, evaluated to the bits of their leaves.

use crate::error::{Decoded, Unknown};
use crate::machine::row::{Real, mask};
use crate::memory::global;
use crate::translate::ir::{Opcode, Type, TypeKind, Value, ValueKind};

use super::{Decoder, Types};

impl<'m> Decoder<'m> {
    /// Bits of a constant's leaves.
    pub(super) fn constant(&self, value: Value<'m>) -> Decoded<Vec<u64>> {
        let ty = value.ty();
        match value.kind() {
            ValueKind::LLVMUndefValueValueKind
            | ValueKind::LLVMPoisonValueKind
            | ValueKind::LLVMConstantAggregateZeroValueKind
            | ValueKind::LLVMConstantTokenNoneValueKind => Ok(vec![0; self.types.count(ty)?]),
            ValueKind::LLVMConstantPointerNullValueKind => Ok(vec![0; self.types.count(ty)?]),
            ValueKind::LLVMConstantIntValueKind => {
                let element = Types::element(ty);
                let bits = self.int_constant(value, element)?;
                let copies = if ty.kind() == TypeKind::LLVMVectorTypeKind {
                    ty.count() as usize
                } else {
                    1
                };
                Ok(bits.repeat(copies))
            }
            ValueKind::LLVMConstantFPValueKind => {
                let element = Types::element(ty);
                let real = Types::real(element)
                    .ok_or_else(|| Unknown::new(format!("a constant of type {ty}")))?;
                let copies = if ty.kind() == TypeKind::LLVMVectorTypeKind {
                    ty.count() as usize
                } else {
                    1
                };
                Ok(vec![real_bits(value.const_real(), real); copies])
            }
            ValueKind::LLVMConstantArrayValueKind
            | ValueKind::LLVMConstantStructValueKind
            | ValueKind::LLVMConstantVectorValueKind
            | ValueKind::LLVMConstantDataArrayValueKind
            | ValueKind::LLVMConstantDataVectorValueKind => {
                let mut bits = Vec::new();
                for i in 0..ty.count() {
                    let element = value
                        .element(i)
                        .ok_or_else(|| Unknown::new(format!("element {i} of {}", value.print())))?;
                    bits.extend(self.constant(element)?);
                }
                Ok(bits)
            }
            ValueKind::LLVMGlobalVariableValueKind => self
                .globals
                .addresses
                .get(&value)
                .map(|&address| vec![address])
                .ok_or_else(|| Unknown::new(format!("global @{}", value.name()))),
            ValueKind::LLVMConstantExprValueKind if ty.kind() == TypeKind::LLVMVectorTypeKind => {
                self.vector_expression(value)
            }
            ValueKind::LLVMConstantExprValueKind => self.expression(value).map(|bits| vec![bits]),
            ValueKind::LLVMFunctionValueKind => {
                Err(Unknown::new(format!("the address of @{}", value.name())))
            }
            _ => Err(Unknown::new(format!("the constant {}", value.print()))),
        }
    }

    /// The bits of a constant of one leaf.
    pub(super) fn constant_scalar(&self, value: Value<'m>) -> Decoded<u64> {
        match self.constant(value)?[..] {
            [bits] => Ok(bits),
            _ => Err(Unknown::new(format!("the constant {}", value.print()))),
        }
    }

    fn int_constant(&self, value: Value<'m>, ty: Type<'m>) -> Decoded<Vec<u64>> {
        let width = ty.int_width();
        if width <= 64 {
            return Ok(vec![value.const_int() & mask(width)]);
        }
        // The C interface has no accessor for wide integers, but it prints them.
        let text = value.print();
        let number = text
            .rsplit(' ')
            .next()
            .and_then(|digits| digits.parse::<i128>().ok())
            .ok_or_else(|| Unknown::new(format!("the constant {text}")))?;
        let count = width.div_ceil(64);
        Ok((0..count)
            .map(|i| {
                let word = if i < 2 {
                    (number >> (64 * i)) as u64
                } else {
                    (number >> 127) as u64
                };
                word & mask((width - 64 * i).min(64))
            })
            .collect())
    }

    /// The elements of an expression that is a vector.
    fn vector_expression(&self, value: Value<'m>) -> Decoded<Vec<u64>> {
        let unknown = || Unknown::new(format!("the constant {}", value.print()));
        let ty = value.ty();
        match value.const_opcode() {
            Opcode::LLVMBitCast => {
                let whole = self.packed(value.operand(0))?;
                let width = self
                    .types
                    .scalar_bits(Types::element(ty))
                    .filter(|width| width * ty.count() <= 64)
                    .ok_or_else(unknown)?;
                let leaves = 0..ty.count();
                Ok(leaves
                    .map(|leaf| whole >> (leaf * width) & mask(width))
                    .collect())
            }
            Opcode::LLVMInsertElement => {
                let mut elements = self.constant(value.operand(0))?;
                let index = self.constant_scalar(value.operand(2))? as usize;
                *elements.get_mut(index).ok_or_else(unknown)? =
                    self.constant_scalar(value.operand(1))?;
                Ok(elements)
            }
            Opcode::LLVMShuffleVector => {
                let mut elements = self.constant(value.operand(0))?;
                elements.extend(self.constant(value.operand(1))?);
                let picked = value.shuffle_mask().into_iter().map(|place| match place {
                    Some(place) => elements.get(place as usize).copied().ok_or_else(unknown),
                    None => Ok(0),
                });
                picked.collect()
            }
            _ => Err(unknown()),
        }
    }

    fn expression(&self, value: Value<'m>) -> Decoded<u64> {
        let operand = |i| self.constant_scalar(value.operand(i));
        let ty = value.ty();
        let bits = self
            .types
            .scalar_bits(ty)
            .filter(|&b| b <= 64)
            .ok_or_else(|| Unknown::new(format!("the constant {}", value.print())))?;
        let result = match value.const_opcode() {
            Opcode::LLVMGetElementPtr => {
                let mut address = operand(0)?;
                let mut at = value.gep_source_type();
                for i in 1..value.num_operands() {
                    let index_value = value.operand(i);
                    let width = index_value.ty().int_width();
                    let index = crate::machine::row::sext(operand(i)?, width);
                    let (step, next) = self.gep_step(at, i, Some(index as u64))?;
                    let offset = match step {
                        GepStep::Constant(offset) => offset,
                        GepStep::Scaled(size) => (index as u64).wrapping_mul(size),
                    };
                    address = address.wrapping_add(offset);
                    at = next;
                }
                address
            }
            Opcode::LLVMAddrSpaceCast => {
                let from = value.operand(0).ty().address_space();
                cast_address(operand(0)?, from, ty.address_space())
            }
            Opcode::LLVMPtrToInt
            | Opcode::LLVMPtrToAddr
            | Opcode::LLVMIntToPtr
            | Opcode::LLVMTrunc => operand(0)?,
            Opcode::LLVMBitCast => self.packed(value.operand(0))?,
            Opcode::LLVMExtractElement => {
                let elements = self.constant(value.operand(0))?;
                let element = elements.get(operand(1)? as usize).copied();
                element.ok_or_else(|| Unknown::new(format!("the constant {}", value.print())))?
            }
            Opcode::LLVMAdd => operand(0)?.wrapping_add(operand(1)?),
            Opcode::LLVMSub => operand(0)?.wrapping_sub(operand(1)?),
            Opcode::LLVMXor => operand(0)? ^ operand(1)?,
            _ => return Err(Unknown::new(format!("the constant {}", value.print()))),
        };
        Ok(result & mask(bits))
    }

    /// The bits of a constant of at most 64 bits, the first element of a vector lowest.
    fn packed(&self, value: Value<'m>) -> Decoded<u64> {
        let unknown = || Unknown::new(format!("the constant {}", value.print()));
        let leaves = self.types.leaves(value.ty())?;
        if leaves.iter().map(|leaf| leaf.bits).sum::<u32>() > 64 {
            return Err(unknown());
        }
        let (mut packed, mut at) = (0, 0);
        for (leaf, bits) in leaves.iter().zip(self.constant(value)?) {
            packed |= (bits & mask(leaf.bits)) << at;
            at += leaf.bits;
        }
        Ok(packed)
    }

    /// One index of a getelementptr: its address step, and the type that it selects.
    pub(super) fn gep_step(
        &self,
        at: Type<'m>,
        position: u32,
        constant: Option<u64>,
    ) -> Decoded<(GepStep, Type<'m>)> {
        if position == 1 {
            return Ok((GepStep::Scaled(self.types.layout.size(at)), at));
        }
        match at.kind() {
            TypeKind::LLVMStructTypeKind => {
                let field = constant
                    .and_then(|c| u32::try_from(c).ok())
                    .ok_or_else(|| Unknown::new("a variable index into a struct"))?;
                let offset = self.types.layout.field_offset(at, field);
                Ok((GepStep::Constant(offset), at.field(field)))
            }
            TypeKind::LLVMArrayTypeKind => {
                let element = at.element();
                Ok((GepStep::Scaled(self.types.layout.size(element)), element))
            }
            TypeKind::LLVMVectorTypeKind => {
                let element = at.element();
                let bits = self.types.scalar_bits(element).unwrap_or(0);
                Ok((GepStep::Scaled(u64::from(bits) / 8), element))
            }
            _ => Err(Unknown::new(format!("indexing into type {at}"))),
        }
    }

    /// Writes a constant in its memory form.
    pub(super) fn write_constant(&self, value: Value<'m>, bytes: &mut [u8]) -> Decoded<()> {
        let leaves = self.types.leaves(value.ty())?;
        for (leaf, bits) in leaves.iter().zip(self.constant(value)?) {
            let size = leaf.bits.div_ceil(8) as usize;
            let at = leaf.offset as usize;
            if let Some(target) = bytes.get_mut(at..at + size) {
                target.copy_from_slice(&bits.to_le_bytes()[..size]);
            }
        }
        Ok(())
    }
}

/// The address step of an index of a getelementptr.
pub(super) enum GepStep {
    /// A fixed number of bytes.
    Constant(u64),
    /// The index times this many bytes.
    Scaled(u64),
}

/// The bits of a floating-point constant given as a double; NaNs keep their payload.
fn real_bits(value: f64, real: Real) -> u64 {
    if value.is_nan() {
        let bits = value.to_bits();
        let sign = bits >> 63;
        let payload = bits & mask(52);
        let (exponent, mantissa) = match real {
            Real::F16 => (0x1f, 10),
            Real::BF16 => (0xff, 7),
            Real::F32 | Real::F32Flush | Real::F32Quiet | Real::F32FlushQuiet => (0xff, 23),
            Real::F64 => return bits,
        };
        return sign << (real.bits() - 1) | exponent << mantissa | payload >> (52 - mantissa);
    }
    match real {
        // Constants are not flushed; operations are.
        Real::F32Flush | Real::F32Quiet | Real::F32FlushQuiet => Real::F32.encode(value),
        _ => real.encode(value),
    }
}

/// An address in another address space: shared and private memory appear in the generic one through windows.
pub(super) fn cast_address(address: u64, from: u32, to: u32) -> u64 {
    match (from, to) {
        (3, 0) => global::SHARED_WINDOW | address,
        (5, 0) => global::LOCAL_WINDOW | address,
        (4, 0 | 1) if address != 0 && address < global::SHORT_CONSTANTS => {
            global::region_base(0) + address
        }
        (0, 3 | 5) => address & 0xffff_ffff,
        _ => address,
    }
}
