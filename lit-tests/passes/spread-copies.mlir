// Each element of a row is copied by one thread, whoever reads it.
//
// RUN: llopt %s --split-input-file --spread-copies | FileCheck %s

#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [8, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // A thread has 16 of the columns of a product, and would copy eight pairs of them.
  // CHECK-DAG: #[[ROW:.*]] = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [8], order = [0]}>
  // CHECK-LABEL: @row
  // CHECK-DAG: %[[RANGE:.*]] = tt.make_range {{.*}} : tensor<64xi32, #[[ROW]]>
  // CHECK-DAG: %[[BASE:.*]] = tt.splat %{{.*}} -> tensor<64x!tt.ptr<f32>, #[[ROW]]>
  // CHECK: %[[PLACES:.*]] = tt.addptr %[[BASE]], %[[RANGE]]
  // CHECK-DAG: %[[MASK:.*]] = tt.splat %{{.*}} : i1 -> tensor<64xi1, #[[ROW]]>
  // CHECK: ttg.async_copy_global_to_local %[[PLACES]], %{{.*}} mask %[[MASK]] {contiguity = 2 : i32} : tensor<64x!tt.ptr<f32>, #[[ROW]]>
  tt.func public @row(%data: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %more: i1) {
    %slot = ttg.local_alloc : () -> !ttg.memdesc<64xf32, #shared, #smem, mutable>
    %range = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #mma}>>
    %base = tt.splat %data : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #mma}>>
    %places = tt.addptr %base, %range : tensor<64x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #mma}>>, tensor<64xi32, #ttg.slice<{dim = 0, parent = #mma}>>
    %mask = tt.splat %more : i1 -> tensor<64xi1, #ttg.slice<{dim = 0, parent = #mma}>>
    %token = ttg.async_copy_global_to_local %places, %slot mask %mask {contiguity = 2 : i32} : tensor<64x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #mma}>> -> <64xf32, #shared, #smem, mutable>
    tt.return
  }
}

// -----

#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [8, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // Addresses that are an argument would have to be converted.
  // CHECK-LABEL: @given
  // CHECK: ttg.async_copy_global_to_local %{{.*}} : tensor<64x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #mma}>>
  tt.func private @given(%places: tensor<64x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #mma}>>) {
    %slot = ttg.local_alloc : () -> !ttg.memdesc<64xf32, #shared, #smem, mutable>
    %token = ttg.async_copy_global_to_local %places, %slot {contiguity = 2 : i32} : tensor<64x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #mma}>> -> <64xf32, #shared, #smem, mutable>
    tt.return
  }
}

// -----

#row = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [8], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // One copy of each thread is as few as there can be.
  // CHECK: #[[ROW:.*]] = #ttg.blocked<{sizePerThread = [4]
  // CHECK-LABEL: @spread
  // CHECK: ttg.async_copy_global_to_local %{{.*}} : tensor<64x!tt.ptr<f32>, #[[ROW]]>
  tt.func public @spread(%data: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %slot = ttg.local_alloc : () -> !ttg.memdesc<64xf32, #shared, #smem, mutable>
    %range = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #row>
    %base = tt.splat %data : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #row>
    %places = tt.addptr %base, %range : tensor<64x!tt.ptr<f32>, #row>, tensor<64xi32, #row>
    %token = ttg.async_copy_global_to_local %places, %slot {contiguity = 4 : i32} : tensor<64x!tt.ptr<f32>, #row> -> <64xf32, #shared, #smem, mutable>
    tt.return
  }
}
