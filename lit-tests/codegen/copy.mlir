// Four neighbours go by one instruction, and constants between addresses are its offset.
//
// RUN: llopt compile %s --target cuda:90 | FileCheck %s --check-prefix=NV
// RUN: llopt compile %s --target hip:gfx1200 | FileCheck %s --check-prefix=AMD

#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  // NV: .reqntid 128
  // NV: ld.global.v4.b32 {{.*}}]
  // NV: ld.global.v4.b32 {{.*}}+2048]
  // NV: st.global.v4.b32
  // NV: st.global.v4.b32

  // AMD: global_load_b128 {{.*}}{{$}}
  // AMD: global_load_b128 {{.*}}offset:2048
  // AMD: global_store_b128
  // AMD: global_store_b128
  tt.func public @copy(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %r = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32, #blocked>
    %p0 = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #blocked>
    %p1 = tt.addptr %p0, %r : tensor<1024x!tt.ptr<f32>, #blocked>, tensor<1024xi32, #blocked>
    %v = tt.load %p1 : tensor<1024x!tt.ptr<f32>, #blocked>
    %q0 = tt.splat %q : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #blocked>
    %q1 = tt.addptr %q0, %r : tensor<1024x!tt.ptr<f32>, #blocked>, tensor<1024xi32, #blocked>
    tt.store %q1, %v : tensor<1024x!tt.ptr<f32>, #blocked>
    tt.return
  }
}
