// A buffer atomic is coherent among those that its scope names, as one of global memory is.
//
// RUN: llopt compile %s --target hip:gfx1200 | FileCheck %s --check-prefix=FIELD
// RUN: sed 's/\[32\]/[64]/;s/warp" = 32/warp" = 64/' %s > %t.mlir
// RUN: llopt compile %t.mlir --target hip:gfx942 | FileCheck %s --check-prefix=BITS

#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  // FIELD: buffer_atomic_add_u32 {{.*}} scope:SCOPE_SE
  // FIELD: buffer_atomic_or_b32 {{.*}} scope:SCOPE_DEV
  // FIELD: buffer_atomic_xor_b32 {{.*}} scope:SCOPE_SYS
  // BITS-NOT: sc1
  // BITS: buffer_atomic_xor {{.*}} sc1
  tt.func public @scopes(%p: !tt.ptr<i32>, %x: i32) {
    %r = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32, #blocked>
    %v = tt.splat %x : i32 -> tensor<256xi32, #blocked>
    %a = amdg.buffer_atomic_rmw add, relaxed, cta, %v, %p[%r] : tensor<256xi32, #blocked>
    %b = amdg.buffer_atomic_rmw or, relaxed, gpu, %a, %p[%r] : tensor<256xi32, #blocked>
    %c = amdg.buffer_atomic_rmw xor, relaxed, sys, %b, %p[%r] : tensor<256xi32, #blocked>
    tt.return
  }
}
