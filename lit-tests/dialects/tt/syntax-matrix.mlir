// What is printed is what was read, character by character, from text and from bytecode.
// RUN: llopt %s --split-input-file --verify-roundtrip | grep -v '^ *\(//.*\)*$' > %t.printed
// RUN: grep -v '^ *\(//.*\)*$' %s | diff - %t.printed

module {
  // Products with each way to treat f32, and one that bounds imprecise sums.
  tt.func @dot(%arg0: tensor<16x32xf32>, %arg1: tensor<32x16xf32>, %arg2: tensor<16x16xf32>, %arg3: tensor<2x16x32xf8E5M2>, %arg4: tensor<2x32x16xf8E5M2>, %arg5: tensor<2x16x16xf32>) {
    %0 = tt.dot %arg0, %arg1, %arg2 : tensor<16x32xf32> * tensor<32x16xf32> -> tensor<16x16xf32>
    %1 = tt.dot %arg0, %arg1, %arg2, inputPrecision = tf32 : tensor<16x32xf32> * tensor<32x16xf32> -> tensor<16x16xf32>
    %2 = tt.dot %arg0, %arg1, %arg2, inputPrecision = tf32x3 : tensor<16x32xf32> * tensor<32x16xf32> -> tensor<16x16xf32>
    %3 = tt.dot %arg0, %arg1, %arg2, inputPrecision = bf16x3 : tensor<16x32xf32> * tensor<32x16xf32> -> tensor<16x16xf32>
    %4 = tt.dot %arg0, %arg1, %arg2, inputPrecision = bf16x6 : tensor<16x32xf32> * tensor<32x16xf32> -> tensor<16x16xf32>
    %5 = tt.dot %arg3, %arg4, %arg5 {maxNumImpreciseAcc = 64 : i32} : tensor<2x16x32xf8E5M2> * tensor<2x32x16xf8E5M2> -> tensor<2x16x16xf32>
    tt.return
  }

  // Scaled products of every pair of formats that packs differently, scales on either side or both.
  tt.func @dot_scaled(%arg0: tensor<32x64xf8E4M3FN>, %arg1: tensor<32x64xf8E5M2>, %arg2: tensor<32x32xi8>, %arg3: tensor<64x32xi8>, %arg4: tensor<64x16xi8>, %arg5: tensor<32x64xi8>, %arg6: tensor<64x32xbf16>, %arg7: tensor<64x32xf16>, %arg8: tensor<32x2xi8>, %arg9: tensor<32x2xi8>, %arg10: tensor<32x32xf32>) {
    %0 = tt.dot_scaled %arg0 scale %arg8, %arg6, %arg10 lhs = e4m3 rhs = bf16 {fastMath = false} : tensor<32x64xf8E4M3FN>, tensor<32x2xi8> * tensor<64x32xbf16> -> tensor<32x32xf32>
    %1 = tt.dot_scaled %arg1 scale %arg8, %arg7, %arg10 lhs = e5m2 rhs = fp16 {fastMath = true} : tensor<32x64xf8E5M2>, tensor<32x2xi8> * tensor<64x32xf16> -> tensor<32x32xf32>
    %2 = tt.dot_scaled %arg2 scale %arg8, %arg2 scale %arg9, %arg10 lhs = e2m1 rhs = e2m1 {fastMath = false} : tensor<32x32xi8>, tensor<32x2xi8> * tensor<32x32xi8>, tensor<32x2xi8> -> tensor<32x32xf32>
    %3 = tt.dot_scaled %arg5 scale %arg8, %arg3 scale %arg9, %arg10 lhs = e2m3 rhs = e3m2 {fastMath = false} : tensor<32x64xi8>, tensor<32x2xi8> * tensor<64x32xi8>, tensor<32x2xi8> -> tensor<32x32xf32>
    %4 = tt.dot_scaled %arg5, %arg4 scale %arg9, %arg10 lhs = e2m3 rhs = e2m1 {fastMath = false, rhs_k_pack = false} : tensor<32x64xi8> * tensor<64x16xi8>, tensor<32x2xi8> -> tensor<32x32xf32>
    tt.return
  }

  // A left operand packed along M, and scales for each group of 16.
  tt.func @dot_scaled_packing(%arg0: tensor<16x64xi8>, %arg1: tensor<32x32xi8>, %arg2: tensor<32x4xf8E4M3FN>, %arg3: tensor<32x32xf32>) {
    %0 = tt.dot_scaled %arg0 scale %arg2, %arg1 scale %arg2, %arg3 lhs = e2m1 rhs = e2m1 {fastMath = false, lhs_k_pack = false} : tensor<16x64xi8>, tensor<32x4xf8E4M3FN> * tensor<32x32xi8>, tensor<32x4xf8E4M3FN> -> tensor<32x32xf32>
    tt.return
  }
}
