// A loop over programs chooses once between two versions of what each program does.
//
// RUN: llopt %s --split-input-file --unswitch-versions | FileCheck %s

// The condition of a program follows from its number. Those of all programs are computed before the loop, 128 at a time
// in 64 bits, with the first of them repeated beyond the last program. Then one of two loops over programs has no
// iteration, and hands what it carries on to the other. The second version hardly ever runs, so neither does its loop.
// CHECK-LABEL: @by_number(
// CHECK-SAME: %[[N:[^ ]*]]: i32, %[[LIMIT:[^ ]*]]: i32
// CHECK: %[[FIRST:.*]] = arith.extsi %[[BLOCK:.*]] : i32 to i64
// CHECK: %[[END:.*]] = arith.extsi %[[N]]
// CHECK: %[[ALWAYS:.*]] = scf.for %[[P:.*]] = %[[FIRST]] to %[[END]] step %{{.*}} iter_args(%[[SO_FAR:.*]] = %{{.*}}) -> (i1)
// CHECK: %[[IS_PROGRAM:.*]] = arith.cmpi slt, %[[NUMBER:.*]], %{{.*}} : tensor<128xi64>
// CHECK: %[[PROGRAM:.*]] = arith.select %[[IS_PROGRAM]], %[[NUMBER]]
// CHECK: %[[NARROW:.*]] = arith.trunci %[[PROGRAM]] : tensor<128xi64> to tensor<128xi32>
// CHECK: arith.muli %[[NARROW]]
// CHECK: arith.cmpi slt
// CHECK: %[[ONE:.*]] = "tt.reduce"
// CHECK: %[[BOTH:.*]] = arith.andi %[[SO_FAR]], %[[ONE]] : i1
// CHECK: scf.yield %[[BOTH]]
// CHECK: %[[WITHOUT:.*]] = arith.select %[[ALWAYS]], %[[BLOCK]], %[[N]]
// CHECK: %[[WITH:.*]] = arith.select %[[ALWAYS]], %[[N]], %[[BLOCK]]
// CHECK: %[[HANDED:.*]] = scf.for %{{.*}} = %[[BLOCK]] to %[[WITH]] step %{{.*}} iter_args(%{{.*}} = %c0
// CHECK-NOT: scf.if
// CHECK: scf.for
// CHECK: tt.call @first
// CHECK: scf.for %{{.*}} = %[[BLOCK]] to %[[WITHOUT]] step %{{.*}} iter_args(%{{.*}} = %[[HANDED]])
// CHECK-NOT: scf.if
// CHECK: tt.call @second
// CHECK: } {llopt.rare}
tt.func public @by_number(%n: i32, %limit: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c128 = arith.constant 128 : i32
  %block = tt.get_program_id x : i32
  %blocks = tt.get_num_programs x : i32
  %r = scf.for %p = %block to %n step %blocks iter_args(%x = %c0) -> (i32) : i32 {
    %m = arith.muli %p, %c128 : i32
    %few = arith.cmpi slt, %m, %limit : i32
    %y = scf.if %few -> (i32) {
      %s = scf.for %i = %c0 to %limit step %c1 iter_args(%t = %x) -> (i32) : i32 {
        %u = tt.call @first(%t) : (i32) -> i32
        scf.yield %u : i32
      }
      scf.yield %s : i32
    } else {
      %s = scf.for %i = %c0 to %limit step %c1 iter_args(%t = %x) -> (i32) : i32 {
        %u = tt.call @second(%t) : (i32) -> i32
        scf.yield %u : i32
      } {llopt.rare}
      scf.yield %s : i32
    } {llopt.versions}
    scf.yield %y : i32
  }
  tt.return
}

tt.func private @first(i32) -> i32
tt.func private @second(i32) -> i32

// -----

// Without the mark, the second block need not be right for all programs, and each program chooses.
// CHECK-LABEL: @of_the_author(
// CHECK-COUNT-1: scf.for
// CHECK: scf.if
tt.func public @of_the_author(%n: i32, %limit: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %p = %c0 to %n step %c1 : i32 {
    %few = arith.cmpi slt, %p, %limit : i32
    scf.if %few {
      scf.for %i = %c0 to %limit step %c1 : i32 {
        tt.call @first(%i) : (i32) -> ()
      }
    } else {
      tt.call @first(%p) : (i32) -> ()
    }
  }
  tt.return
}

tt.func private @first(i32)

// -----

// So it does where the condition follows from what the loop carries.
// CHECK-LABEL: @by_carried_number(
// CHECK-COUNT-1: scf.for
// CHECK: scf.if
tt.func public @by_carried_number(%n: i32, %limit: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %p = %c0 to %n step %c1 iter_args(%x = %c0) -> (i32) : i32 {
    %few = arith.cmpi slt, %x, %limit : i32
    scf.if %few {
      scf.for %i = %c0 to %limit step %c1 : i32 {
        tt.call @first(%i) : (i32) -> ()
      }
    } else {
      tt.call @first(%p) : (i32) -> ()
    } {llopt.versions}
    %y = arith.muli %p, %p : i32
    scf.yield %y : i32
  }
  tt.return
}

tt.func private @first(i32)
