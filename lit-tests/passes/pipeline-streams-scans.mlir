// A loop that loads where a scan of other data says: samples of rows by their cumulative sums.
//
// RUN: llopt compile %s --target cuda:90 --num-warps 8 --num-stages 3 --emit ttgir -o - | FileCheck %s
// RUN: llopt compile %s --target hip:gfx942 --num-warps 8 --num-stages 2 --emit ttgir -o - | FileCheck %s

// The first load goes ahead, and with it the scan that the address of the second one needs. What else of the iteration takes the scan's
// result gets it from there: it is computed once, unlike the address itself.
// CHECK-LABEL: @samples
// CHECK: scf.for
// CHECK-COUNT-1: "tt.scan"
// CHECK-NOT: "tt.scan"
// CHECK: scf.yield
tt.func public @samples(%scores: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %indices: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}) {
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %zeros = arith.constant dense<0.0> : tensor<8xf32>
  %half = arith.constant dense<0.5> : tensor<8x128xf32>
  %rows = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
  %row = tt.expand_dims %rows {axis = 1 : i32} : tensor<8xi32> -> tensor<8x1xi32>
  %columns = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %width = tt.splat %n : i32 -> tensor<8x1xi32>
  %row_starts = arith.muli %row, %width : tensor<8x1xi32>
  %row_all = tt.broadcast %row_starts : tensor<8x1xi32> -> tensor<8x128xi32>
  %all = tt.splat %scores : !tt.ptr<f32> -> tensor<8x128x!tt.ptr<f32>>
  %at_rows = tt.addptr %all, %row_all : tensor<8x128x!tt.ptr<f32>>, tensor<8x128xi32>
  %tables = tt.splat %indices : !tt.ptr<i32> -> tensor<8x!tt.ptr<i32>>
  %r:2 = scf.for %i = %c0 to %n step %c128 iter_args(%sum = %zeros, %found = %zeros) -> (tensor<8xf32>, tensor<8xf32>) : i32 {
    %start = tt.splat %i : i32 -> tensor<128xi32>
    %column = arith.addi %start, %columns : tensor<128xi32>
    %one_row = tt.expand_dims %column {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
    %offsets = tt.broadcast %one_row : tensor<1x128xi32> -> tensor<8x128xi32>
    %pointers = tt.addptr %at_rows, %offsets : tensor<8x128x!tt.ptr<f32>>, tensor<8x128xi32>
    %x = tt.load %pointers : tensor<8x128x!tt.ptr<f32>>
    %sums = "tt.scan"(%x) <{axis = 1 : i32, reverse = false}> ({
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      tt.scan.return %s : f32
    }) : (tensor<8x128xf32>) -> tensor<8x128xf32>
    %is_below = arith.cmpf olt, %sums, %half : tensor<8x128xf32>
    %below = arith.extui %is_below : tensor<8x128xi1> to tensor<8x128xi32>
    %place = "tt.reduce"(%below) <{axis = 1 : i32}> ({
    ^bb0(%a: i32, %b: i32):
      %s = arith.addi %a, %b : i32
      tt.reduce.return %s : i32
    }) : (tensor<8x128xi32>) -> tensor<8xi32>
    %index = tt.addptr %tables, %place : tensor<8x!tt.ptr<i32>>, tensor<8xi32>
    %loaded = tt.load %index : tensor<8x!tt.ptr<i32>>
    %as_float = arith.sitofp %loaded : tensor<8xi32> to tensor<8xf32>
    %next_found = arith.addf %found, %as_float : tensor<8xf32>
    %most = "tt.reduce"(%sums) <{axis = 1 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %s = arith.maxnumf %a, %b : f32
      tt.reduce.return %s : f32
    }) : (tensor<8x128xf32>) -> tensor<8xf32>
    %next_sum = arith.addf %sum, %most : tensor<8xf32>
    scf.yield %next_sum, %next_found : tensor<8xf32>, tensor<8xf32>
  }
  %both = arith.addf %r#0, %r#1 : tensor<8xf32>
  %outs = tt.splat %out : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %at = tt.addptr %outs, %rows : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  tt.store %at, %both : tensor<8x!tt.ptr<f32>>
  tt.return
}
