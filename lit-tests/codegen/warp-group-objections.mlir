// What ptxas says when it makes products of warp groups wait for one another, or leaves the registers of warps as they
// are (its messages C75..), it never says of code that is right.
//
// REQUIRES: ptxas
// RUN: split-file %s %t
// RUN: llopt compile %t/registers.mlir --target cuda:90 --emit cubin -o %t/a.cubin 2>&1 | FileCheck %s --allow-empty
// RUN: llopt compile %t/memory.mlir --target cuda:90 --emit cubin -o %t/b.cubin 2>&1 | FileCheck %s --allow-empty
// A loop over programs begins its sums anew for each, in registers that the last ones defined.
// RUN: llopt compile %S/../passes/partitions-programs.mlir --target cuda:90 --num-warps 8 --emit cubin -o %t/d.cubin 2>&1 | FileCheck %s --allow-empty
// CHECK-NOT: ptxas C75
//
// Where a program writes the registers of an operand again while the product may still read them, ptxas waits, and the
// product is named.
// RUN: sed 's/%%d {pendings = 0/%%d {pendings = 1/' %t/registers.mlir > %t/refilled.mlir
// RUN: llopt compile %t/refilled.mlir --target cuda:90 --emit cubin -o %t/c.cubin 2>&1 | FileCheck %s --check-prefix=REFILLED
// REFILLED: warning: ptxas C75
// REFILLED-NEXT: ttng.warp_group_dot

//--- registers.mlir
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 128, 16]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#s = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#t = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // The first operand comes to registers in each iteration, and the product is waited for in it.
  tt.func public @registers(%px: !tt.ptr<f16>, %pd: !tt.ptr<f32>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %step = arith.constant dense<64> : tensor<64x64xi32, #b>
    %zero = arith.constant dense<0.0> : tensor<64x128xf32, #mma>
    %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #b}>>
    %e = tt.expand_dims %r {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #b}>> -> tensor<1x64xi32, #b>
    %o = tt.broadcast %e : tensor<1x64xi32, #b> -> tensor<64x64xi32, #b>
    %q = tt.splat %px : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>, #b>
    %x = tt.addptr %q, %o : tensor<64x64x!tt.ptr<f16>, #b>, tensor<64x64xi32, #b>
    %mb = ttg.local_alloc : () -> !ttg.memdesc<64x128xf16, #s, #smem, mutable>
    %l:2 = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero, %p = %x) -> (tensor<64x128xf32, #mma>, tensor<64x64x!tt.ptr<f16>, #b>) : i32 {
      %v = tt.load %p : tensor<64x64x!tt.ptr<f16>, #b>
      %f = ttg.convert_layout %v : tensor<64x64xf16, #b> -> tensor<64x64xf16, #a>
      %g = arith.addf %f, %f : tensor<64x64xf16, #a>
      %d = ttng.warp_group_dot %g, %mb, %sum {inputPrecision = 0 : i32, isAsync = true} : tensor<64x64xf16, #a> * !ttg.memdesc<64x128xf16, #s, #smem, mutable> -> tensor<64x128xf32, #mma>
      %w = ttng.warp_group_dot_wait %d {pendings = 0 : i32} : tensor<64x128xf32, #mma>
      %next = tt.addptr %p, %step : tensor<64x64x!tt.ptr<f16>, #b>, tensor<64x64xi32, #b>
      scf.yield %w, %next : tensor<64x128xf32, #mma>, tensor<64x64x!tt.ptr<f16>, #b>
    }
    %out = tt.splat %pd : !tt.ptr<f32> -> tensor<64x128x!tt.ptr<f32>, #mma>
    tt.store %out, %l#0 : tensor<64x128x!tt.ptr<f32>, #mma>
    tt.return
  }
}

//--- memory.mlir
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 128, 16]}>
#s = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#t = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // Both operands lie in shared memory, and a product is under way while the next one is issued.
  tt.func public @memory(%pd: !tt.ptr<f32>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x128xf32, #mma>
    %ma = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #t, #smem, mutable>
    %mb = ttg.local_alloc : () -> !ttg.memdesc<64x128xf16, #s, #smem, mutable>
    %l = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<64x128xf32, #mma>) : i32 {
      %d = ttng.warp_group_dot %ma, %mb, %sum {inputPrecision = 0 : i32, isAsync = true} : !ttg.memdesc<64x64xf16, #t, #smem, mutable> * !ttg.memdesc<64x128xf16, #s, #smem, mutable> -> tensor<64x128xf32, #mma>
      %w = ttng.warp_group_dot_wait %d {pendings = 1 : i32} : tensor<64x128xf32, #mma>
      scf.yield %w : tensor<64x128xf32, #mma>
    }
    %end = ttng.warp_group_dot_wait %l {pendings = 0 : i32} : tensor<64x128xf32, #mma>
    %out = tt.splat %pd : !tt.ptr<f32> -> tensor<64x128x!tt.ptr<f32>, #mma>
    tt.store %out, %end : tensor<64x128x!tt.ptr<f32>, #mma>
    tt.return
  }
}
