// Groups of warps part at the kernel's entry: each has a barrier of its own, threads that count from its first warp, and
// the registers that it asks for.
//
// RUN: llopt compile %s --target cuda:90 | FileCheck %s
// RUN: llopt %s --tritongpu-allocate-warp-groups | FileCheck %s --check-prefix=GROUPS

#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#one = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
// GROUPS: "ttg.total-num-warps" = 12 : i32
// GROUPS: ttg.warp_specialize(%{{.*}}) attributes {actualRegisters = array<i32: 256, 24, 80>, requestedRegisters = array<i32: 24, 80>, warpGroupStartIds = array<i32: 8, 4>}
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK: .reqntid 384
  // CHECK: .maxnreg 168

  // The kernel's warps wait for one another at barrier 0, and go home together with the others.
  // CHECK-DAG: setmaxnreg.inc.sync.aligned.u32 256
  // CHECK-DAG: bar.sync {{.*}}0, 128
  // CHECK-DAG: barrier.sync {{.*}}1;

  // The first partition is one warp, behind the second, which has four.
  // CHECK-DAG: setmaxnreg.dec.sync.aligned.u32 80
  // CHECK-DAG: setmaxnreg.dec.sync.aligned.u32 24
  // CHECK-DAG: bar.sync {{.*}}3, 128
  tt.func public @groups(%p: !tt.ptr<i32>) {
    ttg.warp_specialize(%p) attributes {requestedRegisters = array<i32: 24, 80>}
    default {
      %n = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #b>
      %m = ttg.local_alloc %n : (tensor<128xi32, #b>) -> !ttg.memdesc<128xi32, #s, #smem, mutable>
      %v = ttg.local_load %m : !ttg.memdesc<128xi32, #s, #smem, mutable> -> tensor<128xi32, #b>
      %q = tt.splat %p : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>, #b>
      %o = tt.addptr %q, %n : tensor<128x!tt.ptr<i32>, #b>, tensor<128xi32, #b>
      tt.store %o, %v : tensor<128x!tt.ptr<i32>, #b>
      ttg.warp_yield
    }
    partition0(%p0: !tt.ptr<i32>) num_warps(1) {
      %n = tt.make_range {end = 64 : i32, start = 32 : i32} : tensor<32xi32, #one>
      %q = tt.splat %p0 : !tt.ptr<i32> -> tensor<32x!tt.ptr<i32>, #one>
      tt.store %q, %n : tensor<32x!tt.ptr<i32>, #one>
      ttg.warp_return
    }
    partition1(%p1: !tt.ptr<i32>) num_warps(4) {
      %n = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #b>
      %m = ttg.local_alloc %n : (tensor<128xi32, #b>) -> !ttg.memdesc<128xi32, #s, #smem, mutable>
      %v = ttg.local_load %m : !ttg.memdesc<128xi32, #s, #smem, mutable> -> tensor<128xi32, #b>
      %q = tt.splat %p1 : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>, #b>
      tt.store %q, %v : tensor<128x!tt.ptr<i32>, #b>
      ttg.warp_return
    } : (!tt.ptr<i32>) -> ()
    tt.return
  }
}
