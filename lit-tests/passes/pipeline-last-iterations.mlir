// Where a mask costs an instruction for each access, the last iterations of a pipelined loop have a loop of their own.
//
// RUN: llopt %s --tritongpu-pipeline=num-stages=2 | FileCheck %s

#row = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = true}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>
!p = tensor<64x64x!tt.ptr<f16>, #row>
!sum = tensor<64x64xf32, #mma>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
  // The first tiles are loaded if there is an iteration. The loop ends before the last iteration and masks nothing, and a
  // second loop goes on from there, with nothing to load or to store.
  // CHECK-LABEL: @long
  // CHECK-SAME: %[[N:[a-z0-9]+]]: i32
  // CHECK-COUNT-2: tt.load {{.*}}, %{{.*}} : tensor
  // CHECK: %[[FIRST:.*]]:{{[0-9]+}} = scf.for %{{.*}} = %c0{{.*}} to %[[CUT:.*]] step
  // CHECK: tt.load %{{[a-z0-9_]+}} : tensor
  // CHECK: tt.load %{{[a-z0-9_]+}} : tensor
  // CHECK: tt.dot
  // CHECK-COUNT-2: ttg.local_store
  // CHECK: scf.for %{{.*}} = %[[CUT]] to %[[N]] step {{.*}} iter_args(%{{.*}} = %[[FIRST]]#
  // CHECK-NOT: tt.load
  // CHECK-NOT: ttg.local_store
  // CHECK: tt.dot
  // CHECK: scf.yield
  tt.func @long(%n: i32, %pa: !p, %pb: !p, %step: tensor<64x64xi32, #row>) -> !sum {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
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

  // Two iterations do not pay for the code of one more.
  // CHECK-LABEL: @short
  // CHECK: scf.for
  // CHECK-NOT: scf.for
  // CHECK: tt.return
  tt.func @short(%pa: !p, %pb: !p, %step: tensor<64x64xi32, #row>) -> !sum {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %zero = arith.constant dense<0.0> : !sum
    %r:3 = scf.for %k = %c0 to %c2 step %c1 iter_args(%acc = %zero, %qa = %pa, %qb = %pb) -> (!sum, !p, !p) : i32 {
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
