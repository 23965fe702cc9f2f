// RUN: llopt %s --allocate-shared-memory --insert-barriers --split-input-file | FileCheck %s

#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory

// A buffer is read after all warps have written it, once however often it is read; and another one
// at the same place is written after all have read.

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: tt.func public @in_turn
  tt.func public @in_turn(%x: tensor<1024xf32, #blocked>) {
    // CHECK-NEXT: ttg.local_alloc
    // CHECK-NEXT: ttg.local_barrier
    // CHECK-NEXT: ttg.local_load
    // CHECK-NEXT: ttg.local_load
    // CHECK-NEXT: arith.addf
    // CHECK-NEXT: ttg.local_barrier
    // CHECK-NEXT: ttg.local_alloc
    // CHECK-NEXT: ttg.local_barrier
    // CHECK-NEXT: ttg.local_load
    // CHECK-NEXT: tt.return
    %a = ttg.local_alloc %x : (tensor<1024xf32, #blocked>) -> !ttg.memdesc<1024xf32, #shared, #smem>
    %y = ttg.local_load %a : !ttg.memdesc<1024xf32, #shared, #smem> -> tensor<1024xf32, #blocked>
    %z = ttg.local_load %a : !ttg.memdesc<1024xf32, #shared, #smem> -> tensor<1024xf32, #blocked>
    %s = arith.addf %y, %z : tensor<1024xf32, #blocked>
    %b = ttg.local_alloc %s : (tensor<1024xf32, #blocked>) -> !ttg.memdesc<1024xf32, #shared, #smem>
    %t = ttg.local_load %b : !ttg.memdesc<1024xf32, #shared, #smem> -> tensor<1024xf32, #blocked>
    tt.return
  }

  // What is written before a loop and only read in it: one barrier, before the loop.

  // CHECK-LABEL: tt.func public @before_the_loop
  tt.func public @before_the_loop(%x: tensor<128xf32, #blocked>, %n: i32) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    // CHECK: ttg.local_alloc
    // CHECK-NEXT: ttg.local_barrier
    // CHECK-NEXT: scf.for
    // CHECK-NOT: ttg.local_barrier
    // CHECK: tt.return
    %a = ttg.local_alloc %x : (tensor<128xf32, #blocked>) -> !ttg.memdesc<128xf32, #shared, #smem>
    scf.for %i = %zero to %n step %one : i32 {
      %y = ttg.local_load %a : !ttg.memdesc<128xf32, #shared, #smem> -> tensor<128xf32, #blocked>
    }
    tt.return
  }

  // Two buffers of a ring are written; their numbers are constants, though one of them is computed. The barrier comes
  // before the loop, in which the number is unknown.

  // CHECK-LABEL: tt.func public @two_of_a_ring
  tt.func public @two_of_a_ring(%x: tensor<128xf32, #blocked>, %n: i32) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    // CHECK: ttg.local_store
    // CHECK-NOT: ttg.local_barrier
    // CHECK: ttg.local_store
    // CHECK-NEXT: ttg.local_barrier
    // CHECK-NEXT: scf.for
    // CHECK-NOT: ttg.local_barrier
    // CHECK: tt.return
    %ring = ttg.local_alloc : () -> !ttg.memdesc<2x128xf32, #shared, #smem, mutable>
    %first = ttg.memdesc_index %ring[%zero] : !ttg.memdesc<2x128xf32, #shared, #smem, mutable> -> !ttg.memdesc<128xf32, #shared, #smem, mutable>
    ttg.local_store %x, %first : tensor<128xf32, #blocked> -> !ttg.memdesc<128xf32, #shared, #smem, mutable>
    %next = arith.addi %zero, %one : i32
    %is_inside = arith.cmpi slt, %next, %two : i32
    %number = arith.select %is_inside, %next, %zero : i32
    %second = ttg.memdesc_index %ring[%number] : !ttg.memdesc<2x128xf32, #shared, #smem, mutable> -> !ttg.memdesc<128xf32, #shared, #smem, mutable>
    ttg.local_store %x, %second : tensor<128xf32, #blocked> -> !ttg.memdesc<128xf32, #shared, #smem, mutable>
    scf.for %i = %zero to %n step %one : i32 {
      %taken = ttg.memdesc_index %ring[%i] : !ttg.memdesc<2x128xf32, #shared, #smem, mutable> -> !ttg.memdesc<128xf32, #shared, #smem, mutable>
      %y = ttg.local_load %taken : !ttg.memdesc<128xf32, #shared, #smem, mutable> -> tensor<128xf32, #blocked>
    }
    tt.return
  }

  // The same buffer is written twice.

  // CHECK-LABEL: tt.func public @one_of_a_ring
  tt.func public @one_of_a_ring(%x: tensor<128xf32, #blocked>) {
    %one = arith.constant 1 : i32
    // CHECK: ttg.local_store
    // CHECK-NEXT: ttg.local_barrier
    // CHECK-NEXT: ttg.local_store
    %ring = ttg.local_alloc : () -> !ttg.memdesc<2x128xf32, #shared, #smem, mutable>
    %first = ttg.memdesc_index %ring[%one] : !ttg.memdesc<2x128xf32, #shared, #smem, mutable> -> !ttg.memdesc<128xf32, #shared, #smem, mutable>
    ttg.local_store %x, %first : tensor<128xf32, #blocked> -> !ttg.memdesc<128xf32, #shared, #smem, mutable>
    ttg.local_store %x, %first : tensor<128xf32, #blocked> -> !ttg.memdesc<128xf32, #shared, #smem, mutable>
    tt.return
  }

  // A barrier that is there already serves.

  // CHECK-LABEL: tt.func public @there_already
  tt.func public @there_already(%x: tensor<128xf32, #blocked>) {
    // CHECK-NOT: ttg.local_barrier
    // CHECK: tt.return
    %a = ttg.local_alloc %x : (tensor<128xf32, #blocked>) -> !ttg.memdesc<128xf32, #shared, #smem>
    gpu.barrier
    %y = ttg.local_load %a : !ttg.memdesc<128xf32, #shared, #smem> -> tensor<128xf32, #blocked>
    tt.return
  }

  // Scratch memory: the op waits inside, so what was written before it is seen after it. Two in a row have
  // places of their own and need no barrier between them.

  // CHECK-LABEL: tt.func public @scratch
  tt.func public @scratch(%p: !tt.ptr<i32>, %x: tensor<128xf32, #blocked>) -> i32 {
    %one = arith.constant 1 : i32
    %true = arith.constant true
    // CHECK: ttg.local_alloc
    // CHECK-NEXT: tt.atomic_rmw
    // CHECK-NEXT: ttg.local_load
    // CHECK-NEXT: tt.atomic_rmw
    // CHECK-NEXT: tt.return
    %a = ttg.local_alloc %x : (tensor<128xf32, #blocked>) -> !ttg.memdesc<128xf32, #shared, #smem>
    %first = tt.atomic_rmw add, acq_rel, gpu, %p, %one, %true : (!tt.ptr<i32>, i32, i1) -> i32
    %y = ttg.local_load %a : !ttg.memdesc<128xf32, #shared, #smem> -> tensor<128xf32, #blocked>
    %second = tt.atomic_rmw add, acq_rel, gpu, %p, %first, %true : (!tt.ptr<i32>, i32, i1) -> i32
    tt.return %second : i32
  }
}

// -----

#clustered = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0], CGALayout = [[1]]}>

// A reduction across blocks meets the cluster before it writes and before it reads: no barrier of the block is
// needed around it, nor in a loop.

module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: tt.func public @across_blocks
  tt.func public @across_blocks(%x: tensor<1024xi32, #clustered>, %n: i32) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    // CHECK-NOT: ttg.local_barrier
    // CHECK: tt.return
    %last = scf.for %i = %zero to %n step %one iter_args(%v = %x) -> (tensor<1024xi32, #clustered>) : i32 {
      %s = "tt.reduce"(%v) <{axis = 0 : i32}> ({
      ^bb0(%a: i32, %b: i32):
        %t = arith.addi %a, %b : i32
        tt.reduce.return %t : i32
      }) : (tensor<1024xi32, #clustered>) -> i32
      %all = tt.splat %s : i32 -> tensor<1024xi32, #clustered>
      scf.yield %all : tensor<1024xi32, #clustered>
    }
    tt.return
  }

  // Two in turn, each in memory of its own: what keeps the one from writing too early is the meeting in the other.
  // The first of all begins with a meeting of its own, since a block may not have begun.
  // CHECK-LABEL: tt.func public @in_turn_across_blocks
  tt.func public @in_turn_across_blocks(%x: tensor<1024xi32, #clustered>, %n: i32) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    // CHECK: "tt.reduce"
    // CHECK: }) {allocation.offset = {{[0-9]+}} : i32} :
    // CHECK: scf.for
    // CHECK-COUNT-2: }) {allocation.cluster_has_met, allocation.offset = {{[0-9]+}} : i32} :
    // CHECK-NOT: ttg.local_barrier
    // CHECK: tt.return
    %first = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: i32, %b: i32):
      %t = arith.addi %a, %b : i32
      tt.reduce.return %t : i32
    }) : (tensor<1024xi32, #clustered>) -> i32
    %y = tt.splat %first : i32 -> tensor<1024xi32, #clustered>
    %last = scf.for %i = %zero to %n step %one iter_args(%v = %y) -> (tensor<1024xi32, #clustered>) : i32 {
      %s = "tt.reduce"(%v) <{axis = 0 : i32}> ({
      ^bb0(%a: i32, %b: i32):
        %t = arith.addi %a, %b : i32
        tt.reduce.return %t : i32
      }) : (tensor<1024xi32, #clustered>) -> i32
      %all = tt.splat %s : i32 -> tensor<1024xi32, #clustered>
      %m = "tt.reduce"(%all) <{axis = 0 : i32}> ({
      ^bb0(%a: i32, %b: i32):
        %t = arith.maxsi %a, %b : i32
        tt.reduce.return %t : i32
      }) : (tensor<1024xi32, #clustered>) -> i32
      %most = tt.splat %m : i32 -> tensor<1024xi32, #clustered>
      scf.yield %most : tensor<1024xi32, #clustered>
    }
    tt.return
  }
}
