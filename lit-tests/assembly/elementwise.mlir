// Arithmetic on tensors: a fused multiplication and addition for each element, and an exponential.
//
// RUN: llopt compile %s --target cuda:90 --no-line-info -o %t.ptx
// RUN: %exact %t.ptx %S/expected/elementwise.ptx
// RUN: llopt compile %s --target hip:gfx1200 --no-line-info -o %t.s
// RUN: %exact %t.s %S/expected/elementwise.s

#a = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @elementwise(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %f: f32) {
    %r = tt.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32, #a>
    %p0 = tt.splat %p : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #a>
    %p1 = tt.addptr %p0, %r : tensor<512x!tt.ptr<f32>, #a>, tensor<512xi32, #a>
    %v = tt.load %p1 : tensor<512x!tt.ptr<f32>, #a>
    %s = tt.splat %f : f32 -> tensor<512xf32, #a>
    %m = arith.mulf %v, %s : tensor<512xf32, #a>
    %w = arith.addf %m, %v : tensor<512xf32, #a>
    %e = math.exp2 %w : tensor<512xf32, #a>
    tt.store %p1, %e : tensor<512x!tt.ptr<f32>, #a>
    tt.return
  }
}
