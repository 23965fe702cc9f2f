// RUN: llopt %s --choose-offsets | FileCheck %s

// A loop that goes around a cycle: the number that is added to all pointers is chosen, and the conditional is gone.
// CHECK-LABEL: @cycle(
// CHECK-SAME: %[[P:[^:]*]]: tensor<64x128x!tt.ptr<f16>>, %[[LAST:[^:]*]]: i1, %[[STEP:[^:]*]]: i32, %[[STEPS:[^:]*]]: i32
// CHECK-DAG: %[[EXTENT:.*]] = arith.muli %[[STEP]], %[[STEPS]] : i32
// CHECK-DAG: %[[BACK:.*]] = arith.subi %{{.*}}, %[[EXTENT]] : i32
// CHECK: %[[N:.*]] = arith.select %[[LAST]], %[[BACK]], %[[STEP]] : i32
// CHECK: %[[ALL:.*]] = tt.splat %[[N]] : i32 -> tensor<64x128xi32>
// CHECK: tt.addptr %[[P]], %[[ALL]]
// CHECK-NOT: scf.if
tt.func @cycle(%p: tensor<64x128x!tt.ptr<f16>>, %last: i1, %step: i32, %steps: i32) -> tensor<64x128x!tt.ptr<f16>> {
  %next = scf.if %last -> (tensor<64x128x!tt.ptr<f16>>) {
    %zero = arith.constant 0 : i32
    %extent = arith.muli %step, %steps : i32
    %back = arith.subi %zero, %extent : i32
    %all = tt.splat %back : i32 -> tensor<64x128xi32>
    %first = tt.addptr %p, %all : tensor<64x128x!tt.ptr<f16>>, tensor<64x128xi32>
    scf.yield %first : tensor<64x128x!tt.ptr<f16>>
  } else {
    %all = tt.splat %step : i32 -> tensor<64x128xi32>
    %second = tt.addptr %p, %all : tensor<64x128x!tt.ptr<f16>>, tensor<64x128xi32>
    scf.yield %second : tensor<64x128x!tt.ptr<f16>>
  }
  tt.return %next : tensor<64x128x!tt.ptr<f16>>
}

// A branch that adds a constant, and one that adds nothing.
// CHECK-LABEL: @sometimes(
// CHECK: %[[N:.*]] = arith.select %{{.*}}, %c-8_i64, %c0_i64 : i64
// CHECK: tt.splat %[[N]] : i64 -> tensor<16xi64>
tt.func @sometimes(%p: tensor<16x!tt.ptr<f32>>, %last: i1) -> tensor<16x!tt.ptr<f32>> {
  %back = arith.constant dense<-8> : tensor<16xi64>
  %next = scf.if %last -> (tensor<16x!tt.ptr<f32>>) {
    %first = tt.addptr %p, %back : tensor<16x!tt.ptr<f32>>, tensor<16xi64>
    scf.yield %first : tensor<16x!tt.ptr<f32>>
  } else {
    scf.yield %p : tensor<16x!tt.ptr<f32>>
  }
  tt.return %next : tensor<16x!tt.ptr<f32>>
}

// What may not be computed without the condition, as a division by what may be zero, other pointers, and offsets that differ
// from element to element stay in their branches.
// CHECK-LABEL: @stays(
// CHECK: scf.if
// CHECK-NOT: arith.select
tt.func @stays(%p: tensor<16x!tt.ptr<f32>>, %q: tensor<16x!tt.ptr<f32>>, %o: tensor<16xi32>, %last: i1, %n: i32, %m: i32) -> (tensor<16x!tt.ptr<f32>>, tensor<16x!tt.ptr<f32>>, tensor<16x!tt.ptr<f32>>) {
  %divided = scf.if %last -> (tensor<16x!tt.ptr<f32>>) {
    %part = arith.divsi %n, %m : i32
    %all = tt.splat %part : i32 -> tensor<16xi32>
    %first = tt.addptr %p, %all : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    scf.yield %first : tensor<16x!tt.ptr<f32>>
  } else {
    scf.yield %p : tensor<16x!tt.ptr<f32>>
  }
  %others = scf.if %last -> (tensor<16x!tt.ptr<f32>>) {
    %all = tt.splat %n : i32 -> tensor<16xi32>
    %first = tt.addptr %p, %all : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    scf.yield %first : tensor<16x!tt.ptr<f32>>
  } else {
    scf.yield %q : tensor<16x!tt.ptr<f32>>
  }
  %elements = scf.if %last -> (tensor<16x!tt.ptr<f32>>) {
    %first = tt.addptr %p, %o : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    scf.yield %first : tensor<16x!tt.ptr<f32>>
  } else {
    scf.yield %p : tensor<16x!tt.ptr<f32>>
  }
  tt.return %divided, %others, %elements : tensor<16x!tt.ptr<f32>>, tensor<16x!tt.ptr<f32>>, tensor<16x!tt.ptr<f32>>
}
