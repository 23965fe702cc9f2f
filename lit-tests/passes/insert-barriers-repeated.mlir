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
