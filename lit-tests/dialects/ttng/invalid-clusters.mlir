// RUN: llopt %s --split-input-file --verify-diagnostics

// Each part breaks one rule; the message says which, and what is at fault.

module attributes {"ttg.cluster-split" = 2 : i32} {
  tt.func @elements(%a: tensor<32x64xf32>) {
    // expected-error @+1 {{'ttng.cluster_sum' op the sums of 'f32' cannot be 'f16'}}
    %s = ttng.cluster_sum %a : tensor<32x64xf32> -> tensor<16x64xf16>
    tt.return
  }
}

// -----

module attributes {"ttg.cluster-split" = 2 : i32} {
  tt.func @quarter(%a: tensor<32x64xf32>) {
    // expected-error @+1 {{'ttng.cluster_sum' op each of 2 blocks has all of the sum, or its part along one dimension; 'tensor<8x64xf32>' is neither of 'tensor<32x64xf32>'}}
    %s = ttng.cluster_sum %a : tensor<32x64xf32> -> tensor<8x64xf32>
    tt.return
  }
}

// -----

module attributes {"ttg.cluster-split" = 2 : i32} {
  tt.func @both(%a: tensor<32x64xf32>) {
    // expected-error @+1 {{'tensor<16x32xf32>' is neither of 'tensor<32x64xf32>'}}
    %s = ttng.cluster_sum %a : tensor<32x64xf32> -> tensor<16x32xf32>
    tt.return
  }
}

// -----

module attributes {"ttg.cluster-split" = 2 : i32} {
  tt.func @rank(%a: tensor<32x64xf32>) {
    // expected-error @+1 {{'tensor<2048xf32>' is neither of 'tensor<32x64xf32>'}}
    %s = ttng.cluster_sum %a : tensor<32x64xf32> -> tensor<2048xf32>
    tt.return
  }
}
