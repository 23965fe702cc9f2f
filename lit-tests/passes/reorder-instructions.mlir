// Ops move closer to those that need them, within their block.
//
// RUN: llopt %s --tritongpu-reorder-instructions | FileCheck %s
// RUN: llopt %s --tritonamdgpu-reorder-instructions | FileCheck %s

#line = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#copies = #ttg.linear<{register = [[1], [2], [4], [8], [16]], lane = [[0], [0], [0], [0], [0]], warp = [[32], [64]], block = []}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // What is loaded for a buffer goes there at once.
  // CHECK-LABEL: @store
  // CHECK: tt.load
  // CHECK-NEXT: ttg.local_alloc
  // CHECK: arith.addf
  tt.func public @store(%p: tensor<128x!tt.ptr<f32>, #line>, %x: tensor<128xf32, #line>) -> (tensor<128xf32, #line>, tensor<128xf32, #line>) {
    %l = tt.load %p : tensor<128x!tt.ptr<f32>, #line>
    %s = arith.addf %x, %x : tensor<128xf32, #line>
    %b = ttg.local_alloc %l : (tensor<128xf32, #line>) -> !ttg.memdesc<128xf32, #shared, #smem>
    %y = ttg.local_load %b : !ttg.memdesc<128xf32, #shared, #smem> -> tensor<128xf32, #line>
    tt.return %s, %y : tensor<128xf32, #line>, tensor<128xf32, #line>
  }

  // A conversion to more registers waits for the op that needs it, here one within a condition; one to fewer does not.
  // CHECK-LABEL: @wait
  // CHECK-NEXT: ttg.convert_layout %arg1
  // CHECK-NEXT: math.exp
  // CHECK-NEXT: ttg.convert_layout
  // CHECK-NEXT: scf.if
  tt.func public @wait(%x: tensor<128xf32, #line>, %c: tensor<128xf32, #copies>, %is: i1) -> (tensor<128xf32, #copies>, tensor<128xf32, #line>) {
    %m = ttg.convert_layout %x : tensor<128xf32, #line> -> tensor<128xf32, #copies>
    %n = ttg.convert_layout %c : tensor<128xf32, #copies> -> tensor<128xf32, #line>
    %e = math.exp %c : tensor<128xf32, #copies>
    %y = scf.if %is -> (tensor<128xf32, #copies>) {
      %s = arith.addf %m, %e : tensor<128xf32, #copies>
      scf.yield %s : tensor<128xf32, #copies>
    } else {
      scf.yield %e : tensor<128xf32, #copies>
    }
    tt.return %y, %n : tensor<128xf32, #copies>, tensor<128xf32, #line>
  }
}
