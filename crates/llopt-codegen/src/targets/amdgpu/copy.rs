//! Asynchronous copies from global memory to LDS.
//!
//! A load to LDS has no register that a use could wait for. It counts as a load (`vmcnt`), and loads complete in
//! order: `s_waitcnt vmcnt(n)` waits until at most `n` of the loads of the wave are outstanding (CDNA3 ISA,
//! S_WAITCNT). Other loads and stores count too; they make a wait longer than needed, never too short.
//!
//! LLVM knows that these loads write to LDS, but not when these data are read. So it is conservative: it waits for
//! all of them before an access of LDS that may alias theirs, and before a barrier, whose fences make what this wave
//! has written visible to others. Both would make every copy wait for itself in the next iteration of a loop. The
//! program has its own waits, and barriers between conflicting accesses (`barrier` in the transforms), so LLVM is
//! told
//!
//! - by alias scopes, that no other access of LDS aliases these loads;
//! - that the fences of barriers order global memory (`amdgpu-synchronize-as`, LLVM AMDGPU usage, "Memory Model
//!   Relaxation Annotations"). For LDS the barrier waits explicitly, for all accesses but the copies.
//!
//! The optimiser of the IR still treats such a fence as one for all memory.

use inkwell::values::{
    AnyValue, BasicValueEnum, CallSiteValue, InstructionOpcode, InstructionValue,
};
use llopt_plan::element::space;
use llopt_target::Target;

use super::memory;
use crate::llvm::c_api::AliasScope;
use crate::llvm::emitter::Emitter;
use crate::llvm::instructions::called;
use crate::targets::hooks::{CopySource, WarpCopy};

const GLOBAL_COPY: &str = "llvm.amdgcn.global.load.lds";
const BUFFER_COPY: &str = "llvm.amdgcn.raw.ptr.buffer.load.lds";
const BARRIER: &str = "llvm.amdgcn.s.barrier";
const WAIT: &str = "llvm.amdgcn.s.waitcnt";

/// The operand of `s_waitcnt` on gfx9: bits 0-3 and 14-15 for loads, 4-6 for exports, 8-11 for LDS and scalar loads.
/// A counter's largest value waits for nothing.
mod counters {
    const EXPORTS: u32 = 7 << 4;
    const LDS: u32 = 15 << 8;
    const LOADS: u32 = 15 | 3 << 14;

    /// Waits until at most so many loads are outstanding.
    pub fn loads(most: u32) -> i64 {
        // 63 would wait for nothing. The hardware does not have more than 63 outstanding loads, but this code does
        // not rely on that.
        let most = most.min(62);
        i64::from(EXPORTS | LDS | most & 15 | most >> 4 << 14)
    }

    /// Waits for all accesses of LDS.
    pub fn lds() -> i64 {
        i64::from(EXPORTS | LOADS)
    }
}

/// A load that writes to LDS: the wave gives one address, and the data of its lanes are contiguous from there.
pub fn start<'ctx>(e: &Emitter<'ctx>, target: Target, copy: &WarpCopy<'ctx>) {
    // If LLVM does not know that an address is the same in all lanes, it takes that of the first lane.
    let to = copy.to;
    let (bytes, zero) = (e.i32(i64::from(copy.bytes)), e.i32(0));
    let cache = e.i32(memory::cache_bits(target, copy.caching, true));
    match copy.from {
        CopySource::Pointer(from) => {
            e.intrinsic_call(GLOBAL_COPY, &[], &[from, to, bytes, zero, cache])
        }
        CopySource::Buffer { descriptor, offset } => {
            let arguments = [descriptor, to, bytes, offset, zero, zero, cache];
            e.intrinsic_call(BUFFER_COPY, &[], &arguments)
        }
    };
}

/// No load or store of global memory is moved over this point when instructions are scheduled.
pub fn end_group<'ctx>(e: &Emitter<'ctx>) -> InstructionValue<'ctx> {
    // These may be moved: arithmetic (1), vector (2) and scalar (4) instructions, matrix products (8), accesses of
    // LDS (0x380), transcendental functions (0x400).
    const MAY_MOVE: i64 = 0x78f;
    let call = e.intrinsic_call("llvm.amdgcn.sched.barrier", &[], &[e.i32(MAY_MOVE)]);
    instruction(call.0)
}

/// Waits for all loads.
pub fn wait<'ctx>(e: &Emitter<'ctx>) -> InstructionValue<'ctx> {
    instruction(e.intrinsic_call(WAIT, &[], &[e.i32(counters::loads(0))]).0)
}

/// Sets a wait to wait until at most so many loads are outstanding.
pub fn set_wait<'ctx>(e: &Emitter<'ctx>, wait: InstructionValue<'ctx>, most: u32) {
    let operand = e.i32(counters::loads(most)).into_int_value();
    let is_set = wait.set_operand(0, operand);
    debug_assert!(is_set);
}

/// Tells LLVM that only the program's waits order the copies of a function and its other accesses of LDS.
pub fn keep_apart(e: &Emitter<'_>) {
    let copies = AliasScope::new(e.context);
    let function = e.function();
    for block in function.get_basic_block_iter() {
        let mut next = block.get_first_instruction();
        while let Some(instruction) = next {
            next = instruction.get_next_instruction();
            match called(instruction).as_deref() {
                Some(GLOBAL_COPY | BUFFER_COPY) => copies.contain(instruction),
                Some(BARRIER) => wait_for_lds_alone(e, instruction),
                _ if accesses_lds(instruction) => copies.exclude(instruction),
                _ => {}
            }
        }
    }
}

/// Makes a barrier wait for all accesses of LDS except copies.
fn wait_for_lds_alone<'ctx>(e: &Emitter<'ctx>, barrier: InstructionValue<'ctx>) {
    let words = ["amdgpu-synchronize-as", "global"];
    let words = words.map(|word| e.context.metadata_string(word).into());
    let only_global = e.context.metadata_node(&words);
    let around = [
        barrier.get_previous_instruction(),
        barrier.get_next_instruction(),
    ];
    for fence in around.into_iter().flatten() {
        if fence.get_opcode() == InstructionOpcode::Fence {
            fence
                .set_metadata(only_global, e.context.get_kind_id("mmra"))
                .expect("bug in llopt: the metadata is a node");
        }
    }
    let place = e.block();
    e.builder().position_before(&barrier);
    e.intrinsic_call(WAIT, &[], &[e.i32(counters::lds())]);
    e.enter(place);
}

/// Whether an instruction reads or writes LDS at an address that it is given.
fn accesses_lds(instruction: InstructionValue<'_>) -> bool {
    let pointer = match instruction.get_opcode() {
        InstructionOpcode::Load
        | InstructionOpcode::AtomicRMW
        | InstructionOpcode::AtomicCmpXchg
        | InstructionOpcode::Call => 0,
        InstructionOpcode::Store => 1,
        _ => return false,
    };
    matches!(
        instruction.get_operand(pointer).and_then(|operand| operand.value()),
        Some(BasicValueEnum::PointerValue(pointer))
            if pointer.get_type().get_address_space() == space::SHARED.into()
    )
}

fn instruction(call: CallSiteValue<'_>) -> InstructionValue<'_> {
    call.as_any_value_enum().into_instruction_value()
}
