// What is printed is what was read, character by character, from text and from bytecode.
// RUN: llopt %s --split-input-file --verify-roundtrip | grep -v '^ *\(//.*\)*$' > %t.printed
// RUN: grep -v '^ *\(//.*\)*$' %s | diff - %t.printed

module attributes {"ttg.cluster-split" = 2 : i32} {
  // The whole sum, and a part of it in each block.
  tt.func @sums(%arg0: tensor<32x64xf32>) -> (i32, tensor<32x64xf32>, tensor<16x64xf32>, tensor<32x32xf32>) {
    %0 = ttng.cluster_rank : i32
    %1 = ttng.cluster_sum %arg0 : tensor<32x64xf32> -> tensor<32x64xf32>
    %2 = ttng.cluster_sum %arg0 : tensor<32x64xf32> -> tensor<16x64xf32>
    %3 = ttng.cluster_sum %arg0 : tensor<32x64xf32> -> tensor<32x32xf32>
    tt.return %0, %1, %2, %3 : i32, tensor<32x64xf32>, tensor<16x64xf32>, tensor<32x32xf32>
  }
}
