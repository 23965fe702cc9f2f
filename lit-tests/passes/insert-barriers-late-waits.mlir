// A block that has read the memory of other blocks of its cluster waits for its own readers where it matters.
//
// RUN: llopt %s --allocate-shared-memory --insert-barriers --split-input-file | FileCheck %s

#own = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#other = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>

module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.cluster-split" = 2 : i32, "ttg.target" = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // What follows the sum needs no shared memory: the wait is the last thing that the block does.
  // CHECK-LABEL: @stored(
  // CHECK: ttng.cluster_sum {{.*}}allocation.cluster_waits_later
  // CHECK: tt.store
  // CHECK-NEXT: ttng.cluster_wait
  // CHECK-NEXT: tt.return
  tt.func public @stored(%x: tensor<32x32xf32, #own>, %p: tensor<16x32x!tt.ptr<f16>, #other>) {
    %sum = ttng.cluster_sum %x : tensor<32x32xf32, #own> -> tensor<16x32xf32, #other>
    %y = arith.truncf %sum : tensor<16x32xf32, #other> to tensor<16x32xf16, #other>
    tt.store %p, %y : tensor<16x32x!tt.ptr<f16>, #other>
    tt.return
  }

  // A conversion through shared memory comes before: others may still read what it overwrites.
  // CHECK-LABEL: @converted(
  // CHECK: ttng.cluster_sum {{.*}}allocation.cluster_waits_later
  // CHECK: arith.truncf
  // CHECK-NEXT: ttng.cluster_wait
  // CHECK-NEXT: ttg.convert_layout
  // CHECK-NOT: ttng.cluster_wait
  tt.func public @converted(%x: tensor<32x32xf32, #own>, %p: tensor<16x32x!tt.ptr<f16>, #own>) {
    %sum = ttng.cluster_sum %x : tensor<32x32xf32, #own> -> tensor<16x32xf32, #other>
    %y = arith.truncf %sum : tensor<16x32xf32, #other> to tensor<16x32xf16, #other>
    %z = ttg.convert_layout %y : tensor<16x32xf16, #other> -> tensor<16x32xf16, #own>
    tt.store %p, %z : tensor<16x32x!tt.ptr<f16>, #own>
    tt.return
  }

  // Nothing lies between the sum and the next use: the sum waits itself.
  // CHECK-LABEL: @at_once(
  // CHECK-NOT: cluster_wait
  // CHECK: tt.return
  tt.func public @at_once(%x: tensor<32x32xf32, #own>, %p: tensor<16x32x!tt.ptr<f32>, #own>) {
    %sum = ttng.cluster_sum %x : tensor<32x32xf32, #own> -> tensor<16x32xf32, #other>
    %z = ttg.convert_layout %sum : tensor<16x32xf32, #other> -> tensor<16x32xf32, #own>
    tt.store %p, %z : tensor<16x32x!tt.ptr<f32>, #own>
    tt.return
  }
}
