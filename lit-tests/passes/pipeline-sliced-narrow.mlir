// A factor of few rows whose addresses are those of single halves, which no copy can bring: it waits in registers for its
// buffer, and each warp reads its slice of k from there in the order of the product.
//
// RUN: llopt compile %s --target cuda:80 --emit ttgir | FileCheck %s

// CHECK: #[[MMA:.+]] = #ttg.nvidia_mma<{{.*}}warpsPerCTA = [4, 1, 1]
// CHECK: scf.for
// CHECK-NOT: ttg.convert_layout
// CHECK: ttg.local_load {{.*}} -> tensor<16x64xf16, #[[OWN:linear[0-9]*]]>
// CHECK-NOT: ttg.convert_layout
// CHECK: tt.dot
// CHECK-NOT: ttg.convert_layout
// CHECK: scf.yield
module {
  tt.func public @product(%a: !tt.ptr<f16>, %b: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %c: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
    %m = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
    %k = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %md = tt.expand_dims %m {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
    %ka = tt.expand_dims %k {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %kd = tt.expand_dims %k {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %s0 = arith.constant dense<64> : tensor<16x1xi32>
    %s1 = arith.constant dense<64> : tensor<1x64xi32>
    %ar = arith.muli %md, %s0 : tensor<16x1xi32>
    %arb = tt.broadcast %ar : tensor<16x1xi32> -> tensor<16x64xi32>
    %acb = tt.broadcast %ka : tensor<1x64xi32> -> tensor<16x64xi32>
    %ao = arith.addi %arb, %acb : tensor<16x64xi32>
    %bc = arith.muli %ka, %s1 : tensor<1x64xi32>
    %bcb = tt.broadcast %bc : tensor<1x64xi32> -> tensor<64x64xi32>
    %brb = tt.broadcast %kd : tensor<64x1xi32> -> tensor<64x64xi32>
    %bo = arith.addi %bcb, %brb : tensor<64x64xi32>
    %as = tt.splat %a : !tt.ptr<f16> -> tensor<16x64x!tt.ptr<f16>>
    %ap = tt.addptr %as, %ao : tensor<16x64x!tt.ptr<f16>>, tensor<16x64xi32>
    %bs = tt.splat %b : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
    %bp = tt.addptr %bs, %bo : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
    %ai = arith.constant dense<1024> : tensor<16x64xi32>
    %bi = arith.constant dense<4096> : tensor<64x64xi32>
    %none = arith.constant dense<0.0> : tensor<16x64xf32>
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %r:3 = scf.for %i = %zero to %n step %one iter_args(%s = %none, %at = %ap, %bt = %bp) -> (tensor<16x64xf32>, tensor<16x64x!tt.ptr<f16>>, tensor<64x64x!tt.ptr<f16>>) : i32 {
      %x = tt.load %at : tensor<16x64x!tt.ptr<f16>>
      %y = tt.load %bt : tensor<64x64x!tt.ptr<f16>>
      %z = tt.dot %x, %y, %s : tensor<16x64xf16> * tensor<64x64xf16> -> tensor<16x64xf32>
      %an = tt.addptr %at, %ai : tensor<16x64x!tt.ptr<f16>>, tensor<16x64xi32>
      %bn = tt.addptr %bt, %bi : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
      scf.yield %z, %an, %bn : tensor<16x64xf32>, tensor<16x64x!tt.ptr<f16>>, tensor<64x64x!tt.ptr<f16>>
    }
    %cs = tt.splat %c : !tt.ptr<f32> -> tensor<16x64x!tt.ptr<f32>>
    %cp = tt.addptr %cs, %ao : tensor<16x64x!tt.ptr<f32>>, tensor<16x64xi32>
    tt.store %cp, %r#0 : tensor<16x64x!tt.ptr<f32>>
    tt.return
  }
}
