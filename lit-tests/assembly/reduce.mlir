// A sum of a block: in the thread, over lanes, and over warps through shared memory.
//
// RUN: llopt compile %s --target cuda:90 --no-line-info -o %t.ptx
// RUN: %exact %t.ptx %S/expected/reduce.ptx
// RUN: llopt compile %s --target hip:gfx1200 --no-line-info -o %t.s
// RUN: %exact %t.s %S/expected/reduce.s

#a = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @sum(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %r = tt.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32, #a>
    %p0 = tt.splat %p : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #a>
    %p1 = tt.addptr %p0, %r : tensor<512x!tt.ptr<f32>, #a>, tensor<512xi32, #a>
    %v = tt.load %p1 : tensor<512x!tt.ptr<f32>, #a>
    %sum = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%x: f32, %y: f32):
      %z = arith.addf %x, %y : f32
      tt.reduce.return %z : f32
    }) : (tensor<512xf32, #a>) -> f32
    tt.store %q, %sum : !tt.ptr<f32>
    tt.return
  }
}
