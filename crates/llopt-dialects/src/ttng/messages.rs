//! Which layouts of registers the instructions `tcgen05.ld` and `tcgen05.st` can move.
//!
//! Let `c` be the map from each register, lane and warp of a tensor to the row and column of its element in tensor
//! memory: the tensor's layout followed by the inverse of the buffer's. Warp `w` of each group of four reaches only
//! the rows `32 w` to `32 w + 31`, so the two lowest warp bits must be rows 32 and 64. Within these 32 rows one
//! message moves a *tile*, one of the shapes of PTX ISA, "tcgen05 data movement shapes":
//!
//! | shape    | lane bits, as (row, column)          | register bits    |
//! |----------|--------------------------------------|------------------|
//! | 32x32b   | (1,0) (2,0) (4,0) (8,0) (16,0)       |                  |
//! | 16x256b  | (0,2) (0,4) (1,0) (2,0) (4,0)        | (0,1) (8,0)      |
//! | 16x64b   | (8,0) (0,1) (1,0) (2,0) (4,0)        |                  |
//! | 16x128b  | (0,1) (0,2) (1,0) (2,0) (4,0)        | (8,0)            |
//! | 16x32bx2 | (1,0) (2,0) (4,0) (8,0), then any    |                  |
//!
//! A message repeats its tile along the columns, and any number of messages may be issued, so a layout is movable if
//! `c` is a tile, up to the order of registers, and none of its other bits is in the rows and columns of the tile. A
//! column is 32 bits wide: narrower elements are either neighbours in one register, or each has a column of its own.
//!
//! ```text
//! register 0 -> (0, 1), lanes -> (1,0) … (16,0), warps -> (32,0), (64,0): 32x32b, twice
//! ```

use std::cmp::Reverse;

use llopt_layout::{Dim, LayoutError, LinearLayout};

use crate::layout::encoding::{COL, ROW};

/// A row and a column.
type Place = [u32; 2];

/// Rows that the two lowest warp bits select.
const WARP_ROWS: [Place; 2] = [[32, 0], [64, 0]];

/// The part of a tile that one warp moves.
struct Tile {
    registers: &'static [Place],
    lanes: &'static [Place],
}

/// Tiles whose position is fixed by five lane bits; a layout matches one of them at most.
const TILES: [Tile; 4] = [
    Tile {
        registers: &[],
        lanes: &[[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]],
    },
    Tile {
        registers: &[[0, 1], [8, 0]],
        lanes: &[[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]],
    },
    Tile {
        registers: &[],
        lanes: &[[8, 0], [0, 1], [1, 0], [2, 0], [4, 0]],
    },
    Tile {
        registers: &[[8, 0]],
        lanes: &[[0, 1], [0, 2], [1, 0], [2, 0], [4, 0]],
    },
];

/// Two halves of 16 lanes, the second of them anywhere else.
const HALVES: Tile = Tile {
    registers: &[],
    lanes: &[[1, 0], [2, 0], [4, 0], [8, 0]],
};

/// The positions of the bits of registers and threads in tensor memory.
#[derive(Clone)]
struct Transport {
    registers: Vec<Place>,
    lanes: Vec<Place>,
    warps: Vec<Place>,
    blocks: Vec<Place>,
}

impl Transport {
    fn new(tensor: &LinearLayout, buffer: &LinearLayout) -> Result<Self, LayoutError> {
        let places = tensor.invert_and_compose(buffer)?;
        let bits = |dim: Dim| -> Vec<Place> {
            (0..places.in_dim_size_log2(dim))
                .map(|bit| [ROW, COL].map(|out| places.basis_entry(dim, bit, out)))
                .collect()
        };
        Ok(Self {
            registers: bits(Dim::REGISTER),
            lanes: bits(Dim::LANE),
            warps: bits(Dim::WARP),
            blocks: bits(Dim::BLOCK),
        })
    }

    fn all(&self) -> impl Iterator<Item = &Place> {
        self.registers
            .iter()
            .chain(&self.lanes)
            .chain(&self.warps)
            .chain(&self.blocks)
    }

    /// The same without registers that repeat others.
    fn without_repeats(mut self) -> Self {
        let mut span: Vec<u64> = Vec::new();
        self.registers.retain(|[row, column]| {
            let mut vector = u64::from(*row) << 32 | u64::from(*column);
            for known in &span {
                vector = vector.min(vector ^ known);
            }
            if vector != 0 {
                span.push(vector);
                span.sort_unstable_by_key(|known| Reverse(*known));
            }
            vector != 0
        });
        self
    }

    /// The same, counted in columns twice as wide.
    fn halved(mut self) -> Self {
        let lists = [
            &mut self.registers,
            &mut self.lanes,
            &mut self.warps,
            &mut self.blocks,
        ];
        for place in lists.into_iter().flatten() {
            place[1] >>= 1;
        }
        self
    }

    /// Whether the lowest column bit belongs only to the lowest register bit, or to none.
    fn packs(&self, by_register: bool) -> bool {
        let odd = |place: &Place| place[1] & 1 == 1;
        if by_register {
            self.registers.first() == Some(&[0, 1])
                && self.all().filter(|place| odd(place)).count() == 1
        } else {
            !self.all().any(odd)
        }
    }

    /// The same in columns of 32 bits, and the columns to which an element of 32 bits extends.
    fn widened(self, bits: u32) -> Option<(Self, u32)> {
        let mut packed = self.clone();
        let mut width = bits;
        while width < 32 && packed.packs(true) {
            packed.registers.remove(0);
            packed = packed.halved();
            width *= 2;
        }
        if width == 32 {
            return Some((packed.without_repeats(), 1));
        }
        if width > bits {
            // A pair that is one wider element follows the same rules.
            return packed.without_repeats().widened(width);
        }
        // Each element has a column to itself; only halves can be moved as such.
        let mut alone = self;
        while width < 32 {
            if !alone.packs(false) {
                return None;
            }
            alone = alone.halved();
            width *= 2;
        }
        let mut extent = 1;
        if bits == 16 {
            if alone.packs(true) {
                alone.registers.remove(0);
                alone = alone.halved();
            }
            extent = 2;
            for place in alone
                .registers
                .iter_mut()
                .chain(&mut alone.lanes)
                .chain(&mut alone.warps)
                .chain(&mut alone.blocks)
            {
                place[1] *= 2;
            }
        }
        Some((alone.without_repeats(), extent))
    }

    /// Whether the tile is the lowest part, and nothing else lies in its rows and columns.
    fn has_tile(&self, tile: &Tile, extent: u32) -> bool {
        let scaled = |place: &Place| [place[0], place[1] * extent];
        let mut registers = self.registers.clone();
        for place in tile.registers.iter().map(scaled) {
            let Some(found) = registers.iter().position(|own| *own == place) else {
                return false;
            };
            registers.remove(found);
        }
        let lanes = tile.lanes.iter().map(scaled);
        if !lanes.eq(self.lanes.iter().take(tile.lanes.len()).copied()) {
            return false;
        }
        let mut mask = [0, 0];
        let own = tile.registers.iter().chain(tile.lanes).map(scaled);
        for [row, column] in own.chain(WARP_ROWS) {
            mask[0] |= row;
            mask[1] |= column;
        }
        registers
            .iter()
            .chain(&self.lanes[tile.lanes.len()..])
            .chain(self.warps.iter().skip(WARP_ROWS.len()))
            .chain(&self.blocks)
            .all(|place| place[0] & mask[0] == 0 && place[1] & mask[1] == 0)
    }
}

/// Whether a tensor in this layout can be moved to and from a buffer of tensor memory whose elements
/// have `bits` bits. `scales` are stored with room for a second copy, which frees the second half
/// of the lanes.
pub fn can_move(tensor: &LinearLayout, buffer: &LinearLayout, bits: u32, scales: bool) -> bool {
    let rows = [0, 1].map(|bit| {
        tensor.out_dims().iter().all(|out| {
            tensor.basis_entry(Dim::WARP, bit, *out) == buffer.basis_entry(ROW, bit + 5, *out)
        })
    });
    if tensor.in_dim_size_log2(Dim::WARP) < 2 || rows != [true; 2] {
        return false;
    }
    let Ok(mut transport) = Transport::new(tensor, buffer) else {
        return false;
    };
    // If the rows repeat each other, the inverse does not contain them.
    transport.warps[..WARP_ROWS.len()].copy_from_slice(&WARP_ROWS);
    let Some((transport, extent)) = transport.without_repeats().widened(bits) else {
        return false;
    };
    if transport.lanes.len() != 5 {
        return false;
    }
    if TILES.iter().any(|tile| transport.has_tile(tile, extent)) {
        return true;
    }
    transport.has_tile(&HALVES, extent) && (scales || transport.lanes[4] != [0, 0])
}

/// A layout that can be moved, with 32 rows to each warp where the buffer has them; `None` if there
/// is none of this form.
///
/// `warps` is the number of warps, `blocks` how the tensor is spread over the blocks of a cluster.
pub fn suggestion(
    buffer: &LinearLayout,
    bits: u32,
    warps: u32,
    blocks: &LinearLayout,
    scales: bool,
) -> Option<LinearLayout> {
    // One block's part: the blocks of a cluster come last along the columns.
    let mut share = buffer.clone();
    let outs: Vec<Dim> = buffer.out_dims().to_vec();
    for &out in outs.iter().rev() {
        let count = u32::try_from(blocks.out_dim_size(out)).ok()?;
        let split = LinearLayout::identity_1d(count, COL, out).ok()?;
        share = share.divide_right(&split)?;
    }
    let image = |dim, bit| -> Vec<u32> {
        outs.iter()
            .map(|out| share.basis_entry(dim, bit, *out))
            .collect()
    };
    let is_copy = |vector: &Vec<u32>| vector.iter().all(|entry| *entry == 0);
    let mut columns: Vec<Vec<u32>> = (0..share.in_dim_size_log2(COL))
        .map(|bit| image(COL, bit))
        .filter(|vector| !is_copy(vector))
        .collect();
    let mut lanes: Vec<Vec<u32>> = (0..5).map(|bit| image(ROW, bit)).collect();
    let mut warp_bits: Vec<Vec<u32>> = (5..7).map(|bit| image(ROW, bit)).collect();
    for _ in 2..warps.checked_ilog2()? {
        // Packed neighbours stay in one thread.
        let packed = (32 / bits.max(1)).max(1).ilog2() as usize;
        warp_bits.push(if columns.len() > packed {
            columns.pop()?
        } else {
            vec![0; outs.len()]
        });
    }
    if is_copy(&lanes[4]) && columns.len() > 1 {
        lanes[4] = columns.pop()?;
    }
    let sizes: Vec<(Dim, u32)> = outs
        .iter()
        .map(|out| {
            (
                *out,
                u32::try_from(share.out_dim_size(*out)).unwrap_or(u32::MAX),
            )
        })
        .collect();
    let one = LinearLayout::from_bases(
        &[
            (Dim::REGISTER, &columns[..]),
            (Dim::LANE, &lanes[..]),
            (Dim::WARP, &warp_bits[..]),
        ],
        &sizes,
    )
    .ok()?;
    let layout = one.product(blocks).ok()?;
    can_move(&layout, buffer, bits, scales).then_some(layout)
}
