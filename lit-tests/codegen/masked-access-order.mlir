// What a masked store wrote is loaded again, not remembered from before.
//
// RUN: llopt compile %s --target cuda:90 | FileCheck %s --check-prefix=NV
// RUN: llopt compile %s --target hip:gfx1200 | FileCheck %s --check-prefix=AMD

#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  // NV: @%{{.*}} ld.global
  // NV: @%{{.*}} st.global
  // NV: @%{{.*}} ld.global
  // NV: @%{{.*}} st.global

  // AMD: global_load_b32
  // AMD: global_store_b32
  // AMD: global_load_b32
  // AMD: global_store_b32
  tt.func public @twice(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
    %i = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #blocked>
    %ns = tt.splat %n : i32 -> tensor<128xi32, #blocked>
    %inside = arith.cmpi slt, %i, %ns : tensor<128xi32, #blocked>
    %p0 = tt.splat %p : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #blocked>
    %ps = tt.addptr %p0, %i : tensor<128x!tt.ptr<f32>, #blocked>, tensor<128xi32, #blocked>
    %q0 = tt.splat %q : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #blocked>
    %qs = tt.addptr %q0, %i : tensor<128x!tt.ptr<f32>, #blocked>, tensor<128xi32, #blocked>
    %before = tt.load %ps, %inside : tensor<128x!tt.ptr<f32>, #blocked>
    %twice = arith.addf %before, %before : tensor<128xf32, #blocked>
    tt.store %qs, %twice, %inside : tensor<128x!tt.ptr<f32>, #blocked>
    %after = tt.load %ps, %inside : tensor<128x!tt.ptr<f32>, #blocked>
    %sum = arith.addf %before, %after : tensor<128xf32, #blocked>
    tt.store %ps, %sum, %inside : tensor<128x!tt.ptr<f32>, #blocked>
    tt.return
  }
}
