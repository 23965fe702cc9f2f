// A loop whose bounds have a constant distance, as that over the tiles on the diagonal, has a constant number of iterations,
// and one whose bounds have ranges a largest one; there are no more stages.
//
// RUN: llopt %s --tritongpu-pipeline=num-stages=4 | FileCheck %s

#row = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!p = tensor<64x64x!tt.ptr<f16>, #row>
!b = !ttg.memdesc<64x64xf16, #shared, #smem>
!sum = tensor<64x64xf32, #mma>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // Of two iterations, one is loaded before the loop, and two buffers are used.
  // CHECK-LABEL: @diagonal
  // CHECK: ttg.local_alloc : () -> !ttg.memdesc<2x64x64xf16
  // CHECK: ttg.local_alloc : () -> !ttg.memdesc<2x64x64xf16
  // CHECK-COUNT-2: ttg.async_copy_global_to_local
  // CHECK-NOT: ttg.async_copy_global_to_local
  // CHECK: scf.for
  // CHECK-COUNT-2: ttg.async_copy_global_to_local
  tt.func @diagonal(%p: !p {tt.divisibility = dense<[16, 16]> : tensor<2xi32>, tt.contiguity = dense<[1, 64]> : tensor<2xi32>}, %q: !p {tt.divisibility = dense<[16, 16]> : tensor<2xi32>, tt.contiguity = dense<[1, 64]> : tensor<2xi32>}, %n: i32) -> !sum {
    %zero = arith.constant dense<0.0> : !sum
    %step = arith.constant dense<64> : tensor<64x64xi32, #row>
    %tile = arith.constant 128 : i32
    %half = arith.constant 64 : i32
    %c1 = arith.constant 1 : i32
    %lower = arith.muli %n, %tile : i32
    %after = arith.addi %n, %c1 : i32
    %upper = arith.muli %after, %tile : i32
    %r:3 = scf.for %i = %lower to %upper step %half iter_args(%x = %p, %y = %q, %sum = %zero) -> (!p, !p, !sum) : i32 {
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

  // A loop over the blocks of a row that come before the program's own, of four in all, has at most three iterations: two are
  // loaded before it, not three.
  // CHECK-LABEL: @before
  // CHECK-COUNT-4: ttg.async_copy_global_to_local
  // CHECK-NOT: ttg.async_copy_global_to_local
  // CHECK: scf.for
  // CHECK-COUNT-2: ttg.async_copy_global_to_local
  tt.func @before(%p: !p {tt.divisibility = dense<[16, 16]> : tensor<2xi32>, tt.contiguity = dense<[1, 64]> : tensor<2xi32>}, %q: !p {tt.divisibility = dense<[16, 16]> : tensor<2xi32>, tt.contiguity = dense<[1, 64]> : tensor<2xi32>}) -> !sum {
    %zero = arith.constant dense<0.0> : !sum
    %step = arith.constant dense<64> : tensor<64x64xi32, #row>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    %program = tt.get_program_id x : i32
    %own = arith.remsi %program, %c4 : i32
    %r:3 = scf.for %i = %c0 to %own step %c1 iter_args(%x = %p, %y = %q, %sum = %zero) -> (!p, !p, !sum) : i32 {
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
