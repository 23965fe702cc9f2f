// Two products in a chain, as in attention: the first one of the next iteration runs beside the second one of this.
//
// RUN: llopt compile %s --target cuda:90 --num-warps 8 --num-stages 2 --emit ttgir -o - | FileCheck %s
// RUN: llopt explain %s --target cuda:90 --num-warps 8 --num-stages 2 | FileCheck %s --check-prefix=EXPLAIN
// RUN: llopt explain %s --target cuda:90 --num-warps 4 --num-stages 2 | FileCheck %s --check-prefix=FEW

// EXPLAIN: Loop ({{.*}}) is pipelined in 3 stages (2 are asked for, and more cost nothing): 2 copies and 0 loads through registers, 3 buffers for each, 196608 bytes; 0 products run on
// EXPLAIN-NEXT: interval 2048 cycles
// EXPLAIN-NEXT: predicted an iteration takes about
// EXPLAIN-NEXT: ahead the first product and what follows from it, an iteration
// EXPLAIN-NEXT: partitions 1 warp issues the copies of 1 loops; its threads keep 24 registers

// Four warps have too few registers for sums and scores of so many rows.
// FEW: ahead no product: it takes about 408 registers, of which a thread has 255

module {
  // Before the loop the scores of the first iteration, in a branch for there may be none.
  // CHECK-LABEL: @chain
  // CHECK: ttg.warp_specialize
  // CHECK: scf.if
  // CHECK: ttng.wait_barrier
  // CHECK: ttng.warp_group_dot {{.*}}isAsync = true
  // CHECK-NEXT: ttng.warp_group_dot_wait {{.*}}pendings = 0
  // CHECK: "tt.reduce"
  // The sum is changed before both products. The first is complete when one is left running, and the scores become
  // weights beside that.
  // CHECK: scf.for
  // CHECK: arith.mulf
  // CHECK: ttng.wait_barrier
  // CHECK-NEXT: %[[SCORES:.*]] = ttng.warp_group_dot {{.*}}isAsync = true
  // CHECK-NEXT: ttng.wait_barrier
  // CHECK-NEXT: %[[SUM:.*]] = ttng.warp_group_dot {{.*}}isAsync = true
  // CHECK-NEXT: ttng.warp_group_dot_wait %[[SCORES]] {pendings = 1
  // CHECK: ttng.arrive_barrier
  // CHECK: "tt.reduce"
  // CHECK: arith.truncf
  // CHECK: ttng.warp_group_dot_wait %[[SUM]], %{{.*}} {pendings = 0
  // CHECK: ttng.arrive_barrier
  // CHECK-NEXT: scf.yield
  // The second product of the last iteration stands behind.
  // CHECK: ttng.wait_barrier
  // CHECK-NEXT: ttng.warp_group_dot
  // CHECK-NEXT: ttng.warp_group_dot_wait {{.*}}pendings = 0
  tt.func public @chain(%q: !tt.tensordesc<tensor<128x128xf16>>, %k: !tt.tensordesc<tensor<128x128xf16>>, %v: !tt.tensordesc<tensor<128x128xf16>>, %o: !tt.tensordesc<tensor<128x128xf32>>, %first: i32, %n: i32) {
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %least = arith.constant dense<-1000.0> : tensor<128xf32>
    %low = arith.constant dense<-2.0> : tensor<128x128xf32>
    %high = arith.constant dense<2.0> : tensor<128x128xf32>
    %keep = arith.constant dense<1.0> : tensor<128xf32>
    %turn = arith.constant dense<-1.0> : tensor<128xf32>
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 128 : i32
    %rows = tt.descriptor_load %q[%c0, %c0] : !tt.tensordesc<tensor<128x128xf16>> -> tensor<128x128xf16>
    %r:2 = scf.for %i = %first to %n step %c64 iter_args(%acc = %zero, %before = %least) -> (tensor<128x128xf32>, tensor<128xf32>) : i32 {
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
    tt.descriptor_store %o[%c0, %c0], %result : !tt.tensordesc<tensor<128x128xf32>>, tensor<128x128xf32>
    tt.return
  }
}
