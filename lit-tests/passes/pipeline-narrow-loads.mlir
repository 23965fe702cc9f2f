// Loads that are too narrow for asynchronous copies go through registers. They stay in their iteration where enough other
// blocks compute while one waits for them.
//
// RUN: llopt compile %s --target cuda:90 --emit ttgir -o - | FileCheck %s
// RUN: llopt explain %s --target cuda:90 | FileCheck %s --check-prefix=WHY

// Five blocks of 16 x 64 are resident. With registers for the next iteration's loads there would be fewer.
// WHY: is not pipelined: other blocks hide the latency of its loads.
// CHECK-LABEL: @small
// CHECK-NOT: tt.load
// CHECK: scf.for
// CHECK: tt.load
// CHECK: tt.load
// CHECK: tt.dot
module {
  tt.func public @small(%a: !tt.ptr<bf16>, %b: !tt.ptr<bf16>, %c: !tt.ptr<f32>, %n: i32, %down: i32, %across: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<16x64xf32>
    %i = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
    %j = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %row = tt.expand_dims %i {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
    %k = tt.expand_dims %i {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
    %column = tt.expand_dims %j {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %downs = tt.splat %down : i32 -> tensor<16x1xi32>
    %rows = arith.muli %row, %downs : tensor<16x1xi32>
    %r1 = tt.broadcast %rows : tensor<16x1xi32> -> tensor<16x16xi32>
    %k1 = tt.broadcast %k : tensor<1x16xi32> -> tensor<16x16xi32>
    %at_a = arith.addi %r1, %k1 : tensor<16x16xi32>
    %as = tt.splat %a : !tt.ptr<bf16> -> tensor<16x16x!tt.ptr<bf16>>
    %ap = tt.addptr %as, %at_a : tensor<16x16x!tt.ptr<bf16>>, tensor<16x16xi32>
    %acrosses = tt.splat %across : i32 -> tensor<1x64xi32>
    %columns = arith.muli %column, %acrosses : tensor<1x64xi32>
    %j1 = tt.broadcast %columns : tensor<1x64xi32> -> tensor<16x64xi32>
    %i1 = tt.broadcast %row : tensor<16x1xi32> -> tensor<16x64xi32>
    %at_b = arith.addi %i1, %j1 : tensor<16x64xi32>
    %bs = tt.splat %b : !tt.ptr<bf16> -> tensor<16x64x!tt.ptr<bf16>>
    %bp = tt.addptr %bs, %at_b : tensor<16x64x!tt.ptr<bf16>>, tensor<16x64xi32>
    %step_a = arith.constant dense<16> : tensor<16x16xi32>
    %step_b = arith.constant dense<16> : tensor<16x64xi32>
    %all:3 = scf.for %t = %c0 to %n step %c1 iter_args(%sum = %zero, %p = %ap, %q = %bp) -> (tensor<16x64xf32>, tensor<16x16x!tt.ptr<bf16>>, tensor<16x64x!tt.ptr<bf16>>) : i32 {
      %x = tt.load %p : tensor<16x16x!tt.ptr<bf16>>
      %y = tt.load %q : tensor<16x64x!tt.ptr<bf16>>
      %next = tt.dot %x, %y, %sum : tensor<16x16xbf16> * tensor<16x64xbf16> -> tensor<16x64xf32>
      %p1 = tt.addptr %p, %step_a : tensor<16x16x!tt.ptr<bf16>>, tensor<16x16xi32>
      %q1 = tt.addptr %q, %step_b : tensor<16x64x!tt.ptr<bf16>>, tensor<16x64xi32>
      scf.yield %next, %p1, %q1 : tensor<16x64xf32>, tensor<16x16x!tt.ptr<bf16>>, tensor<16x64x!tt.ptr<bf16>>
    }
    %c64 = arith.constant dense<64> : tensor<16x1xi32>
    %to_rows = arith.muli %row, %c64 : tensor<16x1xi32>
    %to1 = tt.broadcast %to_rows : tensor<16x1xi32> -> tensor<16x64xi32>
    %to2 = tt.broadcast %column : tensor<1x64xi32> -> tensor<16x64xi32>
    %to = arith.addi %to1, %to2 : tensor<16x64xi32>
    %cs = tt.splat %c : !tt.ptr<f32> -> tensor<16x64x!tt.ptr<f32>>
    %cp = tt.addptr %cs, %to : tensor<16x64x!tt.ptr<f32>>, tensor<16x64xi32>
    tt.store %cp, %all#0 : tensor<16x64x!tt.ptr<f32>>
    tt.return
  }
}
