// RUN: llopt %s --triton-nvidia-tma-lowering | FileCheck %s

// A load through a descriptor that is a parameter becomes a copy into a buffer; a barrier counts its bytes.
// CHECK-LABEL: @load(
// CHECK: [[BUFFER:%.*]] = ttg.local_alloc
// CHECK: [[BARRIER:%.*]] = ttg.local_alloc
// CHECK: ttng.barrier_expect [[BARRIER]], 8192
// CHECK: ttng.async_tma_copy_global_to_local {{.*}} [[BUFFER]], [[BARRIER]]
// CHECK: ttng.wait_barrier [[BARRIER]]
// CHECK: ttg.local_load [[BUFFER]]
tt.func public @load(%x: !tt.tensordesc<tensor<32x64xf32>>, %i: i32) -> tensor<32x64xf32> {
  %v = tt.descriptor_load %x[%i, %i] : !tt.tensordesc<tensor<32x64xf32>> -> tensor<32x64xf32>
  tt.return %v : tensor<32x64xf32>
}

// A store goes the other way, after a fence between the program's writes and the copy unit's reads.
// CHECK-LABEL: @store(
// CHECK: [[BUFFER:%.*]] = ttg.local_alloc %
// CHECK: ttng.fence_async_shared
// CHECK: ttng.async_tma_copy_local_to_global {{.*}} [[BUFFER]]
// CHECK: ttng.async_tma_store_wait {pendings = 0
tt.func public @store(%x: !tt.tensordesc<tensor<32x64xf32>>, %i: i32, %v: tensor<32x64xf32>) {
  tt.descriptor_store %x[%i, %i], %v : !tt.tensordesc<tensor<32x64xf32>>, tensor<32x64xf32>
  tt.return
}

// A descriptor that the kernel makes is left alone.
// CHECK-LABEL: @made(
// CHECK: tt.descriptor_load
tt.func public @made(%p: !tt.ptr<f32>, %n: i32, %s: i64, %i: i32) -> tensor<32x64xf32> {
  %one = arith.constant 1 : i64
  %x = tt.make_tensor_descriptor %p, [%n, %n], [%s, %one] : !tt.ptr<f32>, !tt.tensordesc<tensor<32x64xf32>>
  %v = tt.descriptor_load %x[%i, %i] : !tt.tensordesc<tensor<32x64xf32>> -> tensor<32x64xf32>
  tt.return %v : tensor<32x64xf32>
}
