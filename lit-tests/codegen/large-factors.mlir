// Factors of products in shared memory.
//
// RUN: llopt compile %s --target cuda:90 --num-warps 8 --num-stages 1 | FileCheck %s
module {
  // A factor of 128 KiB is more than half of shared memory, but both fit, so groups of warps multiply them.
  // CHECK-LABEL: .entry product(
  // CHECK-NOT: mma.sync
  // CHECK: wgmma.mma_async.sync.aligned.m64n128k16
  // CHECK-NOT: mma.sync
  // CHECK: ret;
  tt.func public @product(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %c: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %k: i32 {tt.divisibility = 16 : i32}) {
    %zero = arith.constant 0 : i32
    %step = arith.constant 256 : i32
    %none = arith.constant dense<0.0> : tensor<64x256xf32>
    %along = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
    %rows = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %r1 = tt.expand_dims %rows {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %k1 = tt.expand_dims %along {axis = 0 : i32} : tensor<256xi32> -> tensor<1x256xi32>
    %k2 = tt.expand_dims %along {axis = 1 : i32} : tensor<256xi32> -> tensor<256x1xi32>
    %ks1 = tt.splat %k : i32 -> tensor<64x1xi32>
    %ks2 = tt.splat %k : i32 -> tensor<1x256xi32>
    %rk = arith.muli %r1, %ks1 : tensor<64x1xi32>
    %ck = arith.muli %k1, %ks2 : tensor<1x256xi32>
    %rkb = tt.broadcast %rk : tensor<64x1xi32> -> tensor<64x256xi32>
    %k1b = tt.broadcast %k1 : tensor<1x256xi32> -> tensor<64x256xi32>
    %ckb = tt.broadcast %ck : tensor<1x256xi32> -> tensor<256x256xi32>
    %k2b = tt.broadcast %k2 : tensor<256x1xi32> -> tensor<256x256xi32>
    %oa = arith.addi %rkb, %k1b : tensor<64x256xi32>
    %ob = arith.addi %ckb, %k2b : tensor<256x256xi32>
    %as = tt.splat %a : !tt.ptr<f16> -> tensor<64x256x!tt.ptr<f16>>
    %bs = tt.splat %b : !tt.ptr<f16> -> tensor<256x256x!tt.ptr<f16>>
    %pa = tt.addptr %as, %oa : tensor<64x256x!tt.ptr<f16>>, tensor<64x256xi32>
    %pb = tt.addptr %bs, %ob : tensor<256x256x!tt.ptr<f16>>, tensor<256x256xi32>
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
