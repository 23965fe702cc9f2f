// Loads that addresses depend on go ahead of the loads that need them.
//
// RUN: llopt %s --tritongpu-pipeline=num-stages=3 | FileCheck %s

#row = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!p = tensor<64x64x!tt.ptr<f16>, #row>
!b = !ttg.memdesc<64x64xf16, #shared, #smem>
!sum = tensor<64x64xf32, #mma>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // Each page is known an iteration before its copy is issued, behind the product. The loop carries the number of the next
  // page, and loads the one after it, if there is such an iteration, before it waits for copies. The mask has both
  // conditions: that of being ahead of the copy, and that of the copy.
  // CHECK-LABEL: @pages
  // CHECK: scf.for
  // CHECK: %[[NEXT:.*]] = tt.load %{{.*}}, %{{.*}} : !tt.ptr<i32>
  // CHECK: ttg.async_wait
  // CHECK: ttng.warp_group_dot
  // CHECK: arith.muli %[[PAGE:arg[0-9]+]], %{{.*}} : i32
  // CHECK: ttg.async_copy_global_to_local
  // CHECK: scf.yield {{.*}}%[[NEXT]],
  tt.func @pages(%p: !p {tt.divisibility = dense<[16, 16]> : tensor<2xi32>, tt.contiguity = dense<[1, 64]> : tensor<2xi32>}, %s: !b, %table: !tt.ptr<i32>, %n: i32) -> !sum {
    %zero = arith.constant dense<0.0> : !sum
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c4096 = arith.constant 4096 : i32
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (!sum) : i32 {
      %at = tt.addptr %table, %i : !tt.ptr<i32>, i32
      %page = tt.load %at : !tt.ptr<i32>
      %first = arith.muli %page, %c4096 : i32
      %firsts = tt.splat %first : i32 -> tensor<64x64xi32, #row>
      %q = tt.addptr %p, %firsts : !p, tensor<64x64xi32, #row>
      %b = tt.load %q : !p
      %t = ttg.local_alloc %b : (tensor<64x64xf16, #row>) -> !b
      %next = ttng.warp_group_dot %s, %t, %sum {inputPrecision = 0 : i32} : !b * !b -> !sum
      scf.yield %next : !sum
    }
    tt.return %r : !sum
  }
}
