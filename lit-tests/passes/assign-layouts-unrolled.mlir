// Buffers for the products of one iteration.
//
// RUN: llopt compile %s --target cuda:90 --num-warps 8 --num-stages 1 --emit ttgir -o - | FileCheck %s
// RUN: llopt compile %s --target cuda:90 --num-warps 8 --num-stages 3 --emit ttgir -o - | FileCheck %s

module {
  // The factors of all four products do not fit into shared memory at one time. Nothing is loaded ahead, so each
  // product has the memory for itself, and warp groups read it there: in one stage, and in more, as no ring fits.
  // CHECK-LABEL: @unrolled
  // CHECK-COUNT-4: ttng.warp_group_dot
  // CHECK-NOT: tt.dot
  tt.func public @unrolled(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %c: !tt.ptr<f16> {tt.divisibility = 16 : i32}) {
    %zero = arith.constant 0 : i32
    %step = arith.constant 512 : i32
    %end = arith.constant 4096 : i32
    %none = arith.constant dense<0.0> : tensor<128x128xf32>
    %k1 = arith.constant dense<128> : tensor<128x128xi32>
    %length = arith.constant dense<4096> : tensor<128x1xi32>
    %range = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
    %row = tt.expand_dims %range {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
    %column = tt.expand_dims %range {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
    %begin = arith.muli %row, %length : tensor<128x1xi32>
    %begins = tt.broadcast %begin : tensor<128x1xi32> -> tensor<128x128xi32>
    %columns = tt.broadcast %column : tensor<1x128xi32> -> tensor<128x128xi32>
    %offsets = arith.addi %begins, %columns : tensor<128x128xi32>
    %as = tt.splat %a : !tt.ptr<f16> -> tensor<128x128x!tt.ptr<f16>>
    %bs = tt.splat %b : !tt.ptr<f16> -> tensor<128x128x!tt.ptr<f16>>
    %sum = scf.for %k = %zero to %end step %step iter_args(%s0 = %none) -> (tensor<128x128xf32>) : i32 {
      %ks = tt.splat %k : i32 -> tensor<128x128xi32>
      %o0 = arith.addi %offsets, %ks : tensor<128x128xi32>
      %o1 = arith.addi %o0, %k1 : tensor<128x128xi32>
      %o2 = arith.addi %o1, %k1 : tensor<128x128xi32>
      %o3 = arith.addi %o2, %k1 : tensor<128x128xi32>
      %pa0 = tt.addptr %as, %o0 : tensor<128x128x!tt.ptr<f16>>, tensor<128x128xi32>
      %pb0 = tt.addptr %bs, %o0 : tensor<128x128x!tt.ptr<f16>>, tensor<128x128xi32>
      %a0 = tt.load %pa0 : tensor<128x128x!tt.ptr<f16>>
      %b0 = tt.load %pb0 : tensor<128x128x!tt.ptr<f16>>
      %t0 = tt.trans %b0 {order = array<i32: 1, 0>} : tensor<128x128xf16> -> tensor<128x128xf16>
      %s1 = tt.dot %a0, %t0, %s0 : tensor<128x128xf16> * tensor<128x128xf16> -> tensor<128x128xf32>
      %pa1 = tt.addptr %as, %o1 : tensor<128x128x!tt.ptr<f16>>, tensor<128x128xi32>
      %pb1 = tt.addptr %bs, %o1 : tensor<128x128x!tt.ptr<f16>>, tensor<128x128xi32>
      %a1 = tt.load %pa1 : tensor<128x128x!tt.ptr<f16>>
      %b1 = tt.load %pb1 : tensor<128x128x!tt.ptr<f16>>
      %t1 = tt.trans %b1 {order = array<i32: 1, 0>} : tensor<128x128xf16> -> tensor<128x128xf16>
      %s2 = tt.dot %a1, %t1, %s1 : tensor<128x128xf16> * tensor<128x128xf16> -> tensor<128x128xf32>
      %pa2 = tt.addptr %as, %o2 : tensor<128x128x!tt.ptr<f16>>, tensor<128x128xi32>
      %pb2 = tt.addptr %bs, %o2 : tensor<128x128x!tt.ptr<f16>>, tensor<128x128xi32>
      %a2 = tt.load %pa2 : tensor<128x128x!tt.ptr<f16>>
      %b2 = tt.load %pb2 : tensor<128x128x!tt.ptr<f16>>
      %t2 = tt.trans %b2 {order = array<i32: 1, 0>} : tensor<128x128xf16> -> tensor<128x128xf16>
      %s3 = tt.dot %a2, %t2, %s2 : tensor<128x128xf16> * tensor<128x128xf16> -> tensor<128x128xf32>
      %pa3 = tt.addptr %as, %o3 : tensor<128x128x!tt.ptr<f16>>, tensor<128x128xi32>
      %pb3 = tt.addptr %bs, %o3 : tensor<128x128x!tt.ptr<f16>>, tensor<128x128xi32>
      %a3 = tt.load %pa3 : tensor<128x128x!tt.ptr<f16>>
      %b3 = tt.load %pb3 : tensor<128x128x!tt.ptr<f16>>
      %t3 = tt.trans %b3 {order = array<i32: 1, 0>} : tensor<128x128xf16> -> tensor<128x128xf16>
      %s4 = tt.dot %a3, %t3, %s3 : tensor<128x128xf16> * tensor<128x128xf16> -> tensor<128x128xf32>
      scf.yield %s4 : tensor<128x128xf32>
    }
    %cs = tt.splat %c : !tt.ptr<f16> -> tensor<128x128x!tt.ptr<f16>>
    %pc = tt.addptr %cs, %offsets : tensor<128x128x!tt.ptr<f16>>, tensor<128x128xi32>
    %out = arith.truncf %sum : tensor<128x128xf32> to tensor<128x128xf16>
    tt.store %pc, %out : tensor<128x128x!tt.ptr<f16>>
    tt.return
  }
}
