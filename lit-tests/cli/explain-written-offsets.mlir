// Pointers into two buffers by the same sum of offsets: on a target with accesses by offsets it is computed once, so
// only the first sum has a price. The sum of other offsets has one of its own.
//
// RUN: llopt explain %s --target hip:gfx942 --json | FileCheck %s

// CHECK: "written": {
// CHECK: "op": "tt.addptr",
// CHECK: "op": "tt.load",
// CHECK-NOT: "op": "tt.addptr",
// CHECK: "op": "tt.store",
// CHECK: "op": "tt.addptr",
// CHECK: "op": "tt.store",
#rows = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 64], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
  tt.func public @copy(%from: !tt.ptr<f32> {tt.divisibility = 16 : i32, tt.pointer_range = 32 : i32}, %to: !tt.ptr<f32> {tt.divisibility = 16 : i32, tt.pointer_range = 32 : i32}, %stride: i32) {
    %m = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32, #ttg.slice<{dim = 1, parent = #rows}>>
    %n = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32, #ttg.slice<{dim = 0, parent = #rows}>>
    %m1 = tt.expand_dims %m {axis = 1 : i32} : tensor<4xi32, #ttg.slice<{dim = 1, parent = #rows}>> -> tensor<4x1xi32, #rows>
    %n1 = tt.expand_dims %n {axis = 0 : i32} : tensor<256xi32, #ttg.slice<{dim = 0, parent = #rows}>> -> tensor<1x256xi32, #rows>
    %s = tt.splat %stride : i32 -> tensor<4x1xi32, #rows>
    %a = arith.muli %m1, %s : tensor<4x1xi32, #rows>
    %other = arith.addi %a, %s : tensor<4x1xi32, #rows>
    %b = tt.broadcast %n1 : tensor<1x256xi32, #rows> -> tensor<4x256xi32, #rows>

    %f = tt.splat %from : !tt.ptr<f32> -> tensor<4x1x!tt.ptr<f32>, #rows>
    %f1 = tt.addptr %f, %a : tensor<4x1x!tt.ptr<f32>, #rows>, tensor<4x1xi32, #rows>
    %f2 = tt.broadcast %f1 : tensor<4x1x!tt.ptr<f32>, #rows> -> tensor<4x256x!tt.ptr<f32>, #rows>
    %f3 = tt.addptr %f2, %b : tensor<4x256x!tt.ptr<f32>, #rows>, tensor<4x256xi32, #rows>
    %x = tt.load %f3 : tensor<4x256x!tt.ptr<f32>, #rows>

    %t = tt.splat %to : !tt.ptr<f32> -> tensor<4x1x!tt.ptr<f32>, #rows>
    %t1 = tt.addptr %t, %a : tensor<4x1x!tt.ptr<f32>, #rows>, tensor<4x1xi32, #rows>
    %t2 = tt.broadcast %t1 : tensor<4x1x!tt.ptr<f32>, #rows> -> tensor<4x256x!tt.ptr<f32>, #rows>
    %t3 = tt.addptr %t2, %b : tensor<4x256x!tt.ptr<f32>, #rows>, tensor<4x256xi32, #rows>
    tt.store %t3, %x : tensor<4x256x!tt.ptr<f32>, #rows>

    %u1 = tt.addptr %t, %other : tensor<4x1x!tt.ptr<f32>, #rows>, tensor<4x1xi32, #rows>
    %u2 = tt.broadcast %u1 : tensor<4x1x!tt.ptr<f32>, #rows> -> tensor<4x256x!tt.ptr<f32>, #rows>
    %u3 = tt.addptr %u2, %b : tensor<4x256x!tt.ptr<f32>, #rows>, tensor<4x256xi32, #rows>
    tt.store %u3, %x : tensor<4x256x!tt.ptr<f32>, #rows>
    tt.return
  }
}
