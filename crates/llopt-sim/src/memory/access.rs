//! Loads, stores and atomics of a warp: addresses, bounds, the sanitizer's checks, traffic, data.
//!
//! A buffer access on AMD obeys the bounds rule of raw buffers: if the last byte of an element lies beyond the
//! resource's size, a load gives zero and a store does nothing. Offsets are unsigned.
//!
//! An instruction of LLVM may be wider than one of the hardware. It is counted as that many instructions of the
//! widest power of two, at most 16 bytes, that divides its size and its alignment. A buffer access begins at any word:
//! only its size counts.

use crate::machine::block::Block;
use crate::machine::bytecode::{
    Access, AccessKind, Address, Atomic, AtomicOp, Part, SiteId, Space,
};
use crate::machine::report::FindingKind;
use crate::machine::row::{Real, RealOp, mask as low_bits, sext};
use crate::machine::warp::{Row, Warp, lanes};
use crate::memory::banks::{self, Grouping};
use crate::memory::clocks::{Kind, Stamp};
use crate::memory::global::{
    Fault, LOCAL_WINDOW, SHARED_WINDOW, SHORT_CONSTANTS, read_bytes, region_base, write_bytes,
};
use crate::memory::watch::verb;

/// The address of each lane, and the lanes that access memory at all.
struct Addresses<const W: usize> {
    row: Row<W>,
    mask: u64,
}

impl<const W: usize> Block<'_, W> {
    /// Executes a load or store.
    pub(crate) fn access(&mut self, warp: &mut Warp<W>, frame: usize, access: &Access, mask: u64) {
        self.sequence = self.sequence.wrapping_add(1);
        let addresses = self.addresses(warp, frame, &access.address, &access.parts, mask);
        for (space, lanes_there, row) in split(access.space, &addresses) {
            match space {
                Space::Shared => {
                    let row = self.shared_places(warp.index, &row);
                    self.shared_access(warp, frame, access, &row, lanes_there);
                }
                Space::Local => self.local_access(warp, frame, access, &row, lanes_there),
                _ => self.global_access(warp, frame, access, &row, lanes_there),
            }
        }
        if access.kind == AccessKind::Load {
            // Lanes whose buffer access is out of range read zero.
            let outside = mask & !addresses.mask;
            if outside != 0 {
                let rows = &mut warp.frames[frame].rows;
                for part in &access.parts {
                    for lane in lanes(outside) {
                        rows[part.slot as usize][lane] = 0;
                    }
                }
            }
        }
    }

    fn addresses(
        &self,
        warp: &Warp<W>,
        frame: usize,
        address: &Address,
        parts: &[Part],
        mask: u64,
    ) -> Addresses<W> {
        let rows = &warp.frames[frame].rows;
        match *address {
            Address::Flat { base, offset } => {
                let mut row = rows[base as usize];
                if offset != 0 {
                    for value in &mut row {
                        *value = value.wrapping_add(offset as u64);
                    }
                }
                Addresses { row, mask }
            }
            Address::Buffer {
                low,
                high,
                offset,
                scalar_offset,
            } => {
                let bytes = parts
                    .iter()
                    .map(|p| u64::from(p.offset + p.bytes))
                    .max()
                    .unwrap_or(0);
                let mut row = [0; W];
                let mut inside = 0;
                for lane in lanes(mask) {
                    let base = rows[low as usize][lane] & ((1 << 48) - 1);
                    let records = rows[high as usize][lane] & 0xffff_ffff;
                    let at = rows[offset as usize][lane] & 0xffff_ffff;
                    let scalar = rows[scalar_offset as usize][lane] & 0xffff_ffff;
                    // The scalar offset is not part of the range check.
                    if at + bytes <= records {
                        inside |= 1 << lane;
                        row[lane] = base + at + scalar;
                    }
                }
                Addresses { row, mask: inside }
            }
        }
    }

    pub(crate) fn find(
        &mut self,
        kind: FindingKind,
        warp: usize,
        lane: usize,
        address: u64,
        site: SiteId,
        message: impl FnOnce() -> String,
    ) {
        if !self.findings.again(kind, site) {
            let message = message();
            self.findings.add(
                self.program,
                kind,
                warp,
                lane,
                Some(address),
                site,
                &message,
            );
        }
    }

    /// Reports misaligned lanes.
    pub(crate) fn check_alignment(
        &mut self,
        warp: usize,
        addresses: &Row<W>,
        mask: u64,
        align: u32,
        site: SiteId,
    ) {
        if align <= 1 || !self.grid.sanitize {
            return;
        }
        for lane in lanes(mask) {
            let address = addresses[lane];
            if !address.is_multiple_of(u64::from(align)) {
                self.find(FindingKind::Misaligned, warp, lane, address, site, || {
                    format!("an access that needs alignment {align} is misaligned")
                });
            }
        }
    }

    /// Whether the bytes of global memory may be accessed now.
    pub(crate) fn check_global(
        &self,
        address: u64,
        bytes: u32,
        kind: AccessKind,
    ) -> Result<(), Fault> {
        match self.has_waited {
            true => self.global.check(address, bytes, kind),
            false => Err(Fault::Early),
        }
    }

    fn global_access(
        &mut self,
        warp: &mut Warp<W>,
        frame: usize,
        access: &Access,
        addresses: &Row<W>,
        mask: u64,
    ) {
        self.check_alignment(warp.index, addresses, mask, access.align, access.site);
        let allowed = self.global_bounds(
            warp.index,
            addresses,
            mask,
            access.bytes,
            access.kind,
            access.site,
        );
        let align = match access.address {
            Address::Buffer { .. } => 0,
            _ => access.align,
        };
        self.count_global(
            addresses,
            allowed,
            access.width,
            align,
            access.kind,
            access.site,
        );
        let (global, watched) = (self.global, self.watch.is_some());
        let (index, kind) = (warp.index, access.recorded());
        let rows = &mut warp.frames[frame].rows;
        for part in &access.parts {
            let row = &mut rows[part.slot as usize];
            if access.kind == AccessKind::Store {
                for lane in lanes(allowed) {
                    let at = addresses[lane] + u64::from(part.offset);
                    // Lane by lane, so that a lane reads what an earlier one has just stored.
                    if watched {
                        let new = Some(row[lane]);
                        self.watch_bytes(index, lane, kind, at, part.bytes, new, access.site);
                    }
                    global.write(at, part.bytes, row[lane]);
                }
            } else {
                for lane in lanes(allowed) {
                    let at = addresses[lane] + u64::from(part.offset);
                    if watched {
                        self.watch_bytes(index, lane, kind, at, part.bytes, None, access.site);
                    }
                    row[lane] = global.read(at, part.bytes);
                }
                for lane in lanes(mask & !allowed) {
                    row[lane] = 0;
                }
            }
        }
        if access.kind == AccessKind::Load && self.grid.sanitize {
            for lane in lanes(allowed) {
                let initialized = access.parts.iter().all(|part| {
                    let at = addresses[lane] + u64::from(part.offset);
                    global.is_initialized(at, part.bytes)
                });
                if !initialized {
                    self.find(
                        FindingKind::UninitializedRead,
                        warp.index,
                        lane,
                        addresses[lane],
                        access.site,
                        || "a read of global memory that nothing has written".to_owned(),
                    );
                }
            }
        }
    }

    /// Counts sectors of a global access.
    pub(crate) fn count_global(
        &mut self,
        addresses: &Row<W>,
        mask: u64,
        bytes: u32,
        align: u32,
        kind: AccessKind,
        site: SiteId,
    ) {
        for (offset, width) in instructions(mask, bytes, align) {
            let sectors = banks::sectors(addresses, mask, offset, u64::from(width));
            self.counters.site(site).global.count(kind, sectors);
        }
    }

    /// Counts wavefronts of a shared access.
    pub(crate) fn count_shared(
        &mut self,
        addresses: &Row<W>,
        mask: u64,
        bytes: u32,
        align: u32,
        kind: AccessKind,
        site: SiteId,
    ) {
        for (offset, width) in instructions(mask, bytes, align) {
            let at = addresses.map(|address| address.wrapping_add(offset));
            let (wavefronts, bound) =
                banks::wavefronts(self.grid.target, &at, mask, width, kind, Grouping::ByWidth);
            self.counters
                .site(site)
                .shared
                .count(kind, wavefronts, bound);
        }
    }

    fn shared_access(
        &mut self,
        warp: &mut Warp<W>,
        frame: usize,
        access: &Access,
        addresses: &Row<W>,
        mask: u64,
    ) {
        self.check_alignment(warp.index, addresses, mask, access.align, access.site);
        let allowed = self.shared_bounds(
            warp.index,
            addresses,
            mask,
            access.bytes,
            access.kind,
            access.site,
        );
        self.count_shared(
            addresses,
            allowed,
            access.width,
            access.align,
            access.kind,
            access.site,
        );
        for part in &access.parts {
            let length = part.bytes as usize;
            for lane in lanes(allowed) {
                let at = (addresses[lane] + u64::from(part.offset)) as usize;
                if access.kind == AccessKind::Store {
                    let value = warp.frames[frame].rows[part.slot as usize][lane];
                    self.shared_write(
                        warp.index,
                        lane,
                        at,
                        length,
                        value,
                        access.synchronizing,
                        access.site,
                    );
                } else {
                    let value = self.shared_read(
                        warp.index,
                        lane,
                        at,
                        length,
                        access.synchronizing,
                        access.site,
                    );
                    warp.frames[frame].rows[part.slot as usize][lane] = value;
                }
            }
            if access.kind == AccessKind::Load {
                let row = &mut warp.frames[frame].rows[part.slot as usize];
                for lane in lanes(mask & !allowed) {
                    row[lane] = 0;
                }
            }
        }
    }

    /// Lanes whose access to global memory is allowed; the others are reported.
    fn global_bounds(
        &mut self,
        warp: usize,
        addresses: &Row<W>,
        mask: u64,
        bytes: u32,
        kind: AccessKind,
        site: SiteId,
    ) -> u64 {
        let mut allowed = mask;
        for lane in lanes(mask) {
            let address = addresses[lane];
            if let Err(fault) = self.check_global(address, bytes, kind) {
                allowed &= !(1 << lane);
                self.fault(warp, lane, address, bytes, kind, fault, site);
            }
        }
        allowed
    }

    /// Lanes whose access stays inside the block's shared memory; the others are reported.
    pub(crate) fn shared_bounds(
        &mut self,
        warp: usize,
        addresses: &Row<W>,
        mask: u64,
        bytes: u32,
        kind: AccessKind,
        site: SiteId,
    ) -> u64 {
        let size = self.grid.shared_bytes;
        let mut allowed = mask;
        for lane in lanes(mask) {
            let address = addresses[lane];
            if !self.is_in_one_block(address, bytes) {
                allowed &= !(1 << lane);
                let verb = verb(kind);
                self.find(FindingKind::OutOfBounds, warp, lane, address, site, || {
                    format!("a {verb} of {bytes} bytes at {address:#x} is outside of the block's {size} bytes of shared memory")
                });
            }
        }
        allowed
    }

    pub(crate) fn stamp(&self, warp: usize, lane: usize, kind: Kind, site: SiteId) -> Stamp {
        Stamp {
            warp: warp as u16,
            lane: lane as u8,
            kind,
            tick: self.clocks.tick(warp),
            site,
            sequence: self.sequence,
        }
    }

    /// Reads up to 8 bytes of shared memory in bounds, and reports it to the sanitizer.
    pub(crate) fn shared_read(
        &mut self,
        warp: usize,
        lane: usize,
        at: usize,
        length: usize,
        atomic: bool,
        site: SiteId,
    ) -> u64 {
        let kind = if atomic { Kind::AtomicRead } else { Kind::Read };
        self.shared_read_as(kind, warp, lane, at, length, site)
    }

    /// The same for any kind of read.
    pub(crate) fn shared_read_as(
        &mut self,
        kind: Kind,
        warp: usize,
        lane: usize,
        at: usize,
        length: usize,
        site: SiteId,
    ) -> u64 {
        let stamp = self.stamp(warp, lane, kind, site);
        let mut problem = None;
        if let Some(shadow) = &mut self.shadow {
            for byte in at..at + length {
                problem = problem.or(shadow.read(byte, stamp, &self.clocks).map(|p| (p, byte)));
            }
        }
        if let Some((problem, byte)) = problem {
            self.report_problem(problem, AccessKind::Load, warp, lane, byte, site);
        }
        read_bytes(&self.shared[at..at + length])
    }

    /// Writes up to 8 bytes of shared memory in bounds, and reports it to the sanitizer.
    #[expect(clippy::too_many_arguments, reason = "who writes what where")]
    pub(crate) fn shared_write(
        &mut self,
        warp: usize,
        lane: usize,
        at: usize,
        length: usize,
        value: u64,
        atomic: bool,
        site: SiteId,
    ) {
        let kind = if atomic {
            Kind::AtomicWrite
        } else {
            Kind::Write
        };
        self.shared_write_as(kind, warp, lane, at, length, value, site);
    }

    /// The same for any kind of write.
    #[expect(clippy::too_many_arguments, reason = "who writes what where, and how")]
    pub(crate) fn shared_write_as(
        &mut self,
        kind: Kind,
        warp: usize,
        lane: usize,
        at: usize,
        length: usize,
        value: u64,
        site: SiteId,
    ) {
        let stamp = self.stamp(warp, lane, kind, site);
        let bytes = value.to_le_bytes();
        let mut problem = None;
        if let Some(shadow) = &mut self.shadow {
            for (i, &new) in bytes[..length].iter().enumerate() {
                let changes = self.shared[at + i] != new;
                problem = problem.or(shadow
                    .write(at + i, stamp, changes, &self.clocks)
                    .map(|p| (p, at + i)));
            }
        }
        if let Some((problem, byte)) = problem {
            self.report_problem(problem, AccessKind::Store, warp, lane, byte, site);
        }
        write_bytes(&mut self.shared[at..at + length], value);
    }

    fn local_access(
        &mut self,
        warp: &mut Warp<W>,
        frame: usize,
        access: &Access,
        addresses: &Row<W>,
        mask: u64,
    ) {
        self.check_alignment(warp.index, addresses, mask, access.align, access.site);
        let stride = warp.local_stride;
        for lane in lanes(mask) {
            let address = addresses[lane];
            let inside = address
                .checked_add(u64::from(access.bytes))
                .is_some_and(|end| end <= stride);
            if !inside {
                self.find(
                    FindingKind::OutOfBounds,
                    warp.index,
                    lane,
                    address,
                    access.site,
                    || {
                        format!(
                            "an access of {} bytes at {address:#x} is outside of private memory",
                            access.bytes
                        )
                    },
                );
            }
            let start = lane * stride as usize + address as usize;
            for part in &access.parts {
                let range = start.wrapping_add(part.offset as usize)
                    ..start.wrapping_add((part.offset + part.bytes) as usize);
                let value = &mut warp.frames[frame].rows[part.slot as usize][lane];
                if !inside {
                    if access.kind == AccessKind::Load {
                        *value = 0;
                    }
                } else if access.kind == AccessKind::Store {
                    write_bytes(&mut warp.local[range.clone()], *value);
                    warp.local_written[range].fill(true);
                } else {
                    *value = read_bytes(&warp.local[range.clone()]);
                    if self.grid.sanitize && !warp.local_written[range].iter().all(|&w| w) {
                        self.find(
                            FindingKind::UninitializedRead,
                            warp.index,
                            lane,
                            address,
                            access.site,
                            || "a read of private memory that nothing has written".to_owned(),
                        );
                    }
                }
            }
        }
    }

    /// Executes an atomic, lane by lane in order.
    pub(crate) fn atomic(&mut self, warp: &mut Warp<W>, frame: usize, atomic: &Atomic, mask: u64) {
        self.sequence = self.sequence.wrapping_add(1);
        let element = atomic.bits / 8;
        let bytes = element * atomic.value.len() as u32;
        let part = Part {
            slot: 0,
            offset: 0,
            bytes,
        };
        let addresses = self.addresses(warp, frame, &atomic.address, &[part], mask);
        for &old in &atomic.old {
            for lane in lanes(mask & !addresses.mask) {
                warp.frames[frame].rows[old as usize][lane] = 0;
            }
        }
        for (space, mask, row) in split(atomic.space, &addresses) {
            let row = match space {
                Space::Shared => self.shared_places(warp.index, &row),
                _ => row,
            };
            self.check_alignment(warp.index, &row, mask, bytes, atomic.site);
            let (index, store, site) = (warp.index, AccessKind::Store, atomic.site);
            let allowed = if space == Space::Shared {
                let allowed = self.shared_bounds(index, &row, mask, bytes, store, site);
                self.count_shared(&row, allowed, bytes, bytes, store, site);
                allowed
            } else {
                let allowed = self.global_bounds(index, &row, mask, bytes, store, site);
                self.count_global(&row, allowed, bytes, bytes, store, site);
                allowed
            };
            for lane in lanes(allowed) {
                for (i, &value) in atomic.value.iter().enumerate() {
                    let at = row[lane] + u64::from(element) * i as u64;
                    let rows = &warp.frames[frame].rows;
                    let value = rows[value as usize][lane];
                    let compare = atomic.compare.get(i).map(|&c| rows[c as usize][lane]);
                    let update = |old| combine(atomic.op, atomic.bits, old, value, compare);
                    let old = if space == Space::Shared {
                        self.update_shared((index, lane), at, atomic, update)
                    } else {
                        self.update_global((index, lane), at, atomic, update)
                    };
                    if let Some(&slot) = atomic.old.get(i) {
                        warp.frames[frame].rows[slot as usize][lane] = old;
                    }
                }
            }
        }
    }

    /// Updates a number of shared memory; returns what was there.
    fn update_shared(
        &mut self,
        (warp, lane): (usize, usize),
        at: u64,
        atomic: &Atomic,
        update: impl FnOnce(u64) -> u64,
    ) -> u64 {
        let (at, bytes, site) = (at as usize, (atomic.bits / 8) as usize, atomic.site);
        let old = self.shared_read(warp, lane, at, bytes, true, site);
        let new = update(old);
        if new != old || atomic.op == AtomicOp::Exchange {
            self.shared_write(warp, lane, at, bytes, new, true, site);
        }
        old
    }

    /// Updates a number of global memory; returns what was there.
    fn update_global(
        &mut self,
        (warp, lane): (usize, usize),
        at: u64,
        atomic: &Atomic,
        update: impl FnOnce(u64) -> u64,
    ) -> u64 {
        let (bytes, kind) = (atomic.bits / 8, Kind::AtomicWrite);
        let old = self.global.read(at, bytes);
        let new = update(old);
        self.watch_bytes(warp, lane, kind, at, bytes, Some(new), atomic.site);
        self.global.write(at, bytes, new);
        old
    }
}

/// The hardware's instructions for an access: for each, its first byte within the access and the bytes that it moves
/// per lane. None for an access of no lane.
fn instructions(mask: u64, bytes: u32, align: u32) -> impl Iterator<Item = (u64, u32)> {
    let (count, width) = match mask {
        0 => (0, 1),
        _ => {
            let width = instruction_width(bytes, align);
            (bytes / width, width)
        }
    };
    (0..count).map(move |index| (u64::from(index * width), width))
}

/// Bytes that the hardware moves per lane in one instruction.
fn instruction_width(bytes: u32, align: u32) -> u32 {
    let align = if align == 0 { bytes } else { align };
    let limit = (1 << bytes.trailing_zeros()).min(16);
    let aligned = 1u32 << align.trailing_zeros().min(4);
    limit.min(aligned).max(1)
}

/// Sorts the lanes of an access by the space they address; the window of a generic address determines its space.
fn split<const W: usize>(space: Space, addresses: &Addresses<W>) -> Vec<(Space, u64, Row<W>)> {
    if addresses.mask == 0 {
        return Vec::new();
    }
    if space == Space::Constant {
        let row = addresses.row.map(|a| {
            if a < SHORT_CONSTANTS {
                region_base(0) + a
            } else {
                a
            }
        });
        return vec![(space, addresses.mask, row)];
    }
    if space != Space::Generic {
        return vec![(space, addresses.mask, addresses.row)];
    }
    let (mut shared, mut local) = (0, 0);
    for lane in lanes(addresses.mask) {
        if addresses.row[lane] & SHARED_WINDOW != 0 {
            shared |= 1 << lane;
        } else if addresses.row[lane] & LOCAL_WINDOW != 0 {
            local |= 1 << lane;
        }
    }
    let offsets = addresses.row.map(|a| a & !(SHARED_WINDOW | LOCAL_WINDOW));
    [
        (
            Space::Global,
            addresses.mask & !shared & !local,
            addresses.row,
        ),
        (Space::Shared, shared, offsets),
        (Space::Local, local, offsets),
    ]
    .into_iter()
    .filter(|(_, mask, _)| *mask != 0)
    .collect()
}

/// The bit of halves that distinguishes a quiet NaN from a signalling one: the first of the mantissa.
fn quiet_bit(of: Real) -> u64 {
    match of {
        Real::BF16 => 1 << 6,
        _ => 1 << 9,
    }
}

/// The new value of an atomic.
pub(crate) fn combine(op: AtomicOp, bits: u32, old: u64, value: u64, compare: Option<u64>) -> u64 {
    let real = |real: Real, op: RealOp| {
        let mut result = [0];
        crate::machine::row::real_binary(op, real)(&mut result, &[old], &[value]);
        result[0]
    };
    let signed = |x| sext(x, bits);
    let result = match op {
        AtomicOp::Exchange => value,
        AtomicOp::Add => old.wrapping_add(value),
        AtomicOp::Sub => old.wrapping_sub(value),
        AtomicOp::And => old & value,
        AtomicOp::Nand => !(old & value),
        AtomicOp::Or => old | value,
        AtomicOp::Xor => old ^ value,
        AtomicOp::SMax => {
            if signed(old) >= signed(value) {
                old
            } else {
                value
            }
        }
        AtomicOp::SMin => {
            if signed(old) <= signed(value) {
                old
            } else {
                value
            }
        }
        AtomicOp::UMax => old.max(value),
        AtomicOp::UMin => old.min(value),
        AtomicOp::IncrementWrap => {
            if old >= value {
                0
            } else {
                old + 1
            }
        }
        AtomicOp::DecrementWrap => {
            if old == 0 || old > value {
                value
            } else {
                old - 1
            }
        }
        AtomicOp::SubConditional => {
            if old >= value {
                old - value
            } else {
                old
            }
        }
        AtomicOp::SubSaturate => old.saturating_sub(value),
        AtomicOp::FAddTogether(r) if r.decode(old).is_nan() && value == 1 << (bits - 1) => {
            old | quiet_bit(r)
        }
        AtomicOp::FAdd(r) | AtomicOp::FAddTogether(r) => real(r, RealOp::Add),
        AtomicOp::FSub(r) => real(r, RealOp::Sub),
        AtomicOp::FMax(r) => real(r, RealOp::MaxNum),
        AtomicOp::FMin(r) => real(r, RealOp::MinNum),
        AtomicOp::CompareExchange => {
            if compare == Some(old) {
                value
            } else {
                old
            }
        }
    };
    result & low_bits(bits)
}
