//! `ldmatrix` and `stmatrix`: a warp moves up to four 8x8 tiles of 16-bit elements between shared memory and
//! registers; and AMD's transposing loads.
//!
//! Lane `8 t + r` has the address of row `r` of tile `t`, 16 bytes. Lane `l` has the elements `(l / 4, 2 (l % 4))`
//! and `(l / 4, 2 (l % 4) + 1)` of each tile in one register, lower first; with `.trans` the places are transposed.
//! (PTX ISA, "ldmatrix".)

use crate::machine::block::{Block, Executed};
use crate::machine::bytecode::{Space, TileAccess, TransposeLoad};
use crate::machine::execute::Flow;
use crate::machine::row::mask as low_bits;
use crate::machine::warp::{Path, Row, Warp, lanes};
use crate::memory::banks::{self, Grouping};
use crate::memory::global::read_bytes;

/// Bytes of a tile's row.
const ROW_BYTES: u32 = 16;

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
        let row_lanes = low_bits(8 * access.tiles);
        self.check_alignment(warp.index, &addresses, row_lanes, ROW_BYTES, access.site);
        let allowed = self.shared_bounds(
            warp.index,
            &addresses,
            row_lanes,
            ROW_BYTES,
            access.store,
            access.site,
        );
        let (wavefronts, bound) = banks::wavefronts(
            self.grid.target,
            &addresses,
            allowed,
            ROW_BYTES,
            access.store,
            Grouping::Tiles,
        );
        self.counters
            .site(access.site)
            .shared
            .count(access.store, wavefronts, bound);
        for tile in 0..access.tiles as usize {
            let register = access.registers[tile] as usize;
            let place = |lane: usize, half: usize| {
                let (row, column) = (lane / 4, 2 * (lane % 4) + half);
                if access.transposed {
                    (column, row)
                } else {
                    (row, column)
                }
            };
            if access.store {
                for lane in lanes(mask) {
                    let value = warp.frames[frame].rows[register][lane];
                    for half in 0..2 {
                        let (row, column) = place(lane, half);
                        let source = 8 * tile + row;
                        if allowed >> source & 1 == 1 {
                            let at = addresses[source] as usize + 2 * column;
                            let element = value >> (16 * half) & 0xffff;
                            self.shared_write(warp.index, lane, at, 2, element, false, access.site);
                        }
                    }
                }
            } else {
                for lane in lanes(mask) {
                    let mut value = 0;
                    for half in 0..2 {
                        let (row, column) = place(lane, half);
                        let source = 8 * tile + row;
                        if allowed >> source & 1 == 1 {
                            let at = addresses[source] as usize + 2 * column;
                            let element =
                                self.shared_read(warp.index, lane, at, 2, false, access.site);
                            value |= element << (16 * half);
                        }
                    }
                    warp.frames[frame].rows[register][lane] = value;
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
            let allowed =
                self.shared_bounds(warp.index, &addresses, mask, load.bytes, false, load.site);
            self.count_shared(
                &addresses, allowed, load.bytes, load.bytes, false, load.site,
            );
            for lane in lanes(allowed) {
                let piece = &mut pieces[lane];
                for (i, byte) in piece[..load.bytes as usize].iter_mut().enumerate() {
                    let at = addresses[lane] as usize + i;
                    *byte = self.shared_read(warp.index, lane, at, 1, false, load.site) as u8;
                }
            }
        } else {
            self.count_global(&addresses, mask, load.bytes, load.bytes, false, load.site);
            for lane in lanes(mask) {
                if let Err(fault) = self.check_global(addresses[lane], load.bytes, false) {
                    self.fault(
                        warp.index,
                        lane,
                        addresses[lane],
                        load.bytes,
                        false,
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
