// RUN: llopt %s --assign-layouts=target=cuda:80 --canonicalize --cse --split-input-file --verify-layouts | FileCheck %s
// RUN: llopt %s --assign-layouts=target=hip:gfx942 --canonicalize --cse --split-input-file --verify-layouts | FileCheck %s
// Small products outside of loops leave room for many blocks, which work while one waits: what counts is what occupies a unit.

// A result is brought to its rows for one wide store, as pairs of halves would be sent to the cache in parts of sectors.

// CHECK: #[[ROWS:.+]] = #ttg.blocked<{sizePerThread = [1, {{[48]}}],
// CHECK: #[[UNIT:.+]] = #ttg.{{nvidia_mma|amd_mfma}}
// CHECK-LABEL: @in_rows
// CHECK: ttg.convert_layout %{{.+}} : tensor<32x32xf16, #[[UNIT]]> -> tensor<32x32xf16, #[[ROWS]]>
// CHECK-NEXT: tt.store %{{.+}} : tensor<32x32x!tt.ptr<f16>, #[[ROWS]]>

module {
  tt.func public @in_rows(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %z: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %s: i32 {tt.divisibility = 16 : i32}) {
    %none = arith.constant dense<0.0> : tensor<32x32xf32>
    %r = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
    %row = tt.expand_dims %r {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
    %column = tt.expand_dims %r {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %stride = tt.splat %s : i32 -> tensor<32x1xi32>
    %start = arith.muli %row, %stride : tensor<32x1xi32>
    %rows = tt.broadcast %start : tensor<32x1xi32> -> tensor<32x32xi32>
    %columns = tt.broadcast %column : tensor<1x32xi32> -> tensor<32x32xi32>
    %place = arith.addi %rows, %columns : tensor<32x32xi32>
    %xs = tt.splat %x : !tt.ptr<f16> -> tensor<32x32x!tt.ptr<f16>>
    %xp = tt.addptr %xs, %place : tensor<32x32x!tt.ptr<f16>>, tensor<32x32xi32>
    %ys = tt.splat %y : !tt.ptr<f16> -> tensor<32x32x!tt.ptr<f16>>
    %yp = tt.addptr %ys, %place : tensor<32x32x!tt.ptr<f16>>, tensor<32x32xi32>
    %zs = tt.splat %z : !tt.ptr<f16> -> tensor<32x32x!tt.ptr<f16>>
    %zp = tt.addptr %zs, %place : tensor<32x32x!tt.ptr<f16>>, tensor<32x32xi32>
    %a = tt.load %xp : tensor<32x32x!tt.ptr<f16>>
    %b = tt.load %yp : tensor<32x32x!tt.ptr<f16>>
    %product = tt.dot %a, %b, %none : tensor<32x32xf16> * tensor<32x32xf16> -> tensor<32x32xf32>
    %half = arith.truncf %product : tensor<32x32xf32> to tensor<32x32xf16>
    tt.store %zp, %half : tensor<32x32x!tt.ptr<f16>>
    tt.return
  }
}

// -----

// Threads would convert each element of both factors before they multiply it, so even a product with two elements for each of
// them is computed by a matrix unit.

// CHECK: #[[UNIT:.+]] = #ttg.{{nvidia_mma|amd_mfma}}
// CHECK-LABEL: @by_unit
// CHECK: tt.dot {{.+}} -> tensor<16x16xf32, #[[UNIT]]>

module {
  tt.func public @by_unit(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %z: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %s: i32 {tt.divisibility = 16 : i32}) {
    %none = arith.constant dense<0.0> : tensor<16x16xf32>
    %r = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
    %row = tt.expand_dims %r {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
    %column = tt.expand_dims %r {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
    %stride = tt.splat %s : i32 -> tensor<16x1xi32>
    %start = arith.muli %row, %stride : tensor<16x1xi32>
    %rows = tt.broadcast %start : tensor<16x1xi32> -> tensor<16x16xi32>
    %columns = tt.broadcast %column : tensor<1x16xi32> -> tensor<16x16xi32>
    %place = arith.addi %rows, %columns : tensor<16x16xi32>
    %xs = tt.splat %x : !tt.ptr<f16> -> tensor<16x16x!tt.ptr<f16>>
    %xp = tt.addptr %xs, %place : tensor<16x16x!tt.ptr<f16>>, tensor<16x16xi32>
    %ys = tt.splat %y : !tt.ptr<f16> -> tensor<16x16x!tt.ptr<f16>>
    %yp = tt.addptr %ys, %place : tensor<16x16x!tt.ptr<f16>>, tensor<16x16xi32>
    %zs = tt.splat %z : !tt.ptr<f16> -> tensor<16x16x!tt.ptr<f16>>
    %zp = tt.addptr %zs, %place : tensor<16x16x!tt.ptr<f16>>, tensor<16x16xi32>
    %a = tt.load %xp : tensor<16x16x!tt.ptr<f16>>
    %b = tt.load %yp : tensor<16x16x!tt.ptr<f16>>
    %product = tt.dot %a, %b, %none : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
    %half = arith.truncf %product : tensor<16x16xf32> to tensor<16x16xf16>
    tt.store %zp, %half : tensor<16x16x!tt.ptr<f16>>
    tt.return
  }
}
