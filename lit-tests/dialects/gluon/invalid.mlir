// RUN: llopt %s --split-input-file --verify-diagnostics

// Each part breaks one rule; the message says which, and what is at fault.

#b1 = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#a1 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @closed(%x: tensor<512xf32, #b1>) {
    // expected-error @+1 {{'gluon.set_auto_layout' op the layout of the operand must be open}}
    %0 = gluon.set_auto_layout %x : tensor<512xf32, #b1> -> tensor<512xf32, #a1>
    tt.return
  }
}

// -----

tt.func @still_open(%x: tensor<512xf32, #gluon.auto_encoding>) {
  // expected-error @+1 {{'gluon.set_auto_layout' op the layout of the result must not be `#gluon.auto_encoding`}}
  %0 = gluon.set_auto_layout %x : tensor<512xf32, #gluon.auto_encoding> -> tensor<512xf32, #gluon.auto_encoding>
  tt.return
}
