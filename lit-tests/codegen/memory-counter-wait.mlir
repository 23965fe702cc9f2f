// RUN: llopt compile %s --target hip:gfx942 --emit amdgcn -o - | FileCheck %s --check-prefix=SHARED
// RUN: sed 's/gfx942/gfx1100/; s/warp" = 64/warp" = 32/' %s > %t.rdna3.mlir
// RUN: llopt compile %t.rdna3.mlir --target hip:gfx1100 --emit amdgcn -o - | FileCheck %s --check-prefix=OWN
// RUN: sed 's/gfx942/gfx1200/; s/warp" = 64/warp" = 32/' %s > %t.rdna4.mlir
// RUN: llopt compile %t.rdna4.mlir --target hip:gfx1200 --emit amdgcn -o - | FileCheck %s --check-prefix=APART
// RUN: sed 's/hip:gfx942/cuda:90/; s/warp" = 64/warp" = 32/' %s > %t.nvidia.mlir
// RUN: not llopt compile %t.nvidia.mlir --target cuda:90 --emit ptx 2>&1 | FileCheck %s --check-prefix=REFUSED

// Each wait is for the counters that the architecture has: one for loads and stores together, one for each, or a
// wait for each counter.
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
  tt.func public @waits(%to: !tt.ptr<i32>, %value: i32) {
    // SHARED: s_waitcnt vmcnt(1) lgkmcnt(3)
    // OWN: s_waitcnt vmcnt(2) lgkmcnt(3)
    // OWN: s_waitcnt_vscnt null, 1
    // APART: s_wait_storecnt 0x1
    // APART: s_wait_loadcnt_dscnt 0x203
    // REFUSED: error: 'amdg.memory_counter_wait' is not supported
    amdg.memory_counter_wait load(2) store(1) ds(3)
    tt.store %to, %value : !tt.ptr<i32>
    // SHARED: global_store
    // SHARED: s_waitcnt vmcnt(0)
    // OWN: global_store
    // OWN: s_waitcnt_vscnt null, 0
    // APART: global_store
    // APART: s_wait_storecnt 0x0
    amdg.memory_counter_wait store(0)
    tt.return
  }
}
