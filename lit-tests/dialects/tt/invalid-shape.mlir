// RUN: llopt %s --split-input-file --verify-diagnostics

// Each part breaks one rule; the message says which, and what is at fault.

tt.func @range_rank() {
  // expected-error @+1 {{'tt.make_range' op the result must have one dimension, but has shape [2, 2]}}
  %0 = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<2x2xi32>
  tt.return
}

// -----

tt.func @range_element() {
  // expected-error @+1 {{'tt.make_range' op the elements of the result must be i32, not 'i64'}}
  %0 = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi64>
  tt.return
}

// -----

tt.func @splat_of_tensor(%x: tensor<4xf32>) {
  // expected-error @+1 {{'tt.splat' op the operand must be a scalar, not 'tensor<4xf32>'}}
  %0 = tt.splat %x : tensor<4xf32> -> tensor<4x4xf32>
  tt.return
}

// -----

tt.func @unsplat(%x: tensor<4xf32>) {
  // expected-error @+1 {{'tt.unsplat' op the operand must have exactly one element, but has shape [4]}}
  %0 = tt.unsplat %x : tensor<4xf32>
  tt.return
}

// -----

#a2 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @reshape_layout(%x: tensor<16x32xf32, #a2>) {
    // expected-error @+1 {{'tt.reshape' op operand and result must both have a layout, or neither}}
    %0 = tt.reshape %x : tensor<16x32xf32, #a2> -> tensor<512xf32>
    tt.return
  }
}

// -----

#b2 = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#b1 = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @reshape_moves(%x: tensor<16x32xf32, #b2>) {
    // expected-error @+1 {{'tt.reshape' op the layout of the result moves elements; expected #ttg.linear<{register = [[32], [64], [16]], lane = [[128], [256], [0], [1], [2]], warp = [[4], [8]], block = []}>, got #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>}}
    %0 = tt.reshape %x : tensor<16x32xf32, #b2> -> tensor<512xf32, #b1>
    tt.return
  }
}

// -----

tt.func @broadcast_rank(%x: tensor<4xf32>) {
  // expected-error @+1 {{'tt.broadcast' op the operand has rank 1, the result 2}}
  %0 = tt.broadcast %x : tensor<4xf32> -> tensor<4x4xf32>
  tt.return
}

// -----

#row = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#column = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  // A lane of the result needs an element that another lane of the operand has.
  tt.func @broadcast_moves(%x: tensor<32x1xf32, #column>) {
    // expected-error @+1 {{'tt.broadcast' op the layout of the result, #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>, moves elements between threads; the operand has #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>}}
    %0 = tt.broadcast %x : tensor<32x1xf32, #column> -> tensor<32x32xf32, #row>
    tt.return
  }
}

// -----

tt.func @cat(%x: tensor<4xf32>) {
  // expected-error @+1 {{'tt.cat' op the result has 16 elements, the operands have 4 each}}
  %0 = tt.cat %x, %x : tensor<4xf32> -> tensor<16xf32>
  tt.return
}

// -----

tt.func @join_elements(%x: tensor<4xf32>) {
  // expected-error @+1 {{'tt.join' op the result must have elements of type 'f32', but has 'i32'}}
  %0 = tt.join %x, %x : tensor<4xf32> -> tensor<4x2xi32>
  tt.return
}

// -----

#a1 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#a2 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @join_layout(%x: tensor<128xf32, #a1>) {
    // expected-error @+1 {{'tt.join' op the halves of the result have the layout #ttg.linear<{register = [[0], [16], [32], [64]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]], block = []}>, the operands have #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>}}
    %0 = tt.join %x, %x : tensor<128xf32, #a1> -> tensor<128x2xf32, #a2>
    tt.return
  }
}

// -----

#a1 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @join_no_layout(%x: tensor<128xf32, #a1>) {
    // expected-error @+1 {{'tt.join' op operands and result must all have a layout, or none}}
    %0 = tt.join %x, %x : tensor<128xf32, #a1> -> tensor<128x2xf32>
    tt.return
  }
}

// -----

tt.func @split_extent(%x: tensor<2x4xf32>) {
  // expected-error @+1 {{'tt.split' op the last dimension must have extent 2, but the shape is [2, 4]}}
  %0, %1 = tt.split %x : tensor<2x4xf32> -> tensor<2xf32>
  tt.return
}

// -----

#a2 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#a1 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @split_layout(%x: tensor<128x2xf32, #a2>) {
    // expected-error @+2 {{'tt.split' op inferred type(s) 'tensor<128xf32, #ttg.linear<{register = [[0], [16], [32], [64]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]], block = []}>>', 'tensor<128xf32, #ttg.linear<{register = [[0], [16], [32], [64]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]], block = []}>>' are incompatible with return type(s) of operation 'tensor<128xf32, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>', 'tensor<128xf32, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>'}}
    // expected-error @+1 {{'tt.split' op failed to infer returned types}}
    %0, %1 = tt.split %x : tensor<128x2xf32, #a2> -> tensor<128xf32, #a1>
    tt.return
  }
}

// -----

tt.func @trans_shape(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{'tt.trans' op the result must have shape [8, 4], but has [4, 8]}}
  %0 = "tt.trans"(%x) <{order = array<i32: 1, 0>}> : (tensor<4x8xf32>) -> tensor<4x8xf32>
  tt.return
}

// -----

#a2 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @trans_layout(%x: tensor<16x32xf32, #a2>) {
    // expected-error @+2 {{'tt.trans' op inferred type(s) 'tensor<32x16xf32, #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>>' are incompatible with return type(s) of operation 'tensor<32x16xf32, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>>'}}
    // expected-error @+1 {{'tt.trans' op failed to infer returned types}}
    %0 = tt.trans %x {order = array<i32: 1, 0>} : tensor<16x32xf32, #a2> -> tensor<32x16xf32, #a2>
    tt.return
  }
}

// -----

#a1 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#a2 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @expand_layout(%x: tensor<128xf32, #a1>) {
    // expected-error @+2 {{'tt.expand_dims' op inferred type(s) 'tensor<128x1xf32, #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>>' are incompatible with return type(s) of operation 'tensor<128x1xf32, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>>'}}
    // expected-error @+1 {{'tt.expand_dims' op failed to infer returned types}}
    %0 = tt.expand_dims %x {axis = 1 : i32} : tensor<128xf32, #a1> -> tensor<128x1xf32, #a2>
    tt.return
  }
}

// -----

tt.func @gather_shape(%x: tensor<8x4xf32>, %i: tensor<2x4xi32>) {
  // expected-error @+1 {{'tt.gather' op the indices have shape [2, 4], the result [4, 4]}}
  %0 = "tt.gather"(%x, %i) <{axis = 0 : i32}> : (tensor<8x4xf32>, tensor<2x4xi32>) -> tensor<4x4xf32>
  tt.return
}

// -----

tt.func @gather_element(%x: tensor<8x4xf32>, %i: tensor<2x4xi32>) {
  // expected-error @+1 {{'tt.gather' op the result must have elements of type 'f32', but has 'f16'}}
  %0 = "tt.gather"(%x, %i) <{axis = 0 : i32}> : (tensor<8x4xf32>, tensor<2x4xi32>) -> tensor<2x4xf16>
  tt.return
}

// -----

tt.func @gather_rank(%x: tensor<8xf32>, %i: tensor<2x4xi32>) {
  // expected-error @+1 {{'tt.gather' op the source has rank 1, the indices 2}}
  %0 = "tt.gather"(%x, %i) <{axis = 0 : i32}> : (tensor<8xf32>, tensor<2x4xi32>) -> tensor<2x4xf32>
  tt.return
}

// -----

tt.func @gather_axis(%x: tensor<8x4xf32>, %i: tensor<2x4xi32>) {
  // expected-error @+1 {{'tt.gather' op axis 2 is out of range for rank 2}}
  %0 = "tt.gather"(%x, %i) <{axis = 2 : i32}> : (tensor<8x4xf32>, tensor<2x4xi32>) -> tensor<2x4xf32>
  tt.return
}

// -----

tt.func @gather_extent(%x: tensor<8x8xf32>, %i: tensor<2x4xi32>) {
  // expected-error @+1 {{'tt.gather' op dimension 1 has extent 8 in the source and 4 in the indices}}
  %0 = "tt.gather"(%x, %i) <{axis = 0 : i32}> : (tensor<8x8xf32>, tensor<2x4xi32>) -> tensor<2x4xf32>
  tt.return
}

// -----

#a2 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b2 = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @gather_layout(%x: tensor<16x32xf32, #a2>, %i: tensor<16x32xi32, #a2>) {
    // expected-error @+1 {{'tt.gather' op the result must have the layout of the indices}}
    %0 = "tt.gather"(%x, %i) <{axis = 0 : i32}> : (tensor<16x32xf32, #a2>, tensor<16x32xi32, #a2>) -> tensor<16x32xf32, #b2>
    tt.return
  }
}
