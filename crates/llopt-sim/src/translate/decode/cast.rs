//! LLVM's casts: renaming where the bits are the same, packing where elements change, conversion of numbers.

use crate::error::{Decoded, Unknown};
use crate::machine::bytecode::Slot;
use crate::machine::row::{self, IntOp, Real, mask};
use crate::memory::global;
use crate::numbers::float::Rounding;
use crate::translate::ir::{Opcode, Type, Value};

use super::{Body, Types};

impl<'m> Body<'_, '_, 'm> {
    pub(super) fn cast(&mut self, opcode: Opcode, inst: Value<'m>) -> Decoded<Vec<Slot>> {
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
                let short = self.decoder.types.layout.pointer_bits(4) == 32;
                let base = match (x, y) {
                    (3, 0) => global::SHARED_WINDOW,
                    (5, 0) => global::LOCAL_WINDOW,
                    (4, 0 | 1) if short => global::region_base(0),
                    _ => 0,
                };
                let base_slot = self.emitter.constant(base);
                Ok(a.iter()
                    .map(|&a| match (x, y) {
                        (0, 3 | 5) => self.emitter.truncate(a, 32),
                        _ if base != 0 => self.emitter.map2(row::OR, a, base_slot),
                        _ => self.emitter.truncate(a, target_bits),
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

    /// Reinterprets bits: leaves of equal width are renamed, others are packed or unpacked.
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
}
