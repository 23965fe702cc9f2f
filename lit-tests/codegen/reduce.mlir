// A row lies in one warp and is reduced by shuffles alone; a column lies in four warps, which meet in
// shared memory.
//
// RUN: llopt compile %s --target cuda:90 | FileCheck %s --check-prefix=NV
// RUN: llopt compile %s --target hip:gfx1200 | FileCheck %s --check-prefix=AMD

#blocked = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#rows = #ttg.slice<{dim = 1, parent = #blocked}>
#columns = #ttg.slice<{dim = 0, parent = #blocked}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  // NV-COUNT-5: shfl.sync.bfly
  // NV-NOT: shfl
  // NV: st.shared
  // NV: bar.sync
  // NV: ld.shared.v4

  // AMD: ds_store_b32
  // AMD: s_barrier_wait
  // AMD: ds_load_b128
  tt.func public @reduce(%p: !tt.ptr<f32>, %of_rows: !tt.ptr<f32>, %of_columns: !tt.ptr<f32>) {
    %x = tt.splat %p : !tt.ptr<f32> -> tensor<4x32x!tt.ptr<f32>, #blocked>
    %r = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #columns>
    %e = tt.expand_dims %r {axis = 0 : i32} : tensor<32xi32, #columns> -> tensor<1x32xi32, #blocked>
    %b = tt.broadcast %e : tensor<1x32xi32, #blocked> -> tensor<4x32xi32, #blocked>
    %q = tt.addptr %x, %b : tensor<4x32x!tt.ptr<f32>, #blocked>, tensor<4x32xi32, #blocked>
    %v = tt.load %q : tensor<4x32x!tt.ptr<f32>, #blocked>
    %row = "tt.reduce"(%v) <{axis = 1 : i32}> ({
    ^bb0(%a: f32, %c: f32):
      %s = arith.addf %a, %c : f32
      tt.reduce.return %s : f32
    }) : (tensor<4x32xf32, #blocked>) -> tensor<4xf32, #rows>
    %column = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %c: f32):
      %s = arith.addf %a, %c : f32
      tt.reduce.return %s : f32
    }) : (tensor<4x32xf32, #blocked>) -> tensor<32xf32, #columns>
    %o = tt.splat %of_rows : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>, #rows>
    tt.store %o, %row : tensor<4x!tt.ptr<f32>, #rows>
    %t = tt.splat %of_columns : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>, #columns>
    tt.store %t, %column : tensor<32x!tt.ptr<f32>, #columns>
    tt.return
  }
}
