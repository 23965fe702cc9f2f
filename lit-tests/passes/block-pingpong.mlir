// Halves of a block take turns in a pipelined loop of products: one multiplies while the other accesses memory.
//
// RUN: llopt %s --tritonamdgpu-block-pingpong=force=true --split-input-file | FileCheck %s
// RUN: llopt %s --tritonamdgpu-block-pingpong --split-input-file | FileCheck %s --check-prefix=MODEL
// RUN: llopt %s --tritonamdgpu-block-pingpong="force=true num-stages=1" --split-input-file | FileCheck %s --check-prefix=NEVER

#row = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 8], warpsPerCTA = [8, 1], order = [1, 0]}>
#wide = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 16], warpsPerCTA = [8, 1], order = [1, 0]}>
#mma = #ttg.amd_mfma<{version = 3, warpsPerCTA = [4, 2], instrShape = [16, 16, 16], isTransposed = true}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>
#shared = #ttg.swizzled_shared<{vec = 4, perPhase = 2, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
!p = tensor<64x32x!tt.ptr<f16>, #row>
!q = tensor<32x64x!tt.ptr<f16>, #wide>
!t = tensor<64x32xf16, #row>
!u = tensor<32x64xf16, #wide>
!x = !ttg.memdesc<64x32xf16, #shared, #smem, mutable>
!y = !ttg.memdesc<32x64xf16, #shared, #smem, mutable>
!sum = tensor<64x64xf32, #mma>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
  // The second half of the threads begins a barrier later. In the first cluster are the loads and all reads, since the
  // stores overwrite what is read; they have a cluster of their own, with products before and after it. Nothing is
  // moved into products or out of them, which have priority. A small block has room for a second one beside it.
  // CHECK-LABEL: @product
  // CHECK: %[[THREAD:.*]] = rocdl.workitem.id.x
  // CHECK: %[[HALF:.*]] = arith.constant 256
  // CHECK: %[[LATE:.*]] = arith.cmpi sge, %[[THREAD]], %[[HALF]]
  // CHECK: %[[EARLY:.*]] = arith.cmpi slt, %[[THREAD]], %[[HALF]]
  // CHECK: ttg.local_barrier
  // CHECK-NEXT: amdg.cond_barrier %[[LATE]]
  // CHECK-NEXT: scf.for
  // CHECK-COUNT-2: tt.load
  // CHECK-NOT: ttg.local_barrier
  // CHECK: ttg.memdesc_subslice {{.*}}[0, 0]
  // CHECK: ttg.memdesc_subslice {{.*}}[0, 0]
  // CHECK: ttg.memdesc_subslice {{.*}}[0, 16]
  // CHECK: ttg.memdesc_subslice {{.*}}[16, 0]
  // CHECK-NEXT: ttg.local_load
  // CHECK-NEXT: ttg.local_barrier
  // CHECK-NEXT: rocdl.sched.barrier 0
  // CHECK-NEXT: rocdl.s.setprio 1
  // CHECK-NEXT: %[[FIRST:.*]] = tt.dot
  // CHECK-NEXT: rocdl.s.setprio 0
  // CHECK-NEXT: rocdl.sched.barrier 0
  // CHECK-NEXT: ttg.local_barrier
  // CHECK-NEXT: ttg.local_store
  // CHECK-NEXT: ttg.local_store
  // CHECK-NEXT: ttg.local_barrier
  // CHECK: tt.dot {{.*}}, %[[FIRST]]
  // CHECK: ttg.local_barrier
  // CHECK-NEXT: scf.yield
  // CHECK: amdg.cond_barrier %[[EARLY]]
  // MODEL-LABEL: @product
  // MODEL-NOT: amdg.cond_barrier
  // NEVER-LABEL: @product
  // NEVER-NOT: amdg.cond_barrier
  tt.func public @product(%p: !p, %q: !q, %x: !x, %y: !y, %n: i32, %zero: !sum) -> !sum {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %step = arith.constant dense<32> : tensor<64x32xi32, #row>
    %down = arith.constant dense<2048> : tensor<32x64xi32, #wide>
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%ap = %p, %bp = %q, %sum = %zero) -> (!p, !q, !sum) : i32 {
      %a = tt.load %ap : !p
      %af = ttg.local_load %x : !x -> tensor<64x32xf16, #a>
      %bf = ttg.local_load %y : !y -> tensor<32x64xf16, #b>
      %b = tt.load %bp : !q
      %d = tt.dot %af, %bf, %sum : tensor<64x32xf16, #a> * tensor<32x64xf16, #b> -> !sum
      %an = tt.addptr %ap, %step : !p, tensor<64x32xi32, #row>
      %bn = tt.addptr %bp, %down : !q, tensor<32x64xi32, #wide>
      ttg.local_store %a, %x : !t -> !x
      ttg.local_store %b, %y : !u -> !y
      scf.yield %an, %bn, %d : !p, !q, !sum
    }
    tt.return %r#2 : !sum
  }

  // What the iteration before has loaded is stored; the next loads follow into the same registers.
  // CHECK-LABEL: @stored_later
  // CHECK: scf.for {{.*}} iter_args({{.*}}%[[B:[a-z0-9_]+]] = %{{[a-z0-9_]+}})
  // CHECK-NOT: tt.load
  // CHECK: tt.dot
  // CHECK: ttg.local_barrier
  // CHECK-NEXT: ttg.local_store %[[B]]
  // CHECK-NEXT: tt.load
  // CHECK-NEXT: ttg.local_barrier
  tt.func public @stored_later(%p: !p, %q: !t, %x: !x, %y: !y, %n: i32, %zero: !sum) -> !sum {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero, %before = %q) -> (!sum, !t) : i32 {
      %a = tt.load %p : !p
      %af = ttg.local_load %x : !x -> tensor<64x32xf16, #a>
      %bf = ttg.local_load %y : !y -> tensor<32x64xf16, #b>
      %d = tt.dot %af, %bf, %sum : tensor<64x32xf16, #a> * tensor<32x64xf16, #b> -> !sum
      ttg.local_store %before, %x : !t -> !x
      scf.yield %d, %a : !sum, !t
    }
    tt.return %r#0 : !sum
  }

  // What is stored before it is read has to be read behind it: the loop stays.
  // CHECK-LABEL: @stored_first
  // CHECK-NOT: amdg.cond_barrier
  tt.func public @stored_first(%p: !p, %x: !x, %y: !y, %n: i32, %zero: !sum) -> !sum {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (!sum) : i32 {
      %a = tt.load %p : !p
      ttg.local_store %a, %x : !t -> !x
      %af = ttg.local_load %x : !x -> tensor<64x32xf16, #a>
      %bf = ttg.local_load %y : !y -> tensor<32x64xf16, #b>
      %d = tt.dot %af, %bf, %sum : tensor<64x32xf16, #a> * tensor<32x64xf16, #b> -> !sum
      scf.yield %d : !sum
    }
    tt.return %r : !sum
  }

  // A factor that is computed from what was read would be computed by every part: the loop stays.
  // CHECK-LABEL: @computed_factor
  // CHECK-NOT: amdg.cond_barrier
  tt.func public @computed_factor(%p: !p, %x: !x, %y: !y, %n: i32, %zero: !sum) -> !sum {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (!sum) : i32 {
      %a = tt.load %p : !p
      %af = ttg.local_load %x : !x -> tensor<64x32xf16, #a>
      %bf = ttg.local_load %y : !y -> tensor<32x64xf16, #b>
      %an = arith.negf %af : tensor<64x32xf16, #a>
      %d = tt.dot %an, %bf, %sum : tensor<64x32xf16, #a> * tensor<32x64xf16, #b> -> !sum
      ttg.local_store %a, %x : !t -> !x
      scf.yield %d : !sum
    }
    tt.return %r : !sum
  }
}
