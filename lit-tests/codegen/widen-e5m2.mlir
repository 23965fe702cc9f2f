// A number of the format e5m2 is the upper byte of an f16: where no instruction converts it, a permute makes two.
//
// RUN: llopt compile %s --target cuda:90 | FileCheck %s --check-prefix=PTX
// RUN: llopt compile %s --target hip:gfx1100 | FileCheck %s --check-prefix=GCN

#bytes = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  // PTX-LABEL: .entry upper_bytes
  // PTX-COUNT-2: prmt.b32
  // PTX-NOT: {{prmt|cvt.rn|shl.b16}}
  // PTX: ret
  // GCN-LABEL: upper_bytes:
  // GCN-COUNT-2: v_perm_b32
  // GCN-NOT: {{v_perm|v_lshl|v_and_or|v_or_b32}}
  // GCN: s_endpgm
  tt.func public @upper_bytes(%x: !tt.ptr<f8E5M2> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f16> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #bytes>
    %xs = tt.splat %x : !tt.ptr<f8E5M2> -> tensor<128x!tt.ptr<f8E5M2>, #bytes>
    %xp = tt.addptr %xs, %i : tensor<128x!tt.ptr<f8E5M2>, #bytes>, tensor<128xi32, #bytes>
    %a = tt.load %xp : tensor<128x!tt.ptr<f8E5M2>, #bytes>
    %halves = tt.fp_to_fp %a : tensor<128xf8E5M2, #bytes> -> tensor<128xf16, #bytes>
    %os = tt.splat %o : !tt.ptr<f16> -> tensor<128x!tt.ptr<f16>, #bytes>
    %op = tt.addptr %os, %i : tensor<128x!tt.ptr<f16>, #bytes>, tensor<128xi32, #bytes>
    tt.store %op, %halves : tensor<128x!tt.ptr<f16>, #bytes>
    tt.return
  }
}
