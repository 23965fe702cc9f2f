// RUN: llopt %s --verify-roundtrip | FileCheck %s

// CHECK-DAG: #[[SHARED:.*]] = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: tt.func @views
  tt.func @views(%b: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>) {
    // CHECK: ttg.memdesc_reinterpret %{{.*}} : !ttg.memdesc<64x64xf16, #[[SHARED]], #smem, mutable> -> !ttg.memdesc<32x64xf32, #{{.*}}, #smem, mutable>
    %0 = ttg.memdesc_reinterpret %b : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<32x64xf32, #flat, #smem, mutable>
    // CHECK: ttg.async_wait {num = 2 : i32}
    %1 = ttg.async_wait {num = 2 : i32}
    tt.return
  }

  // CHECK-LABEL: tt.func @stage
  tt.func @stage(%i: i32, %n: i32, %s: i32) -> i1 {
    // CHECK: ttg.predicate_stage %{{.*}}, %{{.*}}, %{{.*}} maxStage 2 stage 1 : i32 -> i1
    %0 = ttg.predicate_stage %i, %n, %s maxStage 2 stage 1 : i32 -> i1
    tt.return %0 : i1
  }
}
