//! Global memory: buffers in one 64-bit address space, shared by all threads of the simulation.
//!
//! Every buffer is a *region* that begins at a multiple of 2^36 (64 GiB), so that a shift of the address gives the
//! region, and an access beyond a buffer's end, or before its beginning, lies in no buffer. Shared and private memory
//! have their own addresses, small offsets, and appear in the generic address space through two windows above all
//! regions. A buffer may also be *mapped* at an address that the host chose, so that pointers which the host has
//! stored in memory mean the same to the kernel.
//!
//! Blocks of a grid run on several threads of the host at once and may touch the same bytes, as on the GPU. Accesses
//! are therefore relaxed atomics of the host: a race of the kernel is a race of values, never undefined behaviour.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use crate::machine::bytecode::AccessKind;

/// Log2 of the distance between regions.
const REGION_BITS: u32 = 36;
/// Generic addresses of shared memory: this bit plus the offset.
pub(crate) const SHARED_WINDOW: u64 = 1 << 48;
/// Generic addresses of private memory: this bit plus the offset.
pub(crate) const LOCAL_WINDOW: u64 = 1 << 49;

/// Addresses of constant memory below this bound are offsets into the first region, which holds all constants where
/// pointers to them have 32 bits.
pub(crate) const SHORT_CONSTANTS: u64 = 1 << 32;

/// First address of region `index`.
pub(crate) const fn region_base(index: usize) -> u64 {
    (index as u64 + 1) << REGION_BITS
}

/// Region that an address would belong to.
pub(crate) const fn region_of(address: u64) -> Option<usize> {
    match (address >> REGION_BITS) as usize {
        0 => None,
        number => Some(number - 1),
    }
}

/// Bytes with interior mutability, in words so that they are aligned.
struct Region {
    words: Box<[AtomicU64]>,
    length: u64,
    /// The distance of the first byte from the start of the region.
    skew: u64,
    writable: bool,
    /// One byte per byte of data, 1 once written; absent when everything is initialised.
    written: Option<Box<[AtomicU8]>>,
}

/// All of global memory.
pub(crate) struct GlobalMemory {
    regions: Vec<Region>,
    /// Regions at addresses of the host's choice, by address.
    mapped: Vec<(u64, Region)>,
    /// Atomics so far.
    time: AtomicU32,
}

/// Why an access to memory failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// No buffer contains all of these bytes; the offset in the nearest one, and its length.
    OutOfBounds(Option<(u64, u64)>),
    /// A store to constant memory.
    ReadOnly,
    /// An access before the kernel before, whose memory it may be, has ended.
    Early,
}

impl GlobalMemory {
    pub(crate) fn new() -> Self {
        Self {
            regions: Vec::new(),
            mapped: Vec::new(),
            time: AtomicU32::new(0),
        }
    }

    /// How many atomics there have been.
    pub(crate) fn time(&self) -> u32 {
        self.time.load(Ordering::Relaxed)
    }

    /// The number of an atomic.
    pub(crate) fn next_time(&self) -> u32 {
        self.time.fetch_add(1, Ordering::Relaxed)
    }

    /// As [`GlobalMemory::add`], for a buffer that a kernel is given. The distances between such buffers are irregular, so
    /// that an offset that is too large does not lead from one to another.
    pub(crate) fn add_argument(&mut self, bytes: &[u8], initialized: bool) -> u64 {
        let base = self.add(bytes, true, initialized);
        let number = self.regions.len() as u64;
        // Multiples of a page below a GiB.
        let skew = (number.wrapping_mul(0x9e37_79b9) % 0x3_ffff) << 12;
        if let Some(region) = self.regions.last_mut() {
            region.skew = skew;
        }
        base + skew
    }

    /// Adds a region with these contents; returns its address.
    pub(crate) fn add(&mut self, bytes: &[u8], writable: bool, initialized: bool) -> u64 {
        self.regions.push(Region::new(bytes, writable, initialized));
        region_base(self.regions.len() - 1)
    }

    /// Adds a writable region with these contents at `address`; rejects one that shares bytes with another.
    pub(crate) fn map(&mut self, address: u64, bytes: &[u8]) -> Result<(), String> {
        let end = address.checked_add(bytes.len() as u64);
        let Some(end) = end.filter(|&end| address != 0 && end <= SHARED_WINDOW) else {
            return Err(format!(
                "memory of {} bytes cannot be mapped at {address:#x}",
                bytes.len()
            ));
        };
        let index = self.mapped.partition_point(|(base, _)| *base < address);
        let below = index.checked_sub(1).map(|below| &self.mapped[below]);
        let overlaps_below = below.is_some_and(|(base, region)| base + region.length > address);
        let above = self.mapped.get(index);
        if overlaps_below || above.is_some_and(|(base, _)| *base < end) {
            return Err(format!("two mappings overlap at {address:#x}"));
        }
        self.mapped
            .insert(index, (address, Region::new(bytes, true, true)));
        Ok(())
    }

    /// A mapping in the address range of numbered regions, if there is one.
    pub(crate) fn misplaced_mapping(&self) -> Option<u64> {
        let numbered = region_base(0)..region_base(self.regions.len());
        let overlaps = |(base, region): &&(u64, Region)| {
            *base < numbered.end && base + region.length > numbered.start
        };
        self.mapped.iter().find(overlaps).map(|(base, _)| *base)
    }

    /// The contents of the region at `address`.
    pub(crate) fn contents(&self, address: u64) -> Vec<u8> {
        let Some((region, _)) = self.find(address) else {
            return Vec::new();
        };
        let mut bytes: Vec<u8> = region
            .words
            .iter()
            .flat_map(|w| w.load(Ordering::Relaxed).to_le_bytes())
            .collect();
        bytes.truncate(region.length as usize);
        bytes
    }

    /// The region that an address belongs to, and its offset there: for a mapped region also one beyond its end.
    #[inline]
    fn find(&self, address: u64) -> Option<(&Region, u64)> {
        if let Some(region) = region_of(address).and_then(|r| self.regions.get(r)) {
            let offset = address & ((1 << REGION_BITS) - 1);
            return Some((region, offset.checked_sub(region.skew)?));
        }
        let index = self.mapped.partition_point(|(base, _)| *base <= address);
        let (base, region) = self.mapped.get(index.checked_sub(1)?)?;
        Some((region, address - base))
    }

    /// The region and offset of `bytes` bytes at `address`.
    #[inline]
    fn locate(&self, address: u64, bytes: u32) -> Result<(&Region, u64), Fault> {
        let (region, offset) = self.find(address).ok_or(Fault::OutOfBounds(None))?;
        if offset + u64::from(bytes) > region.length {
            return Err(Fault::OutOfBounds(Some((offset, region.length))));
        }
        Ok((region, offset))
    }

    /// Whether an access of `bytes` bytes at `address` stays inside one buffer.
    pub(crate) fn check(&self, address: u64, bytes: u32, kind: AccessKind) -> Result<(), Fault> {
        let (region, _) = self.locate(address, bytes)?;
        if kind == AccessKind::Store && !region.writable {
            return Err(Fault::ReadOnly);
        }
        Ok(())
    }

    /// Reads up to 8 bytes, which must have passed [`Self::check`]; bytes out of bounds read as zero.
    #[inline]
    pub(crate) fn read(&self, address: u64, bytes: u32) -> u64 {
        match self.locate(address, bytes) {
            Ok((region, offset)) => region.read(offset, bytes),
            Err(_) => 0,
        }
    }

    /// Writes up to 8 bytes, which must have passed [`Self::check`]; bytes out of bounds are dropped.
    #[inline]
    pub(crate) fn write(&self, address: u64, bytes: u32, value: u64) {
        if let Ok((region, offset)) = self.locate(address, bytes) {
            region.write(offset, bytes, value);
        }
    }

    /// Whether all of these bytes have been written or were initial contents.
    pub(crate) fn is_initialized(&self, address: u64, bytes: u32) -> bool {
        let Ok((region, offset)) = self.locate(address, bytes) else {
            return true;
        };
        region.written.as_ref().is_none_or(|written| {
            written[offset as usize..(offset + u64::from(bytes)) as usize]
                .iter()
                .all(|flag| flag.load(Ordering::Relaxed) != 0)
        })
    }
}

impl Region {
    fn new(bytes: &[u8], writable: bool, initialized: bool) -> Self {
        let words = bytes
            .chunks(8)
            .map(|chunk| {
                let mut word = [0; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                AtomicU64::new(u64::from_le_bytes(word))
            })
            .collect();
        let written = (!initialized).then(|| bytes.iter().map(|_| AtomicU8::new(0)).collect());
        Self {
            words,
            length: bytes.len() as u64,
            skew: 0,
            writable,
            written,
        }
    }

    /// The bytes from `offset` on as a pointer; the caller has checked the bounds.
    #[inline]
    fn pointer(&self, offset: u64) -> *mut u8 {
        // In bounds: `offset` is below `length`, which the words cover.
        self.words
            .as_ptr()
            .cast::<u8>()
            .cast_mut()
            .wrapping_add(offset as usize)
    }

    #[inline]
    fn read(&self, offset: u64, bytes: u32) -> u64 {
        let p = self.pointer(offset);
        // SAFETY: `locate` checked that `bytes` bytes from `offset` lie inside the words, which are atomics and thus
        // may be accessed through shared references from any thread; each branch checks its alignment.
        unsafe {
            match bytes {
                4 if offset.is_multiple_of(4) => {
                    u64::from(AtomicU32::from_ptr(p.cast()).load(Ordering::Relaxed))
                }
                8 if offset.is_multiple_of(8) => {
                    AtomicU64::from_ptr(p.cast()).load(Ordering::Relaxed)
                }
                2 if offset.is_multiple_of(2) => {
                    u64::from(AtomicU16::from_ptr(p.cast()).load(Ordering::Relaxed))
                }
                _ => (0..bytes as usize).fold(0, |value, i| {
                    let byte = AtomicU8::from_ptr(p.wrapping_add(i)).load(Ordering::Relaxed);
                    value | u64::from(byte) << (8 * i)
                }),
            }
        }
    }

    #[inline]
    fn write(&self, offset: u64, bytes: u32, value: u64) {
        let p = self.pointer(offset);
        // SAFETY: as in `read`.
        unsafe {
            match bytes {
                4 if offset.is_multiple_of(4) => {
                    AtomicU32::from_ptr(p.cast()).store(value as u32, Ordering::Relaxed);
                }
                8 if offset.is_multiple_of(8) => {
                    AtomicU64::from_ptr(p.cast()).store(value, Ordering::Relaxed);
                }
                2 if offset.is_multiple_of(2) => {
                    AtomicU16::from_ptr(p.cast()).store(value as u16, Ordering::Relaxed);
                }
                _ => {
                    for i in 0..bytes as usize {
                        AtomicU8::from_ptr(p.wrapping_add(i))
                            .store((value >> (8 * i)) as u8, Ordering::Relaxed);
                    }
                }
            }
        }
        if let Some(written) = &self.written {
            for flag in &written[offset as usize..(offset + u64::from(bytes)) as usize] {
                flag.store(1, Ordering::Relaxed);
            }
        }
    }
}

/// Little-endian bytes of a slice as a number.
#[inline]
pub(crate) fn read_bytes(bytes: &[u8]) -> u64 {
    match *bytes {
        [a] => u64::from(a),
        [a, b] => u64::from(u16::from_le_bytes([a, b])),
        [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => bytes
            .iter()
            .rev()
            .fold(0, |value, &byte| value << 8 | u64::from(byte)),
    }
}

/// The low bytes of a number into a slice of at most 8.
#[inline]
pub(crate) fn write_bytes(bytes: &mut [u8], value: u64) {
    let length = bytes.len();
    bytes.copy_from_slice(&value.to_le_bytes()[..length]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_stay_inside_their_buffer() {
        let mut memory = GlobalMemory::new();
        let a = memory.add(&[1, 2, 3, 4, 5, 6, 7, 8, 9], true, true);
        let b = memory.add(&[0; 16], true, false);
        assert_eq!(memory.read(a, 4), 0x0403_0201);
        assert_eq!(memory.read(a + 1, 4), 0x0504_0302);
        assert_eq!(memory.read(a + 8, 1), 9);
        assert_eq!(
            memory.check(a + 6, 4, AccessKind::Load),
            Err(Fault::OutOfBounds(Some((6, 9))))
        );
        assert!(
            memory
                .check(b.wrapping_sub(4), 4, AccessKind::Load)
                .is_err()
        );
        memory.write(a + 3, 2, 0xbeef);
        assert_eq!(memory.contents(a), [1, 2, 3, 0xef, 0xbe, 6, 7, 8, 9]);
        assert!(!memory.is_initialized(b, 4));
        memory.write(b, 4, 0);
        assert!(memory.is_initialized(b, 4) && !memory.is_initialized(b, 5));
    }

    #[test]
    fn no_distance_between_arguments_leads_to_another() {
        let mut memory = GlobalMemory::new();
        let buffers: Vec<u64> = (0..8)
            .map(|_| memory.add_argument(&[1; 64], true))
            .collect();
        for (i, &one) in buffers.iter().enumerate() {
            assert_eq!(memory.read(one, 8), 0x0101_0101_0101_0101);
            assert!(memory.check(one - 1, 1, AccessKind::Load).is_err());
            for far in (1..8).map(|n| n << REGION_BITS) {
                assert!(memory.check(one + far, 1, AccessKind::Load).is_err(), "{i}");
            }
        }
    }

    #[test]
    fn memory_is_mapped_where_the_host_has_it() {
        let mut memory = GlobalMemory::new();
        let host = 0x7f12_3456_7890;
        memory.map(host, &[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
        memory.map(host + 8, &[9, 9]).unwrap();
        memory.map(0x4000, &[7]).unwrap();
        assert!(memory.map(host + 7, &[0; 4]).is_err());
        assert!(memory.map(host - 1, &[0; 2]).is_err());
        assert!(memory.map(0, &[0]).is_err() && memory.map(u64::MAX, &[0; 2]).is_err());
        assert_eq!(memory.read(host + 2, 4), 0x0605_0403);
        assert_eq!(memory.read(0x4000, 1), 7);
        // Neighbouring buffers are separate, as on a GPU.
        assert!(memory.check(host + 6, 4, AccessKind::Load).is_err());
        memory.write(host + 8, 2, 0xbeef);
        assert_eq!(memory.contents(host + 8), [0xef, 0xbe]);
        assert_eq!(memory.misplaced_mapping(), None);
        memory.map(region_base(0) + 64, &[0]).unwrap();
        memory.add(&[0], true, true);
        assert_eq!(memory.misplaced_mapping(), Some(region_base(0) + 64));
    }
}
