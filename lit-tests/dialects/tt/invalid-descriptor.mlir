// RUN: llopt %s --split-input-file --verify-diagnostics

// Each part breaks one rule; the message says which, and what is at fault.

tt.func @extents(%p: !tt.ptr<f16>, %n: i32, %s: i64) {
  // expected-error @+1 {{'tt.make_tensor_descriptor' op has 1 extents and strides, the block has rank 2}}
  %0 = tt.make_tensor_descriptor %p, [%n], [%s] : <f16>, <tensor<8x64xf16>>
  tt.return
}

// -----

tt.func @block_shape(%d: !tt.tensordesc<tensor<8x64xf16>>, %i: i32) {
  // expected-error @+1 {{'tt.descriptor_load' op the block has shape [8, 64], the tensor [64]; only leading extents of 1 may be dropped}}
  %0 = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<tensor<8x64xf16>> -> tensor<64xf16>
  tt.return
}

// -----

tt.func @block_element(%d: !tt.tensordesc<tensor<8x64xf16>>, %i: i32) {
  // expected-error @+1 {{'tt.descriptor_load' op the block has elements of type 'f16', the tensor of 'f32'}}
  %0 = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<tensor<8x64xf16>> -> tensor<8x64xf32>
  tt.return
}

// -----

tt.func @float_update(%d: !tt.tensordesc<tensor<8x64xf16>>, %i: i32, %x: tensor<8x64xf16>) {
  // expected-error @+1 {{'tt.descriptor_reduce' op there is no update `xor` for elements of type 'f16'}}
  tt.descriptor_reduce xor, %d[%i, %i], %x : !tt.tensordesc<tensor<8x64xf16>>, tensor<8x64xf16>
  tt.return
}

// -----

tt.func @row_numbers(%d: !tt.tensordesc<tensor<1x64xf16>>, %x: tensor<4x8xi32>, %y: i32) {
  // expected-error @+1 {{'tt.descriptor_gather' op the row numbers must have one dimension, but have shape [4, 8]}}
  %0 = tt.descriptor_gather %d[%x, %y] : (!tt.tensordesc<tensor<1x64xf16>>, tensor<4x8xi32>, i32) -> tensor<32x64xf16>
  tt.return
}

// -----

tt.func @rows_of_rows(%d: !tt.tensordesc<tensor<1x64xf16>>, %x: tensor<32xi32>, %y: i32) {
  // expected-error @+1 {{'tt.descriptor_gather' op the rows must form a matrix, but have shape [2048]}}
  %0 = tt.descriptor_gather %d[%x, %y] : (!tt.tensordesc<tensor<1x64xf16>>, tensor<32xi32>, i32) -> tensor<2048xf16>
  tt.return
}

// -----

tt.func @few_rows(%d: !tt.tensordesc<tensor<1x64xf16>>, %x: tensor<4xi32>, %y: i32) {
  // expected-error @+1 {{'tt.descriptor_gather' op at least 8 rows are moved at once, not 4}}
  %0 = tt.descriptor_gather %d[%x, %y] : (!tt.tensordesc<tensor<1x64xf16>>, tensor<4xi32>, i32) -> tensor<4x64xf16>
  tt.return
}

// -----

tt.func @wide_elements(%d: !tt.tensordesc<tensor<1x64xf64>>, %x: tensor<32xi32>, %y: i32) {
  // expected-error @+1 {{'tt.descriptor_gather' op elements have at most 32 bits; 'f64' has 64}}
  %0 = tt.descriptor_gather %d[%x, %y] : (!tt.tensordesc<tensor<1x64xf64>>, tensor<32xi32>, i32) -> tensor<32x64xf64>
  tt.return
}

// -----

tt.func @narrow_rows(%d: !tt.tensordesc<tensor<1x8xf16>>, %x: tensor<32xi32>, %y: i32) {
  // expected-error @+1 {{'tt.descriptor_gather' op rows of 'f16' have at least 16 columns, not 8}}
  %0 = tt.descriptor_gather %d[%x, %y] : (!tt.tensordesc<tensor<1x8xf16>>, tensor<32xi32>, i32) -> tensor<32x8xf16>
  tt.return
}

// -----

tt.func @count_of_rows(%d: !tt.tensordesc<tensor<1x64xf16>>, %x: tensor<16xi32>, %y: i32) {
  // expected-error @+1 {{'tt.descriptor_gather' op there are 16 row numbers for 32 rows}}
  %0 = tt.descriptor_gather %d[%x, %y] : (!tt.tensordesc<tensor<1x64xf16>>, tensor<16xi32>, i32) -> tensor<32x64xf16>
  tt.return
}

// -----

tt.func @block_of_rows(%d: !tt.tensordesc<tensor<8x64xf16>>, %x: tensor<32xi32>, %y: i32) {
  // expected-error @+1 {{'tt.descriptor_gather' op the block must be one row, but has shape [8, 64]}}
  %0 = tt.descriptor_gather %d[%x, %y] : (!tt.tensordesc<tensor<8x64xf16>>, tensor<32xi32>, i32) -> tensor<32x64xf16>
  tt.return
}

// -----

tt.func @columns(%d: !tt.tensordesc<tensor<1x64xf16>>, %x: tensor<32xi32>, %y: i32) {
  // expected-error @+1 {{'tt.descriptor_gather' op the block has 64 columns, the rows 32}}
  %0 = tt.descriptor_gather %d[%x, %y] : (!tt.tensordesc<tensor<1x64xf16>>, tensor<32xi32>, i32) -> tensor<32x32xf16>
  tt.return
}

// -----

tt.func @row_elements(%d: !tt.tensordesc<tensor<1x64xf16>>, %x: tensor<32xi32>, %y: i32, %v: tensor<32x64xbf16>) {
  // expected-error @+1 {{'tt.descriptor_scatter' op the block has elements of type 'f16', the rows of 'bf16'}}
  tt.descriptor_scatter %d[%x, %y], %v : !tt.tensordesc<tensor<1x64xf16>>, tensor<32xi32>, i32, tensor<32x64xbf16>
  tt.return
}

// -----

// expected-error @+1 {{the block of a tensor descriptor must be a ranked tensor, not 'f32'}}
tt.func private @f(!tt.tensordesc<f32>)
