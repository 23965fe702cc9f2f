// RUN: llopt %s | FileCheck %s

// Triton 3.9 writes the block of a tensor descriptor without `tensor<…>`, and dots in the names of
// its parts.

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// CHECK-LABEL: tt.func @descriptors
// CHECK-SAME: !tt.tensordesc<tensor<128x64xf16, #shared>>
// CHECK-SAME: !tt.tensordesc<tensor<16xi8>>
tt.func @descriptors(%da: !tt.tensordesc<128x64xf16, #shared>, %da.shape.0: i32, %da.stride.1: i64, %db: !tt.tensordesc<16xi8>) {
  // CHECK: tt.call @descriptors({{.*}}) : (!tt.tensordesc<tensor<128x64xf16, #shared>>, i32, i64, !tt.tensordesc<tensor<16xi8>>) -> ()
  tt.call @descriptors(%da, %da.shape.0, %da.stride.1, %db) : (!tt.tensordesc<128x64xf16, #shared>, i32, i64, !tt.tensordesc<16xi8>) -> ()
  tt.return
}
