// Products of one iteration that need nothing from each other, as in the backward pass of attention: both run at a time,
// and each until its result is read.
//
// RUN: llopt compile %s --target cuda:90 --num-warps 8 --num-stages 2 --emit ttgir -o - | FileCheck %s
// RUN: llopt compile %s --target cuda:90 --num-warps 0 --num-stages 2 --emit ttgir -o - | FileCheck %s --check-prefix=CHOSEN

// Four warps would have to spill the sums of so many rows.
// CHOSEN: "ttg.num-warps" = 8

module {
  // CHECK-LABEL: @backward
  // CHECK: scf.for
  // CHECK: %[[S:.*]] = ttng.warp_group_dot {{.*}}isAsync = true
  // CHECK: %[[D:.*]] = ttng.warp_group_dot {{.*}}isAsync = true
  // The first wait leaves the second product running. It also names the sum of the last product of the iteration before,
  // which is complete then.
  // CHECK: %[[DONE:.*]]:2 = ttng.warp_group_dot_wait %[[S]], %{{.*}} {pendings = 1
  // CHECK: arith.maxnumf %[[DONE]]#0
  // CHECK: %[[DV:.*]] = ttng.warp_group_dot {{.*}}isAsync = true
  // CHECK: ttng.warp_group_dot_wait %[[D]] {pendings = 1
  // CHECK: arith.mulf
  // CHECK: ttng.warp_group_dot {{.*}}, %[[DONE]]#1 {{.*}}isAsync = true
  // CHECK: ttng.warp_group_dot_wait %[[DV]], %{{.*}} {pendings = 1
  // CHECK: ttg.async_copy_global_to_local
  tt.func public @backward(%q: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %k: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
    %none = arith.constant dense<0.0> : tensor<128x64xf32>
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %stride = arith.constant dense<128> : tensor<64x1xi32>
    %wide = arith.constant dense<128> : tensor<128x1xi32>
    %advance = arith.constant dense<8192> : tensor<64x128xi32>
    %r64 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %r128 = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
    %rows = tt.expand_dims %r64 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %columns = tt.expand_dims %r128 {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
    %keys = tt.expand_dims %r128 {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
    %begin = arith.muli %rows, %stride : tensor<64x1xi32>
    %begins = tt.broadcast %begin : tensor<64x1xi32> -> tensor<64x128xi32>
    %across = tt.broadcast %columns : tensor<1x128xi32> -> tensor<64x128xi32>
    %offsets = arith.addi %begins, %across : tensor<64x128xi32>
    %key = arith.muli %keys, %wide : tensor<128x1xi32>
    %key_begins = tt.broadcast %key : tensor<128x1xi32> -> tensor<128x128xi32>
    %key_across = tt.broadcast %columns : tensor<1x128xi32> -> tensor<128x128xi32>
    %key_offsets = arith.addi %key_begins, %key_across : tensor<128x128xi32>
    %ks = tt.splat %k : !tt.ptr<f16> -> tensor<128x128x!tt.ptr<f16>>
    %kp = tt.addptr %ks, %key_offsets : tensor<128x128x!tt.ptr<f16>>, tensor<128x128xi32>
    %keys_of = tt.load %kp : tensor<128x128x!tt.ptr<f16>>
    %qs = tt.splat %q : !tt.ptr<f16> -> tensor<64x128x!tt.ptr<f16>>
    %q0 = tt.addptr %qs, %offsets : tensor<64x128x!tt.ptr<f16>>, tensor<64x128xi32>
    %os = tt.splat %o : !tt.ptr<f16> -> tensor<64x128x!tt.ptr<f16>>
    %o0 = tt.addptr %os, %offsets : tensor<64x128x!tt.ptr<f16>>, tensor<64x128xi32>
    %r:4 = scf.for %i = %c0 to %n step %c1 iter_args(%dv = %zero, %dk = %zero, %qp = %q0, %op = %o0) -> (tensor<128x128xf32>, tensor<128x128xf32>, tensor<64x128x!tt.ptr<f16>>, tensor<64x128x!tt.ptr<f16>>) : i32 {
      %a = tt.load %qp : tensor<64x128x!tt.ptr<f16>>
      %at = tt.trans %a {order = array<i32: 1, 0>} : tensor<64x128xf16> -> tensor<128x64xf16>
      %s = tt.dot %keys_of, %at, %none : tensor<128x128xf16> * tensor<128x64xf16> -> tensor<128x64xf32>
      %p = arith.maxnumf %s, %none : tensor<128x64xf32>
      %b = tt.load %op : tensor<64x128x!tt.ptr<f16>>
      %ph = arith.truncf %p : tensor<128x64xf32> to tensor<128x64xf16>
      %dv1 = tt.dot %ph, %b, %dv : tensor<128x64xf16> * tensor<64x128xf16> -> tensor<128x128xf32>
      %bt = tt.trans %b {order = array<i32: 1, 0>} : tensor<64x128xf16> -> tensor<128x64xf16>
      %d = tt.dot %keys_of, %bt, %none : tensor<128x128xf16> * tensor<128x64xf16> -> tensor<128x64xf32>
      %ds = arith.mulf %p, %d : tensor<128x64xf32>
      %dh = arith.truncf %ds : tensor<128x64xf32> to tensor<128x64xf16>
      %dk1 = tt.dot %dh, %a, %dk : tensor<128x64xf16> * tensor<64x128xf16> -> tensor<128x128xf32>
      %q1 = tt.addptr %qp, %advance : tensor<64x128x!tt.ptr<f16>>, tensor<64x128xi32>
      %o1 = tt.addptr %op, %advance : tensor<64x128x!tt.ptr<f16>>, tensor<64x128xi32>
      scf.yield %dv1, %dk1, %q1, %o1 : tensor<128x128xf32>, tensor<128x128xf32>, tensor<64x128x!tt.ptr<f16>>, tensor<64x128x!tt.ptr<f16>>
    }
    %sum = arith.addf %r#0, %r#1 : tensor<128x128xf32>
    %outs = tt.splat %out : !tt.ptr<f32> -> tensor<128x128x!tt.ptr<f32>>
    %to = tt.addptr %outs, %key_offsets : tensor<128x128x!tt.ptr<f32>>, tensor<128x128xi32>
    tt.store %to, %sum : tensor<128x128x!tt.ptr<f32>>
    tt.return
  }
}
