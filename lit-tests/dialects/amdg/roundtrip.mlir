// RUN: llopt %s --verify-roundtrip | FileCheck %s

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: tt.func @synchronisation
  tt.func @synchronisation(%b: !ttg.memdesc<1xi64, #shared, #smem, mutable>, %phase: i32, %p: i1) {
    // CHECK: amdg.cond_barrier %{{.*}}
    amdg.cond_barrier %p
    // CHECK: amdg.memory_counter_wait load(1) ds(0)
    amdg.memory_counter_wait load(1) ds(0)
    // CHECK: amdg.init_barrier %{{.*}}, 4 : !ttg.memdesc<1xi64
    amdg.init_barrier %b, 4 : !ttg.memdesc<1xi64, #shared, #smem, mutable>
    // CHECK: amdg.arrive_barrier %{{.*}}, 1 : !ttg.memdesc<1xi64, {{.*}}> -> i32
    %0 = amdg.arrive_barrier %b, 1 : !ttg.memdesc<1xi64, #shared, #smem, mutable> -> i32
    // CHECK: amdg.wait_barrier %{{.*}}, %{{.*}} : !ttg.memdesc<1xi64
    amdg.wait_barrier %b, %phase : !ttg.memdesc<1xi64, #shared, #smem, mutable>
    tt.return
  }

  // CHECK-LABEL: tt.func @masked
  tt.func @masked(%p: !llvm.ptr<1>, %x: vector<4xf32>, %m: i1) {
    // CHECK: %[[V:.*]] = amdg.masked_load %{{.*}}, %{{.*}}, %{{.*}} cacheModifier = cg : (!llvm.ptr<1>, i1, vector<4xf32>) -> vector<4xf32>
    %0 = amdg.masked_load %p, %m, %x cacheModifier = cg : (!llvm.ptr<1>, i1, vector<4xf32>) -> vector<4xf32>
    // CHECK: amdg.masked_store %{{.*}}, %[[V]], %{{.*}} : !llvm.ptr<1>, vector<4xf32>, i1
    amdg.masked_store %p, %0, %m : !llvm.ptr<1>, vector<4xf32>, i1
    tt.return
  }
}
