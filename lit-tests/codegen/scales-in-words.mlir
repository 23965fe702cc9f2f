// Scales of eight bits become the exponents of bfloats two at a time: a permute of bytes, one shift of a word, one
// comparison and, for what is no number, two additions; no scale is taken out of its word before it is multiplied with.
//
// RUN: llopt compile %s --target cuda:90 | FileCheck %s --check-prefixes=CHECK,PAIRS
// RUN: llopt compile %s --target cuda:80 | FileCheck %s --check-prefixes=CHECK,SINGLE

#bytes = #ttg.blocked<{sizePerThread = [8], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: .entry scales
  tt.func public @scales(%out: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %in: !tt.ptr<i8> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32, #bytes>
    %p = tt.splat %in : !tt.ptr<i8> -> tensor<256x!tt.ptr<i8>, #bytes>
    %a = tt.addptr %p, %i : tensor<256x!tt.ptr<i8>, #bytes>, tensor<256xi32, #bytes>
    // CHECK: ld.global.v2.b32
    %codes = tt.load %a : tensor<256x!tt.ptr<i8>, #bytes>
    %seven = arith.constant dense<7> : tensor<256xi16, #bytes>
    %least = arith.constant dense<64> : tensor<256xi16, #bytes>
    // PAIRS-NOT: cvt.u16
    // PAIRS-COUNT-4: max.u16x2
    // PAIRS-NOT: max.u16
    // PAIRS: st.global.v4.b32
    // SINGLE-COUNT-8: max.u16
    %wide = arith.extui %codes : tensor<256xi8, #bytes> to tensor<256xi16, #bytes>
    %shifted = arith.shli %wide, %seven : tensor<256xi16, #bytes>
    %bits = arith.maxui %shifted, %least : tensor<256xi16, #bytes>
    %scales = tt.bitcast %bits : tensor<256xi16, #bytes> -> tensor<256xbf16, #bytes>
    %nothing = arith.subf %scales, %scales : tensor<256xbf16, #bytes>
    %numbers = arith.addf %scales, %nothing : tensor<256xbf16, #bytes>
    %q = tt.splat %out : !tt.ptr<bf16> -> tensor<256x!tt.ptr<bf16>, #bytes>
    %b = tt.addptr %q, %i : tensor<256x!tt.ptr<bf16>, #bytes>, tensor<256xi32, #bytes>
    tt.store %b, %numbers : tensor<256x!tt.ptr<bf16>, #bytes>
    tt.return
  }
}
