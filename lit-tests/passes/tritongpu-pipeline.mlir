// Loops with products: loads of later iterations run beside the products of earlier ones.
//
// RUN: llopt %s --split-input-file --tritongpu-pipeline=num-stages=3 | FileCheck %s
// RUN: llopt %s --split-input-file --tritongpu-pipeline=num-stages=1 | FileCheck %s --check-prefix=ONE

// ONE-NOT: ttg.memdesc_index

#row = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!p = tensor<64x64x!tt.ptr<f16>, #row>
!b = !ttg.memdesc<64x64xf16, #shared, #smem>
!sum = tensor<64x64xf32, #mma>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // There is one stage more than asked for, which hides more, and leaves enough blocks. Copies for three iterations stand
  // before the loop, those for the third from this one behind the product; each under the condition that there is such an
  // iteration. The product runs on into the next iteration, so four buffers are in each ring.
  // CHECK-LABEL: @groups
  // CHECK: %[[A:.*]] = ttg.local_alloc : () -> !ttg.memdesc<4x64x64xf16
  // CHECK: %[[B:.*]] = ttg.local_alloc : () -> !ttg.memdesc<4x64x64xf16
  // CHECK-COUNT-6: ttg.async_copy_global_to_local {{.*}} mask
  // CHECK: scf.for
  // CHECK: ttg.async_wait %{{.*}} {num = 2 : i32}
  // CHECK: %[[RUNS:.*]] = ttng.warp_group_dot {{.*}}isAsync = true
  // CHECK: %[[DONE:.*]]:3 = ttng.warp_group_dot_wait %[[RUNS]], %{{.*}}, %{{.*}} {pendings = 1 : i32}
  // CHECK-COUNT-2: ttg.async_copy_global_to_local {{.*}} mask
  // CHECK: ttg.async_commit_group
  // CHECK: scf.yield {{.*}}%[[DONE]]#0
  // CHECK: ttng.warp_group_dot_wait %{{.*}} {pendings = 0 : i32}
  // CHECK: ttg.async_wait {num = 0 : i32}
  // CHECK: ttg.local_dealloc %[[B]]
  // CHECK: ttg.local_dealloc %[[A]]
  tt.func @groups(%p: !p {tt.divisibility = dense<[16, 16]> : tensor<2xi32>, tt.contiguity = dense<[1, 64]> : tensor<2xi32>}, %q: !p {tt.divisibility = dense<[16, 16]> : tensor<2xi32>, tt.contiguity = dense<[1, 64]> : tensor<2xi32>}, %n: i32) -> !sum {
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
}

// -----

#row = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = true}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>
!p = tensor<64x64x!tt.ptr<f16>, #row>
!sum = tensor<64x64xf32, #mma>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
  // Without copies beside the program registers are loaded before the product and stored behind it: two buffers are
  // enough for three stages.
  // CHECK-LABEL: @registers
  // CHECK-COUNT-2: ttg.local_alloc : () -> !ttg.memdesc<2x64x64xf16
  // CHECK: scf.for
  // CHECK: tt.load
  // CHECK: tt.load
  // CHECK: ttg.local_load
  // CHECK: ttg.local_load
  // CHECK: tt.dot
  // CHECK: ttg.local_store
  // CHECK: ttg.local_store
  // CHECK: scf.yield
  // CHECK-NOT: ttg.async_wait
  tt.func @registers(%p: !p, %q: !p, %n: i32) -> !sum {
    %zero = arith.constant dense<0.0> : !sum
    %step = arith.constant dense<64> : tensor<64x64xi32, #row>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %p, %y = %q, %sum = %zero) -> (!p, !p, !sum) : i32 {
      %a = tt.load %x : !p
      %b = tt.load %y : !p
      %s = ttg.convert_layout %a : tensor<64x64xf16, #row> -> tensor<64x64xf16, #a>
      %t = ttg.convert_layout %b : tensor<64x64xf16, #row> -> tensor<64x64xf16, #b>
      %next = tt.dot %s, %t, %sum : tensor<64x64xf16, #a> * tensor<64x64xf16, #b> -> !sum
      %x1 = tt.addptr %x, %step : !p, tensor<64x64xi32, #row>
      %y1 = tt.addptr %y, %step : !p, tensor<64x64xi32, #row>
      scf.yield %x1, %y1, %next : !p, !p, !sum
    }
    tt.return %r#2 : !sum
  }
}

// -----

#row = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#column = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 4], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
!p = tensor<16x64x!tt.ptr<f16>, #row>
!q = tensor<64x64x!tt.ptr<f16>, #column>
!sum = tensor<16x64xf32, #mma>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // Few rows: as many stages as hide the latency. With as many buffers, copies go to the one that the iteration before
  // has read: they come between the reads of this one and its product, which waits for what is read.
  // CHECK-LABEL: @few_rows
  // CHECK: ttg.local_alloc : () -> !ttg.memdesc<[[N:[4-8]]]x16x64xf16
  // CHECK: ttg.local_alloc : () -> !ttg.memdesc<[[N]]x64x64xf16
  // CHECK: scf.for
  // CHECK: ttg.async_wait
  // CHECK-NOT: ttg.async_copy_global_to_local
  // CHECK-COUNT-2: ttg.local_load
  // CHECK-COUNT-2: ttg.async_copy_global_to_local
  // CHECK: ttg.async_commit_group
  // CHECK: tt.dot
  // CHECK-NOT: ttg.async_copy_global_to_local
  // CHECK: scf.yield
  tt.func @few_rows(%p: !p {tt.divisibility = dense<[16, 16]> : tensor<2xi32>, tt.contiguity = dense<[1, 64]> : tensor<2xi32>}, %q: !q {tt.divisibility = dense<[16, 16]> : tensor<2xi32>, tt.contiguity = dense<[64, 1]> : tensor<2xi32>}, %n: i32) -> !sum {
    %zero = arith.constant dense<0.0> : !sum
    %step = arith.constant dense<64> : tensor<16x64xi32, #row>
    %stride = arith.constant dense<64> : tensor<64x64xi32, #column>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %p, %y = %q, %sum = %zero) -> (!p, !q, !sum) : i32 {
      %a = tt.load %x : !p
      %b = tt.load %y : !q
      %s = ttg.convert_layout %a : tensor<16x64xf16, #row> -> tensor<16x64xf16, #a>
      %t = ttg.convert_layout %b : tensor<64x64xf16, #column> -> tensor<64x64xf16, #b>
      %next = tt.dot %s, %t, %sum : tensor<16x64xf16, #a> * tensor<64x64xf16, #b> -> !sum
      %x1 = tt.addptr %x, %step : !p, tensor<16x64xi32, #row>
      %y1 = tt.addptr %y, %stride : !q, tensor<64x64xi32, #column>
      scf.yield %x1, %y1, %next : !p, !q, !sum
    }
    tt.return %r#2 : !sum
  }
}

// -----

#row = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 128, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!p = tensor<128x128x!tt.ptr<f16>, #row>
!b = !ttg.memdesc<128x128xf16, #shared, #smem>
!sum = tensor<128x128xf32, #mma>
!scaled = tensor<128x128xf32, #row>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // A tensor that a product takes from a buffer and that threads also need themselves is read from its slot by both, after
  // the wait.
  // CHECK-LABEL: @also_in_registers
  // CHECK: scf.for
  // CHECK: ttg.async_wait
  // CHECK-NOT: ttg.local_alloc
  // CHECK: ttng.warp_group_dot
  // CHECK: %[[READ:.*]] = ttg.local_load
  // CHECK: arith.extf %[[READ]]
  // CHECK: scf.yield
  tt.func @also_in_registers(%p: !p {tt.divisibility = dense<[16, 16]> : tensor<2xi32>, tt.contiguity = dense<[1, 128]> : tensor<2xi32>}, %q: !p {tt.divisibility = dense<[16, 16]> : tensor<2xi32>, tt.contiguity = dense<[1, 128]> : tensor<2xi32>}, %n: i32) -> (!sum, !scaled) {
    %zero = arith.constant dense<0.0> : !sum
    %none = arith.constant dense<0.0> : !scaled
    %step = arith.constant dense<128> : tensor<128x128xi32, #row>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r:4 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %p, %y = %q, %sum = %zero, %total = %none) -> (!p, !p, !sum, !scaled) : i32 {
      %a = tt.load %x : !p
      %b = tt.load %y : !p
      %s = ttg.local_alloc %a : (tensor<128x128xf16, #row>) -> !b
      %t = ttg.local_alloc %b : (tensor<128x128xf16, #row>) -> !b
      %d = ttng.warp_group_dot %s, %t, %zero {inputPrecision = 0 : i32} : !b * !b -> !sum
      %next = arith.mulf %sum, %d : !sum
      %wide = arith.extf %a : tensor<128x128xf16, #row> to !scaled
      %more = arith.addf %total, %wide : !scaled
      %x1 = tt.addptr %x, %step : !p, tensor<128x128xi32, #row>
      %y1 = tt.addptr %y, %step : !p, tensor<128x128xi32, #row>
      scf.yield %x1, %y1, %next, %more : !p, !p, !sum, !scaled
    }
    tt.return %r#2, %r#3 : !sum, !scaled
  }
}
