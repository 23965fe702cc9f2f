// What all iterations of a loop load alike is loaded before it, with what is computed of it alone; so is what they assert.
//
// RUN: llopt %s --hoist-loads | FileCheck %s

!p = tensor<8x!tt.ptr<f16>>
!x = tensor<8xf32>

module {
  // Nothing is loaded if there is no iteration. What else is computed of the load's data comes along, not what takes part in
  // the sum.
  // CHECK-LABEL: @keys
  // CHECK: %[[RUNS:.+]] = arith.cmpi slt, %c0_i32, %arg2
  // CHECK: %[[MASK:.+]] = tt.splat %[[RUNS]]
  // CHECK: %[[KEYS:.+]] = tt.load %arg0, %[[MASK]]
  // CHECK: arith.extf %[[KEYS]]
  // CHECK: scf.for
  // CHECK: tt.load
  // CHECK-NOT: tt.load
  // CHECK: arith.addf
  tt.func public @keys(%keys: !p, %queries: !p, %n: i32) -> !x {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %none = arith.constant dense<0.0> : !x
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %none) -> (!x) : i32 {
      %at = tt.splat %i : i32 -> tensor<8xi32>
      %there = tt.addptr %queries, %at : !p, tensor<8xi32>
      %k = tt.load %keys : !p
      %f = arith.extf %k : tensor<8xf16> to !x
      %q = tt.load %there : !p
      %g = arith.extf %q : tensor<8xf16> to !x
      %product = arith.mulf %f, %g : !x
      %next = arith.addf %s, %product : !x
      scf.yield %next : !x
    }
    tt.return %sum : !x
  }

  // Two iterations are two, and a mask stays what it is.
  // CHECK-LABEL: @always
  // CHECK-NOT: arith.andi
  // CHECK: tt.load %arg0, %arg1, %{{.+}}
  // CHECK: scf.for
  tt.func public @always(%keys: !p, %mask: tensor<8xi1>) -> tensor<8xf16> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %none = arith.constant dense<0.0> : tensor<8xf16>
    %sum = scf.for %i = %c0 to %c2 step %c1 iter_args(%s = %none) -> (tensor<8xf16>) : i32 {
      %k = tt.load %keys, %mask, %none : !p
      %next = arith.addf %s, %k : tensor<8xf16>
      scf.yield %next : tensor<8xf16>
    }
    tt.return %sum : tensor<8xf16>
  }

  // What the loop stores may be what it loads next.
  // CHECK-LABEL: @stores
  // CHECK-NOT: tt.load
  // CHECK: scf.for
  // CHECK: tt.load
  tt.func public @stores(%keys: !p, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %i = %c0 to %n step %c1 : i32 {
      %k = tt.load %keys : !p
      %next = arith.addf %k, %k : tensor<8xf16>
      tt.store %keys, %next : !p
    }
    tt.return
  }

  // The index of a row is checked once, before the loop along the row, and holds if there is no iteration. What the loop
  // stores does not matter, as it comes behind the check.
  // CHECK-LABEL: @row
  // CHECK: %[[INSIDE:.+]] = arith.cmpi ult, %arg2, %arg3
  // CHECK: %[[RUNS:.+]] = arith.cmpi slt, %c0_i32, %arg4
  // CHECK: %[[NONE:.+]] = arith.xori %[[RUNS]], %true
  // CHECK: %[[SPLAT:.+]] = tt.splat %[[NONE]]
  // CHECK: %[[HOLDS:.+]] = arith.ori %[[INSIDE]], %[[SPLAT]]
  // CHECK: tt.assert %[[HOLDS]], "index out of bounds"
  // CHECK: scf.for
  // CHECK-NOT: tt.assert
  // CHECK: tt.store
  tt.func public @row(%table: !p, %out: !p, %index: tensor<8xi32>, %rows: tensor<8xi32>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %i = %c0 to %n step %c1 : i32 {
      %inside = arith.cmpi ult, %index, %rows : tensor<8xi32>
      tt.assert %inside, "index out of bounds" : tensor<8xi1>
      %row = tt.addptr %table, %index : !p, tensor<8xi32>
      %at = tt.splat %i : i32 -> tensor<8xi32>
      %there = tt.addptr %row, %at : !p, tensor<8xi32>
      %x = tt.load %there : !p
      tt.store %out, %x : !p
    }
    tt.return
  }

  // An index that is loaded alike in all iterations is loaded before the loop, and checked there. Two iterations are two.
  // CHECK-LABEL: @loaded
  // CHECK: %[[INDEX:.+]] = tt.load %arg0
  // CHECK: %[[INSIDE:.+]] = arith.cmpi ult, %[[INDEX]], %arg2
  // CHECK: tt.assert %[[INSIDE]], "index out of bounds"
  // CHECK: scf.for
  tt.func public @loaded(%indices: tensor<8x!tt.ptr<i32>>, %table: !p, %rows: tensor<8xi32>) -> tensor<8xf16> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %none = arith.constant dense<0.0> : tensor<8xf16>
    %sum = scf.for %i = %c0 to %c2 step %c1 iter_args(%s = %none) -> (tensor<8xf16>) : i32 {
      %index = tt.load %indices : tensor<8x!tt.ptr<i32>>
      %inside = arith.cmpi ult, %index, %rows : tensor<8xi32>
      tt.assert %inside, "index out of bounds" : tensor<8xi1>
      %row = tt.addptr %table, %index : !p, tensor<8xi32>
      %at = tt.splat %i : i32 -> tensor<8xi32>
      %there = tt.addptr %row, %at : !p, tensor<8xi32>
      %x = tt.load %there : !p
      %next = arith.addf %s, %x : tensor<8xf16>
      scf.yield %next : tensor<8xf16>
    }
    tt.return %sum : tensor<8xf16>
  }

  // What is asserted behind a store would not be reached if the store failed; and an assertion that differs from iteration to
  // iteration stays, and all that is behind it.
  // CHECK-LABEL: @behind
  // CHECK: scf.for
  // CHECK: tt.store
  // CHECK: tt.assert
  // CHECK: scf.for
  // CHECK: tt.assert
  // CHECK: tt.load %arg0
  // CHECK: tt.assert
  tt.func public @behind(%keys: !p, %mask: tensor<8xi1>, %none: tensor<8xf16>, %n: i32) -> tensor<8xf16> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %i = %c0 to %n step %c1 : i32 {
      tt.store %keys, %none : !p
      tt.assert %mask, "of the mask" : tensor<8xi1>
    }
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %none) -> (tensor<8xf16>) : i32 {
      %is_first = arith.cmpi eq, %i, %c0 : i32
      tt.assert %is_first, "one iteration" : i1
      %k = tt.load %keys : !p
      tt.assert %mask, "of the mask" : tensor<8xi1>
      %next = arith.addf %s, %k : tensor<8xf16>
      scf.yield %next : tensor<8xf16>
    }
    tt.return %sum : tensor<8xf16>
  }
}
