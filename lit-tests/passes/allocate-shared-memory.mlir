// RUN: llopt %s --allocate-shared-memory --split-input-file | FileCheck %s

#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory

// Two large buffers of which the first is dead when the second is made lie at the same place.

// CHECK-LABEL: module
// CHECK-SAME: ttg.shared = 4096 : i32
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @in_turn(%x: tensor<1024xf32, #blocked>) {
    // CHECK: ttg.local_alloc {{.*}}allocation.offset = 0 : i32
    %a = ttg.local_alloc %x : (tensor<1024xf32, #blocked>) -> !ttg.memdesc<1024xf32, #shared, #smem>
    %y = ttg.local_load %a : !ttg.memdesc<1024xf32, #shared, #smem> -> tensor<1024xf32, #blocked>
    // CHECK: ttg.local_alloc {{.*}}allocation.offset = 0 : i32
    %b = ttg.local_alloc %y : (tensor<1024xf32, #blocked>) -> !ttg.memdesc<1024xf32, #shared, #smem>
    %z = ttg.local_load %b : !ttg.memdesc<1024xf32, #shared, #smem> -> tensor<1024xf32, #blocked>
    tt.return
  }
}

// -----

// Small ones do not: who writes the second one need not wait until all have read the first.

#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory

// CHECK-LABEL: module
// CHECK-SAME: ttg.shared = 1024 : i32
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @small(%x: tensor<128xf32, #blocked>) {
    // CHECK: ttg.local_alloc {{.*}}allocation.offset = 0 : i32
    %a = ttg.local_alloc %x : (tensor<128xf32, #blocked>) -> !ttg.memdesc<128xf32, #shared, #smem>
    %y = ttg.local_load %a : !ttg.memdesc<128xf32, #shared, #smem> -> tensor<128xf32, #blocked>
    // CHECK: ttg.local_alloc {{.*}}allocation.offset = 512 : i32
    %b = ttg.local_alloc %y : (tensor<128xf32, #blocked>) -> !ttg.memdesc<128xf32, #shared, #smem>
    %z = ttg.local_load %b : !ttg.memdesc<128xf32, #shared, #smem> -> tensor<128xf32, #blocked>
    tt.return
  }
}

// -----

// A buffer used in a loop lives as long as the loop, though its last use in the text is before the
// other buffer; and a view keeps what it views alive.

#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory

// CHECK-LABEL: module
// CHECK-SAME: ttg.shared = 1536 : i32
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @in_a_loop(%x: tensor<128xf32, #blocked>, %n: i32) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    // CHECK: ttg.local_alloc {allocation.offset = 0 : i32} : () -> !ttg.memdesc<2x128xf32
    %a = ttg.local_alloc : () -> !ttg.memdesc<2x128xf32, #shared, #smem, mutable>
    %view = ttg.memdesc_index %a[%one] : !ttg.memdesc<2x128xf32, #shared, #smem, mutable> -> !ttg.memdesc<128xf32, #shared, #smem, mutable>
    scf.for %i = %zero to %n step %one : i32 {
      %y = ttg.local_load %view : !ttg.memdesc<128xf32, #shared, #smem, mutable> -> tensor<128xf32, #blocked>
      // CHECK: ttg.local_alloc {{.*}}allocation.offset = 1024 : i32
      %b = ttg.local_alloc %y : (tensor<128xf32, #blocked>) -> !ttg.memdesc<128xf32, #shared, #smem>
      %z = ttg.local_load %b : !ttg.memdesc<128xf32, #shared, #smem> -> tensor<128xf32, #blocked>
    }
    tt.return
  }
}

// -----

// A call takes the callee's whole memory beside what is live around it; an atomic op whose result
// others need takes a place for it.

#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory

// CHECK-LABEL: module
// CHECK-SAME: ttg.shared = 516 : i32
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func private @take(%p: !tt.ptr<i32>) -> i32 {
    %one = arith.constant 1 : i32
    %true = arith.constant true
    // CHECK: tt.atomic_rmw {{.*}}allocation.offset = 0 : i32
    %old = tt.atomic_rmw add, acq_rel, gpu, %p, %one, %true : (!tt.ptr<i32>, i32, i1) -> i32
    tt.return %old : i32
  }
  tt.func public @call(%p: !tt.ptr<i32>, %x: tensor<128xf32, #blocked>) {
    // CHECK: ttg.local_alloc {{.*}}allocation.offset = 0 : i32
    %a = ttg.local_alloc %x : (tensor<128xf32, #blocked>) -> !ttg.memdesc<128xf32, #shared, #smem>
    // CHECK: tt.call {{.*}}allocation.offset = 512 : i32
    %old = tt.call @take(%p) : (!tt.ptr<i32>) -> i32
    %y = ttg.local_load %a : !ttg.memdesc<128xf32, #shared, #smem> -> tensor<128xf32, #blocked>
    tt.return
  }
}

// -----

// Unused bytes go on from one buffer of an array to the next; only the last ends without them.

#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#shared = #ttg.padded_shared<[64:+4] {order = [0], shape = [128]}>
#smem = #ttg.shared_memory

// CHECK-LABEL: module
// CHECK-SAME: ttg.shared = 1072 : i32
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @padded_array(%x: tensor<128xf32, #blocked>, %i: i32) {
    %a = ttg.local_alloc : () -> !ttg.memdesc<2x128xf32, #shared, #smem, mutable>
    %view = ttg.memdesc_index %a[%i] : !ttg.memdesc<2x128xf32, #shared, #smem, mutable> -> !ttg.memdesc<128xf32, #shared, #smem, mutable>
    ttg.local_store %x, %view : tensor<128xf32, #blocked> -> !ttg.memdesc<128xf32, #shared, #smem, mutable>
    tt.return
  }
}
