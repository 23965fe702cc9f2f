// Atomic additions whose results nobody reads.
//
// RUN: llopt compile %s --target cuda:90 --no-line-info -o %t.ptx
// RUN: %exact %t.ptx %S/expected/atomic-add.ptx
// RUN: llopt compile %s --target hip:gfx1200 --no-line-info -o %t.s
// RUN: %exact %t.s %S/expected/atomic-add.s

#a = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @atomic_add(%p: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %n: i32) {
    %r = tt.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32, #a>
    %p0 = tt.splat %p : !tt.ptr<i32> -> tensor<512x!tt.ptr<i32>, #a>
    %p1 = tt.addptr %p0, %r : tensor<512x!tt.ptr<i32>, #a>, tensor<512xi32, #a>
    %v = tt.splat %n : i32 -> tensor<512xi32, #a>
    %old = tt.atomic_rmw add, relaxed, gpu, %p1, %v : (tensor<512x!tt.ptr<i32>, #a>, tensor<512xi32, #a>) -> tensor<512xi32, #a>
    tt.return
  }
}
