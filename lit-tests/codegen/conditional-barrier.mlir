// A barrier that a part of the threads comes to, as pipelines have it in which two halves of a block take turns.
//
// RUN: llopt compile %s --target hip:gfx942 | FileCheck %s
// RUN: llopt compile %s --target hip:gfx950 | FileCheck %s

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, "ttg.threads-per-warp" = 64 : i32} {
  // The first half waits where the second one begins, and the second where the first one ends.
  // CHECK-LABEL: turns:
  // CHECK: s_{{(and_saveexec|cbranch)}}
  // CHECK: s_barrier
  // CHECK: s_{{(and_saveexec|xor|andn2_saveexec|cbranch)}}
  // CHECK: s_barrier
  // CHECK: s_endpgm
  tt.func public @turns(%p: !tt.ptr<i32>) {
    %thread = rocdl.workitem.id.x : i32
    %half = arith.constant 256 : i32
    %zero = arith.constant 0 : i32
    %which = arith.divsi %thread, %half : i32
    %late = arith.cmpi ne, %which, %zero : i32
    %early = arith.cmpi eq, %which, %zero : i32
    amdg.cond_barrier %late
    tt.store %p, %zero : !tt.ptr<i32>
    amdg.cond_barrier %early
    tt.return
  }
}
