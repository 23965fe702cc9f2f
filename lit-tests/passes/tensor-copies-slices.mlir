// Deep tiles in slices along k, where the stages that the program asks for do not fit into shared memory.
//
// RUN: llopt %s --split-input-file --tensor-copies="memory=65536 num-stages=4" --cse --canonicalize | FileCheck %s
// RUN: llopt %s --split-input-file --tensor-copies="memory=65536 num-stages=2" --cse --canonicalize | FileCheck %s --check-prefix=WHOLE

// Four stages of 24 KiB do not fit into 64, four of 12 do: each iteration becomes two, with a half of the tiles each.
// The step is one, so the bounds are multiplied. The loop as it was keeps its tiles. Two stages fit.
// CHECK-LABEL: @counted
// CHECK-SAME: %[[K:arg5]]: i32
// CHECK: %[[N:.*]] = arith.divsi
// CHECK: scf.if
// CHECK: %[[TWICE:.*]] = arith.muli %[[N]], %c2_i32
// CHECK: scf.for %[[I:.*]] = %c0_i32 to %[[TWICE]] step %c1_i32 iter_args(%[[SUM:[^ ]*]] = %{{[^,]*}}) -> (tensor<64x32xf32>)
// CHECK-DAG: %[[AT:.*]] = arith.muli %[[I]], %c64_i32 : i32
// CHECK-DAG: %[[A:.*]] = tt.descriptor_load %{{.*}}[%{{.*}}, %[[AT]]] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
// CHECK-DAG: %[[B:.*]] = tt.descriptor_load %{{.*}}[%[[AT]], %{{.*}}] : !tt.tensordesc<tensor<64x32xf16>> -> tensor<64x32xf16>
// CHECK: tt.dot %[[A]], %[[B]], %[[SUM]]
// CHECK: } else {
// CHECK: tt.load {{.*}} : tensor<64x128x!tt.ptr<f16>>
// WHOLE-LABEL: @counted
// WHOLE: !tt.tensordesc<tensor<64x128xf16>>
tt.func public @counted(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %c: !tt.ptr<f32>, %M: i32, %N: i32, %K: i32, %sa: i32 {tt.divisibility = 16 : i32}, %sb: i32 {tt.divisibility = 16 : i32}) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c127 = arith.constant 127 : i32
  %c128 = arith.constant 128 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x32xf32>
  %other_a = arith.constant dense<0.0> : tensor<64x128xf16>
  %other_b = arith.constant dense<0.0> : tensor<128x32xf16>
  %step_a = arith.constant dense<128> : tensor<64x128xi32>
  %x = tt.get_program_id x : i32
  %y = tt.get_program_id y : i32
  %m0 = arith.muli %x, %c64 : i32
  %n0 = arith.muli %y, %c32 : i32
  %range_m = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %range_n = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %range_k = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
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
  %k_across = tt.expand_dims %range_k {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %a_down = tt.broadcast %scaled_rows : tensor<64x1xi32> -> tensor<64x128xi32>
  %a_across = tt.broadcast %k_across : tensor<1x128xi32> -> tensor<64x128xi32>
  %a_offsets = arith.addi %a_down, %a_across : tensor<64x128xi32>
  %a_base = tt.splat %a : !tt.ptr<f16> -> tensor<64x128x!tt.ptr<f16>>
  %a_pointers = tt.addptr %a_base, %a_offsets : tensor<64x128x!tt.ptr<f16>>, tensor<64x128xi32>
  %k_down = tt.expand_dims %range_k {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
  %stride_b = tt.splat %sb : i32 -> tensor<128x1xi32>
  %scaled_k = arith.muli %k_down, %stride_b : tensor<128x1xi32>
  %columns = tt.expand_dims %wrapped_n {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %b_down = tt.broadcast %scaled_k : tensor<128x1xi32> -> tensor<128x32xi32>
  %b_across = tt.broadcast %columns : tensor<1x32xi32> -> tensor<128x32xi32>
  %b_offsets = arith.addi %b_down, %b_across : tensor<128x32xi32>
  %b_base = tt.splat %b : !tt.ptr<f16> -> tensor<128x32x!tt.ptr<f16>>
  %b_pointers = tt.addptr %b_base, %b_offsets : tensor<128x32x!tt.ptr<f16>>, tensor<128x32xi32>
  %K127 = arith.addi %K, %c127 : i32
  %n = arith.divsi %K127, %c128 : i32
  %sums:3 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %a_pointers, %q = %b_pointers, %acc = %zero) -> (tensor<64x128x!tt.ptr<f16>>, tensor<128x32x!tt.ptr<f16>>, tensor<64x32xf32>) : i32 {
    %done = arith.muli %i, %c128 : i32
    %left = arith.subi %K, %done : i32
    %left_a = tt.splat %left : i32 -> tensor<1x128xi32>
    %is_a = arith.cmpi slt, %k_across, %left_a : tensor<1x128xi32>
    %mask_a = tt.broadcast %is_a : tensor<1x128xi1> -> tensor<64x128xi1>
    %tile_a = tt.load %p, %mask_a, %other_a : tensor<64x128x!tt.ptr<f16>>
    %left_b = tt.splat %left : i32 -> tensor<128x1xi32>
    %is_b = arith.cmpi slt, %k_down, %left_b : tensor<128x1xi32>
    %mask_b = tt.broadcast %is_b : tensor<128x1xi1> -> tensor<128x32xi1>
    %tile_b = tt.load %q, %mask_b, %other_b : tensor<128x32x!tt.ptr<f16>>
    %d = tt.dot %tile_a, %tile_b, %acc : tensor<64x128xf16> * tensor<128x32xf16> -> tensor<64x32xf32>
    %p1 = tt.addptr %p, %step_a : tensor<64x128x!tt.ptr<f16>>, tensor<64x128xi32>
    %distance = arith.muli %sb, %c128 : i32
    %step_b = tt.splat %distance : i32 -> tensor<128x32xi32>
    %q1 = tt.addptr %q, %step_b : tensor<128x32x!tt.ptr<f16>>, tensor<128x32xi32>
    scf.yield %p1, %q1, %d : tensor<64x128x!tt.ptr<f16>>, tensor<128x32x!tt.ptr<f16>>, tensor<64x32xf32>
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

// -----

// A step of 128 becomes one of 64.
// CHECK-LABEL: @stepped
// CHECK: scf.for %[[I:.*]] = %c0_i32 to %arg5 step %c64_i32
// CHECK: tt.descriptor_load %{{.*}}[%{{.*}}, %[[I]]] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
tt.func public @stepped(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %c: !tt.ptr<f32>, %M: i32, %N: i32, %K: i32, %sa: i32 {tt.divisibility = 16 : i32}, %sb: i32 {tt.divisibility = 16 : i32}) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c127 = arith.constant 127 : i32
  %c128 = arith.constant 128 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x32xf32>
  %other_a = arith.constant dense<0.0> : tensor<64x128xf16>
  %other_b = arith.constant dense<0.0> : tensor<128x32xf16>
  %step_a = arith.constant dense<128> : tensor<64x128xi32>
  %x = tt.get_program_id x : i32
  %y = tt.get_program_id y : i32
  %m0 = arith.muli %x, %c64 : i32
  %n0 = arith.muli %y, %c32 : i32
  %range_m = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %range_n = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %range_k = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
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
  %k_across = tt.expand_dims %range_k {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %a_down = tt.broadcast %scaled_rows : tensor<64x1xi32> -> tensor<64x128xi32>
  %a_across = tt.broadcast %k_across : tensor<1x128xi32> -> tensor<64x128xi32>
  %a_offsets = arith.addi %a_down, %a_across : tensor<64x128xi32>
  %a_base = tt.splat %a : !tt.ptr<f16> -> tensor<64x128x!tt.ptr<f16>>
  %a_pointers = tt.addptr %a_base, %a_offsets : tensor<64x128x!tt.ptr<f16>>, tensor<64x128xi32>
  %k_down = tt.expand_dims %range_k {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
  %stride_b = tt.splat %sb : i32 -> tensor<128x1xi32>
  %scaled_k = arith.muli %k_down, %stride_b : tensor<128x1xi32>
  %columns = tt.expand_dims %wrapped_n {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %b_down = tt.broadcast %scaled_k : tensor<128x1xi32> -> tensor<128x32xi32>
  %b_across = tt.broadcast %columns : tensor<1x32xi32> -> tensor<128x32xi32>
  %b_offsets = arith.addi %b_down, %b_across : tensor<128x32xi32>
  %b_base = tt.splat %b : !tt.ptr<f16> -> tensor<128x32x!tt.ptr<f16>>
  %b_pointers = tt.addptr %b_base, %b_offsets : tensor<128x32x!tt.ptr<f16>>, tensor<128x32xi32>
  %K127 = arith.addi %K, %c127 : i32
  %n = arith.divsi %K127, %c128 : i32
  %sums:3 = scf.for %i = %c0 to %K step %c128 iter_args(%p = %a_pointers, %q = %b_pointers, %acc = %zero) -> (tensor<64x128x!tt.ptr<f16>>, tensor<128x32x!tt.ptr<f16>>, tensor<64x32xf32>) : i32 {
    %done = arith.addi %i, %c0 : i32
    %left = arith.subi %K, %done : i32
    %left_a = tt.splat %left : i32 -> tensor<1x128xi32>
    %is_a = arith.cmpi slt, %k_across, %left_a : tensor<1x128xi32>
    %mask_a = tt.broadcast %is_a : tensor<1x128xi1> -> tensor<64x128xi1>
    %tile_a = tt.load %p, %mask_a, %other_a : tensor<64x128x!tt.ptr<f16>>
    %left_b = tt.splat %left : i32 -> tensor<128x1xi32>
    %is_b = arith.cmpi slt, %k_down, %left_b : tensor<128x1xi32>
    %mask_b = tt.broadcast %is_b : tensor<128x1xi1> -> tensor<128x32xi1>
    %tile_b = tt.load %q, %mask_b, %other_b : tensor<128x32x!tt.ptr<f16>>
    %d = tt.dot %tile_a, %tile_b, %acc : tensor<64x128xf16> * tensor<128x32xf16> -> tensor<64x32xf32>
    %p1 = tt.addptr %p, %step_a : tensor<64x128x!tt.ptr<f16>>, tensor<64x128xi32>
    %distance = arith.muli %sb, %c128 : i32
    %step_b = tt.splat %distance : i32 -> tensor<128x32xi32>
    %q1 = tt.addptr %q, %step_b : tensor<128x32x!tt.ptr<f16>>, tensor<128x32xi32>
    scf.yield %p1, %q1, %d : tensor<64x128x!tt.ptr<f16>>, tensor<128x32x!tt.ptr<f16>>, tensor<64x32xf32>
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

// -----

// The number of iterations is seen, so it stays.
// CHECK-LABEL: @counts
// CHECK: !tt.tensordesc<tensor<64x128xf16>> -> tensor<64x128xf16>
// CHECK-NOT: tensordesc<tensor<64x64xf16>>
tt.func public @counts(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %c: !tt.ptr<f32>, %M: i32, %N: i32, %K: i32, %sa: i32 {tt.divisibility = 16 : i32}, %sb: i32 {tt.divisibility = 16 : i32}) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c127 = arith.constant 127 : i32
  %c128 = arith.constant 128 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x32xf32>
  %other_a = arith.constant dense<0.0> : tensor<64x128xf16>
  %other_b = arith.constant dense<0.0> : tensor<128x32xf16>
  %step_a = arith.constant dense<128> : tensor<64x128xi32>
  %x = tt.get_program_id x : i32
  %y = tt.get_program_id y : i32
  %m0 = arith.muli %x, %c64 : i32
  %n0 = arith.muli %y, %c32 : i32
  %range_m = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %range_n = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %range_k = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
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
  %k_across = tt.expand_dims %range_k {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %a_down = tt.broadcast %scaled_rows : tensor<64x1xi32> -> tensor<64x128xi32>
  %a_across = tt.broadcast %k_across : tensor<1x128xi32> -> tensor<64x128xi32>
  %a_offsets = arith.addi %a_down, %a_across : tensor<64x128xi32>
  %a_base = tt.splat %a : !tt.ptr<f16> -> tensor<64x128x!tt.ptr<f16>>
  %a_pointers = tt.addptr %a_base, %a_offsets : tensor<64x128x!tt.ptr<f16>>, tensor<64x128xi32>
  %k_down = tt.expand_dims %range_k {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
  %stride_b = tt.splat %sb : i32 -> tensor<128x1xi32>
  %scaled_k = arith.muli %k_down, %stride_b : tensor<128x1xi32>
  %columns = tt.expand_dims %wrapped_n {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %b_down = tt.broadcast %scaled_k : tensor<128x1xi32> -> tensor<128x32xi32>
  %b_across = tt.broadcast %columns : tensor<1x32xi32> -> tensor<128x32xi32>
  %b_offsets = arith.addi %b_down, %b_across : tensor<128x32xi32>
  %b_base = tt.splat %b : !tt.ptr<f16> -> tensor<128x32x!tt.ptr<f16>>
  %b_pointers = tt.addptr %b_base, %b_offsets : tensor<128x32x!tt.ptr<f16>>, tensor<128x32xi32>
  %K127 = arith.addi %K, %c127 : i32
  %n = arith.divsi %K127, %c128 : i32
  %sums:4 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %a_pointers, %q = %b_pointers, %acc = %zero, %count = %c0) -> (tensor<64x128x!tt.ptr<f16>>, tensor<128x32x!tt.ptr<f16>>, tensor<64x32xf32>, i32) : i32 {
    %done = arith.muli %i, %c128 : i32
    %left = arith.subi %K, %done : i32
    %left_a = tt.splat %left : i32 -> tensor<1x128xi32>
    %is_a = arith.cmpi slt, %k_across, %left_a : tensor<1x128xi32>
    %mask_a = tt.broadcast %is_a : tensor<1x128xi1> -> tensor<64x128xi1>
    %tile_a = tt.load %p, %mask_a, %other_a : tensor<64x128x!tt.ptr<f16>>
    %left_b = tt.splat %left : i32 -> tensor<128x1xi32>
    %is_b = arith.cmpi slt, %k_down, %left_b : tensor<128x1xi32>
    %mask_b = tt.broadcast %is_b : tensor<128x1xi1> -> tensor<128x32xi1>
    %tile_b = tt.load %q, %mask_b, %other_b : tensor<128x32x!tt.ptr<f16>>
    %d = tt.dot %tile_a, %tile_b, %acc : tensor<64x128xf16> * tensor<128x32xf16> -> tensor<64x32xf32>
    %p1 = tt.addptr %p, %step_a : tensor<64x128x!tt.ptr<f16>>, tensor<64x128xi32>
    %distance = arith.muli %sb, %c128 : i32
    %step_b = tt.splat %distance : i32 -> tensor<128x32xi32>
    %q1 = tt.addptr %q, %step_b : tensor<128x32x!tt.ptr<f16>>, tensor<128x32xi32>
    %more = arith.addi %count, %c1 : i32
    scf.yield %p1, %q1, %d, %more : tensor<64x128x!tt.ptr<f16>>, tensor<128x32x!tt.ptr<f16>>, tensor<64x32xf32>, i32
  }
  %c_rows = tt.expand_dims %of_m {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %c_columns = tt.expand_dims %of_n {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %c_stride = tt.splat %sums#3 : i32 -> tensor<64x1xi32>
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
