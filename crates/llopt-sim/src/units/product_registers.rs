//! Registers that a product of a warp group reads, and the fence that must come after what wrote them.
//!
//! `wgmma.mma_async` reads its first operand, where that is in registers, and its accumulator at some time after it is
//! issued. `wgmma.fence` orders this after earlier accesses of the registers; only products that accumulate into the same
//! registers need none between them (PTX ISA, "wgmma.fence"). So every register that a product reads must have been
//! written before the warp's latest fence, or by a product; and where the same piece of assembly is executed again, what it
//! wrote the last time must have been read before the latest fence, since it writes the same registers.
//!
//! The fences of a warp are numbered. Each slot keeps the number of the latest fence before it was written, from the
//! first product of the kernel on, and the assembly whose product has written it. A copy of a slot is the same register under
//! another name. A copy of a constant becomes
//! an instruction that writes a register, but where it stands is up to the assembler, which knows the fences; so it does
//! not count as written.

use std::collections::HashMap;

use crate::machine::bytecode::{AccessKind, Collective, Op, SiteId, Slot};
use crate::units::reads::for_each_read;

/// The mark of a slot that a product has written.
const BY_PRODUCT: u32 = u32::MAX;

/// How a slot was written.
#[derive(Clone, Copy, Debug, Default)]
struct Written {
    /// The number of the latest fence before that, or [`BY_PRODUCT`].
    after: u32,
    /// The assembly with the product that did.
    by: Option<SiteId>,
}

/// The registers of a warp.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProductRegisters {
    /// The number of the latest fence; 0 before the first, when nothing is kept.
    fences: u32,
    /// By frame and slot.
    written: Vec<Vec<Written>>,
    /// For pieces of assembly, the number of the latest fence before one of their results was read.
    read: HashMap<SiteId, u32>,
    /// The assembly whose product is being executed.
    product: Option<SiteId>,
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

    /// A product of a piece of assembly begins.
    pub(crate) fn begin(&mut self, assembly: SiteId) {
        self.product = Some(assembly);
    }

    /// Whether a result of a piece of assembly has been read, other than by a product, since the latest fence.
    pub(crate) fn is_read_unfenced(&self, assembly: SiteId) -> bool {
        self.read.get(&assembly) == Some(&self.fences)
    }

    fn mark(&mut self, frame: usize, slot: Slot, written: Written) {
        if self.written.len() <= frame {
            self.written.resize(frame + 1, Vec::new());
        }
        let slots = &mut self.written[frame];
        if slots.len() <= slot as usize {
            slots.resize(slot as usize + 1, Written::default());
        }
        slots[slot as usize] = written;
    }

    fn of(&self, frame: usize, slot: Slot) -> Written {
        let slots = self.written.get(frame);
        slots
            .and_then(|slots| slots.get(slot as usize))
            .copied()
            .unwrap_or_default()
    }

    /// Whether a slot has been written, other than by a product, since the latest fence.
    pub(crate) fn is_unfenced(&self, frame: usize, slot: Slot) -> bool {
        self.of(frame, slot).after == self.fences
    }

    /// A slot gets the value of another.
    pub(crate) fn copy(&mut self, frame: usize, to: Slot, from: Slot) {
        self.mark(frame, to, self.of(frame, from));
    }

    /// Follows an op before it is executed.
    pub(crate) fn follow(&mut self, frame: usize, op: &Op) {
        let fences = self.fences;
        if self.product.is_none() {
            for_each_read(op, |slot| {
                if let Some(by) = self.of(frame, slot).by {
                    self.read.insert(by, fences);
                }
            });
        }
        let now = Written {
            after: fences,
            by: None,
        };
        let mut write = |slots: &mut dyn Iterator<Item = Slot>| {
            slots.for_each(|slot| self.mark(frame, slot, now));
        };
        match op {
            Op::Copy { dst, a } => self.copy(frame, *dst, *a),
            Op::Map1 { dst, .. }
            | Op::Map2 { dst, .. }
            | Op::Map3 { dst, .. }
            | Op::Special { dst, .. } => self.mark(frame, *dst, now),
            Op::Access(access) if access.kind == AccessKind::Load => {
                write(&mut access.parts.iter().map(|part| part.slot));
            }
            Op::Tiles(tiles) if tiles.kind == AccessKind::Load => {
                write(&mut tiles.registers.iter().copied())
            }
            Op::Call(call) => write(&mut call.results.iter().map(|(here, _)| *here)),
            Op::Collective(meeting) => match &meeting.what {
                Collective::Matrix(matrix) => {
                    let by = self.product.take();
                    let after = BY_PRODUCT;
                    for field in &matrix.d {
                        self.mark(frame, field.slot, Written { after, by });
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

    fn by_threads(after: u32) -> Written {
        Written { after, by: None }
    }

    #[test]
    fn a_register_is_fenced_by_the_next_fence() {
        let mut registers = ProductRegisters::default();
        assert!(!registers.is_fenced());
        registers.fence();
        registers.mark(0, 3, by_threads(1));
        assert!(registers.is_unfenced(0, 3));
        // Another name of the same register.
        registers.copy(0, 4, 3);
        registers.fence();
        assert!(!registers.is_unfenced(0, 3) && !registers.is_unfenced(0, 4));
        // Where a constant is written to a register is up to the assembler.
        registers.copy(0, 5, 9);
        assert!(!registers.is_unfenced(0, 5));
        registers.mark(0, 5, by_threads(BY_PRODUCT));
        registers.copy(0, 6, 5);
        assert!(!registers.is_unfenced(0, 6));
    }

    #[test]
    fn results_are_read_before_the_next_fence() {
        let mut registers = ProductRegisters::default();
        registers.fence();
        let result = Written {
            after: BY_PRODUCT,
            by: Some(7),
        };
        registers.mark(0, 3, result);
        registers.copy(0, 4, 3);
        assert!(!registers.is_read_unfenced(7));
        let f: fn(&mut [u64], &[u64]) = |to, from| to.copy_from_slice(from);
        let (dst, a) = (5, 4);
        registers.follow(0, &Op::Map1 { f, dst, a });
        assert!(registers.is_read_unfenced(7));
        registers.fence();
        assert!(!registers.is_read_unfenced(7));
    }
}
