// A load of fewer elements than threads has nothing to coalesce, so a pass that keeps accesses does not keep its layout:
// the vector is loaded as the tile needs it, and nothing is converted. A load of as many elements keeps its layout.
//
// RUN: llopt %s --tritongpu-remove-layout-conversions --canonicalize --cse | FileCheck %s

// CHECK: [[TILE:#[a-z0-9]+]] = #ttg.blocked<{sizePerThread = [1, 2]
// CHECK: tt.load {{.*}} : tensor<16x!tt.ptr<f32>, #ttg.slice<{dim = 1, parent = [[TILE]]}>>
// CHECK-NOT: ttg.convert_layout
// CHECK: tt.load {{.*}} : tensor<16x16x!tt.ptr<f32>, [[TILE]]>
// CHECK-NOT: ttg.convert_layout
#line = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#tile = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @scale(%v: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %x: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32, #line>
    %f = tt.splat %v : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>, #line>
    %p = tt.addptr %f, %i : tensor<16x!tt.ptr<f32>, #line>, tensor<16xi32, #line>
    %s = tt.load %p : tensor<16x!tt.ptr<f32>, #line>
    %r = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32, #ttg.slice<{dim = 1, parent = #tile}>>
    %c = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32, #ttg.slice<{dim = 0, parent = #tile}>>
    %row = tt.expand_dims %r {axis = 1 : i32} : tensor<16xi32, #ttg.slice<{dim = 1, parent = #tile}>> -> tensor<16x1xi32, #tile>
    %column = tt.expand_dims %c {axis = 0 : i32} : tensor<16xi32, #ttg.slice<{dim = 0, parent = #tile}>> -> tensor<1x16xi32, #tile>
    %c16 = arith.constant dense<16> : tensor<16x1xi32, #tile>
    %start = arith.muli %row, %c16 : tensor<16x1xi32, #tile>
    %a = tt.broadcast %start : tensor<16x1xi32, #tile> -> tensor<16x16xi32, #tile>
    %b = tt.broadcast %column : tensor<1x16xi32, #tile> -> tensor<16x16xi32, #tile>
    %offset = arith.addi %a, %b : tensor<16x16xi32, #tile>
    %g = tt.splat %x : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>, #tile>
    %q = tt.addptr %g, %offset : tensor<16x16x!tt.ptr<f32>, #tile>, tensor<16x16xi32, #tile>
    %y = tt.load %q : tensor<16x16x!tt.ptr<f32>, #tile>
    %t = ttg.convert_layout %s : tensor<16xf32, #line> -> tensor<16xf32, #ttg.slice<{dim = 1, parent = #tile}>>
    %u = tt.expand_dims %t {axis = 1 : i32} : tensor<16xf32, #ttg.slice<{dim = 1, parent = #tile}>> -> tensor<16x1xf32, #tile>
    %w = tt.broadcast %u : tensor<16x1xf32, #tile> -> tensor<16x16xf32, #tile>
    %z = arith.mulf %y, %w : tensor<16x16xf32, #tile>
    tt.store %q, %z : tensor<16x16x!tt.ptr<f32>, #tile>
    tt.return
  }
}
