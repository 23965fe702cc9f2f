// RUN: llopt %s --split-input-file --verify-diagnostics

// Each part breaks one rule; the message says which, and what is at fault.

tt.func @address_space(%p: !tt.ptr<f32>) {
  // expected-error @+1 {{'tt.bitcast' op cannot change the address space of a pointer from 1 to 3}}
  %0 = tt.bitcast %p : !tt.ptr<f32> -> !tt.ptr<f32, 3>
  tt.return
}

// -----

tt.func @pointer_to_bits(%p: !tt.ptr<f32>) {
  // expected-error @+1 {{'tt.bitcast' op cannot turn '!tt.ptr<f32>' into 'i64'; tt.int_to_ptr and tt.ptr_to_int convert pointers}}
  %0 = tt.bitcast %p : !tt.ptr<f32> -> i64
  tt.return
}

// -----

tt.func @rounding(%x: f32) {
  // expected-error @+1 {{'tt.fp_to_fp' op a conversion from 'f32' to 'f16' loses bits and needs `rounding`}}
  %0 = tt.fp_to_fp %x : f32 -> f16
  tt.return
}

// -----

tt.func @packed_element(%x: tensor<4xi32>) {
  // expected-error @+1 {{'tt.elementwise_inline_asm' op packed_element must be positive, but is 0}}
  %0 = tt.elementwise_inline_asm "" {constraints = "", packed_element = 0 : i32, pure = true} %x : tensor<4xi32> -> tensor<4xi32>
  tt.return
}

// -----

tt.func @packing(%x: tensor<4xi32>) {
  // expected-error @+1 {{'tt.elementwise_inline_asm' op the 4 elements of the operands are no multiple of packed_element, 8}}
  %0 = tt.elementwise_inline_asm "" {constraints = "", packed_element = 8 : i32, pure = true} %x : tensor<4xi32> -> tensor<4xi32>
  tt.return
}

// -----

tt.func @assembly_shapes(%x: tensor<4xi32>) {
  // expected-error @+1 {{'tt.elementwise_inline_asm' op all non-scalar operands/results must have the same shape and base type}}
  %0 = tt.elementwise_inline_asm "" {constraints = "", packed_element = 1 : i32, pure = true} %x : tensor<4xi32> -> tensor<8xi32>
  tt.return
}

// -----

tt.func @map_nothing() {
  // expected-error @+1 {{'tt.map_elementwise' op expected 1 or more operands, but found 0}}
  "tt.map_elementwise"() <{pack = 1 : i32}> ({
  ^bb0:
    tt.map_elementwise.return
  }) : () -> ()
  tt.return
}

// -----

tt.func @map_pack(%x: tensor<4xf32>) {
  // expected-error @+1 {{'tt.map_elementwise' op pack must be a power of two, but is 3}}
  %0 = "tt.map_elementwise"(%x) <{pack = 3 : i32}> ({
  ^bb0(%a: f32, %b: f32, %c: f32):
    tt.map_elementwise.return %a, %b, %c : f32, f32, f32
  }) : (tensor<4xf32>) -> tensor<4xf32>
  tt.return
}

// -----

tt.func @map_arguments(%x: tensor<4xf32>) {
  // expected-error @+1 {{'tt.map_elementwise' op the region must take (f32, f32), but takes (f32)}}
  %0 = "tt.map_elementwise"(%x) <{pack = 2 : i32}> ({
  ^bb0(%a: f32):
    tt.map_elementwise.return %a, %a : f32, f32
  }) : (tensor<4xf32>) -> tensor<4xf32>
  tt.return
}

// -----

tt.func @map_yield(%x: tensor<4xf32>) {
  // expected-error @+1 {{'tt.map_elementwise' op the region must yield (f32), but yields (f32, f32)}}
  %0 = "tt.map_elementwise"(%x) <{pack = 1 : i32}> ({
  ^bb0(%a: f32):
    tt.map_elementwise.return %a, %a : f32, f32
  }) : (tensor<4xf32>) -> tensor<4xf32>
  tt.return
}

// -----

tt.func @map_store(%x: tensor<4xf32>, %p: !tt.ptr<f32>) {
  // expected-error @+1 {{'tt.map_elementwise' op the region must not write memory, but 'tt.store' does}}
  %0 = "tt.map_elementwise"(%x) <{pack = 1 : i32}> ({
  ^bb0(%a: f32):
    tt.store %p, %a : !tt.ptr<f32>
    tt.map_elementwise.return %a : f32
  }) : (tensor<4xf32>) -> tensor<4xf32>
  tt.return
}

// -----

tt.func @operand_type(%x: i32) {
  // expected-error @+1 {{'tt.precise_sqrt' op operand #0 (`x`) must be floating-point or ranked tensor of floating-point values, but got 'i32'}}
  %0 = tt.precise_sqrt %x : i32
  tt.return
}

// -----

tt.func @shapes(%p: tensor<4x!tt.ptr<f32>>, %o: tensor<8xi32>) {
  // expected-error @+1 {{'tt.addptr' op all non-scalar operands/results must have the same shape and base type}}
  %0 = tt.addptr %p, %o : tensor<4x!tt.ptr<f32>>, tensor<8xi32>
  tt.return
}

// -----

#b1 = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#a1 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @layouts(%p: tensor<512x!tt.ptr<f32>, #b1>, %o: tensor<512xi32, #a1>) {
    // expected-error @+1 {{'tt.addptr' op requires the same encoding for all operands and results; operand #1 has #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>, operand #0 has #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>}}
    %0 = tt.addptr %p, %o : tensor<512x!tt.ptr<f32>, #b1>, tensor<512xi32, #a1>
    tt.return
  }
}

// -----

tt.func @too_large(%x: tensor<2097152xi32>) {
  // expected-error @+1 {{'tt.bitcast' op operand #0 has 2097152 elements, more than the 1048576 that a tensor may have}}
  %0 = tt.bitcast %x : tensor<2097152xi32> -> tensor<2097152xf32>
  tt.return
}

// -----

tt.func @dynamic(%x: tensor<?xi32>) {
  // expected-error @+1 {{'tt.bitcast' op operand #0 has a dynamic extent: 'tensor<?xi32>'}}
  %0 = tt.bitcast %x : tensor<?xi32> -> tensor<?xf32>
  tt.return
}

// -----

tt.func @attribute_missing(%x: f32) {
  // expected-error @+1 {{'tt.clampf' op requires attribute 'propagateNan'}}
  %0 = "tt.clampf"(%x, %x, %x) : (f32, f32, f32) -> f32
  tt.return
}

// -----

tt.func @attribute_kind(%x: f32) {
  // expected-error @+1 {{'tt.clampf' op attribute 'propagateNan' must be one of: none, all, but is "all"}}
  %0 = "tt.clampf"(%x, %x, %x) <{propagateNan = "all"}> : (f32, f32, f32) -> f32
  tt.return
}
