// A thread that transposes 4 x 4 bytes between a load and a store of whole words makes the four words by eight
// permutes, the first four of pairs of the words loaded, and takes no byte out of its word by itself.
//
// RUN: llopt compile %s --target cuda:90 | FileCheck %s --check-prefix=PTX --implicit-check-not=prmt --implicit-check-not=bfe
// RUN: llopt compile %s --target hip:gfx1100 | FileCheck %s --check-prefix=GCN --implicit-check-not=v_perm --implicit-check-not=v_bfe

#rows = #ttg.blocked<{sizePerThread = [4, 4], threadsPerWarp = [8, 4], warpsPerCTA = [1, 1], order = [1, 0]}>
#columns = #ttg.blocked<{sizePerThread = [4, 4], threadsPerWarp = [8, 4], warpsPerCTA = [1, 1], order = [0, 1]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32} {
  // PTX-LABEL: .entry transpose
  // PTX-DAG: prmt.b32 [[A:%r[0-9]+]], [[W0:%r[0-9]+]], [[W1:%r[0-9]+]], 0x5410U
  // PTX-DAG: prmt.b32 [[B:%r[0-9]+]], [[W2:%r[0-9]+]], [[W3:%r[0-9]+]], 0x5410U
  // PTX-DAG: prmt.b32 [[C:%r[0-9]+]], [[W0]], [[W1]], 0x7632U
  // PTX-DAG: prmt.b32 [[D:%r[0-9]+]], [[W2]], [[W3]], 0x7632U
  // PTX-DAG: prmt.b32 {{%r[0-9]+}}, [[A]], [[B]], 0x6420U
  // PTX-DAG: prmt.b32 {{%r[0-9]+}}, [[A]], [[B]], 0x7531U
  // PTX-DAG: prmt.b32 {{%r[0-9]+}}, [[C]], [[D]], 0x6420U
  // PTX-DAG: prmt.b32 {{%r[0-9]+}}, [[C]], [[D]], 0x7531U
  // PTX: ret
  // GCN-LABEL: transpose:
  // GCN-COUNT-8: v_perm_b32
  // GCN: s_endpgm
  tt.func public @transpose(%x: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %o: !tt.ptr<i8> {tt.divisibility = 16 : i32}) {
    %r = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #rows}>>
    %c = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #ttg.slice<{dim = 0, parent = #rows}>>
    %re = tt.expand_dims %r {axis = 1 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #rows}>> -> tensor<32x1xi32, #rows>
    %ce = tt.expand_dims %c {axis = 0 : i32} : tensor<16xi32, #ttg.slice<{dim = 0, parent = #rows}>> -> tensor<1x16xi32, #rows>
    %w = arith.constant dense<16> : tensor<32x1xi32, #rows>
    %rw = arith.muli %re, %w : tensor<32x1xi32, #rows>
    %rb = tt.broadcast %rw : tensor<32x1xi32, #rows> -> tensor<32x16xi32, #rows>
    %cb = tt.broadcast %ce : tensor<1x16xi32, #rows> -> tensor<32x16xi32, #rows>
    %at = arith.addi %rb, %cb : tensor<32x16xi32, #rows>
    %xs = tt.splat %x : !tt.ptr<i8> -> tensor<32x16x!tt.ptr<i8>, #rows>
    %xp = tt.addptr %xs, %at : tensor<32x16x!tt.ptr<i8>, #rows>, tensor<32x16xi32, #rows>
    %v = tt.load %xp : tensor<32x16x!tt.ptr<i8>, #rows>
    %r2 = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #columns}>>
    %c2 = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #ttg.slice<{dim = 0, parent = #columns}>>
    %re2 = tt.expand_dims %r2 {axis = 1 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #columns}>> -> tensor<32x1xi32, #columns>
    %ce2 = tt.expand_dims %c2 {axis = 0 : i32} : tensor<16xi32, #ttg.slice<{dim = 0, parent = #columns}>> -> tensor<1x16xi32, #columns>
    %w2 = arith.constant dense<32> : tensor<1x16xi32, #columns>
    %cw = arith.muli %ce2, %w2 : tensor<1x16xi32, #columns>
    %rb2 = tt.broadcast %re2 : tensor<32x1xi32, #columns> -> tensor<32x16xi32, #columns>
    %cb2 = tt.broadcast %cw : tensor<1x16xi32, #columns> -> tensor<32x16xi32, #columns>
    %at2 = arith.addi %rb2, %cb2 : tensor<32x16xi32, #columns>
    %t = ttg.convert_layout %v : tensor<32x16xi8, #rows> -> tensor<32x16xi8, #columns>
    %os = tt.splat %o : !tt.ptr<i8> -> tensor<32x16x!tt.ptr<i8>, #columns>
    %op = tt.addptr %os, %at2 : tensor<32x16x!tt.ptr<i8>, #columns>, tensor<32x16xi32, #columns>
    tt.store %op, %t : tensor<32x16x!tt.ptr<i8>, #columns>
    tt.return
  }
}
