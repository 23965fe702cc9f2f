// In which order blocks compute programs is explained where it is not that of their numbers.
//
// RUN: llopt explain %s --target cuda:90 | FileCheck %s
// RUN: llopt explain %s --target hip:gfx942 --json | FileCheck %s --check-prefix=JSON
// CHECK: Programs with larger x have longer loops, so they are computed first; as many rows of the grid take turns as the cache has room for, with 256 bytes for each program of a row.
// JSON: "program_order"
// JSON-NEXT: "from_last"
// JSON-NEXT: "x"
// JSON-NEXT: ]
// JSON-NEXT: "row_bytes": 256
tt.func public @rows_in_turns(%p: !tt.ptr<f32>, %stride: i32) {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %zeros = arith.constant dense<0.0> : tensor<32xf32>
  %lanes = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %x = tt.get_program_id x : i32
  %y = tt.get_program_id y : i32
  %row = arith.muli %y, %stride : i32
  %begin = tt.addptr %p, %row : !tt.ptr<f32>, i32
  %next = arith.addi %x, %x : i32
  %end = arith.muli %next, %c32 : i32
  %sum = scf.for %i = %c0 to %end step %c32 iter_args(%s = %zeros) -> (tensor<32xf32>) : i32 {
    %at = tt.addptr %begin, %i : !tt.ptr<f32>, i32
    %all = tt.splat %at : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
    %each = tt.addptr %all, %lanes : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
    %loaded = tt.load %each : tensor<32x!tt.ptr<f32>>
    %t = arith.addf %s, %loaded : tensor<32xf32>
    scf.yield %t : tensor<32xf32>
  }
  %to = tt.splat %begin : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
  %to_x = tt.addptr %to, %lanes : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
  tt.store %to_x, %sum : tensor<32x!tt.ptr<f32>>
  tt.return
}
