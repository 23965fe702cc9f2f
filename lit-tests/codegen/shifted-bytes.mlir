// A shift of bytes to the right is one of the word, without the bits that come from the next byte.
//
// RUN: llopt compile %s --target cuda:90 | FileCheck %s --check-prefix=PTX
// RUN: llopt compile %s --target hip:gfx1100 | FileCheck %s --check-prefix=GCN

#bytes = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  // PTX-LABEL: .entry upper_digits
  // PTX: shr.u32 [[SHIFTED:%r[0-9]+]], {{%r[0-9]+}}, 4;
  // PTX-NEXT: and.b32 {{%r[0-9]+}}, [[SHIFTED]], 252645135;
  // PTX-NOT: {{prmt|s16|b8|bfe}}
  // PTX: ret
  // GCN-LABEL: upper_digits:
  // GCN: v_lshrrev_b32_e32 v{{[0-9]+}}, 4, v
  // GCN: v_and_b32_e32 v{{[0-9]+}}, 0xf0f0f0f, v
  // GCN-NOT: {{v_perm|u16|b16|v_bfe}}
  // GCN: s_endpgm
  tt.func public @upper_digits(%x: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %o: !tt.ptr<i8> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #bytes>
    %xs = tt.splat %x : !tt.ptr<i8> -> tensor<128x!tt.ptr<i8>, #bytes>
    %xp = tt.addptr %xs, %i : tensor<128x!tt.ptr<i8>, #bytes>, tensor<128xi32, #bytes>
    %a = tt.load %xp : tensor<128x!tt.ptr<i8>, #bytes>
    %four = arith.constant dense<4> : tensor<128xi8, #bytes>
    %upper = arith.shrui %a, %four : tensor<128xi8, #bytes>
    %os = tt.splat %o : !tt.ptr<i8> -> tensor<128x!tt.ptr<i8>, #bytes>
    %op = tt.addptr %os, %i : tensor<128x!tt.ptr<i8>, #bytes>, tensor<128xi32, #bytes>
    tt.store %op, %upper : tensor<128x!tt.ptr<i8>, #bytes>
    tt.return
  }
}
