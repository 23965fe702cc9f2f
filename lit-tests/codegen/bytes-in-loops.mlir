// Bytes are carried through a loop in words where all that takes them takes words.
//
// RUN: llopt compile %s --target cuda:90 | FileCheck %s --check-prefix=PTX
// RUN: llopt compile %s --target hip:gfx1100 | FileCheck %s --check-prefix=GCN
// RUN: llopt prove %s --target cuda:90 | FileCheck %s --check-prefix=PROVEN
// RUN: llopt prove %s --target hip:gfx1100 | FileCheck %s --check-prefix=PROVEN

// PROVEN: proven: 2 of 2

#rows = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [1, 1], order = [1, 0]}>
#columns = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [4, 8], warpsPerCTA = [1, 1], order = [0, 1]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  // Columns become rows and come back: words are permuted on the way, but no byte is single at either end of the loop.
  // PTX-LABEL: .entry carried
  // PTX: $L__BB0_2:
  // PTX-NOT: {{s16|cvt|\.b8|0x777|0x3340}}
  // PTX: bra
  // PTX: ret
  // GCN-LABEL: carried:
  // GCN-NOT: {{v_add_nc_u16|v_bfe}}
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
