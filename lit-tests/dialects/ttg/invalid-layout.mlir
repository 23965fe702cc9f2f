// RUN: llopt %s --split-input-file --verify-diagnostics

// Each part breaks one rule; the message says which, and what is at fault.

#w641 = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @no_lanes(%x: tensor<512xf32, #w641>) {
    // expected-error @+1 {{'ttg.convert_layout' op operand #0 has a layout for 64 lanes per warp (#ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>); here are 32}}
    %0 = ttg.convert_layout %x : tensor<512xf32, #w641> -> tensor<512xf32, #w641>
    tt.return
  }
}

// -----

#b1 = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @no_blocks(%x: tensor<512xf32, #b1>) {
    // expected-error @+1 {{'ttg.convert_layout' op operand #0 has a layout for 1 blocks per cluster (#ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>); here are 2}}
    %0 = ttg.convert_layout %x : tensor<512xf32, #b1> -> tensor<512xf32, #b1>
    tt.return
  }
}

// -----

#flat1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @memory_layout(%x: tensor<512xf32, #flat1>) {
    %0 = arith.constant 0 : i32
    // expected-error @+1 {{'tt.bitcast' op operand #0 has the layout #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}> of memory; a tensor needs one of registers}}
    %1 = tt.bitcast %x : tensor<512xf32, #flat1> -> tensor<512xi32, #flat1>
    tt.return
  }
}

// -----

#b1 = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @extent(%x: tensor<3xf32, #b1>) {
    // expected-error @+1 {{'ttg.convert_layout' op operand #0 has a layout and an extent of 3, which is no power of two}}
    %0 = ttg.convert_layout %x : tensor<3xf32, #b1> -> tensor<3xf32, #b1>
    tt.return
  }
}

// -----

#b1 = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
tt.func @no_warps(%x: tensor<512xf32, #b1>) {
  // Nothing says how many warps there are.
  // expected-error @+1 {{'tt.bitcast' op operand #0 has a layout, but nothing around the operation says `ttg.num-warps`}}
  %0 = tt.bitcast %x : tensor<512xf32, #b1> -> tensor<512xi32, #b1>
  tt.return
}

// -----

#b1 = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @convert(%x: tensor<512xf32, #b1>) {
    // expected-error @+1 {{'ttg.convert_layout' op operand and result must both have a layout, or neither}}
    %0 = ttg.convert_layout %x : tensor<512xf32, #b1> -> tensor<512xf32>
    tt.return
  }
}

// -----

#b1 = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @convert_element(%x: tensor<512xf32, #b1>) {
    // expected-error @+1 {{'ttg.convert_layout' op requires the same element type for all operands and results}}
    %0 = ttg.convert_layout %x : tensor<512xf32, #b1> -> tensor<512xi32, #b1>
    tt.return
  }
}

// -----

#a2 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @fp4_element(%x: tensor<16x16xi8, #a2>) {
    // expected-error @+1 {{'ttg.fp4_to_fp' op the result must have elements of type f16 or bf16, not 'f32'}}
    %0 = ttg.fp4_to_fp %x {axis = 1 : i32} : tensor<16x16xi8, #a2> -> tensor<16x32xf32, #a2>
    tt.return
  }
}

// -----

tt.func @fp4_rank(%x: tensor<16xi8>) {
  // expected-error @+1 {{'ttg.fp4_to_fp' op the operand has rank 1, the result 2}}
  %0 = ttg.fp4_to_fp %x {axis = 0 : i32} : tensor<16xi8> -> tensor<16x2xf16>
  tt.return
}

// -----

tt.func @fp4_axis(%x: tensor<16xi8>) {
  // expected-error @+1 {{'ttg.fp4_to_fp' op axis 1 is out of range for rank 1}}
  %0 = ttg.fp4_to_fp %x {axis = 1 : i32} : tensor<16xi8> -> tensor<32xf16>
  tt.return
}

// -----

tt.func @fp4_extent(%x: tensor<16x16xi8>) {
  // expected-error @+1 {{'ttg.fp4_to_fp' op dimension 0 of the result must have extent 32, but has 16}}
  %0 = ttg.fp4_to_fp %x {axis = 0 : i32} : tensor<16x16xi8> -> tensor<16x32xf16>
  tt.return
}

// -----

#a2 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @fp4_moves(%x: tensor<16x16xi8, #a2>) {
    // expected-error @+1 {{'ttg.fp4_to_fp' op the layouts move elements; expected the operand to have #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>, got #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>}}
    %0 = ttg.fp4_to_fp %x {axis = 1 : i32} : tensor<16x16xi8, #a2> -> tensor<16x32xf16, #a2>
    tt.return
  }
}

// -----

#a2 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @fp4_one_layout(%x: tensor<16x16xi8, #a2>) {
    // expected-error @+1 {{'ttg.fp4_to_fp' op operand and result must both have a layout, or neither}}
    %0 = ttg.fp4_to_fp %x {axis = 1 : i32} : tensor<16x16xi8, #a2> -> tensor<16x32xf16>
    tt.return
  }
}
