// Layouts of products in loops of one stage: nothing is loaded ahead, so a load is not priced by what passes through a ring.
//
// RUN: llopt compile %s --target hip:gfx942 --num-stages 1 --emit ttgir -o - | FileCheck %s --check-prefix=ONE
// RUN: llopt compile %s --target hip:gfx942 --num-stages 2 --emit ttgir -o - | FileCheck %s --check-prefix=TWO

module {
  // In one stage the second factor is loaded where the product takes it, and nothing converts it.
  // ONE-LABEL: @product
  // ONE: scf.for
  // ONE: amdg.buffer_load
  // ONE: amdg.buffer_load {{.*}}, #ttg.dot_op<{opIdx = 1
  // ONE-NOT: ttg.local_load
  // ONE: tt.dot
  // ONE: tt.num_stages = 1
  // In two it waits in a ring, which puts its elements in order on the way.
  // TWO-LABEL: @product
  // TWO: scf.for
  // TWO: ttg.local_load {{.*}}opIdx = 1
  // TWO: tt.dot
  tt.func public @product(%a: !tt.ptr<f64> {tt.divisibility = 16 : i32, tt.pointer_range = 32 : i32}, %b: !tt.ptr<f64> {tt.divisibility = 16 : i32, tt.pointer_range = 32 : i32}, %c: !tt.ptr<f64> {tt.divisibility = 16 : i32, tt.pointer_range = 32 : i32}, %M: i32 {tt.divisibility = 16 : i32}, %N: i32 {tt.divisibility = 16 : i32}, %K: i32 {tt.divisibility = 16 : i32}, %sam: i32 {tt.divisibility = 16 : i32}, %sbk: i32 {tt.divisibility = 16 : i32}, %scm: i32 {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %c15_i32 = arith.constant 15 : i32
    %acc = arith.constant dense<0.000000e+00> : tensor<32x32xf64>
    %c31_i32 = arith.constant 31 : i32
    %cst = arith.constant dense<0.000000e+00> : tensor<16x32xf64>
    %cst_0 = arith.constant dense<0.000000e+00> : tensor<32x16xf64>
    %c1_i32 = arith.constant 1 : i32
    %c0_i32 = arith.constant 0 : i32
    %cst_1 = arith.constant dense<16> : tensor<32x16xi32>
    %c16_i32 = arith.constant 16 : i32
    %c32_i32 = arith.constant 32 : i32
    %c8_i32 = arith.constant 8 : i32
    %pid = tt.get_program_id x : i32
    %npm = arith.addi %M, %c31_i32 : i32
    %npm_2 = arith.divsi %npm, %c32_i32 : i32
    %npn = arith.addi %N, %c31_i32 : i32
    %npn_3 = arith.divsi %npn, %c32_i32 : i32
    %g = arith.muli %npn_3, %c8_i32 : i32
    %g_4 = arith.divsi %pid, %g : i32
    %first = arith.muli %g_4, %c8_i32 : i32
    %gs = arith.subi %npm_2, %first : i32
    %gs_5 = arith.minsi %gs, %c8_i32 : i32
    %pm = arith.remsi %pid, %g : i32
    %pm_6 = arith.remsi %pm, %gs_5 : i32
    %pm_7 = arith.addi %first, %pm_6 : i32
    %pn = arith.divsi %pm, %gs_5 : i32
    %rm = arith.muli %pm_7, %c32_i32 : i32
    %rm_8 = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
    %rm_9 = tt.splat %rm : i32 -> tensor<32xi32>
    %rm_10 = arith.addi %rm_9, %rm_8 : tensor<32xi32>
    %rm_11 = tt.splat %M : i32 -> tensor<32xi32>
    %rm_12 = arith.remsi %rm_10, %rm_11 : tensor<32xi32>
    %rn = arith.muli %pn, %c32_i32 : i32
    %rn_13 = tt.splat %rn : i32 -> tensor<32xi32>
    %rn_14 = arith.addi %rn_13, %rm_8 : tensor<32xi32>
    %rn_15 = tt.splat %N : i32 -> tensor<32xi32>
    %rn_16 = arith.remsi %rn_14, %rn_15 : tensor<32xi32>
    %rk = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
    %pa = tt.expand_dims %rm_12 {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
    %pa_17 = tt.splat %sam : i32 -> tensor<32x1xi32>
    %pa_18 = arith.muli %pa, %pa_17 : tensor<32x1xi32>
    %pa_19 = tt.splat %a : !tt.ptr<f64> -> tensor<32x1x!tt.ptr<f64>>
    %pa_20 = tt.addptr %pa_19, %pa_18 : tensor<32x1x!tt.ptr<f64>>, tensor<32x1xi32>
    %pa_21 = tt.expand_dims %rk {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
    %pa_22 = tt.broadcast %pa_20 : tensor<32x1x!tt.ptr<f64>> -> tensor<32x16x!tt.ptr<f64>>
    %pa_23 = tt.broadcast %pa_21 : tensor<1x16xi32> -> tensor<32x16xi32>
    %pa_24 = tt.addptr %pa_22, %pa_23 : tensor<32x16x!tt.ptr<f64>>, tensor<32x16xi32>
    %pb = tt.expand_dims %rk {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
    %pb_25 = tt.splat %sbk : i32 -> tensor<16x1xi32>
    %pb_26 = arith.muli %pb, %pb_25 : tensor<16x1xi32>
    %pb_27 = tt.splat %b : !tt.ptr<f64> -> tensor<16x1x!tt.ptr<f64>>
    %pb_28 = tt.addptr %pb_27, %pb_26 : tensor<16x1x!tt.ptr<f64>>, tensor<16x1xi32>
    %pb_29 = tt.expand_dims %rn_16 {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %pb_30 = tt.broadcast %pb_28 : tensor<16x1x!tt.ptr<f64>> -> tensor<16x32x!tt.ptr<f64>>
    %pb_31 = tt.broadcast %pb_29 : tensor<1x32xi32> -> tensor<16x32xi32>
    %pb_32 = tt.addptr %pb_30, %pb_31 : tensor<16x32x!tt.ptr<f64>>, tensor<16x32xi32>
    %0 = arith.addi %K, %c15_i32 : i32
    %1 = arith.divsi %0, %c16_i32 : i32
    %pb_33 = arith.muli %sbk, %c16_i32 : i32
    %pb_34 = tt.splat %pb_33 : i32 -> tensor<16x32xi32>
    %acc_35:3 = scf.for %k = %c0_i32 to %1 step %c1_i32 iter_args(%pa_36 = %pa_24, %pb_37 = %pb_32, %acc_38 = %acc) -> (tensor<32x16x!tt.ptr<f64>>, tensor<16x32x!tt.ptr<f64>>, tensor<32x32xf64>)  : i32 {
      %x = arith.muli %k, %c16_i32 : i32
      %x_39 = arith.subi %K, %x : i32
      %x_40 = tt.splat %x_39 : i32 -> tensor<1x16xi32>
      %x_41 = arith.cmpi slt, %pa_21, %x_40 : tensor<1x16xi32>
      %x_42 = tt.broadcast %x_41 : tensor<1x16xi1> -> tensor<32x16xi1>
      %x_43 = tt.load %pa_36, %x_42, %cst_0 : tensor<32x16x!tt.ptr<f64>>
      %y = tt.splat %x_39 : i32 -> tensor<16x1xi32>
      %y_44 = arith.cmpi slt, %pb, %y : tensor<16x1xi32>
      %y_45 = tt.broadcast %y_44 : tensor<16x1xi1> -> tensor<16x32xi1>
      %y_46 = tt.load %pb_37, %y_45, %cst : tensor<16x32x!tt.ptr<f64>>
      %acc_47 = tt.dot %x_43, %y_46, %acc_38 : tensor<32x16xf64> * tensor<16x32xf64> -> tensor<32x32xf64>
      %pa_48 = tt.addptr %pa_36, %cst_1 : tensor<32x16x!tt.ptr<f64>>, tensor<32x16xi32>
      %pb_49 = tt.addptr %pb_37, %pb_34 : tensor<16x32x!tt.ptr<f64>>, tensor<16x32xi32>
      scf.yield %pa_48, %pb_49, %acc_47 : tensor<32x16x!tt.ptr<f64>>, tensor<16x32x!tt.ptr<f64>>, tensor<32x32xf64>
    }
    %2 = tt.expand_dims %rm_10 {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
    %3 = tt.splat %M : i32 -> tensor<32x1xi32>
    %4 = arith.cmpi slt, %2, %3 : tensor<32x1xi32>
    %5 = tt.expand_dims %rn_14 {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %6 = tt.splat %N : i32 -> tensor<1x32xi32>
    %7 = arith.cmpi slt, %5, %6 : tensor<1x32xi32>
    %8 = tt.broadcast %4 : tensor<32x1xi1> -> tensor<32x32xi1>
    %9 = tt.broadcast %7 : tensor<1x32xi1> -> tensor<32x32xi1>
    %10 = arith.andi %8, %9 : tensor<32x32xi1>
    %11 = tt.splat %scm : i32 -> tensor<32x1xi32>
    %12 = arith.muli %2, %11 : tensor<32x1xi32>
    %13 = tt.splat %c : !tt.ptr<f64> -> tensor<32x1x!tt.ptr<f64>>
    %14 = tt.addptr %13, %12 : tensor<32x1x!tt.ptr<f64>>, tensor<32x1xi32>
    %15 = tt.broadcast %14 : tensor<32x1x!tt.ptr<f64>> -> tensor<32x32x!tt.ptr<f64>>
    %16 = tt.broadcast %5 : tensor<1x32xi32> -> tensor<32x32xi32>
    %17 = tt.addptr %15, %16 : tensor<32x32x!tt.ptr<f64>>, tensor<32x32xi32>
    tt.store %17, %acc_35#2, %10 : tensor<32x32x!tt.ptr<f64>>
    tt.return
  }
}
