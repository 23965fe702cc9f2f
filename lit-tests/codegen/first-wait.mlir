// What need not wait for the loads of an iteration is computed before the wait for them.
//
// RUN: llopt compile %s --target hip:gfx942 --emit llvm | FileCheck %s

#mma = #ttg.amd_mfma<{version = 3, warpsPerCTA = [1, 1], instrShape = [16, 16, 16], isTransposed = true}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>
#l = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [16, 4], warpsPerCTA = [1, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 4, perPhase = 1, maxPhase = 4, order = [1, 0]}>
#smem = #ttg.shared_memory

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {

// The place in the ring of the tile that is loaded changes in each iteration. Its address is computed behind the product,
// in front of a line over which nothing moves, and the store that waits for the load comes behind it.
// CHECK-LABEL: define{{.*}} @ring
// CHECK: @llvm.amdgcn.raw.ptr.buffer.load
// CHECK: @llvm.amdgcn.mfma
// CHECK: getelementptr i8, ptr addrspace(3)
// CHECK: call void @llvm.amdgcn.sched.barrier(i32 0)
// CHECK: call void @llvm.amdgcn.s.barrier()
// CHECK-NOT: getelementptr
// CHECK: store <2 x i32>
// CHECK: br i1
tt.func public @ring(%p: !tt.ptr<f16>, %out: !tt.ptr<f32>, %n: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %tile = arith.constant 256 : i32
  %sums = arith.constant dense<0.0> : tensor<16x16xf32, #mma>
  %ones = arith.constant dense<1.0> : tensor<16x16xf16, #a>
  %row = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32, #ttg.slice<{dim = 1, parent = #l}>>
  %rows = tt.expand_dims %row {axis = 1 : i32} : tensor<16xi32, #ttg.slice<{dim = 1, parent = #l}>> -> tensor<16x1xi32, #l>
  %all = tt.broadcast %rows : tensor<16x1xi32, #l> -> tensor<16x16xi32, #l>
  %ring = ttg.local_alloc : () -> !ttg.memdesc<2x16x16xf16, #shared, #smem, mutable>
  %first = ttg.memdesc_index %ring[%zero] : !ttg.memdesc<2x16x16xf16, #shared, #smem, mutable> -> !ttg.memdesc<16x16xf16, #shared, #smem, mutable>
  %end:3 = scf.for %i = %zero to %n step %one iter_args(%sum = %sums, %at = %zero, %buffer = %first) -> (tensor<16x16xf32, #mma>, i32, !ttg.memdesc<16x16xf16, #shared, #smem, mutable>) : i32 {
    %offset = arith.muli %i, %tile : i32
    %offsets = tt.splat %offset : i32 -> tensor<16x16xi32, #l>
    %places = arith.addi %all, %offsets : tensor<16x16xi32, #l>
    %next = amdg.buffer_load %p[%places] : tensor<16x16xf16, #l>
    rocdl.s.setprio 1
    %read = ttg.local_load %buffer : !ttg.memdesc<16x16xf16, #shared, #smem, mutable> -> tensor<16x16xf16, #b>
    %product = tt.dot %ones, %read, %sum : tensor<16x16xf16, #a> * tensor<16x16xf16, #b> -> tensor<16x16xf32, #mma>
    %after = arith.addi %at, %one : i32
    %index = arith.andi %after, %one : i32
    %slot = ttg.memdesc_index %ring[%index] : !ttg.memdesc<2x16x16xf16, #shared, #smem, mutable> -> !ttg.memdesc<16x16xf16, #shared, #smem, mutable>
    ttg.local_store %next, %slot : tensor<16x16xf16, #l> -> !ttg.memdesc<16x16xf16, #shared, #smem, mutable>
    scf.yield %product, %index, %slot : tensor<16x16xf32, #mma>, i32, !ttg.memdesc<16x16xf16, #shared, #smem, mutable>
  }
  %to = tt.splat %out : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>, #mma>
  tt.store %to, %end#0 : tensor<16x16x!tt.ptr<f32>, #mma>
  tt.return
}

}
