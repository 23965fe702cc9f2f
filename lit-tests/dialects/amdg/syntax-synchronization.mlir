// What is printed is what was read, character by character, from text and from bytecode.
// RUN: llopt %s --split-input-file --verify-roundtrip | grep -v '^ *\(//.*\)*$' > %t.printed
// RUN: grep -v '^ *\(//.*\)*$' %s | diff - %t.printed

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
  // Barriers of a block and in shared memory.
  tt.func @barriers(%arg0: !ttg.memdesc<1xi64, #shared, #smem, mutable>, %arg1: i32, %arg2: i1) -> i32 {
    amdg.cond_barrier %arg2
    amdg.init_barrier %arg0, 4 : !ttg.memdesc<1xi64, #shared, #smem, mutable>
    %0 = amdg.arrive_barrier %arg0, 1 : !ttg.memdesc<1xi64, #shared, #smem, mutable> -> i32
    amdg.wait_barrier %arg0, %arg1 : !ttg.memdesc<1xi64, #shared, #smem, mutable>
    amdg.async_copy_mbarrier_arrive %arg0 : !ttg.memdesc<1xi64, #shared, #smem, mutable>
    tt.return %0 : i32
  }

  // Waits for asynchronous copies and for counters, and hints to the scheduler.
  tt.func @waits(%arg0: !ttg.async.token) attributes {clamp = #amdg.amdgcn.set.fp8.clamping} {
    %0 = amdg.async_wait %arg0 {num_inst = 2 : i32}
    %1 = amdg.async_wait {num_inst = 0 : i32}
    amdg.memory_counter_wait load(1) store(2) ds(0)
    amdg.memory_counter_wait load(1)
    amdg.memory_counter_wait ds(0)
    amdg.instruction_sched_hint {variant = #amdg.SchedHintVariant<none>}
    amdg.instruction_sched_hint {variant = #amdg.SchedHintVariant<attention>}
    tt.return
  }
}
