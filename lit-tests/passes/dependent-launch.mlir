// Kernels that wait for the one before them where they first access global memory.
//
// RUN: llopt %s --split-input-file --dependent-launch | FileCheck %s

// Numbers and shared memory do not depend on the kernel before.
// CHECK-LABEL: @loads
// CHECK: tt.get_program_id
// CHECK: ttg.local_alloc
// CHECK-NOT: tt.grid
// CHECK: ttng.init_barrier
// CHECK: tt.grid_dependency_wait
// CHECK-NEXT: tt.load
// CHECK-NOT: tt.grid
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @loads(%p: !tt.ptr<i32>) {
    %x = tt.get_program_id x : i32
    %at = tt.addptr %p, %x : !tt.ptr<i32>, i32
    %b = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #shared, #smem, mutable>
    ttng.init_barrier %b, 1 : !ttg.memdesc<1xi64, #shared, #smem, mutable>
    %v = tt.load %at : !tt.ptr<i32>
    tt.store %at, %v : !tt.ptr<i32>
    tt.return
  }
}

// -----

// Blocks that access nothing on one path wait as well: the wait is before the branch.
// CHECK-LABEL: @returns_early
// CHECK: arith.cmpi
// CHECK-NEXT: tt.grid_dependency_wait
// CHECK-NEXT: cf.cond_br
tt.func public @returns_early(%p: !tt.ptr<i32>, %n: i32) {
  %x = tt.get_program_id x : i32
  %out = arith.cmpi sge, %x, %n : i32
  cf.cond_br %out, ^end, ^work
^work:
  %at = tt.addptr %p, %x : !tt.ptr<i32>, i32
  tt.store %at, %x : !tt.ptr<i32>
  tt.return
^end:
  tt.return
}

// -----

// An op with regions that access global memory counts as one that does.
// CHECK-LABEL: @in_a_loop
// CHECK: tt.grid_dependency_wait
// CHECK-NEXT: scf.for
tt.func public @in_a_loop(%p: !tt.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %at = tt.addptr %p, %i : !tt.ptr<i32>, i32
    tt.store %at, %i : !tt.ptr<i32>
  }
  tt.return
}

// -----

// Both branches of a choice wait, each where it first accesses memory, or at its end.
// CHECK-LABEL: @chooses
// CHECK: llvm.intr.assume
// CHECK-NEXT: scf.if
// CHECK-NEXT: arith.addi
// CHECK-NEXT: tt.grid_dependency_wait
// CHECK-NEXT: tt.store
// CHECK: else
// CHECK-NEXT: tt.grid_dependency_wait
// CHECK-NEXT: scf.yield
// CHECK-NOT: tt.grid
tt.func public @chooses(%p: !tt.ptr<i32>, %n: i32, %b: i1) {
  llvm.intr.assume %b : i1
  %r = scf.if %b -> i32 {
    %m = arith.addi %n, %n : i32
    tt.store %p, %m : !tt.ptr<i32>
    scf.yield %m : i32
  } else {
    scf.yield %n : i32
  }
  tt.store %p, %r : !tt.ptr<i32>
  tt.return
}

// -----

// A kernel without accesses waits at its end, since what follows it relies on the end of all kernels before it.
// CHECK-LABEL: @nothing
// CHECK-NEXT: tt.grid_dependency_wait
// CHECK-NEXT: tt.return
tt.func public @nothing() {
  tt.return
}

// -----

// Who waits already knows better where.
// CHECK-LABEL: @waits
// CHECK: tt.load
// CHECK-NEXT: tt.grid_dependency_wait
// CHECK-NOT: tt.grid
tt.func public @waits(%p: !tt.ptr<i32>, %q: !tt.ptr<i32>) {
  %v = tt.load %p : !tt.ptr<i32>
  tt.grid_dependency_wait
  tt.store %q, %v : !tt.ptr<i32>
  tt.return
}
