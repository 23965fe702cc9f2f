// Lanes that want an element of their own or of the lane at one distance, which an arithmetic instruction exchanges,
// choose between both. Where two such words are taken apart and packed again, the permute chooses.
//
// RUN: llopt compile %s --target hip:gfx1100 | FileCheck %s
// RUN: llopt explain %s --target hip:gfx1100 | FileCheck %s --check-prefix=WHY
// RUN: llopt prove %s --target hip:gfx1100 | FileCheck %s --check-prefix=PROVEN

// PROVEN: ttg.convert_layout {{ *}}proven

#wmma = #ttg.amd_wmma<{version = 1, isTranspose = true, warpsPerCTA = [4, 1]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #wmma, kWidth = 16}>
#b = #ttg.dot_op<{opIdx = 1, parent = #wmma, kWidth = 16}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1100", "ttg.threads-per-warp" = 32 : i32} {
  // A result of a product as operand of the next: both halves of the warp want all rows, of which each has every other.
  // An exchange and two permutes for every two words, of which the selectors are the same for all.
  // CHECK-LABEL: operand:
  // CHECK-NOT: ds_
  // CHECK-COUNT-4: v_permlanex16_b32
  // CHECK-NOT: {{ds_|v_permlanex16}}
  // CHECK: s_endpgm
  // WHY: ttg.convert_layout
  // WHY: plan lanes exchange, cost {{.*}}, 4 shuffles, 8 selects, 8 byte permutes
  tt.func public @operand(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %rows = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #wmma}>>
    %row = tt.expand_dims %rows {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #wmma}>> -> tensor<64x1xi32, #wmma>
    %width = arith.constant dense<16> : tensor<64x1xi32, #wmma>
    %start = arith.muli %row, %width : tensor<64x1xi32, #wmma>
    %columns = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32, #ttg.slice<{dim = 0, parent = #wmma}>>
    %column = tt.expand_dims %columns {axis = 0 : i32} : tensor<16xi32, #ttg.slice<{dim = 0, parent = #wmma}>> -> tensor<1x16xi32, #wmma>
    %starts = tt.broadcast %start : tensor<64x1xi32, #wmma> -> tensor<64x16xi32, #wmma>
    %across = tt.broadcast %column : tensor<1x16xi32, #wmma> -> tensor<64x16xi32, #wmma>
    %offset = arith.addi %starts, %across : tensor<64x16xi32, #wmma>
    %xs = tt.splat %x : !tt.ptr<f16> -> tensor<64x16x!tt.ptr<f16>, #wmma>
    %xp = tt.addptr %xs, %offset : tensor<64x16x!tt.ptr<f16>, #wmma>, tensor<64x16xi32, #wmma>
    %v = tt.load %xp : tensor<64x16x!tt.ptr<f16>, #wmma>
    %sum = arith.addf %v, %v : tensor<64x16xf16, #wmma>
    %a = ttg.convert_layout %sum : tensor<64x16xf16, #wmma> -> tensor<64x16xf16, #a>
    %b = arith.constant dense<1.0> : tensor<16x16xf16, #b>
    %zero = arith.constant dense<0.0> : tensor<64x16xf32, #wmma>
    %d = tt.dot %a, %b, %zero : tensor<64x16xf16, #a> * tensor<16x16xf16, #b> -> tensor<64x16xf32, #wmma>
    %os = tt.splat %o : !tt.ptr<f32> -> tensor<64x16x!tt.ptr<f32>, #wmma>
    %op = tt.addptr %os, %offset : tensor<64x16x!tt.ptr<f32>, #wmma>, tensor<64x16xi32, #wmma>
    tt.store %op, %d : tensor<64x16x!tt.ptr<f32>, #wmma>
    tt.return
  }
}
