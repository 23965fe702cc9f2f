// RUN: llopt %s --allocate-shared-memory --insert-barriers | FileCheck %s

// A loop takes the buffers of a ring in turn.

#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
  // Of three buffers one is read and the one before it is written, which the iteration before has read: a barrier of
  // each iteration orders both.

  // CHECK-LABEL: tt.func public @one_to_spare
  tt.func public @one_to_spare(%x: tensor<128xf32, #blocked>, %n: i32) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %three = arith.constant 3 : i32
    // CHECK: scf.for
    // CHECK: ttg.local_barrier
    // CHECK-NEXT: ttg.local_store
    // CHECK-NOT: ttg.local_barrier
    // CHECK: tt.return
    %ring = ttg.local_alloc : () -> !ttg.memdesc<3x128xf32, #shared, #smem, mutable>
    %r:2 = scf.for %i = %zero to %n step %one iter_args(%read = %zero, %written = %two) -> (i32, i32) : i32 {
      %from = ttg.memdesc_index %ring[%read] : !ttg.memdesc<3x128xf32, #shared, #smem, mutable> -> !ttg.memdesc<128xf32, #shared, #smem, mutable>
      %y = ttg.local_load %from : !ttg.memdesc<128xf32, #shared, #smem, mutable> -> tensor<128xf32, #blocked>
      %to = ttg.memdesc_index %ring[%written] : !ttg.memdesc<3x128xf32, #shared, #smem, mutable> -> !ttg.memdesc<128xf32, #shared, #smem, mutable>
      ttg.local_store %x, %to : tensor<128xf32, #blocked> -> !ttg.memdesc<128xf32, #shared, #smem, mutable>
      %read_1 = arith.addi %read, %one : i32
      %read_inside = arith.cmpi slt, %read_1, %three : i32
      %read_next = arith.select %read_inside, %read_1, %zero : i32
      %written_1 = arith.addi %written, %one : i32
      %written_beyond = arith.cmpi sge, %written_1, %three : i32
      %written_next = arith.select %written_beyond, %zero, %written_1 : i32
      scf.yield %read_next, %written_next : i32, i32
    }
    tt.return
  }

  // A number that starts anywhere says nothing about the other one.

  // CHECK-LABEL: tt.func public @from_anywhere
  tt.func public @from_anywhere(%x: tensor<128xf32, #blocked>, %n: i32, %begin: i32) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %three = arith.constant 3 : i32
    // CHECK: scf.for
    // CHECK: ttg.local_barrier
    // CHECK-NEXT: ttg.local_load
    // CHECK: ttg.local_barrier
    // CHECK-NEXT: ttg.local_store
    // CHECK: tt.return
    %ring = ttg.local_alloc : () -> !ttg.memdesc<3x128xf32, #shared, #smem, mutable>
    %r:2 = scf.for %i = %zero to %n step %one iter_args(%read = %zero, %written = %begin) -> (i32, i32) : i32 {
      %from = ttg.memdesc_index %ring[%read] : !ttg.memdesc<3x128xf32, #shared, #smem, mutable> -> !ttg.memdesc<128xf32, #shared, #smem, mutable>
      %y = ttg.local_load %from : !ttg.memdesc<128xf32, #shared, #smem, mutable> -> tensor<128xf32, #blocked>
      %to = ttg.memdesc_index %ring[%written] : !ttg.memdesc<3x128xf32, #shared, #smem, mutable> -> !ttg.memdesc<128xf32, #shared, #smem, mutable>
      ttg.local_store %x, %to : tensor<128xf32, #blocked> -> !ttg.memdesc<128xf32, #shared, #smem, mutable>
      %read_1 = arith.addi %read, %one : i32
      %read_inside = arith.cmpi slt, %read_1, %three : i32
      %read_next = arith.select %read_inside, %read_1, %zero : i32
      %written_1 = arith.addi %written, %one : i32
      %written_inside = arith.cmpi slt, %written_1, %three : i32
      %written_next = arith.select %written_inside, %written_1, %zero : i32
      scf.yield %read_next, %written_next : i32, i32
    }
    tt.return
  }

  // Without a buffer to spare, the one that is written is the one that was read in the same iteration. What was written is
  // not read before an iteration later, behind that barrier.

  // CHECK-LABEL: tt.func public @none_to_spare
  tt.func public @none_to_spare(%x: tensor<128xf32, #blocked>, %n: i32) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    // CHECK: scf.for
    // CHECK-NOT: ttg.local_barrier
    // CHECK: ttg.local_load
    // CHECK: ttg.local_barrier
    // CHECK-NEXT: ttg.local_store
    // CHECK-NOT: ttg.local_barrier
    // CHECK: tt.return
    %ring = ttg.local_alloc : () -> !ttg.memdesc<2x128xf32, #shared, #smem, mutable>
    %r = scf.for %i = %zero to %n step %one iter_args(%both = %zero) -> (i32) : i32 {
      %of = ttg.memdesc_index %ring[%both] : !ttg.memdesc<2x128xf32, #shared, #smem, mutable> -> !ttg.memdesc<128xf32, #shared, #smem, mutable>
      %y = ttg.local_load %of : !ttg.memdesc<128xf32, #shared, #smem, mutable> -> tensor<128xf32, #blocked>
      ttg.local_store %x, %of : tensor<128xf32, #blocked> -> !ttg.memdesc<128xf32, #shared, #smem, mutable>
      %sum = arith.addi %both, %one : i32
      %inside = arith.cmpi slt, %sum, %two : i32
      %next = arith.select %inside, %sum, %zero : i32
      scf.yield %next : i32
    }
    tt.return
  }
}
