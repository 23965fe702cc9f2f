//! Named barriers, and reassignment of registers between groups of warps.
//!
//! PTX ISA, "bar, barrier" and "setmaxnreg".

use super::Nvptx;
use crate::llvm::emitter::{AsmEffect, Emitter, V};
use crate::targets::hooks::{Hooks, PartitionHooks};

impl PartitionHooks for Nvptx {
    fn barrier_of<'ctx>(&self, e: &Emitter<'ctx>, id: u32, threads: u32) {
        let arguments = [e.i32(i64::from(id)), e.i32(i64::from(threads))];
        e.intrinsic_call("llvm.nvvm.barrier.cta.sync.aligned.count", &[], &arguments);
    }

    /// Not `.aligned`, which says that all threads are at one place: compute-sanitizer reports those that are not.
    fn barrier_of_all<'ctx>(&self, e: &Emitter<'ctx>, id: u32) {
        let id = e.i32(i64::from(id));
        e.intrinsic_call("llvm.nvvm.barrier.cta.sync.all", &[], &[id]);
    }

    fn barriers(&self) -> u32 {
        16
    }

    fn change_registers<'ctx>(&self, e: &Emitter<'ctx>, from: u32, to: u32) {
        let how = match to.cmp(&from) {
            std::cmp::Ordering::Less => "dec",
            std::cmp::Ordering::Equal => return,
            std::cmp::Ordering::Greater => "inc",
        };
        let text = format!("setmaxnreg.{how}.sync.aligned.u32 {to};");
        e.inline_asm(&text, "", &[], &[], AsmEffect::Together);
    }

    fn of_warp<'ctx>(&self, e: &Emitter<'ctx>, word: V<'ctx>) -> V<'ctx> {
        self.shuffle_from(e, word, e.i32(0))
    }
}
