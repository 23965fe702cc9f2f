// Data that go through registers while a product of warp groups runs are held for an iteration: they are stored after the
// next ones are loaded.
//
// RUN: llopt %s --tritongpu-pipeline=num-stages=3 | FileCheck %s
// RUN: llopt %s --tritongpu-pipeline=num-stages=2 | FileCheck %s --check-prefix=TWO

#row = #ttg.blocked<{sizePerThread = [1, 16], threadsPerWarp = [16, 2], warpsPerCTA = [4, 1], order = [1, 0]}>
#column = #ttg.blocked<{sizePerThread = [16, 1], threadsPerWarp = [2, 16], warpsPerCTA = [1, 4], order = [0, 1]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 32]}>
#a = #ttg.nvmma_shared<{swizzlingByteWidth = 32, transposed = false, elementBitWidth = 8}>
#b = #ttg.nvmma_shared<{swizzlingByteWidth = 32, transposed = true, elementBitWidth = 8}>
#smem = #ttg.shared_memory
!p = tensor<64x32x!tt.ptr<i8>, #row>
!q = tensor<32x64x!tt.ptr<i8>, #column>
!sum = tensor<64x64xi32, #mma>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // Of two iterations, one is stored before the loop, and the data of the other are carried into it.
  // CHECK-LABEL: @held
  // CHECK-COUNT-2: ttg.local_store
  // CHECK: scf.for
  // CHECK: ttng.warp_group_dot
  // CHECK: %[[A:.*]] = tt.load
  // CHECK: %[[B:.*]] = tt.load
  // CHECK: ttng.warp_group_dot_wait
  // CHECK: ttg.local_store %arg
  // CHECK: ttg.local_store %arg
  // CHECK: scf.yield {{.*}}%[[A]]{{.*}}%[[B]]
  // With two stages the next iteration reads what this one loads.
  // TWO: scf.for
  // TWO: %[[A:.*]] = tt.load
  // TWO: %[[B:.*]] = tt.load
  // TWO: ttng.warp_group_dot
  // TWO: ttg.local_store %[[A]]
  // TWO: ttg.local_store %[[B]]
  tt.func @held(%p: !p, %q: !q, %n: i32) -> !sum {
    %zero = arith.constant dense<0> : !sum
    %down = arith.constant dense<32> : tensor<64x32xi32, #row>
    %across = arith.constant dense<32> : tensor<32x64xi32, #column>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %p, %y = %q, %sum = %zero) -> (!p, !q, !sum) : i32 {
      %u = tt.load %x : !p
      %v = tt.load %y : !q
      %a = ttg.local_alloc %u : (tensor<64x32xi8, #row>) -> !ttg.memdesc<64x32xi8, #a, #smem>
      %b = ttg.local_alloc %v : (tensor<32x64xi8, #column>) -> !ttg.memdesc<32x64xi8, #b, #smem>
      %d = ttng.warp_group_dot %a, %b, %sum : !ttg.memdesc<64x32xi8, #a, #smem> * !ttg.memdesc<32x64xi8, #b, #smem> -> !sum
      %x1 = tt.addptr %x, %down : !p, tensor<64x32xi32, #row>
      %y1 = tt.addptr %y, %across : !q, tensor<32x64xi32, #column>
      scf.yield %x1, %y1, %d : !p, !q, !sum
    }
    tt.return %r#2 : !sum
  }
}
