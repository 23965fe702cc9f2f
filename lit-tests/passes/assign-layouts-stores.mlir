// RUN: llopt %s --assign-layouts=target=cuda:90 --canonicalize --cse --split-input-file --verify-layouts | FileCheck %s

// What is stored behind a product stays in the warps that multiplied it: lanes exchange pairs for vectors, which needs no
// barrier of the block.

// CHECK: #[[STORED:.+]] = #ttg.linear<{register = {{\[}}[0, 1], [0, 2], [0, 4], {{.*}}], lane = {{\[}}[0, 8], [0, 16], [1, 0], [2, 0], [4, 0]], warp = {{\[}}[16, 0], [32, 0]]
// CHECK-LABEL: @vectors
// CHECK: ttg.convert_layout %{{.*}} -> tensor<64x32xf16, #[[STORED]]>
// CHECK-NEXT: tt.store %{{.*}} : tensor<64x32x!tt.ptr<f16>, #[[STORED]]>

module {
  tt.func public @vectors(%from: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %other: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f16> {tt.divisibility = 16 : i32}) {
    %none = arith.constant dense<0.0> : tensor<64x32xf32>
    %of_64 = arith.constant dense<64> : tensor<64x1xi32>
    %of_32 = arith.constant dense<32> : tensor<64x1xi32>
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %s = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
    %row = tt.expand_dims %r {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %wide = tt.expand_dims %r {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %narrow = tt.expand_dims %s {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %start = arith.muli %row, %of_64 : tensor<64x1xi32>
    %a = tt.broadcast %start : tensor<64x1xi32> -> tensor<64x64xi32>
    %b = tt.broadcast %wide : tensor<1x64xi32> -> tensor<64x64xi32>
    %offset = arith.addi %a, %b : tensor<64x64xi32>
    %begin = arith.muli %row, %of_32 : tensor<64x1xi32>
    %c = tt.broadcast %begin : tensor<64x1xi32> -> tensor<64x32xi32>
    %d = tt.broadcast %narrow : tensor<1x32xi32> -> tensor<64x32xi32>
    %place = arith.addi %c, %d : tensor<64x32xi32>
    %f = tt.splat %from : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
    %p = tt.addptr %f, %offset : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
    %x = tt.load %p : tensor<64x64x!tt.ptr<f16>>
    %g = tt.splat %other : !tt.ptr<f16> -> tensor<64x32x!tt.ptr<f16>>
    %o = tt.addptr %g, %place : tensor<64x32x!tt.ptr<f16>>, tensor<64x32xi32>
    %w = tt.load %o : tensor<64x32x!tt.ptr<f16>>
    %y = tt.dot %x, %w, %none : tensor<64x64xf16> * tensor<64x32xf16> -> tensor<64x32xf32>
    %z = arith.truncf %y : tensor<64x32xf32> to tensor<64x32xf16>
    %t = tt.splat %to : !tt.ptr<f16> -> tensor<64x32x!tt.ptr<f16>>
    %q = tt.addptr %t, %place : tensor<64x32x!tt.ptr<f16>>, tensor<64x32xi32>
    tt.store %q, %z : tensor<64x32x!tt.ptr<f16>>
    tt.return
  }
}

// -----

// A mask is computed where the product is, so that the narrower format is what the lanes exchange.

// CHECK: #[[UNIT:.+]] = #ttg.nvidia_mma
// CHECK-LABEL: @masked
// CHECK: arith.select %{{.*}} : tensor<64x64xi1, #[[UNIT]]>, tensor<64x64xf32, #[[UNIT]]>
// CHECK: ttg.convert_layout %{{.*}} : tensor<64x64xf16, #[[UNIT]]>

module {
  tt.func public @masked(%from: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %other: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f16> {tt.divisibility = 16 : i32}) {
    %none = arith.constant dense<0.0> : tensor<64x64xf32>
    %low = arith.constant dense<-1.0e+04> : tensor<64x64xf32>
    %of_64 = arith.constant dense<64> : tensor<64x1xi32>
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %row = tt.expand_dims %r {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %column = tt.expand_dims %r {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %start = arith.muli %row, %of_64 : tensor<64x1xi32>
    %a = tt.broadcast %start : tensor<64x1xi32> -> tensor<64x64xi32>
    %b = tt.broadcast %column : tensor<1x64xi32> -> tensor<64x64xi32>
    %offset = arith.addi %a, %b : tensor<64x64xi32>
    %f = tt.splat %from : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
    %p = tt.addptr %f, %offset : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
    %x = tt.load %p : tensor<64x64x!tt.ptr<f16>>
    %g = tt.splat %other : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
    %o = tt.addptr %g, %offset : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
    %w = tt.load %o : tensor<64x64x!tt.ptr<f16>>
    %y = tt.dot %x, %w, %none : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    %i = tt.broadcast %row : tensor<64x1xi32> -> tensor<64x64xi32>
    %seen = arith.cmpi sge, %i, %b : tensor<64x64xi32>
    %m = arith.select %seen, %y, %low : tensor<64x64xi1>, tensor<64x64xf32>
    %z = arith.truncf %m : tensor<64x64xf32> to tensor<64x64xf16>
    %t = tt.splat %to : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
    %q = tt.addptr %t, %offset : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
    tt.store %q, %z : tensor<64x64x!tt.ptr<f16>>
    tt.return
  }
}

// -----

// A row is stored in reverse. Nothing is known of descending addresses, but they are neighbours with an even chance: lanes
// beside each other store elements beside each other, not those that one lane has loaded as a vector.

// CHECK: #[[SCALARS:.+]] = #ttg.blocked<{sizePerThread = [1],
// CHECK: #[[VECTORS:.+]] = #ttg.blocked<{sizePerThread = [8],
// CHECK-LABEL: @reversed
// CHECK: tt.load %{{.*}} : tensor<4096x!tt.ptr<f16>, #[[VECTORS]]>
// CHECK: tt.store %{{.*}} : tensor<4096x!tt.ptr<f16>, #[[SCALARS]]>

module {
  tt.func public @reversed(%from: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f16> {tt.divisibility = 16 : i32}) {
    %zero = arith.constant dense<0> : tensor<4096xi32>
    %i = tt.make_range {start = 0 : i32, end = 4096 : i32} : tensor<4096xi32>
    %f = tt.splat %from : !tt.ptr<f16> -> tensor<4096x!tt.ptr<f16>>
    %p = tt.addptr %f, %i : tensor<4096x!tt.ptr<f16>>, tensor<4096xi32>
    %v = tt.load %p : tensor<4096x!tt.ptr<f16>>
    %down = arith.subi %zero, %i : tensor<4096xi32>
    %t = tt.splat %to : !tt.ptr<f16> -> tensor<4096x!tt.ptr<f16>>
    %q = tt.addptr %t, %down : tensor<4096x!tt.ptr<f16>>, tensor<4096xi32>
    tt.store %q, %v : tensor<4096x!tt.ptr<f16>>
    tt.return
  }
}
