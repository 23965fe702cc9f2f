// What layouts say of where elements are must be what ops need.
//
// RUN: not llopt %s --verify-layouts --split-input-file 2>&1 | FileCheck %s
//
// CHECK: error: 'arith.addi' op has a layout of operand #0 for 4 warps where 2 run it
// CHECK-NOT: error

// Rows of a tile are split over the lanes, columns over the warps; a reshape keeps each element where it is.

#up = #ttg.linear<{register = [], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[0, 1], [0, 2]], block = []}>
#apart = #ttg.linear<{register = [], lane = [[1, 0, 0], [2, 0, 0], [4, 0, 0], [8, 0, 0], [16, 0, 0]], warp = [[0, 0, 1], [0, 1, 0]], block = []}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @fits(%x: tensor<32x4xi32, #up>) {
    %y = arith.addi %x, %x : tensor<32x4xi32, #up>
    %z = tt.reshape %y : tensor<32x4xi32, #up> -> tensor<32x2x2xi32, #apart>
    tt.return
  }
}

// -----

// A layout is for more warps than there are.

#four = #ttg.linear<{register = [], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]], block = []}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 2 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @warps(%x: tensor<128xi32, #four>) {
    %y = arith.addi %x, %x : tensor<128xi32, #four>
    tt.return
  }
}
