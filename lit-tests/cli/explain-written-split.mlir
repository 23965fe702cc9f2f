// Of a loop whose last iteration was split off, both loops together run as often as the one would.
//
// RUN: llopt explain %s --target cuda:90 --json | FileCheck %s

// CHECK: "written": {
// CHECK: "op": "tt.load",
// CHECK-NEXT: "location":
// CHECK-NEXT: "runs": 31.0,
// CHECK: "op": "tt.load",
// CHECK-NEXT: "location":
// CHECK-NEXT: "runs": 1.0,
#vectors = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @split(%from: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32, %most: i32) {
    %zero = arith.constant dense<0.000000e+00> : tensor<512xf32, #vectors>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %i = tt.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32, #vectors>
    %f = tt.splat %from : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #vectors>
    %p = tt.addptr %f, %i : tensor<512x!tt.ptr<f32>, #vectors>, tensor<512xi32, #vectors>
    %some = arith.cmpi slt, %c0, %n : i32
    %but_one = arith.subi %n, %c1 : i32
    %last = arith.select %some, %but_one, %c0 : i32
    %sum = scf.for %k = %c0 to %last step %c1 iter_args(%s = %zero) -> (tensor<512xf32, #vectors>) : i32 {
      %x = tt.load %p : tensor<512x!tt.ptr<f32>, #vectors>
      %z = arith.addf %s, %x : tensor<512xf32, #vectors>
      scf.yield %z : tensor<512xf32, #vectors>
    }
    %all = scf.for %k = %last to %n step %c1 iter_args(%s = %sum) -> (tensor<512xf32, #vectors>) : i32 {
      %x = tt.load %p : tensor<512x!tt.ptr<f32>, #vectors>
      %z = arith.addf %s, %x : tensor<512xf32, #vectors>
      scf.yield %z : tensor<512xf32, #vectors>
    }
    %t = tt.splat %to : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #vectors>
    %q = tt.addptr %t, %i : tensor<512x!tt.ptr<f32>, #vectors>, tensor<512xi32, #vectors>
    tt.store %q, %all : tensor<512x!tt.ptr<f32>, #vectors>
    tt.return
  }
}
