// A loop of unknown length (the rest of the wide iterations) behind one whose copies have a warp of their own: what that warp did
// is part of the state that recurs, though the warp has ended.
//
// RUN: llopt prove %s --target cuda:90 --num-warps 4 | FileCheck %s

// CHECK: ordered in all executions: [[N:[0-9]+]] of [[N]]

!q = tensor<64x64xf16>
!s = tensor<64x64xf32>
!d = !tt.tensordesc<tensor<64x64xf16>>

tt.func public @attention(%qs: !d, %ks: !d, %vs: !d, %os: !d, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : !s
  %least = arith.constant dense<0xFF800000> : tensor<64xf32>
  %one = arith.constant dense<1.0> : tensor<64xf32>
  %q = tt.descriptor_load %qs[%c0, %c0] : !d -> !q
  %r:4 = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero, %l = %one, %m = %least, %at = %c0) -> (!s, tensor<64xf32>, tensor<64xf32>, i32) : i32 {
    %k = tt.descriptor_load %ks[%at, %c0] : !d -> !q
    %kt = tt.trans %k {order = array<i32: 1, 0>} : !q -> !q
    %s = tt.dot %q, %kt, %zero : !q * !q -> !s
    %row = "tt.reduce"(%s) <{axis = 1 : i32}> ({
    ^bb0(%x: f32, %y: f32):
      %z = arith.maxnumf %x, %y : f32
      tt.reduce.return %z : f32
    }) : (!s) -> tensor<64xf32>
    %next = arith.maxnumf %m, %row : tensor<64xf32>
    %next1 = tt.expand_dims %next {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
    %next2 = tt.broadcast %next1 : tensor<64x1xf32> -> !s
    %d = arith.subf %s, %next2 : !s
    %p = math.exp2 %d : !s
    %up = arith.subf %m, %next : tensor<64xf32>
    %alpha = math.exp2 %up : tensor<64xf32>
    %sum = "tt.reduce"(%p) <{axis = 1 : i32}> ({
    ^bb0(%x: f32, %y: f32):
      %z = arith.addf %x, %y : f32
      tt.reduce.return %z : f32
    }) : (!s) -> tensor<64xf32>
    %alpha1 = tt.expand_dims %alpha {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
    %alpha2 = tt.broadcast %alpha1 : tensor<64x1xf32> -> !s
    %scaled_acc = arith.mulf %acc, %alpha2 : !s
    %v = tt.descriptor_load %vs[%at, %c0] : !d -> !q
    %h = arith.truncf %p : !s to !q
    %acc2 = tt.dot %h, %v, %scaled_acc : !q * !q -> !s
    %l1 = arith.mulf %l, %alpha : tensor<64xf32>
    %l2 = arith.addf %l1, %sum : tensor<64xf32>
    %at2 = arith.addi %at, %c64 : i32
    scf.yield %acc2, %l2, %next, %at2 : !s, tensor<64xf32>, tensor<64xf32>, i32
  } {tt.warp_specialize}
  %l1 = tt.expand_dims %r#1 {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
  %l2 = tt.broadcast %l1 : tensor<64x1xf32> -> !s
  %o = arith.divf %r#0, %l2 : !s
  %h = arith.truncf %o : !s to !q
  tt.descriptor_store %os[%c0, %c0], %h : !d, !q
  tt.return
}
