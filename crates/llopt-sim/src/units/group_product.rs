//! Operands of matrix products in shared memory, and the groups in which products of warp groups complete (PTX ISA,
//! "Asynchronous Warpgroup Level Matrix Instructions").
//!
//! A *warp group* is four warps; each computes 16 of the 64 rows of D, from its rows of A and all of B. So each warp can
//! be executed by itself, as a product of 16 rows.
//!
//! # Matrix descriptors
//!
//! | bits | field |
//! |---|---|
//! | 0-13 | address, over 16 |
//! | 16-29 | leading dimension byte offset (LBO), over 16 |
//! | 32-45 | stride dimension byte offset (SBO), over 16 |
//! | 49-51 | base offset: how far the swizzle's pattern is shifted, in 128 bytes |
//! | 62-63 | swizzle: 0 none, 1, 2, 3 over 128, 64, 32 bytes |
//!
//! Let S be the swizzle's bytes, `x` the row of A or column of B, and `k` the depth, as a byte for element (x, k).
//!
//! - *k contiguous*, swizzled: `x % 8 * S + x / 8 * SBO + k`.
//! - *k contiguous*, not swizzled: `x % 8 * 16 + x / 8 * SBO + k / 16 * LBO + k % 16`.
//! - *x contiguous*, swizzled (with `x` as bytes and `k` as a number): `x % S + x / S * LBO + k % 8 * S + k / 8 * SBO`.
//! - *x contiguous*, not swizzled: `x % 16 + x / 16 * SBO + k % 8 * 16 + k / 8 * LBO`.
//!
//! The swizzle changes bits 4 and up of the address, address and offset together, by exclusive or with one, two or three
//! bits from bit 7 on.
//!
//! # Order
//!
//! Products read shared memory through the async proxy, as the copy engine does, and the machine treats them like its
//! copies: data that threads have written needs a proxy fence, and memory may be written again only after
//! `wgmma.wait_group`. Early reads of result registers are reported by [`early_read`](super::early_read).

use crate::machine::block::{Block, Executed, Stop};
use crate::machine::bytecode::{AccessKind, SharedOperand, SiteId, Slot};
use crate::machine::report::FindingKind;
use crate::machine::row::mask as low_bits;
use crate::machine::warp::{Warp, lanes};
use crate::memory::clocks::Kind;
use crate::units::matrix::Field;

/// The fields of a matrix descriptor.
struct Layout {
    start: u64,
    leading: u64,
    stride: u64,
    /// Bytes over which rows are swizzled; 0 for none.
    swizzle: u64,
}

impl Layout {
    fn decode(descriptor: u64) -> Result<Self, String> {
        let field = |from: u32| (descriptor >> from & 0x3fff) << 4;
        if descriptor >> 49 & 7 != 0 {
            return Err("the machine knows no base offset of a matrix descriptor".to_owned());
        }
        Ok(Self {
            start: field(0),
            leading: field(16),
            stride: field(32),
            swizzle: [0, 128, 64, 32][(descriptor >> 62) as usize],
        })
    }

    /// The address of element (x, k), of that many bytes.
    fn address(&self, x: u64, k: u64, bytes: u64, k_contiguous: bool) -> u64 {
        let (span, leading, stride) = (self.swizzle, self.leading, self.stride);
        let offset = match (k_contiguous, span) {
            (true, 0) => {
                let k = k * bytes;
                x % 8 * 16 + x / 8 * stride + k / 16 * leading + k % 16
            }
            (true, span) => x % 8 * span + x / 8 * stride + k * bytes,
            (false, 0) => {
                let x = x * bytes;
                x % 16 + x / 16 * stride + k % 8 * 16 + k / 8 * leading
            }
            (false, span) => {
                let x = x * bytes;
                x % span + x / span * leading + k % 8 * span + k / 8 * stride
            }
        };
        let at = self.start + offset;
        let mask = (span / 16).saturating_sub(1);
        at ^ (at >> 7 & mask) << 4
    }
}

impl<const W: usize> Block<'_, W> {
    /// Fetches an operand of a product from shared memory into the registers that the product reads.
    pub(crate) fn fetch_operand(
        &mut self,
        warp: &mut Warp<W>,
        frame: usize,
        operand: &SharedOperand,
        mask: u64,
    ) -> Executed<()> {
        let first = mask.trailing_zeros() as usize % W;
        let descriptor = warp.frames[frame].rows[operand.descriptor as usize][first];
        let layout = Layout::decode(descriptor).map_err(|what| {
            let text = &self.program.sites[operand.site as usize].text;
            Stop::Fatal(format!("{what}: {text}"))
        })?;
        self.sequence = self.sequence.wrapping_add(1);
        self.clocks.begin_copy(warp.index);
        self.issuer = (warp.index, first);
        let engine = self.clocks.engine();
        let bits = operand.element.bits();
        let bytes = bits / 8;
        let rows = match operand.of_warp_group {
            true => 16 * (warp.index % self.warps_per_block % 4) as u64,
            false => 0,
        };
        for (number, &Field { slot, shift, .. }) in operand.fields.iter().enumerate() {
            for lane in lanes(mask) {
                let (_, x, k) = operand.deal.place(lane, number);
                if x >= operand.outer {
                    continue;
                }
                let at = layout.address(
                    rows + x as u64,
                    k as u64,
                    bytes.into(),
                    operand.k_contiguous,
                );
                let at = self.shared_place(warp.index, at);
                let mut place = [0; W];
                place[lane] = at;
                let inside = self.shared_bounds(
                    warp.index,
                    &place,
                    1 << lane,
                    bytes,
                    AccessKind::Load,
                    operand.site,
                );
                if inside == 0 {
                    continue;
                }
                let (kind, at) = (Kind::ProductRead, at as usize);
                let value = self.shared_read_as(kind, engine, 0, at, bytes as usize, operand.site);
                let target = &mut warp.frames[frame].rows[slot as usize][lane];
                *target = *target & !(low_bits(bits) << shift) | value << shift;
            }
        }
        let tick = self.clocks.tick(engine);
        warp.products.open(tick, operand.site);
        Ok(())
    }

    /// Reports a product that is issued without a `wgmma.fence` that orders the registers it reads and writes.
    pub(crate) fn check_product_fence(
        &mut self,
        warp: &Warp<W>,
        frame: usize,
        registers: &[Slot],
        (mask, assembly, site): (u64, SiteId, SiteId),
    ) {
        let fences = &warp.product_registers;
        let message = if !fences.is_fenced() {
            "a product of a warp group without wgmma.fence before it"
        } else if registers
            .iter()
            .any(|&slot| fences.is_unfenced(frame, slot))
        {
            "a product of a warp group reads a register that was written after the latest wgmma.fence"
        } else if fences.is_read_unfenced(assembly) {
            "a product of a warp group writes registers that were read after the latest wgmma.fence"
        } else {
            return;
        };
        let (kind, lane) = (
            FindingKind::MissingProductFence,
            mask.trailing_zeros() as usize % W,
        );
        self.findings
            .add(self.program, kind, warp.index, lane, None, site, message);
    }
}
