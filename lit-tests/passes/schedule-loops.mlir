// Latencies, the stages that follow from them, and the loops that these stages make.
//
// RUN: llopt %s --split-input-file --tritongpu-assign-latencies=num-stages=3 | FileCheck %s --check-prefix=LATENCY
// RUN: llopt %s --split-input-file --tritongpu-assign-latencies=num-stages=3 --tritongpu-schedule-loops | FileCheck %s --check-prefix=STAGE
// RUN: llopt %s --split-input-file --tritongpu-assign-latencies=num-stages=3 --tritongpu-schedule-loops --tritongpu-pipeline=num-stages=9 | FileCheck %s --check-prefix=LOOP

// No attribute of a schedule outlives it.
// LOOP-NOT: loop.stage
// LOOP-NOT: tt.latency

#row = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!p = tensor<64x64x!tt.ptr<f16>, #row>
!b = !ttg.memdesc<64x64xf16, #shared, #smem>
!sum = tensor<64x64xf32, #mma>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // Both factors are two stages ahead of the product, whose own stage is the last. The next pointers may come a stage later
  // than the loads that use them. There are as many stages as the attributes say, not as many as the option of the pass.
  // LATENCY-LABEL: @products
  // LATENCY-COUNT-2: tt.load %{{.*}} {tt.latency = 2 : i32}
  // STAGE-LABEL: @products
  // STAGE-COUNT-2: tt.load %{{.*}} {loop.cluster = 2 : i32, loop.stage = 0 : i32}
  // STAGE-COUNT-2: ttg.local_alloc %{{.*}} {loop.cluster = 0 : i32, loop.stage = 2 : i32}
  // STAGE: ttng.warp_group_dot {{.*}}loop.cluster = 0 : i32, loop.stage = 2 : i32
  // STAGE-COUNT-2: tt.addptr %{{.*}} {loop.cluster = 1 : i32, loop.stage = 1 : i32}
  // STAGE: tt.scheduled_max_stage = 2 : i32
  // LOOP-LABEL: @products
  // LOOP: ttg.local_alloc : () -> !ttg.memdesc<4x64x64xf16
  // LOOP: scf.for
  // LOOP: ttg.async_wait %{{.*}} {num = 2 : i32}
  // LOOP: ttng.warp_group_dot {{.*}}isAsync = true
  // LOOP-COUNT-2: ttg.async_copy_global_to_local {{.*}} mask
  tt.func @products(%p: !p {tt.divisibility = dense<[16, 16]> : tensor<2xi32>, tt.contiguity = dense<[1, 64]> : tensor<2xi32>}, %q: !p {tt.divisibility = dense<[16, 16]> : tensor<2xi32>, tt.contiguity = dense<[1, 64]> : tensor<2xi32>}, %n: i32) -> !sum {
    %zero = arith.constant dense<0.0> : !sum
    %step = arith.constant dense<64> : tensor<64x64xi32, #row>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %p, %y = %q, %sum = %zero) -> (!p, !p, !sum) : i32 {
      %a = tt.load %x : !p
      %b = tt.load %y : !p
      %s = ttg.local_alloc %a : (tensor<64x64xf16, #row>) -> !b
      %t = ttg.local_alloc %b : (tensor<64x64xf16, #row>) -> !b
      %next = ttng.warp_group_dot %s, %t, %sum {inputPrecision = 0 : i32} : !b * !b -> !sum
      %x1 = tt.addptr %x, %step : !p, tensor<64x64xi32, #row>
      %y1 = tt.addptr %y, %step : !p, tensor<64x64xi32, #row>
      scf.yield %x1, %y1, %next : !p, !p, !sum
    }
    tt.return %r#2 : !sum
  }

  // A chain of two loads shares the stages: each is one ahead of what uses it.
  // LATENCY-LABEL: @pages
  // LATENCY: tt.load %{{.*}} {tt.latency = 1 : i32} : !tt.ptr<i32>
  // LATENCY: tt.load %{{.*}} {tt.latency = 1 : i32}
  // STAGE-LABEL: @pages
  // STAGE: tt.load %{{.*}} {loop.cluster = 2 : i32, loop.stage = 0 : i32} : !tt.ptr<i32>
  // STAGE: tt.load %{{.*}} {loop.cluster = 1 : i32, loop.stage = 1 : i32}
  // STAGE: ttng.warp_group_dot {{.*}}loop.cluster = 0 : i32, loop.stage = 2 : i32
  tt.func @pages(%p: !p {tt.divisibility = dense<[16, 16]> : tensor<2xi32>, tt.contiguity = dense<[1, 64]> : tensor<2xi32>}, %s: !b, %table: !tt.ptr<i32>, %n: i32) -> !sum {
    %zero = arith.constant dense<0.0> : !sum
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c4096 = arith.constant 4096 : i32
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (!sum) : i32 {
      %at = tt.addptr %table, %i : !tt.ptr<i32>, i32
      %page = tt.load %at : !tt.ptr<i32>
      %first = arith.muli %page, %c4096 : i32
      %firsts = tt.splat %first : i32 -> tensor<64x64xi32, #row>
      %q = tt.addptr %p, %firsts : !p, tensor<64x64xi32, #row>
      %b = tt.load %q : !p
      %t = ttg.local_alloc %b : (tensor<64x64xf16, #row>) -> !b
      %next = ttng.warp_group_dot %s, %t, %sum {inputPrecision = 0 : i32} : !b * !b -> !sum
      scf.yield %next : !sum
    }
    tt.return %r : !sum
  }
}

// -----

#row = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
!p = tensor<512x!tt.ptr<f32>, #row>
!x = tensor<512xf32, #row>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // The program's own latencies: data are in registers for two iterations, or for one.
  // LATENCY-LABEL: @own
  // LATENCY: tt.load %{{.*}} {tt.latency = 2 : i32}
  // LATENCY: tt.load %{{.*}} {tt.latency = 1 : i32}
  // STAGE-LABEL: @own
  // STAGE: tt.load %{{.*}} {loop.cluster = 2 : i32, loop.stage = 0 : i32}
  // STAGE: tt.load %{{.*}} {loop.cluster = 1 : i32, loop.stage = 1 : i32}
  // STAGE: arith.mulf {{.*}} {loop.cluster = 0 : i32, loop.stage = 2 : i32}
  // LOOP-LABEL: @own
  // LOOP-COUNT-3: tt.load
  // LOOP: scf.for
  // LOOP: arith.mulf
  // LOOP-COUNT-2: tt.load
  tt.func @own(%p: !p, %q: !p, %n: i32) -> !x {
    %zero = arith.constant dense<0.0> : !x
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c512 = arith.constant 512 : i32
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (!x) : i32 {
      %first = arith.muli %i, %c512 : i32
      %at = tt.splat %first : i32 -> tensor<512xi32, #row>
      %p1 = tt.addptr %p, %at : !p, tensor<512xi32, #row>
      %x = tt.load %p1 {tt.latency = 2 : i32} : !p
      %q1 = tt.addptr %q, %at : !p, tensor<512xi32, #row>
      %y = tt.load %q1 {tt.latency = 1 : i32} : !p
      %z = arith.mulf %x, %y : !x
      %next = arith.addf %sum, %z : !x
      scf.yield %next : !x
    }
    tt.return %r : !x
  }

  // Loops without products that ask for stages get them, too; the one that does not ask gets none.
  // LATENCY-LABEL: @asks
  // LATENCY: tt.load %{{.*}} {tt.latency = 3 : i32}
  // LATENCY-NOT: tt.latency
  tt.func @asks(%p: !p, %n: i32) -> (!x, !x) {
    %zero = arith.constant dense<0.0> : !x
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %step = arith.constant dense<512> : tensor<512xi32, #row>
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%at = %p, %sum = %zero) -> (!p, !x) : i32 {
      %x = tt.load %at : !p
      %next = arith.addf %sum, %x : !x
      %at1 = tt.addptr %at, %step : !p, tensor<512xi32, #row>
      scf.yield %at1, %next : !p, !x
    } {tt.num_stages = 4 : i32}
    %s:2 = scf.for %i = %c0 to %n step %c1 iter_args(%at = %p, %sum = %zero) -> (!p, !x) : i32 {
      %x = tt.load %at : !p
      %next = arith.addf %sum, %x : !x
      %at1 = tt.addptr %at, %step : !p, tensor<512xi32, #row>
      scf.yield %at1, %next : !p, !x
    }
    tt.return %r#1, %s#1 : !x, !x
  }
}
