// RUN: llopt %s --legalize-layouts --split-input-file | FileCheck %s

#ordered = #ttg.linear<{register = [[1]], lane = [[2], [4], [8], [16], [32]], warp = [], block = []}>
#scattered = #ttg.linear<{register = [[2]], lane = [[1], [4], [8], [16], [32]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {

// A scan can follow registers and then lanes; nothing is done about it.
// CHECK-LABEL: @in_order
// CHECK-NOT: convert_layout
tt.func public @in_order(%x: tensor<64xi32, #ordered>) -> tensor<64xi32, #ordered> {
  %0 = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
  ^bb0(%a: i32, %b: i32):
    %s = arith.addi %a, %b : i32
    tt.scan.return %s : i32
  }) : (tensor<64xi32, #ordered>) -> tensor<64xi32, #ordered>
  tt.return %0 : tensor<64xi32, #ordered>
}

// A register in the middle of the lanes: the scan works in an order of its own, between two conversions.
// CHECK-LABEL: @out_of_order
// CHECK: %[[IN:.*]] = ttg.convert_layout %{{.*}} : tensor<64xi32, #[[GIVEN:.*]]> -> tensor<64xi32, #[[OWN:.*]]>
// CHECK: "tt.scan"(%[[IN]])
// CHECK: (tensor<64xi32, #[[OWN]]>) -> tensor<64xi32, #[[OWN]]>
// CHECK: ttg.convert_layout %{{.*}} : tensor<64xi32, #[[OWN]]> -> tensor<64xi32, #[[GIVEN]]>
tt.func private @out_of_order(%x: tensor<64xi32, #scattered>) -> tensor<64xi32, #scattered> {
  %0 = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
  ^bb0(%a: i32, %b: i32):
    %s = arith.addi %a, %b : i32
    tt.scan.return %s : i32
  }) : (tensor<64xi32, #scattered>) -> tensor<64xi32, #scattered>
  tt.return %0 : tensor<64xi32, #scattered>
}
}

// -----

#split = #ttg.linear<{register = [[0, 1]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [], block = [[0, 8]]}>

module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {

// Blocks that share the axis share the rows while the scan works, so that each has whole rows.
// CHECK: #[[OWN:.*]] = #ttg.linear<{{.*}}, block = {{\[\[}}4, 0]]}>
// CHECK-LABEL: @between_blocks
// CHECK: ttg.convert_layout %{{.*}} -> tensor<8x16xi32, #[[OWN]]>
// CHECK: (tensor<8x16xi32, #[[OWN]]>) -> tensor<8x16xi32, #[[OWN]]>
tt.func private @between_blocks(%x: tensor<8x16xi32, #split>) -> tensor<8x16xi32, #split> {
  %0 = "tt.scan"(%x) <{axis = 1 : i32, reverse = false}> ({
  ^bb0(%a: i32, %b: i32):
    %s = arith.addi %a, %b : i32
    tt.scan.return %s : i32
  }) : (tensor<8x16xi32, #split>) -> tensor<8x16xi32, #split>
  tt.return %0 : tensor<8x16xi32, #split>
}
}
