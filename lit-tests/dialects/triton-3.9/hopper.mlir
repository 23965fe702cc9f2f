// RUN: llopt %s | FileCheck %s

// What Triton 3.9 has and 3.6 prints otherwise or not at all on NVIDIA: barriers and waits that were
// inline assembly, unit attributes, attributes of the module, the offset of a slice of tensor memory,
// bases of a cluster on layouts of memory.

#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0], CGALayout = []}>
#pad = #ttg.padded_shared<[64:+4] {offset = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1], [0, 2], [0, 4], [0, 8]], block = []}>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 256, colStride = 1>
#tmem1 = #ttng.tensor_memory_encoding<blockM = 128, blockN = 128, colStride = 1>
// CHECK: "ttg.total-num-warps" = 8 : i32, "ttng.two-ctas" = false
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:100", "ttg.total-num-warps" = 8 : i32, "ttng.two-ctas" = false} {
  // CHECK-LABEL: tt.func @waits
  tt.func @waits() {
    // CHECK: ttg.barrier local
    ttg.barrier local
    // CHECK: tt.grid_dependency_wait
    tt.grid_dependency_wait
    // CHECK: tt.grid_dependency_launch_dependents
    tt.grid_dependency_launch_dependents
    // CHECK: ttng.async_tma_store_wait {pendings = 0 : i32, read_only}
    ttng.async_tma_store_wait {pendings = 0 : i32, read_only}
    // CHECK: ttg.local_alloc {ttg.ws_generated_barrier} : () -> !ttg.memdesc<3x1xi64, #{{[a-z0-9]*}}, #smem, mutable>
    %0 = ttg.local_alloc {ttg.ws_generated_barrier} : () -> !ttg.memdesc<3x1xi64, #bar, #smem, mutable>
    // CHECK: ttg.local_alloc : () -> !ttg.memdesc<16x16xf16, #{{[a-z0-9]*}}, #smem, mutable>
    %1 = ttg.local_alloc : () -> !ttg.memdesc<16x16xf16, #pad, #smem, mutable>
    tt.return
  }
  // CHECK-LABEL: tt.func @slices
  tt.func @slices(%t: !ttg.memdesc<128x256xf32, #tmem, #ttng.tensor_memory, mutable>) {
    // CHECK: ttng.tmem_subslice %{{[^ ]*}} {N = 128 : i32}
    %0 = ttng.tmem_subslice %t {offset = 128 : i32} : !ttg.memdesc<128x256xf32, #tmem, #ttng.tensor_memory, mutable> -> !ttg.memdesc<128x128xf32, #tmem1, #ttng.tensor_memory, mutable, 128x256>
    tt.return
  }
}
