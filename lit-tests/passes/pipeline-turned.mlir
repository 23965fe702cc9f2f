// A tile that one product takes as it was loaded and another one transposed: both read the ring in the layout of their
// factor, and nothing is stored to shared memory a second time.
//
// RUN: llopt compile %s --target cuda:80 --emit ttgir -o - | FileCheck %s
// RUN: llopt compile %s --target hip:gfx942 --emit ttgir -o - | FileCheck %s

module {
  // CHECK-LABEL: @scores_and_sums
  // CHECK: scf.for
  // CHECK: %[[TURNED:.+]] = ttg.local_load
  // CHECK: tt.trans %[[TURNED]] {{.*}} -> tensor<64x64xf16, #ttg.dot_op<{opIdx = 1
  // CHECK: ttg.local_load {{.*}} -> tensor<64x64xf16, #ttg.dot_op<{opIdx = 1
  // CHECK: scf.yield
  tt.func public @scores_and_sums(%k: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %stride: i32 {tt.divisibility = 16 : i32}, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<32x64xf32>
    %rows = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %few = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
    %row = tt.expand_dims %rows {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %column = tt.expand_dims %rows {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %few_column = tt.expand_dims %few {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
    %strides = tt.splat %stride : i32 -> tensor<64x1xi32>
    %few_strides = tt.splat %stride : i32 -> tensor<32x1xi32>
    %few_starts = arith.muli %few_column, %few_strides : tensor<32x1xi32>
    %few_all = tt.broadcast %few_starts : tensor<32x1xi32> -> tensor<32x64xi32>
    %row_few = tt.broadcast %row : tensor<1x64xi32> -> tensor<32x64xi32>
    %at = arith.addi %few_all, %row_few : tensor<32x64xi32>
    %ks = tt.splat %k : !tt.ptr<f16> -> tensor<32x64x!tt.ptr<f16>>
    %kp = tt.addptr %ks, %at : tensor<32x64x!tt.ptr<f16>>, tensor<32x64xi32>
    %kt = tt.load %kp : tensor<32x64x!tt.ptr<f16>>
    %row_all = tt.broadcast %row : tensor<1x64xi32> -> tensor<64x64xi32>
    %qs = tt.splat %q : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
    %sums = scf.for %i = %c0 to %n step %c64 iter_args(%sum = %zero) -> (tensor<32x64xf32>) : i32 {
      %first = tt.splat %i : i32 -> tensor<64x1xi32>
      %number = arith.addi %first, %column : tensor<64x1xi32>
      %starts = arith.muli %number, %strides : tensor<64x1xi32>
      %starts_all = tt.broadcast %starts : tensor<64x1xi32> -> tensor<64x64xi32>
      %where = arith.addi %starts_all, %row_all : tensor<64x64xi32>
      %qp = tt.addptr %qs, %where : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
      %tile = tt.load %qp : tensor<64x64x!tt.ptr<f16>>
      %turned = tt.trans %tile {order = array<i32: 1, 0>} : tensor<64x64xf16> -> tensor<64x64xf16>
      %scores = tt.dot %kt, %turned, %zero : tensor<32x64xf16> * tensor<64x64xf16> -> tensor<32x64xf32>
      %weights = arith.truncf %scores : tensor<32x64xf32> to tensor<32x64xf16>
      %next = tt.dot %weights, %tile, %sum : tensor<32x64xf16> * tensor<64x64xf16> -> tensor<32x64xf32>
      scf.yield %next : tensor<32x64xf32>
    }
    %os = tt.splat %o : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>>
    %op = tt.addptr %os, %at : tensor<32x64x!tt.ptr<f32>>, tensor<32x64xi32>
    tt.store %op, %sums : tensor<32x64x!tt.ptr<f32>>
    tt.return
  }
}
