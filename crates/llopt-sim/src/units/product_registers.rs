//! Registers that a product of a warp group reads, and the fence that must come after what wrote them.
//!
//! `wgmma.mma_async` reads its first operand, where that is in registers, and its accumulator at some time after it is
//! issued. `wgmma.fence` orders this after earlier accesses of the registers; only products that accumulate into the same
//! registers need none between them (PTX ISA, "wgmma.fence"). So every register that a product reads must have been
//! written before the warp's latest fence, or by a product.
//!
//! The fences of a warp are numbered. Each slot keeps the number of the latest fence before it was written, from the
//! first product of the kernel on. A copy of a slot is the same register under another name. A copy of a constant becomes
//! an instruction that writes a register, but where it stands is up to the assembler, which knows the fences; so it does
//! not count as written.

use crate::machine::bytecode::{Collective, Op, Slot};

/// The fence before which a slot that was never written, such as a constant, counts as written.
const NEVER: u32 = 0;
/// The mark of a slot that a product has written.
const BY_PRODUCT: u32 = u32::MAX;

/// The registers of a warp.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProductRegisters {
    /// The number of the latest fence; 0 before the first, when nothing is kept.
    fences: u32,
    /// By frame and slot.
    written: Vec<Vec<u32>>,
}

impl ProductRegisters {
    /// Whether a fence has been executed.
    pub(crate) fn is_fenced(&self) -> bool {
        self.fences > 0
    }

    /// `wgmma.fence`.
    pub(crate) fn fence(&mut self) {
        self.fences += 1;
    }

    fn mark(&mut self, frame: usize, slot: Slot, number: u32) {
        if self.written.len() <= frame {
            self.written.resize(frame + 1, Vec::new());
        }
        let slots = &mut self.written[frame];
        if slots.len() <= slot as usize {
            slots.resize(slot as usize + 1, NEVER);
        }
        slots[slot as usize] = number;
    }

    fn of(&self, frame: usize, slot: Slot) -> u32 {
        let slots = self.written.get(frame);
        slots
            .and_then(|slots| slots.get(slot as usize))
            .copied()
            .unwrap_or(NEVER)
    }

    /// Whether a slot has been written, other than by a product, since the latest fence.
    pub(crate) fn is_unfenced(&self, frame: usize, slot: Slot) -> bool {
        self.of(frame, slot) == self.fences
    }

    /// A slot gets the value of another.
    pub(crate) fn copy(&mut self, frame: usize, to: Slot, from: Slot) {
        self.mark(frame, to, self.of(frame, from));
    }

    /// Follows an op before it is executed.
    pub(crate) fn follow(&mut self, frame: usize, op: &Op) {
        let now = self.fences;
        let mut write = |slots: &mut dyn Iterator<Item = Slot>| {
            slots.for_each(|slot| self.mark(frame, slot, now));
        };
        match op {
            Op::Copy { dst, a } => self.copy(frame, *dst, *a),
            Op::Map1 { dst, .. }
            | Op::Map2 { dst, .. }
            | Op::Map3 { dst, .. }
            | Op::Special { dst, .. } => self.mark(frame, *dst, now),
            Op::Access(access) if !access.store => {
                write(&mut access.parts.iter().map(|part| part.slot));
            }
            Op::Tiles(tiles) if !tiles.store => write(&mut tiles.registers.iter().copied()),
            Op::Call(call) => write(&mut call.results.iter().map(|(here, _)| *here)),
            Op::Collective(meeting) => match &meeting.what {
                Collective::Matrix(matrix) => {
                    for field in &matrix.d {
                        self.mark(frame, field.slot, BY_PRODUCT);
                    }
                }
                Collective::Shuffle { dst, .. } => self.mark(frame, *dst, now),
                _ => {}
            },
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_register_is_fenced_by_the_next_fence() {
        let mut registers = ProductRegisters::default();
        assert!(!registers.is_fenced());
        registers.fence();
        registers.mark(0, 3, 1);
        assert!(registers.is_unfenced(0, 3));
        // Another name of the same register.
        registers.copy(0, 4, 3);
        registers.fence();
        assert!(!registers.is_unfenced(0, 3) && !registers.is_unfenced(0, 4));
        // Where a constant is written to a register is up to the assembler.
        registers.copy(0, 5, 9);
        assert!(!registers.is_unfenced(0, 5));
        registers.mark(0, 5, BY_PRODUCT);
        registers.copy(0, 6, 5);
        assert!(!registers.is_unfenced(0, 6));
    }
}
