// A masked copy: the widest accesses that the mask allows, each under its predicate.
//
// RUN: llopt compile %s --target cuda:90 --no-line-info -o %t.ptx
// RUN: %exact %t.ptx %S/expected/masked-copy.ptx
// RUN: llopt compile %s --target hip:gfx1200 --no-line-info -o %t.s
// RUN: %exact %t.s %S/expected/masked-copy.s

#a = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @masked_copy(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}) {
    %r = tt.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32, #a>
    %bound = tt.splat %n : i32 -> tensor<512xi32, #a>
    %mask = arith.cmpi slt, %r, %bound : tensor<512xi32, #a>
    %p0 = tt.splat %p : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #a>
    %p1 = tt.addptr %p0, %r : tensor<512x!tt.ptr<f32>, #a>, tensor<512xi32, #a>
    %v = tt.load %p1, %mask : tensor<512x!tt.ptr<f32>, #a>
    %q0 = tt.splat %q : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #a>
    %q1 = tt.addptr %q0, %r : tensor<512x!tt.ptr<f32>, #a>, tensor<512xi32, #a>
    tt.store %q1, %v, %mask : tensor<512x!tt.ptr<f32>, #a>
    tt.return
  }
}
