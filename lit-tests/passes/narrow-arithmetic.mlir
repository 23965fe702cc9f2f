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

// What a mask leaves out of the sum is a zero, and a side that is only widened is what it was.
// CHECK-LABEL: @chosen
// CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<64xf16>
// CHECK-DAG: %[[SUM:.*]] = arith.addf %arg0, %arg1 : tensor<64xf16>
// CHECK-NEXT: %[[INNER:.*]] = arith.select %arg3, %[[SUM]], %arg0
// CHECK-NEXT: %[[OUTER:.*]] = arith.select %arg2, %[[INNER]], %[[ZERO]]
// CHECK-NEXT: tt.return %[[OUTER]]
tt.func @chosen(%x: tensor<64xf16>, %y: tensor<64xf16>, %c: tensor<64xi1>, %d: tensor<64xi1>) -> tensor<64xf16> {
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %wx = arith.extf %x : tensor<64xf16> to tensor<64xf32>
  %wy = arith.extf %y : tensor<64xf16> to tensor<64xf32>
  %sum = arith.addf %wx, %wy : tensor<64xf32>
  %inner = arith.select %d, %sum, %wx : tensor<64xi1>, tensor<64xf32>
  %outer = arith.select %c, %inner, %zero : tensor<64xi1>, tensor<64xf32>
  %z = arith.truncf %outer : tensor<64xf32> to tensor<64xf16>
  tt.return %z : tensor<64xf16>
}

// Without a sum there is nothing to gain, and a product stays wide.
// CHECK-LABEL: @chosen_otherwise
// CHECK: arith.truncf %{{.*}} : tensor<64xf32> to tensor<64xf16>
// CHECK: arith.truncf %{{.*}} : tensor<64xf32> to tensor<64xf16>
tt.func @chosen_otherwise(%x: tensor<64xf16>, %y: tensor<64xf16>, %c: tensor<64xi1>) -> (tensor<64xf16>, tensor<64xf16>) {
  %wx = arith.extf %x : tensor<64xf16> to tensor<64xf32>
  %wy = arith.extf %y : tensor<64xf16> to tensor<64xf32>
  %one = arith.select %c, %wx, %wy : tensor<64xi1>, tensor<64xf32>
  %a = arith.truncf %one : tensor<64xf32> to tensor<64xf16>
  %sum = arith.addf %wx, %wy : tensor<64xf32>
  %product = arith.mulf %wx, %wy : tensor<64xf32>
  %other = arith.select %c, %sum, %product : tensor<64xi1>, tensor<64xf32>
  %b = arith.truncf %other : tensor<64xf32> to tensor<64xf16>
  tt.return %a, %b : tensor<64xf16>, tensor<64xf16>
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
