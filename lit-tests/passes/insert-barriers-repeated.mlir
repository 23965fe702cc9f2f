// RUN: llopt %s --allocate-shared-memory --insert-barriers | FileCheck %s

// Several warps read the same global memory before one of them writes it.

#whole = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#pairs = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // All warps load a scalar, and one thread updates it: on the path that leads there, not on the other.
  // CHECK-LABEL: @scalar
  // CHECK: tt.load
  // CHECK-NOT: ttg.barrier
  // CHECK: scf.if
  // CHECK-NEXT: ttg.barrier all
  // CHECK-NEXT: tt.atomic_rmw
  // CHECK-NOT: ttg.barrier
  // CHECK: tt.return
  tt.func public @scalar(%count: !tt.ptr<i32>, %other: !tt.ptr<i32>) {
    %zero = arith.constant 0 : i32
    %true = arith.constant true
    %before = tt.load %count : !tt.ptr<i32>
    %first = arith.cmpi eq, %before, %zero : i32
    scf.if %first {
      %x = tt.atomic_rmw add, relaxed, gpu, %count, %zero, %true : (!tt.ptr<i32>, i32, i1) -> i32
    } else {
      tt.store %other, %before : !tt.ptr<i32>
    }
    tt.return
  }

  // Only the thread that stores needs what is loaded, so the others need not wait.
  // CHECK-LABEL: @count
  // CHECK-NOT: ttg.barrier
  // CHECK: tt.return
  tt.func public @count(%p: !tt.ptr<i32>, %n: i32) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %sum = scf.for %i = %zero to %n step %one iter_args(%count = %zero) -> (i32) : i32 {
      %at = tt.addptr %p, %i : !tt.ptr<i32>, i32
      %x = tt.load %at : !tt.ptr<i32>
      %next = arith.addi %count, %x : i32
      tt.store %at, %next : !tt.ptr<i32>
      scf.yield %next : i32
    }
    tt.return
  }

  // All threads need the number if it is a bound or a condition, an address, part of a tensor, or goes back to a caller.
  // CHECK-LABEL: @decides
  // CHECK-COUNT-3: ttg.barrier all
  // CHECK: tt.return
  tt.func public @decides(%p: !tt.ptr<i32>, %q: !tt.ptr<i32>, %r: !tt.ptr<i32>, %to: !tt.ptr<i32>) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %n = tt.load %p : !tt.ptr<i32>
    tt.store %p, %one : !tt.ptr<i32>
    scf.for %i = %zero to %n step %one : i32 {
      tt.store %to, %i : !tt.ptr<i32>
    }
    %at = tt.load %q : !tt.ptr<i32>
    tt.store %q, %one : !tt.ptr<i32>
    %there = tt.addptr %to, %at : !tt.ptr<i32>, i32
    tt.store %there, %one : !tt.ptr<i32>
    %x = tt.load %r : !tt.ptr<i32>
    tt.store %r, %one : !tt.ptr<i32>
    %xs = tt.splat %x : i32 -> tensor<128xi32, #whole>
    %i = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #whole>
    %tos = tt.splat %to : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>, #whole>
    %places = tt.addptr %tos, %i : tensor<128x!tt.ptr<i32>, #whole>, tensor<128xi32, #whole>
    tt.store %places, %xs : tensor<128x!tt.ptr<i32>, #whole>
    tt.return
  }

  // CHECK-LABEL: @waits
  // CHECK: tt.load
  // CHECK-NEXT: ttg.barrier all
  // CHECK: tt.return
  tt.func public @waits(%p: !tt.ptr<i32>) {
    %zero = arith.constant 0 : i32
    scf.while : () -> () {
      %x = tt.load %p : !tt.ptr<i32>
      tt.store %p, %zero : !tt.ptr<i32>
      %more = arith.cmpi sgt, %x, %zero : i32
      scf.condition(%more)
    } do {
      scf.yield
    }
    tt.return
  }

  // CHECK-LABEL: @branches
  // CHECK: tt.load
  // CHECK-NEXT: ttg.barrier all
  // CHECK: ^bb2
  tt.func public @branches(%p: !tt.ptr<i32>) {
    %zero = arith.constant 0 : i32
    %x = tt.load %p : !tt.ptr<i32>
    tt.store %p, %zero : !tt.ptr<i32>
    %is = arith.cmpi sgt, %x, %zero : i32
    cf.cond_br %is, ^bb1, ^bb2
  ^bb1:
    tt.return
  ^bb2:
    tt.return
  }

  // CHECK-LABEL: @returns
  // CHECK: tt.load
  // CHECK-NEXT: ttg.barrier all
  // CHECK: tt.return %
  tt.func private @returns(%p: !tt.ptr<i32>) -> i32 {
    %zero = arith.constant 0 : i32
    %x = tt.load %p : !tt.ptr<i32>
    tt.store %p, %zero : !tt.ptr<i32>
    tt.return %x : i32
  }

  // With 64 elements, two warps hold copies of what the others store; addresses go through loops.
  // CHECK-LABEL: @few
  // CHECK: scf.for
  // CHECK: tt.load
  // CHECK-NEXT: ttg.barrier all
  // CHECK-NEXT: tt.store
  // CHECK-NOT: ttg.barrier
  // CHECK: tt.return
  tt.func public @few(%p: !tt.ptr<i32>, %n: i32) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #whole>
    %base = tt.splat %p : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>, #whole>
    %last = scf.for %k = %zero to %n step %one iter_args(%at = %base) -> (tensor<64x!tt.ptr<i32>, #whole>) : i32 {
      %x = tt.load %at : tensor<64x!tt.ptr<i32>, #whole>
      tt.store %at, %i : tensor<64x!tt.ptr<i32>, #whole>
      %next = tt.addptr %at, %i : tensor<64x!tt.ptr<i32>, #whole>, tensor<64xi32, #whole>
      scf.yield %next : tensor<64x!tt.ptr<i32>, #whole>
    }
    tt.return
  }

  // The warps wait for the reads at once: what is computed from them, and loaded from elsewhere, comes behind.
  // CHECK-LABEL: @between
  // CHECK: tt.load
  // CHECK-NEXT: ttg.barrier all
  // CHECK-NEXT: arith.muli
  // CHECK: tt.load
  // CHECK-NOT: ttg.barrier
  // CHECK: tt.store
  // CHECK-NOT: ttg.barrier
  // CHECK: tt.return
  tt.func public @between(%p: !tt.ptr<i32>, %q: !tt.ptr<i32>) {
    %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #whole>
    %base = tt.splat %p : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>, #whole>
    %at = tt.addptr %base, %i : tensor<64x!tt.ptr<i32>, #whole>, tensor<64xi32, #whole>
    %others = tt.splat %q : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>, #whole>
    %other = tt.addptr %others, %i : tensor<64x!tt.ptr<i32>, #whole>, tensor<64xi32, #whole>
    %x = tt.load %at : tensor<64x!tt.ptr<i32>, #whole>
    %square = arith.muli %x, %x : tensor<64xi32, #whole>
    %y = tt.load %other : tensor<64x!tt.ptr<i32>, #whole>
    %sum = arith.addi %square, %y : tensor<64xi32, #whole>
    tt.store %at, %sum : tensor<64x!tt.ptr<i32>, #whole>
    tt.return
  }

  // Each thread overwrites what it has loaded itself; and what other parameters point to is other memory.
  // CHECK-LABEL: @own
  // CHECK-NOT: ttg.barrier
  // CHECK: tt.return
  tt.func public @own(%p: !tt.ptr<i32>, %q: !tt.ptr<i32>, %o: !tt.ptr<i32>) {
    %i = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #whole>
    %base = tt.splat %p : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>, #whole>
    %at = tt.addptr %base, %i : tensor<128x!tt.ptr<i32>, #whole>, tensor<128xi32, #whole>
    %x = tt.load %at : tensor<128x!tt.ptr<i32>, #whole>
    tt.store %at, %i : tensor<128x!tt.ptr<i32>, #whole>
    %y = tt.load %q : !tt.ptr<i32>
    tt.store %o, %y : !tt.ptr<i32>
    tt.return
  }

  // The store divides the elements among the warps in another way than the load.
  // CHECK-LABEL: @other_layout
  // CHECK: tt.load
  // CHECK-NEXT: ttg.barrier all
  // CHECK: tt.store
  // CHECK: tt.return
  tt.func public @other_layout(%p: !tt.ptr<i32>) {
    %i = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32, #whole>
    %base = tt.splat %p : !tt.ptr<i32> -> tensor<256x!tt.ptr<i32>, #whole>
    %at = tt.addptr %base, %i : tensor<256x!tt.ptr<i32>, #whole>, tensor<256xi32, #whole>
    %x = tt.load %at : tensor<256x!tt.ptr<i32>, #whole>
    %j = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32, #pairs>
    %there = tt.splat %p : !tt.ptr<i32> -> tensor<256x!tt.ptr<i32>, #pairs>
    %to = tt.addptr %there, %j : tensor<256x!tt.ptr<i32>, #pairs>, tensor<256xi32, #pairs>
    tt.store %to, %j : tensor<256x!tt.ptr<i32>, #pairs>
    tt.return
  }
}
