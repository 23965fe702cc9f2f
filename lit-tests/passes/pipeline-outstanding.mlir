// Loads through registers stay outstanding for an iteration more where one iteration does not hide their latency.
//
// RUN: llopt %s --tritongpu-pipeline=num-stages=2 | FileCheck %s
// RUN: llopt %s --tritongpu-pipeline=num-stages=2 --triton-loop-unroll | FileCheck %s --check-prefix=UNROLLED
// RUN: llopt %s --tritongpu-pipeline=num-stages=2 --triton-loop-unroll --canonicalize --cse | FileCheck %s --check-prefix=GROUPS

#row = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = true}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>
!p = tensor<64x64x!tt.ptr<f16>, #row>
!sum = tensor<64x64xf32, #mma>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
  // There is one buffer for each factor, and the loads of two iterations before the loop. An iteration issues its loads,
  // multiplies, and stores what the iteration before has loaded.
  // CHECK-LABEL: @product
  // CHECK-COUNT-2: ttg.local_alloc : () -> !ttg.memdesc<1x64x64xf16
  // CHECK-COUNT-2: tt.load
  // CHECK-COUNT-2: tt.load
  // CHECK-COUNT-2: ttg.local_store
  // CHECK: scf.for {{.*}} iter_args({{.*}}%[[A:[a-z0-9_]+]] = %{{[a-z0-9_]+}}, %[[B:[a-z0-9_]+]] = %{{[a-z0-9_]+}})
  // CHECK-COUNT-2: tt.load
  // CHECK-COUNT-2: ttg.local_load
  // CHECK: tt.dot
  // CHECK: ttg.local_store %[[A]]
  // CHECK: ttg.local_store %[[B]]
  // CHECK: scf.yield
  // CHECK: tt.loop_unroll_factor = 2

  // Two iterations as one: each stores what the other has loaded.
  // UNROLLED-LABEL: @product
  // UNROLLED: scf.for {{.*}} iter_args({{.*}}%[[A:[a-z0-9_]+]] = %{{[a-z0-9_]+}}, %[[B:[a-z0-9_]+]] = %{{[a-z0-9_]+}})
  // UNROLLED: %[[A1:.*]] = tt.load
  // UNROLLED: %[[B1:.*]] = tt.load
  // UNROLLED: ttg.local_store %[[A]]
  // UNROLLED: ttg.local_store %[[B]]
  // UNROLLED: %[[A2:.*]] = tt.load
  // UNROLLED: %[[B2:.*]] = tt.load
  // UNROLLED: ttg.local_store %[[A1]]
  // UNROLLED: ttg.local_store %[[B1]]
  // UNROLLED: scf.yield {{.*}}%[[A2]], %[[B2]]

  // The loop ends with a whole group of two iterations, before loads would be behind the end, and masks nothing. One loop runs
  // the others, two to three of them, with masks: there is none for what fills no group, and one for the last iterations.
  // GROUPS-LABEL: @product
  // GROUPS-SAME: %[[N:[a-z0-9]+]]: i32
  // GROUPS: %[[PAIRS:.*]] = arith.divui %{{.*}}, %c2
  // GROUPS: %[[CUT:.*]] = arith.muli %[[PAIRS]], %c2
  // GROUPS: scf.for %{{.*}} = %c0{{.*}} to %[[CUT]] step %c2
  // GROUPS-COUNT-4: tt.load %{{[a-z0-9_]+}} : tensor
  // GROUPS: scf.yield
  // GROUPS: scf.for %[[I:.*]] = %[[CUT]] to %[[N]] step
  // GROUPS: %[[REST:.*]] = arith.subi %[[N]], %[[I]]
  // GROUPS: %[[IS:.*]] = arith.cmpi ugt, %[[REST]], %c2
  // GROUPS: %[[MASK:.*]] = tt.splat %[[IS]]
  // GROUPS-COUNT-2: tt.load %{{[a-z0-9_]+}}, %[[MASK]] : tensor
  // GROUPS: tt.dot
  // GROUPS-COUNT-2: ttg.local_store
  // GROUPS: llopt.rare
  // GROUPS-NOT: scf.for
  // GROUPS: tt.return
  tt.func @product(%n: i32, %pa: !p {tt.contiguity = dense<[1, 64]> : tensor<2xi32>, tt.divisibility = dense<16> : tensor<2xi32>}, %pb: !p {tt.contiguity = dense<[1, 64]> : tensor<2xi32>, tt.divisibility = dense<16> : tensor<2xi32>}, %by: i32 {tt.divisibility = 16 : i32}) -> !sum {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %step = tt.splat %by : i32 -> tensor<64x64xi32, #row>
    %zero = arith.constant dense<0.0> : !sum
    %r:3 = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero, %qa = %pa, %qb = %pb) -> (!sum, !p, !p) : i32 {
      %va = tt.load %qa : !p
      %vb = tt.load %qb : !p
      %da = ttg.convert_layout %va : tensor<64x64xf16, #row> -> tensor<64x64xf16, #a>
      %db = ttg.convert_layout %vb : tensor<64x64xf16, #row> -> tensor<64x64xf16, #b>
      %d = tt.dot %da, %db, %acc : tensor<64x64xf16, #a> * tensor<64x64xf16, #b> -> !sum
      %na = tt.addptr %qa, %step : !p, tensor<64x64xi32, #row>
      %nb = tt.addptr %qb, %step : !p, tensor<64x64xi32, #row>
      scf.yield %d, %na, %nb : !sum, !p, !p
    }
    tt.return %r#0 : !sum
  }
}
