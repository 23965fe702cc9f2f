// RUN: llopt %s | FileCheck %s
// RUN: llopt %s | llopt | FileCheck %s

// Triton 3.9 writes the type of the pointer, and how many elements lie side by side; 3.6 writes the
// type of the values alone.

#blocked = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32, ttg.target = "hip:gfx950"} {
  // CHECK-LABEL: tt.func @buffers
  tt.func @buffers(%x: !tt.ptr<f32>, %p: !tt.ptr<i32>, %i: tensor<512xi32, #blocked>, %m: tensor<512xi1, #blocked>, %n: i32) {
    // CHECK: amdg.buffer_load %{{[^ ]*}}, %{{[^ ]*}} {contiguity = 2 : i32} : tensor<512xf32, #blocked>
    %0 = amdg.buffer_load %x[%i], %m {contiguity = 2 : i32} : !tt.ptr<f32> -> tensor<512xf32, #blocked>
    // CHECK: amdg.buffer_load %{{[^ ]*}} cacheModifier = ca stride = %{{[^ ]*}} : tensor<512xf32, #blocked>
    %1 = amdg.buffer_load %x[%i] cacheModifier = ca stride = %n : !tt.ptr<f32> -> tensor<512xf32, #blocked>
    // CHECK: amdg.buffer_store %{{[^{]*}} {contiguity = 4 : i32} : tensor<512xf32, #blocked>
    amdg.buffer_store %0, %x[%i], %m {contiguity = 4 : i32} : !tt.ptr<f32> -> tensor<512xf32, #blocked>
    // CHECK: amdg.buffer_atomic_rmw fadd, relaxed, gpu, %{{[^:]*}} : tensor<512xf32, #blocked>
    %2 = amdg.buffer_atomic_rmw fadd, relaxed, gpu, %0, %x[%i], %m : !tt.ptr<f32> -> tensor<512xf32, #blocked>
    // CHECK: amdg.buffer_atomic_cas acq_rel, gpu, %{{[^:]*}} : tensor<512xi32, #blocked>
    %3 = amdg.buffer_atomic_cas acq_rel, gpu, %i, %i, %p[%i] : !tt.ptr<i32> -> tensor<512xi32, #blocked>
    tt.return
  }
}
