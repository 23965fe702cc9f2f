// RUN: llopt %s --sink-loads --split-input-file | FileCheck %s

#l = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [1, 0]}>
#row = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [16, 2], warpsPerCTA = [1, 4], order = [0, 1]}>

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {

// Two tensors of 512 registers in each thread: the conversion of the means, which has a barrier, comes before both loads, and each
// of these in front of its first use.
// CHECK-LABEL: @full
// CHECK: ttg.convert_layout
// CHECK-NEXT: tt.broadcast
// CHECK-NEXT: %[[X:.*]] = tt.load %arg0
// CHECK-NEXT: arith.subf %[[X]]
// CHECK-NEXT: %[[Y:.*]] = tt.load %arg1
// CHECK-NEXT: arith.mulf %{{.*}}, %[[Y]]
tt.func public @full(%xs: tensor<16x4096x!tt.ptr<f32>, #l>, %ys: tensor<16x4096x!tt.ptr<f32>, #l>, %means: tensor<16x1xf32, #row>) -> tensor<16x4096xf32, #l> {
  %y = tt.load %ys : tensor<16x4096x!tt.ptr<f32>, #l>
  %x = tt.load %xs : tensor<16x4096x!tt.ptr<f32>, #l>
  %mean = ttg.convert_layout %means : tensor<16x1xf32, #row> -> tensor<16x1xf32, #l>
  %all = tt.broadcast %mean : tensor<16x1xf32, #l> -> tensor<16x4096xf32, #l>
  %difference = arith.subf %x, %all : tensor<16x4096xf32, #l>
  %product = arith.mulf %difference, %y : tensor<16x4096xf32, #l>
  tt.return %product : tensor<16x4096xf32, #l>
}

// A load does not move behind a store, whose place it may read.
// CHECK-LABEL: @stored
// CHECK: tt.load %arg1
// CHECK-NEXT: tt.store
// CHECK-NEXT: tt.load %arg0
tt.func public @stored(%xs: tensor<16x4096x!tt.ptr<f32>, #l>, %ys: tensor<16x4096x!tt.ptr<f32>, #l>, %p: !tt.ptr<f32>, %one: f32) -> tensor<16x4096xf32, #l> {
  %y = tt.load %ys : tensor<16x4096x!tt.ptr<f32>, #l>
  tt.store %p, %one : !tt.ptr<f32>
  %x = tt.load %xs : tensor<16x4096x!tt.ptr<f32>, #l>
  %negative = arith.negf %x : tensor<16x4096xf32, #l>
  %product = arith.mulf %negative, %y : tensor<16x4096xf32, #l>
  tt.return %product : tensor<16x4096xf32, #l>
}

// Where everything fits into registers loads begin as early as they are written.
// CHECK-LABEL: @few
// CHECK: tt.load %arg1
// CHECK-NEXT: tt.load %arg0
// CHECK-NEXT: arith.negf
tt.func public @few(%xs: tensor<16x128x!tt.ptr<f32>, #l>, %ys: tensor<16x128x!tt.ptr<f32>, #l>) -> tensor<16x128xf32, #l> {
  %y = tt.load %ys : tensor<16x128x!tt.ptr<f32>, #l>
  %x = tt.load %xs : tensor<16x128x!tt.ptr<f32>, #l>
  %negative = arith.negf %x : tensor<16x128xf32, #l>
  %product = arith.mulf %negative, %y : tensor<16x128xf32, #l>
  tt.return %product : tensor<16x128xf32, #l>
}

}
