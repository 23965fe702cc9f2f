// RUN: llopt compile %s --target cuda:90 | FileCheck %s

#rows = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0], CGALayout = [[0, 0]]}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 1, order = [1, 0], CGALayout = [[0, 0]]}>
#smem = #ttg.shared_memory

module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {

// What both blocks of a cluster hold, each of them copies: its shared memory is its own.
// CHECK-LABEL: .entry both
// CHECK-NOT: %cluster
// CHECK: cp.async.cg.shared.global
// CHECK-NOT: %cluster
tt.func public @both(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}) {
  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #rows}>>
  %e = tt.expand_dims %r {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #rows}>> -> tensor<1x64xi32, #rows>
  %b = tt.broadcast %e : tensor<1x64xi32, #rows> -> tensor<16x64xi32, #rows>
  %s = tt.splat %p : !tt.ptr<f16> -> tensor<16x64x!tt.ptr<f16>, #rows>
  %q = tt.addptr %s, %b : tensor<16x64x!tt.ptr<f16>, #rows>, tensor<16x64xi32, #rows>
  %x = ttg.local_alloc : () -> !ttg.memdesc<16x64xf16, #shared, #smem, mutable>
  %t = ttg.async_copy_global_to_local %q, %x : tensor<16x64x!tt.ptr<f16>, #rows> -> <16x64xf16, #shared, #smem, mutable>
  tt.return
}
}
