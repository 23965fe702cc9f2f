// What is printed is what was read, character by character, from text and from bytecode.
// RUN: llopt %s --split-input-file --verify-roundtrip | grep -v '^ *\(//.*\)*$' > %t.printed
// RUN: grep -v '^ *\(//.*\)*$' %s | diff - %t.printed

#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // Layouts that are still to be chosen, carried through shape operations, and their choice.
  tt.func @open(%arg0: tensor<512xf32, #gluon.auto_encoding>, %arg1: tensor<512x!tt.ptr<f32>, #gluon.coalesced_encoding>) -> tensor<512xf32, #blocked> {
    %0 = gluon.set_auto_layout %arg0 : tensor<512xf32, #gluon.auto_encoding> -> tensor<512xf32, #blocked>
    tt.return %0 : tensor<512xf32, #blocked>
  }
}
