// Factors of products that threads compute: each thread takes whole rows of the first and columns of the second.
//
// RUN: llopt %s --assign-layouts="target=cuda:90 num-warps=4" --split-input-file | FileCheck %s

// Each element of the factor is computed by one thread, and then goes to those that multiply it. Beside a matrix unit
// each thread would compute the 256 elements of its rows.
// CHECK-LABEL: @computed_once
// CHECK: math.exp %{{.*}} : tensor<64x64xf32, #[[OWN:[a-z0-9]+]]>
// CHECK: ttg.convert_layout {{.*}} : tensor<64x64xf32, #[[OWN]]> -> tensor<64x64xf32, #ttg.dot_op<{opIdx = 0
// CHECK: tt.dot
tt.func @computed_once(%in: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : tensor<64x32xf32>
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  %width = arith.constant dense<256> : tensor<64x1xi32>
  %range = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %short = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %base = tt.splat %in : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %at = tt.addptr %base, %range : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %decay = tt.load %at : tensor<64x!tt.ptr<f32>>
  %down = tt.expand_dims %decay {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
  %across = tt.expand_dims %decay {axis = 0 : i32} : tensor<64xf32> -> tensor<1x64xf32>
  %rows = tt.broadcast %down : tensor<64x1xf32> -> tensor<64x64xf32>
  %columns = tt.broadcast %across : tensor<1x64xf32> -> tensor<64x64xf32>
  %less = arith.subf %rows, %columns : tensor<64x64xf32>
  %power = math.exp %less : tensor<64x64xf32>
  %row = tt.expand_dims %range {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %column = tt.expand_dims %range {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %row2 = tt.broadcast %row : tensor<64x1xi32> -> tensor<64x64xi32>
  %column2 = tt.broadcast %column : tensor<1x64xi32> -> tensor<64x64xi32>
  %below = arith.cmpi sgt, %row2, %column2 : tensor<64x64xi32>
  %factor = arith.select %below, %power, %none : tensor<64x64xi1>, tensor<64x64xf32>
  %begin = arith.muli %row, %width : tensor<64x1xi32>
  %begins = tt.broadcast %begin : tensor<64x1xi32> -> tensor<64x32xi32>
  %part = tt.expand_dims %short {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %parts = tt.broadcast %part : tensor<1x32xi32> -> tensor<64x32xi32>
  %places = arith.addi %begins, %parts : tensor<64x32xi32>
  scf.for %i = %c0 to %n step %c32 : i32 {
    %from = tt.addptr %in, %i : !tt.ptr<f32>, i32
    %froms = tt.splat %from : !tt.ptr<f32> -> tensor<64x32x!tt.ptr<f32>>
    %x_at = tt.addptr %froms, %places : tensor<64x32x!tt.ptr<f32>>, tensor<64x32xi32>
    %x = tt.load %x_at : tensor<64x32x!tt.ptr<f32>>
    %y = tt.dot %factor, %x, %zero : tensor<64x64xf32> * tensor<64x32xf32> -> tensor<64x32xf32>
    %to = tt.addptr %out, %i : !tt.ptr<f32>, i32
    %tos = tt.splat %to : !tt.ptr<f32> -> tensor<64x32x!tt.ptr<f32>>
    %y_at = tt.addptr %tos, %places : tensor<64x32x!tt.ptr<f32>>, tensor<64x32xi32>
    tt.store %y_at, %y : tensor<64x32x!tt.ptr<f32>>
  }
  tt.return
}
