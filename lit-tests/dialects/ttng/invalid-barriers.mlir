// RUN: llopt %s --split-input-file --verify-diagnostics

// Each part breaks one rule; the message says which, and what is at fault.

#flat1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @element(%b: !ttg.memdesc<1xi32, #flat1, #smem, mutable>) {
    // expected-error @+1 {{'ttng.init_barrier' op a barrier must be one i64 in shared memory, not '!ttg.memdesc<1xi32, #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>, #ttg.shared_memory, mutable>'}}
    ttng.init_barrier %b, 1 : !ttg.memdesc<1xi32, #flat1, #smem, mutable>
    tt.return
  }
}

// -----

#flat1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @several(%b: !ttg.memdesc<2xi64, #flat1, #smem, mutable>) {
    // expected-error @+1 {{'ttng.inval_barrier' op a barrier must be one i64 in shared memory, not '!ttg.memdesc<2xi64, #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>, #ttg.shared_memory, mutable>'}}
    ttng.inval_barrier %b : !ttg.memdesc<2xi64, #flat1, #smem, mutable>
    tt.return
  }
}

// -----

#flat1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @count(%b: !ttg.memdesc<1xi64, #flat1, #smem, mutable>) {
    // expected-error @+1 {{'ttng.init_barrier' op count must be at least 1, but is 0}}
    ttng.init_barrier %b, 0 : !ttg.memdesc<1xi64, #flat1, #smem, mutable>
    tt.return
  }
}

// -----

#flat1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @arrivals(%b: !ttg.memdesc<1xi64, #flat1, #smem, mutable>) {
    // expected-error @+1 {{'ttng.arrive_barrier' op count must be at least 1, but is 0}}
    ttng.arrive_barrier %b, 0 : !ttg.memdesc<1xi64, #flat1, #smem, mutable>
    tt.return
  }
}

// -----

#flat1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @size(%b: !ttg.memdesc<1xi64, #flat1, #smem, mutable>, %p: i1) {
    // expected-error @+1 {{'ttng.barrier_expect' op size must not be negative, but is -1}}
    ttng.barrier_expect %b, -1, %p : !ttg.memdesc<1xi64, #flat1, #smem, mutable>
    tt.return
  }
}

// -----

#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @wait(%b: !ttg.memdesc<1x1xi32, #flat, #smem, mutable>, %p: i32) {
    // expected-error @+1 {{'ttng.wait_barrier' op a barrier must be one i64 in shared memory, not '!ttg.memdesc<1x1xi32, #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>, #ttg.shared_memory, mutable>'}}
    ttng.wait_barrier %b, %p : !ttg.memdesc<1x1xi32, #flat, #smem, mutable>
    tt.return
  }
}
