// A tile of more elements than there are registers is loaded, multiplied and summed up element by element.
//
// RUN: llopt compile %s --target cuda:90 --emit llvm -o - | FileCheck %s
// RUN: llopt compile %s --target cuda:90 -o - | FileCheck %s --check-prefix=PTX

#l = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // Each thread has 256 elements of both. Their products and the sum of the first follow the loads at once; all elements of
  // the first would have to be kept for the second sum otherwise.
  // CHECK-LABEL: @sums
  // CHECK: load
  // CHECK: fmul
  // CHECK: load
  // CHECK: fmul
  // CHECK: fadd
  // CHECK: load
  // PTX-LABEL: sums(
  // PTX-NOT: .local
  // PTX: ret;
  tt.func public @sums(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f32>) {
    %range = tt.make_range {end = 8192 : i32, start = 0 : i32} : tensor<8192xi32, #l>
    %xs = tt.splat %x : !tt.ptr<f32> -> tensor<8192x!tt.ptr<f32>, #l>
    %ys = tt.splat %y : !tt.ptr<f32> -> tensor<8192x!tt.ptr<f32>, #l>
    %px = tt.addptr %xs, %range : tensor<8192x!tt.ptr<f32>, #l>, tensor<8192xi32, #l>
    %py = tt.addptr %ys, %range : tensor<8192x!tt.ptr<f32>, #l>, tensor<8192xi32, #l>
    %a = tt.load %px : tensor<8192x!tt.ptr<f32>, #l>
    %b = tt.load %py : tensor<8192x!tt.ptr<f32>, #l>
    %products = arith.mulf %a, %b : tensor<8192xf32, #l>
    %of_products = "tt.reduce"(%products) <{axis = 0 : i32}> ({
    ^bb0(%one: f32, %two: f32):
      %sum = arith.addf %one, %two : f32
      tt.reduce.return %sum : f32
    }) : (tensor<8192xf32, #l>) -> f32
    %of_a = "tt.reduce"(%a) <{axis = 0 : i32}> ({
    ^bb0(%one: f32, %two: f32):
      %sum = arith.addf %one, %two : f32
      tt.reduce.return %sum : f32
    }) : (tensor<8192xf32, #l>) -> f32
    %both = arith.mulf %of_products, %of_a : f32
    tt.store %out, %both : !tt.ptr<f32>
    tt.return
  }
}
