// Loads of tiles through pointers as loads through descriptors, in a loop beside the loop as it was.
//
// RUN: llopt %s --split-input-file --tensor-copies --cse --canonicalize | FileCheck %s

// The rows of the first factor wrap around at M, and the columns of the second at N: only masked stores depend on
// those beyond, so nothing requires that a tile ends before. The loop as it was is for numbers that do not fit into
// 32 bits, and not pipelined; what it alone needs is computed in its branch.
// CHECK-LABEL: @tutorial
// CHECK: %[[M0:.*]] = arith.muli %{{.*}}, %c64_i32 : i32
// CHECK: %[[N0:.*]] = arith.muli %{{.*}}, %c32_i32 : i32
// CHECK-NOT: arith.remsi
// CHECK: %[[SUM:.*]] = scf.if %{{.*}} -> (tensor<64x32xf32>) {
// CHECK-DAG: %[[A:.*]] = tt.make_tensor_descriptor %arg0, [%arg3, %arg5], [%{{.*}}, %c1_i64] : <f16>, <tensor<64x16xf16>>
// CHECK-DAG: %[[B:.*]] = tt.make_tensor_descriptor %arg1, [%arg5, %arg4], [%{{.*}}, %c1_i64] : <f16>, <tensor<16x32xf16>>
// CHECK: scf.for %[[I:.*]] = %c0_i32 to %{{.*}} step %c1_i32 iter_args(%{{[^,]*}}) -> (tensor<64x32xf32>)
// CHECK-DAG: %[[K:.*]] = arith.muli %[[I]], %c16_i32 : i32
// CHECK-DAG: tt.descriptor_load %[[A]][%[[M0]], %[[K]]] : !tt.tensordesc<tensor<64x16xf16>> -> tensor<64x16xf16>
// CHECK-DAG: tt.descriptor_load %[[B]][%[[K]], %[[N0]]] : !tt.tensordesc<tensor<16x32xf16>> -> tensor<16x32xf16>
// CHECK-NOT: tt.load
// CHECK: } else {
// CHECK: arith.remsi
// CHECK: scf.for
// CHECK: tt.load
// CHECK: tt.load
// CHECK: } {llopt.rare, tt.num_stages = 1 : i32}
// CHECK: tt.store
tt.func public @tutorial(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %c: !tt.ptr<f32>, %M: i32, %N: i32, %K: i32, %sa: i32 {tt.divisibility = 16 : i32}, %sb: i32 {tt.divisibility = 16 : i32}) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c15 = arith.constant 15 : i32
  %c16 = arith.constant 16 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x32xf32>
  %other_a = arith.constant dense<0.0> : tensor<64x16xf16>
  %other_b = arith.constant dense<0.0> : tensor<16x32xf16>
  %step_a = arith.constant dense<16> : tensor<64x16xi32>
  %x = tt.get_program_id x : i32
  %y = tt.get_program_id y : i32
  %m0 = arith.muli %x, %c64 : i32
  %n0 = arith.muli %y, %c32 : i32
  %range_m = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %range_n = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %range_k = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %first_m = tt.splat %m0 : i32 -> tensor<64xi32>
  %first_n = tt.splat %n0 : i32 -> tensor<32xi32>
  %of_m = arith.addi %first_m, %range_m : tensor<64xi32>
  %of_n = arith.addi %first_n, %range_n : tensor<32xi32>
  %all_m = tt.splat %M : i32 -> tensor<64xi32>
  %all_n = tt.splat %N : i32 -> tensor<32xi32>
  %wrapped_m = arith.remsi %of_m, %all_m : tensor<64xi32>
  %wrapped_n = arith.remsi %of_n, %all_n : tensor<32xi32>
  %rows = tt.expand_dims %wrapped_m {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %stride_a = tt.splat %sa : i32 -> tensor<64x1xi32>
  %scaled_rows = arith.muli %rows, %stride_a : tensor<64x1xi32>
  %k_across = tt.expand_dims %range_k {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
  %a_down = tt.broadcast %scaled_rows : tensor<64x1xi32> -> tensor<64x16xi32>
  %a_across = tt.broadcast %k_across : tensor<1x16xi32> -> tensor<64x16xi32>
  %a_offsets = arith.addi %a_down, %a_across : tensor<64x16xi32>
  %a_base = tt.splat %a : !tt.ptr<f16> -> tensor<64x16x!tt.ptr<f16>>
  %a_pointers = tt.addptr %a_base, %a_offsets : tensor<64x16x!tt.ptr<f16>>, tensor<64x16xi32>
  %k_down = tt.expand_dims %range_k {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %stride_b = tt.splat %sb : i32 -> tensor<16x1xi32>
  %scaled_k = arith.muli %k_down, %stride_b : tensor<16x1xi32>
  %columns = tt.expand_dims %wrapped_n {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %b_down = tt.broadcast %scaled_k : tensor<16x1xi32> -> tensor<16x32xi32>
  %b_across = tt.broadcast %columns : tensor<1x32xi32> -> tensor<16x32xi32>
  %b_offsets = arith.addi %b_down, %b_across : tensor<16x32xi32>
  %b_base = tt.splat %b : !tt.ptr<f16> -> tensor<16x32x!tt.ptr<f16>>
  %b_pointers = tt.addptr %b_base, %b_offsets : tensor<16x32x!tt.ptr<f16>>, tensor<16x32xi32>
  %K15 = arith.addi %K, %c15 : i32
  %n = arith.divsi %K15, %c16 : i32
  %sums:3 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %a_pointers, %q = %b_pointers, %acc = %zero) -> (tensor<64x16x!tt.ptr<f16>>, tensor<16x32x!tt.ptr<f16>>, tensor<64x32xf32>) : i32 {
    %done = arith.muli %i, %c16 : i32
    %left = arith.subi %K, %done : i32
    %left_a = tt.splat %left : i32 -> tensor<1x16xi32>
    %is_a = arith.cmpi slt, %k_across, %left_a : tensor<1x16xi32>
    %mask_a = tt.broadcast %is_a : tensor<1x16xi1> -> tensor<64x16xi1>
    %tile_a = tt.load %p, %mask_a, %other_a : tensor<64x16x!tt.ptr<f16>>
    %left_b = tt.splat %left : i32 -> tensor<16x1xi32>
    %is_b = arith.cmpi slt, %k_down, %left_b : tensor<16x1xi32>
    %mask_b = tt.broadcast %is_b : tensor<16x1xi1> -> tensor<16x32xi1>
    %tile_b = tt.load %q, %mask_b, %other_b : tensor<16x32x!tt.ptr<f16>>
    %d = tt.dot %tile_a, %tile_b, %acc : tensor<64x16xf16> * tensor<16x32xf16> -> tensor<64x32xf32>
    %p1 = tt.addptr %p, %step_a : tensor<64x16x!tt.ptr<f16>>, tensor<64x16xi32>
    %distance = arith.muli %sb, %c16 : i32
    %step_b = tt.splat %distance : i32 -> tensor<16x32xi32>
    %q1 = tt.addptr %q, %step_b : tensor<16x32x!tt.ptr<f16>>, tensor<16x32xi32>
    scf.yield %p1, %q1, %d : tensor<64x16x!tt.ptr<f16>>, tensor<16x32x!tt.ptr<f16>>, tensor<64x32xf32>
  }
  %c_rows = tt.expand_dims %of_m {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %c_columns = tt.expand_dims %of_n {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %c_stride = tt.splat %N : i32 -> tensor<64x1xi32>
  %c_scaled = arith.muli %c_rows, %c_stride : tensor<64x1xi32>
  %c_down = tt.broadcast %c_scaled : tensor<64x1xi32> -> tensor<64x32xi32>
  %c_across = tt.broadcast %c_columns : tensor<1x32xi32> -> tensor<64x32xi32>
  %c_offsets = arith.addi %c_down, %c_across : tensor<64x32xi32>
  %c_base = tt.splat %c : !tt.ptr<f32> -> tensor<64x32x!tt.ptr<f32>>
  %c_pointers = tt.addptr %c_base, %c_offsets : tensor<64x32x!tt.ptr<f32>>, tensor<64x32xi32>
  %end_m = tt.splat %M : i32 -> tensor<64x1xi32>
  %in_m = arith.cmpi slt, %c_rows, %end_m : tensor<64x1xi32>
  %end_n = tt.splat %N : i32 -> tensor<1x32xi32>
  %in_n = arith.cmpi slt, %c_columns, %end_n : tensor<1x32xi32>
  %wide_m = tt.broadcast %in_m : tensor<64x1xi1> -> tensor<64x32xi1>
  %wide_n = tt.broadcast %in_n : tensor<1x32xi1> -> tensor<64x32xi1>
  %in = arith.andi %wide_m, %wide_n : tensor<64x32xi1>
  tt.store %c_pointers, %sums#2, %in : tensor<64x32x!tt.ptr<f32>>
  tt.return
}
