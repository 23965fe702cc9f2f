// RUN: llopt %s --split-input-file --verify-diagnostics

// Each part breaks one rule; the message says which, and what is at fault.

tt.func @one_dimension(%a: tensor<16xf16>, %b: tensor<16xf16>, %c: tensor<16xf32>) {
  // expected-error @+1 {{'tt.dot' op a matrix product has two dimensions, or three with a batch; the result has shape [16]}}
  %0 = tt.dot %a, %b, %c : tensor<16xf16> * tensor<16xf16> -> tensor<16xf32>
  tt.return
}

// -----

tt.func @ranks(%a: tensor<16x16xf16>, %b: tensor<2x16x16xf16>, %c: tensor<16x16xf32>) {
  // expected-error @+1 {{'tt.dot' op operands and result must have one rank, but have shapes [16, 16], [2, 16, 16] and [16, 16]}}
  %0 = tt.dot %a, %b, %c : tensor<16x16xf16> * tensor<2x16x16xf16> -> tensor<16x16xf32>
  tt.return
}

// -----

tt.func @batch(%a: tensor<2x16x16xf16>, %b: tensor<4x16x16xf16>, %c: tensor<2x16x16xf32>) {
  // expected-error @+1 {{'tt.dot' op the batch extents differ: 2, 4 and 2}}
  %0 = tt.dot %a, %b, %c : tensor<2x16x16xf16> * tensor<4x16x16xf16> -> tensor<2x16x16xf32>
  tt.return
}

// -----

tt.func @product(%a: tensor<16x16xf16>, %b: tensor<16x32xf16>, %c: tensor<16x16xf32>) {
  // expected-error @+1 {{'tt.dot' op the operands give a product of 16x32, the result has shape [16, 16]}}
  %0 = tt.dot %a, %b, %c : tensor<16x16xf16> * tensor<16x32xf16> -> tensor<16x16xf32>
  tt.return
}

// -----

tt.func @widths(%a: tensor<16x16xf16>, %b: tensor<16x16xf8E5M2>, %c: tensor<16x16xf32>) {
  // expected-error @+1 {{'tt.dot' op the operands must have elements of one width, but have 'f16' and 'f8E5M2'}}
  %0 = tt.dot %a, %b, %c : tensor<16x16xf16> * tensor<16x16xf8E5M2> -> tensor<16x16xf32>
  tt.return
}

// -----

#mma2 = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f32_precision(%a: tensor<32x16xf32, #ttg.dot_op<{opIdx = 0, parent = #mma2, kWidth = 1}>>, %b: tensor<16x32xf32, #ttg.dot_op<{opIdx = 1, parent = #mma2, kWidth = 1}>>, %c: tensor<32x32xf32, #mma2>) {
    // expected-error @+1 {{'tt.dot' op f32 operands of version 2 of #ttg.nvidia_mma need inputPrecision = tf32}}
    %0 = tt.dot %a, %b, %c : tensor<32x16xf32, #ttg.dot_op<{opIdx = 0, parent = #mma2, kWidth = 1}>> * tensor<16x32xf32, #ttg.dot_op<{opIdx = 1, parent = #mma2, kWidth = 1}>> -> tensor<32x32xf32, #mma2>
    tt.return
  }
}

// -----

#mma2 = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @no_layout(%a: tensor<32x16xf16, #ttg.dot_op<{opIdx = 0, parent = #mma2, kWidth = 2}>>, %b: tensor<16x32xf16>, %c: tensor<32x32xf32, #mma2>) {
    // expected-error @+1 {{'tt.dot' op operands and accumulator must all have a layout; missing: b}}
    %0 = tt.dot %a, %b, %c : tensor<32x16xf16, #ttg.dot_op<{opIdx = 0, parent = #mma2, kWidth = 2}>> * tensor<16x32xf16> -> tensor<32x32xf32, #mma2>
    tt.return
  }
}

// -----

#mma2 = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @operand_number(%a: tensor<32x16xf16, #ttg.dot_op<{opIdx = 1, parent = #mma2, kWidth = 2}>>, %b: tensor<16x32xf16, #ttg.dot_op<{opIdx = 1, parent = #mma2, kWidth = 2}>>, %c: tensor<32x32xf32, #mma2>) {
    // expected-error @+1 {{'tt.dot' op operand `a` has a layout with opIdx = 1; it must be 0}}
    %0 = tt.dot %a, %b, %c : tensor<32x16xf16, #ttg.dot_op<{opIdx = 1, parent = #mma2, kWidth = 2}>> * tensor<16x32xf16, #ttg.dot_op<{opIdx = 1, parent = #mma2, kWidth = 2}>> -> tensor<32x32xf32, #mma2>
    tt.return
  }
}

// -----

#mma2b = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#mma2 = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @other_product(%a: tensor<64x16xf16, #ttg.dot_op<{opIdx = 0, parent = #mma2b, kWidth = 2}>>, %b: tensor<16x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma2b, kWidth = 2}>>, %c: tensor<64x64xf32, #mma2>) {
    // expected-error @+1 {{'tt.dot' op operand `a` is laid out for a product in the layout #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>, the result has #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>}}
    %0 = tt.dot %a, %b, %c : tensor<64x16xf16, #ttg.dot_op<{opIdx = 0, parent = #mma2b, kWidth = 2}>> * tensor<16x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma2b, kWidth = 2}>> -> tensor<64x64xf32, #mma2>
    tt.return
  }
}

// -----

#mma2 = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @k_widths(%a: tensor<32x16xf16, #ttg.dot_op<{opIdx = 0, parent = #mma2, kWidth = 2}>>, %b: tensor<16x32xf16, #ttg.dot_op<{opIdx = 1, parent = #mma2, kWidth = 4}>>, %c: tensor<32x32xf32, #mma2>) {
    // expected-error @+1 {{'tt.dot' op the operands' layouts have kWidth 2 and 4; they must agree}}
    %0 = tt.dot %a, %b, %c : tensor<32x16xf16, #ttg.dot_op<{opIdx = 0, parent = #mma2, kWidth = 2}>> * tensor<16x32xf16, #ttg.dot_op<{opIdx = 1, parent = #mma2, kWidth = 4}>> -> tensor<32x32xf32, #mma2>
    tt.return
  }
}

// -----

#mma2 = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#a2 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @one_operand(%a: tensor<32x16xf16, #ttg.dot_op<{opIdx = 0, parent = #mma2, kWidth = 2}>>, %b: tensor<16x32xf16, #a2>, %c: tensor<32x32xf32, #mma2>) {
    // expected-error @+1 {{'tt.dot' op one operand has a layout of operands, the other has not}}
    %0 = tt.dot %a, %b, %c : tensor<32x16xf16, #ttg.dot_op<{opIdx = 0, parent = #mma2, kWidth = 2}>> * tensor<16x32xf16, #a2> -> tensor<32x32xf32, #mma2>
    tt.return
  }
}

// -----

tt.func @scale_rank(%a: tensor<32x64xf8E4M3FN>, %b: tensor<64x32xf8E4M3FN>, %c: tensor<32x32xf32>, %s: tensor<64xi8>) {
  // expected-error @+1 {{'tt.dot_scaled' op `a_scale` has rank 1, the operands 2}}
  %0 = tt.dot_scaled %a scale %s, %b, %c lhs = e4m3 rhs = e4m3 {fastMath = false} : tensor<32x64xf8E4M3FN>, tensor<64xi8> * tensor<64x32xf8E4M3FN> -> tensor<32x32xf32>
  tt.return
}

// -----

tt.func @scale_rows(%a: tensor<32x64xf8E4M3FN>, %b: tensor<64x32xf8E4M3FN>, %c: tensor<32x32xf32>, %s: tensor<16x2xi8>) {
  // expected-error @+1 {{'tt.dot_scaled' op `a_scale` has 16 rows, M is 32}}
  %0 = tt.dot_scaled %a scale %s, %b, %c lhs = e4m3 rhs = e4m3 {fastMath = false} : tensor<32x64xf8E4M3FN>, tensor<16x2xi8> * tensor<64x32xf8E4M3FN> -> tensor<32x32xf32>
  tt.return
}

// -----

tt.func @scale_columns(%a: tensor<32x64xf8E4M3FN>, %b: tensor<64x32xf8E4M3FN>, %c: tensor<32x32xf32>, %r: tensor<64x2xi8>) {
  // expected-error @+1 {{'tt.dot_scaled' op `b_scale` has 64 rows, N is 32}}
  %0 = tt.dot_scaled %a, %b scale %r, %c lhs = e4m3 rhs = e4m3 {fastMath = false} : tensor<32x64xf8E4M3FN> * tensor<64x32xf8E4M3FN>, tensor<64x2xi8> -> tensor<32x32xf32>
  tt.return
}

// -----

tt.func @scale_groups(%a: tensor<32x64xf8E4M3FN>, %b: tensor<64x32xf8E4M3FN>, %c: tensor<32x32xf32>, %s: tensor<32x4xi8>) {
  // expected-error @+1 {{'tt.dot_scaled' op `a_scale` has 4 scales along K; K of 64 in groups of 32 needs 2}}
  %0 = tt.dot_scaled %a scale %s, %b, %c lhs = e4m3 rhs = e4m3 {fastMath = false} : tensor<32x64xf8E4M3FN>, tensor<32x4xi8> * tensor<64x32xf8E4M3FN> -> tensor<32x32xf32>
  tt.return
}

// -----

tt.func @packed_k(%a: tensor<32x64xi8>, %b: tensor<64x32xf8E4M3FN>, %c: tensor<32x32xf32>, %s: tensor<32x2xi8>) {
  // expected-error @+1 {{'tt.dot_scaled' op K is 128 in the left operand [32, 64] and 64 in the right one [64, 32]}}
  %0 = tt.dot_scaled %a scale %s, %b, %c lhs = e2m1 rhs = e4m3 {fastMath = false} : tensor<32x64xi8>, tensor<32x2xi8> * tensor<64x32xf8E4M3FN> -> tensor<32x32xf32>
  tt.return
}
