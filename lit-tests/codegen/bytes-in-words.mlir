// Bytes that come in words are computed with in words, and carried through a loop in words.
//
// RUN: llopt compile %s --target cuda:90 | FileCheck %s --check-prefix=PTX
// RUN: llopt compile %s --target hip:gfx1100 | FileCheck %s --check-prefix=GCN
// RUN: llopt prove %s --target cuda:90 | FileCheck %s --check-prefix=PROVEN
// RUN: llopt prove %s --target hip:gfx1100 | FileCheck %s --check-prefix=PROVEN

// PROVEN: proven: 2 of 2

#rows = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [1, 1], order = [1, 0]}>
#columns = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [4, 8], warpsPerCTA = [1, 1], order = [0, 1]}>
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

  // Columns become rows and come back: words are permuted on the way, but no byte is single at either end of the loop.
  // PTX-LABEL: .entry carried
  // PTX: $L__BB
  // PTX-NOT: {{s16|cvt|b8|0x777|0x3340}}
  // PTX: bra
  // PTX: ret
  // GCN-LABEL: carried:
  // GCN-NOT: {{v_add_nc_u16|_b8 v|_u8 v}}
  // GCN: s_cbranch
  // GCN: s_endpgm
  tt.func public @carried(%x: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %o: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %n: i32) {
    %r = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #columns}>>
    %re = tt.expand_dims %r {axis = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #columns}>> -> tensor<1x32xi32, #columns>
    %rb = tt.broadcast %re : tensor<1x32xi32, #columns> -> tensor<32x32xi32, #columns>
    %c = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #columns}>>
    %ce = tt.expand_dims %c {axis = 1 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #columns}>> -> tensor<32x1xi32, #columns>
    %cb = tt.broadcast %ce : tensor<32x1xi32, #columns> -> tensor<32x32xi32, #columns>
    %w = arith.constant dense<32> : tensor<32x32xi32, #columns>
    %rw = arith.muli %rb, %w : tensor<32x32xi32, #columns>
    %at = arith.addi %rw, %cb : tensor<32x32xi32, #columns>
    %xs = tt.splat %x : !tt.ptr<i8> -> tensor<32x32x!tt.ptr<i8>, #columns>
    %xp = tt.addptr %xs, %at : tensor<32x32x!tt.ptr<i8>, #columns>, tensor<32x32xi32, #columns>
    %first = tt.load %xp : tensor<32x32x!tt.ptr<i8>, #columns>
    %unit = arith.constant dense<1> : tensor<32x32xi8, #rows>
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %end = scf.for %i = %zero to %n step %one iter_args(%v = %first) -> (tensor<32x32xi8, #columns>) : i32 {
      %there = ttg.convert_layout %v : tensor<32x32xi8, #columns> -> tensor<32x32xi8, #rows>
      %next = arith.addi %there, %unit : tensor<32x32xi8, #rows>
      %back = ttg.convert_layout %next : tensor<32x32xi8, #rows> -> tensor<32x32xi8, #columns>
      scf.yield %back : tensor<32x32xi8, #columns>
    }
    %os = tt.splat %o : !tt.ptr<i8> -> tensor<32x32x!tt.ptr<i8>, #columns>
    %op = tt.addptr %os, %at : tensor<32x32x!tt.ptr<i8>, #columns>, tensor<32x32xi32, #columns>
    tt.store %op, %end : tensor<32x32x!tt.ptr<i8>, #columns>
    tt.return
  }
}
