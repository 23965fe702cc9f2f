// RUN: llopt compile %s --target hip:gfx950 --num-warps 4 --emit amdgcn -o - | FileCheck %s

// Eight rows with scales, where the instruction has sixteen: the lanes of the other eight have the scales of the rows that they repeat.
// CHECK-LABEL: eight_rows:
// CHECK: v_mfma_scale_f32_16x16x128_f8f6f4
tt.func public @eight_rows(%a: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %b: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %as: !tt.ptr<i8>, %bs: !tt.ptr<i8>, %o: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %zeros = arith.constant dense<0.0> : tensor<8x64xf32>
  %i8 = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
  %i64 = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %i128 = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %row = tt.expand_dims %i8 {axis = 1 : i32} : tensor<8xi32> -> tensor<8x1xi32>
  %group = tt.expand_dims %i8 {axis = 0 : i32} : tensor<8xi32> -> tensor<1x8xi32>
  %column = tt.expand_dims %i64 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %columns = tt.expand_dims %i64 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %ka = tt.expand_dims %i128 {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %kb = tt.expand_dims %i128 {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
  %n128 = arith.constant dense<128> : tensor<8x1xi32>
  %n128c = arith.constant dense<128> : tensor<1x64xi32>
  %eight = arith.constant dense<8> : tensor<8x1xi32>
  %eights = arith.constant dense<8> : tensor<64x1xi32>
  %n64 = arith.constant dense<64> : tensor<8x1xi32>
  %r0 = arith.muli %row, %n128 : tensor<8x1xi32>
  %r1 = tt.broadcast %r0 : tensor<8x1xi32> -> tensor<8x128xi32>
  %r2 = tt.broadcast %ka : tensor<1x128xi32> -> tensor<8x128xi32>
  %of_a = arith.addi %r1, %r2 : tensor<8x128xi32>
  %pa0 = tt.splat %a : !tt.ptr<i8> -> tensor<8x128x!tt.ptr<i8>>
  %pa = tt.addptr %pa0, %of_a : tensor<8x128x!tt.ptr<i8>>, tensor<8x128xi32>
  %c0 = arith.muli %column, %n128c : tensor<1x64xi32>
  %c1 = tt.broadcast %c0 : tensor<1x64xi32> -> tensor<128x64xi32>
  %c2 = tt.broadcast %kb : tensor<128x1xi32> -> tensor<128x64xi32>
  %of_b = arith.addi %c1, %c2 : tensor<128x64xi32>
  %pb0 = tt.splat %b : !tt.ptr<i8> -> tensor<128x64x!tt.ptr<i8>>
  %pb = tt.addptr %pb0, %of_b : tensor<128x64x!tt.ptr<i8>>, tensor<128x64xi32>
  %s0 = arith.muli %row, %eight : tensor<8x1xi32>
  %s1 = tt.broadcast %s0 : tensor<8x1xi32> -> tensor<8x8xi32>
  %s2 = tt.broadcast %group : tensor<1x8xi32> -> tensor<8x8xi32>
  %of_as = arith.addi %s1, %s2 : tensor<8x8xi32>
  %pas0 = tt.splat %as : !tt.ptr<i8> -> tensor<8x8x!tt.ptr<i8>>
  %pas = tt.addptr %pas0, %of_as : tensor<8x8x!tt.ptr<i8>>, tensor<8x8xi32>
  %t0 = arith.muli %columns, %eights : tensor<64x1xi32>
  %t1 = tt.broadcast %t0 : tensor<64x1xi32> -> tensor<64x8xi32>
  %t2 = tt.broadcast %group : tensor<1x8xi32> -> tensor<64x8xi32>
  %of_bs = arith.addi %t1, %t2 : tensor<64x8xi32>
  %pbs0 = tt.splat %bs : !tt.ptr<i8> -> tensor<64x8x!tt.ptr<i8>>
  %pbs = tt.addptr %pbs0, %of_bs : tensor<64x8x!tt.ptr<i8>>, tensor<64x8xi32>
  %x = tt.load %pa : tensor<8x128x!tt.ptr<i8>>
  %y = tt.load %pb : tensor<128x64x!tt.ptr<i8>>
  %sx = tt.load %pas : tensor<8x8x!tt.ptr<i8>>
  %sy = tt.load %pbs : tensor<64x8x!tt.ptr<i8>>
  %product = tt.dot_scaled %x scale %sx, %y scale %sy, %zeros lhs = e2m1 rhs = e2m1 {fastMath = false} : tensor<8x128xi8>, tensor<8x8xi8> * tensor<128x64xi8>, tensor<64x8xi8> -> tensor<8x64xf32>
  %w0 = arith.muli %row, %n64 : tensor<8x1xi32>
  %w1 = tt.broadcast %w0 : tensor<8x1xi32> -> tensor<8x64xi32>
  %w2 = tt.broadcast %column : tensor<1x64xi32> -> tensor<8x64xi32>
  %of_o = arith.addi %w1, %w2 : tensor<8x64xi32>
  %po0 = tt.splat %o : !tt.ptr<f32> -> tensor<8x64x!tt.ptr<f32>>
  %po = tt.addptr %po0, %of_o : tensor<8x64x!tt.ptr<f32>>, tensor<8x64xi32>
  tt.store %po, %product : tensor<8x64x!tt.ptr<f32>>
  tt.return
}
