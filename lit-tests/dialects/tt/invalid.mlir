// RUN: llopt %s --split-input-file --verify-diagnostics

// What is wrong is said, with the value or the dimension that is wrong.

tt.func @load(%x: tensor<4xf32>) {
  // expected-error @+1 {{custom op 'tt.load' the type of `result` does not follow from tensor<4xf32>: result matches ptr type}}
  %0 = tt.load %x : tensor<4xf32>
  tt.return
}

// -----

tt.func @range() {
  // expected-error @+1 {{'tt.make_range' op the range from 0 to 8 has 8 elements, the result has 4}}
  %0 = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<4xi32>
  tt.return
}

// -----

tt.func @reversed_range() {
  // expected-error @+1 {{'tt.make_range' op start, 8, must be less than end, 0}}
  %0 = tt.make_range {start = 8 : i32, end = 0 : i32} : tensor<8xi32>
  tt.return
}

// -----

tt.func @reshape(%x: tensor<4x4xf32>) {
  // expected-error @+1 {{'tt.reshape' op the operand has 16 elements, the result 8}}
  %0 = tt.reshape %x : tensor<4x4xf32> -> tensor<8xf32>
  tt.return
}

// -----

tt.func @broadcast(%x: tensor<2x1xf32>) {
  // expected-error @+1 {{'tt.broadcast' op dimension 0 has extent 2 and cannot become 4; only 1 can be repeated}}
  %0 = tt.broadcast %x : tensor<2x1xf32> -> tensor<4x4xf32>
  tt.return
}

// -----

tt.func @expand(%x: tensor<4xf32>) {
  // expected-error @+2 {{'tt.expand_dims' op axis 2 is out of range for a result of rank 2}}
  // expected-error @+1 {{'tt.expand_dims' op failed to infer returned types}}
  %0 = tt.expand_dims %x {axis = 2 : i32} : tensor<4xf32> -> tensor<4x1xf32>
  tt.return
}

// -----

tt.func @trans(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{'tt.trans' op order [0, 0] must be a permutation of 0 to 1}}
  %0 = tt.trans %x {order = array<i32: 0, 0>} : tensor<4x8xf32> -> tensor<8x4xf32>
  tt.return
}

// -----

tt.func @dot(%a: tensor<16x32xf16>, %b: tensor<16x16xf16>, %c: tensor<16x16xf32>) {
  // expected-error @+1 {{'tt.dot' op K is 32 in the left operand [16, 32] and 16 in the right one [16, 16]}}
  %0 = tt.dot %a, %b, %c : tensor<16x32xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  tt.return
}

// -----

tt.func @reduce(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{'tt.reduce' op axis 2 is out of range for rank 2}}
  %0 = "tt.reduce"(%x) <{axis = 2 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %1 = arith.addf %a, %b : f32
    tt.reduce.return %1 : f32
  }) : (tensor<4x8xf32>) -> tensor<4xf32>
  tt.return
}

// -----

tt.func @combine(%x: tensor<4xf32>) {
  // expected-error @+1 {{'tt.reduce' op argument #1 of the region must have type 'f32', but has 'i32'}}
  %0 = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: i32):
    tt.reduce.return %a : f32
  }) : (tensor<4xf32>) -> f32
  tt.return
}

// -----

tt.func @bitcast(%x: tensor<4xf32>) {
  // expected-error @+1 {{'tt.bitcast' op cannot read 32 bits of 'f32' as 16 bits of 'i16'}}
  %0 = tt.bitcast %x : tensor<4xf32> -> tensor<4xi16>
  tt.return
}

// -----

tt.func @returned() -> i32 {
  // expected-error @+1 {{'tt.return' op has 0 operands, but the enclosing function 'returned' returns 1}}
  tt.return
}

// -----

tt.func private @callee(i32) -> i32

tt.func @call(%x: f32) {
  // expected-error @+1 {{'tt.call' op operand #0 has type 'f32', but 'callee' has 'i32'}}
  %0 = tt.call @callee(%x) : (f32) -> i32
  tt.return
}

// -----

tt.func @unknown_callee() {
  // expected-error @+1 {{'tt.call' op 'nobody' does not reference a function of this module}}
  tt.call @nobody() : () -> ()
  tt.return
}

// -----

tt.func @split(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{'tt.split' op operand #0 has 12 elements, which is not a power of two}}
  %0, %1 = tt.split %x : tensor<4x3xf32> -> tensor<4xf32>
  tt.return
}

// -----

tt.func @join(%x: tensor<4xf32>) {
  // expected-error @+1 {{'tt.join' op the result must have shape [4, 2], but has [4, 4]}}
  %0 = tt.join %x, %x : tensor<4xf32> -> tensor<4x4xf32>
  tt.return
}

// -----

tt.func @program_id() {
  // expected-error @+1 {{custom op 'tt.get_program_id' expected attribute `axis` to be one of: x, y, z}}
  %0 = tt.get_program_id w : i32
  tt.return
}

// -----

tt.func @cache(%p: !tt.ptr<f32>) {
  // expected-error @+1 {{custom op 'tt.load' expected attribute `cache` to be one of: none, ca, cg, wb, cs, wt, cv}}
  %0 = tt.load %p cacheModifier = sometimes : !tt.ptr<f32>
  tt.return
}

// -----

tt.func @histogram(%x: tensor<4x4xi32>) {
  // expected-error @+1 {{'tt.histogram' op the operand must have one dimension, but has shape [4, 4]}}
  %0 = tt.histogram %x : tensor<4x4xi32> -> tensor<16xi32>
  tt.return
}

// -----

tt.func @not_a_power_of_two() {
  // expected-error @+1 {{'tt.make_range' op result #0 has 6 elements, which is not a power of two}}
  %0 = tt.make_range {start = 0 : i32, end = 6 : i32} : tensor<6xi32>
  tt.return
}

// -----

tt.func @descriptor(%d: !tt.tensordesc<tensor<8x8xf32>>, %i: i32) {
  // expected-error @+1 {{'tt.descriptor_load' op has 1 indices, the block has rank 2}}
  %0 = tt.descriptor_load %d[%i] : !tt.tensordesc<tensor<8x8xf32>> -> tensor<8x8xf32>
  tt.return
}

// -----

// A name that is no text; what is inside of the function asks for it.
// expected-error @+1 {{'tt.func' op attribute 'sym_name' must be a string of UTF-8, but is "a\FFb"}}
tt.func @"a\FFb"() {
  tt.return
}
