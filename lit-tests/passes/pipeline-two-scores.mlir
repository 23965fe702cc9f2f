// A loop of four products, of which two are of scores: the last product runs on into the next iteration, with a factor in
// registers.
//
// RUN: llopt compile %s --target cuda:90 --num-warps 8 --num-stages 2 --emit ttgir -o - | FileCheck %s

// Two tiles of scores and three tensors that the loop carries leave no registers for the factor, so the product is waited for behind the first product of
// the next iteration, before the second one is issued.
// CHECK-LABEL: @two_scores
// CHECK: scf.for
// CHECK: ttng.warp_group_dot {{.*}} -> tensor<128x128xf32
// CHECK: ttng.warp_group_dot_wait %{{.*}} {pendings = 0 : i32} : tensor<128x64xf32
// CHECK: ttng.warp_group_dot {{.*}} -> tensor<128x128xf32
// CHECK-NOT: ttng.warp_group_dot_wait
// CHECK: ttng.warp_group_dot {{.*}} -> tensor<128x64xf32
// CHECK: ttng.warp_group_dot {{.*}} {isAsync = true} : {{.*}} -> tensor<128x64xf32
// CHECK: scf.yield
tt.func public @two_scores(%q: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %kv: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}) {
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %c8192 = arith.constant 8192 : i32
  %none = arith.constant dense<0.000000e+00> : tensor<128x128xf32>
  %zero = arith.constant dense<0.000000e+00> : tensor<128x64xf32>
  %least = arith.constant dense<0xFF800000> : tensor<128xf32>
  %depth = arith.constant dense<64> : tensor<128x1xi32>
  %row = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %rows = tt.expand_dims %row {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
  %column = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %columns = tt.expand_dims %column {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %begins = arith.muli %rows, %depth : tensor<128x1xi32>
  %all_begins = tt.broadcast %begins : tensor<128x1xi32> -> tensor<128x64xi32>
  %all_columns = tt.broadcast %columns : tensor<1x64xi32> -> tensor<128x64xi32>
  %places = arith.addi %all_begins, %all_columns : tensor<128x64xi32>
  %q_base = tt.splat %q : !tt.ptr<f16> -> tensor<128x64x!tt.ptr<f16>>
  %q_at = tt.addptr %q_base, %places : tensor<128x64x!tt.ptr<f16>>, tensor<128x64xi32>
  %a = tt.load %q_at : tensor<128x64x!tt.ptr<f16>>
  %r_of = tt.addptr %q, %c8192 : !tt.ptr<f16>, i32
  %r_base = tt.splat %r_of : !tt.ptr<f16> -> tensor<128x64x!tt.ptr<f16>>
  %r_at = tt.addptr %r_base, %places : tensor<128x64x!tt.ptr<f16>>, tensor<128x64xi32>
  %b = tt.load %r_at : tensor<128x64x!tt.ptr<f16>>
  %sums:4 = scf.for %i = %c0 to %n step %c128 iter_args(%one = %zero, %other = %zero, %m = %least, %fade = %zero) -> (tensor<128x64xf32>, tensor<128x64xf32>, tensor<128xf32>, tensor<128x64xf32>) : i32 {
    %from = arith.muli %i, %c128 : i32
    %k_of = tt.addptr %kv, %from : !tt.ptr<f16>, i32
    %k_base = tt.splat %k_of : !tt.ptr<f16> -> tensor<128x64x!tt.ptr<f16>>
    %k_at = tt.addptr %k_base, %places : tensor<128x64x!tt.ptr<f16>>, tensor<128x64xi32>
    %k = tt.load %k_at : tensor<128x64x!tt.ptr<f16>>
    %kt = tt.trans %k {order = array<i32: 1, 0>} : tensor<128x64xf16> -> tensor<64x128xf16>
    %s = tt.dot %a, %kt, %none : tensor<128x64xf16> * tensor<64x128xf16> -> tensor<128x128xf32>
    %own = "tt.reduce"(%s) <{axis = 1 : i32}> ({
    ^bb0(%x: f32, %y: f32):
      %z = arith.maxnumf %x, %y : f32
      tt.reduce.return %z : f32
    }) : (tensor<128x128xf32>) -> tensor<128xf32>
    %next = arith.maxnumf %m, %own : tensor<128xf32>
    %next1 = tt.expand_dims %next {axis = 1 : i32} : tensor<128xf32> -> tensor<128x1xf32>
    %next2 = tt.broadcast %next1 : tensor<128x1xf32> -> tensor<128x128xf32>
    %less = arith.subf %s, %next2 : tensor<128x128xf32>
    %p = math.exp2 %less : tensor<128x128xf32>
    %t = tt.dot %b, %kt, %none : tensor<128x64xf16> * tensor<64x128xf16> -> tensor<128x128xf32>
    %w = arith.mulf %p, %t : tensor<128x128xf32>
    %fall = arith.subf %m, %next : tensor<128xf32>
    %factor = math.exp2 %fall : tensor<128xf32>
    %factor1 = tt.expand_dims %factor {axis = 1 : i32} : tensor<128xf32> -> tensor<128x1xf32>
    %factor2 = tt.broadcast %factor1 : tensor<128x1xf32> -> tensor<128x64xf32>
    %one1 = arith.mulf %one, %factor2 : tensor<128x64xf32>
    %other1 = arith.mulf %other, %factor2 : tensor<128x64xf32>
    %fade1 = arith.addf %fade, %factor2 : tensor<128x64xf32>
    %fade2 = arith.mulf %fade1, %factor2 : tensor<128x64xf32>
    %ph = arith.truncf %p : tensor<128x128xf32> to tensor<128x128xf16>
    %wh = arith.truncf %w : tensor<128x128xf32> to tensor<128x128xf16>
    %one2 = tt.dot %ph, %k, %one1 : tensor<128x128xf16> * tensor<128x64xf16> -> tensor<128x64xf32>
    %other2 = tt.dot %wh, %k, %other1 : tensor<128x128xf16> * tensor<128x64xf16> -> tensor<128x64xf32>
    scf.yield %one2, %other2, %next, %fade2 : tensor<128x64xf32>, tensor<128x64xf32>, tensor<128xf32>, tensor<128x64xf32>
  }
  %both = arith.addf %sums#0, %sums#1 : tensor<128x64xf32>
  %sum = arith.addf %both, %sums#3 : tensor<128x64xf32>
  %out_base = tt.splat %out : !tt.ptr<f32> -> tensor<128x64x!tt.ptr<f32>>
  %out_at = tt.addptr %out_base, %places : tensor<128x64x!tt.ptr<f32>>, tensor<128x64xi32>
  tt.store %out_at, %sum : tensor<128x64x!tt.ptr<f32>>
  tt.return
}
