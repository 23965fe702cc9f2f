// RUN: llopt %s --assign-layouts=target=cuda:80 --canonicalize --cse --split-input-file | FileCheck %s --check-prefixes=CHECK,NVIDIA
// RUN: llopt %s --assign-layouts=target=hip:gfx942 --canonicalize --cse --split-input-file | FileCheck %s --check-prefixes=CHECK,MFMA
// RUN: llopt %s --assign-layouts=target=hip:gfx1200 --canonicalize --cse --split-input-file | FileCheck %s --check-prefixes=CHECK,WMMA

// A product of halves is the matrix unit's: its result has the layout of an instruction, and its factors
// lie as that wants them.

// NVIDIA: #[[P:.+]] = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [{{.*}}], instrShape = [16, 8]}>
// MFMA: #[[P:.+]] = #ttg.amd_mfma<{version = 3, warpsPerCTA = [{{.*}}], instrShape = [{{.*}}], isTransposed = true}>
// WMMA: #[[P:.+]] = #ttg.amd_wmma<{version = 2, isTranspose = true, warpsPerCTA = [{{.*}}]}>
module {
  // CHECK-LABEL: @halves
  // CHECK: tt.dot %{{.*}}, %{{.*}}, %{{.*}} : tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #[[P]], kWidth = {{[0-9]+}}}>> * tensor<64x64xf16, #ttg.dot_op<{opIdx = 1, parent = #[[P]], kWidth = {{[0-9]+}}}>> -> tensor<64x64xf32, #[[P]]>
  tt.func public @halves(%from: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %row = tt.expand_dims %r {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %column = tt.expand_dims %r {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %extent = arith.constant dense<64> : tensor<64x1xi32>
    %start = arith.muli %row, %extent : tensor<64x1xi32>
    %a = tt.broadcast %start : tensor<64x1xi32> -> tensor<64x64xi32>
    %b = tt.broadcast %column : tensor<1x64xi32> -> tensor<64x64xi32>
    %offset = arith.addi %a, %b : tensor<64x64xi32>
    %f = tt.splat %from : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
    %p = tt.addptr %f, %offset : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
    %x = tt.load %p : tensor<64x64x!tt.ptr<f16>>
    %none = arith.constant dense<0.0> : tensor<64x64xf32>
    %y = tt.dot %x, %x, %none : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    %t = tt.splat %to : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
    %q = tt.addptr %t, %offset : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
    tt.store %q, %y : tensor<64x64x!tt.ptr<f32>>
    tt.return
  }
}

// -----

// What no instruction multiplies, threads do: each holds a part of the result that is as square as can be.

// CHECK-LABEL: module
module {
  // CHECK-LABEL: @integers
  // CHECK: tt.dot %{{.*}}, %{{.*}}, %{{.*}} : tensor<32x32xi32, #ttg.dot_op<{opIdx = 0, parent = #[[T:[a-z0-9_]+]]}>> * tensor<32x32xi32, #ttg.dot_op<{opIdx = 1, parent = #[[T]]}>> -> tensor<32x32xi32, #[[T]]>
  tt.func public @integers(%from: !tt.ptr<i32> {tt.divisibility = 16 : i32}) {
    %r = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
    %row = tt.expand_dims %r {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
    %column = tt.expand_dims %r {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %extent = arith.constant dense<32> : tensor<32x1xi32>
    %start = arith.muli %row, %extent : tensor<32x1xi32>
    %a = tt.broadcast %start : tensor<32x1xi32> -> tensor<32x32xi32>
    %b = tt.broadcast %column : tensor<1x32xi32> -> tensor<32x32xi32>
    %offset = arith.addi %a, %b : tensor<32x32xi32>
    %f = tt.splat %from : !tt.ptr<i32> -> tensor<32x32x!tt.ptr<i32>>
    %p = tt.addptr %f, %offset : tensor<32x32x!tt.ptr<i32>>, tensor<32x32xi32>
    %x = tt.load %p : tensor<32x32x!tt.ptr<i32>>
    %none = arith.constant dense<0> : tensor<32x32xi32>
    %y = tt.dot %x, %x, %none : tensor<32x32xi32> * tensor<32x32xi32> -> tensor<32x32xi32>
    tt.store %p, %y : tensor<32x32x!tt.ptr<i32>>
    tt.return
  }
}

// -----

// Scales of groups of 32 become numbers that the factors are multiplied with; a group whose scale is not a
// number becomes one that is not either.

// CHECK-LABEL: module
module {
  // CHECK-LABEL: @scaled
  // CHECK: ttg.fp4_to_fp %{{.*}} {axis = 0 : i32} : tensor<32x64xi8, #{{.+}}> -> tensor<64x64xbf16, #{{.+}}>
  // CHECK: arith.shli %{{.*}} : tensor<2x64xi16
  // CHECK: arith.select
  // CHECK: tt.dot {{.*}} -> tensor<64x64xf32, #{{.+}}>
  // CHECK-NOT: tt.dot_scaled
  tt.func public @scaled(%x: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %w: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %s: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %x0 = tt.splat %x : !tt.ptr<bf16> -> tensor<64x64x!tt.ptr<bf16>>
    %a = tt.load %x0 : tensor<64x64x!tt.ptr<bf16>>
    %w0 = tt.splat %w : !tt.ptr<i8> -> tensor<32x64x!tt.ptr<i8>>
    %b = tt.load %w0 : tensor<32x64x!tt.ptr<i8>>
    %s0 = tt.splat %s : !tt.ptr<i8> -> tensor<64x2x!tt.ptr<i8>>
    %scale = tt.load %s0 : tensor<64x2x!tt.ptr<i8>>
    %none = arith.constant dense<0.0> : tensor<64x64xf32>
    %y = tt.dot_scaled %a, %b scale %scale, %none lhs = bf16 rhs = e2m1 {fastMath = false} : tensor<64x64xbf16> * tensor<32x64xi8>, tensor<64x2xi8> -> tensor<64x64xf32>
    %t = tt.splat %to : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
    tt.store %t, %y : tensor<64x64x!tt.ptr<f32>>
    tt.return
  }
}
