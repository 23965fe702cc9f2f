// The bytes of a part of a buffer as a buffer of another type begin where the part does.
//
// RUN: llopt compile %s --target cuda:90 | FileCheck %s --check-prefix=NVIDIA
// RUN: sed -e 's/\[4, 8\]/[8, 8]/' -e 's/per-warp" = 32/per-warp" = 64/' %s > %t.ttgir
// RUN: llopt compile %t.ttgir --target hip:gfx942 | FileCheck %s --check-prefix=AMD

#bytes = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#words = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#blocked = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [4, 8], warpsPerCTA = [1, 1], order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  // NVIDIA: stmatrix{{.*}} [%r{{[0-9]+}}+1024]
  // AMD: ds_write2st64_b32 {{.*}} offset0:4
  tt.func public @upper_half(%x: i32) {
    %v = tt.splat %x : i32 -> tensor<32x8xi32, #blocked>
    %all = ttg.local_alloc : () -> !ttg.memdesc<2048xi8, #bytes, #smem, mutable>
    %half = ttg.memdesc_subslice %all[1024] : !ttg.memdesc<2048xi8, #bytes, #smem, mutable> -> !ttg.memdesc<1024xi8, #bytes, #smem, mutable, 2048>
    %words = ttg.memdesc_reinterpret %half : !ttg.memdesc<1024xi8, #bytes, #smem, mutable, 2048> -> !ttg.memdesc<32x8xi32, #words, #smem, mutable>
    ttg.local_store %v, %words : tensor<32x8xi32, #blocked> -> !ttg.memdesc<32x8xi32, #words, #smem, mutable>
    tt.return
  }
}
