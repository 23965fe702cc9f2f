// RUN: llopt compile %s --target hip:gfx942 --num-warps 4 --num-stages 2 --waves-per-eu 2 --emit llvm -o - | FileCheck %s --check-prefix=TWO
// RUN: llopt compile %s --target hip:gfx942 --num-warps 4 --num-stages 2 --waves-per-eu 8 --emit llvm -o - | FileCheck %s --check-prefix=ANY

// A tile of 128 by 128 takes 64 registers of each thread for its sums, and some 150 in all. With two waves on each unit a thread
// has 256; with eight it has 64, and the loop would read spilled values in each iteration: so that wish is not granted.
// TWO: "amdgpu-waves-per-eu"="2, 2"
// ANY: "amdgpu-waves-per-eu"="0, 0"
tt.func public @product(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %steps: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zeros = arith.constant dense<0.0> : tensor<128x128xf32>
  %i = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %k = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %row = tt.expand_dims %i {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
  %column = tt.expand_dims %i {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %ka = tt.expand_dims %k {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %kb = tt.expand_dims %k {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %length = arith.constant dense<4096> : tensor<128x1xi32>
  %of_row = arith.muli %row, %length : tensor<128x1xi32>
  %a_rows = tt.broadcast %of_row : tensor<128x1xi32> -> tensor<128x64xi32>
  %a_k = tt.broadcast %ka : tensor<1x64xi32> -> tensor<128x64xi32>
  %of_a = arith.addi %a_rows, %a_k : tensor<128x64xi32>
  %as = tt.splat %a : !tt.ptr<f16> -> tensor<128x64x!tt.ptr<f16>>
  %first_a = tt.addptr %as, %of_a : tensor<128x64x!tt.ptr<f16>>, tensor<128x64xi32>
  %lengths = arith.constant dense<4096> : tensor<1x128xi32>
  %of_column = arith.muli %column, %lengths : tensor<1x128xi32>
  %b_columns = tt.broadcast %of_column : tensor<1x128xi32> -> tensor<64x128xi32>
  %b_k = tt.broadcast %kb : tensor<64x1xi32> -> tensor<64x128xi32>
  %of_b = arith.addi %b_columns, %b_k : tensor<64x128xi32>
  %bs = tt.splat %b : !tt.ptr<f16> -> tensor<64x128x!tt.ptr<f16>>
  %first_b = tt.addptr %bs, %of_b : tensor<64x128x!tt.ptr<f16>>, tensor<64x128xi32>
  %a_step = arith.constant dense<64> : tensor<128x64xi32>
  %b_step = arith.constant dense<64> : tensor<64x128xi32>
  %sums:3 = scf.for %n = %c0 to %steps step %c1 iter_args(%sum = %zeros, %pa = %first_a, %pb = %first_b) -> (tensor<128x128xf32>, tensor<128x64x!tt.ptr<f16>>, tensor<64x128x!tt.ptr<f16>>) : i32 {
    %x = tt.load %pa : tensor<128x64x!tt.ptr<f16>>
    %y = tt.load %pb : tensor<64x128x!tt.ptr<f16>>
    %next = tt.dot %x, %y, %sum : tensor<128x64xf16> * tensor<64x128xf16> -> tensor<128x128xf32>
    %next_a = tt.addptr %pa, %a_step : tensor<128x64x!tt.ptr<f16>>, tensor<128x64xi32>
    %next_b = tt.addptr %pb, %b_step : tensor<64x128x!tt.ptr<f16>>, tensor<64x128xi32>
    scf.yield %next, %next_a, %next_b : tensor<128x128xf32>, tensor<128x64x!tt.ptr<f16>>, tensor<64x128x!tt.ptr<f16>>
  }
  %o_row = arith.muli %row, %length : tensor<128x1xi32>
  %o_rows = tt.broadcast %o_row : tensor<128x1xi32> -> tensor<128x128xi32>
  %o_columns = tt.broadcast %column : tensor<1x128xi32> -> tensor<128x128xi32>
  %of_o = arith.addi %o_rows, %o_columns : tensor<128x128xi32>
  %os = tt.splat %o : !tt.ptr<f32> -> tensor<128x128x!tt.ptr<f32>>
  %out = tt.addptr %os, %of_o : tensor<128x128x!tt.ptr<f32>>, tensor<128x128xi32>
  tt.store %out, %sums#0 : tensor<128x128x!tt.ptr<f32>>
  tt.return
}
