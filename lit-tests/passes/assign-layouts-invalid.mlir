// RUN: llopt %s --assign-layouts --split-input-file --verify-diagnostics
// RUN: not llopt %s --assign-layouts=num-warps=3 --split-input-file 2>&1 | FileCheck %s --check-prefix=WARPS
// RUN: not llopt %s --assign-layouts=target=cuda:1 --split-input-file 2>&1 | FileCheck %s --check-prefix=TARGET

// WARPS: error: 'builtin.module' op num-warps is 3, not a power of two up to 64
// TARGET: error: 'builtin.module' op unknown target 'cuda:1'

module {
  tt.func public @unknown(%r: i32) {
    %range = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
    // expected-error @below {{'tt.histogram' op has tensors whose layouts no rule relates yet}}
    %h = tt.histogram %range : tensor<128xi32> -> tensor<128xi32>
    tt.print "h: " {hex = false, isSigned = array<i32: 1>} : %h : tensor<128xi32>
    tt.return
  }
}

// -----

module {
  tt.func private @passes_tensors(%x: tensor<128xi32>) {
    // expected-error @below {{'arith.addi' op takes a tensor from a call or from a function's arguments}}
    %y = arith.addi %x, %x : tensor<128xi32>
    tt.return
  }
}
