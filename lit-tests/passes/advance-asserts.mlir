// RUN: llopt %s --advance-asserts --split-input-file | FileCheck %s

#l = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {

// What an index is compared with stays in front of the assertion, and so does the load of the index; random numbers that
// have nothing to do with it are computed behind, where the load that the assertion allows is on its way.
// CHECK-LABEL: @gather
// CHECK: %[[INDEX:.*]] = tt.load
// CHECK-NEXT: %[[IS:.*]] = arith.cmpi slt, %[[INDEX]]
// CHECK-NEXT: tt.assert %[[IS]]
// CHECK-NEXT: arith.muli
// CHECK-NEXT: arith.xori
// CHECK-NEXT: tt.load
tt.func public @gather(%indices: tensor<128x!tt.ptr<i32>, #l>, %table: tensor<128x!tt.ptr<i32>, #l>, %seed: tensor<128xi32, #l>, %n: tensor<128xi32, #l>) -> tensor<128xi32, #l> {
  %index = tt.load %indices : tensor<128x!tt.ptr<i32>, #l>
  %product = arith.muli %seed, %seed : tensor<128xi32, #l>
  %is = arith.cmpi slt, %index, %n : tensor<128xi32, #l>
  %random = arith.xori %product, %seed : tensor<128xi32, #l>
  tt.assert %is, "index out of bounds" : tensor<128xi1, #l>
  %element = tt.load %table : tensor<128x!tt.ptr<i32>, #l>
  %sum = arith.addi %element, %random : tensor<128xi32, #l>
  tt.return %sum : tensor<128xi32, #l>
}

// Nothing moves over a store, and what one assertion does not need may be needed by the next.
// CHECK-LABEL: @stores
// CHECK: arith.muli
// CHECK-NEXT: tt.store
// CHECK-NEXT: tt.assert %arg1
// CHECK-NEXT: %[[IS:.*]] = arith.cmpi
// CHECK-NEXT: tt.assert %[[IS]]
// CHECK-NEXT: arith.addi
tt.func public @stores(%p: tensor<128x!tt.ptr<i32>, #l>, %first: tensor<128xi1, #l>, %x: tensor<128xi32, #l>) -> tensor<128xi32, #l> {
  %square = arith.muli %x, %x : tensor<128xi32, #l>
  tt.store %p, %square : tensor<128x!tt.ptr<i32>, #l>
  %is = arith.cmpi slt, %x, %square : tensor<128xi32, #l>
  %sum = arith.addi %x, %square : tensor<128xi32, #l>
  tt.assert %first, "first" : tensor<128xi1, #l>
  tt.assert %is, "second" : tensor<128xi1, #l>
  tt.return %sum : tensor<128xi32, #l>
}

}
