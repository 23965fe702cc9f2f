// RUN: llopt %s --verify-roundtrip | FileCheck %s

#blocked = #ttg.blocked<{sizePerThread = [1, 64], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: tt.func @barriers
  tt.func @barriers(%b: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %phase: i32, %p: i1) {
    // CHECK: ttng.init_barrier %{{.*}}, 1 : !ttg.memdesc<1xi64
    ttng.init_barrier %b, 1 : !ttg.memdesc<1xi64, #bar, #smem, mutable>
    // CHECK: ttng.arrive_barrier %{{.*}}, 2, %{{.*}} : !ttg.memdesc<1xi64
    ttng.arrive_barrier %b, 2, %p : !ttg.memdesc<1xi64, #bar, #smem, mutable>
    // CHECK: ttng.wait_barrier %{{.*}}, %{{.*}}, %{{.*}} : !ttg.memdesc<1xi64
    ttng.wait_barrier %b, %phase, %p : !ttg.memdesc<1xi64, #bar, #smem, mutable>
    // CHECK: ttng.cluster_arrive {relaxed = true}
    ttng.cluster_arrive {relaxed = true}
    // CHECK: ttng.cluster_wait
    ttng.cluster_wait
    // CHECK: ttng.tc_gen5_commit %{{.*}}, %{{.*}} : !ttg.memdesc<1xi64
    ttng.tc_gen5_commit %b, %p : !ttg.memdesc<1xi64, #bar, #smem, mutable>
    // CHECK: ttng.async_copy_mbarrier_arrive %{{.*}} : !ttg.memdesc<1xi64
    ttng.async_copy_mbarrier_arrive %b : !ttg.memdesc<1xi64, #bar, #smem, mutable>
    tt.return
  }

  // CHECK-LABEL: tt.func @tensor_memory
  tt.func @tensor_memory(%x: tensor<128x64xf32, #blocked>, %a: !ttg.memdesc<128x64xf16, #shared, #smem>, %b: !ttg.memdesc<64x64xf16, #shared, #smem>, %bar: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %p: i1) -> tensor<128x64xf32, #blocked> {
    // CHECK: %[[D:.*]], %[[T:.*]] = ttng.tmem_alloc : () -> (!ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, !ttg.async.token)
    %d, %t = ttng.tmem_alloc : () -> (!ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, !ttg.async.token)
    // CHECK: %[[S:.*]] = ttng.tmem_store %{{.*}}, %[[D]][%[[T]]], %{{.*}} : tensor<128x64xf32, #{{.*}}> -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
    %s = ttng.tmem_store %x, %d[%t], %p : tensor<128x64xf32, #blocked> -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
    // CHECK: %[[M:.*]] = ttng.tc_gen5_mma %{{.*}}, %{{.*}}, %[[D]][%[[S]]], %[[P:.*]], %[[P]], %{{.*}}[%[[P]]] {is_async} :
    %m = ttng.tc_gen5_mma %a, %b, %d[%s], %p, %p, %bar[%p] {is_async} : !ttg.memdesc<128x64xf16, #shared, #smem>, !ttg.memdesc<64x64xf16, #shared, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, !ttg.memdesc<1xi64, #bar, #smem, mutable>
    // CHECK: %[[R:.*]], %{{.*}} = ttng.tmem_load %[[D]][%[[M]]] : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> tensor<128x64xf32
    %r, %u = ttng.tmem_load %d[%m] : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> tensor<128x64xf32, #blocked>
    tt.return %r : tensor<128x64xf32, #blocked>
  }
}
