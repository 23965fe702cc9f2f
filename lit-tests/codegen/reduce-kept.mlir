// Sums of columns, of which each thread has sixteen, in four lanes and two warps: in the lanes eight columns are given away,
// then four, and each lane writes the four sums that it has kept. None of them comes back before that.
//
// RUN: llopt compile %s --target cuda:90 | FileCheck %s --check-prefix=NV
// RUN: llopt compile %s --target hip:gfx1200 | FileCheck %s --check-prefix=AMD

#columns = #ttg.blocked<{sizePerThread = [1, 16], threadsPerWarp = [4, 8], warpsPerCTA = [2, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 2 : i32, "ttg.threads-per-warp" = 32 : i32} {
  // NV-LABEL: .entry columns
  // NV-COUNT-12: shfl.sync.bfly
  // NV-NOT: shfl.sync
  // NV-COUNT-4: st.shared
  // NV-NOT: st.shared
  // NV: bar.sync

  // AMD-LABEL: columns:
  // AMD-COUNT-2: ds_store_2addr
  // AMD-NOT: ds_store_
  // AMD: s_barrier_wait
  tt.func public @columns(%p: !tt.ptr<f32>, %o: !tt.ptr<f32>) {
    %x = tt.splat %p : !tt.ptr<f32> -> tensor<8x128x!tt.ptr<f32>, #columns>
    %r = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #ttg.slice<{dim = 0, parent = #columns}>>
    %e = tt.expand_dims %r {axis = 0 : i32} : tensor<128xi32, #ttg.slice<{dim = 0, parent = #columns}>> -> tensor<1x128xi32, #columns>
    %b = tt.broadcast %e : tensor<1x128xi32, #columns> -> tensor<8x128xi32, #columns>
    %a = tt.addptr %x, %b : tensor<8x128x!tt.ptr<f32>, #columns>, tensor<8x128xi32, #columns>
    %v = tt.load %a : tensor<8x128x!tt.ptr<f32>, #columns>
    %s = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%l: f32, %m: f32):
      %n = arith.addf %l, %m : f32
      tt.reduce.return %n : f32
    }) : (tensor<8x128xf32, #columns>) -> tensor<128xf32, #ttg.slice<{dim = 0, parent = #columns}>>
    %q = tt.splat %o : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #columns}>>
    %t = tt.addptr %q, %r : tensor<128x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #columns}>>, tensor<128xi32, #ttg.slice<{dim = 0, parent = #columns}>>
    tt.store %t, %s : tensor<128x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #columns}>>
    tt.return
  }
}
