//! `ldmatrix` and `stmatrix`: a warp moves up to four tiles between shared memory and registers; and AMD's transposing
//! loads.
//!
//! Lane `8 t + r` has the address of row `r` of tile `t`, 16 bytes. Of 8x8 elements of 16 bits, lane `l` has
//! `(l / 4, 2 (l % 4))` and `(l / 4, 2 (l % 4) + 1)` of each tile in one register, lower first; with `.trans` the places
//! are transposed. Bytes are always transposed. A tile that is loaded has 16 rows of 16, of which lane `l` has rows
//! `4 (l % 4)` to `4 (l % 4) + 3` of column `l / 4` in one register, and of column `l / 4 + 8` in the next. A tile that is
//! stored has 8 rows, of which lane `l` has `2 (l % 4)` and `2 (l % 4) + 1` of column `l / 4` in the lower half of its
//! register, and of column `l / 4 + 8` in the upper half. (PTX ISA, "ldmatrix", "stmatrix".)

use crate::machine::block::{Block, Executed};
use crate::machine::bytecode::{AccessKind, Space, Tile, TileAccess, TransposeLoad};
use crate::machine::execute::Flow;
use crate::machine::row::mask as low_bits;
use crate::machine::warp::{Path, Row, Warp, lanes};
use crate::memory::banks::{self, Grouping};
use crate::memory::global::read_bytes;

/// Bytes of a tile's row.
const ROW_BYTES: u32 = 16;

impl Tile {
    /// Rows of a tile, each with an address.
    pub(crate) fn rows(self, kind: AccessKind) -> u32 {
        match self {
            Self::TransposedBytes if kind == AccessKind::Load => 16,
            Self::Halves | Self::TransposedHalves | Self::TransposedBytes => 8,
        }
    }

    /// Registers of a lane for a tile.
    pub(crate) fn registers(self, kind: AccessKind) -> u32 {
        self.rows(kind) / 8
    }

    /// Bytes of an element.
    fn bytes(self) -> usize {
        match self {
            Self::Halves | Self::TransposedHalves => 2,
            Self::TransposedBytes => 1,
        }
    }

    /// The row and the column of an element of one of a lane's registers for a tile.
    fn place(
        self,
        kind: AccessKind,
        lane: usize,
        register: usize,
        element: usize,
    ) -> (usize, usize) {
        let (group, member) = (lane / 4, lane % 4);
        match self {
            Self::Halves => (group, 2 * member + element),
            Self::TransposedHalves => (2 * member + element, group),
            Self::TransposedBytes if kind == AccessKind::Store => {
                (2 * member + element % 2, group + 8 * (element / 2))
            }
            Self::TransposedBytes => (4 * member + element, group + 8 * register),
        }
    }
}

impl<const W: usize> Block<'_, W> {
    /// Executes `ldmatrix` or `stmatrix`.
    pub(crate) fn tiles(
        &mut self,
        warp: &mut Warp<W>,
        path: &mut Path,
        frame: usize,
        access: &TileAccess,
        mask: u64,
    ) -> Executed<Flow> {
        if !Self::all_here(warp, path, mask, low_bits(W as u32), false, access.site) {
            return Ok(Flow::Blocked);
        }
        self.clocks.advance(warp.index);
        self.sequence = self.sequence.wrapping_add(1);
        let addresses: Row<W> = self.shared_places(
            warp.index,
            &warp.frames[frame].rows[access.address as usize],
        );
        let (rows, each) = (
            access.tile.rows(access.kind),
            access.tile.registers(access.kind),
        );
        let row_lanes = low_bits(rows * access.tiles);
        self.check_alignment(warp.index, &addresses, row_lanes, ROW_BYTES, access.site);
        let allowed = self.shared_bounds(
            warp.index,
            &addresses,
            row_lanes,
            ROW_BYTES,
            access.kind,
            access.site,
        );
        let (wavefronts, bound) = banks::wavefronts(
            self.grid.target,
            &addresses,
            allowed,
            ROW_BYTES,
            access.kind,
            Grouping::Tiles,
        );
        self.counters
            .site(access.site)
            .shared
            .count(access.kind, wavefronts, bound);
        let (bytes, rows) = (access.tile.bytes(), rows as usize);
        let element_bits = low_bits(8 * bytes as u32);
        for (number, &register) in access.registers.iter().enumerate() {
            let (tile, of_tile) = (number / each as usize, number % each as usize);
            // The address of an element, if the access to its row is allowed.
            let address = |lane: usize, element: usize| {
                let (row, column) = access.tile.place(access.kind, lane, of_tile, element);
                let source = rows * tile + row;
                (allowed >> source & 1 == 1).then(|| addresses[source] as usize + bytes * column)
            };
            let elements = 0..4 / bytes;
            for lane in lanes(mask) {
                if access.kind == AccessKind::Store {
                    let value = warp.frames[frame].rows[register as usize][lane];
                    for element in elements.clone() {
                        if let Some(at) = address(lane, element) {
                            let stored = value >> (8 * bytes * element) & element_bits;
                            self.shared_write(
                                warp.index,
                                lane,
                                at,
                                bytes,
                                stored,
                                false,
                                access.site,
                            );
                        }
                    }
                } else {
                    let mut value = 0;
                    for element in elements.clone() {
                        if let Some(at) = address(lane, element) {
                            let loaded =
                                self.shared_read(warp.index, lane, at, bytes, false, access.site);
                            value |= loaded << (8 * bytes * element);
                        }
                    }
                    warp.frames[frame].rows[register as usize][lane] = value;
                }
            }
        }
        Ok(Flow::Next)
    }

    /// Executes a transposing load; [`transposed_source`] gives the source of each element.
    pub(crate) fn transpose_load(
        &mut self,
        warp: &mut Warp<W>,
        frame: usize,
        load: &TransposeLoad,
        mask: u64,
    ) {
        self.sequence = self.sequence.wrapping_add(1);
        let addresses: Row<W> = warp.frames[frame].rows[load.address as usize];
        let mut pieces = vec![[0u8; 16]; W];
        if load.space == Space::Shared {
            let allowed = self.shared_bounds(
                warp.index,
                &addresses,
                mask,
                load.bytes,
                AccessKind::Load,
                load.site,
            );
            self.count_shared(
                &addresses,
                allowed,
                load.bytes,
                load.bytes,
                AccessKind::Load,
                load.site,
            );
            for lane in lanes(allowed) {
                let piece = &mut pieces[lane];
                for (i, byte) in piece[..load.bytes as usize].iter_mut().enumerate() {
                    let at = addresses[lane] as usize + i;
                    *byte = self.shared_read(warp.index, lane, at, 1, false, load.site) as u8;
                }
            }
        } else {
            self.count_global(
                &addresses,
                mask,
                load.bytes,
                load.bytes,
                AccessKind::Load,
                load.site,
            );
            for lane in lanes(mask) {
                if let Err(fault) = self.check_global(addresses[lane], load.bytes, AccessKind::Load)
                {
                    self.fault(
                        warp.index,
                        lane,
                        addresses[lane],
                        load.bytes,
                        AccessKind::Load,
                        fault,
                        load.site,
                    );
                    continue;
                }
                let piece = &mut pieces[lane];
                for (i, byte) in piece[..load.bytes as usize].iter_mut().enumerate() {
                    *byte = self.global.read(addresses[lane] + i as u64, 1) as u8;
                }
            }
        }
        let count = (load.bytes * 8 / load.element_bits) as usize;
        for lane in lanes(mask) {
            let mut bits = [0u8; 16];
            for element in 0..count {
                let (source, index) = transposed_source(lane, element, count);
                let value = field(
                    &pieces[source],
                    index * load.element_bits as usize,
                    load.element_bits as usize,
                );
                put_field(
                    &mut bits,
                    element * load.element_bits as usize,
                    load.element_bits as usize,
                    value,
                );
            }
            let mut at = 0;
            for &(slot, width) in &load.parts {
                warp.frames[frame].rows[slot as usize][lane] = field(&bits, at, width as usize);
                at += width as usize;
            }
        }
    }
}

/// (lane, element) that element `element` of `lane` comes from, when each lane reads `count` elements. The 16 lanes of
/// a group read a matrix of `count` rows and 16 columns, row by row, each row by `16 / count` neighbouring lanes; lane
/// `l` receives column `l`.
pub(crate) fn transposed_source(lane: usize, element: usize, count: usize) -> (usize, usize) {
    let (group, column) = (lane & !15, lane & 15);
    let lanes_per_row = 16 / count;
    (
        group + element * lanes_per_row + column / count,
        column % count,
    )
}

/// Bits `at..at + width` of a string of bytes, at most 64.
fn field(bytes: &[u8; 16], at: usize, width: usize) -> u64 {
    let (low, high) = (read_bytes(&bytes[..8]), read_bytes(&bytes[8..]));
    let all = u128::from(low) | u128::from(high) << 64;
    (all >> at) as u64 & low_bits(width as u32)
}

fn put_field(bytes: &mut [u8; 16], at: usize, width: usize, value: u64) {
    let all = u128::from_le_bytes(*bytes);
    let mask = u128::from(low_bits(width as u32)) << at;
    *bytes = (all & !mask | u128::from(value) << at & mask).to_le_bytes();
}
