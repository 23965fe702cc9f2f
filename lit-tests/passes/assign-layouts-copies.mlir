// A vector that is broadcast to two tiles, one of which is stored by rows and the other by columns: the broadcast is
// computed in both layouts, and the vector is converted, for one of them or for both, not the tile.
//
// RUN: llopt %s --assign-layouts=target=cuda:90 | FileCheck %s
// RUN: llopt %s --assign-layouts=target=hip:gfx942 | FileCheck %s
// RUN: llopt %s --assign-layouts=target=cuda:90 --canonicalize --cse > %t
// RUN: llopt %t --tritongpu-coalesce --canonicalize --cse | diff %t -

// CHECK-NOT: ttg.convert_layout {{.*}} tensor<128x64x
// CHECK: ttg.convert_layout {{.*}} : tensor<128x{{1?x?}}f32,
// CHECK-NOT: ttg.convert_layout {{.*}} tensor<128x64x
module {
  tt.func public @both(%v: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %r = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
    %c = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %f = tt.splat %v : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
    %p = tt.addptr %f, %r : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
    %vector = tt.load %p : tensor<128x!tt.ptr<f32>>
    %e = math.exp %vector : tensor<128xf32>
    %one = tt.expand_dims %e {axis = 1 : i32} : tensor<128xf32> -> tensor<128x1xf32>
    %tile = tt.broadcast %one : tensor<128x1xf32> -> tensor<128x64xf32>
    %row = tt.expand_dims %r {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
    %column = tt.expand_dims %c {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %c64 = arith.constant dense<64> : tensor<128x1xi32>
    %c128 = arith.constant dense<128> : tensor<1x64xi32>
    %by_row = arith.muli %row, %c64 : tensor<128x1xi32>
    %by_column = arith.muli %column, %c128 : tensor<1x64xi32>
    %r0 = tt.broadcast %by_row : tensor<128x1xi32> -> tensor<128x64xi32>
    %r1 = tt.broadcast %column : tensor<1x64xi32> -> tensor<128x64xi32>
    %rows = arith.addi %r0, %r1 : tensor<128x64xi32>
    %c0 = tt.broadcast %row : tensor<128x1xi32> -> tensor<128x64xi32>
    %c1 = tt.broadcast %by_column : tensor<1x64xi32> -> tensor<128x64xi32>
    %columns = arith.addi %c0, %c1 : tensor<128x64xi32>
    %xs = tt.splat %x : !tt.ptr<f32> -> tensor<128x64x!tt.ptr<f32>>
    %xp = tt.addptr %xs, %rows : tensor<128x64x!tt.ptr<f32>>, tensor<128x64xi32>
    %ys = tt.splat %y : !tt.ptr<f32> -> tensor<128x64x!tt.ptr<f32>>
    %yp = tt.addptr %ys, %columns : tensor<128x64x!tt.ptr<f32>>, tensor<128x64xi32>
    tt.store %xp, %tile : tensor<128x64x!tt.ptr<f32>>
    tt.store %yp, %tile : tensor<128x64x!tt.ptr<f32>>
    tt.return
  }
}
