// Bytes without sign become floats of sixteen bits by words, as those with one do.
//
// RUN: llopt compile %s --target cuda:90 | FileCheck %s --check-prefix=WORDS
// RUN: llopt compile %s --target cuda:75 | FileCheck %s --check-prefix=WORDS

#bytes = #ttg.blocked<{sizePerThread = [8], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  // Integers without sign need no bit turned; what a program takes of each byte, such as four bits, is masked for four at once.
  tt.func public @unsigned(%halves: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %in: !tt.ptr<i8> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32, #bytes>
    %p = tt.splat %in : !tt.ptr<i8> -> tensor<256x!tt.ptr<i8>, #bytes>
    %a = tt.addptr %p, %i : tensor<256x!tt.ptr<i8>, #bytes>, tensor<256xi32, #bytes>
    %v = tt.load %a : tensor<256x!tt.ptr<i8>, #bytes>
    %mask = arith.constant dense<15> : tensor<256xi8, #bytes>
    // WORDS-COUNT-2: and.b32 {{.*}}, 252645135
    // WORDS-NOT: xor.b32
    // WORDS-NOT: cvt.rn.f16
    // WORDS-COUNT-4: prmt.b32 {{.*}}, 100,
    // WORDS-NOT: cvt.rn.f16
    // WORDS: st.global.v4.b32
    %low = arith.andi %v, %mask : tensor<256xi8, #bytes>
    %h = arith.uitofp %low : tensor<256xi8, #bytes> to tensor<256xf16, #bytes>
    %x = tt.splat %halves : !tt.ptr<f16> -> tensor<256x!tt.ptr<f16>, #bytes>
    %b = tt.addptr %x, %i : tensor<256x!tt.ptr<f16>, #bytes>, tensor<256xi32, #bytes>
    tt.store %b, %h : tensor<256x!tt.ptr<f16>, #bytes>
    tt.return
  }
}
