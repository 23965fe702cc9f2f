// RUN: llopt %s --canonicalize | FileCheck %s

#blocked = #ttg.blocked<{sizePerThread = [1, 64], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
#columns = #ttg.blocked<{sizePerThread = [4, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#linear = #ttg.linear<{register = [[0, 2], [0, 1], [0, 4], [0, 8], [0, 16], [0, 32]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]], block = []}>
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
  // What the instructions can move as it is need not be converted.
  // CHECK-LABEL: @movable
  tt.func @movable(%x: tensor<128x64xf32, #linear>, %d: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, %p: i1) {
    // CHECK-NEXT: ttng.tmem_store %{{.*}}, %{{.*}}, %{{.*}} : tensor<128x64xf32, #linear>
    %0 = ttg.convert_layout %x : tensor<128x64xf32, #linear> -> tensor<128x64xf32, #blocked>
    ttng.tmem_store %0, %d, %p : tensor<128x64xf32, #blocked> -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
    tt.return
  }

  // What they cannot move is converted.
  // CHECK-LABEL: @immovable
  tt.func @immovable(%x: tensor<128x64xf32, #columns>, %d: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, %p: i1) {
    // CHECK-NEXT: ttg.convert_layout
    // CHECK-NEXT: ttng.tmem_store
    %0 = ttg.convert_layout %x : tensor<128x64xf32, #columns> -> tensor<128x64xf32, #blocked>
    ttng.tmem_store %0, %d, %p : tensor<128x64xf32, #blocked> -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
    tt.return
  }
}
