//! Hints about products to LLVM's scheduler.
//!
//! An MFMA keeps the matrix unit busy for 8 to 64 cycles, and a wave can issue other instructions meanwhile. LLVM
//! places the addresses and masks of the loads of an iteration before its first product, and only products at its
//! end, where each waits for the one before. If it is asked for other instructions after products
//! (`llvm.amdgcn.sched.group.barrier`, LLVM AMDGPU usage, "LLVM IR Intrinsics"), it moves instructions for the next
//! iteration there.
//!
//! # Groups
//!
//! LLVM tests for each candidate of each group whether an edge closes a circle, before and after it allocates registers, so
//! half as many groups take it less time. A group has `TOGETHER` products, and `BESIDE` others follow. These numbers were
//! chosen by the cycles of loops, which all others that were tried make longer on some target
//! (`docs/performance/compile-time.md`).

use llopt_target::{Feature, Target};

use crate::llvm::emitter::Emitter;

/// The kinds of instructions, as numbered by the intrinsic.
const VECTOR_OR_SCALAR: i64 = 0x2 | 0x4;
const PRODUCT: i64 = 0x8;
/// Products of one group.
const TOGETHER: u32 = 2;
/// The instructions asked for after them.
const BESIDE: u32 = 3;
/// The largest number of products at one place that have groups: the search for their instructions takes longer the more there
/// are.
const MOST: u32 = 64;

/// Asks for computing instructions after each few of so many products; returns whether the target has such products.
pub fn beside_products(e: &Emitter<'_>, target: Target, products: u32) -> bool {
    if !target.has(Feature::Mfma) {
        return false;
    }
    for _ in 0..products.min(MOST).div_ceil(TOGETHER) {
        for (kinds, count) in [(PRODUCT, TOGETHER), (VECTOR_OR_SCALAR, BESIDE)] {
            let fields = [kinds, i64::from(count), 0].map(|field| e.i32(field));
            e.intrinsic_call("llvm.amdgcn.sched.group.barrier", &[], &fields);
        }
    }
    true
}
