// Factors that descriptors load: the copy unit writes them to buffers in which the product's instruction reads them,
// and no register holds them on the way. The result goes from its registers to the buffer that is stored.
//
// RUN: llopt compile %s --target cuda:90 --num-stages 1 --emit ttgir | FileCheck %s
// RUN: llopt compile %s --target cuda:90 | FileCheck %s --check-prefix=PTX
// RUN: llopt compile %s --target cuda:90 --emit ttgir | FileCheck %s --check-prefix=AHEAD

// CHECK-LABEL: @descriptors
// CHECK-NOT: ttg.local_load
// CHECK: ttng.async_tma_copy_global_to_local %{{.+}} %[[A:.+]], %{{.+}}, %{{.+}} : !tt.tensordesc
// CHECK: ttng.async_tma_copy_global_to_local %{{.+}} %[[M:.+]], %{{.+}}, %{{.+}} : !tt.tensordesc
// CHECK: %[[B:.+]] = ttg.memdesc_trans %[[M]]
// CHECK: ttng.warp_group_dot %[[A]], %[[B]]
// CHECK-NOT: ttg.convert_layout
// CHECK: ttng.async_tma_copy_local_to_global
// Ahead of the product both blocks arrive at one barrier, of which there is one for each buffer.
// AHEAD: %[[BARRIERS:.*]] = ttg.local_alloc : () -> !ttg.memdesc<3x1xi64
// AHEAD-COUNT-3: ttng.init_barrier
// AHEAD: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[READ:.*]] = %{{.*}}, %[[PHASE:.*]] = %{{.*}}, %[[WRITTEN:.*]] = %
// AHEAD: %[[ARRIVED:.*]] = ttg.memdesc_index %[[BARRIERS]][%[[READ]]]
// AHEAD: ttng.wait_barrier %[[ARRIVED]], %[[PHASE]]
// AHEAD: ttng.warp_group_dot {{.*}} {isAsync = true}
// AHEAD: ttng.warp_group_dot_wait {{.*}} {pendings = 1 : i32}
// AHEAD: %[[NEXT:.*]] = ttg.memdesc_index %[[BARRIERS]][%[[WRITTEN]]]
// AHEAD: ttng.barrier_expect %[[NEXT]], 32768, %{{.*}}
// AHEAD-COUNT-2: ttng.async_tma_copy_global_to_local {{.*}}, %[[NEXT]], %
// AHEAD-COUNT-3: ttng.inval_barrier
// PTX: cp.async.bulk.tensor.2d.shared::cluster.global
// PTX: wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16
module {
  tt.func public @descriptors(%a: !tt.tensordesc<tensor<128x64xf16>>, %b: !tt.tensordesc<tensor<128x64xf16>>, %c: !tt.tensordesc<tensor<128x128xf16>>, %n: i32) {
    %z = arith.constant dense<0.0> : tensor<128x128xf32>
    %least = arith.constant 0 : i32
    %step = arith.constant 1 : i32
    %w = arith.constant 64 : i32
    %y = scf.for %i = %least to %n step %step iter_args(%acc = %z) -> (tensor<128x128xf32>) : i32 {
      %k = arith.muli %i, %w : i32
      %x = tt.descriptor_load %a[%least, %k] : !tt.tensordesc<tensor<128x64xf16>> -> tensor<128x64xf16>
      %u = tt.descriptor_load %b[%least, %k] : !tt.tensordesc<tensor<128x64xf16>> -> tensor<128x64xf16>
      %t = tt.trans %u {order = array<i32: 1, 0>} : tensor<128x64xf16> -> tensor<64x128xf16>
      %d = tt.dot %x, %t, %acc : tensor<128x64xf16> * tensor<64x128xf16> -> tensor<128x128xf32>
      scf.yield %d : tensor<128x128xf32>
    }
    %h = arith.truncf %y : tensor<128x128xf32> to tensor<128x128xf16>
    tt.descriptor_store %c[%least, %least], %h : !tt.tensordesc<tensor<128x128xf16>>, tensor<128x128xf16>
    tt.return
  }
}
