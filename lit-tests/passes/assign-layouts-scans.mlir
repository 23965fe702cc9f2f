// A scan down the columns of a tile that is read by rows: each thread has a run of a column, so that only the sums of
// runs go from thread to thread, and reads rows in vectors all the same. No tile is converted.
//
// RUN: llopt %s --assign-layouts=target=cuda:90 | FileCheck %s -DRUN=16
// RUN: llopt %s --assign-layouts=target=hip:gfx942 | FileCheck %s -DRUN=8

// CHECK: [[LAYOUT:#[a-z0-9]+]] = #ttg.blocked<{sizePerThread = [[[RUN]], 4],
// CHECK: tt.load {{.*}} : tensor<64x128x!tt.ptr<f32>, [[LAYOUT]]>
// CHECK: "tt.scan"
// CHECK: }) : (tensor<64x128xf32, [[LAYOUT]]>) -> tensor<64x128xf32, [[LAYOUT]]>
// CHECK-NOT: ttg.convert_layout
// CHECK: tt.store {{.*}} : tensor<64x128x!tt.ptr<f32>, [[LAYOUT]]>
module {
  tt.func public @columns(%from: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %c = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
    %row = tt.expand_dims %r {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %column = tt.expand_dims %c {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
    %extent = arith.constant dense<128> : tensor<64x1xi32>
    %start = arith.muli %row, %extent : tensor<64x1xi32>
    %a = tt.broadcast %start : tensor<64x1xi32> -> tensor<64x128xi32>
    %b = tt.broadcast %column : tensor<1x128xi32> -> tensor<64x128xi32>
    %offset = arith.addi %a, %b : tensor<64x128xi32>
    %f = tt.splat %from : !tt.ptr<f32> -> tensor<64x128x!tt.ptr<f32>>
    %p = tt.addptr %f, %offset : tensor<64x128x!tt.ptr<f32>>, tensor<64x128xi32>
    %x = tt.load %p : tensor<64x128x!tt.ptr<f32>>
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%s: f32, %e: f32):
      %z = arith.addf %s, %e : f32
      tt.scan.return %z : f32
    }) : (tensor<64x128xf32>) -> tensor<64x128xf32>
    %t = tt.splat %to : !tt.ptr<f32> -> tensor<64x128x!tt.ptr<f32>>
    %q = tt.addptr %t, %offset : tensor<64x128x!tt.ptr<f32>>, tensor<64x128xi32>
    tt.store %q, %y : tensor<64x128x!tt.ptr<f32>>
    tt.return
  }
}
