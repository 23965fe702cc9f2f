//! What LLVM's scheduler is told of products.
//!
//! An MFMA keeps the matrix unit busy for 8 to 64 cycles, and a wave issues other instructions meanwhile. LLVM puts
//! addresses and masks of the loads of an iteration before its first product, and nothing but products at its end, where
//! each waits for the one before. Asked for one other instruction behind each product
//! (`llvm.amdgcn.sched.group.barrier`, LLVM AMDGPU usage, "LLVM IR Intrinsics"), it brings there what the next iteration
//! needs. One is enough: with more, operands are computed so early that they take other products' registers.

use llopt_target::{Feature, Target};

use crate::llvm::emitter::Emitter;

/// The kinds of instructions, as the intrinsic numbers them.
const VECTOR_OR_SCALAR: i64 = 0x2 | 0x4;
const PRODUCT: i64 = 0x8;
/// Groups that one place asks for at most: the search for their instructions takes the longer the more they are.
const MOST: u32 = 64;

/// Asks for an instruction that computes behind each of so many products; whether the target has such products.
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
