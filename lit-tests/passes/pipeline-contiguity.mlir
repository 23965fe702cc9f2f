// Copies whose elements are contiguous along another dimension than that which a thread's registers count first.
//
// RUN: llopt %s --tritongpu-pipeline=num-stages=2 | FileCheck %s

#row = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#tall = #ttg.blocked<{sizePerThread = [4, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [0, 1]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
!rows = tensor<64x64x!tt.ptr<f16>, #row>
!tall = tensor<64x64x!tt.ptr<f16>, #tall>
!sum = tensor<64x64xf32, #mma>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
  // A copy promises how many registers that follow one another are contiguous: eight of the first tensor, one of the second, in which
  // such registers are rows. What is known of its addresses makes pieces of eight columns of it.
  // CHECK-LABEL: @factors
  // CHECK: scf.for
  // CHECK: ttg.async_copy_global_to_local {{.*}} {contiguity = 8 : i32, {{.*}}} : tensor<64x64x!tt.ptr<f16>, #blocked>
  // CHECK: ttg.async_copy_global_to_local %{{[0-9]+}}, %{{[0-9]+}} mask %{{[0-9]+}} {pipeline.cached_block = 256 : i32} : tensor<64x64x!tt.ptr<f16>, #blocked1>
  tt.func @factors(%p: !rows {tt.divisibility = dense<[16, 16]> : tensor<2xi32>, tt.contiguity = dense<[1, 64]> : tensor<2xi32>}, %q: !tall {tt.divisibility = dense<[16, 16]> : tensor<2xi32>, tt.contiguity = dense<[1, 64]> : tensor<2xi32>}, %n: i32) -> !sum {
    %zero = arith.constant dense<0.0> : !sum
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (!sum) : i32 {
      %start = arith.muli %i, %c64 : i32
      %row_starts = tt.splat %start : i32 -> tensor<64x64xi32, #row>
      %x_pointers = tt.addptr %p, %row_starts : !rows, tensor<64x64xi32, #row>
      %x = tt.load %x_pointers : !rows
      %tall_starts = tt.splat %start : i32 -> tensor<64x64xi32, #tall>
      %y_pointers = tt.addptr %q, %tall_starts : !tall, tensor<64x64xi32, #tall>
      %y = tt.load %y_pointers : !tall
      %x_factor = ttg.convert_layout %x : tensor<64x64xf16, #row> -> tensor<64x64xf16, #a>
      %y_factor = ttg.convert_layout %y : tensor<64x64xf16, #tall> -> tensor<64x64xf16, #b>
      %d = tt.dot %x_factor, %y_factor, %sum : tensor<64x64xf16, #a> * tensor<64x64xf16, #b> -> !sum
      scf.yield %d : !sum
    }
    tt.return %r : !sum
  }
}
