// RUN: llopt %s --assign-layouts --split-input-file --verify-diagnostics
// RUN: not llopt %s --assign-layouts=num-warps=3 --split-input-file 2>&1 | FileCheck %s --check-prefix=WARPS
// RUN: not llopt %s --assign-layouts=target=cuda:1 --split-input-file 2>&1 | FileCheck %s --check-prefix=TARGET

// WARPS: error: 'builtin.module' op num-warps is 3, not a power of two up to 64
// TARGET: error: 'builtin.module' op unknown target 'cuda:1'

module {
  tt.func public @unknown(%a: tensor<128x64xf8E5M2>, %b: tensor<64x128xf8E5M2>, %c: tensor<128x128xf32>, %s: tensor<128x2xi8>) {
    // expected-error @below {{'tt.dot_scaled' op has operands that cannot be widened}}
    %d = tt.dot_scaled %a scale %s, %b scale %s, %c lhs = e2m3 rhs = e5m2 {fastMath = false} : tensor<128x64xf8E5M2>, tensor<128x2xi8> * tensor<64x128xf8E5M2>, tensor<128x2xi8> -> tensor<128x128xf32>
    tt.print "d: " {hex = false, isSigned = array<i32: 1>} : %d : tensor<128x128xf32>
    tt.return
  }
}

// -----

// expected-error @below {{'builtin.module' op is laid out for another number of warps, threads or blocks}}
module attributes {"ttg.num-warps" = 8 : i32} {
  tt.func public @other_grid(%n: i32) {
    tt.return
  }
}
