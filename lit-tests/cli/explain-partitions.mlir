// Loops that ask for partitions: a warp of its own issues the copies, or the reason why none does.
//
// RUN: llopt explain %s --target cuda:90 | FileCheck %s
// RUN: llopt explain %s --target cuda:90 --json | FileCheck %s --check-prefix=JSON
// RUN: llopt compile %s --target cuda:90 --emit ttgir | FileCheck %s --check-prefix=IR
// RUN: llopt compile %s --target cuda:90 | FileCheck %s --check-prefix=PTX

// The first loop loads by pointers, which takes more threads than a warp has. The second one copies whole blocks, for
// all iterations of the loop around it. Its ring is filled once, and memory limits it: it has the stages that hide the
// latency while requests wait in queues.
// CHECK: Loop ({{.*}}:68:14) is pipelined in 4 stages (3 are asked for, and more cost nothing)
// CHECK: partitions none, though the program asks for them: a factor is loaded by pointers, by many threads
// CHECK: Loop ({{.*}}:78:14) is pipelined in 12 stages (3 are asked for, and more cost nothing): 2 copies
// CHECK: 5 stages hide the latency of its loads, 12 while all multiprocessors load
// CHECK: partitions 1 warp issues the copies of 2 loops; registers are the same for all
// CHECK: Loop ({{.*}}:76:5) is not pipelined: a loop in it is divided among partitions.
// JSON: "producer": {
// JSON-NEXT: "warps": 1,
// JSON-NEXT: "loops": 2,
// JSON-NEXT: "registers": null

// The number of the slot goes round both loops, on both sides.
// IR: ttg.warp_specialize
// IR: default
// IR: scf.for
// IR: scf.for
// IR: ttng.wait_barrier
// IR: ttng.warp_group_dot {{.*}}isAsync = true
// IR: ttng.warp_group_dot_wait {{.*}}pendings = 1
// IR: ttng.arrive_barrier {{.*}}, 4, {{.*}}barrier.by_warp
// IR: scf.yield
// IR: ttng.warp_group_dot_wait {{.*}}pendings = 0
// IR: ttng.arrive_barrier {{.*}}, 4, {{.*}}barrier.by_warp
// IR: ttng.async_tma_copy_local_to_global
// IR: partition0({{.*}}) num_warps(1)
// IR: scf.for
// IR: scf.for
// IR: ttng.wait_barrier
// IR: ttng.barrier_expect {{.*}}, 16384
// IR-COUNT-2: ttng.async_tma_copy_global_to_local
// IR: ttg.warp_return

// From the wait to the arrival no two warps meet.
// PTX: mbarrier.init.shared::cta.b64 {{.*}}, 4;
// PTX: mbarrier.try_wait.parity
// PTX: wgmma.mma_async
// PTX-NOT: {{bar(rier)?}}.sync
// PTX: wgmma.wait_group.sync.aligned 1
// PTX-NOT: {{bar(rier)?}}.sync
// PTX: mbarrier.arrive.shared::cta.b64 _, {{.*}}, 1;
module {
  tt.func public @products(%from: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %x: !tt.tensordesc<tensor<64x64xf16>>, %y: !tt.tensordesc<tensor<64x64xf16>>, %o: !tt.tensordesc<tensor<64x64xf32>>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
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
      %k = arith.muli %i, %c64 : i32
      %b = tt.descriptor_load %y[%k, %c0] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
      %d = tt.dot %a, %b, %acc : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
      %next = tt.addptr %p, %step : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
      scf.yield %next, %d : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xf32>
    } {tt.warp_specialize}
    scf.for %tile = %c0 to %n step %c1 : i32 {
      %row = arith.muli %tile, %c64 : i32
      %all = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %sum#1) -> (tensor<64x64xf32>) : i32 {
        %k = arith.muli %i, %c64 : i32
        %a = tt.descriptor_load %x[%row, %k] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
        %b = tt.descriptor_load %y[%k, %c0] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
        %d = tt.dot %a, %b, %acc : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
        scf.yield %d : tensor<64x64xf32>
      }
      tt.descriptor_store %o[%row, %c0], %all : !tt.tensordesc<tensor<64x64xf32>>, tensor<64x64xf32>
    } {tt.warp_specialize}
    tt.return
  }
}
