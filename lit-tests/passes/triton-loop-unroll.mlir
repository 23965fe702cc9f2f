// RUN: llopt %s --triton-loop-unroll --split-input-file | FileCheck %s

// A loop of unknown length is unrolled as often as it says; what is left runs in a loop that is not pipelined.

// CHECK-LABEL: @of_unknown_length
tt.func public @of_unknown_length(%p: !tt.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // CHECK: %[[MAIN:.*]] = scf.for %[[I:.*]] = %{{.*}} to %[[MIDDLE:.*]] step %{{.*}} iter_args(%[[S:.*]] = %{{.*}}) -> (i32)
  // CHECK-NEXT: %[[FIRST:.*]] = arith.addi %[[S]], %[[I]] : i32
  // CHECK-NEXT: %[[NEXT:.*]] = arith.addi %[[I]], %{{.*}} : i32
  // CHECK-NEXT: %[[SECOND:.*]] = arith.addi %[[FIRST]], %[[NEXT]] : i32
  // CHECK-NEXT: scf.yield %[[SECOND]] : i32
  // CHECK: scf.for %{{.*}} = %[[MIDDLE]] to %{{.*}} step %{{.*}} iter_args(%{{.*}} = %[[MAIN]])
  // CHECK: } {tt.num_stages = 1 : i32}
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %c0) -> (i32) : i32 {
    %t = arith.addi %s, %i : i32
    scf.yield %t : i32
  } {tt.loop_unroll_factor = 2 : i32}
  tt.store %p, %sum : !tt.ptr<i32>
  tt.return
}

// -----

// Where nothing is left there is one loop; other attributes stay with it.

// CHECK-LABEL: @of_six_iterations
tt.func public @of_six_iterations(%p: !tt.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c6 = arith.constant 6 : i32
  // CHECK: scf.for
  // CHECK-COUNT-3: tt.store
  // CHECK: } {tt.flatten}
  // CHECK-NOT: scf.for
  scf.for %i = %c0 to %c6 step %c1 : i32 {
    %q = tt.addptr %p, %i : !tt.ptr<i32>, i32
    tt.store %q, %i : !tt.ptr<i32>
  } {tt.flatten, tt.loop_unroll_factor = 3 : i32}
  tt.return
}

// -----

// A factor of one, and one of more iterations than there are, leave the loop as it is.

// CHECK-LABEL: @not_at_all
tt.func public @not_at_all(%p: !tt.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  // CHECK: scf.for
  // CHECK-COUNT-1: tt.store
  // CHECK: } {tt.loop_unroll_factor = 1 : i32}
  scf.for %i = %c0 to %n step %c1 : i32 {
    %q = tt.addptr %p, %i : !tt.ptr<i32>, i32
    tt.store %q, %i : !tt.ptr<i32>
  } {tt.loop_unroll_factor = 1 : i32}
  // CHECK: scf.for
  // CHECK-COUNT-1: tt.store
  // CHECK: }
  scf.for %i = %c0 to %c2 step %c1 : i32 {
    %q = tt.addptr %p, %i : !tt.ptr<i32>, i32
    tt.store %q, %i : !tt.ptr<i32>
  } {tt.loop_unroll_factor = 3 : i32}
  tt.return
}

// -----

// Bounds without a sign are compared without one.

// CHECK-LABEL: @without_sign
tt.func public @without_sign(%p: !tt.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // CHECK: arith.cmpi ult, %{{.*}}, %arg1 : i32
  // CHECK: scf.for unsigned
  // CHECK: scf.for unsigned
  scf.for unsigned %i = %c0 to %n step %c1 : i32 {
    %q = tt.addptr %p, %i : !tt.ptr<i32>, i32
    tt.store %q, %i : !tt.ptr<i32>
  } {tt.loop_unroll_factor = 2 : i32}
  tt.return
}
