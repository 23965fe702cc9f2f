// RUN: llopt %s --canonicalize --split-input-file | FileCheck %s

// CHECK-LABEL: @constants
tt.func @constants() -> (tensor<4x1xi32>, tensor<8xi32>, tensor<1xi32>, tensor<4x4xf32>) {
  // CHECK-DAG: arith.constant dense<7> : tensor<4x1xi32>
  // CHECK-DAG: arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : tensor<8xi32>
  // CHECK-DAG: arith.constant dense<5> : tensor<1xi32>
  // CHECK-DAG: arith.constant dense<2.500000e+00> : tensor<4x4xf32>
  // CHECK-NOT: tt.{{splat|reshape|expand_dims|broadcast|make_range}}
  %seven = arith.constant 7 : i32
  %half = arith.constant 2.5 : f32
  %grid = arith.constant dense<[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi32>
  %0 = tt.splat %seven : i32 -> tensor<4xi32>
  %1 = tt.expand_dims %0 {axis = 1 : i32} : tensor<4xi32> -> tensor<4x1xi32>
  %2 = tt.reshape %grid : tensor<2x4xi32> -> tensor<8xi32>
  %3 = tt.make_range {start = 5 : i32, end = 6 : i32} : tensor<1xi32>
  %4 = tt.splat %half : f32 -> tensor<4x1xf32>
  %5 = tt.broadcast %4 : tensor<4x1xf32> -> tensor<4x4xf32>
  tt.return %1, %2, %3, %5 : tensor<4x1xi32>, tensor<8xi32>, tensor<1xi32>, tensor<4x4xf32>
}

// -----

// CHECK-LABEL: @zeros_of_formats
tt.func @zeros_of_formats() -> (tensor<4xf8E5M2>, tensor<4xf8E4M3FNUZ>, f16) {
  // CHECK-DAG: arith.constant dense<-0.000000e+00> : tensor<4xf8E5M2>
  // CHECK-DAG: arith.constant dense<0.000000e+00> : tensor<4xf8E4M3FNUZ>
  // CHECK-DAG: arith.constant 0.000000e+00 : f16
  // CHECK-NOT: tt.fp_to_fp
  %minus = arith.constant dense<-0.0> : tensor<4xf32>
  %plus = arith.constant 0.0 : f32
  %0 = tt.fp_to_fp %minus, rounding = rtne : tensor<4xf32> -> tensor<4xf8E5M2>
  %1 = tt.fp_to_fp %minus, rounding = rtne : tensor<4xf32> -> tensor<4xf8E4M3FNUZ>
  %2 = tt.fp_to_fp %plus, rounding = rtne : f32 -> f16
  tt.return %0, %1, %2 : tensor<4xf8E5M2>, tensor<4xf8E4M3FNUZ>, f16
}

// -----

// CHECK-LABEL: @bits
tt.func @bits(%x: tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>, i32) {
  // CHECK-DAG: arith.constant dense<1.000000e+00> : tensor<4xf32>
  // CHECK-DAG: arith.constant dense<0> : tensor<4xi32>
  // CHECK-DAG: arith.constant 1 : i32
  // CHECK-NOT: tt.mulhiui
  %one_bits = arith.constant dense<0x3F800000> : tensor<4xi32>
  %one = arith.constant dense<1> : tensor<4xi32>
  %big = arith.constant 0x80000000 : i32
  %two = arith.constant 2 : i32
  %0 = tt.bitcast %one_bits : tensor<4xi32> -> tensor<4xf32>
  %1 = tt.mulhiui %x, %one : tensor<4xi32>
  %2 = tt.mulhiui %big, %two : i32
  tt.return %0, %1, %2 : tensor<4xf32>, tensor<4xi32>, i32
}

// -----

// CHECK-LABEL: @no_offset
// CHECK-SAME: (%[[PTR:.*]]: tensor<4x!tt.ptr<f32>>)
tt.func @no_offset(%ptr: tensor<4x!tt.ptr<f32>>) -> tensor<4x!tt.ptr<f32>> {
  // CHECK-NEXT: tt.return %[[PTR]]
  %zero = arith.constant dense<0> : tensor<4xi32>
  %0 = tt.addptr %ptr, %zero : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  tt.return %0 : tensor<4x!tt.ptr<f32>>
}

// -----

// CHECK-LABEL: @masks
// CHECK-SAME: (%[[PTR:.*]]: tensor<4x!tt.ptr<f32>>, %[[OTHER:.*]]: tensor<4xf32>)
tt.func @masks(%ptr: tensor<4x!tt.ptr<f32>>, %other: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NEXT: %[[ALL:.*]] = tt.load %[[PTR]] cacheModifier = cg {tag = 1 : i32} : tensor<4x!tt.ptr<f32>>
  // CHECK-NEXT: tt.store %[[PTR]], %[[OTHER]] evictionPolicy = evict_last : tensor<4x!tt.ptr<f32>>
  // CHECK-NEXT: tt.return %[[ALL]], %[[OTHER]]
  %all = arith.constant dense<true> : tensor<4xi1>
  %none = arith.constant dense<false> : tensor<4xi1>
  %0 = tt.load %ptr, %all, %other cacheModifier = cg {tag = 1 : i32} : tensor<4x!tt.ptr<f32>>
  %1 = tt.load %ptr, %none, %other : tensor<4x!tt.ptr<f32>>
  tt.store %ptr, %other, %all evictionPolicy = evict_last : tensor<4x!tt.ptr<f32>>
  tt.store %ptr, %other, %none : tensor<4x!tt.ptr<f32>>
  tt.return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// CHECK-LABEL: @scalar_masks
// CHECK-SAME: (%[[PTR:.*]]: !tt.ptr<f32>)
tt.func @scalar_masks(%ptr: !tt.ptr<f32>) -> f32 {
  // CHECK-NEXT: %[[VALUE:.*]] = tt.load %[[PTR]] : !tt.ptr<f32>
  // CHECK-NEXT: tt.return %[[VALUE]]
  %true = arith.constant true
  %false = arith.constant false
  %0 = tt.load %ptr, %true : !tt.ptr<f32>
  tt.store %ptr, %0, %false : !tt.ptr<f32>
  tt.return %0 : f32
}

// -----

// A load of nothing without `other` stays: nobody says what it gives.
// CHECK-LABEL: @undefined
tt.func @undefined(%ptr: tensor<4x!tt.ptr<f32>>) -> tensor<4xf32> {
  // CHECK: tt.load
  %none = arith.constant dense<false> : tensor<4xi1>
  %0 = tt.load %ptr, %none : tensor<4x!tt.ptr<f32>>
  tt.return %0 : tensor<4xf32>
}

// -----

// CHECK-LABEL: @views
// CHECK-SAME: (%[[X:.*]]: f32, %[[V:.*]]: tensor<4xf32>)
tt.func @views(%x: f32, %v: tensor<4xf32>) -> (tensor<4x1xf32>, tensor<16xf32>, tensor<1x8x4xf32>, f32) {
  // CHECK-DAG: %[[A:.*]] = tt.splat %[[X]] : f32 -> tensor<4x1xf32>
  // CHECK-DAG: %[[B:.*]] = tt.splat %[[X]] : f32 -> tensor<16xf32>
  // CHECK-DAG: %[[C:.*]] = tt.reshape %[[V]] : tensor<4xf32> -> tensor<1x1x4xf32>
  // CHECK-DAG: %[[D:.*]] = tt.broadcast %[[C]] : tensor<1x1x4xf32> -> tensor<1x8x4xf32>
  // CHECK: tt.return %[[A]], %[[B]], %[[D]], %[[X]]
  %0 = tt.splat %x : f32 -> tensor<4xf32>
  %1 = tt.expand_dims %0 {axis = 1 : i32} : tensor<4xf32> -> tensor<4x1xf32>
  %2 = tt.broadcast %1 : tensor<4x1xf32> -> tensor<4x4xf32>
  %3 = tt.reshape %2 : tensor<4x4xf32> -> tensor<16xf32>
  %4 = tt.reshape %v : tensor<4xf32> -> tensor<2x2xf32>
  %5 = tt.reshape %4 : tensor<2x2xf32> -> tensor<1x4xf32>
  %6 = tt.reshape %5 : tensor<1x4xf32> -> tensor<1x1x4xf32>
  %7 = tt.broadcast %6 : tensor<1x1x4xf32> -> tensor<1x2x4xf32>
  %8 = tt.broadcast %6 : tensor<1x1x4xf32> -> tensor<1x8x4xf32>
  %9 = tt.splat %x : f32 -> tensor<1xf32>
  %10 = tt.unsplat %9 : tensor<1xf32>
  tt.return %1, %3, %8, %10 : tensor<4x1xf32>, tensor<16xf32>, tensor<1x8x4xf32>, f32
}

// -----

// CHECK-LABEL: @broadcasts_last
// CHECK-SAME: (%[[V:.*]]: tensor<1x4xf32>)
tt.func @broadcasts_last(%v: tensor<1x4xf32>) -> tensor<8x8x4xf32> {
  // CHECK-NEXT: %[[A:.*]] = tt.expand_dims %[[V]] {axis = 0 : i32} : tensor<1x4xf32> -> tensor<1x1x4xf32>
  // CHECK-NEXT: %[[B:.*]] = tt.broadcast %[[A]] : tensor<1x1x4xf32> -> tensor<8x8x4xf32>
  // CHECK-NEXT: tt.return %[[B]]
  %0 = tt.broadcast %v : tensor<1x4xf32> -> tensor<8x4xf32>
  %1 = tt.expand_dims %0 {axis = 0 : i32} : tensor<8x4xf32> -> tensor<1x8x4xf32>
  %2 = tt.broadcast %1 : tensor<1x8x4xf32> -> tensor<8x8x4xf32>
  tt.return %2 : tensor<8x8x4xf32>
}

// -----

// CHECK-LABEL: @permutations
// CHECK-SAME: (%[[V:.*]]: tensor<2x4x8xf32>)
tt.func @permutations(%v: tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<8x2x4xf32>) {
  // CHECK-NEXT: %[[A:.*]] = tt.trans %[[V]] {order = array<i32: 2, 0, 1>} : tensor<2x4x8xf32> -> tensor<8x2x4xf32>
  // CHECK-NEXT: tt.return %[[V]], %[[A]]
  %0 = tt.trans %v {order = array<i32: 1, 2, 0>} : tensor<2x4x8xf32> -> tensor<4x8x2xf32>
  %1 = tt.trans %0 {order = array<i32: 2, 0, 1>} : tensor<4x8x2xf32> -> tensor<2x4x8xf32>
  %2 = tt.trans %0 {order = array<i32: 1, 2, 0>} : tensor<4x8x2xf32> -> tensor<8x2x4xf32>
  tt.return %1, %2 : tensor<2x4x8xf32>, tensor<8x2x4xf32>
}

// -----

// CHECK-LABEL: @halves
// CHECK-SAME: (%[[A:.*]]: tensor<4xf32>, %[[B:.*]]: tensor<4xf32>)
tt.func @halves(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NEXT: tt.return %[[B]], %[[A]]
  %0 = tt.join %a, %b : tensor<4xf32> -> tensor<4x2xf32>
  %1, %2 = tt.split %0 : tensor<4x2xf32> -> tensor<4xf32>
  tt.return %2, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// CHECK-LABEL: @asserts
tt.func @asserts(%c: tensor<4xi1>) {
  // CHECK-NOT: "always"
  // CHECK: tt.assert {{.*}}, "sometimes"
  %true = arith.constant dense<true> : tensor<4xi1>
  tt.assert %true, "always" : tensor<4xi1>
  tt.assert %c, "sometimes" : tensor<4xi1>
  tt.return
}

// -----

// CHECK-LABEL: @poison
tt.func @poison(%p: tensor<4x4x!tt.ptr<f32>>) -> tensor<4x4xf32> {
  // CHECK-NEXT: %[[P:.*]] = ub.poison : tensor<4x4xf32>
  // CHECK-NEXT: tt.return %[[P]]
  %0 = ub.poison : f32
  %1 = tt.splat %0 : f32 -> tensor<4xf32>
  %2 = tt.expand_dims %1 {axis = 0 : i32} : tensor<4xf32> -> tensor<1x4xf32>
  %3 = tt.broadcast %2 : tensor<1x4xf32> -> tensor<4x4xf32>
  tt.return %3 : tensor<4x4xf32>
}

// -----

// Values that are carried and never used go, with what makes them.
// CHECK-LABEL: @unused_carried
// CHECK-SAME: (%[[PTR:.*]]: tensor<4x!tt.ptr<f32>>, %[[STEP:.*]]: tensor<4xi32>)
tt.func @unused_carried(%ptr: tensor<4x!tt.ptr<f32>>, %step: tensor<4xi32>) -> tensor<4x!tt.ptr<f32>> {
  // CHECK: scf.for
  // CHECK-SAME: iter_args(%{{.*}} = %[[PTR]]) -> (tensor<4x!tt.ptr<f32>>)
  // CHECK-NOT: arith.addi
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %0:2 = scf.for %i = %c0 to %c8 step %c1 iter_args(%a = %ptr, %b = %c0) -> (tensor<4x!tt.ptr<f32>>, i32) : i32 {
    %1 = tt.addptr %a, %step : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
    %2 = arith.addi %b, %i : i32
    scf.yield %1, %2 : tensor<4x!tt.ptr<f32>>, i32
  }
  tt.return %0#0 : tensor<4x!tt.ptr<f32>>
}

// -----

// No offset moves a pointer to a block nowhere.
// CHECK-LABEL: @no_block_offset
// CHECK-SAME: (%[[P:.*]]: !tt.ptr<tensor<4x4xf32>>)
tt.func @no_block_offset(%p: !tt.ptr<tensor<4x4xf32>>) -> !tt.ptr<tensor<4x4xf32>> {
  // CHECK-NEXT: tt.return %[[P]]
  %zero = arith.constant 0 : i32
  %0 = tt.advance %p, [%zero, %zero] : <tensor<4x4xf32>>
  tt.return %0 : !tt.ptr<tensor<4x4xf32>>
}

// -----

// A turn happens only where the condition holds, so a turn that yields `true` leaves it as it was.
// CHECK-LABEL: @first_turn
// CHECK-SAME: (%[[C:.*]]: i1, %[[P:.*]]: !tt.ptr<i32>)
tt.func @first_turn(%c: i1, %p: !tt.ptr<i32>) {
  // CHECK: scf.while : () -> () {
  // CHECK-NEXT: scf.condition(%[[C]])
  %one = arith.constant 1 : i32
  %0 = scf.while (%held = %c) : (i1) -> i1 {
    scf.condition(%held) %held : i1
  } do {
  ^bb0(%again: i1):
    tt.store %p, %one : !tt.ptr<i32>
    scf.yield %again : i1
  }
  tt.return
}
