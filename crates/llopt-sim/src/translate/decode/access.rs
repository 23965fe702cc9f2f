//! LLVM's accesses to memory: loads, stores, atomics, private memory.

use crate::error::{Decoded, Unknown};
use crate::machine::bytecode::{
    Access, AccessKind, Address, Atomic, AtomicOp, Op, Part, Slot, Space,
};
use crate::machine::row::{self, row2};
use crate::memory::global;
use crate::translate::ir::{Ordering, RmwOp, Type, Value};

use super::{Body, Types, space_of};

impl<'m> Body<'_, '_, 'm> {
    /// Space of the memory behind a pointer value.
    fn space(&self, pointer: Value<'m>) -> Decoded<Space> {
        space_of(self.vendor(), pointer.ty().address_space())
    }

    /// Scalar pieces of a value in memory, or integers to be regrouped when elements are smaller than a byte: such a
    /// vector is packed, and its last byte may be padded.
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
                Some(widths)
            }
            _ => None,
        })
    }

    /// The padding bits of the last byte of a packed vector, if there are any.
    fn filling(widths: &[u32], packed: &[u32]) -> Vec<u32> {
        let (whole, used): (u32, u32) = (widths.iter().sum(), packed.iter().sum());
        (whole > used).then_some(whole - used).into_iter().collect()
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

    pub(super) fn load(&mut self, inst: Value<'m>) -> Decoded<Vec<Slot>> {
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
            self.emitter.access(
                AccessKind::Load,
                space,
                address,
                parts,
                align,
                synchronizing,
            );
            let wanted: Vec<u32> = leaves.iter().map(|l| l.bits).collect();
            let filled = Self::filling(&widths, &wanted);
            let mut values =
                self.regroup(&words, &widths, &[wanted.as_slice(), &filled].concat())?;
            values.truncate(leaves.len());
            return Ok(values);
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
        self.emitter.access(
            AccessKind::Load,
            space,
            address,
            parts,
            align,
            synchronizing,
        );
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

    pub(super) fn store(&mut self, inst: Value<'m>) -> Decoded<()> {
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
            let mut have: Vec<u32> = leaves.iter().map(|l| l.bits).collect();
            let mut slots = slots;
            for bits in Self::filling(&widths, &have) {
                have.push(bits);
                slots.push(self.emitter.constant(0));
            }
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
        self.emitter.access(
            AccessKind::Store,
            space,
            address,
            parts,
            align,
            synchronizing,
        );
        Ok(())
    }

    /// `llvm.masked.load` and `llvm.masked.store` with a constant mask: an access to the whole vector in which some
    /// elements are ignored.
    pub(super) fn masked_access(
        &mut self,
        inst: Value<'m>,
        kind: AccessKind,
    ) -> Decoded<Vec<Slot>> {
        // Loads: pointer, mask, other. Stores: value, pointer, mask.
        let stores = kind == AccessKind::Store;
        let first = u32::from(stores);
        let (pointer, mask) = (inst.operand(first), inst.operand(first + 1));
        let vector = if stores { inst.operand(0) } else { inst };
        let leaves = self.decoder.types.leaves(vector.ty())?;
        if leaves.iter().any(|leaf| leaf.bits % 8 != 0) {
            let ty = vector.ty();
            return Err(Unknown::new(format!(
                "a masked access to memory of type {ty}"
            )));
        }
        let wanted = self
            .decoder
            .constant(mask)
            .map_err(|_| Unknown::new("a masked access with a variable mask"))?;
        let others = self.value(inst.operand(if stores { 0 } else { 2 }))?;
        let mut slots = others.clone();
        let mut parts = Vec::new();
        for (i, leaf) in leaves.iter().enumerate().filter(|(i, _)| wanted[*i] != 0) {
            if !stores {
                slots[i] = self.emitter.slot();
            }
            parts.push(Part {
                slot: slots[i],
                offset: leaf.offset as u32,
                bytes: leaf.bits / 8,
            });
        }
        let end = |offset: u64, bits: u32| offset as u32 + bits / 8;
        let space = self.space(pointer)?;
        let base = self.scalar(pointer)?;
        self.emitter.push_access(Access {
            kind,
            address: Address::Flat { base, offset: 0 },
            space,
            bytes: parts.iter().map(|p| p.offset + p.bytes).max().unwrap_or(0),
            parts: parts.into_boxed_slice(),
            width: leaves.last().map_or(0, |l| end(l.offset, l.bits)),
            align: inst.argument_alignment(first).max(1),
            synchronizing: false,
            site: 0,
        });
        Ok(if stores { Vec::new() } else { slots })
    }

    pub(super) fn atomic_rmw(&mut self, inst: Value<'m>) -> Decoded<Vec<Slot>> {
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
            // Only AMD's code has an LLVM instruction that adds several halves.
            R::LLVMAtomicRMWBinOpFAdd if self.decoder.types.leaves(ty)?.len() > 1 => {
                AtomicOp::FAddTogether(need_real()?)
            }
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

    pub(super) fn compare_exchange(&mut self, inst: Value<'m>) -> Decoded<Vec<Slot>> {
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

    pub(super) fn alloca(&mut self, inst: Value<'m>) -> Decoded<Vec<Slot>> {
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
            let window = self.emitter.constant(global::LOCAL_WINDOW);
            return Ok(vec![self.emitter.map2(row::OR, dst, window)]);
        }
        Ok(vec![dst])
    }
}
