// What the layouts of a kernel cost that came with them: each conversion and each access as often as it runs.
//
// RUN: llopt explain %s --target cuda:90 | FileCheck %s
// RUN: llopt explain %s --target cuda:90 --json | FileCheck %s --check-prefix=JSON

// CHECK: The layouts that it has cost {{[0-9]+}} cycles.

// The loop runs eight times, and so do the load and the conversion in it; the store runs once.
// JSON: "layouts": null,
// JSON: "written": {
// JSON-NEXT: "cost": {{[0-9.]+}},
// JSON-NEXT: "ops": [
// JSON: "op": "tt.load",
// JSON-NEXT: "location": "{{.*}}:43:12",
// JSON-NEXT: "runs": 8.0,
// JSON-NEXT: "cost":
// JSON-NEXT: "access": {
// JSON-NEXT: "instructions": 1,
// JSON-NEXT: "sectors": 16.125
// JSON: "op": "ttg.convert_layout",
// JSON-NEXT: "location": "{{.*}}:44:12",
// JSON-NEXT: "runs": 8.0,
// JSON: "op": "tt.store",
// JSON-NEXT: "location":
// JSON-NEXT: "runs": 1.0,
// JSON-NEXT: "cost":
// JSON-NEXT: "access": {
// JSON-NEXT: "instructions": 4,
// JSON-NEXT: "sectors": 16.125
#vectors = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#single = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @sums(%from: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %zero = arith.constant dense<0.000000e+00> : tensor<512xf32, #single>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %i = tt.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32, #vectors>
    %f = tt.splat %from : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #vectors>
    %p = tt.addptr %f, %i : tensor<512x!tt.ptr<f32>, #vectors>, tensor<512xi32, #vectors>
    %sum = scf.for %n = %c0 to %c8 step %c1 iter_args(%s = %zero) -> (tensor<512xf32, #single>) : i32 {
      // Both lines below run in each iteration.
      %x = tt.load %p : tensor<512x!tt.ptr<f32>, #vectors>
      %y = ttg.convert_layout %x : tensor<512xf32, #vectors> -> tensor<512xf32, #single>
      %z = arith.addf %s, %y : tensor<512xf32, #single>
      scf.yield %z : tensor<512xf32, #single>
    }
    %j = tt.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32, #single>
    %t = tt.splat %to : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #single>
    %q = tt.addptr %t, %j : tensor<512x!tt.ptr<f32>, #single>, tensor<512xi32, #single>
    tt.store %q, %sum : tensor<512x!tt.ptr<f32>, #single>
    tt.return
  }
}
