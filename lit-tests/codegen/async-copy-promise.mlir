// RUN: llopt compile %s --target cuda:80 | FileCheck %s --check-prefixes=CHECK,NV
// RUN: sed 's/threadsPerWarp = \[4, 8\]/threadsPerWarp = [8, 8]/;s/ = 32 : i32/ = 64 : i32/' %s | llopt compile - --target hip:gfx950 | FileCheck %s --check-prefixes=CHECK,AMD

#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {

// A copy's own word for how many elements lie together and share a mask counts where nothing else is known of them.
// CHECK-LABEL: promised
// NV: cp.async.cg.shared.global {{.*}}, 16
// AMD: global_load_lds_dwordx4
tt.func public @promised(%p: tensor<32x64x!tt.ptr<f16>, #blocked>, %m: tensor<32x64xi1, #blocked>) {
  %x = ttg.local_alloc : () -> !ttg.memdesc<32x64xf16, #shared, #smem, mutable>
  %t = ttg.async_copy_global_to_local %p, %x mask %m {contiguity = 8 : i32} : tensor<32x64x!tt.ptr<f16>, #blocked> -> <32x64xf16, #shared, #smem, mutable>
  tt.return
}
}
