// Kernels that wait for the one before them where they first access global memory.
//
// RUN: llopt %s --split-input-file --dependent-launch | FileCheck %s

// Numbers and shared memory do not depend on the kernel before.
// CHECK-LABEL: @loads
// CHECK: tt.get_program_id
// CHECK: ttg.local_alloc
// CHECK-NOT: tt.grid
// CHECK: ttng.init_barrier
// CHECK: tt.grid_dependency_wait
// CHECK-NEXT: tt.load
// CHECK-NOT: tt.grid
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @loads(%p: !tt.ptr<i32>) {
    %x = tt.get_program_id x : i32
    %at = tt.addptr %p, %x : !tt.ptr<i32>, i32
    %b = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #shared, #smem, mutable>
    ttng.init_barrier %b, 1 : !ttg.memdesc<1xi64, #shared, #smem, mutable>
    %v = tt.load %at : !tt.ptr<i32>
    tt.store %at, %v : !tt.ptr<i32>
    tt.return
  }
}

// -----

// Blocks that access nothing on one path wait as well: the wait is before the branch.
// CHECK-LABEL: @returns_early
// CHECK: arith.cmpi
// CHECK-NEXT: tt.grid_dependency_wait
// CHECK-NEXT: cf.cond_br
tt.func public @returns_early(%p: !tt.ptr<i32>, %n: i32) {
  %x = tt.get_program_id x : i32
  %out = arith.cmpi sge, %x, %n : i32
  cf.cond_br %out, ^end, ^work
^work:
  %at = tt.addptr %p, %x : !tt.ptr<i32>, i32
  tt.store %at, %x : !tt.ptr<i32>
  tt.return
^end:
  tt.return
}

// -----

// An op with regions that access global memory counts as one that does.
// CHECK-LABEL: @in_a_loop
// CHECK: tt.grid_dependency_wait
// CHECK-NEXT: scf.for
tt.func public @in_a_loop(%p: !tt.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %at = tt.addptr %p, %i : !tt.ptr<i32>, i32
    tt.store %at, %i : !tt.ptr<i32>
  }
  tt.return
}

// -----

// Both branches of a choice wait, each where it first accesses memory, or at its end.
// CHECK-LABEL: @chooses
// CHECK: llvm.intr.assume
// CHECK-NEXT: scf.if
// CHECK-NEXT: arith.addi
// CHECK-NEXT: tt.grid_dependency_wait
// CHECK-NEXT: tt.store
// CHECK: else
// CHECK-NEXT: tt.grid_dependency_wait
// CHECK-NEXT: scf.yield
// CHECK-NOT: tt.grid
tt.func public @chooses(%p: !tt.ptr<i32>, %n: i32, %b: i1) {
  llvm.intr.assume %b : i1
  %r = scf.if %b -> i32 {
    %m = arith.addi %n, %n : i32
    tt.store %p, %m : !tt.ptr<i32>
    scf.yield %m : i32
  } else {
    scf.yield %n : i32
  }
  tt.store %p, %r : !tt.ptr<i32>
  tt.return
}

// -----

// A kernel without accesses waits at its end, since what follows it relies on the end of all kernels before it.
// CHECK-LABEL: @nothing
// CHECK-NEXT: tt.grid_dependency_wait
// CHECK-NEXT: tt.return
tt.func public @nothing() {
  tt.return
}

// -----

// Who waits already knows better where.
// CHECK-LABEL: @waits
// CHECK: tt.load
// CHECK-NEXT: tt.grid_dependency_wait
// CHECK-NOT: tt.grid
tt.func public @waits(%p: !tt.ptr<i32>, %q: !tt.ptr<i32>) {
  %v = tt.load %p : !tt.ptr<i32>
  tt.grid_dependency_wait
  tt.store %q, %v : !tt.ptr<i32>
  tt.return
}

// -----

// A launch of one wave of blocks: what a copy reads once is brought into the cache before the wait, and what other
// copies read is not. The next launch may start where the loop of products ends.
// CHECK-LABEL: @single_wave
// CHECK: ttng.async_tma_prefetch %arg1[%{{.*}}, %{{.*}}] %[[B:.*]], %{{.*}} : !tt.tensordesc<tensor<64x64xf16>>
// CHECK-NEXT: %[[AT:.*]] = arith.addi
// CHECK-NEXT: ttng.async_tma_prefetch %arg1[%{{.*}}, %[[AT]]] %[[B]]
// CHECK-NEXT: tt.grid_dependency_wait
// CHECK-NEXT: ttng.async_tma_copy_global_to_local %arg0
// CHECK: ttng.async_tma_copy_global_to_local %arg1
// CHECK: scf.for
// CHECK: ttng.warp_group_dot
// CHECK: }
// CHECK-NEXT: tt.grid_dependency_launch_dependents
#nvmma = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#barrier = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#smem2 = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32, "ttg.single-wave"} {
  tt.func public @single_wave(%a: !tt.tensordesc<tensor<64x64xf16>>, %b: !tt.tensordesc<tensor<64x64xf16>>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %true = arith.constant true
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %full = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #barrier, #smem2, mutable>
    ttng.init_barrier %full, 1 : !ttg.memdesc<1xi64, #barrier, #smem2, mutable>
    %x = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #nvmma, #smem2, mutable>
    %y = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #nvmma, #smem2, mutable>
    ttng.async_tma_copy_global_to_local %a[%c0, %c0] %x, %full, %true : !tt.tensordesc<tensor<64x64xf16>>, !ttg.memdesc<1xi64, #barrier, #smem2, mutable> -> !ttg.memdesc<64x64xf16, #nvmma, #smem2, mutable>
    ttng.async_tma_copy_global_to_local %b[%c0, %c0] %y, %full, %true evictionPolicy = evict_first : !tt.tensordesc<tensor<64x64xf16>>, !ttg.memdesc<1xi64, #barrier, #smem2, mutable> -> !ttg.memdesc<64x64xf16, #nvmma, #smem2, mutable>
    %at = arith.addi %n, %c64 : i32
    ttng.async_tma_copy_global_to_local %b[%c0, %at] %y, %full, %true evictionPolicy = evict_first : !tt.tensordesc<tensor<64x64xf16>>, !ttg.memdesc<1xi64, #barrier, #smem2, mutable> -> !ttg.memdesc<64x64xf16, #nvmma, #smem2, mutable>
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
      %d = ttng.warp_group_dot %x, %y, %acc : !ttg.memdesc<64x64xf16, #nvmma, #smem2, mutable> * !ttg.memdesc<64x64xf16, #nvmma, #smem2, mutable> -> tensor<64x64xf32, #mma>
      scf.yield %d : tensor<64x64xf32, #mma>
    }
    tt.return
  }
}
