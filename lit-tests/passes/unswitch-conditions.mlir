// What all iterations of a loop decide alike is decided before it.
//
// RUN: llopt %s --unswitch-conditions | FileCheck %s

module {
  // Each version of the loop has one of the blocks, and no conditional.
  // CHECK-LABEL: @two_versions
  // CHECK: %[[IS_TWO:.+]] = arith.cmpf oeq, %arg1
  // CHECK: %[[SUM:.+]] = scf.if %[[IS_TWO]]
  // CHECK: scf.for
  // CHECK-NOT: scf.if
  // CHECK: arith.mulf
  // CHECK-NOT: math.exp
  // CHECK: else
  // CHECK: scf.for
  // CHECK-NOT: scf.if
  // CHECK: math.exp
  // CHECK: tt.return %[[SUM]]
  tt.func public @two_versions(%x: tensor<8xf32>, %p: f32, %n: i32) -> tensor<8xf32> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %two = arith.constant 2.0 : f32
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %x) -> (tensor<8xf32>) : i32 {
      %is_two = arith.cmpf oeq, %p, %two : f32
      %y = scf.if %is_two -> (tensor<8xf32>) {
        %square = arith.mulf %s, %s : tensor<8xf32>
        scf.yield %square : tensor<8xf32>
      } else {
        %power = math.exp %s : tensor<8xf32>
        scf.yield %power : tensor<8xf32>
      }
      %next = arith.addf %s, %y : tensor<8xf32>
      scf.yield %next : tensor<8xf32>
    }
    tt.return %sum : tensor<8xf32>
  }

  // A condition moves out of both loops. Without a second block, the second version does nothing in its place.
  // CHECK-LABEL: @out_of_both
  // CHECK: scf.if %arg1
  // CHECK: scf.for
  // CHECK: scf.for
  // CHECK-NOT: scf.if
  // CHECK: tt.store
  // CHECK: else
  // CHECK: scf.for
  // CHECK: scf.for
  // CHECK-NOT: tt.store
  // CHECK: tt.return
  tt.func public @out_of_both(%to: !tt.ptr<i32>, %writes: i1, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %i = %c0 to %n step %c1 : i32 {
      scf.for %j = %c0 to %n step %c1 : i32 {
        scf.if %writes {
          tt.store %to, %j : !tt.ptr<i32>
        }
      }
    }
    tt.return
  }

  // Iterations that decide differently decide for themselves.
  // CHECK-LABEL: @each_decides
  // CHECK-NOT: scf.if
  // CHECK: scf.for
  // CHECK: scf.if
  tt.func public @each_decides(%to: !tt.ptr<i32>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c3 = arith.constant 3 : i32
    scf.for %i = %c0 to %n step %c1 : i32 {
      %writes = arith.cmpi sgt, %i, %c3 : i32
      scf.if %writes {
        tt.store %to, %i : !tt.ptr<i32>
      }
    }
    tt.return
  }
}
