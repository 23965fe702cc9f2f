//! PTX in inline assembly: registers, control flow, and the way to each instruction's family.
//!
//! Registers declared in the text and placeholders are slots, written as often as the text does. A guard makes an
//! instruction run in some lanes only; a guarded branch ends a block of bytecode, as branches of LLVM do.

use std::collections::HashMap;

use crate::error::{Decoded, Unknown};
use crate::machine::bytecode::{BlockId, EdgeId, Op, Slot, Terminator};
use crate::machine::row::{self, Real, mask};
use crate::translate::assembly::Bound;
use crate::translate::emit::Emitter;
use crate::translate::intrinsics::special_register;

use super::ptx_parse::{Instruction, Operand, Statement, parse};
use super::{ptx_arithmetic, ptx_bulk, ptx_convert, ptx_memory, ptx_sync, ptx_wgmma};

/// A type suffix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Type {
    pub(super) kind: Kind,
    pub(super) bits: u32,
    /// Two values in one register (`f16x2`).
    pub(super) packed: bool,
}

/// How the bits are read.
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
    bound: &'a [Bound],
    registers: HashMap<String, (Slot, u32)>,
    labels: HashMap<String, BlockId>,
    /// The carry flag of extended-precision arithmetic.
    pub(super) carry: Option<Slot>,
}

/// Translates a template.
pub(super) fn translate(e: &mut Emitter<'_>, template: &str, bound: &[Bound]) -> Decoded<()> {
    let statements = parse(template)?;
    let mut labels = HashMap::new();
    for statement in &statements {
        if let Statement::Label(name) = statement {
            let block = e.new_block();
            if labels.insert(name.clone(), block).is_some() {
                return Err(Unknown::new(format!("the PTX label '{name}' twice")));
            }
        }
    }
    let mut translator = Translator {
        e,
        bound,
        registers: HashMap::new(),
        labels,
        carry: None,
    };
    for statement in &statements {
        match statement {
            Statement::Label(name) => {
                let block = translator.labels[name];
                let edge = translator.e.edge(block);
                translator.e.terminate(Terminator::Jump(edge));
                translator.e.enter(block);
            }
            Statement::Registers(names) => {
                for (ty, name) in names {
                    let ty = Type::parse(ty.trim_start_matches('.'))
                        .ok_or_else(|| Unknown::new(format!("the PTX type '{ty}'")))?;
                    let slot = translator.e.slot();
                    translator
                        .registers
                        .insert(name.clone(), (slot, ty.register_bits()));
                }
            }
            Statement::Instruction(instruction) => translator.instruction(instruction)?,
        }
    }
    Ok(())
}

/// The mnemonic with its modifiers, for messages.
pub(super) fn unknown(instruction: &Instruction) -> Unknown {
    Unknown::new(format!(
        "the PTX instruction '{}'",
        instruction.opcode.join(".")
    ))
}

impl Translator<'_, '_> {
    fn instruction(&mut self, instruction: &Instruction) -> Decoded<()> {
        let guard = match &instruction.guard {
            Some((negate, operand)) => Some((*negate, self.read(operand, 1)?)),
            None => None,
        };
        match instruction.opcode[0].as_str() {
            "bra" => return self.branch(instruction, guard),
            "exit" | "ret" => return self.exit(guard),
            _ => {}
        }
        let mark = self.e.mark();
        let known = ptx_bulk::translate(self, instruction)?
            || ptx_wgmma::translate(self, instruction)?
            || ptx_memory::translate(self, instruction)?
            || ptx_sync::translate(self, instruction)?
            || ptx_convert::translate(self, instruction)?
            || ptx_arithmetic::translate(self, instruction)?;
        if !known {
            return Err(unknown(instruction));
        }
        if let Some((negate, predicate)) = guard {
            self.e.guard_since(mark, predicate, negate);
        }
        Ok(())
    }

    fn branch(&mut self, instruction: &Instruction, guard: Option<(bool, Slot)>) -> Decoded<()> {
        let [Operand::Name(label)] = &instruction.operands[..] else {
            return Err(unknown(instruction));
        };
        let target = *self
            .labels
            .get(label)
            .ok_or_else(|| Unknown::new(format!("the PTX label '{label}'")))?;
        let next = self.e.new_block();
        let edge = self.e.edge(target);
        self.leave(guard, edge, next);
        self.e.enter(next);
        Ok(())
    }

    /// Ends the block: along `edge` where the guard holds, else to `next`.
    fn leave(&mut self, guard: Option<(bool, Slot)>, edge: EdgeId, next: BlockId) {
        let terminator = match guard {
            None => Terminator::Jump(edge),
            Some((negate, condition)) => {
                let through = self.e.edge(next);
                let (then, otherwise) = if negate {
                    (through, edge)
                } else {
                    (edge, through)
                };
                Terminator::Branch {
                    condition,
                    then,
                    otherwise,
                }
            }
        };
        self.e.terminate(terminator);
    }

    fn exit(&mut self, guard: Option<(bool, Slot)>) -> Decoded<()> {
        let (gone, next) = (self.e.new_block(), self.e.new_block());
        let edge = self.e.edge(gone);
        self.leave(guard, edge, next);
        self.e.enter(gone);
        self.e.terminate(Terminator::Exit);
        self.e.enter(next);
        Ok(())
    }

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
