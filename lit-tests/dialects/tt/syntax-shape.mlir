// What is printed is what was read, character by character, from text and from bytecode.
// RUN: llopt %s --split-input-file --verify-roundtrip | grep -v '^ *\(//.*\)*$' > %t.printed
// RUN: grep -v '^ *\(//.*\)*$' %s | diff - %t.printed

module {
  // Tensors from scalars, and a scalar from a tensor.
  tt.func @make(%arg0: f32, %arg1: !tt.ptr<f32>) -> f32 {
    %0 = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
    %1 = tt.splat %arg0 : f32 -> tensor<1x1xf32>
    %2 = tt.splat %arg1 : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
    %3 = tt.unsplat %1 : tensor<1x1xf32>
    tt.return %3 : f32
  }

  // Dimensions added, repeated, permuted and regrouped.
  tt.func @reshape(%arg0: tensor<8x4xf32>) -> tensor<16x2xf32> {
    %0 = tt.expand_dims %arg0 {axis = 1 : i32} : tensor<8x4xf32> -> tensor<8x1x4xf32>
    %1 = tt.broadcast %0 : tensor<8x1x4xf32> -> tensor<8x2x4xf32>
    %2 = tt.trans %1 {order = array<i32: 2, 0, 1>} : tensor<8x2x4xf32> -> tensor<4x8x2xf32>
    %3 = tt.reshape %2 : tensor<4x8x2xf32> -> tensor<64xf32>
    %4 = tt.reshape %3 allow_reorder : tensor<64xf32> -> tensor<32x2xf32>
    %5 = tt.reshape %4 efficient_layout : tensor<32x2xf32> -> tensor<2x32xf32>
    %6 = tt.reshape %arg0 allow_reorder efficient_layout : tensor<8x4xf32> -> tensor<16x2xf32>
    tt.return %6 : tensor<16x2xf32>
  }

  // Two tensors in one, and one in two.
  tt.func @pairs(%arg0: tensor<8xf32>, %arg1: tensor<8xf32>) -> (tensor<8xf32>, tensor<16xf32>) {
    %0 = tt.join %arg0, %arg1 : tensor<8xf32> -> tensor<8x2xf32>
    %outLHS, %outRHS = tt.split %0 : tensor<8x2xf32> -> tensor<8xf32>
    %1 = tt.cat %outLHS, %outRHS : tensor<8xf32> -> tensor<16xf32>
    tt.return %outLHS, %1 : tensor<8xf32>, tensor<16xf32>
  }

  // Elements by index.
  tt.func @gather(%arg0: tensor<8x4xf32>, %arg1: tensor<2x4xi32>) -> tensor<2x4xf32> {
    %0 = tt.gather %arg0[%arg1] {axis = 0 : i32} : (tensor<8x4xf32>, tensor<2x4xi32>) -> tensor<2x4xf32>
    %1 = tt.gather %arg0[%arg1] {axis = 0 : i32, efficient_layout} : (tensor<8x4xf32>, tensor<2x4xi32>) -> tensor<2x4xf32>
    tt.return %1 : tensor<2x4xf32>
  }
}
