// Pointers to equally distant rows of tiles.
//
// RUN: llopt compile %s --target cuda:90 --num-warps 8 --num-stages 1 | FileCheck %s
module {
  // A thread loads eight and 32 rows, and has no registers for 40 pointers beside 160 words of data and 64 sums: the loop
  // advances two, and each other one is as far behind the one before it.
  // CHECK-LABEL: .entry product(
  // CHECK: $L__BB0_2:
  // CHECK: ld.global.v4.b32 {{.*}}, {{\[}}[[A0:%rd[0-9]+]]];
  // CHECK: add.s64 [[A:%rd[0-9]+]], [[A0]], [[D:%rd[0-9]+]];
  // CHECK: add.s64 [[A2:%rd[0-9]+]], [[A]], [[D]];
  // CHECK: add.s64 [[A3:%rd[0-9]+]], [[A2]], [[D]];
  // CHECK: wgmma.mma_async
  tt.func public @product(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %c: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %k: i32 {tt.divisibility = 16 : i32}, %stride: i64 {tt.divisibility = 16 : i64}) {
    %zero = arith.constant 0 : i32
    %step = arith.constant 256 : i32
    %none = arith.constant dense<0.0> : tensor<64x256xf32>
    %along = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
    %rows = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %r1 = tt.expand_dims %rows {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %k1 = tt.expand_dims %along {axis = 0 : i32} : tensor<256xi32> -> tensor<1x256xi32>
    %k2 = tt.expand_dims %along {axis = 1 : i32} : tensor<256xi32> -> tensor<256x1xi32>
    %r64 = arith.extsi %r1 : tensor<64x1xi32> to tensor<64x1xi64>
    %k64 = arith.extsi %k1 : tensor<1x256xi32> to tensor<1x256xi64>
    %d64 = arith.extsi %k2 : tensor<256x1xi32> to tensor<256x1xi64>
    %ks1 = tt.splat %stride : i64 -> tensor<64x1xi64>
    %ks2 = tt.splat %stride : i64 -> tensor<1x256xi64>
    %rk = arith.muli %r64, %ks1 : tensor<64x1xi64>
    %ck = arith.muli %k64, %ks2 : tensor<1x256xi64>
    %rkb = tt.broadcast %rk : tensor<64x1xi64> -> tensor<64x256xi64>
    %k1b = tt.broadcast %k1 : tensor<1x256xi32> -> tensor<64x256xi32>
    %k64b = tt.broadcast %k64 : tensor<1x256xi64> -> tensor<64x256xi64>
    %ckb = tt.broadcast %ck : tensor<1x256xi64> -> tensor<256x256xi64>
    %k2b = tt.broadcast %d64 : tensor<256x1xi64> -> tensor<256x256xi64>
    %oa = arith.addi %rkb, %k64b : tensor<64x256xi64>
    %ob = arith.addi %ckb, %k2b : tensor<256x256xi64>
    %as = tt.splat %a : !tt.ptr<f16> -> tensor<64x256x!tt.ptr<f16>>
    %bs = tt.splat %b : !tt.ptr<f16> -> tensor<256x256x!tt.ptr<f16>>
    %pa = tt.addptr %as, %oa : tensor<64x256x!tt.ptr<f16>>, tensor<64x256xi64>
    %pb = tt.addptr %bs, %ob : tensor<256x256x!tt.ptr<f16>>, tensor<256x256xi64>
    %sum = scf.for %i = %zero to %k step %step iter_args(%acc = %none) -> (tensor<64x256xf32>) : i32 {
      %ia = tt.splat %i : i32 -> tensor<64x256xi32>
      %ib = tt.splat %i : i32 -> tensor<256x256xi32>
      %qa = tt.addptr %pa, %ia : tensor<64x256x!tt.ptr<f16>>, tensor<64x256xi32>
      %qb = tt.addptr %pb, %ib : tensor<256x256x!tt.ptr<f16>>, tensor<256x256xi32>
      %x = tt.load %qa : tensor<64x256x!tt.ptr<f16>>
      %y = tt.load %qb : tensor<256x256x!tt.ptr<f16>>
      %next = tt.dot %x, %y, %acc : tensor<64x256xf16> * tensor<256x256xf16> -> tensor<64x256xf32>
      scf.yield %next : tensor<64x256xf32>
    }
    %cols = arith.constant dense<256> : tensor<64x1xi32>
    %rc = arith.muli %r1, %cols : tensor<64x1xi32>
    %rcb = tt.broadcast %rc : tensor<64x1xi32> -> tensor<64x256xi32>
    %oc = arith.addi %rcb, %k1b : tensor<64x256xi32>
    %cs = tt.splat %c : !tt.ptr<f32> -> tensor<64x256x!tt.ptr<f32>>
    %pc = tt.addptr %cs, %oc : tensor<64x256x!tt.ptr<f32>>, tensor<64x256xi32>
    tt.store %pc, %sum : tensor<64x256x!tt.ptr<f32>>
    tt.return
  }
}
