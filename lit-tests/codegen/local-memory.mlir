// A tensor through a buffer with a transposed view: written by rows, read by columns.
//
// RUN: llopt compile %s --target cuda:90 | FileCheck %s --check-prefix=NV
// RUN: llopt compile %s --target hip:gfx1200 | FileCheck %s --check-prefix=AMD

#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#turned = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#rows = #ttg.slice<{dim = 1, parent = #blocked}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#shared1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  // NV: st.shared.v4.b32
  // NV: bar.sync
  // NV: ld.shared.v4.b32

  // AMD: ds_store_b128
  // AMD: s_barrier_wait
  // AMD: ds_load_b128
  tt.func public @turn(%p: !tt.ptr<f32>) {
    %r = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32, #rows>
    %e = tt.expand_dims %r {axis = 1 : i32} : tensor<16xi32, #rows> -> tensor<16x1xi32, #blocked>
    %b = tt.broadcast %e : tensor<16x1xi32, #blocked> -> tensor<16x32xi32, #blocked>
    %m = ttg.local_alloc %b : (tensor<16x32xi32, #blocked>) -> !ttg.memdesc<16x32xi32, #shared, #smem>
    %t = ttg.memdesc_trans %m {order = array<i32: 1, 0>} : !ttg.memdesc<16x32xi32, #shared, #smem> -> !ttg.memdesc<32x16xi32, #shared1, #smem>
    %v = ttg.local_load %t : !ttg.memdesc<32x16xi32, #shared1, #smem> -> tensor<32x16xi32, #turned>
    %f = arith.sitofp %v : tensor<32x16xi32, #turned> to tensor<32x16xf32, #turned>
    %q = tt.splat %p : !tt.ptr<f32> -> tensor<32x16x!tt.ptr<f32>, #turned>
    %o = tt.addptr %q, %v : tensor<32x16x!tt.ptr<f32>, #turned>, tensor<32x16xi32, #turned>
    tt.store %o, %f : tensor<32x16x!tt.ptr<f32>, #turned>
    tt.return
  }
}
