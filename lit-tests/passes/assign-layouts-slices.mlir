// Products of few rows in a loop: the warps divide k among them, and their sums are added up when the loop ends.
//
// RUN: llopt %s --assign-layouts=target=cuda:90 --canonicalize --cse | FileCheck %s
// RUN: llopt %s --assign-layouts=target=cuda:80 --canonicalize --cse | FileCheck %s
// RUN: llopt %s --assign-layouts=target=hip:gfx942 --canonicalize --cse | FileCheck %s --check-prefix=WHOLE
// RUN: llopt prove %s --target cuda:90 | FileCheck %s --check-prefix=PROVEN
// RUN: llopt prove %s --target hip:gfx942 | FileCheck %s --check-prefix=PROVEN
// RUN: llopt compile %s --target cuda:90 | FileCheck %s --check-prefix=PTX

// PROVEN: proven: [[N:[0-9]+]] of [[N]]

// Each of four warps has a batch, of a quarter of k, and a sum of all columns.

// CHECK-LABEL: @product
// CHECK: scf.for {{.*}}tensor<4x16x64xf32
// CHECK: tt.dot {{.*}}tensor<4x16x16xf16, {{.*}} * tensor<4x16x64xf16, {{.*}} -> tensor<4x16x64xf32
// CHECK: scf.yield

// Halves are added to each other in one order, the last time where the result is stored.

// CHECK: %[[ONE:.+]], %[[TWO:.+]] = tt.split {{.*}} -> tensor<2x16x64xf32
// CHECK: arith.addf %[[ONE]], %[[TWO]]
// CHECK: %[[THREE:.+]], %[[FOUR:.+]] = tt.split {{.*}} -> tensor<16x64xf32, #[[ROWS:.+]]>
// CHECK: %[[SUM:.+]] = arith.addf %[[THREE]], %[[FOUR]]
// CHECK: tt.store %{{.+}}, %[[SUM]] : tensor<16x64x!tt.ptr<f32>, #[[ROWS]]>

// Where no copies bring factors to shared memory, but threads, k stays whole.

// WHOLE: tt.dot {{.*}} -> tensor<16x64xf32

// One matrix of the first factor for four of the second: no warp reads what another one reads.

// PTX: mma.sync
// PTX-NOT: atom
// PTX: st.global.v4.b32
module {
  tt.func public @product(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %c: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
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
