// Iterations that divide know that the bound of their loop is positive.
//
// RUN: llopt %s --positive-bounds | FileCheck %s

!i = tensor<64xi32>
!p = tensor<64x!tt.ptr<f32>>

// Each program has `n` rows: where an iteration runs, the first one of its rows is not negative.
// CHECK-LABEL: @rows_of_a_program
// CHECK-SAME: %[[N:[a-z0-9]+]]: i32, %[[K:[a-z0-9]+]]: tensor
// CHECK: %[[ONE:.*]] = arith.constant 1 : i32
// CHECK: %[[M:.*]] = arith.maxsi %[[N]], %[[ONE]]
// CHECK: %[[FIRST:.*]] = arith.muli %{{.*}}, %[[M]]
// CHECK: %[[ALL:.*]] = tt.splat %[[FIRST]]
// CHECK: scf.for %{{.*}} to %[[N]]
// CHECK: %[[X:.*]] = arith.addi %[[ALL]]
// CHECK: arith.divsi %[[X]], %[[K]]
tt.func @rows_of_a_program(%n: i32, %k: !i) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %p = tt.get_program_id x : i32
  %first = arith.muli %p, %n : i32
  %all = tt.splat %first : i32 -> !i
  %lanes = tt.make_range {start = 0 : i32, end = 64 : i32} : !i
  scf.for %i = %c0 to %n step %c1 : i32 {
    %x = arith.addi %all, %lanes : !i
    %row = arith.divsi %x, %k : !i
    tt.print "row " {hex = false, isSigned = array<i32: 1>} : %row : !i
  }
  tt.return
}

// A quotient that is rounded up is positive where what is divided is, and so is the smaller one of two numbers. What the loop
// carries begins with the new value, as nothing else sees it.
// CHECK-LABEL: @groups
// CHECK-SAME: %[[N:[a-z0-9]+]]: i32, %[[MOST:[a-z0-9]+]]: i32
// CHECK: %[[C1:.*]] = arith.constant 1 : i32
// CHECK-DAG: %[[M:.*]] = arith.maxsi %[[N]], %{{.*}}
// CHECK-DAG: %[[FIRST:.*]] = tt.splat %[[M]]
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[FIRST]])
tt.func @groups(%n: i32, %most: i32, %k: !i) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c63 = arith.constant 63 : i32
  %c64 = arith.constant 64 : i32
  %more = arith.addi %n, %c63 : i32
  %groups = arith.divsi %more, %c64 : i32
  %bound = arith.minsi %groups, %most : i32
  %first = tt.splat %n : i32 -> !i
  %last = scf.for %i = %c0 to %bound step %c1 iter_args(%x = %first) -> (!i) : i32 {
    %row = arith.remsi %x, %k : !i
    tt.print "row " {hex = false, isSigned = array<i32: 1>} : %row : !i
    %next = arith.addi %x, %first : !i
    scf.yield %next : !i
  }
  tt.return
}

// Without an iteration the result is the initial value, whatever its sign; a first iteration that may be any number says
// nothing; and a loop of unsigned numbers has another order.
// CHECK-LABEL: @stays
// CHECK-NOT: arith.maxsi
// CHECK: tt.return
tt.func @stays(%n: i32, %from: i32, %k: !i) -> !i {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %all = tt.splat %n : i32 -> !i
  scf.for %i = %from to %n step %c1 : i32 {
    %row = arith.divsi %all, %k : !i
    tt.print "row " {hex = false, isSigned = array<i32: 1>} : %row : !i
  }
  scf.for unsigned %i = %c0 to %n step %c1 : i32 {
    %row = arith.divsi %all, %k : !i
    tt.print "row " {hex = false, isSigned = array<i32: 1>} : %row : !i
  }
  // A product may wrap: nothing is known of its factor.
  %c2 = arith.constant 2 : i32
  %twice = arith.muli %n, %c2 : i32
  scf.for %i = %c0 to %twice step %c1 : i32 {
    %row = arith.divsi %all, %k : !i
    tt.print "row " {hex = false, isSigned = array<i32: 1>} : %row : !i
  }
  tt.return %all : !i
}

// What a loop leaves behind is not changed, and a divisor is never the new number, which would be another one where no
// iteration runs.
// CHECK-LABEL: @results
// CHECK-SAME: %[[N:[a-z0-9]+]]: i32
// CHECK: %[[FIRST:.*]] = tt.splat %[[N]]
// CHECK: %[[KTH:.*]] = arith.divsi %{{.*}}, %[[FIRST]]
// CHECK: %[[M:.*]] = arith.maxsi
// CHECK: %[[ALL:.*]] = tt.splat %[[M]]
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[FIRST]])
// CHECK: arith.divsi %[[ALL]], %[[KTH]]
tt.func @results(%n: i32, %k: !i) -> !i {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %first = tt.splat %n : i32 -> !i
  %kth = arith.divsi %k, %first : !i
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%x = %first) -> (!i) : i32 {
    %row = arith.divsi %first, %kth : !i
    %next = arith.addi %x, %row : !i
    scf.yield %next : !i
  }
  tt.return %last : !i
}
