//! Hints about products to LLVM's scheduler.
//!
//! An MFMA keeps the matrix unit busy for 8 to 64 cycles, and a wave can issue other instructions meanwhile. LLVM
//! places the addresses and masks of the loads of an iteration before its first product, and only products at its
//! end, where each waits for the one before. If it is asked for one other instruction after each product
//! (`llvm.amdgcn.sched.group.barrier`, LLVM AMDGPU usage, "LLVM IR Intrinsics"), it moves instructions for the next
//! iteration there. One is enough: with more, operands are computed so early that they take the registers of other
//! products.

use llopt_target::{Feature, Target};

use crate::llvm::emitter::Emitter;

/// The kinds of instructions, as numbered by the intrinsic.
const VECTOR_OR_SCALAR: i64 = 0x2 | 0x4;
const PRODUCT: i64 = 0x8;
/// The largest number of groups at one place: the search for their instructions takes longer the more there are.
const MOST: u32 = 64;

/// Asks for a computing instruction after each of so many products; returns whether the target has such products.
pub fn beside_products(e: &Emitter<'_>, target: Target, products: u32) -> bool {
    if !target.has(Feature::Mfma) {
        return false;
    }
    for _ in 0..products.min(MOST) {
        for kinds in [PRODUCT, VECTOR_OR_SCALAR] {
            let fields = [kinds, 1, 0].map(|field| e.i32(field));
            e.intrinsic_call("llvm.amdgcn.sched.group.barrier", &[], &fields);
        }
    }
    true
}
