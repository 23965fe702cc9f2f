// What all iterations of a loop load alike is loaded before it, with what is computed of it alone.
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
}
