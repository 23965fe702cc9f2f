// RUN: llopt compile %s --target hip:gfx942 --num-warps 4 --emit ttgir -o - | FileCheck %s --check-prefixes=CHECK,AMD
// RUN: llopt compile %s --target cuda:90 --num-warps 4 --emit ttgir -o - | FileCheck %s --check-prefixes=CHECK,NV

// A result of eight rows, where matrix units have tiles of sixteen: each warp multiplies sixteen rows, of which half repeat the
// others, in its own sixteen columns.
// AMD: #[[UNIT:.*]] = #ttg.amd_mfma<{version = 3, warpsPerCTA = [1, 4], instrShape = [16, 16, 16]
// NV: #[[UNIT:.*]] = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 4]
// CHECK-LABEL: @eight_rows(
// CHECK: tt.dot {{.*}} -> tensor<8x64xf32, #[[UNIT]]>
tt.func public @eight_rows(%a: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %b: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %steps: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zeros = arith.constant dense<0.0> : tensor<8x64xf32>
  %i8 = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
  %i64 = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %i128 = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %row = tt.expand_dims %i8 {axis = 1 : i32} : tensor<8xi32> -> tensor<8x1xi32>
  %column = tt.expand_dims %i64 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %ka = tt.expand_dims %i128 {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %kb = tt.expand_dims %i128 {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
  %length = arith.constant dense<4096> : tensor<8x1xi32>
  %of_row = arith.muli %row, %length : tensor<8x1xi32>
  %a_rows = tt.broadcast %of_row : tensor<8x1xi32> -> tensor<8x128xi32>
  %a_k = tt.broadcast %ka : tensor<1x128xi32> -> tensor<8x128xi32>
  %of_a = arith.addi %a_rows, %a_k : tensor<8x128xi32>
  %as = tt.splat %a : !tt.ptr<bf16> -> tensor<8x128x!tt.ptr<bf16>>
  %first_a = tt.addptr %as, %of_a : tensor<8x128x!tt.ptr<bf16>>, tensor<8x128xi32>
  %lengths = arith.constant dense<4096> : tensor<1x64xi32>
  %of_column = arith.muli %column, %lengths : tensor<1x64xi32>
  %b_columns = tt.broadcast %of_column : tensor<1x64xi32> -> tensor<128x64xi32>
  %b_k = tt.broadcast %kb : tensor<128x1xi32> -> tensor<128x64xi32>
  %of_b = arith.addi %b_columns, %b_k : tensor<128x64xi32>
  %bs = tt.splat %b : !tt.ptr<bf16> -> tensor<128x64x!tt.ptr<bf16>>
  %first_b = tt.addptr %bs, %of_b : tensor<128x64x!tt.ptr<bf16>>, tensor<128x64xi32>
  %a_step = arith.constant dense<128> : tensor<8x128xi32>
  %b_step = arith.constant dense<128> : tensor<128x64xi32>
  %sums:3 = scf.for %k = %c0 to %steps step %c1 iter_args(%sum = %zeros, %pa = %first_a, %pb = %first_b) -> (tensor<8x64xf32>, tensor<8x128x!tt.ptr<bf16>>, tensor<128x64x!tt.ptr<bf16>>) : i32 {
    %x = tt.load %pa : tensor<8x128x!tt.ptr<bf16>>
    %y = tt.load %pb : tensor<128x64x!tt.ptr<bf16>>
    %next = tt.dot %x, %y, %sum : tensor<8x128xbf16> * tensor<128x64xbf16> -> tensor<8x64xf32>
    %next_a = tt.addptr %pa, %a_step : tensor<8x128x!tt.ptr<bf16>>, tensor<8x128xi32>
    %next_b = tt.addptr %pb, %b_step : tensor<128x64x!tt.ptr<bf16>>, tensor<128x64xi32>
    scf.yield %next, %next_a, %next_b : tensor<8x64xf32>, tensor<8x128x!tt.ptr<bf16>>, tensor<128x64x!tt.ptr<bf16>>
  }
  %width = arith.constant dense<64> : tensor<8x1xi32>
  %o_row = arith.muli %row, %width : tensor<8x1xi32>
  %o_rows = tt.broadcast %o_row : tensor<8x1xi32> -> tensor<8x64xi32>
  %o_columns = tt.broadcast %column : tensor<1x64xi32> -> tensor<8x64xi32>
  %of_o = arith.addi %o_rows, %o_columns : tensor<8x64xi32>
  %os = tt.splat %o : !tt.ptr<f32> -> tensor<8x64x!tt.ptr<f32>>
  %out = tt.addptr %os, %of_o : tensor<8x64x!tt.ptr<f32>>, tensor<8x64xi32>
  tt.store %out, %sums#0 : tensor<8x64x!tt.ptr<f32>>
  tt.return
}
