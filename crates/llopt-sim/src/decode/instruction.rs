//! LLVM's instructions other than calls.

use llopt_target::Vendor;

use crate::bytecode::{Address, Atomic, AtomicOp, Op, Part, Slot, Space, Terminator};
use crate::error::{Decoded, Unknown};
use crate::float::Rounding;
use crate::ir::{Block, IntPredicate, Opcode, Ordering, RmwOp, Type, TypeKind, Value};
use crate::memory;
use crate::row::{self, IntOp, Real, RealOp, mask, row2, row3};

use super::constant::GepStep;
use super::{Body, Types};

/// Whether findings may name the instruction, so that its text is kept.
pub(super) fn needs_text(instruction: Value<'_>) -> bool {
    matches!(
        instruction.opcode(),
        Opcode::LLVMLoad
            | Opcode::LLVMStore
            | Opcode::LLVMAtomicRMW
            | Opcode::LLVMAtomicCmpXchg
            | Opcode::LLVMCall
            | Opcode::LLVMUnreachable
    )
}

/// The machine's notion of an address space number.
pub(crate) fn space_of(vendor: Vendor, number: u32) -> Decoded<Space> {
    Ok(match (vendor, number) {
        (_, 0) => Space::Generic,
        (_, 1) => Space::Global,
        (_, 3) => Space::Shared,
        (_, 4) => Space::Constant,
        (_, 5) => Space::Local,
        (Vendor::Nvptx, 7) => Space::Shared,
        _ => {
            return Err(Unknown::new(format!(
                "address space {number} in a memory access"
            )));
        }
    })
}

impl<'m> Body<'_, '_, 'm> {
    /// Translates one instruction of `block`.
    pub(super) fn instruction(&mut self, block: Block<'m>, inst: Value<'m>) -> Decoded<()> {
        use Opcode as O;
        let opcode = inst.opcode();
        let slots = match opcode {
            O::LLVMAdd => self.int_binary(IntOp::Add, inst)?,
            O::LLVMSub => self.int_binary(IntOp::Sub, inst)?,
            O::LLVMMul => self.int_binary(IntOp::Mul, inst)?,
            O::LLVMUDiv => self.int_binary(IntOp::UDiv, inst)?,
            O::LLVMSDiv => self.int_binary(IntOp::SDiv, inst)?,
            O::LLVMURem => self.int_binary(IntOp::URem, inst)?,
            O::LLVMSRem => self.int_binary(IntOp::SRem, inst)?,
            O::LLVMAnd => self.int_binary(IntOp::And, inst)?,
            O::LLVMOr => self.int_binary(IntOp::Or, inst)?,
            O::LLVMXor => self.int_binary(IntOp::Xor, inst)?,
            O::LLVMShl => self.int_binary(IntOp::Shl, inst)?,
            O::LLVMLShr => self.int_binary(IntOp::LShr, inst)?,
            O::LLVMAShr => self.int_binary(IntOp::AShr, inst)?,
            O::LLVMFAdd => self.real_binary(RealOp::Add, inst)?,
            O::LLVMFSub => self.real_binary(RealOp::Sub, inst)?,
            O::LLVMFMul => self.real_binary(RealOp::Mul, inst)?,
            O::LLVMFDiv => self.real_binary(RealOp::Div, inst)?,
            O::LLVMFRem => self.real_binary(RealOp::Rem, inst)?,
            O::LLVMFNeg => {
                let real = self.real(inst.ty())?;
                let a = self.value(inst.operand(0))?;
                a.iter()
                    .map(|&a| self.emitter.map1(row::real_negate(real), a))
                    .collect()
            }
            O::LLVMICmp => self.int_compare(inst)?,
            O::LLVMFCmp => {
                let real = self.real(inst.operand(0).ty())?;
                let (a, b) = (self.value(inst.operand(0))?, self.value(inst.operand(1))?);
                let f = row::real_compare(inst.real_predicate(), real);
                a.iter()
                    .zip(b)
                    .map(|(&a, b)| self.emitter.map2(f, a, b))
                    .collect()
            }
            O::LLVMSelect => {
                let condition = self.value(inst.operand(0))?;
                let (a, b) = (self.value(inst.operand(1))?, self.value(inst.operand(2))?);
                let per_condition = if condition.len() == 1 {
                    a.len()
                } else {
                    a.len() / condition.len()
                };
                a.iter()
                    .zip(b)
                    .enumerate()
                    .map(|(i, (&a, b))| {
                        let c = condition[i / per_condition.max(1)];
                        if a == b {
                            a
                        } else {
                            self.emitter.select(c, a, b)
                        }
                    })
                    .collect()
            }
            O::LLVMTrunc
            | O::LLVMZExt
            | O::LLVMSExt
            | O::LLVMFPToUI
            | O::LLVMFPToSI
            | O::LLVMUIToFP
            | O::LLVMSIToFP
            | O::LLVMFPTrunc
            | O::LLVMFPExt
            | O::LLVMPtrToInt
            | O::LLVMPtrToAddr
            | O::LLVMIntToPtr
            | O::LLVMBitCast
            | O::LLVMAddrSpaceCast => self.cast(opcode, inst)?,
            O::LLVMFreeze => self.value(inst.operand(0))?,
            O::LLVMGetElementPtr => self.gep(inst)?,
            O::LLVMExtractValue => {
                let aggregate = self.value(inst.operand(0))?;
                let (first, ty) = self.member_path(inst.operand(0).ty(), &inst.indices())?;
                let count = self.decoder.types.count(ty)?;
                aggregate[first..first + count].to_vec()
            }
            O::LLVMInsertValue => {
                let mut aggregate = self.value(inst.operand(0))?;
                let member = self.value(inst.operand(1))?;
                let (first, _) = self.member_path(inst.operand(0).ty(), &inst.indices())?;
                aggregate[first..first + member.len()].copy_from_slice(&member);
                aggregate
            }
            O::LLVMExtractElement => self.extract_element(inst)?,
            O::LLVMInsertElement => self.insert_element(inst)?,
            O::LLVMShuffleVector => {
                let mut both = self.value(inst.operand(0))?;
                let elements = inst.operand(0).ty().count() as usize;
                let per_element = both.len() / elements.max(1);
                both.extend(self.value(inst.operand(1))?);
                let zero = self.emitter.constant(0);
                let mut picked = Vec::new();
                for source in inst.shuffle_mask() {
                    for piece in 0..per_element {
                        picked
                            .push(source.map_or(zero, |s| both[s as usize * per_element + piece]));
                    }
                }
                picked
            }
            O::LLVMLoad => self.load(inst)?,
            O::LLVMStore => {
                self.store(inst)?;
                return Ok(());
            }
            O::LLVMAtomicRMW => self.atomic_rmw(inst)?,
            O::LLVMAtomicCmpXchg => self.compare_exchange(inst)?,
            O::LLVMFence => {
                self.emitter.push(Op::Fence);
                return Ok(());
            }
            O::LLVMAlloca => self.alloca(inst)?,
            O::LLVMCall => self.call(inst)?,
            O::LLVMBr => {
                let targets = inst.successors();
                let terminator = if let [target] = targets[..] {
                    Terminator::Jump(self.edge(block, target))
                } else {
                    let condition = self.scalar(inst.operand(0))?;
                    Terminator::Branch {
                        condition,
                        then: self.edge(block, targets[0]),
                        otherwise: self.edge(block, targets[1]),
                    }
                };
                self.emitter.terminate(terminator);
                return Ok(());
            }
            O::LLVMSwitch => {
                let value = self.scalar(inst.operand(0))?;
                let targets = inst.successors();
                let default = self.edge(block, targets[0]);
                let mut cases = Vec::new();
                for (i, &target) in targets.iter().enumerate().skip(1) {
                    let case = self.decoder.constant_scalar(inst.switch_case(i as u32))?;
                    cases.push((case, self.edge(block, target)));
                }
                self.emitter.terminate(Terminator::Switch {
                    value,
                    cases,
                    default,
                });
                return Ok(());
            }
            O::LLVMRet => {
                let result = if inst.num_operands() == 0 {
                    Vec::new()
                } else {
                    self.value(inst.operand(0))?
                };
                self.emitter.terminate(Terminator::Return(result));
                return Ok(());
            }
            O::LLVMUnreachable => {
                let site = self.emitter.site();
                self.emitter.terminate(Terminator::Unreachable(site));
                return Ok(());
            }
            _ => return Err(Unknown::new("the instruction")),
        };
        self.values.insert(inst, slots);
        Ok(())
    }

    /// Type of floating-point arithmetic on a scalar or vector type.
    pub(super) fn real(&self, ty: Type<'m>) -> Decoded<Real> {
        let real = Types::real(Types::element(ty))
            .ok_or_else(|| Unknown::new(format!("arithmetic on type {ty}")))?;
        Ok(if real == Real::F32 {
            self.emitter.single
        } else {
            real
        })
    }

    fn int_width(&self, ty: Type<'m>) -> Decoded<u32> {
        self.decoder
            .types
            .scalar_bits(Types::element(ty))
            .ok_or_else(|| Unknown::new(format!("integer arithmetic on type {ty}")))
    }

    fn int_binary(&mut self, op: IntOp, inst: Value<'m>) -> Decoded<Vec<Slot>> {
        let bits = self.int_width(inst.ty())?;
        let (a, b) = (self.value(inst.operand(0))?, self.value(inst.operand(1))?);
        if bits <= 64 {
            return Ok(a
                .iter()
                .zip(b)
                .map(|(&a, b)| self.emitter.int_binary(op, bits, a, b))
                .collect());
        }
        if bits > 128 || Types::element(inst.ty()) != inst.ty() {
            return Err(Unknown::new(format!("arithmetic on type {}", inst.ty())));
        }
        self.wide_binary(op, bits, [a[0], a[1]], [b[0], b[1]])
    }

    /// Integers of 65 to 128 bits in two halves.
    fn wide_binary(
        &mut self,
        op: IntOp,
        bits: u32,
        a: [Slot; 2],
        b: [Slot; 2],
    ) -> Decoded<Vec<Slot>> {
        let e = &mut self.emitter;
        let (low, high) = match op {
            IntOp::And | IntOp::Or | IntOp::Xor => (
                e.int_binary(op, 64, a[0], b[0]),
                e.int_binary(op, 64, a[1], b[1]),
            ),
            IntOp::Add => {
                let low = e.int_binary(op, 64, a[0], b[0]);
                let carry = e.map2(row2!(|x, y| u64::from(x < y)), low, a[0]);
                let high = e.int_binary(op, 64, a[1], b[1]);
                (low, e.int_binary(op, 64, high, carry))
            }
            IntOp::Sub => {
                let low = e.int_binary(op, 64, a[0], b[0]);
                let borrow = e.map2(row2!(|x, y| u64::from(x < y)), a[0], b[0]);
                let high = e.int_binary(op, 64, a[1], b[1]);
                (low, e.int_binary(op, 64, high, borrow))
            }
            IntOp::Mul => {
                let low = e.int_binary(op, 64, a[0], b[0]);
                let carry = e.int_binary(IntOp::MulHiU, 64, a[0], b[0]);
                let cross1 = e.int_binary(op, 64, a[0], b[1]);
                let cross2 = e.int_binary(op, 64, a[1], b[0]);
                let high = e.int_binary(IntOp::Add, 64, carry, cross1);
                (low, e.int_binary(IntOp::Add, 64, high, cross2))
            }
            IntOp::Shl => (
                e.map2(row2!(|x, s| if s < 64 { x << s } else { 0 }), a[0], b[0]),
                e.map3(
                    row3!(|low, high, s| {
                        ((u128::from(high) << 64 | u128::from(low))
                            .checked_shl(s as u32)
                            .unwrap_or(0)
                            >> 64) as u64
                    }),
                    a[0],
                    a[1],
                    b[0],
                ),
            ),
            IntOp::LShr => (
                e.map3(
                    row3!(|low, high, s| {
                        (u128::from(high) << 64 | u128::from(low))
                            .checked_shr(s as u32)
                            .unwrap_or(0) as u64
                    }),
                    a[0],
                    a[1],
                    b[0],
                ),
                e.map2(row2!(|x, s| if s < 64 { x >> s } else { 0 }), a[1], b[0]),
            ),
            IntOp::AShr => {
                let top = e.sign_extend(a[1], bits - 64);
                (
                    e.map3(
                        row3!(|low, high, s| {
                            ((u128::from(high) << 64 | u128::from(low)) as i128 >> s.min(127))
                                as u64
                        }),
                        a[0],
                        top,
                        b[0],
                    ),
                    e.map2(row2!(|x, s| ((x as i64) >> s.min(63)) as u64), top, b[0]),
                )
            }
            _ => return Err(Unknown::new(format!("{op:?} on {bits}-bit integers"))),
        };
        let high = e.truncate(high, bits - 64);
        Ok(vec![low, high])
    }

    fn real_binary(&mut self, op: RealOp, inst: Value<'m>) -> Decoded<Vec<Slot>> {
        let real = self.real(inst.ty())?;
        let (a, b) = (self.value(inst.operand(0))?, self.value(inst.operand(1))?);
        let f = row::real_binary(op, real);
        Ok(a.iter()
            .zip(b)
            .map(|(&a, b)| self.emitter.map2(f, a, b))
            .collect())
    }

    fn int_compare(&mut self, inst: Value<'m>) -> Decoded<Vec<Slot>> {
        use IntPredicate as P;
        let bits = self.int_width(inst.operand(0).ty())?;
        let (a, b) = (self.value(inst.operand(0))?, self.value(inst.operand(1))?);
        let predicate = inst.int_predicate();
        let signed = matches!(
            predicate,
            P::LLVMIntSGT | P::LLVMIntSGE | P::LLVMIntSLT | P::LLVMIntSLE
        );
        let wide = |p| row::int_compare(p, 64).ok_or_else(|| Unknown::new("a comparison"));
        if bits <= 64 {
            let direct = row::int_compare(predicate, bits);
            let mut result = Vec::new();
            for (&a, b) in a.iter().zip(b) {
                result.push(match direct {
                    Some(f) => self.emitter.map2(f, a, b),
                    None if signed => {
                        let x = self.emitter.sign_extend(a, bits);
                        let y = self.emitter.sign_extend(b, bits);
                        self.emitter.map2(wide(predicate)?, x, y)
                    }
                    None => self.emitter.map2(wide(predicate)?, a, b),
                });
            }
            return Ok(result);
        }
        if bits > 128 || a.len() != 2 {
            return Err(Unknown::new("a comparison of integers of this width"));
        }
        let e = &mut self.emitter;
        let (mut high_a, mut high_b) = (a[1], b[1]);
        if signed {
            high_a = e.sign_extend(high_a, bits - 64);
            high_b = e.sign_extend(high_b, bits - 64);
        }
        let unsigned = match predicate {
            P::LLVMIntSGT => P::LLVMIntUGT,
            P::LLVMIntSGE => P::LLVMIntUGE,
            P::LLVMIntSLT => P::LLVMIntULT,
            P::LLVMIntSLE => P::LLVMIntULE,
            other => other,
        };
        let low = e.map2(wide(unsigned)?, a[0], b[0]);
        let high = e.map2(wide(predicate)?, high_a, high_b);
        Ok(vec![match predicate {
            P::LLVMIntEQ => e.map2(row::AND, low, high),
            P::LLVMIntNE => e.map2(row::OR, low, high),
            _ => {
                let same = e.map2(wide(P::LLVMIntEQ)?, high_a, high_b);
                e.select(same, low, high)
            }
        }])
    }

    fn cast(&mut self, opcode: Opcode, inst: Value<'m>) -> Decoded<Vec<Slot>> {
        use Opcode as O;
        let source = inst.operand(0);
        let (from, to) = (source.ty(), inst.ty());
        let a = self.value(source)?;
        if opcode == O::LLVMBitCast {
            return self.bitcast(&a, from, to);
        }
        let (element_from, element_to) = (Types::element(from), Types::element(to));
        let width = |this: &Self, ty| this.int_width(ty);
        match opcode {
            O::LLVMTrunc
            | O::LLVMZExt
            | O::LLVMSExt
            | O::LLVMPtrToInt
            | O::LLVMPtrToAddr
            | O::LLVMIntToPtr => {
                let (m, n) = (width(self, from)?, width(self, to)?);
                let mut result = Vec::new();
                let pieces_from = m.div_ceil(64) as usize;
                for value in a.chunks(pieces_from) {
                    result.extend(self.resize(value, m, n, opcode == O::LLVMSExt));
                }
                Ok(result)
            }
            O::LLVMAddrSpaceCast => {
                let (x, y) = (element_from.address_space(), element_to.address_space());
                let target_bits = self.decoder.types.layout.pointer_bits(y).min(64);
                let window = match (x, y) {
                    (3, 0) => memory::SHARED_WINDOW,
                    (5, 0) => memory::LOCAL_WINDOW,
                    _ => 0,
                };
                let window = self.emitter.constant(window);
                Ok(a.iter()
                    .map(|&a| {
                        if (x, y) == (3, 0) || (x, y) == (5, 0) {
                            self.emitter.map2(row::OR, a, window)
                        } else if matches!((x, y), (0, 3 | 5)) {
                            self.emitter.truncate(a, 32)
                        } else {
                            self.emitter.truncate(a, target_bits)
                        }
                    })
                    .collect())
            }
            O::LLVMFPTrunc | O::LLVMFPExt => {
                let f = row::real_convert(self.real(from)?, self.real(to)?);
                Ok(a.iter().map(|&a| self.emitter.map1(f, a)).collect())
            }
            O::LLVMUIToFP | O::LLVMSIToFP => {
                let signed = opcode == O::LLVMSIToFP;
                let bits = width(self, from)?;
                if bits > 64 {
                    return Err(Unknown::new("conversion of an integer of this width"));
                }
                let f = row::int_to_real(signed, self.real(to)?);
                Ok(a.iter()
                    .map(|&a| {
                        let wide = if signed {
                            self.emitter.sign_extend(a, bits)
                        } else {
                            a
                        };
                        self.emitter.map1(f, wide)
                    })
                    .collect())
            }
            _ => {
                let signed = opcode == O::LLVMFPToSI;
                let bits = width(self, to)?;
                if bits > 64 {
                    return Err(Unknown::new("conversion to an integer of this width"));
                }
                let real = self.real(from)?;
                Ok(a.iter()
                    .map(|&a| self.real_to_int(real, signed, bits, Rounding::Zero, a))
                    .collect())
            }
        }
    }

    /// Saturating conversion to an integer.
    pub(super) fn real_to_int(
        &mut self,
        real: Real,
        signed: bool,
        bits: u32,
        rounding: Rounding,
        a: Slot,
    ) -> Slot {
        let max = mask(bits - u32::from(signed));
        let max = self.emitter.constant(max);
        let low = self.emitter.constant(mask(bits));
        self.emitter
            .map3(row::real_to_int(real, signed, rounding), a, max, low)
    }

    /// Changes an integer's width.
    fn resize(&mut self, value: &[Slot], from: u32, to: u32, signed: bool) -> Vec<Slot> {
        let e = &mut self.emitter;
        let pieces = to.div_ceil(64) as usize;
        let mut result = Vec::new();
        let zero = e.constant(0);
        let mut top = zero;
        for i in 0..pieces {
            let have = from.saturating_sub(64 * i as u32).min(64);
            let want = (to - 64 * i as u32).min(64);
            let piece = match value.get(i) {
                Some(&piece) if signed && have < want => {
                    let wide = e.sign_extend(piece, have);
                    if want < 64 {
                        e.truncate(wide, want)
                    } else {
                        wide
                    }
                }
                Some(&piece) if want < have => e.truncate(piece, want),
                Some(&piece) => piece,
                None => top,
            };
            if signed && i + 1 == value.len() {
                let sign = e.constant(63);
                let wide = e.sign_extend(piece, want.min(64));
                top = e.int_binary(IntOp::AShr, 64, wide, sign);
            }
            result.push(piece);
        }
        if signed && pieces > 0 {
            let want = to - 64 * (pieces as u32 - 1);
            if want < 64 && pieces > value.len() {
                let last = result[pieces - 1];
                result[pieces - 1] = e.truncate(last, want);
            }
        }
        result
    }

    /// Reinterprets bits: leaves of equal width are renamed, others packed or taken apart.
    pub(super) fn bitcast(
        &mut self,
        a: &[Slot],
        from: Type<'m>,
        to: Type<'m>,
    ) -> Decoded<Vec<Slot>> {
        let source = self.decoder.types.leaves(from)?;
        let target = self.decoder.types.leaves(to)?;
        if source.len() == target.len() && source.iter().zip(&target).all(|(x, y)| x.bits == y.bits)
        {
            return Ok(a.to_vec());
        }
        let widths: Vec<u32> = source.iter().map(|l| l.bits).collect();
        let wanted: Vec<u32> = target.iter().map(|l| l.bits).collect();
        self.regroup(a, &widths, &wanted)
    }

    /// Rewrites a sequence of bit strings as one of other widths.
    pub(super) fn regroup(
        &mut self,
        a: &[Slot],
        widths: &[u32],
        wanted: &[u32],
    ) -> Decoded<Vec<Slot>> {
        let (have, want): (u32, u32) = (widths.iter().sum(), wanted.iter().sum());
        if have != want {
            return Err(Unknown::new(format!(
                "a cast of {have} bits to {want} bits"
            )));
        }
        let e = &mut self.emitter;
        let mut result = Vec::new();
        let mut starts = Vec::new();
        let mut at = 0;
        for &width in widths {
            starts.push(at);
            at += width;
        }
        let mut begin = 0;
        for &width in wanted {
            let end = begin + width;
            let mut piece: Option<Slot> = None;
            for (i, &slot) in a.iter().enumerate() {
                let (low, high) = (starts[i].max(begin), (starts[i] + widths[i]).min(end));
                if low >= high {
                    continue;
                }
                let bits = if low == starts[i] && high == starts[i] + widths[i] {
                    slot
                } else {
                    e.extract(slot, low - starts[i], high - low)
                };
                piece = Some(match piece {
                    None => bits,
                    Some(below) => {
                        let shift = e.constant(u64::from(low - begin));
                        e.map3(row::INSERT_BITS, below, bits, shift)
                    }
                });
            }
            result.push(piece.unwrap_or_else(|| e.constant(0)));
            begin = end;
        }
        Ok(result)
    }

    fn gep(&mut self, inst: Value<'m>) -> Decoded<Vec<Slot>> {
        let lanes = if inst.ty().kind() == TypeKind::LLVMVectorTypeKind {
            inst.ty().count() as usize
        } else {
            1
        };
        let pointer_bits = self.int_width(inst.ty())?;
        if pointer_bits > 64 {
            return Err(Unknown::new("address arithmetic on a buffer resource"));
        }
        let mut result = Vec::new();
        for element in 0..lanes {
            let pick = |slots: &[Slot]| slots[if slots.len() == 1 { 0 } else { element }];
            let base = self.value(inst.operand(0))?;
            let mut address = pick(&base);
            let mut fixed = 0u64;
            let mut at = inst.gep_source_type();
            for i in 1..inst.num_operands() {
                let index = inst.operand(i);
                let width = self.int_width(index.ty())?;
                let constant = self
                    .decoder
                    .constant(index)
                    .ok()
                    .filter(|_| !self.values.contains_key(&index))
                    .map(|bits| {
                        row::sext(bits[if bits.len() == 1 { 0 } else { element }], width) as u64
                    });
                let (step, next) = self.decoder.gep_step(at, i, constant)?;
                at = next;
                match (step, constant) {
                    (GepStep::Constant(offset), _) => fixed = fixed.wrapping_add(offset),
                    (GepStep::Scaled(size), Some(index)) => {
                        fixed = fixed.wrapping_add(index.wrapping_mul(size));
                    }
                    (GepStep::Scaled(size), None) => {
                        let slots = self.value(index)?;
                        let mut index = pick(&slots);
                        if width < pointer_bits {
                            index = self.emitter.sign_extend(index, width);
                        }
                        let size = self.emitter.constant(size);
                        address = self.emitter.map3(row::SCALE_ADD, address, index, size);
                    }
                }
            }
            if fixed != 0 {
                let fixed = self.emitter.constant(fixed);
                address = self.emitter.map2(row::ADD64, address, fixed);
            }
            if pointer_bits < 64 {
                address = self.emitter.truncate(address, pointer_bits);
            }
            result.push(address);
        }
        Ok(result)
    }

    /// First leaf and type of a member reached by a path of indices.
    fn member_path(&self, ty: Type<'m>, path: &[u32]) -> Decoded<(usize, Type<'m>)> {
        let mut first = 0;
        let mut at = ty;
        for &index in path {
            let (offset, next) = self.decoder.types.member(at, index)?;
            first += offset;
            at = next;
        }
        Ok((first, at))
    }

    fn extract_element(&mut self, inst: Value<'m>) -> Decoded<Vec<Slot>> {
        let vector = self.value(inst.operand(0))?;
        let elements = inst.operand(0).ty().count() as usize;
        let pieces = vector.len() / elements.max(1);
        if let Ok(index) = self.decoder.constant_scalar(inst.operand(1)) {
            let first = (index as usize).min(elements - 1) * pieces;
            return Ok(vector[first..first + pieces].to_vec());
        }
        let index = self.scalar(inst.operand(1))?;
        let mut result = vector[..pieces].to_vec();
        for element in 1..elements {
            let number = self.emitter.constant(element as u64);
            let here = self
                .emitter
                .map2(row2!(|x, y| u64::from(x == y)), index, number);
            for (piece, slot) in result.iter_mut().enumerate() {
                *slot = self
                    .emitter
                    .select(here, vector[element * pieces + piece], *slot);
            }
        }
        Ok(result)
    }

    fn insert_element(&mut self, inst: Value<'m>) -> Decoded<Vec<Slot>> {
        let mut vector = self.value(inst.operand(0))?;
        let member = self.value(inst.operand(1))?;
        let elements = inst.ty().count() as usize;
        let pieces = member.len();
        if let Ok(index) = self.decoder.constant_scalar(inst.operand(2)) {
            let first = (index as usize).min(elements - 1) * pieces;
            vector[first..first + pieces].copy_from_slice(&member);
            return Ok(vector);
        }
        let index = self.scalar(inst.operand(2))?;
        for element in 0..elements {
            let number = self.emitter.constant(element as u64);
            let here = self
                .emitter
                .map2(row2!(|x, y| u64::from(x == y)), index, number);
            for (piece, &slot) in member.iter().enumerate() {
                let at = element * pieces + piece;
                vector[at] = self.emitter.select(here, slot, vector[at]);
            }
        }
        Ok(vector)
    }

    /// Space of the memory behind a pointer value.
    fn space(&self, pointer: Value<'m>) -> Decoded<Space> {
        space_of(self.vendor(), pointer.ty().address_space())
    }

    /// Scalar pieces of a value in memory, or one integer to be regrouped when elements are smaller than a byte.
    fn memory_widths(&self, ty: Type<'m>) -> Decoded<Option<Vec<u32>>> {
        let element = Types::element(ty);
        let bits = self.decoder.types.scalar_bits(element);
        Ok(match bits {
            Some(bits) if element != ty && bits % 8 != 0 => {
                let total = bits * ty.count();
                let whole = total.next_multiple_of(8);
                let mut widths = vec![64; whole as usize / 64];
                if !whole.is_multiple_of(64) {
                    widths.push(whole % 64);
                }
                if total != whole {
                    return Err(Unknown::new(format!("memory of type {ty}")));
                }
                Some(widths)
            }
            _ => None,
        })
    }

    fn parts(widths: &[u32], slots: &[Slot]) -> Vec<Part> {
        let mut at = 0;
        widths
            .iter()
            .zip(slots)
            .map(|(&bits, &slot)| {
                let bytes = bits / 8;
                at += bytes;
                Part {
                    slot,
                    offset: at - bytes,
                    bytes,
                }
            })
            .collect()
    }

    fn load(&mut self, inst: Value<'m>) -> Decoded<Vec<Slot>> {
        let pointer = inst.operand(0);
        let space = self.space(pointer)?;
        let base = self.scalar(pointer)?;
        let ty = inst.ty();
        let synchronizing =
            inst.ordering() != Ordering::LLVMAtomicOrderingNotAtomic || inst.is_volatile();
        let address = Address::Flat { base, offset: 0 };
        let align = inst.alignment().min(u64::from(u32::MAX)) as u32;
        let leaves = self.decoder.types.leaves(ty)?;
        if let Some(widths) = self.memory_widths(ty)? {
            let words = self.emitter.slots(widths.len());
            let parts = Self::parts(&widths, &words);
            self.emitter
                .access(false, space, address, parts, align, synchronizing);
            let wanted: Vec<u32> = leaves.iter().map(|l| l.bits).collect();
            return self.regroup(&words, &widths, &wanted);
        }
        let slots = self.emitter.slots(leaves.len());
        let parts = leaves
            .iter()
            .zip(&slots)
            .map(|(leaf, &slot)| Part {
                slot,
                offset: leaf.offset as u32,
                bytes: leaf.bits.div_ceil(8),
            })
            .collect();
        self.emitter
            .access(false, space, address, parts, align, synchronizing);
        Ok(leaves
            .iter()
            .zip(slots)
            .map(|(leaf, slot)| {
                if leaf.bits % 8 == 0 {
                    slot
                } else {
                    self.emitter.truncate(slot, leaf.bits)
                }
            })
            .collect())
    }

    fn store(&mut self, inst: Value<'m>) -> Decoded<()> {
        let (value, pointer) = (inst.operand(0), inst.operand(1));
        let space = self.space(pointer)?;
        let base = self.scalar(pointer)?;
        let slots = self.value(value)?;
        let ty = value.ty();
        let synchronizing =
            inst.ordering() != Ordering::LLVMAtomicOrderingNotAtomic || inst.is_volatile();
        let address = Address::Flat { base, offset: 0 };
        let align = inst.alignment().min(u64::from(u32::MAX)) as u32;
        let leaves = self.decoder.types.leaves(ty)?;
        let parts = if let Some(widths) = self.memory_widths(ty)? {
            let have: Vec<u32> = leaves.iter().map(|l| l.bits).collect();
            let words = self.regroup(&slots, &have, &widths)?;
            Self::parts(&widths, &words)
        } else {
            leaves
                .iter()
                .zip(&slots)
                .map(|(leaf, &slot)| Part {
                    slot,
                    offset: leaf.offset as u32,
                    bytes: leaf.bits.div_ceil(8),
                })
                .collect()
        };
        self.emitter
            .access(true, space, address, parts, align, synchronizing);
        Ok(())
    }

    fn atomic_rmw(&mut self, inst: Value<'m>) -> Decoded<Vec<Slot>> {
        use RmwOp as R;
        let (pointer, value) = (inst.operand(0), inst.operand(1));
        let ty = value.ty();
        let real = Types::real(Types::element(ty));
        let need_real = || real.ok_or_else(|| Unknown::new("a floating-point atomic on integers"));
        let op = match inst.rmw_op() {
            R::LLVMAtomicRMWBinOpXchg => AtomicOp::Exchange,
            R::LLVMAtomicRMWBinOpAdd => AtomicOp::Add,
            R::LLVMAtomicRMWBinOpSub => AtomicOp::Sub,
            R::LLVMAtomicRMWBinOpAnd => AtomicOp::And,
            R::LLVMAtomicRMWBinOpNand => AtomicOp::Nand,
            R::LLVMAtomicRMWBinOpOr => AtomicOp::Or,
            R::LLVMAtomicRMWBinOpXor => AtomicOp::Xor,
            R::LLVMAtomicRMWBinOpMax => AtomicOp::SMax,
            R::LLVMAtomicRMWBinOpMin => AtomicOp::SMin,
            R::LLVMAtomicRMWBinOpUMax => AtomicOp::UMax,
            R::LLVMAtomicRMWBinOpUMin => AtomicOp::UMin,
            R::LLVMAtomicRMWBinOpFAdd => AtomicOp::FAdd(need_real()?),
            R::LLVMAtomicRMWBinOpFSub => AtomicOp::FSub(need_real()?),
            R::LLVMAtomicRMWBinOpFMax => AtomicOp::FMax(need_real()?),
            R::LLVMAtomicRMWBinOpFMin => AtomicOp::FMin(need_real()?),
            R::LLVMAtomicRMWBinOpUIncWrap => AtomicOp::IncrementWrap,
            R::LLVMAtomicRMWBinOpUDecWrap => AtomicOp::DecrementWrap,
            R::LLVMAtomicRMWBinOpUSubCond => AtomicOp::SubConditional,
            R::LLVMAtomicRMWBinOpUSubSat => AtomicOp::SubSaturate,
            other => return Err(Unknown::new(format!("atomicrmw {other:?}"))),
        };
        let value = self.value(value)?;
        let old = self.emitter.slots(value.len());
        let atomic = Atomic {
            op,
            address: Address::Flat {
                base: self.scalar(pointer)?,
                offset: 0,
            },
            space: self.space(pointer)?,
            bits: self.int_width(ty)?,
            old: old.clone(),
            value,
            compare: Vec::new(),
            site: 0,
        };
        self.emitter.atomic(atomic);
        Ok(old)
    }

    fn compare_exchange(&mut self, inst: Value<'m>) -> Decoded<Vec<Slot>> {
        let pointer = inst.operand(0);
        let compare = self.scalar(inst.operand(1))?;
        let value = self.scalar(inst.operand(2))?;
        let bits = self.int_width(inst.operand(1).ty())?;
        let old = self.emitter.slot();
        let atomic = Atomic {
            op: AtomicOp::CompareExchange,
            address: Address::Flat {
                base: self.scalar(pointer)?,
                offset: 0,
            },
            space: self.space(pointer)?,
            bits,
            old: vec![old],
            value: vec![value],
            compare: vec![compare],
            site: 0,
        };
        self.emitter.atomic(atomic);
        let equal = self
            .emitter
            .map2(row2!(|x, y| u64::from(x == y)), old, compare);
        Ok(vec![old, equal])
    }

    fn alloca(&mut self, inst: Value<'m>) -> Decoded<Vec<Slot>> {
        let ty = inst.allocated_type();
        let count = self
            .decoder
            .constant_scalar(inst.operand(0))
            .map_err(|_| Unknown::new("an alloca of variable size"))?;
        let layout = self.decoder.types.layout;
        let align = inst.alignment().max(layout.align(ty)).max(1);
        let offset = self.emitter.local_bytes.next_multiple_of(align);
        let size = layout.size(ty).checked_mul(count).filter(|&s| s < 1 << 24);
        let size = size.ok_or_else(|| Unknown::new("an alloca of this size"))?;
        self.emitter.local_bytes = offset + size;
        let dst = self.emitter.slot();
        self.emitter.push(Op::Alloca { dst, offset });
        if inst.ty().address_space() == 0 {
            let window = self.emitter.constant(memory::LOCAL_WINDOW);
            return Ok(vec![self.emitter.map2(row::OR, dst, window)]);
        }
        Ok(vec![dst])
    }
}
