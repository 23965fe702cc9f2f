// A load of a loop with products that cannot come earlier, and why: its address is what an atomic operation answers.
//
// RUN: llopt explain %s --target cuda:90 | FileCheck %s
// RUN: llopt explain %s --target hip:gfx942 | FileCheck %s
// RUN: llopt explain %s --target cuda:90 --json | FileCheck %s --check-prefix=JSON

// CHECK: Loop ({{.*}}) is not pipelined: no load of it can come earlier
// CHECK: stays the load ({{.*}}:31:12): where it loads from depends on tt.atomic_rmw, which cannot be executed ahead
// JSON: "late": [
// JSON: "reason": "where it loads from depends on tt.atomic_rmw, which cannot be executed ahead"
module {
  tt.func public @taken(%from: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %next: !tt.ptr<i32>, %to: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %true = arith.constant true
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %one = arith.constant dense<1.0> : tensor<64x64xf16>
    %width = arith.constant dense<64> : tensor<64x1xi32>
    %range = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %rows = tt.expand_dims %range {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %columns = tt.expand_dims %range {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %scaled = arith.muli %rows, %width : tensor<64x1xi32>
    %down = tt.broadcast %scaled : tensor<64x1xi32> -> tensor<64x64xi32>
    %across = tt.broadcast %columns : tensor<1x64xi32> -> tensor<64x64xi32>
    %offsets = arith.addi %down, %across : tensor<64x64xi32>
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %index = tt.atomic_rmw add, acq_rel, gpu, %next, %c1, %true : (!tt.ptr<i32>, i32, i1) -> i32
      %base = tt.addptr %from, %index : !tt.ptr<f16>, i32
      %bases = tt.splat %base : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
      %q = tt.addptr %bases, %offsets : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
      %b = tt.load %q : tensor<64x64x!tt.ptr<f16>>
      %d = tt.dot %one, %b, %acc : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    %out = tt.splat %to : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
    %places = tt.addptr %out, %offsets : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
    tt.store %places, %sum : tensor<64x64x!tt.ptr<f32>>
    tt.return
  }
}
