// RUN: llopt %s --split-input-file --verify-diagnostics

// Each part breaks one rule; the message says which, and what is at fault.

tt.func @bounds_of_pointers(%p: tensor<4x!tt.ptr<f32>>) {
  // expected-error @+1 {{'tt.load' op boundaryCheck needs a pointer to a tensor as operand #0}}
  %0 = tt.load %p {boundaryCheck = array<i32: 0>} : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

tt.func @bounds_beyond_rank(%p: !tt.ptr<tensor<4x4xf32>>) {
  // expected-error @+1 {{'tt.load' op boundaryCheck names dimension 2 of a block of rank 2}}
  %0 = tt.load %p {boundaryCheck = array<i32: 2>} : !tt.ptr<tensor<4x4xf32>>
  tt.return
}

// -----

tt.func @block_mask(%p: !tt.ptr<tensor<4xf32>>, %m: tensor<4xi1>) {
  // expected-error @+1 {{'tt.load' op a load through a pointer to a tensor takes no mask}}
  %0 = tt.load %p, %m : !tt.ptr<tensor<4xf32>>
  tt.return
}

// -----

tt.func @other_alone(%p: tensor<4x!tt.ptr<f32>>, %o: tensor<4xf32>) {
  // expected-error @+1 {{'tt.load' op `other` needs a mask beside it}}
  %0 = "tt.load"(%p, %o) <{operandSegmentSizes = array<i32: 1, 0, 1>}> : (tensor<4x!tt.ptr<f32>>, tensor<4xf32>) -> tensor<4xf32>
  tt.return
}

// -----

tt.func @store_bounds(%p: tensor<4x!tt.ptr<f32>>, %v: tensor<4xf32>) {
  // expected-error @+1 {{'tt.store' op boundaryCheck needs a pointer to a tensor as operand #0}}
  tt.store %p, %v {boundaryCheck = array<i32: 0>} : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

tt.func @float_update(%p: !tt.ptr<f32>, %v: f32) {
  // expected-error @+1 {{'tt.atomic_rmw' op there is no update `add` for elements of type 'f32'}}
  %0 = tt.atomic_rmw add, relaxed, gpu, %p, %v : (!tt.ptr<f32>, f32) -> f32
  tt.return
}

// -----

tt.func @integer_update(%p: !tt.ptr<i32>, %v: i32) {
  // expected-error @+1 {{'tt.atomic_rmw' op there is no update `fadd` for elements of type 'i32'}}
  %0 = tt.atomic_rmw fadd, relaxed, gpu, %p, %v : (!tt.ptr<i32>, i32) -> i32
  tt.return
}

// -----

tt.func @block_pointer(%p: !tt.ptr<f16>, %n: i64, %i: i32) {
  // expected-error @+1 {{'tt.make_tensor_ptr' op `shape` has 1 entries, the block has rank 2}}
  %0 = "tt.make_tensor_ptr"(%p, %n, %n, %i) <{order = array<i32: 0>}> : (!tt.ptr<f16>, i64, i64, i32) -> !tt.ptr<tensor<8x16xf16>>
  tt.return
}

// -----

tt.func @block_order(%p: !tt.ptr<f16>, %n: i64, %i: i32) {
  // expected-error @+1 {{'tt.make_tensor_ptr' op order [1, 1] must be a permutation of 0 to 1}}
  %0 = tt.make_tensor_ptr %p, [%n, %n], [%n, %n], [%i, %i] {order = array<i32: 1, 1>} : <tensor<8x16xf16>>
  tt.return
}

// -----

tt.func @advance(%p: !tt.ptr<tensor<4x4xf32>>, %i: i32) {
  // expected-error @+1 {{'tt.advance' op has 1 offsets, the block has rank 2}}
  %0 = tt.advance %p, [%i] : <tensor<4x4xf32>>
  tt.return
}

// -----

tt.func @value_type(%p: !tt.ptr<f32>, %v: f16) {
  // expected-error @+2 {{'tt.store' op failed to verify that value type matches ptr type}}
  // expected-note @+1 {{expected 'f32', got 'f16'}}
  "tt.store"(%p, %v) : (!tt.ptr<f32>, f16) -> ()
  tt.return
}

// -----

tt.func @mask_shape(%p: tensor<4x!tt.ptr<f32>>, %m: tensor<8xi1>) {
  // expected-error @+1 {{'tt.load' op requires the same shape for all operands and results; operand #1 has [8], operand #0 has [4]}}
  %0 = "tt.load"(%p, %m) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<4x!tt.ptr<f32>>, tensor<8xi1>) -> tensor<4xf32>
  tt.return
}

// -----

#b1 = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#a1 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @store_layouts(%p: tensor<512x!tt.ptr<f32>, #b1>, %v: tensor<512xf32, #a1>) {
    // expected-error @+1 {{'tt.store' op requires the same encoding for all operands; operand #1 has #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>, operand #0 has #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>}}
    "tt.store"(%p, %v) : (tensor<512x!tt.ptr<f32>, #b1>, tensor<512xf32, #a1>) -> ()
    tt.return
  }
}

// -----

tt.func @groups(%p: !tt.ptr<f16>, %n: i64, %i: i32) {
  // expected-error @+1 {{'tt.make_tensor_ptr' op `shape`, `strides`, `offsets` must have the same number of operands; together they have 2}}
  %0 = "tt.make_tensor_ptr"(%p, %n, %n) <{order = array<i32: 0>}> : (!tt.ptr<f16>, i64, i64) -> !tt.ptr<tensor<16xf16>>
  tt.return
}
