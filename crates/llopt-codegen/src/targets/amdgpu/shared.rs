//! Lane exchanges, warp barriers and transposing loads from LDS on AMD.
//!
//! The cheapest exchange is a data-parallel primitive (DPP): the operand of an ordinary instruction comes
//! from another lane. It reaches lanes at some distances only; the others go through the LDS crossbar
//! (`ds_swizzle`, `ds_bpermute`), which touches no memory.

use inkwell::types::BasicTypeEnum;
use llopt_target::{Feature, Target};

use crate::llvm::c_api::fence;
use crate::llvm::emitter::{Emitter, V};
use crate::targets::hooks::FenceOrdering;
use crate::targets::hooks::MatrixAccess;

/// Waits for all threads of the block and their accesses to LDS: its fences order no other memory
/// (`amdgpu-synchronize-as`, LLVM AMDGPU usage, "Memory Model Relaxation Annotations").
pub fn block_barrier(e: &Emitter<'_>) {
    let words = ["amdgpu-synchronize-as", "local"];
    let words = words.map(|word| e.context.metadata_string(word).into());
    let only_local = e.context.metadata_node(&words);
    let fence = |ordering| {
        fence(e.context, e.builder(), ordering, "workgroup");
        let made = e.block().get_last_instruction();
        made.expect("bug in llopt: a fence has been emitted")
            .set_metadata(only_local, e.context.get_kind_id("mmra"))
            .expect("bug in llopt: the metadata is a node");
    };
    fence(FenceOrdering::Release);
    e.intrinsic_call("llvm.amdgcn.s.barrier", &[], &[]);
    fence(FenceOrdering::Acquire);
}

/// Lanes of a wavefront run in step; only the compiler has to keep the order.
pub fn warp_barrier<'ctx>(e: &Emitter<'ctx>) {
    fence(e.context, e.builder(), FenceOrdering::Release, "wavefront");
    e.intrinsic_call("llvm.amdgcn.wave.barrier", &[], &[]);
    fence(e.context, e.builder(), FenceOrdering::Acquire, "wavefront");
}

/// DPP controls (LLVM AMDGPU usage, "DPP").
mod dpp {
    /// Rotation of a row of 16 lanes by 8: exchange at distance 8.
    pub const ROTATE_8: i64 = 0x128;
    /// Mirror of a row: exchange at distance 15.
    pub const MIRROR: i64 = 0x140;
    /// Mirror of half a row: exchange at distance 7.
    pub const HALF_MIRROR: i64 = 0x141;
    /// Exchange at any distance inside of a row (gfx10 and later), plus the distance.
    pub const ROW_XMASK: i64 = 0x160;

    /// The word of the first lane of a row (`row_share:0`; on CDNA `row_newbcast:0`).
    pub const FIRST_OF_ROW: i64 = 0x150;

    /// Four lanes each take the word of one of them.
    pub fn quad(source: impl Fn(u32) -> u32) -> i64 {
        (0..4)
            .map(|lane| i64::from(source(lane)) << (2 * lane))
            .sum()
    }
}

/// The control of DPP for lanes at distance `xor`; `None` where there is none.
fn dpp_control(target: Target, xor: u32) -> Option<i64> {
    match xor {
        1..4 => Some(dpp::quad(|lane| lane ^ xor)),
        4..16 if target.has(Feature::Permlane16) => Some(dpp::ROW_XMASK + i64::from(xor)),
        7 => Some(dpp::HALF_MIRROR),
        8 => Some(dpp::ROTATE_8),
        15 => Some(dpp::MIRROR),
        _ => None,
    }
}

/// The word of the lane at distance `xor`.
pub fn shuffle_xor<'ctx>(e: &Emitter<'ctx>, target: Target, word: V<'ctx>, xor: u32) -> V<'ctx> {
    let any_in_row = target.has(Feature::Permlane16);
    if let Some(control) = dpp_control(target, xor) {
        return move_by_dpp(e, word, control);
    }
    if xor < 32 && !(any_in_row && xor >= 16) {
        // Bit mode of ds_swizzle inside of 32 lanes: and, or, xor masks of five bits each.
        let pattern = e.i32(0x1f | i64::from(xor) << 10);
        return e.intrinsic("llvm.amdgcn.ds.swizzle", &[], &[word, pattern]);
    }
    if any_in_row && xor & !15 == 16 {
        // Lane i of each row takes lane (i ^ low) of the other row.
        return permute_row(e, "llvm.amdgcn.permlanex16", word, |lane| lane ^ xor & 15);
    }
    let lane = lane(e, target);
    shuffle_from(e, word, e.xor(lane, e.i32(i64::from(xor))))
}

/// The word of another lane, by the control of data-parallel primitives.
fn move_by_dpp<'ctx>(e: &Emitter<'ctx>, word: V<'ctx>, control: i64) -> V<'ctx> {
    let of = [word.get_type()];
    let arguments = [
        word,
        word,
        e.i32(control),
        e.i32(0xf),
        e.i32(0xf),
        e.bool(true),
    ];
    e.intrinsic("llvm.amdgcn.update.dpp", &of, &arguments)
}

/// `v_permlane16` and `v_permlanex16`: each lane takes the word of lane `source` of its row of 16, or of the other row.
fn permute_row<'ctx>(
    e: &Emitter<'ctx>,
    name: &'static str,
    word: V<'ctx>,
    source: impl Fn(u32) -> u32,
) -> V<'ctx> {
    let select = |from: u32| {
        (0..8u32)
            .map(|i| i64::from(source(from + i)) << (4 * i))
            .sum::<i64>()
    };
    let of = [word.get_type()];
    // Lanes that are not active are read from, too, so the old value of the register is never used. The word itself
    // would have to be copied there, because a reduction combines it with the result.
    let arguments = [
        e.poison(word.get_type()),
        word,
        e.i32(select(0)),
        e.i32(select(8)),
        e.bool(true),
        e.bool(false),
    ];
    e.intrinsic(name, &of, &arguments)
}

/// The word of the lane that a linear function of the lane's number names, where an arithmetic instruction fetches it
/// ([`Target::maps_lanes_by_arithmetic`]).
pub fn map_lanes<'ctx>(
    e: &Emitter<'ctx>,
    target: Target,
    word: V<'ctx>,
    source: &[u32],
) -> Option<V<'ctx>> {
    if !target.maps_lanes_by_arithmetic(source) {
        return None;
    }
    let of_lane = |lane: u32| {
        let images = source.iter().enumerate();
        images
            .filter(|(bit, _)| lane >> bit & 1 == 1)
            .fold(0, |all, (_, image)| all ^ image)
    };
    if source.iter().all(|image| *image == 0) {
        return Some(of_first_lane(e, word));
    }
    let stays_in_quad = (2..source.len()).all(|bit| source[bit] == 1 << bit);
    Some(
        if stays_in_quad && source.iter().take(2).all(|image| *image < 4) {
            move_by_dpp(e, word, dpp::quad(of_lane))
        } else if source.iter().take(4).all(|image| *image == 0) {
            move_by_dpp(e, word, dpp::FIRST_OF_ROW)
        } else {
            permute_row(e, "llvm.amdgcn.permlane16", word, of_lane)
        },
    )
}

/// The number of this lane in its wavefront.
fn lane<'ctx>(e: &Emitter<'ctx>, target: Target) -> V<'ctx> {
    let below = e.intrinsic("llvm.amdgcn.mbcnt.lo", &[], &[e.i32(-1), e.i32(0)]);
    if target.warp_size() == 32 {
        return below;
    }
    e.intrinsic("llvm.amdgcn.mbcnt.hi", &[], &[e.i32(-1), below])
}

/// The word of lane `lane`: the crossbar takes byte addresses.
pub fn shuffle_from<'ctx>(e: &Emitter<'ctx>, word: V<'ctx>, lane: V<'ctx>) -> V<'ctx> {
    e.intrinsic(
        "llvm.amdgcn.ds.bpermute",
        &[],
        &[e.shl(lane, e.i32(2)), word],
    )
}

/// The selector of `v_perm_b32`: a byte for each byte.
pub fn permute_selector<'ctx>(e: &Emitter<'ctx>, selector: [u8; 4]) -> V<'ctx> {
    e.i32(i64::from(u32::from_le_bytes(selector)))
}

/// `v_perm_b32`: its first operand has the high bytes. Lanes may have selectors of their own.
pub fn permute_bytes_by<'ctx>(
    e: &Emitter<'ctx>,
    low: V<'ctx>,
    high: V<'ctx>,
    selector: V<'ctx>,
) -> V<'ctx> {
    e.intrinsic("llvm.amdgcn.perm", &[], &[high, low, selector])
}

/// `v_permlane16_swap` and `v_permlane32_swap`.
pub fn swap_lanes<'ctx>(
    e: &Emitter<'ctx>,
    target: Target,
    [first, second]: [V<'ctx>; 2],
    lane: u32,
) -> Option<[V<'ctx>; 2]> {
    let name = match lane {
        16 => "llvm.amdgcn.permlane16.swap",
        32 => "llvm.amdgcn.permlane32.swap",
        _ => return None,
    };
    if !target.has(Feature::PermlaneSwap) {
        return None;
    }
    let arguments = [first, second, e.bool(false), e.bool(false)];
    let both = e.intrinsic(name, &[], &arguments);
    Some([0, 1].map(|word| e.member(both, word)))
}

/// The word of the first lane: LLVM keeps it in a scalar register.
pub fn of_first_lane<'ctx>(e: &Emitter<'ctx>, word: V<'ctx>) -> V<'ctx> {
    e.intrinsic("llvm.amdgcn.readfirstlane", &[word.get_type()], &[word])
}

/// An integer that all lanes hold, in scalar registers: what is computed from it is, and a branch on it needs no mask of
/// lanes. Others stay as they are: scalar units compute with integers.
pub fn of_all_lanes<'ctx>(e: &Emitter<'ctx>, number: V<'ctx>) -> V<'ctx> {
    let BasicTypeEnum::IntType(own) = number.get_type() else {
        return number;
    };
    let word = e.i32(0).get_type();
    match own.get_bit_width() {
        32 | 64 => of_first_lane(e, number),
        1..32 => {
            let wide = of_first_lane(e, e.zext(number, word));
            e.trunc(wide, own.into())
        }
        _ => number,
    }
}

/// Loads that transpose.
pub fn load_matrix<'ctx>(
    e: &Emitter<'ctx>,
    access: &MatrixAccess,
    address: V<'ctx>,
) -> Option<Vec<V<'ctx>>> {
    let i32 = e.int(32).into();
    let (name, of) = match access.name {
        "ds_read_b64_tr_b16" => (
            "llvm.amdgcn.ds.read.tr16.b64",
            e.vector(e.int(16).into(), 4),
        ),
        "ds_read_b64_tr_b8" => ("llvm.amdgcn.ds.read.tr8.b64", e.vector(i32, 2)),
        "ds_read_b64_tr_b4" => ("llvm.amdgcn.ds.read.tr4.b64", e.vector(i32, 2)),
        "ds_load_tr16_b128" => (
            "llvm.amdgcn.ds.load.tr16.b128",
            e.vector(e.int(16).into(), 8),
        ),
        "ds_load_tr8_b64" => ("llvm.amdgcn.ds.load.tr8.b64", e.vector(i32, 2)),
        _ => return None,
    };
    let loaded = e.intrinsic(name, &[of.into()], &[address]);
    Some(e.unpack(e.bitcast(loaded, e.vector(i32, access.registers).into())))
}

/// There are no stores that transpose.
pub fn store_matrix<'ctx>(
    _e: &Emitter<'ctx>,
    _access: &MatrixAccess,
    _address: V<'ctx>,
    _registers: &[V<'ctx>],
) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_exchange_by_arithmetic_where_an_instruction_does_it() {
        for name in [
            "hip:gfx90a",
            "hip:gfx942",
            "hip:gfx950",
            "hip:gfx1100",
            "hip:gfx1200",
        ] {
            let target = Target::parse(name).unwrap();
            for xor in 1..64 {
                let between_rows = target.has(Feature::Permlane16) && xor & !15 == 16;
                assert_eq!(
                    dpp_control(target, xor).is_some() || between_rows,
                    target.shuffles_by_arithmetic(xor),
                    "{name}, distance {xor}"
                );
            }
        }
    }
}
