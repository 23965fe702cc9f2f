// A conversion across warps: through shared memory, with one barrier between writes and reads.
//
// RUN: llopt compile %s --target cuda:90 --no-line-info -o %t.ptx
// RUN: %exact %t.ptx %S/expected/convert-in-block.ptx
// RUN: llopt compile %s --target hip:gfx1200 --no-line-info -o %t.s
// RUN: %exact %t.s %S/expected/convert-in-block.s

#a = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#b = #ttg.linear<{register = [[128]], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]], block = []}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @convert_in_block(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %r = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32, #a>
    %p0 = tt.splat %p : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>, #a>
    %p1 = tt.addptr %p0, %r : tensor<256x!tt.ptr<f32>, #a>, tensor<256xi32, #a>
    %v = tt.load %p1 : tensor<256x!tt.ptr<f32>, #a>
    %w = ttg.convert_layout %v : tensor<256xf32, #a> -> tensor<256xf32, #b>
    %s = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32, #b>
    %q0 = tt.splat %q : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>, #b>
    %q1 = tt.addptr %q0, %s : tensor<256x!tt.ptr<f32>, #b>, tensor<256xi32, #b>
    tt.store %q1, %w : tensor<256x!tt.ptr<f32>, #b>
    tt.return
  }
}
