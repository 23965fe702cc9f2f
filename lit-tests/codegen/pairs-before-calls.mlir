// RUN: llopt compile %s --target hip:gfx942 | FileCheck %s

#sums = #ttg.amd_mfma<{version = 3, warpsPerCTA = [1, 1], instrShape = [16, 16, 16], isTransposed = false}>
#left = #ttg.dot_op<{opIdx = 0, parent = #sums, kWidth = 4}>
#right = #ttg.dot_op<{opIdx = 1, parent = #sums, kWidth = 4}>
#shared = #ttg.swizzled_shared<{vec = 4, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 64 : i32, ttg.target = "hip:gfx942"} {
  // The numbers of a fragment are scaled in pairs, also where a function takes each of them.
  // CHECK-LABEL: scaled:
  // CHECK: v_mfma_f32_16x16x16_f16
  // CHECK-NOT: v_mul_f32
  // CHECK-COUNT-2: v_pk_mul_f32
  // CHECK-COUNT-4: v_max_f32
  tt.func public @scaled(%o: !tt.ptr<f32>, %s: f32) {
    %a = ttg.local_alloc : () -> !ttg.memdesc<16x16xf16, #shared, #smem, mutable>
    %x = ttg.local_load %a : !ttg.memdesc<16x16xf16, #shared, #smem, mutable> -> tensor<16x16xf16, #left>
    %y = ttg.local_load %a : !ttg.memdesc<16x16xf16, #shared, #smem, mutable> -> tensor<16x16xf16, #right>
    %zero = arith.constant dense<0.0> : tensor<16x16xf32, #sums>
    %z = tt.dot %x, %y, %zero : tensor<16x16xf16, #left> * tensor<16x16xf16, #right> -> tensor<16x16xf32, #sums>
    %by = tt.splat %s : f32 -> tensor<16x16xf32, #sums>
    %u = arith.mulf %z, %by : tensor<16x16xf32, #sums>
    %v = arith.maxnumf %u, %zero : tensor<16x16xf32, #sums>
    %i = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32, #ttg.slice<{dim = 1, parent = #sums}>>
    %row = tt.expand_dims %i {axis = 1 : i32} : tensor<16xi32, #ttg.slice<{dim = 1, parent = #sums}>> -> tensor<16x1xi32, #sums>
    %rows = tt.broadcast %row : tensor<16x1xi32, #sums> -> tensor<16x16xi32, #sums>
    %first = tt.splat %o : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>, #sums>
    %at = tt.addptr %first, %rows : tensor<16x16x!tt.ptr<f32>, #sums>, tensor<16x16xi32, #sums>
    tt.store %at, %v : tensor<16x16x!tt.ptr<f32>, #sums>
    tt.return
  }
}
