// Wide iterations in front of a diagonal, where the number of tiles follows from that of the program: half of all programs have an odd
// one, which waits for memory. Of small blocks several are resident, and others compute meanwhile.
//
// RUN: llopt %s --wide-iterations="target=cuda:90 num-warps=4" | FileCheck %s

// CHECK-LABEL: @before_the_diagonal
// CHECK: scf.for {{.*}} step %c128_i32
// CHECK:   tt.dot {{.*}} : tensor<64x64xf16> * tensor<64x128xf16> -> tensor<64x128xf32>
// CHECK: scf.for {{.*}} step %c64_i32
// CHECK: } {llopt.rare, tt.num_stages = 1 : i32}

!q = tensor<64x64xf16>
!s = tensor<64x64xf32>
!d = !tt.tensordesc<tensor<64x64xf16>>

tt.func public @before_the_diagonal(%qs: !d, %ks: !d, %vs: !d) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %program = tt.get_program_id x : i32
  %n = arith.muli %program, %c64 : i32
  %zero = arith.constant dense<0.0> : !s
  %half = arith.constant dense<0.5> : !s
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
  }
  %l1 = tt.expand_dims %r#1 {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
  %l2 = tt.broadcast %l1 : tensor<64x1xf32> -> !s
  %o = arith.divf %r#0, %l2 : !s
  %stored = arith.truncf %o : !s to !q
  tt.descriptor_store %qs[%n, %c0], %stored : !d, !q
  tt.return
}
