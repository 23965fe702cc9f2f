// RUN: llopt %s --assign-layouts --canonicalize --cse --split-input-file | FileCheck %s
// RUN: llopt %s --assign-layouts --assign-layouts --canonicalize --cse --split-input-file | FileCheck %s

// A layout that is there stays, and what has none is laid out around it: here the load, which would have
// taken four elements with each thread by itself. A second time changes nothing.

// CHECK: #[[K:.+]] = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#kept = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: @kept
  // CHECK: tt.load {{.*}} tensor<1024x!tt.ptr<f32>, #[[K]]>
  // CHECK: arith.addf {{.*}} tensor<1024xf32, #[[K]]>
  tt.func public @kept(%from: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %r = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32, #kept>
    %f = tt.splat %from : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #kept>
    %p = tt.addptr %f, %r : tensor<1024x!tt.ptr<f32>, #kept>, tensor<1024xi32, #kept>
    %x = tt.load %p : tensor<1024x!tt.ptr<f32>, #kept>
    %y = arith.addf %x, %x : tensor<1024xf32, #kept>
    tt.store %p, %y : tensor<1024x!tt.ptr<f32>, #kept>
    tt.return
  }
}
