//! The copy engine: bulk copies of bytes, and of boxes of tensors that a descriptor object describes (PTX ISA, "Bulk
//! copy", "Tensors", "Tensor Swizzling Modes").
//!
//! A copy is performed when it is issued, in the name of the engine, whose clock a thread learns by waiting: on the
//! copy's mbarrier for a copy to shared memory, for the thread's group for a copy from it. A thread that does not
//! wait races with the copy.
//!
//! # Descriptor objects
//!
//! NVIDIA does not say the format of the 128 bytes of a tensor map; programs fill them through
//! `cuTensorMapEncodeTiled` or `tensormap.replace`. The machine has its own format, with the fields that
//! `tensormap.replace` names:
//!
//! | byte | field |
//! |---|---|
//! | 0 | `global_address`, 64 bits |
//! | 8, 9, 10, 11, 12 | `rank` (less one), `elemtype`, `interleave_layout`, `swizzle_mode`, `fill_mode`, 8 bits each |
//! | 16 | `global_stride`, four of 64 bits, in bytes, for all dimensions except the innermost |
//! | 48 | `global_dim`, five of 32 bits |
//! | 68 | `box_dim`, five of 32 bits |
//! | 88 | `element_stride`, five of 32 bits |
//! | 124 | a number that marks descriptor objects, written with the rank |
//!
//! # A box
//!
//! Element (c0, c1, …) of a box, innermost first, lies `c0 + box0 * (c1 + box1 * …)` elements after its start in
//! shared memory. With a swizzle over 32, 64 or 128 bytes, bits 4 and up of the *address* change by exclusive or with
//! one, two or three bits from bit 7 on. Elements outside of the tensor are filled with zeros, or NaN, by a copy to
//! shared memory, and are not written by a copy from it; an mbarrier counts the bytes of the whole box in any case.

use crate::machine::block::{Block, Executed, Stop};
use crate::machine::bytecode::{
    AccessKind, AtomicOp, BulkCopy, BulkExtent, BulkReduce, Direction, SiteId,
};
use crate::machine::report::FindingKind;
use crate::machine::row::{Real, sext};
use crate::machine::warp::{Warp, lanes};
use crate::memory::access::combine;
use crate::memory::clocks::Kind;
use crate::memory::global::{GlobalMemory, SHARED_WINDOW};

/// Bytes of a descriptor object.
pub(crate) const DESCRIPTOR_BYTES: usize = 128;
/// Marks a descriptor object.
const MAGIC: u32 = 0x70_6d_54_78;
/// The offset of the mark.
pub(crate) const MAGIC_AT: u32 = 124;

/// A field of a descriptor object: its offset, its size, and the stride of a list, in bytes.
pub(crate) struct Field {
    pub(crate) at: u32,
    pub(crate) bytes: u32,
    pub(crate) count: u32,
}

/// The field with a name of `tensormap.replace`.
pub(crate) fn field(name: &str) -> Option<Field> {
    let (at, bytes, count) = match name {
        "global_address" => (0, 8, 1),
        "rank" => (8, 1, 1),
        "elemtype" => (9, 1, 1),
        "interleave_layout" => (10, 1, 1),
        "swizzle_mode" => (11, 1, 1),
        "fill_mode" => (12, 1, 1),
        "global_stride" => (16, 8, 4),
        "global_dim" => (48, 4, 5),
        "box_dim" => (68, 4, 5),
        "element_stride" => (88, 4, 5),
        _ => return None,
    };
    Some(Field { at, bytes, count })
}

/// The mark that is written with the rank.
pub(crate) const fn mark() -> u64 {
    MAGIC as u64
}

/// A tensor in global memory and the boxes in which it is copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TensorMap {
    /// Address of the first element.
    pub(crate) address: u64,
    /// The number of the element type, as in `tensormap.replace`.
    pub(crate) element_type: u32,
    /// The number of the swizzle: 0 none, 1, 2, 3 over 32, 64, 128 bytes.
    pub(crate) swizzle_mode: u32,
    /// Whether elements outside of the tensor are NaN.
    pub(crate) fill_nan: bool,
    /// Extents in elements, innermost first.
    pub(crate) global_dim: Vec<u32>,
    /// Strides in bytes, for all dimensions except the innermost.
    pub(crate) global_stride: Vec<u64>,
    /// Extents of a box in elements, innermost first.
    pub(crate) box_dim: Vec<u32>,
}

impl TensorMap {
    /// The descriptor object.
    pub(crate) fn encode(&self) -> [u8; DESCRIPTOR_BYTES] {
        let mut object = [0; DESCRIPTOR_BYTES];
        let mut put = |name: &str, position: usize, value: u64| {
            if let Some(field) = field(name) {
                let at = field.at as usize + position * field.bytes as usize;
                let bytes = field.bytes as usize;
                object[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
            }
        };
        put("global_address", 0, self.address);
        put("rank", 0, self.box_dim.len().saturating_sub(1) as u64);
        put("elemtype", 0, self.element_type.into());
        put("swizzle_mode", 0, self.swizzle_mode.into());
        put("fill_mode", 0, self.fill_nan.into());
        for (i, stride) in self.global_stride.iter().enumerate().take(4) {
            put("global_stride", i, *stride);
        }
        for i in 0..self.box_dim.len().min(5) {
            put("global_dim", i, self.global_dim[i].into());
            put("box_dim", i, self.box_dim[i].into());
            put("element_stride", i, 1);
        }
        let at = MAGIC_AT as usize;
        object[at..at + 4].copy_from_slice(&MAGIC.to_le_bytes());
        object
    }

    /// Reads an object.
    fn decode(object: &[u8; DESCRIPTOR_BYTES]) -> Result<Self, String> {
        let get = |name: &str, position: usize| -> u64 {
            field(name).map_or(0, |field| {
                let at = field.at as usize + position * field.bytes as usize;
                crate::memory::global::read_bytes(&object[at..at + field.bytes as usize])
            })
        };
        let at = MAGIC_AT as usize;
        if object[at..at + 4] != MAGIC.to_le_bytes() {
            return Err("these bytes are no descriptor object".to_owned());
        }
        let rank = get("rank", 0) as usize + 1;
        if rank > 5 {
            return Err(format!("its rank is {rank}"));
        }
        for name in ["interleave_layout"] {
            if get(name, 0) != 0 {
                return Err(format!("the machine knows no {name} {}", get(name, 0)));
            }
        }
        let list = |name: &str| (0..rank).map(|i| get(name, i) as u32).collect::<Vec<_>>();
        if list("element_stride").iter().any(|&stride| stride != 1) {
            return Err("the machine knows no element_stride other than 1".to_owned());
        }
        let map = Self {
            address: get("global_address", 0),
            element_type: get("elemtype", 0) as u32,
            swizzle_mode: get("swizzle_mode", 0) as u32,
            fill_nan: get("fill_mode", 0) != 0,
            global_dim: list("global_dim"),
            global_stride: (0..rank - 1).map(|i| get("global_stride", i)).collect(),
            box_dim: list("box_dim"),
        };
        map.check()?;
        Ok(map)
    }

    /// The conditions of `cuTensorMapEncodeTiled`.
    fn check(&self) -> Result<(), String> {
        let bytes = u64::from(self.element_bytes()?);
        if !self.address.is_multiple_of(16) {
            return Err(format!(
                "the address {:#x} is no multiple of 16",
                self.address
            ));
        }
        if let Some(stride) = self.global_stride.iter().find(|s| !s.is_multiple_of(16)) {
            return Err(format!("the stride of {stride} bytes is no multiple of 16"));
        }
        if let Some(size) = self.box_dim.iter().find(|s| !(1..=256).contains(*s)) {
            return Err(format!("a box has an extent of {size}, not 1 to 256"));
        }
        let row = u64::from(self.box_dim[0]) * bytes;
        if !row.is_multiple_of(16) {
            return Err(format!(
                "a row of the box has {row} bytes, no multiple of 16"
            ));
        }
        match self.swizzle_mode {
            0 => Ok(()),
            mode @ 1..=3 if row == 16 << mode => Ok(()),
            mode @ 1..=3 => Err(format!(
                "a row of the box has {row} bytes; the machine knows swizzle mode {mode} for {}",
                16 << mode
            )),
            mode => Err(format!("there is no swizzle mode {mode}")),
        }
    }

    /// Bytes of an element.
    fn element_bytes(&self) -> Result<u32, String> {
        Ok(match self.element_type {
            0 => 1,
            1 | 6 | 10 => 2,
            2 | 3 | 7 | 8 | 11 | 12 => 4,
            4 | 5 | 9 => 8,
            other => return Err(format!("the machine knows no element type {other}")),
        })
    }

    /// The bits of an element outside of the tensor.
    fn fill(&self) -> u64 {
        if !self.fill_nan {
            return 0;
        }
        match self.element_type {
            6 => 0x7fff,
            10 => 0x7fff,
            7 | 8 | 11 | 12 => 0x7fff_ffff,
            9 => 0x7fff_ffff_ffff_ffff,
            _ => 0,
        }
    }

    /// The operation of a reduction, if the element type supports it.
    fn operation(&self, reduce: BulkReduce) -> Option<AtomicOp> {
        let real = match self.element_type {
            6 => Some(Real::F16),
            7 => Some(Real::F32),
            8 => Some(Real::F32Flush),
            9 => Some(Real::F64),
            10 => Some(Real::BF16),
            11 | 12 => return None,
            _ => None,
        };
        let signed = matches!(self.element_type, 3 | 5);
        Some(match (reduce, real) {
            (BulkReduce::Add, Some(real)) => AtomicOp::FAdd(real),
            (BulkReduce::Min, Some(real @ (Real::F16 | Real::BF16))) => AtomicOp::FMin(real),
            (BulkReduce::Max, Some(real @ (Real::F16 | Real::BF16))) => AtomicOp::FMax(real),
            (_, Some(_)) => return None,
            (BulkReduce::Add, None) => AtomicOp::Add,
            (BulkReduce::Min, None) if signed => AtomicOp::SMin,
            (BulkReduce::Min, None) => AtomicOp::UMin,
            (BulkReduce::Max, None) if signed => AtomicOp::SMax,
            (BulkReduce::Max, None) => AtomicOp::UMax,
            (BulkReduce::Increment, None) => AtomicOp::IncrementWrap,
            (BulkReduce::Decrement, None) => AtomicOp::DecrementWrap,
            (BulkReduce::And, None) => AtomicOp::And,
            (BulkReduce::Or, None) => AtomicOp::Or,
            (BulkReduce::Xor, None) => AtomicOp::Xor,
        })
    }

    /// An address in shared memory with the swizzle.
    fn swizzled(&self, at: u64) -> u64 {
        let mask = (1u64 << self.swizzle_mode) - 1;
        at ^ (at >> 7 & mask) << 4
    }

    /// The elements of a box: the offset in shared memory without swizzle, and the address in global memory
    /// if the element is inside of the tensor.
    fn elements(&self, begin: &[i64], bytes: u32) -> Vec<(u64, Option<u64>)> {
        let count: u64 = self.box_dim.iter().map(|&size| u64::from(size)).product();
        (0..count)
            .map(|number| {
                let mut rest = number;
                let mut inside = true;
                let mut address = self.address;
                for (dim, &size) in self.box_dim.iter().enumerate() {
                    let at = begin[dim] + (rest % u64::from(size)) as i64;
                    rest /= u64::from(size);
                    inside &= (0..i64::from(self.global_dim[dim])).contains(&at);
                    let stride = match dim {
                        0 => u64::from(bytes),
                        _ => self.global_stride[dim - 1],
                    };
                    address = address.wrapping_add((at as u64).wrapping_mul(stride));
                }
                (number * u64::from(bytes), inside.then_some(address))
            })
            .collect()
    }

    /// Reads the object at an address.
    fn read(memory: &GlobalMemory, address: u64) -> Result<Self, String> {
        if memory
            .check(address, DESCRIPTOR_BYTES as u32, AccessKind::Load)
            .is_err()
        {
            return Err(format!(
                "{address:#x} is no address of 128 bytes in global memory"
            ));
        }
        if !address.is_multiple_of(64) {
            return Err(format!(
                "the object at {address:#x} is not aligned to 64 bytes"
            ));
        }
        let mut object = [0; DESCRIPTOR_BYTES];
        for (i, byte) in object.iter_mut().enumerate() {
            *byte = memory.read(address + i as u64, 1) as u8;
        }
        Self::decode(&object)
    }
}

/// The effect of a copy on one element: its place in shared memory, its bytes, its place in global memory.
struct Piece {
    shared: u64,
    bytes: u32,
    global: Option<u64>,
}

impl<const W: usize> Block<'_, W> {
    /// Performs a bulk copy for each lane.
    pub(crate) fn bulk_copies(
        &mut self,
        warp: &mut Warp<W>,
        frame: usize,
        copy: &BulkCopy,
        mask: u64,
    ) -> Executed<()> {
        for lane in lanes(mask) {
            let get = |slot: u32| warp.frames[frame].rows[slot as usize][lane];
            let shared = self.shared_place(warp.index, get(copy.shared) & !SHARED_WINDOW);
            let stop = |what: String| {
                let text = &self.program.sites[copy.site as usize].text;
                Stop::Fatal(format!("{what}: {text}"))
            };
            let (pieces, fill, total, operation) = match &copy.what {
                BulkExtent::Bytes { global, bytes } => {
                    let (global, bytes) = (get(*global), get(*bytes) & 0xffff_ffff);
                    if !(shared | global | bytes).is_multiple_of(16) {
                        self.misaligned_copy(warp.index, lane, shared, copy.site);
                    }
                    if matches!(copy.direction, Direction::Out { reduce: Some(_) }) {
                        return Err(stop("the machine knows no reduction of bytes".to_owned()));
                    }
                    let pieces = (0..bytes).map(|i| Piece {
                        shared: shared + i,
                        bytes: 1,
                        global: Some(global + i),
                    });
                    (pieces.collect::<Vec<_>>(), 0, bytes, None)
                }
                BulkExtent::Box {
                    descriptor,
                    coordinates,
                } => {
                    let object = get(*descriptor);
                    let map = TensorMap::read(self.global, object).map_err(stop)?;
                    self.check_descriptor(warp.index, lane, object, copy.site);
                    if map.box_dim.len() != coordinates.len() {
                        return Err(stop(format!(
                            "the descriptor has rank {}, the copy {}",
                            map.box_dim.len(),
                            coordinates.len()
                        )));
                    }
                    let begin: Vec<i64> = coordinates.iter().map(|&c| sext(get(c), 32)).collect();
                    let bytes = map.element_bytes().map_err(stop)?;
                    if !shared.is_multiple_of(128) {
                        self.misaligned_copy(warp.index, lane, shared, copy.site);
                    }
                    let operation = match copy.direction {
                        Direction::Out { reduce: Some(op) } => {
                            Some(map.operation(op).ok_or_else(|| {
                                stop(format!("element type {} has no {op:?}", map.element_type))
                            })?)
                        }
                        _ => None,
                    };
                    let pieces: Vec<Piece> = map
                        .elements(&begin, bytes)
                        .into_iter()
                        .map(|(at, global)| Piece {
                            shared: map.swizzled(shared + at),
                            bytes,
                            global,
                        })
                        .collect();
                    let total = pieces.len() as u64 * u64::from(bytes);
                    (pieces, map.fill(), total, operation)
                }
            };
            self.sequence = self.sequence.wrapping_add(1);
            self.clocks.begin_copy(warp.index);
            self.issuer = (warp.index, lane);
            match copy.direction {
                Direction::In { barrier } => {
                    for piece in &pieces {
                        self.copy_in(warp.index, lane, piece, fill, copy.site);
                    }
                    let (arrived, engine) = (self.clocks.latest_copy(), self.clocks.engine());
                    let (kind, address) = (Kind::AtomicWrite, get(barrier));
                    self.touch_barrier((engine, 0), warp.index, address, kind, copy.site);
                    self.transaction_barrier(warp.index, lane, get(barrier), copy.site)?
                        .deliver(total, &arrived);
                    self.polls.begin_anew();
                }
                Direction::Out { .. } => {
                    for piece in &pieces {
                        self.copy_out(warp.index, lane, piece, operation, copy.site);
                    }
                    let tick = self.clocks.tick(self.clocks.engine());
                    warp.bulk[lane].open(tick, copy.site);
                }
            }
        }
        Ok(())
    }

    /// Reports a copy that may read an object as it was before.
    fn check_descriptor(&mut self, warp: usize, lane: usize, object: u64, site: SiteId) {
        if self.grid.sanitize && !self.descriptors.is_visible(object, warp, &self.clocks) {
            self.findings.add(
                self.program,
                FindingKind::MissingProxyFence,
                warp,
                lane,
                Some(object),
                site,
                "a copy reads a descriptor that the kernel has written, and nothing before it has acquired that",
            );
        }
    }

    fn misaligned_copy(&mut self, warp: usize, lane: usize, shared: u64, site: SiteId) {
        if self.grid.sanitize {
            self.findings.add(
                self.program,
                FindingKind::Misaligned,
                warp,
                lane,
                Some(shared),
                site,
                "a bulk copy is misaligned",
            );
        }
    }

    /// Whether a piece lies in shared memory, which is loaded or stored, and in a buffer; reports if not.
    fn piece_is_inside(
        &mut self,
        warp: usize,
        lane: usize,
        piece: &Piece,
        kind: AccessKind,
        site: SiteId,
    ) -> bool {
        let mut row = [0; W];
        row[lane] = piece.shared;
        if self.shared_bounds(warp, &row, 1 << lane, piece.bytes, kind, site) == 0 {
            return false;
        }
        let Some(global) = piece.global else {
            return true;
        };
        let there = match kind {
            AccessKind::Store => AccessKind::Load,
            AccessKind::Load => AccessKind::Store,
        };
        match self.check_global(global, piece.bytes, there) {
            Ok(()) => true,
            Err(fault) => {
                self.fault(warp, lane, global, piece.bytes, there, fault, site);
                false
            }
        }
    }

    fn copy_in(&mut self, warp: usize, lane: usize, piece: &Piece, fill: u64, site: SiteId) {
        if self.piece_is_inside(warp, lane, piece, AccessKind::Store, site) {
            let value = piece
                .global
                .map_or(fill, |global| self.global.read(global, piece.bytes));
            let (at, bytes) = (piece.shared as usize, piece.bytes as usize);
            let engine = self.clocks.engine();
            self.shared_write(engine, 0, at, bytes, value, false, site);
        }
    }

    fn copy_out(
        &mut self,
        warp: usize,
        lane: usize,
        piece: &Piece,
        operation: Option<AtomicOp>,
        site: SiteId,
    ) {
        if self.piece_is_inside(warp, lane, piece, AccessKind::Load, site) {
            let (at, bytes) = (piece.shared as usize, piece.bytes as usize);
            let engine = self.clocks.engine();
            let value = self.shared_read(engine, 0, at, bytes, false, site);
            if let Some(global) = piece.global {
                let value = match operation {
                    Some(operation) => {
                        let old = self.global.read(global, piece.bytes);
                        combine(operation, 8 * piece.bytes, old, value, None)
                    }
                    None => value,
                };
                self.global.write(global, piece.bytes, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> TensorMap {
        TensorMap {
            address: 1 << 36,
            element_type: 6,
            swizzle_mode: 3,
            fill_nan: true,
            global_dim: vec![100, 7],
            global_stride: vec![208],
            box_dim: vec![64, 8],
        }
    }

    #[test]
    fn an_object_says_what_it_was_made_of() {
        assert_eq!(TensorMap::decode(&map().encode()), Ok(map()));
        assert!(TensorMap::decode(&[0; DESCRIPTOR_BYTES]).is_err());
        let mut odd = map();
        odd.global_stride = vec![200];
        assert!(
            TensorMap::decode(&odd.encode())
                .unwrap_err()
                .contains("200")
        );
        let mut narrow = map();
        narrow.box_dim[0] = 32;
        assert!(TensorMap::decode(&narrow.encode()).is_err());
    }

    #[test]
    fn elements_outside_of_the_tensor_have_no_address() {
        let elements = map().elements(&[64, -1], 2);
        assert_eq!(elements.len(), 512);
        assert!(elements[..64].iter().all(|(_, address)| address.is_none()));
        assert_eq!(elements[64], (128, Some((1 << 36) + 128)));
        assert_eq!(elements[64 + 35].1, Some((1 << 36) + 198));
        assert_eq!(elements[64 + 36].1, None);
    }

    #[test]
    fn a_swizzle_changes_bits_four_to_six_by_bits_seven_to_nine() {
        let map = map();
        assert_eq!(map.swizzled(0x40), 0x40);
        assert_eq!(map.swizzled(0x80), 0x90);
        assert_eq!(map.swizzled(0x390), 0x3e0);
    }
}
