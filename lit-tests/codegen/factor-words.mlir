// The words of a matrix instruction's operand are in registers side by side. Factors are read so that no word has to be
// moved there: by `ldmatrix`, although two words at a time take as many wavefronts.
//
// RUN: llopt compile %s --target cuda:80 -o - | FileCheck %s

module {
  // Both factors are converted through shared memory once.
  // CHECK-LABEL: .entry once
  // CHECK-NOT: ld.shared.v
  // CHECK: ldmatrix.sync.aligned.m8n8.x4.shared.b16 {[[A:%r[0-9]+, %r[0-9]+, %r[0-9]+, %r[0-9]+]]}
  // CHECK-NOT: ld.shared.v
  // CHECK: mma.sync
  // CHECK: {[[A]]},
  tt.func public @once(%a: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %b: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %width = arith.constant dense<64> : tensor<64x1xi32>
    %numbers = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %row = tt.expand_dims %numbers {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %column = tt.expand_dims %numbers {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %starts = arith.muli %column, %width : tensor<64x1xi32>
    %starts_all = tt.broadcast %starts : tensor<64x1xi32> -> tensor<64x64xi32>
    %row_all = tt.broadcast %row : tensor<1x64xi32> -> tensor<64x64xi32>
    %at = arith.addi %starts_all, %row_all : tensor<64x64xi32>
    %as = tt.splat %a : !tt.ptr<bf16> -> tensor<64x64x!tt.ptr<bf16>>
    %ap = tt.addptr %as, %at : tensor<64x64x!tt.ptr<bf16>>, tensor<64x64xi32>
    %at_a = tt.load %ap : tensor<64x64x!tt.ptr<bf16>>
    %bs = tt.splat %b : !tt.ptr<bf16> -> tensor<64x64x!tt.ptr<bf16>>
    %bp = tt.addptr %bs, %at : tensor<64x64x!tt.ptr<bf16>>, tensor<64x64xi32>
    %at_b = tt.load %bp : tensor<64x64x!tt.ptr<bf16>>
    %product = tt.dot %at_a, %at_b, %zero : tensor<64x64xbf16> * tensor<64x64xbf16> -> tensor<64x64xf32>
    %os = tt.splat %o : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
    %op = tt.addptr %os, %at : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
    tt.store %op, %product : tensor<64x64x!tt.ptr<f32>>
    tt.return
  }
}
