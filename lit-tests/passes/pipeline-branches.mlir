// A loop that multiplies where a flag says so.
//
// RUN: llopt %s --tritongpu-pipeline=num-stages=2 | FileCheck %s

#row = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
!p = tensor<64x64x!tt.ptr<f16>, #row>
!sum = tensor<64x64xf32, #mma>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
  // The load of the branch stands before it, under its condition, and is a copy to the ring; so the flag is loaded ahead. What
  // is read from the ring is read in the branch.
  // CHECK-LABEL: @sparse
  // CHECK: ttg.local_alloc : () -> !ttg.memdesc<{{[0-9]+}}x64x64xf16
  // CHECK: scf.for
  // CHECK: tt.load %{{.*}}, %{{.*}} : !tt.ptr<i1>
  // CHECK: ttg.async_wait
  // CHECK: %[[BOTH:.*]] = arith.andi {{.*}} : tensor<64x64xi1
  // CHECK: ttg.async_copy_global_to_local {{.*}} mask %[[BOTH]]
  // CHECK: scf.if
  // CHECK: ttg.memdesc_index
  // CHECK: %[[B:.*]] = ttg.local_load {{.*}} -> tensor<64x64xf16, #ttg.dot_op<{opIdx = 1
  // CHECK: tt.dot %{{.*}}, %[[B]]
  tt.func @sparse(%p: !p {tt.divisibility = dense<[16, 16]> : tensor<2xi32>, tt.contiguity = dense<[1, 64]> : tensor<2xi32>}, %x: tensor<64x64xf16, #a>, %flags: !tt.ptr<i1>, %n: i32) -> !sum {
    %zero = arith.constant dense<0.0> : !sum
    %step = arith.constant dense<64> : tensor<64x64xi32, #row>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%q = %p, %sum = %zero) -> (!p, !sum) : i32 {
      %at = tt.addptr %flags, %i : !tt.ptr<i1>, i32
      %keep = tt.load %at : !tt.ptr<i1>
      %next = scf.if %keep -> (!sum) {
        %b = tt.load %q : !p
        %y = ttg.convert_layout %b : tensor<64x64xf16, #row> -> tensor<64x64xf16, #b>
        %d = tt.dot %x, %y, %sum : tensor<64x64xf16, #a> * tensor<64x64xf16, #b> -> !sum
        scf.yield %d : !sum
      } else {
        scf.yield %sum : !sum
      }
      %q1 = tt.addptr %q, %step : !p, tensor<64x64xi32, #row>
      scf.yield %q1, %next : !p, !sum
    }
    tt.return %r#1 : !sum
  }
}
