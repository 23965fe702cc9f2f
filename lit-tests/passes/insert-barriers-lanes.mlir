// RUN: llopt %s --allocate-shared-memory --insert-barriers | FileCheck %s

// Each warp arrives at a barrier in memory for itself, by one of its lanes. The others must meet it before that only if they have
// done something that the arrival must follow.

#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#barrier = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // The matrix unit has read the buffer for the whole warp group, and no lane is still waiting.

  // CHECK-LABEL: tt.func public @read_by_products
  // CHECK: ttng.arrive_barrier {{.*}}barrier.by_warp, barrier.lanes_have_met
  tt.func public @read_by_products(%n: i32) -> tensor<64x64xf32, #mma> {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %none = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %buffer = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    %full = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #barrier, #smem, mutable>
    %empty = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #barrier, #smem, mutable>
    ttng.init_barrier %full, 1 : !ttg.memdesc<1xi64, #barrier, #smem, mutable>
    ttng.init_barrier %empty, 4 : !ttg.memdesc<1xi64, #barrier, #smem, mutable>
    %sum = scf.for %i = %zero to %n step %one iter_args(%old = %none) -> (tensor<64x64xf32, #mma>) : i32 {
      %phase = arith.andi %i, %one : i32
      ttng.wait_barrier %full, %phase : !ttg.memdesc<1xi64, #barrier, #smem, mutable>
      %new = ttng.warp_group_dot %buffer, %buffer, %old {inputPrecision = 0 : i32, isAsync = true} : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> * !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf32, #mma>
      %done = ttng.warp_group_dot_wait %new {pendings = 0 : i32} : tensor<64x64xf32, #mma>
      ttng.arrive_barrier %empty, 4 {barrier.by_warp} : !ttg.memdesc<1xi64, #barrier, #smem, mutable>
      scf.yield %done : tensor<64x64xf32, #mma>
    }
    tt.return %sum : tensor<64x64xf32, #mma>
  }

  // Lanes have read it.

  // CHECK-LABEL: tt.func public @read_by_lanes
  // CHECK: ttng.arrive_barrier {{.*}}{barrier.by_warp}
  tt.func public @read_by_lanes(%to: tensor<64x64x!tt.ptr<f16>, #blocked>, %n: i32) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %buffer = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    %full = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #barrier, #smem, mutable>
    %empty = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #barrier, #smem, mutable>
    ttng.init_barrier %full, 1 : !ttg.memdesc<1xi64, #barrier, #smem, mutable>
    ttng.init_barrier %empty, 4 : !ttg.memdesc<1xi64, #barrier, #smem, mutable>
    scf.for %i = %zero to %n step %one : i32 {
      %phase = arith.andi %i, %one : i32
      ttng.wait_barrier %full, %phase : !ttg.memdesc<1xi64, #barrier, #smem, mutable>
      %x = ttg.local_load %buffer : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf16, #blocked>
      tt.store %to, %x : tensor<64x64x!tt.ptr<f16>, #blocked>
      ttng.arrive_barrier %empty, 4 {barrier.by_warp} : !ttg.memdesc<1xi64, #barrier, #smem, mutable>
    }
    tt.return
  }

  // Nothing is between the wait and the arrival, so a lane may still be waiting.

  // CHECK-LABEL: tt.func public @only_waited
  // CHECK: ttng.arrive_barrier {{.*}}{barrier.by_warp}
  tt.func public @only_waited(%n: i32) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %full = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #barrier, #smem, mutable>
    %empty = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #barrier, #smem, mutable>
    ttng.init_barrier %full, 1 : !ttg.memdesc<1xi64, #barrier, #smem, mutable>
    ttng.init_barrier %empty, 4 : !ttg.memdesc<1xi64, #barrier, #smem, mutable>
    scf.for %i = %zero to %n step %one : i32 {
      %phase = arith.andi %i, %one : i32
      ttng.wait_barrier %full, %phase : !ttg.memdesc<1xi64, #barrier, #smem, mutable>
      ttng.arrive_barrier %empty, 4 {barrier.by_warp} : !ttg.memdesc<1xi64, #barrier, #smem, mutable>
    }
    tt.return
  }
}
