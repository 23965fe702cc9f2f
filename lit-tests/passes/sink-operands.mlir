// RUN: llopt %s --sink-operands --split-input-file | FileCheck %s

// CHECK: #[[BUFFER:.*]] = #ttg.shared_linear<{offset = {{\[\[}}1, 0], [2, 0], {{.*}}, [16, 0], [32, 0]{{\]}}

#sums = #ttg.amd_wmma<{version = 1, isTranspose = true, warpsPerCTA = [2, 2]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #sums, kWidth = 16}>
#b = #ttg.dot_op<{opIdx = 1, parent = #sums, kWidth = 16}>
#l = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#rectangle = #ttg.blocked<{sizePerThread = [2, 8], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [0, 1]}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "hip:gfx1100"} {

// The operands and what widens one of them go next to the product, past what only computes.
// CHECK-LABEL: @past_other_work
// CHECK: arith.addf
// CHECK-NEXT: %[[A:.*]] = ttg.local_load %arg0
// CHECK-NEXT: %[[B:.*]] = ttg.local_load %arg1
// CHECK-NEXT: %[[WIDE:.*]] = tt.fp_to_fp %[[A]]
// CHECK-NEXT: tt.dot %[[WIDE]], %[[B]]
tt.func @past_other_work(%ma: !ttg.memdesc<128x64xf8E5M2, #shared, #smem>, %mb: !ttg.memdesc<64x128xf16, #shared, #smem>, %c: tensor<128x128xf32, #sums>, %x: tensor<64x64xf32, #l>) -> (tensor<128x128xf32, #sums>, tensor<64x64xf32, #l>) {
  %0 = ttg.local_load %ma : !ttg.memdesc<128x64xf8E5M2, #shared, #smem> -> tensor<128x64xf8E5M2, #a>
  %1 = ttg.local_load %mb : !ttg.memdesc<64x128xf16, #shared, #smem> -> tensor<64x128xf16, #b>
  %2 = tt.fp_to_fp %0 : tensor<128x64xf8E5M2, #a> -> tensor<128x64xf16, #a>
  %3 = arith.addf %x, %x : tensor<64x64xf32, #l>
  %4 = tt.dot %2, %1, %c : tensor<128x64xf16, #a> * tensor<64x128xf16, #b> -> tensor<128x128xf32, #sums>
  tt.return %4, %3 : tensor<128x128xf32, #sums>, tensor<64x64xf32, #l>
}

// The buffer that was written last is read first: the barrier before that read is one for the other, too.
// CHECK-LABEL: @written_last
// CHECK: %[[LAST:.*]] = ttg.local_alloc %arg1
// CHECK-NEXT: %[[B:.*]] = ttg.local_load %[[LAST]]
// CHECK-NEXT: %[[A:.*]] = ttg.local_load %arg0
// CHECK-NEXT: tt.dot %[[A]], %[[B]]
tt.func @written_last(%ma: !ttg.memdesc<128x64xf16, #shared, #smem>, %x: tensor<64x128xf16, #l>, %c: tensor<128x128xf32, #sums>) -> tensor<128x128xf32, #sums> {
  %0 = ttg.local_load %ma : !ttg.memdesc<128x64xf16, #shared, #smem> -> tensor<128x64xf16, #a>
  %1 = ttg.local_alloc %x : (tensor<64x128xf16, #l>) -> !ttg.memdesc<64x128xf16, #shared, #smem>
  %2 = ttg.local_load %1 : !ttg.memdesc<64x128xf16, #shared, #smem> -> tensor<64x128xf16, #b>
  %3 = tt.dot %0, %2, %c : tensor<128x64xf16, #a> * tensor<64x128xf16, #b> -> tensor<128x128xf32, #sums>
  tt.return %3 : tensor<128x128xf32, #sums>
}

// A store to global memory does not disturb the reads.
// CHECK-LABEL: @past_a_store
// CHECK: tt.store
// CHECK: ttg.local_load %arg0
// CHECK-NEXT: ttg.local_load %arg1
// CHECK-NEXT: tt.dot
tt.func @past_a_store(%ma: !ttg.memdesc<128x64xf16, #shared, #smem>, %mb: !ttg.memdesc<64x128xf16, #shared, #smem>, %c: tensor<128x128xf32, #sums>, %p: tensor<128x128x!tt.ptr<f32>, #sums>) -> tensor<128x128xf32, #sums> {
  %0 = ttg.local_load %ma : !ttg.memdesc<128x64xf16, #shared, #smem> -> tensor<128x64xf16, #a>
  %1 = ttg.local_load %mb : !ttg.memdesc<64x128xf16, #shared, #smem> -> tensor<64x128xf16, #b>
  tt.store %p, %c : tensor<128x128x!tt.ptr<f32>, #sums>
  %2 = tt.dot %0, %1, %c : tensor<128x64xf16, #a> * tensor<64x128xf16, #b> -> tensor<128x128xf32, #sums>
  tt.return %2 : tensor<128x128xf32, #sums>
}

// Into the choice that holds the product.
// CHECK-LABEL: @into_a_choice
// CHECK: scf.if
// CHECK-DAG: ttg.local_load %arg0
// CHECK-DAG: ttg.local_load %arg1
// CHECK: tt.dot
tt.func @into_a_choice(%ma: !ttg.memdesc<128x64xf16, #shared, #smem>, %mb: !ttg.memdesc<64x128xf16, #shared, #smem>, %c: tensor<128x128xf32, #sums>, %if: i1) -> tensor<128x128xf32, #sums> {
  %0 = ttg.local_load %ma : !ttg.memdesc<128x64xf16, #shared, #smem> -> tensor<128x64xf16, #a>
  %1 = ttg.local_load %mb : !ttg.memdesc<64x128xf16, #shared, #smem> -> tensor<64x128xf16, #b>
  %2 = scf.if %if -> tensor<128x128xf32, #sums> {
    %3 = tt.dot %0, %1, %c : tensor<128x64xf16, #a> * tensor<64x128xf16, #b> -> tensor<128x128xf32, #sums>
    scf.yield %3 : tensor<128x128xf32, #sums>
  } else {
    scf.yield %c : tensor<128x128xf32, #sums>
  }
  tt.return %2 : tensor<128x128xf32, #sums>
}

// An operand that is converted through shared memory goes through a buffer. What a read brings together are elements of
// one step of k, of 16: a thread that stores it has rows that are 1, 16 and 32 apart, which otherwise would be the first.
// CHECK-LABEL: @converted
// CHECK: %[[MEMORY:.*]] = ttg.local_alloc %arg1 : (tensor<64x128xf16, {{.*}}>) -> !ttg.memdesc<64x128xf16, #[[BUFFER]], #smem>
// CHECK: %[[B:.*]] = ttg.local_load %[[MEMORY]]
// CHECK: tt.dot {{.*}}, %[[B]], {{.*}} {llopt.late_operands = {{[0-9]+}} : i32}
tt.func @converted(%ma: !ttg.memdesc<128x64xf16, #shared, #smem>, %x: tensor<64x128xf16, #rectangle>, %c: tensor<128x128xf32, #sums>) -> tensor<128x128xf32, #sums> {
  %0 = ttg.local_load %ma : !ttg.memdesc<128x64xf16, #shared, #smem> -> tensor<128x64xf16, #a>
  %1 = ttg.convert_layout %x : tensor<64x128xf16, #rectangle> -> tensor<64x128xf16, #b>
  %2 = tt.dot %0, %1, %c : tensor<128x64xf16, #a> * tensor<64x128xf16, #b> -> tensor<128x128xf32, #sums>
  tt.return %2 : tensor<128x128xf32, #sums>
}

// Neither past what writes to memory, nor if something else needs the operand, nor into a loop.
// CHECK-LABEL: @not_past_stores
// CHECK: ttg.local_load %arg0
// CHECK: ttg.local_load %arg1
// CHECK-NEXT: ttg.local_store
// CHECK-NEXT: scf.for
tt.func @not_past_stores(%ma: !ttg.memdesc<128x64xf16, #shared, #smem, mutable>, %mb: !ttg.memdesc<64x128xf16, #shared, #smem>, %c: tensor<128x128xf32, #sums>, %x: tensor<128x64xf16, #l>, %n: i32) -> (tensor<128x128xf32, #sums>, tensor<128x128xf32, #sums>) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %0 = ttg.local_load %ma : !ttg.memdesc<128x64xf16, #shared, #smem, mutable> -> tensor<128x64xf16, #a>
  %1 = ttg.local_load %mb : !ttg.memdesc<64x128xf16, #shared, #smem> -> tensor<64x128xf16, #b>
  ttg.local_store %x, %ma : tensor<128x64xf16, #l> -> !ttg.memdesc<128x64xf16, #shared, #smem, mutable>
  %2 = scf.for %i = %zero to %n step %one iter_args(%sum = %c) -> tensor<128x128xf32, #sums> : i32 {
    %3 = tt.dot %0, %1, %sum : tensor<128x64xf16, #a> * tensor<64x128xf16, #b> -> tensor<128x128xf32, #sums>
    scf.yield %3 : tensor<128x128xf32, #sums>
  }
  %4 = tt.dot %0, %1, %2 : tensor<128x64xf16, #a> * tensor<64x128xf16, #b> -> tensor<128x128xf32, #sums>
  tt.return %2, %4 : tensor<128x128xf32, #sums>, tensor<128x128xf32, #sums>
}
}

// -----

#sums = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #sums, kWidth = 2}>
#b = #ttg.dot_op<{opIdx = 1, parent = #sums, kWidth = 2}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:80"} {

// ptxas orders instructions by registers itself.
// CHECK-LABEL: @assembled_afterwards
// CHECK: ttg.local_load
// CHECK: ttg.local_load
// CHECK: arith.addi
// CHECK: tt.dot
tt.func @assembled_afterwards(%ma: !ttg.memdesc<256x128xf16, #shared, #smem>, %mb: !ttg.memdesc<128x256xf16, #shared, #smem>, %c: tensor<256x256xf32, #sums>, %x: i32) -> (tensor<256x256xf32, #sums>, i32) {
  %0 = ttg.local_load %ma : !ttg.memdesc<256x128xf16, #shared, #smem> -> tensor<256x128xf16, #a>
  %1 = ttg.local_load %mb : !ttg.memdesc<128x256xf16, #shared, #smem> -> tensor<128x256xf16, #b>
  %2 = arith.addi %x, %x : i32
  %3 = tt.dot %0, %1, %c : tensor<256x128xf16, #a> * tensor<128x256xf16, #b> -> tensor<256x256xf32, #sums>
  tt.return %3, %2 : tensor<256x256xf32, #sums>, i32
}
}

// -----

#result = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
#columns = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [16, 2], warpsPerCTA = [1, 4], order = [0, 1]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #result}>
#b = #ttg.dot_op<{opIdx = 1, parent = #result}>

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {

// Where threads multiply by themselves, each takes 64 elements of eight rows and four columns: 768 registers, which
// ptxas cannot save if conversions load them all. Conversions within warps go through buffers as well.
// CHECK-LABEL: @by_threads
// CHECK: ttg.local_alloc %arg0
// CHECK: ttg.local_alloc %arg1
// CHECK-NOT: ttg.convert_layout
// CHECK: %[[B:.*]] = ttg.local_load
// CHECK-NEXT: %[[A:.*]] = ttg.local_load
// CHECK-NEXT: tt.dot %[[A]], %[[B]], {{.*}}llopt.late_operands
tt.func @by_threads(%x: tensor<64x64xf32, #result>, %y: tensor<64x64xf32, #columns>, %c: tensor<64x64xf32, #result>) -> tensor<64x64xf32, #result> {
  %0 = ttg.convert_layout %x : tensor<64x64xf32, #result> -> tensor<64x64xf32, #a>
  %1 = ttg.convert_layout %y : tensor<64x64xf32, #columns> -> tensor<64x64xf32, #b>
  %2 = tt.dot %0, %1, %c : tensor<64x64xf32, #a> * tensor<64x64xf32, #b> -> tensor<64x64xf32, #result>
  tt.return %2 : tensor<64x64xf32, #result>
}
}

// -----

// Copies for another iteration are issued behind a product of threads: between its reads and the product they would keep whole
// rows and columns in registers.

#sums = #ttg.blocked<{sizePerThread = [4, 4], threadsPerWarp = [2, 16], warpsPerCTA = [8, 1], order = [1, 0]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #sums}>
#b = #ttg.dot_op<{opIdx = 1, parent = #sums}>
#l = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [8, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {

// CHECK-LABEL: @copies_behind
// CHECK-NOT: ttg.async_copy_global_to_local
// CHECK-DAG: %[[A:.*]] = ttg.local_load %arg0
// CHECK-DAG: %[[B:.*]] = ttg.local_load %arg1
// CHECK-NOT: ttg.async_copy_global_to_local
// CHECK: tt.dot %[[A]], %[[B]]
// CHECK-NEXT: %[[COPY:.*]] = ttg.async_copy_global_to_local
// CHECK-NEXT: ttg.async_commit_group tokens %[[COPY]]
tt.func @copies_behind(%ma: !ttg.memdesc<64x64xf32, #shared, #smem>, %mb: !ttg.memdesc<64x64xf32, #shared, #smem>, %next: !ttg.memdesc<64x64xf32, #shared, #smem, mutable>, %at: tensor<64x64x!tt.ptr<f32>, #l>, %c: tensor<64x64xf32, #sums>) -> (tensor<64x64xf32, #sums>, !ttg.async.token) {
  %0 = ttg.local_load %ma : !ttg.memdesc<64x64xf32, #shared, #smem> -> tensor<64x64xf32, #a>
  %1 = ttg.local_load %mb : !ttg.memdesc<64x64xf32, #shared, #smem> -> tensor<64x64xf32, #b>
  %2 = ttg.async_copy_global_to_local %at, %next : tensor<64x64x!tt.ptr<f32>, #l> -> <64x64xf32, #shared, #smem, mutable>
  %3 = ttg.async_commit_group tokens %2
  %4 = tt.dot %0, %1, %c : tensor<64x64xf32, #a> * tensor<64x64xf32, #b> -> tensor<64x64xf32, #sums>
  tt.return %4, %3 : tensor<64x64xf32, #sums>, !ttg.async.token
}

// A wait is in the way: what it waits for may be what the copies write.
// CHECK-LABEL: @not_past_a_wait
// CHECK: ttg.async_copy_global_to_local
// CHECK: ttg.async_wait
// CHECK: tt.dot
tt.func @not_past_a_wait(%ma: !ttg.memdesc<64x64xf32, #shared, #smem>, %mb: !ttg.memdesc<64x64xf32, #shared, #smem>, %next: !ttg.memdesc<64x64xf32, #shared, #smem, mutable>, %at: tensor<64x64x!tt.ptr<f32>, #l>, %c: tensor<64x64xf32, #sums>) -> tensor<64x64xf32, #sums> {
  %0 = ttg.local_load %ma : !ttg.memdesc<64x64xf32, #shared, #smem> -> tensor<64x64xf32, #a>
  %1 = ttg.local_load %mb : !ttg.memdesc<64x64xf32, #shared, #smem> -> tensor<64x64xf32, #b>
  %2 = ttg.async_copy_global_to_local %at, %next : tensor<64x64x!tt.ptr<f32>, #l> -> <64x64xf32, #shared, #smem, mutable>
  %3 = ttg.async_commit_group tokens %2
  %4 = ttg.async_wait %3 {num = 0 : i32}
  %5 = tt.dot %0, %1, %c : tensor<64x64xf32, #a> * tensor<64x64xf32, #b> -> tensor<64x64xf32, #sums>
  tt.return %5 : tensor<64x64xf32, #sums>
}

}

// -----

#sums = #ttg.amd_mfma<{version = 4, warpsPerCTA = [2, 2], instrShape = [16, 16, 128], isTransposed = true}>
#a = #ttg.dot_op<{opIdx = 0, parent = #sums, kWidth = 16}>
#b = #ttg.dot_op<{opIdx = 1, parent = #sums, kWidth = 16}>
#shared = #ttg.swizzled_shared<{vec = 16, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32, ttg.target = "hip:gfx950"} {

// The factors of a product with scales go next to it, too.
// CHECK-LABEL: @scaled
// CHECK: amdg.buffer_load
// CHECK-NEXT: ttg.local_load %arg0
// CHECK-NEXT: ttg.local_load %arg1
// CHECK-NEXT: tt.dot_scaled
// CHECK-SAME: llopt.late_operands
tt.func @scaled(%ma: !ttg.memdesc<256x256xf8E5M2, #shared, #smem>, %mb: !ttg.memdesc<256x256xf8E5M2, #shared, #smem>, %c: tensor<256x256xf32, #sums>, %p: !tt.ptr<f32>, %of: tensor<256x256xi32, #sums>) -> (tensor<256x256xf32, #sums>, tensor<256x256xf32, #sums>) {
  %0 = ttg.local_load %ma : !ttg.memdesc<256x256xf8E5M2, #shared, #smem> -> tensor<256x256xf8E5M2, #a>
  %1 = ttg.local_load %mb : !ttg.memdesc<256x256xf8E5M2, #shared, #smem> -> tensor<256x256xf8E5M2, #b>
  %2 = amdg.buffer_load %p[%of] : tensor<256x256xf32, #sums>
  %3 = tt.dot_scaled %0, %1, %c lhs = e5m2 rhs = e5m2 {fastMath = false} : tensor<256x256xf8E5M2, #a> * tensor<256x256xf8E5M2, #b> -> tensor<256x256xf32, #sums>
  tt.return %3, %2 : tensor<256x256xf32, #sums>, tensor<256x256xf32, #sums>
}
}
