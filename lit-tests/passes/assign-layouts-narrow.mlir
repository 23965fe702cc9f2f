// Bytes that become halves: both factors have so many elements along k together that a lane loads a word of bytes. Where
// warps divide k among them, slices are no shorter than that, and the widened factor is the first one where an
// instruction takes neighbours along k of the second one side by side.
//
// RUN: llopt %s --assign-layouts=target=cuda:90 --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,WORD
// RUN: llopt %s --assign-layouts=target=hip:gfx942 --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,SAME
// RUN: llopt compile %s --target cuda:90 | FileCheck %s --check-prefix=PTX
// RUN: llopt prove %s --target cuda:90 | FileCheck %s --check-prefix=PROVEN
// RUN: llopt prove %s --target hip:gfx942 | FileCheck %s --check-prefix=PROVEN

// PROVEN: proven: [[N:[0-9]+]] of [[N]]

// CHECK-LABEL: @product
// WORD: tt.dot %{{.+}} : tensor<2x128x32xbf16, #ttg.dot_op<{opIdx = 0, parent = #{{.+}}, kWidth = 4}>> * tensor<2x32x16xbf16, #ttg.dot_op<{opIdx = 1, parent = #{{.+}}, kWidth = 4}>>
// SAME: tt.dot %{{.+}} : tensor<16x64xbf16, #ttg.dot_op<{opIdx = 0, parent = #{{.+}}, kWidth = [[K:[0-9]+]]}>> * tensor<64x128xbf16, #ttg.dot_op<{opIdx = 1, parent = #{{.+}}, kWidth = [[K]]}>>

// The bytes come by matrix instructions, as words.

// PTX-NOT: ld.shared.b16
// PTX: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// PTX-NOT: ld.shared.b16
// PTX: mma.sync.aligned.m16n8k16
module {
  tt.func public @product(%a: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %b: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %c: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
    %m = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
    %k = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %j = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
    %md = tt.expand_dims %m {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
    %ka = tt.expand_dims %k {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %kd = tt.expand_dims %k {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %ja = tt.expand_dims %j {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
    %s0 = arith.constant dense<64> : tensor<16x1xi32>
    %s1 = arith.constant dense<64> : tensor<1x128xi32>
    %s2 = arith.constant dense<128> : tensor<16x1xi32>
    %ar = arith.muli %md, %s0 : tensor<16x1xi32>
    %arb = tt.broadcast %ar : tensor<16x1xi32> -> tensor<16x64xi32>
    %acb = tt.broadcast %ka : tensor<1x64xi32> -> tensor<16x64xi32>
    %ao = arith.addi %arb, %acb : tensor<16x64xi32>
    %bc = arith.muli %ja, %s1 : tensor<1x128xi32>
    %bcb = tt.broadcast %bc : tensor<1x128xi32> -> tensor<64x128xi32>
    %brb = tt.broadcast %kd : tensor<64x1xi32> -> tensor<64x128xi32>
    %bo = arith.addi %bcb, %brb : tensor<64x128xi32>
    %cr = arith.muli %md, %s2 : tensor<16x1xi32>
    %crb = tt.broadcast %cr : tensor<16x1xi32> -> tensor<16x128xi32>
    %ccb = tt.broadcast %ja : tensor<1x128xi32> -> tensor<16x128xi32>
    %co = arith.addi %crb, %ccb : tensor<16x128xi32>
    %as = tt.splat %a : !tt.ptr<bf16> -> tensor<16x64x!tt.ptr<bf16>>
    %ap = tt.addptr %as, %ao : tensor<16x64x!tt.ptr<bf16>>, tensor<16x64xi32>
    %bs = tt.splat %b : !tt.ptr<i8> -> tensor<64x128x!tt.ptr<i8>>
    %bp = tt.addptr %bs, %bo : tensor<64x128x!tt.ptr<i8>>, tensor<64x128xi32>
    %ai = arith.constant dense<1024> : tensor<16x64xi32>
    %bi = arith.constant dense<8192> : tensor<64x128xi32>
    %none = arith.constant dense<0.0> : tensor<16x128xf32>
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %r:3 = scf.for %i = %zero to %n step %one iter_args(%s = %none, %at = %ap, %bt = %bp) -> (tensor<16x128xf32>, tensor<16x64x!tt.ptr<bf16>>, tensor<64x128x!tt.ptr<i8>>) : i32 {
      %x = tt.load %at : tensor<16x64x!tt.ptr<bf16>>
      %y = tt.load %bt : tensor<64x128x!tt.ptr<i8>>
      %w = arith.sitofp %y : tensor<64x128xi8> to tensor<64x128xbf16>
      %z = tt.dot %x, %w, %s : tensor<16x64xbf16> * tensor<64x128xbf16> -> tensor<16x128xf32>
      %an = tt.addptr %at, %ai : tensor<16x64x!tt.ptr<bf16>>, tensor<16x64xi32>
      %bn = tt.addptr %bt, %bi : tensor<64x128x!tt.ptr<i8>>, tensor<64x128xi32>
      scf.yield %z, %an, %bn : tensor<16x128xf32>, tensor<16x64x!tt.ptr<bf16>>, tensor<64x128x!tt.ptr<i8>>
    }
    %cs = tt.splat %c : !tt.ptr<f32> -> tensor<16x128x!tt.ptr<f32>>
    %cp = tt.addptr %cs, %co : tensor<16x128x!tt.ptr<f32>>, tensor<16x128xi32>
    tt.store %cp, %r#0 : tensor<16x128x!tt.ptr<f32>>
    tt.return
  }
}
