// RUN: llopt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: tt.func @blocks
tt.func @blocks(%p: !tt.ptr<f16>, %n: i64, %i: i32) -> tensor<8x16xf16> {
  // CHECK: %[[P:.*]] = tt.make_tensor_ptr %{{.*}}, [%{{.*}}, %{{.*}}], [%{{.*}}, %{{.*}}], [%{{.*}}, %{{.*}}] {order = array<i32: 1, 0>} : <tensor<8x16xf16>>
  %0 = tt.make_tensor_ptr %p, [%n, %n], [%n, %n], [%i, %i] {order = array<i32: 1, 0>} : <tensor<8x16xf16>>
  // CHECK: tt.advance %[[P]], [%{{.*}}, %{{.*}}] : <tensor<8x16xf16>>
  %1 = tt.advance %0, [%i, %i] : <tensor<8x16xf16>>
  // CHECK: tt.load %{{.*}} {boundaryCheck = array<i32: 0>, padding = 1 : i32} : !tt.ptr<tensor<8x16xf16>>
  %2 = tt.load %1 {boundaryCheck = array<i32: 0>, padding = 1 : i32} : !tt.ptr<tensor<8x16xf16>>
  tt.return %2 : tensor<8x16xf16>
}

// CHECK-LABEL: tt.func @descriptors
tt.func @descriptors(%d: !tt.tensordesc<tensor<1x64xf16>>, %x: tensor<32xi32>, %y: i32) {
  // CHECK: %[[V:.*]] = tt.descriptor_gather %{{.*}}[%{{.*}}, %{{.*}}] : (!tt.tensordesc<tensor<1x64xf16>>, tensor<32xi32>, i32) -> tensor<32x64xf16>
  %0 = tt.descriptor_gather %d[%x, %y] : (!tt.tensordesc<tensor<1x64xf16>>, tensor<32xi32>, i32) -> tensor<32x64xf16>
  // CHECK: tt.descriptor_scatter %{{.*}}[%{{.*}}, %{{.*}}], %[[V]] : !tt.tensordesc<tensor<1x64xf16>>, tensor<32xi32>, i32, tensor<32x64xf16>
  tt.descriptor_scatter %d[%x, %y], %0 : !tt.tensordesc<tensor<1x64xf16>>, tensor<32xi32>, i32, tensor<32x64xf16>
  tt.return
}
