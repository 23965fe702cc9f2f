// A product whose left factor has no neighbours in memory, as the input of a convolution by channels.
//
// RUN: llopt explain %s --target cuda:90 --num-warps 4 --num-stages 4 | FileCheck %s

// Each element is loaded to a register of its own. An assembler loads the data of all first iterations together, so that there are three
// stages instead of the four that are asked for.
// CHECK: Loop ({{.*}}) keeps its tiles: two iterations take about {{.*}} cycles by the model
// CHECK: Loop ({{.*}}) is pipelined in 3 stages (4 do not fit): 0 copies and 2 loads through registers
tt.func public @scattered(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %c: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %rows_by: i32, %k_by: i32, %b_by: i32, %n: i32) {
  %zeros = arith.constant dense<0.0> : tensor<128x64xf32>
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %width = arith.constant dense<64> : tensor<128x1xi32>
  %m = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %columns = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %inner = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %m_column = tt.expand_dims %m {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
  %rows_width = tt.splat %rows_by : i32 -> tensor<128x1xi32>
  %m_rows = arith.muli %m_column, %rows_width : tensor<128x1xi32>
  %a_rows = tt.broadcast %m_rows : tensor<128x1xi32> -> tensor<128x32xi32>
  %n_row = tt.expand_dims %columns {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %b_columns = tt.broadcast %n_row : tensor<1x64xi32> -> tensor<32x64xi32>
  %a_all = tt.splat %a : !tt.ptr<f16> -> tensor<128x32x!tt.ptr<f16>>
  %b_all = tt.splat %b : !tt.ptr<f16> -> tensor<32x64x!tt.ptr<f16>>
  %r = scf.for %i = %c0 to %n step %c32 iter_args(%sum = %zeros) -> (tensor<128x64xf32>) : i32 {
    %start = tt.splat %i : i32 -> tensor<32xi32>
    %k = arith.addi %start, %inner : tensor<32xi32>
    %k_row = tt.expand_dims %k {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %k_width = tt.splat %k_by : i32 -> tensor<1x32xi32>
    %k_places = arith.muli %k_row, %k_width : tensor<1x32xi32>
    %a_columns = tt.broadcast %k_places : tensor<1x32xi32> -> tensor<128x32xi32>
    %a_offsets = arith.addi %a_rows, %a_columns : tensor<128x32xi32>
    %a_pointers = tt.addptr %a_all, %a_offsets : tensor<128x32x!tt.ptr<f16>>, tensor<128x32xi32>
    %x = tt.load %a_pointers : tensor<128x32x!tt.ptr<f16>>
    %k_column = tt.expand_dims %k {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
    %b_width = tt.splat %b_by : i32 -> tensor<32x1xi32>
    %k_rows = arith.muli %k_column, %b_width : tensor<32x1xi32>
    %b_rows = tt.broadcast %k_rows : tensor<32x1xi32> -> tensor<32x64xi32>
    %b_offsets = arith.addi %b_rows, %b_columns : tensor<32x64xi32>
    %b_pointers = tt.addptr %b_all, %b_offsets : tensor<32x64x!tt.ptr<f16>>, tensor<32x64xi32>
    %y = tt.load %b_pointers : tensor<32x64x!tt.ptr<f16>>
    %d = tt.dot %x, %y, %sum : tensor<128x32xf16> * tensor<32x64xf16> -> tensor<128x64xf32>
    scf.yield %d : tensor<128x64xf32>
  }
  %c_rows = arith.muli %m_column, %width : tensor<128x1xi32>
  %c_row_places = tt.broadcast %c_rows : tensor<128x1xi32> -> tensor<128x64xi32>
  %c_columns = tt.broadcast %n_row : tensor<1x64xi32> -> tensor<128x64xi32>
  %c_offsets = arith.addi %c_row_places, %c_columns : tensor<128x64xi32>
  %c_all = tt.splat %c : !tt.ptr<f32> -> tensor<128x64x!tt.ptr<f32>>
  %c_pointers = tt.addptr %c_all, %c_offsets : tensor<128x64x!tt.ptr<f32>>, tensor<128x64xi32>
  tt.store %c_pointers, %r : tensor<128x64x!tt.ptr<f32>>
  tt.return
}
