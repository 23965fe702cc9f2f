// Copies from shared memory to a tensor, in a loop with products: the wait for one comes an iteration later.
//
// RUN: llopt compile %s --target cuda:90 --num-warps 4 --num-stages 2 --emit ttgir -o - | FileCheck %s

module {
  // The buffer outlives the iteration, and is filled when the copy of the iteration before has been read from it.
  // CHECK-LABEL: @scores
  // CHECK: %[[BUFFER:.*]] = ttg.local_alloc : () -> !ttg.memdesc<64x64xf32, {{.*}}mutable>
  // CHECK: scf.for
  // CHECK: ttng.warp_group_dot
  // CHECK: ttng.async_tma_store_wait {pendings = 0
  // CHECK-NEXT: ttg.local_store %{{.*}}, %[[BUFFER]]
  // CHECK: ttng.async_tma_copy_local_to_global %{{.*}} %[[BUFFER]]
  // CHECK-NOT: ttng.async_tma_store_wait
  // CHECK: scf.yield
  // CHECK: ttng.async_tma_store_wait {pendings = 0
  tt.func public @scores(%q: !tt.tensordesc<tensor<64x64xf16>>, %k: !tt.tensordesc<tensor<64x64xf16>>, %o: !tt.tensordesc<tensor<64x64xf32>>, %n: i32) {
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    %rows = tt.descriptor_load %q[%c0, %c0] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
    scf.for %i = %c0 to %n step %c64 : i32 {
      %b = tt.descriptor_load %k[%i, %c0] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
      %t = tt.trans %b {order = array<i32: 1, 0>} : tensor<64x64xf16> -> tensor<64x64xf16>
      %s = tt.dot %rows, %t, %zero : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
      tt.descriptor_store %o[%c0, %i], %s : !tt.tensordesc<tensor<64x64xf32>>, tensor<64x64xf32>
    }
    tt.return
  }
}
