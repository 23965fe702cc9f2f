// Conditions that are the same for all numbers that programs and loops count.
//
// RUN: llopt %s --decide-conditions | FileCheck %s

!i = tensor<64xi32>
!x = tensor<64xf32>

// The numbers of iterations are not negative: what depends on that is done in all of them.
// CHECK-LABEL: @counts
// CHECK: scf.for
// CHECK-NOT: arith.cmpi
// CHECK-NOT: scf.if
// CHECK: arith.addf
tt.func @counts(%x: !x, %n: i32) -> !x {
  %zero = arith.constant dense<0.0> : !x
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (!x) : i32 {
    %runs = arith.cmpi sge, %i, %c0 : i32
    %next = scf.if %runs -> (!x) {
      %added = arith.addf %sum, %x : !x
      scf.yield %added : !x
    } else {
      scf.yield %sum : !x
    }
    scf.yield %next : !x
  }
  tt.return %r : !x
}

// A first iteration that may be any number may be negative, and masks stay.
// CHECK-LABEL: @starts_anywhere
// CHECK: scf.for
// CHECK: arith.cmpi sge
// CHECK: scf.if
// CHECK: arith.cmpi slt
tt.func @starts_anywhere(%x: !x, %first: i32, %n: i32) -> (!x, tensor<64xi1>) {
  %zero = arith.constant dense<0.0> : !x
  %size = arith.constant dense<128> : !i
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %lane = tt.make_range {start = 0 : i32, end = 64 : i32} : !i
  %r = scf.for %i = %first to %n step %c1 iter_args(%sum = %zero) -> (!x) : i32 {
    %runs = arith.cmpi sge, %i, %c0 : i32
    %next = scf.if %runs -> (!x) {
      %added = arith.addf %sum, %x : !x
      scf.yield %added : !x
    } else {
      scf.yield %sum : !x
    }
    scf.yield %next : !x
  }
  %mask = arith.cmpi slt, %lane, %size : !i
  tt.return %r, %mask : !x, tensor<64xi1>
}

// The block of a row that a program has, of four, is one of four: less than four, but nothing says that it is less than three.
// CHECK-LABEL: @remainder
// CHECK: %[[TRUE:.*]] = arith.constant true
// CHECK: %[[THREE:.*]] = arith.constant 3 : i32
// CHECK: %[[LESS:.*]] = arith.cmpi slt, %{{.*}}, %[[THREE]]
// CHECK: tt.return %[[TRUE]], %[[LESS]]
tt.func @remainder() -> (i1, i1) {
  %c3 = arith.constant 3 : i32
  %c4 = arith.constant 4 : i32
  %p = tt.get_program_id x : i32
  %block = arith.remsi %p, %c4 : i32
  %four = arith.cmpi slt, %block, %c4 : i32
  %three = arith.cmpi slt, %block, %c3 : i32
  tt.return %four, %three : i1, i1
}
