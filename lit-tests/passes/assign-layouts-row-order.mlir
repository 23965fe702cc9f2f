// Bytes that become halves for the second factor and lie in memory with their columns side by side: four of them are rows of
// one thread in the transposed product.
//
// RUN: llopt %s --assign-layouts=target=cuda:90 --canonicalize --cse | FileCheck %s
// RUN: llopt compile %s --target cuda:90 | FileCheck %s --check-prefix=PTX
// RUN: llopt prove %s --target cuda:90 | FileCheck %s --check-prefix=PROVEN

// PROVEN: proven: [[N:[0-9]+]] of [[N]]

// Rows change their order on the way to the product, and back behind the loop; both are names of what registers have.

// CHECK-LABEL: @product
// CHECK: scf.for
// CHECK: %[[TURNED:.+]] = tt.trans {{.*}} -> tensor<128x64xbf16
// CHECK: %[[PARTS:.+]] = tt.reshape %[[TURNED]] : {{.*}} -> tensor<4x8x2x2x64xbf16
// CHECK: %[[ORDERED:.+]] = tt.trans %[[PARTS]] {order = array<i32: 2, 0, 3, 1, 4>} : {{.*}} -> tensor<2x4x2x8x64xbf16
// CHECK: %[[A:.+]] = tt.reshape %[[ORDERED]] : {{.*}} -> tensor<128x64xbf16, #ttg.dot_op<{opIdx = 0
// CHECK: ttng.warp_group_dot %[[A]],
// CHECK: }
// CHECK: tt.trans {{.*}} {order = array<i32: 1, 3, 0, 2, 4>} : {{.*}} -> tensor<4x8x2x2x64xf32
// CHECK: tt.trans {{.*}} -> tensor<64x128xf32

// Copies bring the bytes to shared memory as they lie, and threads read words.

// PTX: bra
// PTX-NOT: {{(ld|st)\.shared\.(v[24]\.)?b(8|16)}}
// PTX-COUNT-16: ld.shared.b32
// PTX-NOT: {{(ld|st)\.shared}}
// PTX: cp.async.cg.shared.global
// PTX-NOT: {{(ld|st)\.shared}}
// PTX: bra
module {
  tt.func public @product(%a: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %b: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %c: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
    %m = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %k = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %j = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
    %md = tt.expand_dims %m {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %ka = tt.expand_dims %k {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %kd = tt.expand_dims %k {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %ja = tt.expand_dims %j {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
    %s0 = arith.constant dense<64> : tensor<64x1xi32>
    %s1 = arith.constant dense<128> : tensor<64x1xi32>
    %s2 = arith.constant dense<128> : tensor<64x1xi32>
    %ar = arith.muli %md, %s0 : tensor<64x1xi32>
    %arb = tt.broadcast %ar : tensor<64x1xi32> -> tensor<64x64xi32>
    %acb = tt.broadcast %ka : tensor<1x64xi32> -> tensor<64x64xi32>
    %ao = arith.addi %arb, %acb : tensor<64x64xi32>
    %br = arith.muli %kd, %s1 : tensor<64x1xi32>
    %brb = tt.broadcast %br : tensor<64x1xi32> -> tensor<64x128xi32>
    %bcb = tt.broadcast %ja : tensor<1x128xi32> -> tensor<64x128xi32>
    %bo = arith.addi %bcb, %brb : tensor<64x128xi32>
    %cr = arith.muli %md, %s2 : tensor<64x1xi32>
    %crb = tt.broadcast %cr : tensor<64x1xi32> -> tensor<64x128xi32>
    %ccb = tt.broadcast %ja : tensor<1x128xi32> -> tensor<64x128xi32>
    %co = arith.addi %crb, %ccb : tensor<64x128xi32>
    %as = tt.splat %a : !tt.ptr<bf16> -> tensor<64x64x!tt.ptr<bf16>>
    %ap = tt.addptr %as, %ao : tensor<64x64x!tt.ptr<bf16>>, tensor<64x64xi32>
    %bs = tt.splat %b : !tt.ptr<i8> -> tensor<64x128x!tt.ptr<i8>>
    %bp = tt.addptr %bs, %bo : tensor<64x128x!tt.ptr<i8>>, tensor<64x128xi32>
    %ai = arith.constant dense<1024> : tensor<64x64xi32>
    %bi = arith.constant dense<8192> : tensor<64x128xi32>
    %none = arith.constant dense<0.0> : tensor<64x128xf32>
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %r:3 = scf.for %i = %zero to %n step %one iter_args(%s = %none, %at = %ap, %bt = %bp) -> (tensor<64x128xf32>, tensor<64x64x!tt.ptr<bf16>>, tensor<64x128x!tt.ptr<i8>>) : i32 {
      %x = tt.load %at : tensor<64x64x!tt.ptr<bf16>>
      %y = tt.load %bt : tensor<64x128x!tt.ptr<i8>>
      %w = arith.sitofp %y : tensor<64x128xi8> to tensor<64x128xbf16>
      %z = tt.dot %x, %w, %s : tensor<64x64xbf16> * tensor<64x128xbf16> -> tensor<64x128xf32>
      %an = tt.addptr %at, %ai : tensor<64x64x!tt.ptr<bf16>>, tensor<64x64xi32>
      %bn = tt.addptr %bt, %bi : tensor<64x128x!tt.ptr<i8>>, tensor<64x128xi32>
      scf.yield %z, %an, %bn : tensor<64x128xf32>, tensor<64x64x!tt.ptr<bf16>>, tensor<64x128x!tt.ptr<i8>>
    }
    %cs = tt.splat %c : !tt.ptr<f32> -> tensor<64x128x!tt.ptr<f32>>
    %cp = tt.addptr %cs, %co : tensor<64x128x!tt.ptr<f32>>, tensor<64x128xi32>
    tt.store %cp, %r#0 : tensor<64x128x!tt.ptr<f32>>
    tt.return
  }
}
