// A loop that loads for its next iteration runs 32 times by assumption; its load does something in all but the last, as
// its mask says, and has the rest of an iteration to arrive.
//
// RUN: llopt explain %s --target cuda:90 --json | FileCheck %s

// CHECK: "written": {
// The first load, before the loop.
// CHECK: "op": "tt.load",
// CHECK-NEXT: "location":
// CHECK-NEXT: "runs": 1.0,
// The next ones. Of two iterations ahead the last two have nothing to load.
// CHECK: "op": "tt.load",
// CHECK-NEXT: "location":
// CHECK-NEXT: "runs": 31.0,
// CHECK: "op": "tt.load",
// CHECK-NEXT: "location":
// CHECK-NEXT: "runs": 30.0,
// A mask of the elements lets each iteration store something.
// CHECK: "op": "tt.store",
// CHECK-NEXT: "location":
// CHECK-NEXT: "runs": 32.0,
#vectors = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @ahead(%from: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c512 = arith.constant 512 : i32
    %c1024 = arith.constant 1024 : i32
    %i = tt.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32, #vectors>
    %f = tt.splat %from : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #vectors>
    %p = tt.addptr %f, %i : tensor<512x!tt.ptr<f32>, #vectors>, tensor<512xi32, #vectors>
    %t = tt.splat %to : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #vectors>
    %q = tt.addptr %t, %i : tensor<512x!tt.ptr<f32>, #vectors>, tensor<512xi32, #vectors>
    %all = tt.splat %n : i32 -> tensor<512xi32, #vectors>
    %inside = arith.cmpi slt, %i, %all : tensor<512xi32, #vectors>
    %first = tt.load %p, %inside : tensor<512x!tt.ptr<f32>, #vectors>
    %last:2 = scf.for %k = %c0 to %n step %c512 iter_args(%x = %first, %y = %first) -> (tensor<512xf32, #vectors>, tensor<512xf32, #vectors>) : i32 {
      %left = arith.subi %n, %k : i32
      %is_one = arith.cmpi ult, %c512, %left : i32
      %one = tt.splat %is_one : i1 -> tensor<512xi1, #vectors>
      %mask = arith.andi %one, %inside : tensor<512xi1, #vectors>
      %next = tt.load %p, %mask : tensor<512x!tt.ptr<f32>, #vectors>
      %are_two = arith.cmpi ult, %c1024, %left : i32
      %two = tt.splat %are_two : i1 -> tensor<512xi1, #vectors>
      %after = tt.load %p, %two : tensor<512x!tt.ptr<f32>, #vectors>
      %sum = arith.addf %x, %y : tensor<512xf32, #vectors>
      tt.store %q, %sum, %inside : tensor<512x!tt.ptr<f32>, #vectors>
      scf.yield %next, %after : tensor<512xf32, #vectors>, tensor<512xf32, #vectors>
    }
    tt.return
  }
}
