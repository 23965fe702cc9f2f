// Bytes that come in words are computed with in words.
//
// RUN: llopt compile %s --target cuda:90 | FileCheck %s --check-prefix=PTX
// RUN: llopt compile %s --target hip:gfx1100 | FileCheck %s --check-prefix=GCN

#bytes = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  // A sum, a difference and the rest: each is one word, of which no byte is taken out.
  // PTX-LABEL: .entry operations
  // PTX-NOT: {{prmt|s16|b8|bfe}}
  // PTX: ret
  // GCN-LABEL: operations:
  // GCN-NOT: {{v_perm|u16|b16|v_bfe}}
  // GCN: s_endpgm
  tt.func public @operations(%x: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %y: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %o: !tt.ptr<i8> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #bytes>
    %xs = tt.splat %x : !tt.ptr<i8> -> tensor<128x!tt.ptr<i8>, #bytes>
    %xp = tt.addptr %xs, %i : tensor<128x!tt.ptr<i8>, #bytes>, tensor<128xi32, #bytes>
    %a = tt.load %xp : tensor<128x!tt.ptr<i8>, #bytes>
    %ys = tt.splat %y : !tt.ptr<i8> -> tensor<128x!tt.ptr<i8>, #bytes>
    %yp = tt.addptr %ys, %i : tensor<128x!tt.ptr<i8>, #bytes>, tensor<128xi32, #bytes>
    %b = tt.load %yp : tensor<128x!tt.ptr<i8>, #bytes>
    %sum = arith.addi %a, %b : tensor<128xi8, #bytes>
    %seven = arith.constant dense<7> : tensor<128xi8, #bytes>
    %more = arith.addi %sum, %seven : tensor<128xi8, #bytes>
    %less = arith.subi %more, %b : tensor<128xi8, #bytes>
    %rest = arith.subi %seven, %less : tensor<128xi8, #bytes>
    %both = arith.andi %rest, %sum : tensor<128xi8, #bytes>
    %either = arith.ori %both, %a : tensor<128xi8, #bytes>
    %one = arith.xori %either, %less : tensor<128xi8, #bytes>
    %os = tt.splat %o : !tt.ptr<i8> -> tensor<128x!tt.ptr<i8>, #bytes>
    %op = tt.addptr %os, %i : tensor<128x!tt.ptr<i8>, #bytes>, tensor<128xi32, #bytes>
    tt.store %op, %one : tensor<128x!tt.ptr<i8>, #bytes>
    tt.return
  }
}
