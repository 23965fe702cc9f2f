// What chosen layouts cost, what no choice costs less than, and why each conversion is left.
//
// RUN: llopt explain %s --target cuda:90 | FileCheck %s
// RUN: llopt explain %s --target hip:gfx942 | FileCheck %s
// RUN: llopt explain %s --target cuda:90 --json | FileCheck %s --check-prefix=JSON

// A transposed copy reads rows and writes rows of the result: one conversion is between the two accesses.

// CHECK: Layouts were chosen: [[COST:[0-9]+]] cycles, at least [[COST]] with any of the candidates (gap 0.0 %).
// CHECK-NEXT: converts from tt.load ({{.*}}:32:10) to tt.store ({{.*}}:36:5) for {{[0-9]+}} cycles; the kernel would cost {{[1-9][0-9]*}} more without it
// CHECK-NOT: converts
// JSON: "layouts": {
// JSON-NEXT: "cost":
// JSON-NEXT: "bound":
// JSON-NEXT: "complete": true
// JSON-NEXT: "conversions": [
// JSON: "op": "tt.load"
// JSON: "op": "tt.store"
// JSON: "removal":
module {
  tt.func public @transpose(%from: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %row = tt.expand_dims %r {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %column = tt.expand_dims %r {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %extent = arith.constant dense<64> : tensor<64x1xi32>
    %start = arith.muli %row, %extent : tensor<64x1xi32>
    %a = tt.broadcast %start : tensor<64x1xi32> -> tensor<64x64xi32>
    %b = tt.broadcast %column : tensor<1x64xi32> -> tensor<64x64xi32>
    %offset = arith.addi %a, %b : tensor<64x64xi32>
    %f = tt.splat %from : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
    %p = tt.addptr %f, %offset : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
    %x = tt.load %p : tensor<64x64x!tt.ptr<f32>>
    %y = tt.trans %x {order = array<i32: 1, 0>} : tensor<64x64xf32> -> tensor<64x64xf32>
    %t = tt.splat %to : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
    %q = tt.addptr %t, %offset : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
    tt.store %q, %y : tensor<64x64x!tt.ptr<f32>>
    tt.return
  }
}
