// Loads that only the work on products' results needs are one iteration ahead, in registers.
//
// RUN: llopt %s --tritongpu-pipeline=num-stages=3 | FileCheck %s

#row = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#of_rows = #ttg.slice<{dim = 1, parent = #mma}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!p = tensor<64x64x!tt.ptr<f16>, #row>
!b = !ttg.memdesc<64x64xf16, #shared, #smem>
!scales = tensor<64x!tt.ptr<f32>, #of_rows>
!sum = tensor<64x64xf32, #mma>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // The scales of the first iteration are loaded before the loop, if there is one. In an iteration those of the next one are
  // loaded before the product, which is scaled with what the loop carries.
  // CHECK-LABEL: @scaled
  // CHECK: tt.load {{.*}} : tensor<64x!tt.ptr<f32>
  // CHECK: scf.for
  // CHECK: ttg.async_copy_global_to_local
  // CHECK: %[[NEXT:.*]] = tt.load %{{.*}}, %{{.*}} : tensor<64x!tt.ptr<f32>
  // CHECK: ttng.warp_group_dot
  // CHECK: tt.expand_dims %[[SCALES:arg[0-9]+]] {{.*}} : tensor<64xf32
  // CHECK-NOT: tt.load
  // CHECK: scf.yield {{.*}}%[[NEXT]]
  tt.func @scaled(%p: !p {tt.divisibility = dense<[16, 16]> : tensor<2xi32>, tt.contiguity = dense<[1, 64]> : tensor<2xi32>}, %s: !b, %scales: !scales, %n: i32) -> !sum {
    %zero = arith.constant dense<0.0> : !sum
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %steps = arith.constant dense<4096> : tensor<64x64xi32, #row>
    %rows = arith.constant dense<64> : tensor<64xi32, #of_rows>
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero, %q = %p, %at = %scales) -> (!sum, !p, !scales) : i32 {
      %b = tt.load %q : !p
      %t = ttg.local_alloc %b : (tensor<64x64xf16, #row>) -> !b
      %d = ttng.warp_group_dot %s, %t, %zero {inputPrecision = 0 : i32} : !b * !b -> !sum
      %scale = tt.load %at : !scales
      %column = tt.expand_dims %scale {axis = 1 : i32} : tensor<64xf32, #of_rows> -> tensor<64x1xf32, #mma>
      %all = tt.broadcast %column : tensor<64x1xf32, #mma> -> !sum
      %scaled = arith.mulf %d, %all : !sum
      %next = arith.addf %sum, %scaled : !sum
      %following = tt.addptr %q, %steps : !p, tensor<64x64xi32, #row>
      %below = tt.addptr %at, %rows : !scales, tensor<64xi32, #of_rows>
      scf.yield %next, %following, %below : !sum, !p, !scales
    }
    tt.return %r#0 : !sum
  }

  // In a loop that runs twice they stay where they are.
  // CHECK-LABEL: @twice
  // CHECK: scf.for
  // CHECK: ttng.warp_group_dot
  // CHECK: %[[SCALES:.*]] = tt.load %{{[a-z0-9]+}} : tensor<64x!tt.ptr<f32>
  // CHECK: tt.expand_dims %[[SCALES]]
  tt.func @twice(%p: !p {tt.divisibility = dense<[16, 16]> : tensor<2xi32>, tt.contiguity = dense<[1, 64]> : tensor<2xi32>}, %s: !b, %scales: !scales) -> !sum {
    %zero = arith.constant dense<0.0> : !sum
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %steps = arith.constant dense<4096> : tensor<64x64xi32, #row>
    %rows = arith.constant dense<64> : tensor<64xi32, #of_rows>
    %r:3 = scf.for %i = %c0 to %c2 step %c1 iter_args(%sum = %zero, %q = %p, %at = %scales) -> (!sum, !p, !scales) : i32 {
      %b = tt.load %q : !p
      %t = ttg.local_alloc %b : (tensor<64x64xf16, #row>) -> !b
      %d = ttng.warp_group_dot %s, %t, %zero {inputPrecision = 0 : i32} : !b * !b -> !sum
      %scale = tt.load %at : !scales
      %column = tt.expand_dims %scale {axis = 1 : i32} : tensor<64xf32, #of_rows> -> tensor<64x1xf32, #mma>
      %all = tt.broadcast %column : tensor<64x1xf32, #mma> -> !sum
      %scaled = arith.mulf %d, %all : !sum
      %next = arith.addf %sum, %scaled : !sum
      %following = tt.addptr %q, %steps : !p, tensor<64x64xi32, #row>
      %below = tt.addptr %at, %rows : !scales, tensor<64xi32, #of_rows>
      scf.yield %next, %following, %below : !sum, !p, !scales
    }
    tt.return %r#0 : !sum
  }
}
