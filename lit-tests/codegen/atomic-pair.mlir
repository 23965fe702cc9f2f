// Pairs of 16-bit floats are added at once on AMD, even where one of them is masked.
//
// RUN: llopt compile %s --target hip:gfx1200 | FileCheck %s

#blocked = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: halves:
  // CHECK: global_atomic_pk_add_f16
  // CHECK-NOT: global_atomic
  // CHECK: s_endpgm
  tt.func public @halves(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %n: i32, %x: f16) {
    %r = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32, #blocked>
    %v = tt.splat %x : f16 -> tensor<256xf16, #blocked>
    %l = tt.splat %n : i32 -> tensor<256xi32, #blocked>
    %m = arith.cmpi slt, %r, %l : tensor<256xi32, #blocked>
    %s = tt.splat %p : !tt.ptr<f16> -> tensor<256x!tt.ptr<f16>, #blocked>
    %q = tt.addptr %s, %r : tensor<256x!tt.ptr<f16>, #blocked>, tensor<256xi32, #blocked>
    %o = tt.atomic_rmw fadd, relaxed, gpu, %q, %v, %m : (tensor<256x!tt.ptr<f16>, #blocked>, tensor<256xf16, #blocked>, tensor<256xi1, #blocked>) -> tensor<256xf16, #blocked>
    tt.return
  }
}
