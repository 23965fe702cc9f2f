// Each thread needs 16 maxima with their places, out of 4 partial results each: one warp after the other
// combines them in neighbouring lanes, and they are read back after a second barrier.
//
// RUN: llopt compile %s --target cuda:90 | FileCheck %s --check-prefix=NV
// RUN: llopt compile %s --target hip:gfx1200 | FileCheck %s --check-prefix=AMD

#long = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [1, 0]}>
#of_long = #ttg.slice<{dim = 0, parent = #long}>
#rows_of_long = #ttg.slice<{dim = 1, parent = #long}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  // NV-LABEL: .entry arg_max
  // NV: bar.sync
  // NV: shfl.sync.bfly
  // NV: st.shared
  // NV: bar.sync
  // NV-NOT: shfl

  // AMD-LABEL: arg_max:
  // AMD: s_barrier_wait
  // AMD: v_mov_b32_dpp
  // AMD: ds_store_
  // AMD: s_barrier_wait
  // AMD-NOT: dpp
  tt.func public @arg_max(%p: !tt.ptr<f32>, %o: !tt.ptr<i32>) {
    %x = tt.splat %p : !tt.ptr<f32> -> tensor<16x128x!tt.ptr<f32>, #long>
    %v = tt.load %x : tensor<16x128x!tt.ptr<f32>, #long>
    %r = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #of_long>
    %e = tt.expand_dims %r {axis = 0 : i32} : tensor<128xi32, #of_long> -> tensor<1x128xi32, #long>
    %i = tt.broadcast %e : tensor<1x128xi32, #long> -> tensor<16x128xi32, #long>
    %m:2 = "tt.reduce"(%v, %i) <{axis = 1 : i32}> ({
    ^bb0(%a: f32, %ai: i32, %b: f32, %bi: i32):
      %g = arith.cmpf ogt, %a, %b : f32
      %w = arith.select %g, %a, %b : f32
      %wi = arith.select %g, %ai, %bi : i32
      tt.reduce.return %w, %wi : f32, i32
    }) : (tensor<16x128xf32, #long>, tensor<16x128xi32, #long>) -> (tensor<16xf32, #rows_of_long>, tensor<16xi32, #rows_of_long>)
    %q = tt.splat %o : !tt.ptr<i32> -> tensor<16x!tt.ptr<i32>, #rows_of_long>
    tt.store %q, %m#1 : tensor<16x!tt.ptr<i32>, #rows_of_long>
    tt.return
  }
}
