// RUN: llopt %s --triton-rewrite-tensor-pointer --split-input-file | FileCheck %s

// An access computes the pointers of the tile's elements; only the dimension that it names is checked.
// CHECK-LABEL: @checked(
// CHECK-NOT: make_tensor_ptr
// CHECK: [[INSIDE:%.*]] = tt.broadcast {{.*}} : tensor<1x32xi1> -> tensor<16x32xi1>
// CHECK: [[ZERO:%.*]] = tt.splat {{.*}} : f32 -> tensor<16x32xf32>
// CHECK: tt.load {{%.*}}, [[INSIDE]], [[ZERO]] cacheModifier = cg : tensor<16x32x!tt.ptr<f32>>
tt.func public @checked(%p: !tt.ptr<f32>, %m: i64, %n: i64, %s: i64, %i: i32) -> tensor<16x32xf32> {
  %one = arith.constant 1 : i64
  %t = tt.make_tensor_ptr %p, [%m, %n], [%s, %one], [%i, %i] {order = array<i32: 1, 0>} : <tensor<16x32xf32>>
  %v = tt.load %t cacheModifier = cg {boundaryCheck = array<i32: 1>, padding = 1 : i32} : !tt.ptr<tensor<16x32xf32>>
  tt.return %v : tensor<16x32xf32>
}

// -----

// A loop carries the offset that changes instead of the pointer.
// CHECK-LABEL: @carried(
// CHECK-SAME: [[I:%[a-z0-9]+]]: i32)
// CHECK: scf.for {{.*}} iter_args([[OFFSET:%.*]] = [[I]]) -> (i32)
// CHECK: tt.store {{%.*}} : tensor<32x!tt.ptr<f32>>
// CHECK: [[NEXT:%.*]] = arith.addi [[OFFSET]], {{%.*}} : i32
// CHECK: scf.yield [[NEXT]] : i32
tt.func public @carried(%p: !tt.ptr<f32>, %n: i64, %v: tensor<32xf32>, %i: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %ten = arith.constant 10 : i32
  %step = arith.constant 32 : i32
  %stride = arith.constant 1 : i64
  %t = tt.make_tensor_ptr %p, [%n], [%stride], [%i] {order = array<i32: 0>} : <tensor<32xf32>>
  %end = scf.for %k = %zero to %ten step %one iter_args(%at = %t) -> (!tt.ptr<tensor<32xf32>>) : i32 {
    tt.store %at, %v : !tt.ptr<tensor<32xf32>>
    %next = tt.advance %at, [%step] : <tensor<32xf32>>
    scf.yield %next : !tt.ptr<tensor<32xf32>>
  }
  tt.return
}

// -----

// What follows the loop goes on at the offset where it ended.
// CHECK-LABEL: @after(
// CHECK: [[LAST:%.*]] = scf.for
// CHECK: arith.extsi [[LAST]] : i32 to i64
// CHECK: tt.load
tt.func public @after(%p: !tt.ptr<f32>, %n: i64, %i: i32) -> tensor<32xf32> {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %stride = arith.constant 1 : i64
  %t = tt.make_tensor_ptr %p, [%n], [%stride], [%zero] {order = array<i32: 0>} : <tensor<32xf32>>
  %end = scf.for %k = %zero to %i step %one iter_args(%at = %t) -> (!tt.ptr<tensor<32xf32>>) : i32 {
    %next = tt.advance %at, [%k] : <tensor<32xf32>>
    scf.yield %next : !tt.ptr<tensor<32xf32>>
  }
  %v = tt.load %end : !tt.ptr<tensor<32xf32>>
  tt.return %v : tensor<32xf32>
}
