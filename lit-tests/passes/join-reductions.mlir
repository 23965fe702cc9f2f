// RUN: llopt %s --join-reductions --split-input-file | FileCheck %s

#l = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#other = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {

// Two sums behind one barrier: the second moves up with the product that it takes, over a store of the first.
// CHECK-LABEL: @sums
// CHECK: %[[PRODUCT:.*]] = arith.mulf %arg0, %arg1
// CHECK-NEXT: %[[BOTH:.*]]:2 = "tt.reduce"(%arg0, %[[PRODUCT]]) <{axis = 0 : i32}> ({
// CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32, %[[C:.*]]: f32, %[[D:.*]]: f32):
// CHECK-NEXT:   %[[ONE:.*]] = arith.addf %[[A]], %[[C]]
// CHECK-NEXT:   %[[LARGER:.*]] = arith.maxnumf %[[B]], %[[D]]
// CHECK-NEXT:   tt.reduce.return %[[ONE]], %[[LARGER]]
// CHECK: tt.store %arg2, %[[BOTH]]#0
// CHECK: tt.store %arg2, %[[BOTH]]#1
tt.func public @sums(%x: tensor<4096xf32, #l>, %y: tensor<4096xf32, #l>, %p: !tt.ptr<f32>) {
  %a = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%one: f32, %two: f32):
    %sum = arith.addf %one, %two : f32
    tt.reduce.return %sum : f32
  }) : (tensor<4096xf32, #l>) -> f32
  tt.store %p, %a : !tt.ptr<f32>
  %product = arith.mulf %x, %y : tensor<4096xf32, #l>
  %b = "tt.reduce"(%product) <{axis = 0 : i32}> ({
  ^bb0(%one: f32, %two: f32):
    %larger = arith.maxnumf %one, %two : f32
    tt.reduce.return %larger : f32
  }) : (tensor<4096xf32, #l>) -> f32
  tt.store %p, %b : !tt.ptr<f32>
  tt.return
}

// What is loaded in between may have been stored there, and a sum of differences needs the mean.
// CHECK-LABEL: @apart
// CHECK-COUNT-3: "tt.reduce"(%{{[^,]*}})
tt.func public @apart(%x: tensor<4096xf32, #l>, %pointers: tensor<4096x!tt.ptr<f32>, #l>, %p: !tt.ptr<f32>) {
  %a = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%one: f32, %two: f32):
    %sum = arith.addf %one, %two : f32
    tt.reduce.return %sum : f32
  }) : (tensor<4096xf32, #l>) -> f32
  tt.store %p, %a : !tt.ptr<f32>
  %y = tt.load %pointers : tensor<4096x!tt.ptr<f32>, #l>
  %b = "tt.reduce"(%y) <{axis = 0 : i32}> ({
  ^bb0(%one: f32, %two: f32):
    %sum = arith.addf %one, %two : f32
    tt.reduce.return %sum : f32
  }) : (tensor<4096xf32, #l>) -> f32
  %mean = tt.splat %b : f32 -> tensor<4096xf32, #l>
  %difference = arith.subf %x, %mean : tensor<4096xf32, #l>
  %c = "tt.reduce"(%difference) <{axis = 0 : i32}> ({
  ^bb0(%one: f32, %two: f32):
    %sum = arith.addf %one, %two : f32
    tt.reduce.return %sum : f32
  }) : (tensor<4096xf32, #l>) -> f32
  tt.store %p, %c : !tt.ptr<f32>
  tt.return
}

// Tensors of other layouts have their partial results elsewhere, and without partial results in memory there is no barrier.
// CHECK-LABEL: @others
// CHECK-COUNT-4: "tt.reduce"(%{{[^,]*}})
tt.func public @others(%x: tensor<4096xf32, #l>, %y: tensor<4096xf32, #other>, %z: tensor<1x4096xf32, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [1, 0]}>>) -> (f32, f32) {
  %a = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%one: f32, %two: f32):
    %sum = arith.addf %one, %two : f32
    tt.reduce.return %sum : f32
  }) : (tensor<4096xf32, #l>) -> f32
  %b = "tt.reduce"(%y) <{axis = 0 : i32}> ({
  ^bb0(%one: f32, %two: f32):
    %sum = arith.addf %one, %two : f32
    tt.reduce.return %sum : f32
  }) : (tensor<4096xf32, #other>) -> f32
  %c = "tt.reduce"(%z) <{axis = 0 : i32}> ({
  ^bb0(%one: f32, %two: f32):
    %sum = arith.addf %one, %two : f32
    tt.reduce.return %sum : f32
  }) : (tensor<1x4096xf32, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [1, 0]}>>) -> tensor<4096xf32, #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [1, 0]}>}>>
  %d = "tt.reduce"(%z) <{axis = 0 : i32}> ({
  ^bb0(%one: f32, %two: f32):
    %sum = arith.mulf %one, %two : f32
    tt.reduce.return %sum : f32
  }) : (tensor<1x4096xf32, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [1, 0]}>>) -> tensor<4096xf32, #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [1, 0]}>}>>
  tt.return %a, %b : f32, f32
}

}
