// RUN: split-file %s %t
// RUN: llopt %t/doubles.mlir --assign-layouts=target=cuda:80 --canonicalize --cse | FileCheck %t/doubles.mlir
// RUN: llopt compile %t/doubles.mlir --target cuda:80 | FileCheck %t/doubles.mlir --check-prefix=PTX
// RUN: llopt %t/bytes.mlir --assign-layouts=target=cuda:75 --canonicalize --cse | FileCheck %t/bytes.mlir
// RUN: llopt compile %t/bytes.mlir --target cuda:75 | FileCheck %t/bytes.mlir --check-prefix=PTX

// Instructions of eight rows compute the tile of sixteen that the only encoding of warp products has.

//--- doubles.mlir
// CHECK: #[[MMA:.+]] = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 4], instrShape = [16, 8]}>
// PTX-COUNT-32: mma.sync.aligned.m8n8k4.row.col.f64
module {
  // 16x32 doubles: each of four warps has a tile.

  // CHECK-LABEL: @doubles
  // CHECK: tt.dot {{.*}} -> tensor<16x32xf64, #[[MMA]]>
  tt.func public @doubles(%a: !tt.ptr<f64> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f64> {tt.divisibility = 16 : i32}, %c: !tt.ptr<f64> {tt.divisibility = 16 : i32}) {
    %z = arith.constant dense<0.0> : tensor<16x32xf64>
    %r0 = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
    %c0 = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %re0 = tt.expand_dims %r0 {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
    %ce0 = tt.expand_dims %c0 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %k0 = arith.constant dense<64> : tensor<16x1xi32>
    %m0 = arith.muli %re0, %k0 : tensor<16x1xi32>
    %mb0 = tt.broadcast %m0 : tensor<16x1xi32> -> tensor<16x64xi32>
    %cb0 = tt.broadcast %ce0 : tensor<1x64xi32> -> tensor<16x64xi32>
    %o0 = arith.addi %mb0, %cb0 : tensor<16x64xi32>
    %s0 = tt.splat %a : !tt.ptr<f64> -> tensor<16x64x!tt.ptr<f64>>
    %p0 = tt.addptr %s0, %o0 : tensor<16x64x!tt.ptr<f64>>, tensor<16x64xi32>
    %r1 = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %c1 = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
    %re1 = tt.expand_dims %r1 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %ce1 = tt.expand_dims %c1 {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %k1 = arith.constant dense<32> : tensor<64x1xi32>
    %m1 = arith.muli %re1, %k1 : tensor<64x1xi32>
    %mb1 = tt.broadcast %m1 : tensor<64x1xi32> -> tensor<64x32xi32>
    %cb1 = tt.broadcast %ce1 : tensor<1x32xi32> -> tensor<64x32xi32>
    %o1 = arith.addi %mb1, %cb1 : tensor<64x32xi32>
    %s1 = tt.splat %b : !tt.ptr<f64> -> tensor<64x32x!tt.ptr<f64>>
    %p1 = tt.addptr %s1, %o1 : tensor<64x32x!tt.ptr<f64>>, tensor<64x32xi32>
    %r2 = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
    %c2 = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
    %re2 = tt.expand_dims %r2 {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
    %ce2 = tt.expand_dims %c2 {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %k2 = arith.constant dense<32> : tensor<16x1xi32>
    %m2 = arith.muli %re2, %k2 : tensor<16x1xi32>
    %mb2 = tt.broadcast %m2 : tensor<16x1xi32> -> tensor<16x32xi32>
    %cb2 = tt.broadcast %ce2 : tensor<1x32xi32> -> tensor<16x32xi32>
    %o2 = arith.addi %mb2, %cb2 : tensor<16x32xi32>
    %s2 = tt.splat %c : !tt.ptr<f64> -> tensor<16x32x!tt.ptr<f64>>
    %p2 = tt.addptr %s2, %o2 : tensor<16x32x!tt.ptr<f64>>, tensor<16x32xi32>
    %x = tt.load %p0 : tensor<16x64x!tt.ptr<f64>>
    %y = tt.load %p1 : tensor<64x32x!tt.ptr<f64>>
    %d = tt.dot %x, %y, %z : tensor<16x64xf64> * tensor<64x32xf64> -> tensor<16x32xf64>
    tt.store %p2, %d : tensor<16x32x!tt.ptr<f64>>
    tt.return
  }
}

//--- bytes.mlir
// CHECK: #[[MMA:.+]] = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [{{.*}}], instrShape = [16, 8]}>
// PTX: mma.sync.aligned.m8n8k16.row.col
module {
  // Bytes on Turing.

  // CHECK-LABEL: @bytes
  // CHECK: tt.dot {{.*}} -> tensor<32x32xi32, #[[MMA]]>
  tt.func public @bytes(%a: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %b: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %c: !tt.ptr<i32> {tt.divisibility = 16 : i32}) {
    %z = arith.constant dense<0> : tensor<32x32xi32>
    %r0 = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
    %c0 = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
    %re0 = tt.expand_dims %r0 {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
    %ce0 = tt.expand_dims %c0 {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %k0 = arith.constant dense<32> : tensor<32x1xi32>
    %m0 = arith.muli %re0, %k0 : tensor<32x1xi32>
    %mb0 = tt.broadcast %m0 : tensor<32x1xi32> -> tensor<32x32xi32>
    %cb0 = tt.broadcast %ce0 : tensor<1x32xi32> -> tensor<32x32xi32>
    %o0 = arith.addi %mb0, %cb0 : tensor<32x32xi32>
    %s0 = tt.splat %a : !tt.ptr<i8> -> tensor<32x32x!tt.ptr<i8>>
    %p0 = tt.addptr %s0, %o0 : tensor<32x32x!tt.ptr<i8>>, tensor<32x32xi32>
    %r1 = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
    %c1 = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
    %re1 = tt.expand_dims %r1 {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
    %ce1 = tt.expand_dims %c1 {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %k1 = arith.constant dense<32> : tensor<32x1xi32>
    %m1 = arith.muli %re1, %k1 : tensor<32x1xi32>
    %mb1 = tt.broadcast %m1 : tensor<32x1xi32> -> tensor<32x32xi32>
    %cb1 = tt.broadcast %ce1 : tensor<1x32xi32> -> tensor<32x32xi32>
    %o1 = arith.addi %mb1, %cb1 : tensor<32x32xi32>
    %s1 = tt.splat %b : !tt.ptr<i8> -> tensor<32x32x!tt.ptr<i8>>
    %p1 = tt.addptr %s1, %o1 : tensor<32x32x!tt.ptr<i8>>, tensor<32x32xi32>
    %r2 = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
    %c2 = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
    %re2 = tt.expand_dims %r2 {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
    %ce2 = tt.expand_dims %c2 {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %k2 = arith.constant dense<32> : tensor<32x1xi32>
    %m2 = arith.muli %re2, %k2 : tensor<32x1xi32>
    %mb2 = tt.broadcast %m2 : tensor<32x1xi32> -> tensor<32x32xi32>
    %cb2 = tt.broadcast %ce2 : tensor<1x32xi32> -> tensor<32x32xi32>
    %o2 = arith.addi %mb2, %cb2 : tensor<32x32xi32>
    %s2 = tt.splat %c : !tt.ptr<i32> -> tensor<32x32x!tt.ptr<i32>>
    %p2 = tt.addptr %s2, %o2 : tensor<32x32x!tt.ptr<i32>>, tensor<32x32xi32>
    %x = tt.load %p0 : tensor<32x32x!tt.ptr<i8>>
    %y = tt.load %p1 : tensor<32x32x!tt.ptr<i8>>
    %d = tt.dot %x, %y, %z : tensor<32x32xi8> * tensor<32x32xi8> -> tensor<32x32xi32>
    tt.store %p2, %d : tensor<32x32x!tt.ptr<i32>>
    tt.return
  }
}
