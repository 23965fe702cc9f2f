// Loads under different conditions have a branch each on AMD: here each row of a thread has its own mask.
//
// RUN: llopt compile %s --target hip:gfx1100 | FileCheck %s
// RUN: llopt compile %s --target hip:gfx1200 | FileCheck %s

// A row is there for all lanes or for none, so that a scalar branch suffices.
// CHECK: s_cbranch
// CHECK: global_load_b128
// CHECK: s_cbranch
// CHECK: global_load_b128
// CHECK: s_cbranch
// CHECK: global_load_b128
// CHECK: s_cbranch
// CHECK: global_load_b128

#rows = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [1, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @rows(%from: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
    %width = arith.constant dense<128> : tensor<4x1xi32, #rows>
    %i = tt.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32, #ttg.slice<{dim = 1, parent = #rows}>>
    %j = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #ttg.slice<{dim = 0, parent = #rows}>>
    %rows = tt.expand_dims %i {axis = 1 : i32} : tensor<4xi32, #ttg.slice<{dim = 1, parent = #rows}>> -> tensor<4x1xi32, #rows>
    %columns = tt.expand_dims %j {axis = 0 : i32} : tensor<128xi32, #ttg.slice<{dim = 0, parent = #rows}>> -> tensor<1x128xi32, #rows>
    %starts = arith.muli %rows, %width : tensor<4x1xi32, #rows>
    %down = tt.broadcast %starts : tensor<4x1xi32, #rows> -> tensor<4x128xi32, #rows>
    %across = tt.broadcast %columns : tensor<1x128xi32, #rows> -> tensor<4x128xi32, #rows>
    %offsets = arith.addi %down, %across : tensor<4x128xi32, #rows>
    %ns = tt.splat %n : i32 -> tensor<4x1xi32, #rows>
    %few = arith.cmpi slt, %rows, %ns : tensor<4x1xi32, #rows>
    %inside = tt.broadcast %few : tensor<4x1xi1, #rows> -> tensor<4x128xi1, #rows>
    %p = tt.splat %from : !tt.ptr<f32> -> tensor<4x128x!tt.ptr<f32>, #rows>
    %ps = tt.addptr %p, %offsets : tensor<4x128x!tt.ptr<f32>, #rows>, tensor<4x128xi32, #rows>
    %x = tt.load %ps, %inside : tensor<4x128x!tt.ptr<f32>, #rows>
    %q = tt.splat %to : !tt.ptr<f32> -> tensor<4x128x!tt.ptr<f32>, #rows>
    %qs = tt.addptr %q, %offsets : tensor<4x128x!tt.ptr<f32>, #rows>, tensor<4x128xi32, #rows>
    tt.store %qs, %x : tensor<4x128x!tt.ptr<f32>, #rows>
    tt.return
  }
}
