// Programs with more iterations are computed by blocks that start earlier.
//
// RUN: llopt %s --split-input-file --longest-programs-first | FileCheck %s

// Later programs along x have longer loops; those along y are all alike.
// CHECK-LABEL: @rises
// CHECK: tt.get_program_id x {ttg.reversed} : i32
// CHECK: tt.get_program_id y : i32
tt.func public @rises(%p: !tt.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %x = tt.get_program_id x : i32
  %y = tt.get_program_id y : i32
  %rows = arith.muli %x, %c64 : i32
  %sum = scf.for %i = %c0 to %rows step %c1 iter_args(%s = %c0) -> (i32) : i32 {
    %t = arith.addi %s, %i : i32
    scf.yield %t : i32
  }
  %of_y = tt.addptr %p, %y : !tt.ptr<i32>, i32
  %to_x = tt.addptr %of_y, %x : !tt.ptr<i32>, i32
  tt.store %to_x, %sum : !tt.ptr<i32>
  tt.return
}

// -----

// The longest programs are first already.
// CHECK-LABEL: @falls
// CHECK: tt.get_program_id x : i32
tt.func public @falls(%p: !tt.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %x = tt.get_program_id x : i32
  %sum = scf.for %i = %x to %n step %c1 iter_args(%s = %c0) -> (i32) : i32 {
    %t = arith.addi %s, %i : i32
    scf.yield %t : i32
  }
  tt.store %p, %sum : !tt.ptr<i32>
  tt.return
}

// -----

// A program might wait for one with a smaller number, which must then have an earlier block.
// CHECK-LABEL: @waits
// CHECK: tt.get_program_id x : i32
tt.func public @waits(%p: !tt.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %true = arith.constant true
  %x = tt.get_program_id x : i32
  %sum = scf.for %i = %c0 to %x step %c1 iter_args(%s = %c0) -> (i32) : i32 {
    %t = arith.addi %s, %i : i32
    scf.yield %t : i32
  }
  %old = tt.atomic_rmw add, relaxed, gpu, %p, %sum, %true : (!tt.ptr<i32>, i32, i1) -> i32
  tt.return
}

// -----

// Each program reads 64 words for each number of its row, and so do the others of the row: rows take turns as far as a cache
// has room for what they read.
// CHECK-LABEL: @rows_in_turns
// CHECK: tt.get_program_id x {ttg.reversed, "ttg.row-bytes" = 256 : i64} : i32
// CHECK: tt.get_program_id y {"ttg.row-bytes" = 256 : i64} : i32
tt.func public @rows_in_turns(%p: !tt.ptr<f32>, %stride: i32) {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %zeros = arith.constant dense<0.0> : tensor<32xf32>
  %lanes = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %x = tt.get_program_id x : i32
  %y = tt.get_program_id y : i32
  %row = arith.muli %y, %stride : i32
  %begin = tt.addptr %p, %row : !tt.ptr<f32>, i32
  %next = arith.addi %x, %x : i32
  %end = arith.muli %next, %c32 : i32
  %sum = scf.for %i = %c0 to %end step %c32 iter_args(%s = %zeros) -> (tensor<32xf32>) : i32 {
    %at = tt.addptr %begin, %i : !tt.ptr<f32>, i32
    %all = tt.splat %at : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
    %each = tt.addptr %all, %lanes : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
    %loaded = tt.load %each : tensor<32x!tt.ptr<f32>>
    %t = arith.addf %s, %loaded : tensor<32xf32>
    scf.yield %t : tensor<32xf32>
  }
  %to = tt.splat %begin : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
  %to_x = tt.addptr %to, %lanes : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
  tt.store %to_x, %sum : tensor<32x!tt.ptr<f32>>
  tt.return
}
