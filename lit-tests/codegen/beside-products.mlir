// RUN: llopt compile %s --target hip:gfx942 --emit llvm | FileCheck %s

// LLVM's scheduler is asked for three other instructions after each two of eight products that read their factors from shared
// memory. Four groups of each kind are half as many as one for each product, and its time grows with their number. (All
// results are stored to one address, so that LLVM keeps the products of one tile.)
// CHECK: call <16 x float> @llvm.amdgcn.mfma.f32.32x32x8f16
// CHECK-COUNT-4: call void @llvm.amdgcn.sched.group.barrier(i32 8, i32 2, i32 0){{.*[[:space:]]+}}call void @llvm.amdgcn.sched.group.barrier(i32 6, i32 3, i32 0)
// CHECK-NOT: call void @llvm.amdgcn.sched.group.barrier
#mma = #ttg.amd_mfma<{version = 3, warpsPerCTA = [1, 1], instrShape = [32, 32, 8], isTransposed = false}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>
#shared = #ttg.swizzled_shared<{vec = 4, perPhase = 1, maxPhase = 4, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 64 : i32} {
  tt.func public @product(%x: !tt.ptr<f16>, %y: !tt.ptr<f32>) {
    %rows = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #a}>>
    %columns = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #b}>>
    %row = tt.expand_dims %rows {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #a}>> -> tensor<64x1xi32, #a>
    %column = tt.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #b}>> -> tensor<1x64xi32, #b>
    %i = tt.broadcast %row : tensor<64x1xi32, #a> -> tensor<64x16xi32, #a>
    %j = tt.broadcast %column : tensor<1x64xi32, #b> -> tensor<16x64xi32, #b>
    %s = tt.splat %x : !tt.ptr<f16> -> tensor<64x16x!tt.ptr<f16>, #a>
    %t = tt.splat %x : !tt.ptr<f16> -> tensor<16x64x!tt.ptr<f16>, #b>
    %p = tt.addptr %s, %i : tensor<64x16x!tt.ptr<f16>, #a>, tensor<64x16xi32, #a>
    %q = tt.addptr %t, %j : tensor<16x64x!tt.ptr<f16>, #b>, tensor<16x64xi32, #b>
    %r = tt.splat %y : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #mma>
    %u = tt.load %p : tensor<64x16x!tt.ptr<f16>, #a>
    %v = tt.load %q : tensor<16x64x!tt.ptr<f16>, #b>
    %m = ttg.local_alloc %u : (tensor<64x16xf16, #a>) -> !ttg.memdesc<64x16xf16, #shared, #smem>
    %n = ttg.local_alloc %v : (tensor<16x64xf16, #b>) -> !ttg.memdesc<16x64xf16, #shared, #smem>
    %c = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %a = ttg.local_load %m : !ttg.memdesc<64x16xf16, #shared, #smem> -> tensor<64x16xf16, #a>
    %b = ttg.local_load %n : !ttg.memdesc<16x64xf16, #shared, #smem> -> tensor<16x64xf16, #b>
    %d = tt.dot %a, %b, %c : tensor<64x16xf16, #a> * tensor<16x64xf16, #b> -> tensor<64x64xf32, #mma>
    tt.store %r, %d : tensor<64x64x!tt.ptr<f32>, #mma>
    tt.return
  }
}
