// RUN: llopt %s --allocate-shared-memory --verify-diagnostics

// expected-error @below {{'builtin.module' op has a function that calls itself: 'even'}}
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func private @even() {
    tt.call @odd() : () -> ()
    tt.return
  }
  tt.func private @odd() {
    tt.call @even() : () -> ()
    tt.return
  }
}
