// A constant that does not fit into an access stays in the 32-bit offset, and both arrays share it.
//
// RUN: llopt compile %s --target hip:gfx1100 | FileCheck %s

#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: far:
  // CHECK: v_lshl_or_b32 [[FAR:v[0-9]+]], v0, 4, 0x1000
  // CHECK: global_load_b128 {{.*}}, [[FAR]], s[
  // CHECK: global_store_b128 [[FAR]], {{.*}}, s[
  tt.func public @far(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %r = tt.make_range {start = 1024 : i32, end = 1536 : i32} : tensor<512xi32, #blocked>
    %p0 = tt.splat %p : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #blocked>
    %p1 = tt.addptr %p0, %r : tensor<512x!tt.ptr<f32>, #blocked>, tensor<512xi32, #blocked>
    %v = tt.load %p1 : tensor<512x!tt.ptr<f32>, #blocked>
    %q0 = tt.splat %q : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #blocked>
    %q1 = tt.addptr %q0, %r : tensor<512x!tt.ptr<f32>, #blocked>, tensor<512xi32, #blocked>
    tt.store %q1, %v : tensor<512x!tt.ptr<f32>, #blocked>
    tt.return
  }
}
