// What is printed is what was read, character by character, from text and from bytecode.
// RUN: llopt %s --split-input-file --verify-roundtrip | grep -v '^ *\(//.*\)*$' > %t.printed
// RUN: grep -v '^ *\(//.*\)*$' %s | diff - %t.printed

#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [16, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#blocked1 = #ttg.blocked<{sizePerThread = [2, 4], threadsPerWarp = [16, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#blocked2 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [16, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#linear = #ttg.linear<{register = [[1, 0], [0, 1], [0, 2]], lane = [[0, 4], [0, 8], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]], block = []}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
  // A part, parts put together, and registers transposed.
  tt.func @parts(%arg0: tensor<128x64xf32, #blocked>, %arg1: tensor<128x16xf32, #blocked1>) -> tensor<128x64xf32, #blocked> {
    %0 = amdg.extract_slice %arg0 [64, 32] : tensor<128x64xf32, #blocked> to tensor<64x32xf32, #blocked>
    %1 = amdg.extract_slice %arg0 [0, 32] : tensor<128x64xf32, #blocked> to tensor<64x32xf32, #blocked>
    %2 = amdg.concat %0, %1, %0, %1 : tensor<64x32xf32, #blocked>, tensor<64x32xf32, #blocked>, tensor<64x32xf32, #blocked>, tensor<64x32xf32, #blocked> -> tensor<128x64xf32, #blocked>
    %3 = amdg.in_thread_transpose %arg1 : tensor<128x16xf32, #blocked1> -> tensor<128x16xf32, #linear>
    tt.return %2 : tensor<128x64xf32, #blocked>
  }

  // Microscaled elements, with their scale applied.
  tt.func @scaled(%arg0: tensor<64x16xi8, #blocked2>, %arg1: tensor<64x32xf8E4M3FN, #blocked>, %arg2: tensor<64x32xbf16, #blocked>) {
    %0 = amdg.scaled_upcast_fp4 %arg0 scale %arg2 {axis = 1 : i32} : tensor<64x16xi8, #blocked2>, tensor<64x32xbf16, #blocked> -> tensor<64x32xf16, #blocked>
    %1 = amdg.scaled_upcast_fp8 %arg1 scale %arg2 : tensor<64x32xf8E4M3FN, #blocked>, tensor<64x32xbf16, #blocked> -> tensor<64x32xbf16, #blocked>
    tt.return
  }
}

// -----

#blocked = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [16, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.amd_mfma<{version = 3, warpsPerCTA = [4, 1], instrShape = [16, 16, 16], isTransposed = true}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
  // Microscaled operands of a product.
  tt.func @upcast(%arg0: tensor<64x64xi8, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 8}>>, %arg1: tensor<64x4xi8, #blocked>) {
    %0 = amdg.upcast_mxfp %arg0, %arg1 fp_type = e2m1 {fastMath = false} : tensor<64x64xi8, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 8}>>, tensor<64x4xi8, #blocked> -> tensor<64x128xbf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 8}>>
    %1 = amdg.upcast_mxfp %arg0, %arg1 fp_type = e2m1 {fastMath = true} : tensor<64x64xi8, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 8}>>, tensor<64x4xi8, #blocked> -> tensor<64x128xbf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 8}>>
    tt.return
  }
}
