//! Shuffles, warp barriers and matrix accesses to shared memory on NVIDIA.

use llopt_plan::reduction::warp::WarpCombination;
use llopt_target::Target;

use crate::llvm::emitter::{AsmEffect, Emitter, V};
use crate::llvm::instructions::called;
use crate::targets::hooks::{AsyncCopy, MatrixAccess};

/// All lanes of a warp take part.
const ALL_LANES: i64 = -1;
/// The width of the segment in which a shuffle stays, as `shfl` encodes it: the whole warp.
const WHOLE_WARP: i64 = 0x1f;

/// `bar.warp.sync` of all lanes, unless a barrier of the block has just been emitted.
pub fn warp_barrier<'ctx>(e: &Emitter<'ctx>) {
    let last = e.block().get_last_instruction();
    if last.and_then(called).as_deref() == Some(super::BLOCK_BARRIER) {
        return;
    }
    e.intrinsic_call("llvm.nvvm.bar.warp.sync", &[], &[e.i32(ALL_LANES)]);
}

/// `shfl.sync.bfly`.
pub fn shuffle_xor<'ctx>(e: &Emitter<'ctx>, _target: Target, word: V<'ctx>, xor: u32) -> V<'ctx> {
    e.intrinsic(
        "llvm.nvvm.shfl.sync.bfly.i32",
        &[],
        &[
            e.i32(ALL_LANES),
            word,
            e.i32(i64::from(xor)),
            e.i32(WHOLE_WARP),
        ],
    )
}

/// `shfl.sync.idx`.
pub fn shuffle_from<'ctx>(e: &Emitter<'ctx>, word: V<'ctx>, lane: V<'ctx>) -> V<'ctx> {
    e.intrinsic(
        "llvm.nvvm.shfl.sync.idx.i32",
        &[],
        &[e.i32(ALL_LANES), word, lane, e.i32(WHOLE_WARP)],
    )
}

/// `prmt`: a digit of the selector for each byte.
pub fn permute_bytes<'ctx>(
    e: &Emitter<'ctx>,
    low: V<'ctx>,
    high: V<'ctx>,
    selector: [u8; 4],
) -> V<'ctx> {
    permute_bytes_by(e, low, high, permute_selector(e, selector))
}

/// The selector of `prmt` as a value.
pub fn permute_selector<'ctx>(e: &Emitter<'ctx>, selector: [u8; 4]) -> V<'ctx> {
    let digits = selector
        .iter()
        .rev()
        .fold(0, |digits, byte| digits << 4 | i64::from(*byte));
    e.i32(digits)
}

/// `prmt` with a selector that may differ between threads.
pub fn permute_bytes_by<'ctx>(
    e: &Emitter<'ctx>,
    low: V<'ctx>,
    high: V<'ctx>,
    selector: V<'ctx>,
) -> V<'ctx> {
    e.intrinsic("llvm.nvvm.prmt", &[], &[low, high, selector])
}

/// `redux.sync`.
pub fn combine_warp<'ctx>(
    e: &Emitter<'ctx>,
    combination: WarpCombination,
    word: V<'ctx>,
) -> V<'ctx> {
    let name = match combination {
        WarpCombination::Add => "llvm.nvvm.redux.sync.add",
        WarpCombination::And => "llvm.nvvm.redux.sync.and",
        WarpCombination::Or => "llvm.nvvm.redux.sync.or",
        WarpCombination::Xor => "llvm.nvvm.redux.sync.xor",
        WarpCombination::MinSigned => "llvm.nvvm.redux.sync.min",
        WarpCombination::MaxSigned => "llvm.nvvm.redux.sync.max",
        WarpCombination::MinUnsigned => "llvm.nvvm.redux.sync.umin",
        WarpCombination::MaxUnsigned => "llvm.nvvm.redux.sync.umax",
    };
    e.intrinsic(name, &[], &[word, e.i32(ALL_LANES)])
}

/// The intrinsic of a matrix access with `registers` 32-bit registers.
fn name(access: &MatrixAccess) -> Option<&'static str> {
    Some(match (access.name, access.registers) {
        ("ldmatrix", 1) => "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x1.b16",
        ("ldmatrix", 2) => "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x2.b16",
        ("ldmatrix", 4) => "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16",
        ("ldmatrix.trans", 1) => "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x1.trans.b16",
        ("ldmatrix.trans", 2) => "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x2.trans.b16",
        ("ldmatrix.trans", 4) => "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16",
        ("ldmatrix.trans.b8", 2) => "llvm.nvvm.ldmatrix.sync.aligned.m16n16.x1.trans.b8",
        ("ldmatrix.trans.b8", 4) => "llvm.nvvm.ldmatrix.sync.aligned.m16n16.x2.trans.b8",
        ("stmatrix", 1) => "llvm.nvvm.stmatrix.sync.aligned.m8n8.x1.b16",
        ("stmatrix", 2) => "llvm.nvvm.stmatrix.sync.aligned.m8n8.x2.b16",
        ("stmatrix", 4) => "llvm.nvvm.stmatrix.sync.aligned.m8n8.x4.b16",
        ("stmatrix.trans", 1) => "llvm.nvvm.stmatrix.sync.aligned.m8n8.x1.trans.b16",
        ("stmatrix.trans", 2) => "llvm.nvvm.stmatrix.sync.aligned.m8n8.x2.trans.b16",
        ("stmatrix.trans", 4) => "llvm.nvvm.stmatrix.sync.aligned.m8n8.x4.trans.b16",
        ("stmatrix.trans.b8", 1) => "llvm.nvvm.stmatrix.sync.aligned.m16n8.x1.trans.b8",
        ("stmatrix.trans.b8", 2) => "llvm.nvvm.stmatrix.sync.aligned.m16n8.x2.trans.b8",
        ("stmatrix.trans.b8", 4) => "llvm.nvvm.stmatrix.sync.aligned.m16n8.x4.trans.b8",
        _ => return None,
    })
}

/// `ldmatrix`.
pub fn load_matrix<'ctx>(
    e: &Emitter<'ctx>,
    access: &MatrixAccess,
    address: V<'ctx>,
) -> Option<Vec<V<'ctx>>> {
    let loaded = e.intrinsic(name(access)?, &[address.get_type()], &[address]);
    Some(match access.registers {
        1 => vec![loaded],
        several => (0..several).map(|i| e.member(loaded, i)).collect(),
    })
}

/// `stmatrix`.
pub fn store_matrix<'ctx>(
    e: &Emitter<'ctx>,
    access: &MatrixAccess,
    address: V<'ctx>,
    registers: &[V<'ctx>],
) -> bool {
    let Some(name) = name(access) else {
        return false;
    };
    let mut arguments = vec![address];
    arguments.extend_from_slice(registers);
    e.intrinsic_call(name, &[address.get_type()], &arguments);
    true
}

/// `cp.async` of 4, 8 or 16 bytes; the widest bypasses the first-level cache. It has no policy for the second-level cache:
/// what NVIDIA's assembler (12.8) makes of one for sm_90 is an illegal instruction on an H100.
pub fn async_copy<'ctx>(e: &Emitter<'ctx>, copy: &AsyncCopy<'ctx>) -> bool {
    let cache = match copy.bytes {
        4 | 8 => "ca",
        16 => "cg",
        _ => return false,
    };
    let mut constraints = vec!["r", "l"];
    let mut arguments = vec![copy.to, copy.from];
    let mut text = String::new();
    if let Some(acts) = copy.acts {
        constraints.push("b");
        arguments.push(acts);
        text.push_str("@$2 ");
    }
    let bytes = copy.bytes;
    let block = match copy.cached_block {
        Some(block @ (64 | 128 | 256)) => format!(".L2::{block}B"),
        _ => String::new(),
    };
    text.push_str(&format!(
        "cp.async.{cache}.shared.global{block} [ $0 + 0 ], [ $1 + 0 ], {bytes}"
    ));
    if let Some(mask) = copy.mask {
        // The source is ignored, and zeros are written. That is a predicate of the instruction (`LDGSTS`), as the number of
        // bytes to read is not: LLVM would choose that number by each of several conditions after the other.
        text.push_str(&format!(", !${}", arguments.len()));
        constraints.push("b");
        arguments.push(mask);
    }
    text.push(';');
    e.inline_asm(
        &text,
        &constraints.join(","),
        &[],
        &arguments,
        AsmEffect::Anything,
    );
    true
}
