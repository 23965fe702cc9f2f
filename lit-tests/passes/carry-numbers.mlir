// Where all elements of a carried tensor advance by the same number, that number is carried.
//
// RUN: llopt %s --carry-numbers --canonicalize | FileCheck %s

// A table says how far it is to the next block. The tensor is computed of a number and a range where it is used.
// CHECK-LABEL: @blocks(
// CHECK-SAME: %[[FIRST:[a-z0-9]+]]: i32, %[[N:[a-z0-9]+]]: i32
// CHECK: %[[RANGE:.*]] = tt.make_range
// CHECK: scf.for {{.*}} iter_args(%[[AT:.*]] = %[[FIRST]]) -> (i32)
// CHECK-DAG: %[[ALL:.*]] = tt.splat %[[AT]] : i32 -> tensor<64xi32>
// CHECK-DAG: %[[X:.*]] = arith.addi %[[ALL]], %[[RANGE]] : tensor<64xi32>
// CHECK: tt.call @use(%[[X]])
// CHECK: %[[STEP:.*]] = tt.load
// CHECK: %[[NEXT:.*]] = arith.addi %[[AT]], %[[STEP]] : i32
// CHECK: scf.yield %[[NEXT]] : i32
tt.func public @blocks(%table: !tt.ptr<i32>, %first: i32, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %range = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %all = tt.splat %first : i32 -> tensor<64xi32>
  %begin = arith.addi %all, %range : tensor<64xi32>
  %end = scf.for %i = %c0 to %n step %c1 iter_args(%x = %begin) -> (tensor<64xi32>) : i32 {
    tt.call @use(%x) : (tensor<64xi32>) -> ()
    %place = tt.addptr %table, %i : !tt.ptr<i32>, i32
    %step = tt.load %place : !tt.ptr<i32>
    %steps = tt.splat %step : i32 -> tensor<64xi32>
    %next = arith.addi %x, %steps : tensor<64xi32>
    scf.yield %next : tensor<64xi32>
  }
  tt.return
}

// A constant advances a tensor of rows, which is used after the loop as well.
// CHECK-LABEL: @rows(
// CHECK: %[[LAST:.*]] = scf.for {{.*}} iter_args(%[[AT:.*]] = %{{.*}}) -> (i32)
// CHECK: tt.splat %[[AT]] : i32 -> tensor<8x1xi32>
// CHECK: arith.addi %[[AT]], %c8_i32 : i32
// CHECK: }
// CHECK: tt.splat %[[LAST]] : i32 -> tensor<8x1xi32>
// CHECK: tt.return
tt.func public @rows(%n: i32) -> tensor<8x1xi32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %eight = arith.constant dense<8> : tensor<8x1xi32>
  %pid = tt.get_program_id x : i32
  %range = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
  %all = tt.splat %pid : i32 -> tensor<8xi32>
  %sum = arith.addi %all, %range : tensor<8xi32>
  %begin = tt.expand_dims %sum {axis = 1 : i32} : tensor<8xi32> -> tensor<8x1xi32>
  %end = scf.for %i = %c0 to %n step %c1 iter_args(%x = %begin) -> (tensor<8x1xi32>) : i32 {
    tt.call @use_rows(%x) : (tensor<8x1xi32>) -> ()
    %next = arith.addi %eight, %x : tensor<8x1xi32>
    scf.yield %next : tensor<8x1xi32>
  }
  tt.return %end : tensor<8x1xi32>
}

// What begins with loaded numbers would have to be kept beside the number, and what advances by a tensor has no such number.
// CHECK-LABEL: @others(
// CHECK: iter_args({{.*}}) -> (tensor<64xi32>, tensor<64xi32>)
tt.func public @others(%table: !tt.ptr<i32>, %n: i32, %step: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %range = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %base = tt.splat %table : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
  %places = tt.addptr %base, %range : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
  %loaded = tt.load %places : tensor<64x!tt.ptr<i32>>
  %steps = tt.splat %step : i32 -> tensor<64xi32>
  %end:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %loaded, %y = %range) -> (tensor<64xi32>, tensor<64xi32>) : i32 {
    tt.call @use(%x) : (tensor<64xi32>) -> ()
    tt.call @use(%y) : (tensor<64xi32>) -> ()
    %next = arith.addi %x, %steps : tensor<64xi32>
    %more = arith.addi %y, %range : tensor<64xi32>
    scf.yield %next, %more : tensor<64xi32>, tensor<64xi32>
  }
  tt.return
}

tt.func private @use(%x: tensor<64xi32>)
tt.func private @use_rows(%x: tensor<8x1xi32>)
