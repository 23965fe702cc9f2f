// Where halves of a block take turns, two accesses need two barriers between them.
//
// RUN: llopt %s --allocate-shared-memory --insert-barriers | FileCheck %s

#row = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [64], warpsPerCTA = [8], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
!t = tensor<512xf32, #row>
!m = !ttg.memdesc<512xf32, #shared, #smem, mutable>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
  // The read has two barriers before and after it, so nothing is missing.
  // CHECK-LABEL: @two
  // CHECK: amdg.cond_barrier
  // CHECK-NEXT: scf.for
  // CHECK-NEXT: ttg.local_load
  // CHECK-NEXT: ttg.local_barrier
  // CHECK-NEXT: ttg.local_barrier
  // CHECK-NEXT: ttg.local_store
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: ttg.local_barrier
  // CHECK-NEXT: }
  // CHECK-NEXT: amdg.cond_barrier
  tt.func public @two(%x: !t, %n: i32, %late: i1, %early: i1) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %m = ttg.local_alloc : () -> !m
    amdg.cond_barrier %late
    scf.for %i = %zero to %n step %one : i32 {
      %y = ttg.local_load %m : !m -> !t
      ttg.local_barrier
      ttg.local_barrier
      ttg.local_store %x, %m : !t -> !m
      gpu.barrier
      ttg.local_barrier
    }
    amdg.cond_barrier %early
    tt.return
  }

  // One is not enough; the pair that is inserted would be enough without it. Behind the region one barrier is.
  // CHECK-LABEL: @one
  // CHECK: ttg.local_load
  // CHECK-NEXT: ttg.local_barrier
  // CHECK-NEXT: ttg.local_barrier
  // CHECK-NEXT: ttg.local_barrier
  // CHECK-NEXT: ttg.local_store
  // CHECK-NEXT: amdg.cond_barrier
  // CHECK-NEXT: ttg.local_barrier
  // CHECK-NEXT: ttg.local_load
  tt.func public @one(%x: !t, %late: i1, %early: i1) {
    %m = ttg.local_alloc : () -> !m
    amdg.cond_barrier %late
    %y = ttg.local_load %m : !m -> !t
    ttg.local_barrier
    ttg.local_store %x, %m : !t -> !m
    amdg.cond_barrier %early
    %z = ttg.local_load %m : !m -> !t
    tt.return
  }
}
