// Integers of eight bits and floats of four become floats of sixteen by words: permutes of bytes and arithmetic on
// pairs, where the target has them, and no conversion of single numbers.
//
// RUN: llopt compile %s --target cuda:90 | FileCheck %s --check-prefix=WORDS --check-prefix=PAIRS
// RUN: llopt compile %s --target cuda:80 | FileCheck %s --check-prefix=WORDS --check-prefix=FUSED
// RUN: llopt compile %s --target cuda:75 | FileCheck %s --check-prefix=WORDS --check-prefix=SINGLE

#bytes = #ttg.blocked<{sizePerThread = [8], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
#codes = #ttg.blocked<{sizePerThread = [16], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  // WORDS-LABEL: .entry widen
  tt.func public @widen(%halves: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %bfloats: !tt.ptr<bf16> {tt.divisibility = 16 : i32},
                        %pairs: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %in: !tt.ptr<i8> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32, #bytes>
    %p = tt.splat %in : !tt.ptr<i8> -> tensor<256x!tt.ptr<i8>, #bytes>
    %a = tt.addptr %p, %i : tensor<256x!tt.ptr<i8>, #bytes>, tensor<256xi32, #bytes>
    // WORDS: ld.global.v2.b32
    %v = tt.load %a : tensor<256x!tt.ptr<i8>, #bytes>

    // Eight integers are four permutes and four subtractions of pairs.
    // WORDS-NOT: cvt.rn.f16
    // WORDS-COUNT-4: prmt.b32 {{.*}}, 100,
    // WORDS-NOT: cvt.rn.f16
    // WORDS: st.global.v4.b32
    %h = arith.sitofp %v : tensor<256xi8, #bytes> to tensor<256xf16, #bytes>
    %x = tt.splat %halves : !tt.ptr<f16> -> tensor<256x!tt.ptr<f16>, #bytes>
    %b = tt.addptr %x, %i : tensor<256x!tt.ptr<f16>, #bytes>, tensor<256xi32, #bytes>
    tt.store %b, %h : tensor<256x!tt.ptr<f16>, #bytes>

    // The bytes alone are pairs of tiny bfloats, which two operations bring to their size. Nothing is masked.
    // PAIRS-NOT: and.b32
    // PAIRS-COUNT-8: {{fma|mul}}.rn.bf16x2
    // FUSED-COUNT-8: fma.rn.bf16x2
    // SINGLE-NOT: fma.rn.bf16x2
    // SINGLE: cvt.rn.f32.s
    // WORDS: st.global
    %w = arith.sitofp %v : tensor<256xi8, #bytes> to tensor<256xbf16, #bytes>
    %y = tt.splat %bfloats : !tt.ptr<bf16> -> tensor<256x!tt.ptr<bf16>, #bytes>
    %c = tt.addptr %y, %i : tensor<256x!tt.ptr<bf16>, #bytes>, tensor<256xi32, #bytes>
    tt.store %c, %w : tensor<256x!tt.ptr<bf16>, #bytes>

    // Sixteen codes by their exponents: a permute for four, whose signs are masked together and put beside two digits of
    // the exponent and one of the mantissa, and a product for each pair.
    // WORDS-NOT: setp
    // PAIRS-COUNT-2: lop3.b32 {{.*}}, 29360576,
    // PAIRS: mul.bf16x2
    // PAIRS-COUNT-6: lop3.b32 {{.*}}, 29360576,
    // PAIRS-NOT: lop3.b32
    // FUSED-COUNT-8: lop3.b32 {{.*}}, 29360576,
    // FUSED: fma.rn.bf16x2
    // Or two looked-up bytes for each, the signs of four spread at a time, two permutes of four into pairs.
    // SINGLE-COUNT-20: prmt.b32
    // SINGLE-NOT: prmt.b32
    // WORDS: st.global.v4.b32
    %f = ttg.fp4_to_fp %v {axis = 0 : i32} : tensor<256xi8, #bytes> -> tensor<512xbf16, #codes>
    %j = tt.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32, #codes>
    %z = tt.splat %pairs : !tt.ptr<bf16> -> tensor<512x!tt.ptr<bf16>, #codes>
    %d = tt.addptr %z, %j : tensor<512x!tt.ptr<bf16>, #codes>, tensor<512xi32, #codes>
    tt.store %d, %f : tensor<512x!tt.ptr<bf16>, #codes>
    tt.return
  }
}
