// A loop that asks for it is unrolled before layouts are chosen, whatever the target.

// RUN: llopt compile %s --target cuda:90 --emit ttgir | FileCheck %s
// RUN: llopt compile %s --target hip:gfx942 --emit ttgir | FileCheck %s
//
// CHECK: scf.for
// CHECK-COUNT-4: tt.load
// CHECK: } {tt.flatten}
// CHECK: scf.for
// CHECK-COUNT-1: tt.load
// CHECK: tt.num_stages = 1 : i32
tt.func public @walk(%p: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %width = arith.constant 128 : i32
  %range = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %zero = arith.constant dense<0> : tensor<128xi32>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (tensor<128xi32>) : i32 {
    %offset = arith.muli %i, %width : i32
    %from = tt.addptr %p, %offset : !tt.ptr<i32>, i32
    %all = tt.splat %from : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>>
    %at = tt.addptr %all, %range : tensor<128x!tt.ptr<i32>>, tensor<128xi32>
    %x = tt.load %at : tensor<128x!tt.ptr<i32>>
    %t = arith.addi %s, %x : tensor<128xi32>
    scf.yield %t : tensor<128xi32>
  } {tt.flatten, tt.loop_unroll_factor = 4 : i32}
  %all = tt.splat %p : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>>
  %at = tt.addptr %all, %range : tensor<128x!tt.ptr<i32>>, tensor<128xi32>
  tt.store %at, %sum : tensor<128x!tt.ptr<i32>>
  tt.return
}
