// RUN: llopt %s --pass-pipeline='builtin.module(narrow-arithmetic{target=cuda:90},canonicalize)' | FileCheck %s --check-prefixes=CHECK,BF16
// RUN: llopt %s --pass-pipeline='builtin.module(narrow-arithmetic{target=hip:gfx942},canonicalize)' | FileCheck %s --check-prefixes=CHECK,WIDE
// RUN: not llopt %s --narrow-arithmetic 2>&1 | FileCheck %s --check-prefix=NO-TARGET

// NO-TARGET: expected 'cuda:<compute capability>' or 'hip:<gfx name>'

// A sum of two halves that is rounded to halves is one of halves.
// CHECK-LABEL: @halves
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %arg0, %arg1 : tensor<64xf16>
// CHECK-NEXT: tt.return %[[SUM]]
tt.func @halves(%x: tensor<64xf16>, %y: tensor<64xf16>) -> tensor<64xf16> {
  %wx = arith.extf %x : tensor<64xf16> to tensor<64xf32>
  %wy = arith.extf %y : tensor<64xf16> to tensor<64xf32>
  %sum = arith.addf %wx, %wy : tensor<64xf32>
  %z = arith.truncf %sum : tensor<64xf32> to tensor<64xf16>
  tt.return %z : tensor<64xf16>
}

// A bias of columns is repeated when it is narrow; bfloat16 stays wide where it is not subtracted.
// CHECK-LABEL: @bias
// BF16: %[[BIAS:.*]] = tt.broadcast %arg1 : tensor<1x32xbf16> -> tensor<4x32xbf16>
// BF16: arith.subf %arg0, %[[BIAS]] : tensor<4x32xbf16>
// WIDE: arith.subf %{{.*}}, %{{.*}} : tensor<4x32xf32>
tt.func @bias(%x: tensor<4x32xbf16>, %b: tensor<1x32xbf16>) -> tensor<4x32xbf16> {
  %wx = arith.extf %x : tensor<4x32xbf16> to tensor<4x32xf32>
  %wb = arith.extf %b : tensor<1x32xbf16> to tensor<1x32xf32>
  %all = tt.broadcast %wb : tensor<1x32xf32> -> tensor<4x32xf32>
  %sum = arith.subf %wx, %all : tensor<4x32xf32>
  %z = arith.truncf %sum : tensor<4x32xf32> to tensor<4x32xbf16>
  tt.return %z : tensor<4x32xbf16>
}

// A wide sum that something else uses stays, as does a product.
// CHECK-LABEL: @others
// CHECK: arith.addf %{{.*}}, %{{.*}} : tensor<64xf32>
// CHECK: arith.mulf %{{.*}}, %{{.*}} : tensor<64xf32>
tt.func @others(%x: tensor<64xf16>, %y: tensor<64xf16>) -> (tensor<64xf16>, tensor<64xf32>, tensor<64xf16>) {
  %wx = arith.extf %x : tensor<64xf16> to tensor<64xf32>
  %wy = arith.extf %y : tensor<64xf16> to tensor<64xf32>
  %sum = arith.addf %wx, %wy : tensor<64xf32>
  %z = arith.truncf %sum : tensor<64xf32> to tensor<64xf16>
  %product = arith.mulf %wx, %wy : tensor<64xf32>
  %p = arith.truncf %product : tensor<64xf32> to tensor<64xf16>
  tt.return %z, %sum, %p : tensor<64xf16>, tensor<64xf32>, tensor<64xf16>
}
