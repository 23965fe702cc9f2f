//! The operands of PTX's instructions: types, registers, and how values are read and written.
//!
//! Registers declared in the text, and placeholders, are slots; they may be written several times, as in the text.

use std::collections::HashMap;

use crate::error::{Decoded, Unknown};
use crate::machine::bytecode::{BlockId, Op, Slot};
use crate::machine::row::{self, Real, mask};
use crate::translate::emit::Emitter;
use crate::translate::intrinsics::special_register;

use super::Bound;
use super::ptx_parse::{Instruction, Operand};

/// A type suffix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Type {
    pub(super) kind: Kind,
    pub(super) bits: u32,
    /// Two values in one register (`f16x2`).
    pub(super) packed: bool,
}

/// The interpretation of the bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Untyped,
    Unsigned,
    Signed,
    Float,
    BFloat,
    Predicate,
}

impl Type {
    /// The type of a suffix.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let (scalar, packed) = match name.strip_suffix("x2") {
            Some(scalar) => (scalar, true),
            None => (name, false),
        };
        if scalar == "pred" {
            return Some(Self {
                kind: Kind::Predicate,
                bits: 1,
                packed,
            });
        }
        let (kind, digits) = if let Some(d) = scalar.strip_prefix("bf") {
            (Kind::BFloat, d)
        } else if let Some(d) = scalar.strip_prefix('b') {
            (Kind::Untyped, d)
        } else if let Some(d) = scalar.strip_prefix('u') {
            (Kind::Unsigned, d)
        } else if let Some(d) = scalar.strip_prefix('s') {
            (Kind::Signed, d)
        } else {
            (Kind::Float, scalar.strip_prefix('f')?)
        };
        let bits = digits
            .parse()
            .ok()
            .filter(|b| matches!(b, 8 | 16 | 32 | 64 | 128))?;
        let sensible = match kind {
            Kind::Float => (16..=64).contains(&bits),
            Kind::BFloat => bits == 16,
            _ => true,
        };
        (sensible && (!packed || bits <= 32)).then_some(Self { kind, bits, packed })
    }

    /// Bits of a register of this type.
    pub(super) fn register_bits(self) -> u32 {
        if self.packed {
            2 * self.bits
        } else {
            self.bits
        }
    }

    pub(super) fn is_signed(self) -> bool {
        self.kind == Kind::Signed
    }

    /// The floating-point type; `ftz` flushes singles.
    pub(super) fn real(self, ftz: bool) -> Option<Real> {
        match (self.kind, self.bits) {
            (Kind::Float, 16) => Some(Real::F16),
            (Kind::BFloat, 16) => Some(Real::BF16),
            (Kind::Float, 32) if ftz => Some(Real::F32Flush),
            (Kind::Float, 32) => Some(Real::F32),
            (Kind::Float, 64) => Some(Real::F64),
            _ => None,
        }
    }
}

/// Translation of one template.
pub(super) struct Translator<'a, 't> {
    pub(super) e: &'a mut Emitter<'t>,
    pub(super) bound: &'a [Bound],
    pub(super) registers: HashMap<String, (Slot, u32)>,
    pub(super) labels: HashMap<String, BlockId>,
    /// The carry flag of extended-precision arithmetic.
    pub(super) carry: Option<Slot>,
}

/// The mnemonic with its modifiers, for messages.
pub(super) fn unknown(instruction: &Instruction) -> Unknown {
    Unknown::new(format!(
        "the PTX instruction '{}'",
        instruction.opcode.join(".")
    ))
}

impl Translator<'_, '_> {
    /// Slot and width of a register operand.
    pub(super) fn register(&mut self, operand: &Operand) -> Decoded<(Slot, u32)> {
        match operand {
            Operand::Placeholder(n) => match self.bound.get(*n) {
                Some(bound) if bound.words.len() == 1 => Ok((bound.words[0], bound.bits)),
                _ => Err(Unknown::new(format!("the assembly operand ${n}"))),
            },
            Operand::Name(name) => self
                .registers
                .get(name)
                .copied()
                .ok_or_else(|| Unknown::new(format!("the PTX register '{name}'"))),
            other => Err(Unknown::new(format!(
                "the PTX operand {other:?} as a register"
            ))),
        }
    }

    /// Whether an operand is a predicate, or the negation of one.
    pub(super) fn is_predicate(&mut self, operand: &Operand) -> bool {
        match operand {
            Operand::Not(inner) => self.is_predicate(inner),
            other => self.register(other).is_ok_and(|(_, bits)| bits == 1),
        }
    }

    /// The low `bits` bits of an operand.
    pub(super) fn read(&mut self, operand: &Operand, bits: u32) -> Decoded<Slot> {
        match operand {
            Operand::Int(value) => Ok(self.e.constant(*value as u64 & mask(bits))),
            Operand::Real { single, double } => Ok(self.e.constant(if bits == 64 {
                *double
            } else {
                u64::from(*single) & mask(bits)
            })),
            Operand::Special(name) => {
                let slot = special_register(self.e, name)
                    .ok_or_else(|| Unknown::new(format!("the special register %{name}")))?;
                Ok(if bits < 64 {
                    self.e.truncate(slot, bits)
                } else {
                    slot
                })
            }
            Operand::Vector(elements) if !elements.is_empty() => {
                let piece = bits / elements.len() as u32;
                let slots = elements
                    .iter()
                    .map(|element| self.read(element, piece))
                    .collect::<Decoded<Vec<_>>>()?;
                Ok(self.e.pack(&slots, piece))
            }
            Operand::Not(inner) => {
                let slot = self.read(inner, bits)?;
                let ones = self.e.constant(mask(bits));
                Ok(self.e.map2(row::XOR, slot, ones))
            }
            Operand::Name(name) if name == "WARP_SZ" => Ok(self.e.constant(32)),
            _ => {
                let (slot, width) = self.register(operand)?;
                Ok(if width > bits {
                    self.e.truncate(slot, bits)
                } else {
                    slot
                })
            }
        }
    }

    /// An operand of a typed instruction; floating-point literals are converted to the type.
    pub(super) fn read_typed(&mut self, operand: &Operand, ty: Type) -> Decoded<Slot> {
        if let (Operand::Real { double, .. }, Some(real)) = (operand, ty.real(false))
            && ty.bits < 32
        {
            let code = real.encode(f64::from_bits(*double));
            let code = if ty.packed {
                code | code << ty.bits
            } else {
                code
            };
            return Ok(self.e.constant(code));
        }
        self.read(operand, ty.register_bits())
    }

    /// Writes a value of `bits` bits to a register operand, zero-extended.
    pub(super) fn write(&mut self, operand: &Operand, value: Slot, bits: u32) -> Decoded<()> {
        match operand {
            Operand::Sink => Ok(()),
            Operand::Vector(elements) if !elements.is_empty() => {
                let piece = bits / elements.len() as u32;
                let slots = self.e.unpack(value, piece, elements.len());
                for (element, slot) in elements.iter().zip(slots) {
                    self.write(element, slot, piece)?;
                }
                Ok(())
            }
            _ => {
                if let Operand::Placeholder(n) = operand
                    && self.bound.get(*n).is_some_and(|b| !b.writable)
                {
                    return Err(Unknown::new(format!("assembly that writes its input ${n}")));
                }
                let (slot, width) = self.register(operand)?;
                let value = if bits > width {
                    self.e.truncate(value, width)
                } else {
                    value
                };
                self.e.copy(slot, value);
                Ok(())
            }
        }
    }

    /// As [`Self::write`], sign-extending to the register's width if the type is signed.
    pub(super) fn write_extended(
        &mut self,
        operand: &Operand,
        value: Slot,
        ty: Type,
    ) -> Decoded<()> {
        if ty.is_signed()
            && let Ok((_, width)) = self.register(operand)
            && width > ty.bits
        {
            let wide = self.e.sign_extend(value, ty.bits);
            let wide = self.e.truncate(wide, width);
            return self.write(operand, wide, width);
        }
        self.write(operand, value, ty.register_bits())
    }

    /// A slot to load into: the register itself, so that lanes whose guard is off keep its old value.
    pub(super) fn target(&mut self, operand: &Operand) -> Decoded<(Slot, u32)> {
        if let Operand::Placeholder(n) = operand
            && self.bound.get(*n).is_some_and(|b| !b.writable)
        {
            return Err(Unknown::new(format!("assembly that writes its input ${n}")));
        }
        self.register(operand)
    }

    /// Base slot and offset of an address operand.
    pub(super) fn address(&mut self, operand: &Operand) -> Decoded<(Slot, i64)> {
        match operand {
            Operand::Address {
                base,
                offset,
                coordinates,
            } if coordinates.is_empty() => match &**base {
                Operand::Int(value) => Ok((self.e.constant(*value as u64), *offset)),
                other => Ok((self.register(other)?.0, *offset)),
            },
            _ => Err(Unknown::new(format!("the PTX address {operand:?}"))),
        }
    }

    /// An address operand as one slot.
    pub(super) fn address_slot(&mut self, operand: &Operand) -> Decoded<Slot> {
        let (base, offset) = self.address(operand)?;
        if offset == 0 {
            return Ok(base);
        }
        let offset = self.e.constant(offset as u64);
        Ok(self.e.map2(row::ADD64, base, offset))
    }

    /// An instruction without effect on the machine's state.
    pub(super) fn nothing(&mut self) {
        self.e.push(Op::Nothing);
    }
}
