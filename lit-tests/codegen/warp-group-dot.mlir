// Products of a group of four warps: one piece of assembly from fence to commit, descriptors from layouts, waits that
// hand registers on.
//
// RUN: split-file %s %t
// RUN: llopt compile %t/products.mlir --target cuda:90 | FileCheck %t/products.mlir
// RUN: not llopt compile %t/products.mlir --target cuda:80 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not llopt compile %t/products.mlir --target hip:gfx1200 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not llopt compile %t/rows.mlir --target cuda:90 2>&1 | FileCheck %t/rows.mlir
// RUN: not llopt compile %t/bytes.mlir --target cuda:90 2>&1 | FileCheck %t/bytes.mlir

// NONE: error: 'ttng.warp_group_dot' is not supported: it needs wgmma

//--- products.mlir
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#rows = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#columns = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  // Sums begin with nothing: the first product does not add, and no register is set to zero. B lies by rows, and is
  // transposed on its way. The wait is part of the same piece.
  // CHECK-LABEL: .entry products
  // CHECK-NOT: mov.b32 {{.*}}, 0f00000000
  // CHECK: wgmma.fence.sync.aligned
  // CHECK-NEXT: wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {{.*}}, never, 1, 1, 0, 1;
  // CHECK-NEXT: wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {{.*}}, always, 1, 1, 0, 1;
  // CHECK-NEXT: wgmma.commit_group.sync.aligned
  // CHECK-NEXT: wgmma.wait_group.sync.aligned 0

  // Two products beside the program: k is contiguous in both buffers of the second, and one wait is for the first.
  // CHECK: m64n64k16.f32.f16.f16 {{.*}}, always, 1, 1, 0, 0;
  // CHECK: m64n64k16.f32.f16.f16 {{.*}}, always, 1, 1, 0, 0;
  // CHECK-NEXT: wgmma.commit_group.sync.aligned
  // CHECK-NOT: wgmma.wait_group.sync.aligned 0
  // CHECK: wgmma.mma_async
  // CHECK: wgmma.wait_group.sync.aligned 1
  // CHECK: wgmma.wait_group.sync.aligned 0
  tt.func public @products(%p: !tt.ptr<f32>) {
    %a = ttg.local_alloc : () -> !ttg.memdesc<64x32xf16, #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>, #smem, mutable>
    %b = ttg.local_alloc : () -> !ttg.memdesc<32x64xf16, #rows, #smem, mutable>
    %t = ttg.local_alloc : () -> !ttg.memdesc<32x64xf16, #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = true, elementBitWidth = 16}>, #smem, mutable>
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %0 = ttng.warp_group_dot %a, %b, %zero : !ttg.memdesc<64x32xf16, #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>, #smem, mutable> * !ttg.memdesc<32x64xf16, #rows, #smem, mutable> -> tensor<64x64xf32, #mma>
    %1 = ttng.warp_group_dot %a, %t, %0 {isAsync = true} : !ttg.memdesc<64x32xf16, #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>, #smem, mutable> * !ttg.memdesc<32x64xf16, #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = true, elementBitWidth = 16}>, #smem, mutable> -> tensor<64x64xf32, #mma>
    %2 = ttng.warp_group_dot %a, %b, %zero {isAsync = true} : !ttg.memdesc<64x32xf16, #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>, #smem, mutable> * !ttg.memdesc<32x64xf16, #rows, #smem, mutable> -> tensor<64x64xf32, #mma>
    %3 = ttng.warp_group_dot_wait %1 {pendings = 1 : i32} : tensor<64x64xf32, #mma>
    %q = tt.splat %p : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #mma>
    tt.store %q, %3 : tensor<64x64x!tt.ptr<f32>, #mma>
    %4 = ttng.warp_group_dot_wait %2 {pendings = 0 : i32} : tensor<64x64xf32, #mma>
    tt.store %q, %4 : tensor<64x64x!tt.ptr<f32>, #mma>
    tt.return
  }
}

//--- rows.mlir
// Rows of 64 bytes without a swizzle are no core matrices.
// CHECK: error: 'ttng.warp_group_dot' is not supported: on cuda:90, its first operand cannot be read: its buffer is not made of core matrices
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#none = #ttg.nvmma_shared<{swizzlingByteWidth = 0, transposed = false, elementBitWidth = 16}>
#rows = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @rows(%p: !tt.ptr<f32>) {
    %a = ttg.local_alloc : () -> !ttg.memdesc<64x32xf16, #none, #smem, mutable>
    %b = ttg.local_alloc : () -> !ttg.memdesc<32x64xf16, #rows, #smem, mutable>
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %0 = ttng.warp_group_dot %a, %b, %zero : !ttg.memdesc<64x32xf16, #none, #smem, mutable> * !ttg.memdesc<32x64xf16, #rows, #smem, mutable> -> tensor<64x64xf32, #mma>
    %q = tt.splat %p : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #mma>
    tt.store %q, %0 : tensor<64x64x!tt.ptr<f32>, #mma>
    tt.return
  }
}

//--- bytes.mlir
// Elements of eight bits are not transposed on their way.
// CHECK: error: 'ttng.warp_group_dot' is not supported: on cuda:90, its second operand cannot be read: {{.*}} with k contiguous
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 32]}>
#rows = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 8}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @bytes(%p: !tt.ptr<i32>) {
    %a = ttg.local_alloc : () -> !ttg.memdesc<64x64xi8, #rows, #smem, mutable>
    %b = ttg.local_alloc : () -> !ttg.memdesc<64x64xi8, #rows, #smem, mutable>
    %zero = arith.constant dense<0> : tensor<64x64xi32, #mma>
    %0 = ttng.warp_group_dot %a, %b, %zero : !ttg.memdesc<64x64xi8, #rows, #smem, mutable> * !ttg.memdesc<64x64xi8, #rows, #smem, mutable> -> tensor<64x64xi32, #mma>
    %q = tt.splat %p : !tt.ptr<i32> -> tensor<64x64x!tt.ptr<i32>, #mma>
    tt.store %q, %0 : tensor<64x64x!tt.ptr<i32>, #mma>
    tt.return
  }
}
