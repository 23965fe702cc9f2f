// Microscaled floats become wider ones with the fewest conversions that the target has: an instruction for two with their
// scale, conversions of floats of eight bits whose codes permutes look up, or permutes alone.
//
// RUN: llopt compile %s --target hip:gfx950 | FileCheck %s --check-prefix=CDNA4
// RUN: llopt compile %s --target hip:gfx942 | FileCheck %s --check-prefix=CDNA3
// RUN: llopt compile %s --target hip:gfx90a | FileCheck %s --check-prefix=CDNA2

#bytes = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [64, 1], warpsPerCTA = [1, 1], order = [1, 0]}>
#values = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [64, 1], warpsPerCTA = [1, 1], order = [1, 0]}>
#rows = #ttg.slice<{dim = 1, parent = #values}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 64 : i32} {
  // Eight floats of four bits with one scale, and no number where the scale is none: with the instruction, a word of two
  // halves is chosen at once, and none is taken apart or put together.
  // CDNA4-LABEL: fours:
  // CDNA4-NOT: v_perm_b32
  // CDNA4-NOT: v_mul
  // CDNA4-COUNT-4: v_cvt_scalef32_pk_f16_fp4
  // CDNA4-NOT: v_perm_b32
  // CDNA4-COUNT-4: v_cndmask_b32
  // CDNA4-NOT: v_cndmask_b32
  // CDNA4: global_store_dwordx4

  // CDNA3-LABEL: fours:
  // CDNA3-COUNT-4: v_cvt_pk_f32_fp8
  // CDNA3-NOT: v_cvt_pk_f32_fp8
  // CDNA3: global_store_dwordx4

  // CDNA2-LABEL: fours:
  // CDNA2-COUNT-8: v_perm_b32
  // CDNA2: global_store_dwordx4
  tt.func public @fours(%codes: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %scales: !tt.ptr<i8> {tt.divisibility = 16 : i32},
                        %out: !tt.ptr<f16> {tt.divisibility = 16 : i32}) {
    %no = arith.constant dense<0x7E00> : tensor<64x8xf16, #values>
    %seven = arith.constant dense<7> : tensor<64xi16, #rows>
    %none = arith.constant dense<-1> : tensor<64xi8, #rows>
    %four = arith.constant dense<4> : tensor<64x1xi32, #bytes>
    %eight = arith.constant dense<8> : tensor<64x1xi32, #values>
    %i = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #bytes}>>
    %i1 = tt.expand_dims %i {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #bytes}>> -> tensor<64x1xi32, #bytes>
    %i4 = arith.muli %i1, %four : tensor<64x1xi32, #bytes>
    %j = tt.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32, #ttg.slice<{dim = 0, parent = #bytes}>>
    %j1 = tt.expand_dims %j {axis = 0 : i32} : tensor<4xi32, #ttg.slice<{dim = 0, parent = #bytes}>> -> tensor<1x4xi32, #bytes>
    %ib = tt.broadcast %i4 : tensor<64x1xi32, #bytes> -> tensor<64x4xi32, #bytes>
    %jb = tt.broadcast %j1 : tensor<1x4xi32, #bytes> -> tensor<64x4xi32, #bytes>
    %ij = arith.addi %ib, %jb : tensor<64x4xi32, #bytes>
    %p = tt.splat %codes : !tt.ptr<i8> -> tensor<64x4x!tt.ptr<i8>, #bytes>
    %q = tt.addptr %p, %ij : tensor<64x4x!tt.ptr<i8>, #bytes>, tensor<64x4xi32, #bytes>
    %v = tt.load %q : tensor<64x4x!tt.ptr<i8>, #bytes>

    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #rows>
    %s = tt.splat %scales : !tt.ptr<i8> -> tensor<64x!tt.ptr<i8>, #rows>
    %t = tt.addptr %s, %r : tensor<64x!tt.ptr<i8>, #rows>, tensor<64xi32, #rows>
    %e = tt.load %t : tensor<64x!tt.ptr<i8>, #rows>
    %wide = arith.extui %e : tensor<64xi8, #rows> to tensor<64xi16, #rows>
    %power = arith.shli %wide, %seven : tensor<64xi16, #rows>
    %scale = tt.bitcast %power : tensor<64xi16, #rows> -> tensor<64xbf16, #rows>
    %scale1 = tt.expand_dims %scale {axis = 1 : i32} : tensor<64xbf16, #rows> -> tensor<64x1xbf16, #values>
    %scale8 = tt.broadcast %scale1 : tensor<64x1xbf16, #values> -> tensor<64x8xbf16, #values>
    %x = amdg.scaled_upcast_fp4 %v scale %scale8 {axis = 1 : i32} : tensor<64x4xi8, #bytes>, tensor<64x8xbf16, #values> -> tensor<64x8xf16, #values>
    %is = arith.cmpi eq, %e, %none : tensor<64xi8, #rows>
    %is1 = tt.expand_dims %is {axis = 1 : i32} : tensor<64xi1, #rows> -> tensor<64x1xi1, #values>
    %is8 = tt.broadcast %is1 : tensor<64x1xi1, #values> -> tensor<64x8xi1, #values>
    %y = arith.select %is8, %no, %x : tensor<64x8xi1, #values>, tensor<64x8xf16, #values>

    %row = tt.expand_dims %r {axis = 1 : i32} : tensor<64xi32, #rows> -> tensor<64x1xi32, #values>
    %row8 = arith.muli %row, %eight : tensor<64x1xi32, #values>
    %c = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32, #ttg.slice<{dim = 0, parent = #values}>>
    %c1 = tt.expand_dims %c {axis = 0 : i32} : tensor<8xi32, #ttg.slice<{dim = 0, parent = #values}>> -> tensor<1x8xi32, #values>
    %rb = tt.broadcast %row8 : tensor<64x1xi32, #values> -> tensor<64x8xi32, #values>
    %cb = tt.broadcast %c1 : tensor<1x8xi32, #values> -> tensor<64x8xi32, #values>
    %rc = arith.addi %rb, %cb : tensor<64x8xi32, #values>
    %o = tt.splat %out : !tt.ptr<f16> -> tensor<64x8x!tt.ptr<f16>, #values>
    %a = tt.addptr %o, %rc : tensor<64x8x!tt.ptr<f16>, #values>, tensor<64x8xi32, #values>
    tt.store %a, %y : tensor<64x8x!tt.ptr<f16>, #values>
    tt.return
  }
}
