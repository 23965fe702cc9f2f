// Which accesses could take fewer instructions, and what the kernel would cost with them.
//
// RUN: llopt explain %s --target hip:gfx942 | FileCheck %s
// RUN: llopt explain %s --target hip:gfx942 --json | FileCheck %s --check-prefix=JSON
// RUN: llopt explain %s --target cuda:90 | FileCheck %s --check-prefix=WIDE

// A scan along columns is cheap where threads have long columns. Wide accesses would give them short ones.

// CHECK: accesses memory in 4 instructions of tt.load ({{.*}}); with 2 the kernel would cost {{[1-9][0-9]*}} more
// CHECK: accesses memory in 4 instructions of tt.store ({{.*}}); with 2 the kernel would cost {{[1-9][0-9]*}} more

// Where the difference of costs is too small to say which is faster, the accesses are wide.

// WIDE: Layouts were chosen: {{[0-9]+}} cycles, at least {{[0-9]+}} with any of the candidates (gap {{[12]}}.{{[0-9]}} %).
// WIDE-NOT: accesses memory in
// WIDE: tt.load
// WIDE-NEXT: access 4 accesses of 128 bits a thread
// JSON: "accesses": [
// JSON: "op": "tt.load",
// JSON-NEXT: "location":
// JSON-NEXT: "instructions": 4,
// JSON-NEXT: "fewer": 2,
// JSON-NEXT: "widening":
module {
  tt.func public @assoc_scan(%a: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f32> {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %off = arith.constant dense<16> : tensor<128x1xi32>
    %off_0 = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
    %off_1 = tt.expand_dims %off_0 {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
    %off_2 = arith.muli %off_1, %off : tensor<128x1xi32>
    %off_3 = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
    %off_4 = tt.expand_dims %off_3 {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
    %off_5 = tt.broadcast %off_2 : tensor<128x1xi32> -> tensor<128x16xi32>
    %off_6 = tt.broadcast %off_4 : tensor<1x16xi32> -> tensor<128x16xi32>
    %off_7 = arith.addi %off_5, %off_6 : tensor<128x16xi32>
    %0 = tt.splat %a : !tt.ptr<f32> -> tensor<128x16x!tt.ptr<f32>>
    %1 = tt.addptr %0, %off_7 : tensor<128x16x!tt.ptr<f32>>, tensor<128x16xi32>
    %2 = tt.load %1 : tensor<128x16x!tt.ptr<f32>>
    %3 = tt.splat %b : !tt.ptr<f32> -> tensor<128x16x!tt.ptr<f32>>
    %4 = tt.addptr %3, %off_7 : tensor<128x16x!tt.ptr<f32>>, tensor<128x16xi32>
    %5 = tt.load %4 : tensor<128x16x!tt.ptr<f32>>
    %6:2 = "tt.scan"(%2, %5) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%arg3: f32, %arg4: f32, %arg5: f32, %arg6: f32):
      %9 = arith.mulf %arg3, %arg5 : f32
      %10 = arith.mulf %arg4, %arg5 : f32
      %11 = arith.addf %10, %arg6 : f32
      tt.scan.return %9, %11 : f32, f32
    }) : (tensor<128x16xf32>, tensor<128x16xf32>) -> (tensor<128x16xf32>, tensor<128x16xf32>)
    %7 = tt.splat %o : !tt.ptr<f32> -> tensor<128x16x!tt.ptr<f32>>
    %8 = tt.addptr %7, %off_7 : tensor<128x16x!tt.ptr<f32>>, tensor<128x16xi32>
    tt.store %8, %6#1 : tensor<128x16x!tt.ptr<f32>>
    tt.return
  }
}
