// Offsets of rows and columns are added up in 32 bits if these are enough: an access adds the sum to its base itself, and
// both arrays share it. The constants of rows stay in the sum if they do not fit into an access.
//
// RUN: llopt compile %s --target hip:gfx1100 | FileCheck %s

#tile = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
#rows = #ttg.slice<{dim = 1, parent = #tile}>
#columns = #ttg.slice<{dim = 0, parent = #tile}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: tile:
  // CHECK-NOT: _co_
  // CHECK: global_load_b128 {{.*}}, [[FIRST:v[0-9]+]], s[
  // CHECK-NOT: _co_
  // CHECK: global_load_b128 {{.*}}, [[SECOND:v[0-9]+]], s[
  // CHECK-NOT: _co_
  // CHECK-DAG: global_store_b128 [[FIRST]], {{.*}}, s[
  // CHECK-DAG: global_store_b128 [[SECOND]], {{.*}}, s[
  tt.func public @tile(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32, #rows>
    %j = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #columns>
    %width = arith.constant dense<256> : tensor<16x1xi32, #tile>
    %row = tt.expand_dims %i {axis = 1 : i32} : tensor<16xi32, #rows> -> tensor<16x1xi32, #tile>
    %start = arith.muli %row, %width : tensor<16x1xi32, #tile>
    %column = tt.expand_dims %j {axis = 0 : i32} : tensor<64xi32, #columns> -> tensor<1x64xi32, #tile>
    %across = tt.broadcast %column : tensor<1x64xi32, #tile> -> tensor<16x64xi32, #tile>
    %p0 = tt.splat %p : !tt.ptr<f32> -> tensor<16x1x!tt.ptr<f32>, #tile>
    %p1 = tt.addptr %p0, %start : tensor<16x1x!tt.ptr<f32>, #tile>, tensor<16x1xi32, #tile>
    %p2 = tt.broadcast %p1 : tensor<16x1x!tt.ptr<f32>, #tile> -> tensor<16x64x!tt.ptr<f32>, #tile>
    %p3 = tt.addptr %p2, %across : tensor<16x64x!tt.ptr<f32>, #tile>, tensor<16x64xi32, #tile>
    %v = tt.load %p3 : tensor<16x64x!tt.ptr<f32>, #tile>
    %q0 = tt.splat %q : !tt.ptr<f32> -> tensor<16x1x!tt.ptr<f32>, #tile>
    %q1 = tt.addptr %q0, %start : tensor<16x1x!tt.ptr<f32>, #tile>, tensor<16x1xi32, #tile>
    %q2 = tt.broadcast %q1 : tensor<16x1x!tt.ptr<f32>, #tile> -> tensor<16x64x!tt.ptr<f32>, #tile>
    %q3 = tt.addptr %q2, %across : tensor<16x64x!tt.ptr<f32>, #tile>, tensor<16x64xi32, #tile>
    tt.store %q3, %v : tensor<16x64x!tt.ptr<f32>, #tile>
    tt.return
  }
}
