// RUN: llopt %s --pass-pipeline='builtin.module(tritongpu-F32DotTC{emu-tf32=true})' | FileCheck %s --check-prefixes=CHECK,TF32
// RUN: llopt %s --tritongpu-F32DotTC | FileCheck %s --check-prefixes=CHECK,NONE

// A number is two of tf32: three products, and what is not a number among the small ones counts as zero.
// CHECK-LABEL: @tf32x3
// TF32: %[[A:.*]] = tt.elementwise_inline_asm "cvt.rna.tf32.f32 $0, $1;"
// TF32: %[[A_REST:.*]] = arith.subf %{{.*}}, %[[A]]
// TF32: %[[B:.*]] = tt.elementwise_inline_asm
// TF32: %[[B_REST:.*]] = arith.subf %{{.*}}, %[[B]]
// TF32: %[[FIRST:.*]] = tt.dot %[[A_REST]], %[[B]], %{{.*}}, inputPrecision = tf32
// TF32: %[[SMALL:.*]] = tt.dot %[[A]], %[[B_REST]], %[[FIRST]], inputPrecision = tf32
// TF32: %[[NAN:.*]] = arith.cmpf uno, %[[SMALL]], %[[SMALL]]
// TF32: %[[NUMBERS:.*]] = arith.select %[[NAN]], %{{.*}}, %[[SMALL]]
// TF32: %[[ALL:.*]] = tt.dot %[[A]], %[[B]], %[[NUMBERS]], inputPrecision = tf32
// TF32: arith.addf %[[ALL]], %arg2
// NONE: tt.dot %arg0, %arg1, %arg2, inputPrecision = tf32x3
// NONE-NOT: tt.dot
tt.func @tf32x3(%a: tensor<32x32xf32>, %b: tensor<32x32xf32>, %c: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %d = tt.dot %a, %b, %c, inputPrecision = tf32x3 : tensor<32x32xf32> * tensor<32x32xf32> -> tensor<32x32xf32>
  tt.return %d : tensor<32x32xf32>
}

// Two of bfloat16: three products on every target.
// CHECK-LABEL: @bf16x3
// CHECK-COUNT-4: arith.truncf
// CHECK-COUNT-3: tt.dot {{.*}}tensor<32x32xbf16> * tensor<32x32xbf16> -> tensor<32x32xf32>
// CHECK-NOT: tt.dot
// CHECK: arith.addf
tt.func @bf16x3(%a: tensor<32x32xf32>, %b: tensor<32x32xf32>, %c: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %d = tt.dot %a, %b, %c, inputPrecision = bf16x3 : tensor<32x32xf32> * tensor<32x32xf32> -> tensor<32x32xf32>
  tt.return %d : tensor<32x32xf32>
}

// Three of bfloat16: six products.
// CHECK-LABEL: @bf16x6
// CHECK-COUNT-6: arith.truncf
// CHECK-COUNT-6: tt.dot {{.*}}xbf16>
// CHECK-NOT: tt.dot
tt.func @bf16x6(%a: tensor<32x32xf32>, %b: tensor<32x32xf32>, %c: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %d = tt.dot %a, %b, %c, inputPrecision = bf16x6 : tensor<32x32xf32> * tensor<32x32xf32> -> tensor<32x32xf32>
  tt.return %d : tensor<32x32xf32>
}

// Narrow operands, and products that ask for nothing, stay as they are.
// CHECK-LABEL: @others
// CHECK-NEXT: tt.dot
// CHECK-NEXT: tt.dot
// CHECK-NEXT: tt.return
tt.func @others(%a: tensor<32x32xf16>, %b: tensor<32x32xf32>, %c: tensor<32x32xf32>) -> (tensor<32x32xf32>, tensor<32x32xf32>) {
  %d = tt.dot %a, %a, %c, inputPrecision = bf16x3 : tensor<32x32xf16> * tensor<32x32xf16> -> tensor<32x32xf32>
  %e = tt.dot %b, %b, %c, inputPrecision = tf32 : tensor<32x32xf32> * tensor<32x32xf32> -> tensor<32x32xf32>
  tt.return %d, %e : tensor<32x32xf32>, tensor<32x32xf32>
}
