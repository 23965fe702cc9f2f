// Carried numbers that count with a loop are computed from its induction variable.
//
// RUN: llopt %s --merge-inductions | FileCheck %s

// A second count of programs begins one step before the first and is advanced before its use: its next value is the
// induction variable, whatever the step.
// CHECK-LABEL: @counted_twice(
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} : i32 {
// CHECK-NEXT: tt.call @use(%[[I]])
// CHECK-NEXT: }
tt.func public @counted_twice(%n: i32) {
  %block = tt.get_program_id x : i32
  %blocks = tt.get_num_programs x : i32
  %before = arith.subi %block, %blocks : i32
  %last = scf.for %i = %block to %n step %blocks iter_args(%j = %before) -> (i32) : i32 {
    %next = arith.addi %j, %blocks : i32
    tt.call @use(%next) : (i32) -> ()
    scf.yield %next : i32
  }
  tt.return
}

// A count from another number is a constant away. Its last value is used after the loop, so it stays carried.
// CHECK-LABEL: @from_another_number(
// CHECK: %[[LAST:.*]] = scf.for %[[I:.*]] = %c0{{.*}} to %{{.*}} step %c2{{.*}} iter_args(%{{.*}} = %c7{{.*}}) -> (i32) : i32 {
// CHECK-DAG: %[[NINE:.*]] = arith.constant 9 : i32
// CHECK-DAG: %[[NEXT:.*]] = arith.addi %[[I]], %[[NINE]]
// CHECK-DAG: %[[SEVEN:.*]] = arith.constant 7 : i32
// CHECK-DAG: %[[OWN:.*]] = arith.addi %[[I]], %[[SEVEN]]
// CHECK: tt.call @use(%[[OWN]])
// CHECK-NEXT: scf.yield %[[NEXT]]
// CHECK: tt.call @use(%[[LAST]])
tt.func public @from_another_number(%n: i32) {
  %c0 = arith.constant 0 : i32
  %c2 = arith.constant 2 : i32
  %c7 = arith.constant 7 : i32
  %last = scf.for %i = %c0 to %n step %c2 iter_args(%j = %c7) -> (i32) : i32 {
    tt.call @use(%j) : (i32) -> ()
    %next = arith.addi %j, %c2 : i32
    scf.yield %next : i32
  }
  tt.call @use(%last) : (i32) -> ()
  tt.return
}

// Another step, and an unknown distance.
// CHECK-LABEL: @not_congruent(
// CHECK: scf.for %{{.*}} = %{{.*}} iter_args(%[[J:.*]] = %{{.*}}, %[[K:.*]] = %{{.*}}) -> (i32, i32) : i32 {
// CHECK-NEXT: tt.call @use(%[[J]])
// CHECK-NEXT: tt.call @use(%[[K]])
// CHECK-NEXT: arith.addi %[[J]]
// CHECK-NEXT: arith.addi %[[K]]
tt.func public @not_congruent(%n: i32, %m: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %last:2 = scf.for %i = %c0 to %n step %c2 iter_args(%j = %c0, %k = %m) -> (i32, i32) : i32 {
    tt.call @use(%j) : (i32) -> ()
    tt.call @use(%k) : (i32) -> ()
    %next = arith.addi %j, %c1 : i32
    %after = arith.addi %k, %c2 : i32
    scf.yield %next, %after : i32, i32
  }
  tt.return
}

tt.func private @use(i32)
