// RUN: llopt %s --canonicalize --split-input-file | FileCheck %s

// A conversion goes where the other operation takes, or gives, any layout; one function for each.

#a = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#c = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#d = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#pair = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
#pair1 = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
#rows = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#rows1 = #ttg.linear<{register = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]], block = []}>
#columns = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#tall = #ttg.blocked<{sizePerThread = [2, 2], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: @alloc
  tt.func @alloc(%x: tensor<512xf16, #d>) -> !ttg.memdesc<512xf16, #shared, #smem> {
    // CHECK-NEXT: ttg.local_alloc %{{.*}} : (tensor<512xf16, #[[D:.*]]>)
    // CHECK-NEXT: tt.return
    %0 = ttg.convert_layout %x : tensor<512xf16, #d> -> tensor<512xf16, #c>
    %1 = ttg.local_alloc %0 : (tensor<512xf16, #c>) -> !ttg.memdesc<512xf16, #shared, #smem>
    tt.return %1 : !ttg.memdesc<512xf16, #shared, #smem>
  }

  // CHECK-LABEL: @store
  tt.func @store(%x: tensor<512xf16, #d>, %b: !ttg.memdesc<512xf16, #shared, #smem, mutable>) {
    // CHECK-NEXT: ttg.local_store %{{.*}}, %{{.*}} : tensor<512xf16, #[[D:.*]]>
    // CHECK-NEXT: tt.return
    %0 = ttg.convert_layout %x : tensor<512xf16, #d> -> tensor<512xf16, #c>
    ttg.local_store %0, %b : tensor<512xf16, #c> -> !ttg.memdesc<512xf16, #shared, #smem, mutable>
    tt.return
  }

  // CHECK-LABEL: @load
  tt.func @load(%b: !ttg.memdesc<512xf16, #shared, #smem>) -> tensor<512xf16, #c> {
    // CHECK-NEXT: ttg.local_load
    // CHECK-NEXT: tt.return
    %0 = ttg.local_load %b : !ttg.memdesc<512xf16, #shared, #smem> -> tensor<512xf16, #d>
    %1 = ttg.convert_layout %0 : tensor<512xf16, #d> -> tensor<512xf16, #c>
    tt.return %1 : tensor<512xf16, #c>
  }

  // CHECK-LABEL: @cat
  tt.func @cat(%x: tensor<256xf16, #c>, %y: tensor<256xf16, #c>) -> tensor<512xf16, #d> {
    // CHECK-NEXT: tt.cat
    // CHECK-NEXT: tt.return
    %0 = tt.cat %x, %y : tensor<256xf16, #c> -> tensor<512xf16, #c>
    %1 = ttg.convert_layout %0 : tensor<512xf16, #c> -> tensor<512xf16, #d>
    tt.return %1 : tensor<512xf16, #d>
  }

  // CHECK-LABEL: @reordered
  tt.func @reordered(%x: tensor<16x32xf16, #rows>) -> tensor<512xf16, #c> {
    // CHECK-NEXT: tt.reshape %{{.*}} allow_reorder : tensor<16x32xf16, #{{.*}}> -> tensor<512xf16
    // CHECK-NEXT: tt.return
    %0 = tt.reshape %x allow_reorder : tensor<16x32xf16, #rows> -> tensor<512xf16, #d>
    %1 = ttg.convert_layout %0 : tensor<512xf16, #d> -> tensor<512xf16, #c>
    tt.return %1 : tensor<512xf16, #c>
  }

  // A reshape whose layout has been chosen takes elements from any that gives as many registers.
  // CHECK-LABEL: @chosen
  tt.func @chosen(%x: tensor<16x32xf16, #tall>) -> tensor<512xf16, #d> {
    // CHECK-NEXT: tt.reshape %{{.*}} allow_reorder efficient_layout
    // CHECK-NEXT: tt.return
    %0 = ttg.convert_layout %x : tensor<16x32xf16, #tall> -> tensor<16x32xf16, #rows>
    %1 = tt.reshape %0 allow_reorder efficient_layout : tensor<16x32xf16, #rows> -> tensor<512xf16, #d>
    tt.return %1 : tensor<512xf16, #d>
  }

  // A conversion between two spellings of one layout.
  // CHECK-LABEL: @spelling
  tt.func @spelling(%x: tensor<16x32xf16, #rows1>, %y: tensor<16x32xf16, #rows1>) -> (tensor<512xf16, #d>, tensor<32x16xf16, #columns>) {
    // CHECK-DAG: tt.reshape %{{.*}} : tensor<16x32xf16, #linear
    // CHECK-DAG: tt.trans %{{.*}} {order = array<i32: 1, 0>} : tensor<16x32xf16, #linear
    // CHECK-NOT: ttg.convert_layout
    // CHECK: tt.return
    %0 = ttg.convert_layout %x : tensor<16x32xf16, #rows1> -> tensor<16x32xf16, #rows>
    %1 = tt.reshape %0 : tensor<16x32xf16, #rows> -> tensor<512xf16, #d>
    %2 = ttg.convert_layout %y : tensor<16x32xf16, #rows1> -> tensor<16x32xf16, #rows>
    %3 = tt.trans %2 {order = array<i32: 1, 0>} : tensor<16x32xf16, #rows> -> tensor<32x16xf16, #columns>
    tt.return %1, %3 : tensor<512xf16, #d>, tensor<32x16xf16, #columns>
  }

  // Both orders of the dimensions have halves of one layout.
  // CHECK-LABEL: @split
  tt.func @split(%x: tensor<128x2xf16, #pair1>) -> tensor<128xf16, #a> {
    // CHECK-NOT: ttg.convert_layout
    // CHECK: tt.split
    %0 = ttg.convert_layout %x : tensor<128x2xf16, #pair1> -> tensor<128x2xf16, #pair>
    %1, %2 = tt.split %0 : tensor<128x2xf16, #pair> -> tensor<128xf16, #a>
    %3 = arith.addf %1, %2 : tensor<128xf16, #a>
    tt.return %3 : tensor<128xf16, #a>
  }

  // A permutation that moves nothing is a conversion, and none at all between equal types.
  // CHECK-LABEL: @identity
  // CHECK-SAME: (%[[X:.*]]: tensor<16x32xf16, #{{.*}}>)
  tt.func @identity(%x: tensor<16x32xf16, #rows>) -> (tensor<16x32xf16, #rows>, tensor<16x32xf16, #rows1>) {
    // CHECK-NEXT: %[[Y:.*]] = ttg.convert_layout %[[X]]
    // CHECK-NEXT: tt.return %[[X]], %[[Y]]
    %0 = tt.trans %x {order = array<i32: 0, 1>} : tensor<16x32xf16, #rows> -> tensor<16x32xf16, #rows>
    %1 = tt.trans %x {order = array<i32: 0, 1>} : tensor<16x32xf16, #rows> -> tensor<16x32xf16, #rows1>
    tt.return %0, %1 : tensor<16x32xf16, #rows>, tensor<16x32xf16, #rows1>
  }

  // Views of memory: permutations compose, and one that changes nothing goes.
  // CHECK-LABEL: @views
  // CHECK-SAME: (%[[B:.*]]: !ttg.memdesc<512xf16
  tt.func @views(%b: !ttg.memdesc<512xf16, #shared, #smem, mutable>) -> !ttg.memdesc<512xf16, #shared, #smem, mutable> {
    // CHECK-NEXT: tt.return %[[B]]
    %0 = ttg.memdesc_trans %b {order = array<i32: 0>} : !ttg.memdesc<512xf16, #shared, #smem, mutable> -> !ttg.memdesc<512xf16, #shared, #smem, mutable>
    %1 = ttg.memdesc_reinterpret %0 : !ttg.memdesc<512xf16, #shared, #smem, mutable> -> !ttg.memdesc<512xf16, #shared, #smem, mutable>
    tt.return %1 : !ttg.memdesc<512xf16, #shared, #smem, mutable>
  }
}

// -----

// Products of attention rely on the conversion to a matrix instruction's operand staying in its place.

#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#operand = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: @operand
  tt.func @operand(%x: tensor<64x32xf16, #blocked>) -> tensor<64x32xf16, #operand> {
    // CHECK-COUNT-2: ttg.convert_layout
    %0 = ttg.convert_layout %x : tensor<64x32xf16, #blocked> -> tensor<64x32xf16, #mma>
    %1 = ttg.convert_layout %0 : tensor<64x32xf16, #mma> -> tensor<64x32xf16, #operand>
    tt.return %1 : tensor<64x32xf16, #operand>
  }
}
