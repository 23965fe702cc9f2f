// Products of small floats by instructions that are longer along k, with scales and without.
//
// RUN: llopt %s --assign-layouts=target=hip:gfx950 --canonicalize --cse --split-input-file | FileCheck %s --check-prefixes=CHECK,CDNA4
// RUN: llopt %s --assign-layouts=target=hip:gfx942 --canonicalize --cse --split-input-file | FileCheck %s --check-prefixes=CHECK,OTHER
// RUN: llopt %s --assign-layouts=target=cuda:90 --canonicalize --cse --split-input-file | FileCheck %s --check-prefixes=CHECK,OTHER

// A unit that scales gets the factors as they are: bytes of a lane by sixteen, which is what the instruction's vectors have,
// and the scales of a row in the lane that has its first elements, the next group's in those after. Other targets widen.

// CDNA4-DAG: #[[SCALES:.+]] = #ttg.linear<{register = {{.*}}, lane = {{\[\[}}1, 0], [2, 0], [4, 0], [8, 0], [0, 1], [0, 2]],
// CDNA4-DAG: #[[MMA:.+]] = #ttg.amd_mfma<{version = 4, warpsPerCTA = {{.+}}, instrShape = [16, 16, 128], isTransposed = true}>
// CHECK-LABEL: module
module {
  // CHECK-LABEL: @both_scaled
  // CDNA4: tt.dot_scaled {{.*}} kWidth = 16}>>, tensor<64x4xi8, #[[SCALES]]> * tensor<64x64xi8, #ttg.dot_op<{opIdx = 1, parent = #[[MMA]], kWidth = 16}>>, tensor<64x4xi8, #{{.+}}> -> tensor<64x64xf32, #[[MMA]]>
  // OTHER-NOT: tt.dot_scaled
  tt.func public @both_scaled(%x: !tt.ptr<f8E4M3FN> {tt.divisibility = 16 : i32}, %w: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %s: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %x0 = tt.splat %x : !tt.ptr<f8E4M3FN> -> tensor<64x128x!tt.ptr<f8E4M3FN>>
    %a = tt.load %x0 : tensor<64x128x!tt.ptr<f8E4M3FN>>
    %w0 = tt.splat %w : !tt.ptr<i8> -> tensor<64x64x!tt.ptr<i8>>
    %b = tt.load %w0 : tensor<64x64x!tt.ptr<i8>>
    %s0 = tt.splat %s : !tt.ptr<i8> -> tensor<64x4x!tt.ptr<i8>>
    %scale = tt.load %s0 : tensor<64x4x!tt.ptr<i8>>
    %none = arith.constant dense<0.0> : tensor<64x64xf32>
    %y = tt.dot_scaled %a scale %scale, %b scale %scale, %none lhs = e4m3 rhs = e2m1 {fastMath = false} : tensor<64x128xf8E4M3FN>, tensor<64x4xi8> * tensor<64x64xi8>, tensor<64x4xi8> -> tensor<64x64xf32>
    %t = tt.splat %to : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
    tt.store %t, %y : tensor<64x64x!tt.ptr<f32>>
    tt.return
  }
}

// -----

// The instruction with the longer k is one for floats of eight bits, too, where k of the product is as long.

// CDNA4: #[[LONG:.+]] = #ttg.amd_mfma<{version = 4, warpsPerCTA = {{.+}}, instrShape = [32, 32, 64], isTransposed = true}>
// CHECK-LABEL: module
module {
  // CHECK-LABEL: @bytes
  // CDNA4: tt.dot {{.*}} kWidth = 16}>> * tensor<64x128xf8E5M2, #ttg.dot_op<{opIdx = 1, parent = #[[LONG]], kWidth = 16}>>
  tt.func public @bytes(%x: !tt.ptr<f8E5M2> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %x0 = tt.splat %x : !tt.ptr<f8E5M2> -> tensor<128x64x!tt.ptr<f8E5M2>>
    %a = tt.load %x0 : tensor<128x64x!tt.ptr<f8E5M2>>
    %x1 = tt.splat %x : !tt.ptr<f8E5M2> -> tensor<64x128x!tt.ptr<f8E5M2>>
    %b = tt.load %x1 : tensor<64x128x!tt.ptr<f8E5M2>>
    %none = arith.constant dense<0.0> : tensor<128x128xf32>
    %y = tt.dot %a, %b, %none : tensor<128x64xf8E5M2> * tensor<64x128xf8E5M2> -> tensor<128x128xf32>
    %t = tt.splat %to : !tt.ptr<f32> -> tensor<128x128x!tt.ptr<f32>>
    tt.store %t, %y : tensor<128x128x!tt.ptr<f32>>
    tt.return
  }
}
