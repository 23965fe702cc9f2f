// RUN: llopt %s --decompose-scaled-dot --split-input-file | FileCheck %s --check-prefixes=CHECK,ALL
// RUN: llopt %s --pass-pipeline='builtin.module(decompose-scaled-dot{target=hip:gfx950})' --split-input-file | FileCheck %s --check-prefixes=CHECK,KEPT

// Without layouts: four bits become bfloat16, the scale is the exponent of one, and 0 is a denormal, and 255 says "not a number".
// CHECK-LABEL: @fp4
// CHECK: %[[A:.*]] = ttg.fp4_to_fp %arg0 {axis = 1 : i32} : tensor<32x32xi8> -> tensor<32x64xbf16>
// CHECK: %[[WIDE:.*]] = arith.extui %arg1 : tensor<32x2xi8> to tensor<32x2xi16>
// CHECK: %[[SHIFTED:.*]] = arith.shli %[[WIDE]]
// CHECK: %[[LEAST:.*]] = arith.maxui %[[SHIFTED]]
// CHECK: %[[FLOAT:.*]] = tt.bitcast %[[LEAST]] : tensor<32x2xi16> -> tensor<32x2xbf16>
// CHECK: %[[IS_NAN:.*]] = arith.cmpi eq, %arg1
// CHECK: %[[SCALE:.*]] = arith.select %[[IS_NAN]], %{{.*}}, %[[FLOAT]]
// CHECK: tt.expand_dims %[[SCALE]] {axis = 2 : i32} : tensor<32x2xbf16> -> tensor<32x2x1xbf16>
// CHECK: tt.broadcast %{{.*}} : tensor<32x2x1xbf16> -> tensor<32x2x32xbf16>
// CHECK: %[[SCALES:.*]] = tt.reshape %{{.*}} : tensor<32x2x32xbf16> -> tensor<32x64xbf16>
// CHECK: %[[LEFT:.*]] = arith.mulf %[[A]], %[[SCALES]]
// CHECK: tt.dot %[[LEFT]], %arg2, %arg3 : tensor<32x64xbf16> * tensor<64x32xbf16> -> tensor<32x32xf32>
tt.func @fp4(%a: tensor<32x32xi8>, %s: tensor<32x2xi8>, %b: tensor<64x32xbf16>, %c: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %d = tt.dot_scaled %a scale %s, %b, %c lhs = e2m1 rhs = bf16 {fastMath = false} : tensor<32x32xi8>, tensor<32x2xi8> * tensor<64x32xbf16> -> tensor<32x32xf32>
  tt.return %d : tensor<32x32xf32>
}

// With halves everything is a half; scales of the second operand are transposed; fast mathematics knows no 255.
// CHECK-LABEL: @half
// CHECK: tt.fp_to_fp %arg1 : tensor<64x32xf8E4M3FN> -> tensor<64x32xf16>
// CHECK: %[[SCALE:.*]] = tt.trans %arg2 {order = array<i32: 1, 0>}
// CHECK: arith.extui %[[SCALE]] : tensor<2x32xi8> to tensor<2x32xi32>
// CHECK: arith.truncf %{{.*}} : tensor<2x32xf32> to tensor<2x32xf16>
// CHECK-NOT: arith.select
// CHECK: tt.broadcast %{{.*}} : tensor<2x1x32xf16> -> tensor<2x32x32xf16>
// CHECK: tt.dot %arg0
tt.func @half(%a: tensor<32x64xf16>, %b: tensor<64x32xf8E4M3FN>, %s: tensor<32x2xi8>, %c: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %d = tt.dot_scaled %a, %b scale %s, %c lhs = fp16 rhs = e4m3 {fastMath = true} : tensor<32x64xf16> * tensor<64x32xf8E4M3FN>, tensor<32x2xi8> -> tensor<32x32xf32>
  tt.return %d : tensor<32x32xf32>
}

// Six bits are moved to the places of a half's; bytes may stand for eight bits.
// CHECK-LABEL: @bits
// CHECK: %[[SIGN:.*]] = arith.shli
// CHECK: %[[BITS:.*]] = arith.shli
// CHECK: %[[BOTH:.*]] = arith.ori %[[SIGN]], %[[BITS]]
// CHECK: %[[SMALL:.*]] = tt.bitcast %[[BOTH]] : tensor<32x64xi16> -> tensor<32x64xf16>
// CHECK: arith.mulf %[[SMALL]], %{{.*}} : tensor<32x64xf16>
// CHECK: tt.bitcast %arg1 : tensor<64x32xi8> -> tensor<64x32xf8E5M2>
// CHECK: tt.dot
tt.func @bits(%a: tensor<32x64xi8>, %b: tensor<64x32xi8>, %c: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %d = tt.dot_scaled %a, %b, %c lhs = e2m3 rhs = e5m2 {fastMath = true} : tensor<32x64xi8> * tensor<64x32xi8> -> tensor<32x32xf32>
  tt.return %d : tensor<32x32xf32>
}

// -----

#mma = #ttg.amd_mfma<{version = 4, warpsPerCTA = [1, 1], instrShape = [32, 32, 64], isTransposed = true}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 16}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 16}>
#s = #ttg.linear<{register = [[0, 2]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 1]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 64 : i32, ttg.target = "hip:gfx950"} {

// Operands that are laid out for a unit that takes scales stay, if the target has one; else only scales move.
// CHECK-LABEL: @unit
// KEPT: tt.dot_scaled
// ALL: tt.fp_to_fp %arg0 : tensor<32x128xf8E4M3FN, #{{.*}}> -> tensor<32x128xbf16
// ALL: ttg.convert_layout %{{.*}} : tensor<32x4xbf16
// ALL-NOT: ttg.convert_layout
// ALL: tt.dot
tt.func @unit(%a: tensor<32x128xf8E4M3FN, #a>, %s: tensor<32x4xi8, #s>, %b: tensor<128x32xf8E4M3FN, #b>, %c: tensor<32x32xf32, #mma>) -> tensor<32x32xf32, #mma> {
  %d = tt.dot_scaled %a scale %s, %b, %c lhs = e4m3 rhs = e4m3 {fastMath = false} : tensor<32x128xf8E4M3FN, #a>, tensor<32x4xi8, #s> * tensor<128x32xf8E4M3FN, #b> -> tensor<32x32xf32, #mma>
  tt.return %d : tensor<32x32xf32, #mma>
}
}

// -----

#threads = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 64], warpsPerCTA = [2, 2], order = [1, 0]}>
#s = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [16, 4], warpsPerCTA = [4, 1], order = [1, 0]}>

module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32, ttg.target = "hip:gfx950"} {

// A product for threads is one for the unit once its operands have 16 bits.
// CHECK-LABEL: @threads
// KEPT: %[[SUM:.*]] = ttg.convert_layout %{{.*}} : tensor<64x64xf32, #blocked{{.*}}> -> tensor<64x64xf32, #mma>
// KEPT: tt.dot %{{.*}}, %{{.*}}, %[[SUM]] : tensor<64x64xbf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 8}>>
// KEPT: ttg.convert_layout %{{.*}} : tensor<64x64xf32, #mma> -> tensor<64x64xf32, #blocked{{.*}}>
tt.func @threads(%a: tensor<64x64xf8E4M3FN, #threads>, %s: tensor<64x2xi8, #s>, %b: tensor<64x64xf8E4M3FN, #threads>, %c: tensor<64x64xf32, #threads>) -> tensor<64x64xf32, #threads> {
  %d = tt.dot_scaled %a scale %s, %b scale %s, %c lhs = e4m3 rhs = e4m3 {fastMath = false} : tensor<64x64xf8E4M3FN, #threads>, tensor<64x2xi8, #s> * tensor<64x64xf8E4M3FN, #threads>, tensor<64x2xi8, #s> -> tensor<64x64xf32, #threads>
  tt.return %d : tensor<64x64xf32, #threads>
}
}
