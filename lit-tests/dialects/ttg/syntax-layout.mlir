// What is printed is what was read, character by character, from text and from bytecode.
// RUN: llopt %s --split-input-file --verify-roundtrip | grep -v '^ *\(//.*\)*$' > %t.printed
// RUN: grep -v '^ *\(//.*\)*$' %s | diff - %t.printed

// Conversions, and unpacking of 4-bit floats along each dimension.
#blocked = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#blocked1 = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [0, 1]}>
#blocked2 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#blocked3 = #ttg.blocked<{sizePerThread = [2, 2], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [0, 1]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @layouts(%arg0: tensor<16x16xi8, #blocked>, %arg1: tensor<16x16xi8, #blocked1>) -> (tensor<16x32xf16, #blocked2>, tensor<32x16xbf16, #blocked3>) {
    %0 = ttg.fp4_to_fp %arg0 {axis = 1 : i32} : tensor<16x16xi8, #blocked> -> tensor<16x32xf16, #blocked2>
    %1 = ttg.fp4_to_fp %arg1 {axis = 0 : i32} : tensor<16x16xi8, #blocked1> -> tensor<32x16xbf16, #blocked3>
    %2 = ttg.convert_layout %0 {ttg.note = "kept"} : tensor<16x32xf16, #blocked2> -> tensor<16x32xf16, #blocked>
    tt.return %0, %1 : tensor<16x32xf16, #blocked2>, tensor<32x16xbf16, #blocked3>
  }
}
