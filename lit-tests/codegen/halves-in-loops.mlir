// Halves of words are carried through a loop in words, in the pairs that move together, and added in words.
//
// RUN: sed -e 's/i16/f16/g' -e 's/addi \(.*xf16\)/addf \1/' -e 's/dense<1> : tensor<32x32xf16/dense<1.0> : tensor<32x32xf16/' %s > %t.floats.mlir
// RUN: llopt compile %s --target cuda:90 | FileCheck %s --check-prefixes=PTX,PTX-INTEGERS
// RUN: llopt compile %t.floats.mlir --target cuda:90 | FileCheck %s --check-prefixes=PTX,PTX-FLOATS
// RUN: llopt compile %s --target hip:gfx1100 | FileCheck %s --check-prefixes=GCN,GCN-INTEGERS
// RUN: llopt compile %t.floats.mlir --target hip:gfx1100 | FileCheck %s --check-prefixes=GCN,GCN-FLOATS
// RUN: llopt prove %s --target cuda:90 | FileCheck %s --check-prefix=PROVEN
// RUN: llopt prove %t.floats.mlir --target hip:gfx1100 | FileCheck %s --check-prefix=PROVEN
//
// Where there is no sum of two 16-bit integers, each is added by itself, and carried so.
// RUN: llopt compile %s --target cuda:80 | FileCheck %s --check-prefix=SINGLE

// PROVEN: proven: 2 of 2

// The loop moves words and adds words; it takes no half out of one and puts none into one, but where columns become rows
// on AMD.
// PTX: $L__BB0_2:
// PTX-NOT: {{prmt|mov.b32.*\{|%rs}}
// PTX-INTEGERS-COUNT-16: add.s16x2
// PTX-FLOATS-COUNT-16: add.f16x2
// PTX-NOT: {{prmt|mov.b32.*\{}}
// PTX: bra
// GCN: .LBB0_2:
// GCN-NOT: v_perm
// GCN-INTEGERS-COUNT-16: v_pk_add_u16
// GCN-FLOATS-COUNT-16: v_pk_add_f16
// GCN: s_cbranch
// SINGLE: $L__BB0_2:
// SINGLE: add.s16
// SINGLE: bra

#rows = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [1, 1], order = [1, 0]}>
#columns = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [4, 8], warpsPerCTA = [1, 1], order = [0, 1]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @carried(%x: !tt.ptr<i16> {tt.divisibility = 16 : i32}, %o: !tt.ptr<i16> {tt.divisibility = 16 : i32}, %n: i32) {
    %r = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #columns}>>
    %re = tt.expand_dims %r {axis = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #columns}>> -> tensor<1x32xi32, #columns>
    %rb = tt.broadcast %re : tensor<1x32xi32, #columns> -> tensor<32x32xi32, #columns>
    %c = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #columns}>>
    %ce = tt.expand_dims %c {axis = 1 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #columns}>> -> tensor<32x1xi32, #columns>
    %cb = tt.broadcast %ce : tensor<32x1xi32, #columns> -> tensor<32x32xi32, #columns>
    %w = arith.constant dense<32> : tensor<32x32xi32, #columns>
    %rw = arith.muli %rb, %w : tensor<32x32xi32, #columns>
    %at = arith.addi %rw, %cb : tensor<32x32xi32, #columns>
    %xs = tt.splat %x : !tt.ptr<i16> -> tensor<32x32x!tt.ptr<i16>, #columns>
    %xp = tt.addptr %xs, %at : tensor<32x32x!tt.ptr<i16>, #columns>, tensor<32x32xi32, #columns>
    %first = tt.load %xp : tensor<32x32x!tt.ptr<i16>, #columns>
    %unit = arith.constant dense<1> : tensor<32x32xi16, #rows>
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %end = scf.for %i = %zero to %n step %one iter_args(%v = %first) -> (tensor<32x32xi16, #columns>) : i32 {
      %there = ttg.convert_layout %v : tensor<32x32xi16, #columns> -> tensor<32x32xi16, #rows>
      %next = arith.addi %there, %unit : tensor<32x32xi16, #rows>
      %back = ttg.convert_layout %next : tensor<32x32xi16, #rows> -> tensor<32x32xi16, #columns>
      scf.yield %back : tensor<32x32xi16, #columns>
    }
    %os = tt.splat %o : !tt.ptr<i16> -> tensor<32x32x!tt.ptr<i16>, #columns>
    %op = tt.addptr %os, %at : tensor<32x32x!tt.ptr<i16>, #columns>, tensor<32x32xi32, #columns>
    tt.store %op, %end : tensor<32x32x!tt.ptr<i16>, #columns>
    tt.return
  }
}
