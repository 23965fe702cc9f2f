// Tile IR without layouts, so that it compiles for every target.
tt.func public @scale(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32},
                      %factor: f32, %n: i32) {
  %c256 = arith.constant 256 : i32
  %pid = tt.get_program_id x : i32
  %start = arith.muli %pid, %c256 : i32
  %range = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
  %start_splat = tt.splat %start : i32 -> tensor<256xi32>
  %index = arith.addi %start_splat, %range : tensor<256xi32>
  %n_splat = tt.splat %n : i32 -> tensor<256xi32>
  %mask = arith.cmpi slt, %index, %n_splat : tensor<256xi32>
  %x_splat = tt.splat %x : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>>
  %place = tt.addptr %x_splat, %index : tensor<256x!tt.ptr<f32>>, tensor<256xi32>
  %value = tt.load %place, %mask : tensor<256x!tt.ptr<f32>>
  %factor_splat = tt.splat %factor : f32 -> tensor<256xf32>
  %scaled = arith.mulf %value, %factor_splat : tensor<256xf32>
  tt.store %place, %scaled, %mask : tensor<256x!tt.ptr<f32>>
  tt.return
}
