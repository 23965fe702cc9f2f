//! LLVM's instructions other than calls, casts and accesses to memory.

use llopt_target::Vendor;

use crate::error::{Decoded, Unknown};
use crate::machine::bytecode::{Fence, Slot, Space, Terminator};
use crate::machine::row::{self, IntOp, Real, RealOp, row2, row3};
use crate::translate::ir::{Block, IntPredicate, Opcode, Type, TypeKind, Value};

use super::constant::GepStep;
use super::{Body, Types};

/// Whether a finding can name the instruction, so that its text is needed.
pub(super) fn needs_text(instruction: Value<'_>) -> bool {
    matches!(
        instruction.opcode(),
        Opcode::LLVMLoad
            | Opcode::LLVMStore
            | Opcode::LLVMAtomicRMW
            | Opcode::LLVMAtomicCmpXchg
            | Opcode::LLVMCall
            | Opcode::LLVMFence
            | Opcode::LLVMUnreachable
    )
}

/// The machine's address space for a number.
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
    /// A fence orders accesses of shared memory unless its scope is less than a block, or an annotation restricts it to
    /// global memory (LLVM AMDGPU usage, "Memory Model Relaxation Annotations"). No instruction is moved over an acquire
    /// either way, and the hardware's loads after it are issued after it.
    fn fence(&mut self, inst: Value<'m>) {
        let text = inst.print();
        let words: Vec<&str> = text.split([' ', ',', '(', ')', '"']).collect();
        let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(word));
        let is_narrow = has(&[
            "wavefront",
            "wavefront-one-as",
            "singlethread",
            "singlethread-one-as",
        ]);
        let notes = inst.notes("mmra");
        let is_global =
            notes.iter().any(|note| note == "global") && !notes.iter().any(|note| note == "local");
        self.emitter.fence(Fence {
            releases: !is_narrow && !is_global && has(&["release", "acq_rel", "seq_cst"]),
            acquires: !is_narrow && has(&["acquire", "acq_rel", "seq_cst"]),
        });
    }

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
            O::LLVMFCmp => self.real_compare(inst)?,
            O::LLVMSelect => self.select(inst)?,
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
            O::LLVMShuffleVector => self.shuffle_vector(inst)?,
            O::LLVMLoad => self.load(inst)?,
            O::LLVMStore => {
                self.store(inst)?;
                return Ok(());
            }
            O::LLVMAtomicRMW => self.atomic_rmw(inst)?,
            O::LLVMAtomicCmpXchg => self.compare_exchange(inst)?,
            O::LLVMFence => {
                self.fence(inst);
                return Ok(());
            }
            O::LLVMAlloca => self.alloca(inst)?,
            O::LLVMCall => self.call(inst)?,
            O::LLVMBr => return self.branch(block, inst),
            O::LLVMSwitch => return self.switch(block, inst),
            O::LLVMRet => return self.end_function(inst),
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

    /// A comparison of floating-point numbers.
    fn real_compare(&mut self, inst: Value<'m>) -> Decoded<Vec<Slot>> {
        let real = self.real(inst.operand(0).ty())?;
        let (a, b) = (self.value(inst.operand(0))?, self.value(inst.operand(1))?);
        let f = row::real_compare(inst.real_predicate(), real);
        Ok(a.iter()
            .zip(b)
            .map(|(&a, b)| self.emitter.map2(f, a, b))
            .collect())
    }

    /// A selection by one condition, or by one for each element.
    fn select(&mut self, inst: Value<'m>) -> Decoded<Vec<Slot>> {
        let condition = self.value(inst.operand(0))?;
        let (a, b) = (self.value(inst.operand(1))?, self.value(inst.operand(2))?);
        let per_condition = if condition.len() == 1 {
            a.len()
        } else {
            a.len() / condition.len()
        };
        Ok(a.iter()
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
            .collect())
    }

    /// Elements of two vectors.
    fn shuffle_vector(&mut self, inst: Value<'m>) -> Decoded<Vec<Slot>> {
        let mut both = self.value(inst.operand(0))?;
        let elements = inst.operand(0).ty().count() as usize;
        let per_element = both.len() / elements.max(1);
        both.extend(self.value(inst.operand(1))?);
        let zero = self.emitter.constant(0);
        let mut picked = Vec::new();
        for source in inst.shuffle_mask() {
            for piece in 0..per_element {
                picked.push(source.map_or(zero, |s| both[s as usize * per_element + piece]));
            }
        }
        Ok(picked)
    }

    /// A jump, or a branch.
    fn branch(&mut self, block: Block<'m>, inst: Value<'m>) -> Decoded<()> {
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
        Ok(())
    }

    /// A branch to one of many blocks.
    fn switch(&mut self, block: Block<'m>, inst: Value<'m>) -> Decoded<()> {
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
        Ok(())
    }

    /// The end of the function.
    fn end_function(&mut self, inst: Value<'m>) -> Decoded<()> {
        let result = if inst.num_operands() == 0 {
            Vec::new()
        } else {
            self.value(inst.operand(0))?
        };
        self.emitter.terminate(Terminator::Return(result));
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

    pub(super) fn int_width(&self, ty: Type<'m>) -> Decoded<u32> {
        self.decoder
            .types
            .scalar_bits(Types::element(ty))
            .ok_or_else(|| Unknown::new(format!("integer arithmetic on type {ty}")))
    }

    fn int_binary(&mut self, op: IntOp, inst: Value<'m>) -> Decoded<Vec<Slot>> {
        let bits = self.int_width(inst.ty())?;
        let (a, b) = (self.value(inst.operand(0))?, self.value(inst.operand(1))?);
        let divides = matches!(op, IntOp::SDiv | IntOp::UDiv | IntOp::SRem | IntOp::URem);
        // Divisions by known values are address computations.
        if divides && bits <= 64 && self.values.contains_key(&inst.operand(1)) {
            for &value in &b {
                self.emitter.expect(value, None);
            }
        }
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
        if a.len() != bits.div_ceil(64) as usize {
            return Err(Unknown::new(
                "a comparison of vectors of such wide integers",
            ));
        }
        // Compared by words, the lowest first: a higher word decides unless it is equal. Only the highest has a sign.
        let unsigned = match predicate {
            P::LLVMIntSGT => P::LLVMIntUGT,
            P::LLVMIntSGE => P::LLVMIntUGE,
            P::LLVMIntSLT => P::LLVMIntULT,
            P::LLVMIntSLE => P::LLVMIntULE,
            other => other,
        };
        let e = &mut self.emitter;
        let mut result = e.map2(wide(unsigned)?, a[0], b[0]);
        for word in 1..a.len() {
            let (mut x, mut y, mut by) = (a[word], b[word], unsigned);
            if word + 1 == a.len() {
                by = predicate;
                if signed {
                    x = e.sign_extend(x, bits - 64 * word as u32);
                    y = e.sign_extend(y, bits - 64 * word as u32);
                }
            }
            let decided = e.map2(wide(by)?, x, y);
            result = match predicate {
                P::LLVMIntEQ => e.map2(row::AND, result, decided),
                P::LLVMIntNE => e.map2(row::OR, result, decided),
                _ => {
                    let same = e.map2(wide(P::LLVMIntEQ)?, x, y);
                    e.select(same, result, decided)
                }
            };
        }
        Ok(vec![result])
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
                // Computed indices are tested first: rejecting one as a constant prints it.
                let constant = (!self.values.contains_key(&index))
                    .then(|| self.decoder.constant(index).ok())
                    .flatten()
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
}
