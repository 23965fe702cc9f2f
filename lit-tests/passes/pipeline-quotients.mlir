// A loop whose counter numbers blocks of channels and taps, as a convolution's.
//
// RUN: llopt %s --tritongpu-pipeline=num-stages=2 | FileCheck %s

#row = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
!p = tensor<64x64x!tt.ptr<f16>, #row>
!sum = tensor<64x64xf32, #mma>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
  // The load is a copy that goes ahead. In iterations that the program does not execute the division may have no meaning: for a
  // divisor of zero, and for the least number by minus one, it divides by one.
  // CHECK-LABEL: @taps
  // CHECK: scf.for
  // CHECK: ttg.async_wait
  // CHECK: %[[ZERO:.*]] = arith.cmpi eq, %[[N:.*]], %c0_i32{{.*}} : i32
  // CHECK: %[[LEAST:.*]] = arith.cmpi eq, %[[I:.*]], %c-2147483648_i32{{.*}} : i32
  // CHECK: %[[NEGATES:.*]] = arith.cmpi eq, %[[N]], %c-1_i32{{.*}} : i32
  // CHECK: %[[OVERFLOWS:.*]] = arith.andi %[[LEAST]], %[[NEGATES]]
  // CHECK: %[[NONE:.*]] = arith.ori %[[ZERO]], %[[OVERFLOWS]]
  // CHECK: %[[BY:.*]] = arith.select %[[NONE]], %c1_i32{{.*}}, %[[N]]
  // CHECK: arith.divsi %[[I]], %[[BY]]
  // CHECK: ttg.async_copy_global_to_local
  tt.func @taps(%p: !p {tt.divisibility = dense<[16, 16]> : tensor<2xi32>, tt.contiguity = dense<[1, 64]> : tensor<2xi32>}, %x: tensor<64x64xf16, #a>, %per_tap: i32, %n: i32) -> !sum {
    %zero = arith.constant dense<0.0> : !sum
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (!sum) : i32 {
      %tap = arith.divsi %i, %per_tap : i32
      %start = arith.muli %tap, %c64 : i32
      %starts = tt.splat %start : i32 -> tensor<64x64xi32, #row>
      %q = tt.addptr %p, %starts : !p, tensor<64x64xi32, #row>
      %b = tt.load %q : !p
      %y = ttg.convert_layout %b : tensor<64x64xf16, #row> -> tensor<64x64xf16, #b>
      %d = tt.dot %x, %y, %sum : tensor<64x64xf16, #a> * tensor<64x64xf16, #b> -> !sum
      scf.yield %d : !sum
    }
    tt.return %r : !sum
  }
}
