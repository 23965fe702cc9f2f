// Loads of a loop that are read in several ways.
//
// RUN: llopt %s --tritongpu-pipeline=num-stages=2 | FileCheck %s

#row = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
#wide = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#wa = #ttg.dot_op<{opIdx = 0, parent = #wide, kWidth = 2}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!p = tensor<64x64x!tt.ptr<f16>, #row>
!sum = tensor<64x64xf32, #mma>
!wsum = tensor<64x64xf32, #wide>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // Two products take the tensor in different layouts: both read the ring, and nothing is converted.
  // CHECK-LABEL: @two_products
  // CHECK: scf.for
  // CHECK: ttg.async_wait
  // CHECK: %[[A:.*]] = ttg.local_load {{.*}} -> tensor<64x64xf16, #ttg.dot_op<{opIdx = 0
  // CHECK-NOT: ttg.convert_layout
  // CHECK: tt.dot %[[A]]
  // CHECK: %[[B:.*]] = ttg.local_load {{.*}} -> tensor<64x64xf16, #ttg.dot_op<{opIdx = 1
  // CHECK: tt.dot %{{.*}}, %[[B]]
  // CHECK-NOT: ttg.convert_layout
  // CHECK: scf.yield
  tt.func @two_products(%p: !p {tt.divisibility = dense<[16, 16]> : tensor<2xi32>, tt.contiguity = dense<[1, 64]> : tensor<2xi32>}, %x: tensor<64x64xf16, #a>, %y: tensor<64x64xf16, #b>, %n: i32) -> !sum {
    %zero = arith.constant dense<0.0> : !sum
    %step = arith.constant dense<64> : tensor<64x64xi32, #row>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%q = %p, %sum = %zero) -> (!p, !sum) : i32 {
      %k = tt.load %q : !p
      %ka = ttg.convert_layout %k : tensor<64x64xf16, #row> -> tensor<64x64xf16, #a>
      %kb = ttg.convert_layout %k : tensor<64x64xf16, #row> -> tensor<64x64xf16, #b>
      %d = tt.dot %ka, %y, %sum : tensor<64x64xf16, #a> * tensor<64x64xf16, #b> -> !sum
      %e = tt.dot %x, %kb, %d : tensor<64x64xf16, #a> * tensor<64x64xf16, #b> -> !sum
      %q1 = tt.addptr %q, %step : !p, tensor<64x64xi32, #row>
      scf.yield %q1, %e : !p, !sum
    }
    tt.return %r#1 : !sum
  }

  // A product reads the tensor in shared memory, and threads compute with it: the product reads the ring itself, and
  // nothing is stored in the loop but what threads have computed.
  // CHECK-LABEL: @product_and_threads
  // CHECK: scf.for
  // CHECK: ttg.async_wait
  // CHECK: %[[RING:.*]] = ttg.memdesc_index {{.*}} -> !ttg.memdesc<64x64xf16, #{{shared[0-9]*}}, #smem>
  // CHECK: ttng.warp_group_dot %{{.*}}, %[[RING]]
  // CHECK: %[[V:.*]] = ttg.local_load {{.*}} -> tensor<64x64xf16, #blocked>
  // CHECK: %[[HALF:.*]] = arith.mulf %[[V]]
  // CHECK: ttg.local_alloc %[[HALF]]
  // CHECK-NOT: ttg.local_alloc
  // CHECK: scf.yield
  tt.func @product_and_threads(%p: !p {tt.divisibility = dense<[16, 16]> : tensor<2xi32>, tt.contiguity = dense<[1, 64]> : tensor<2xi32>}, %x: tensor<64x64xf16, #wa>, %n: i32) -> !wsum {
    %zero = arith.constant dense<0.0> : !wsum
    %half = arith.constant dense<0.5> : tensor<64x64xf16, #row>
    %step = arith.constant dense<64> : tensor<64x64xi32, #row>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%q = %p, %sum = %zero) -> (!p, !wsum) : i32 {
      %v = tt.load %q : !p
      %m = ttg.local_alloc %v : (tensor<64x64xf16, #row>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
      %d = ttng.warp_group_dot %x, %m, %sum : tensor<64x64xf16, #wa> * !ttg.memdesc<64x64xf16, #shared, #smem> -> !wsum
      %h = arith.mulf %v, %half : tensor<64x64xf16, #row>
      %mh = ttg.local_alloc %h : (tensor<64x64xf16, #row>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
      %e = ttng.warp_group_dot %x, %mh, %d : tensor<64x64xf16, #wa> * !ttg.memdesc<64x64xf16, #shared, #smem> -> !wsum
      %q1 = tt.addptr %q, %step : !p, tensor<64x64xi32, #row>
      scf.yield %q1, %e : !p, !wsum
    }
    tt.return %r#1 : !wsum
  }
}
