// Copies of rows that the next iterations go on with bring more of them into the cache.
//
// RUN: llopt compile %s --target cuda:90 --num-stages 3 --emit ttgir -o - | FileCheck %s
// RUN: llopt compile %s --target cuda:90 --num-stages 3 --emit ptx -o - | FileCheck %s --check-prefix=PTX

// An iteration reads 128 bytes of each row of the left factor, and the next one those after them. Of the right factor it
// reads other rows.
// CHECK-LABEL: @product(
// CHECK: scf.for
// CHECK: ttg.async_copy_global_to_local {{.*}}pipeline.cached_block = 256 : i32{{.*}}tensor<64x64x!tt.ptr<f16>
// CHECK-NOT: cached_block
// PTX-LABEL: .entry product(
// PTX-DAG: cp.async.cg.shared.global.L2::256B
// PTX-DAG: cp.async.cg.shared.global [
module {
  tt.func public @product(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %c: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %width = arith.constant dense<4096> : tensor<64x1xi32>
    %along = arith.constant dense<64> : tensor<64x64xi32>
    %down = arith.constant dense<262144> : tensor<64x64xi32>
    %range = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %rows = tt.expand_dims %range {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %columns = tt.expand_dims %range {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %begin = arith.muli %rows, %width : tensor<64x1xi32>
    %begins = tt.broadcast %begin : tensor<64x1xi32> -> tensor<64x64xi32>
    %across = tt.broadcast %columns : tensor<1x64xi32> -> tensor<64x64xi32>
    %offsets = arith.addi %begins, %across : tensor<64x64xi32>
    %as = tt.splat %a : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
    %a0 = tt.addptr %as, %offsets : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
    %bs = tt.splat %b : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
    %b0 = tt.addptr %bs, %offsets : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%ap = %a0, %bp = %b0, %sum = %zero) -> (tensor<64x64x!tt.ptr<f16>>, tensor<64x64x!tt.ptr<f16>>, tensor<64x64xf32>) : i32 {
      %x = tt.load %ap : tensor<64x64x!tt.ptr<f16>>
      %y = tt.load %bp : tensor<64x64x!tt.ptr<f16>>
      %d = tt.dot %x, %y, %sum : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
      %an = tt.addptr %ap, %along : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
      %bn = tt.addptr %bp, %down : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
      scf.yield %an, %bn, %d : tensor<64x64x!tt.ptr<f16>>, tensor<64x64x!tt.ptr<f16>>, tensor<64x64xf32>
    }
    %cs = tt.splat %c : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
    %cp = tt.addptr %cs, %offsets : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
    tt.store %cp, %r#2 : tensor<64x64x!tt.ptr<f32>>
    tt.return
  }
}
