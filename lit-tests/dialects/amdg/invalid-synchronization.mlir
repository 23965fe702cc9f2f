// RUN: llopt %s --split-input-file --verify-diagnostics

// Each part breaks one rule; the message says which, and what is at fault.

#flat1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @count(%b: !ttg.memdesc<1xi64, #flat1, #smem, mutable>) {
    // expected-error @+1 {{'amdg.init_barrier' op count must be at least 1, but is 0}}
    amdg.init_barrier %b, 0 : !ttg.memdesc<1xi64, #flat1, #smem, mutable>
    tt.return
  }
}

// -----

#flat1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @barrier(%b: !ttg.memdesc<1xi32, #flat1, #smem, mutable>, %p: i32) {
    // expected-error @+1 {{'amdg.wait_barrier' op a barrier must be one i64 in shared memory, not '!ttg.memdesc<1xi32, #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>, #ttg.shared_memory, mutable>'}}
    amdg.wait_barrier %b, %p : !ttg.memdesc<1xi32, #flat1, #smem, mutable>
    tt.return
  }
}

// -----

#flat1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @arrivals(%b: !ttg.memdesc<1xi64, #flat1, #smem, mutable>) {
    // expected-error @+1 {{'amdg.arrive_barrier' op count must be at least 1, but is -1}}
    %0 = amdg.arrive_barrier %b, -1 : !ttg.memdesc<1xi64, #flat1, #smem, mutable> -> i32
    tt.return
  }
}
