// A loop whose invariant operations are to stay inside says so to LLVM; the next loop does not.
//
// RUN: llopt compile %s --target cuda:90 --emit llvm | FileCheck %s
// RUN: llopt compile %s --target hip:gfx1100 --emit llvm | FileCheck %s

#loop_licm = #llvm.loop_licm<disable = true, versioningDisable = true>
#loop_annotation = #llvm.loop_annotation<licm = #loop_licm>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32} {
  // CHECK: !llvm.loop ![[LOOP:[0-9]+]]
  // CHECK-NOT: !llvm.loop
  // CHECK: ![[LOOP]] = distinct !{![[LOOP]], ![[STAYS:[0-9]+]],
  // CHECK: ![[STAYS]] = !{!"llvm.licm.disable"}
  tt.func public @loops(%p: !tt.ptr<i32>, %n: i32) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    scf.for %i = %zero to %n step %one : i32 {
      %old = tt.atomic_rmw add, relaxed, gpu, %p, %i : (!tt.ptr<i32>, i32) -> i32
    } {llvm.loop_annotation = #loop_annotation}
    scf.for %i = %zero to %n step %one : i32 {
      %old = tt.atomic_rmw xor, relaxed, gpu, %p, %i : (!tt.ptr<i32>, i32) -> i32
    }
    tt.return
  }
}
