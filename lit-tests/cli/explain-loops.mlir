// What became of loops with products: how they are pipelined, or why they are left as they were.
//
// RUN: llopt explain %s --target cuda:90 --num-stages 4 | FileCheck %s
// RUN: llopt explain %s --target cuda:90 --num-stages 1 | FileCheck %s --check-prefix=ONE
// RUN: llopt explain %s --target hip:gfx942 | FileCheck %s --check-prefix=AMD
// RUN: llopt explain %s --target cuda:90 --num-stages 0 | FileCheck %s --check-prefix=AUTO
// RUN: llopt explain %s --target cuda:90 --json | FileCheck %s --check-prefix=JSON

// The first loop copies both factors; so does the second, which loads where to load from an iteration earlier.
// CHECK: Loop ({{.*}}:57:14) is pipelined in 4 stages: 2 copies and 0 loads through registers, 4 buffers for each, 65536 bytes; 1 products run on into the next iteration.
// CHECK-NEXT: interval {{[0-9]+}} cycles, at least {{[0-9]+}} for {{.*}}; {{[0-9]+}} stages hide the latency of its loads
// CHECK-NEXT: predicted an iteration takes about {{[0-9]+}} cycles, the share of each of {{[0-9]+}} resident blocks: matrix units {{[0-9]+}}, issue {{[0-9]+}}, transfers {{[0-9]+}}
// CHECK-NEXT: partitions none, though the program asks for them: a factor is loaded by pointers, by many threads
// The schedule, cycle by cycle: both loads keep the same memory busy, one after the other.
// CHECK-NEXT: cycle 0 stage 0: tt.load keeps global memory busy for 128 cycles
// CHECK: cycle 128 stage 0: tt.load keeps global memory busy for 128 cycles
// CHECK-NEXT: cycle {{[0-9]+}} stage 3: ttng.warp_group_dot keeps matrix units busy for 128 cycles
// CHECK-NEXT: Loop ({{.*}}:69:15) is pipelined in 4 stages: 1 copies and 1 loads through registers held for an iteration
// CHECK-NEXT: addresses depend on 1 loads, which run ahead of the loads that need them
// ONE: Loop ({{.*}}:57:14) is not pipelined: num_stages is 1.
// AMD-NOT: predicted
// AMD: Loop ({{.*}}:57:14) is pipelined in 3 stages (2 are asked for, and more cost nothing): 0 copies and 2 loads through registers, 1 buffers for each, 16384 bytes; 0 products
// AMD-NEXT: registers the loads of two iterations are outstanding, in registers that change places: 2 iterations are unrolled to one
// AMD: partitions none, though the program asks for them: hip:gfx942 has no copies that arrive at barriers
// The schedule asks for as many stages as there are then.
// AUTO: Loop ({{.*}}) is pipelined in [[STAGES:[0-9]+]] stages
// AUTO: [[STAGES]] stages hide the latency
// JSON: "loops": [
// JSON: "location": "{{.*}}:57:14"
// JSON: "stages": 4
// JSON: "units": [
// JSON: "op": "tt.load"
// JSON-NEXT: "resource": "global memory"
// JSON-NEXT: "start": 0
// JSON: "predicted": {
// JSON: "cycles": {{[0-9]+}}
// JSON: "blocks": {{[0-9]+}}
// JSON: "terms": [
// JSON: "matrix units"
// JSON: "shares": [
module {
  tt.func public @products(%from: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %indices: !tt.ptr<i32>, %other: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %width = arith.constant dense<64> : tensor<64x1xi32>
    %step = arith.constant dense<4096> : tensor<64x64xi32>
    %range = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %rows = tt.expand_dims %range {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %columns = tt.expand_dims %range {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %scaled = arith.muli %rows, %width : tensor<64x1xi32>
    %down = tt.broadcast %scaled : tensor<64x1xi32> -> tensor<64x64xi32>
    %across = tt.broadcast %columns : tensor<1x64xi32> -> tensor<64x64xi32>
    %offsets = arith.addi %down, %across : tensor<64x64xi32>
    %base = tt.splat %from : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
    %pointers = tt.addptr %base, %offsets : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
    %sum:2 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %pointers, %acc = %zero) -> (tensor<64x64x!tt.ptr<f16>>, tensor<64x64xf32>) : i32 {
      %a = tt.load %p : tensor<64x64x!tt.ptr<f16>>
      %q0 = tt.splat %other : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
      %start = tt.splat %i : i32 -> tensor<64x64xi32>
      %shift = arith.muli %start, %step : tensor<64x64xi32>
      %q1 = tt.addptr %q0, %shift : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
      %q = tt.addptr %q1, %offsets : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
      %b = tt.load %q : tensor<64x64x!tt.ptr<f16>>
      %d = tt.dot %a, %b, %acc : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
      %next = tt.addptr %p, %step : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
      scf.yield %next, %d : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xf32>
    } {tt.warp_specialize}
    %last:2 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %pointers, %acc = %sum#1) -> (tensor<64x64x!tt.ptr<f16>>, tensor<64x64xf32>) : i32 {
      %at = tt.addptr %indices, %i : !tt.ptr<i32>, i32
      %index = tt.load %at : !tt.ptr<i32>
      %shift = tt.splat %index : i32 -> tensor<64x64xi32>
      %q = tt.addptr %pointers, %shift : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
      %b = tt.load %q : tensor<64x64x!tt.ptr<f16>>
      %a = tt.load %p : tensor<64x64x!tt.ptr<f16>>
      %d = tt.dot %a, %b, %acc : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
      %next = tt.addptr %p, %step : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
      scf.yield %next, %d : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xf32>
    }
    %out = tt.splat %to : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
    %places = tt.addptr %out, %offsets : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
    tt.store %places, %last#1 : tensor<64x64x!tt.ptr<f32>>
    tt.return
  }
}
