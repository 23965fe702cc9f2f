// A table of pages, which a separate warp reads for its copies.
//
// RUN: llopt compile %s --target cuda:90 --emit ttgir -o - | FileCheck %s
// RUN: llopt compile %s --target cuda:90 -o - | FileCheck %s --check-prefix=PTX
// RUN: llopt explain %s --target cuda:90 | FileCheck %s --check-prefix=EXPLAIN

// In the code of the loops the producer has the only load: LLVM removes that of the threads that multiply, which use no page.
// PTX: ld.global
// PTX: cp.async.bulk.tensor
// PTX: ld.global
// PTX-NOT: ld.global

// EXPLAIN: Loop ({{.*}}) is pipelined in {{[0-9]+}} stages
// EXPLAIN-NEXT: addresses depend on 1 loads, which run ahead of the loads that need them
// EXPLAIN: partitions 1 warp issues the copies of 1 loops
module {
  // The producer loads the number of the next page before it waits for the next buffer.
  // CHECK-LABEL: @scores
  // CHECK: ttg.warp_specialize
  // CHECK: default
  // CHECK: scf.for
  // CHECK: ttng.warp_group_dot
  // CHECK: partition0(
  // CHECK: scf.for
  // CHECK: tt.load %{{.*}} : !tt.ptr<i32>
  // CHECK: ttng.wait_barrier
  // CHECK: ttng.async_tma_copy_global_to_local
  tt.func public @scores(%q: !tt.tensordesc<tensor<64x64xf16>>, %pool: !tt.tensordesc<tensor<64x64xf16>>, %table: !tt.ptr<i32>, %out: !tt.tensordesc<tensor<64x64xf32>>, %n: i32) {
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %rows = tt.descriptor_load %q[%c0, %c0] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<64x64xf32>) : i32 {
      %at = tt.addptr %table, %i : !tt.ptr<i32>, i32
      %page = tt.load %at : !tt.ptr<i32>
      %first = arith.muli %page, %c64 : i32
      %b = tt.descriptor_load %pool[%first, %c0] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
      %t = tt.trans %b {order = array<i32: 1, 0>} : tensor<64x64xf16> -> tensor<64x64xf16>
      %next = tt.dot %rows, %t, %sum : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %next : tensor<64x64xf32>
    } {tt.warp_specialize}
    tt.descriptor_store %out[%c0, %c0], %r : !tt.tensordesc<tensor<64x64xf32>>, tensor<64x64xf32>
    tt.return
  }
}
