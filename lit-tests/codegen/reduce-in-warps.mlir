// Means and sums of squares of 16 warps, which divide where they are combined. Each warp combines all 16 partial results
// by itself: a lane reads one or two of them, and shuffles combine what lanes have. There is no second barrier, and in the
// end all lanes take the result from one of them.
//
// RUN: llopt compile %s --target cuda:90 | FileCheck %s --check-prefix=NV
// RUN: llopt compile %s --target hip:gfx1200 | FileCheck %s --check-prefix=AMD

#row = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [16], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 16 : i32, "ttg.threads-per-warp" = 32 : i32} {
  // NV-LABEL: .entry welford
  // NV: bar.sync
  // NV: ld.shared.b32
  // NV: shfl.sync.bfly
  // NV: div.full.f32
  // NV: shfl.sync.idx
  // NV-NOT: bar.sync

  // AMD-LABEL: welford:
  // AMD: s_barrier_wait
  // AMD: ds_load_
  // AMD: dpp
  // AMD-NOT: s_barrier_wait
  // AMD: s_endpgm
  tt.func public @welford(%p: !tt.ptr<f32>, %o: !tt.ptr<f32>) {
    %r = tt.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32, #row>
    %x = tt.splat %p : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #row>
    %y = tt.addptr %x, %r : tensor<512x!tt.ptr<f32>, #row>, tensor<512xi32, #row>
    %v = tt.load %y : tensor<512x!tt.ptr<f32>, #row>
    %zero = arith.constant dense<0.0> : tensor<512xf32, #row>
    %one = arith.constant dense<1.0> : tensor<512xf32, #row>
    %m:3 = "tt.reduce"(%v, %zero, %one) <{axis = 0 : i32}> ({
    ^bb0(%ma: f32, %sa: f32, %na: f32, %mb: f32, %sb: f32, %nb: f32):
      %d = arith.subf %mb, %ma : f32
      %n = arith.addf %na, %nb : f32
      %w = arith.divf %nb, %n : f32
      %dw = arith.mulf %d, %w : f32
      %mean = arith.addf %ma, %dw : f32
      %s = arith.addf %sa, %sb : f32
      %dd = arith.mulf %d, %dw : f32
      %ddn = arith.mulf %dd, %na : f32
      %sum = arith.addf %s, %ddn : f32
      tt.reduce.return %mean, %sum, %n : f32, f32, f32
    }) : (tensor<512xf32, #row>, tensor<512xf32, #row>, tensor<512xf32, #row>) -> (f32, f32, f32)
    tt.store %o, %m#0 : !tt.ptr<f32>
    %next = arith.constant 1 : i32
    %q = tt.addptr %o, %next : !tt.ptr<f32>, i32
    tt.store %q, %m#1 : !tt.ptr<f32>
    tt.return
  }
}
