// What products read of the loop around theirs, as the rows of queries in attention, comes through a ring of its own, which
// the producer fills for the next program while this one is computed.
//
// RUN: llopt compile %s --target cuda:90 --num-warps 8 --num-stages 2 --persistent on --emit ttgir -o - | FileCheck %s
// RUN: llopt prove %s --target cuda:90 --num-warps 8 --num-stages 2 --persistent on --order | FileCheck %s --check-prefix=PROVE
// RUN: sed -e 's/%%narrow = .*//' -e 's/%%narrow : .*f16>/%%result : !tt.tensordesc<tensor<128x128xf32>>, tensor<128x128xf32>/' -e 's/%%o: !tt.tensordesc<tensor<128x128xf16>>/%%o: !tt.tensordesc<tensor<128x128xf32>>/' %s > %t
// RUN: llopt compile %t --target cuda:90 --num-warps 8 --num-stages 2 --persistent on --emit ttgir -o - | FileCheck %s --check-prefix=ONE
// RUN: llopt prove %t --target cuda:90 --num-warps 8 --num-stages 2 --persistent on --order | FileCheck %s --check-prefix=PROVE

// PROVE: ordered in all executions: [[ALL:[0-9]+]] of [[ALL]]

// The result of twice as many bytes leaves room for one slot only: it is filled while the program before is stored.
// ONE: %[[ROWS:.*]] = ttg.local_alloc : () -> !ttg.memdesc<1x128x128xf16
// ONE: ttg.warp_specialize
// ONE: ttg.memdesc_index %[[ROWS]]

module {
  // CHECK-LABEL: @around
  // Three rings.
  // CHECK-COUNT-3: ttg.local_alloc : () -> !ttg.memdesc<2x128x128xf16
  // CHECK: ttg.warp_specialize(
  // The slot and its phase are counted by programs; it is released after the last product.
  // CHECK: scf.for {{.*}} iter_args(%{{.*}}, %{{.*}}, %[[SLOT:[^ ]*]] = %{{.*}}, %[[PHASE:[^ ]*]] = %
  // CHECK: %[[OWN:.*]] = ttg.memdesc_index %{{.*}}[%[[SLOT]]] : !ttg.memdesc<2x128x128xf16
  // CHECK: ttng.wait_barrier %{{.*}}, %[[PHASE]]
  // CHECK: ttng.warp_group_dot %[[OWN]]
  // CHECK: scf.for
  // CHECK: ttng.warp_group_dot %[[OWN]]
  // CHECK: ttng.warp_group_dot_wait {{.*}}pendings = 0
  // CHECK: } else {
  // CHECK: %[[EMPTY:.*]] = ttg.memdesc_index %{{.*}}[%[[SLOT]]]
  // CHECK-NEXT: ttng.arrive_barrier %[[EMPTY]], 8
  // CHECK: ttng.async_tma_copy_local_to_global
  // CHECK: partition0
  // CHECK: scf.for {{.*}} iter_args(%{{.*}}, %{{.*}}, %[[SLOT:[^ ]*]] = %{{.*}}, %[[PHASE:[^ ]*]] = %
  // CHECK: ttng.wait_barrier %{{.*}}, %[[PHASE]]
  // CHECK: ttng.barrier_expect %{{.*}}, 32768
  // CHECK: %[[OWN:.*]] = ttg.memdesc_index %{{.*}}[%[[SLOT]]] : !ttg.memdesc<2x128x128xf16
  // CHECK: ttng.async_tma_copy_global_to_local %{{.*}} %[[OWN]]
  // CHECK: scf.for
  tt.func public @around(%q: !tt.tensordesc<tensor<128x128xf16>>, %k: !tt.tensordesc<tensor<128x128xf16>>, %v: !tt.tensordesc<tensor<128x128xf16>>, %o: !tt.tensordesc<tensor<128x128xf16>>, %n: i32) {
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %least = arith.constant dense<-1000.0> : tensor<128xf32>
    %low = arith.constant dense<-2.0> : tensor<128x128xf32>
    %high = arith.constant dense<2.0> : tensor<128x128xf32>
    %keep = arith.constant dense<1.0> : tensor<128xf32>
    %turn = arith.constant dense<-1.0> : tensor<128xf32>
    %c0 = arith.constant 0 : i32
    %c128 = arith.constant 128 : i32
    %program = tt.get_program_id x : i32
    %m0 = arith.muli %program, %c128 : i32
    %rows = tt.descriptor_load %q[%m0, %c0] : !tt.tensordesc<tensor<128x128xf16>> -> tensor<128x128xf16>
    %r:2 = scf.for %i = %c0 to %n step %c128 iter_args(%acc = %zero, %before = %least) -> (tensor<128x128xf32>, tensor<128xf32>) : i32 {
      %b = tt.descriptor_load %k[%i, %c0] : !tt.tensordesc<tensor<128x128xf16>> -> tensor<128x128xf16>
      %t = tt.trans %b {order = array<i32: 1, 0>} : tensor<128x128xf16> -> tensor<128x128xf16>
      %s = tt.dot %rows, %t, %zero : tensor<128x128xf16> * tensor<128x128xf16> -> tensor<128x128xf32>
      %m = "tt.reduce"(%s) <{axis = 1 : i32}> ({
      ^bb0(%x: f32, %y: f32):
        %z = arith.maxnumf %x, %y : f32
        tt.reduce.return %z : f32
      }) : (tensor<128x128xf32>) -> tensor<128xf32>
      %grows = arith.cmpf ogt, %m, %before : tensor<128xf32>
      %sign = arith.select %grows, %keep, %turn : tensor<128xi1>, tensor<128xf32>
      %column = tt.expand_dims %sign {axis = 1 : i32} : tensor<128xf32> -> tensor<128x1xf32>
      %signs = tt.broadcast %column : tensor<128x1xf32> -> tensor<128x128xf32>
      %turned = arith.mulf %acc, %signs : tensor<128x128xf32>
      %above = arith.maxnumf %s, %low : tensor<128x128xf32>
      %inside = arith.minnumf %above, %high : tensor<128x128xf32>
      %w = arith.truncf %inside : tensor<128x128xf32> to tensor<128x128xf16>
      %c = tt.descriptor_load %v[%i, %c0] : !tt.tensordesc<tensor<128x128xf16>> -> tensor<128x128xf16>
      %next = tt.dot %w, %c, %turned : tensor<128x128xf16> * tensor<128x128xf16> -> tensor<128x128xf32>
      scf.yield %next, %m : tensor<128x128xf32>, tensor<128xf32>
    }
    %column = tt.expand_dims %r#1 {axis = 1 : i32} : tensor<128xf32> -> tensor<128x1xf32>
    %largest = tt.broadcast %column : tensor<128x1xf32> -> tensor<128x128xf32>
    %result = arith.addf %r#0, %largest : tensor<128x128xf32>
    %narrow = arith.truncf %result : tensor<128x128xf32> to tensor<128x128xf16>
    tt.descriptor_store %o[%m0, %c0], %narrow : !tt.tensordesc<tensor<128x128xf16>>, tensor<128x128xf16>
    tt.return
  }
}
