// Passes of Triton's names take layouts off, but for what each keeps, and choose them anew.
//
// RUN: llopt %s --tritongpu-coalesce --canonicalize --cse --split-input-file | FileCheck %s --check-prefixes=CHECK,COALESCE
// RUN: llopt %s --tritongpu-remove-layout-conversions --canonicalize --cse --split-input-file | FileCheck %s --check-prefixes=CHECK,REMOVE
// RUN: llopt %s --tritongpu-accelerate-matmul --canonicalize --cse --split-input-file | FileCheck %s --check-prefixes=CHECK,MULTIPLY
// RUN: llopt %s --assign-layouts --canonicalize --cse --split-input-file | FileCheck %s --check-prefixes=CHECK,STAYS

// The accesses of a copy lie badly: only what chooses accesses anew changes that, and then nothing is converted.

#column = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
#row = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: @copy
  // COALESCE-NOT: convert_layout
  // COALESCE: tt.load %{{.+}} : tensor<64x64x!tt.ptr<f32>, #[[L:.+]]>
  // COALESCE-NOT: convert_layout
  // COALESCE: tt.store %{{.+}}, %{{.+}} : tensor<64x64x!tt.ptr<f32>, #[[L]]>
  // REMOVE: tt.load %{{.+}} : tensor<64x64x!tt.ptr<f32>, #[[C:.+]]>
  // REMOVE: ttg.convert_layout
  // REMOVE: tt.store %{{.+}}, %{{.+}} : tensor<64x64x!tt.ptr<f32>, #[[R:.+]]>
  // STAYS: ttg.convert_layout
  // STAYS: ttg.convert_layout
  // STAYS: tt.store
  tt.func public @copy(%from: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #column}>>
    %c = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #column}>>
    %row = tt.expand_dims %r {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #column}>> -> tensor<64x1xi32, #column>
    %column = tt.expand_dims %c {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #column}>> -> tensor<1x64xi32, #column>
    %extent = arith.constant dense<64> : tensor<64x1xi32, #column>
    %start = arith.muli %row, %extent : tensor<64x1xi32, #column>
    %a = tt.broadcast %start : tensor<64x1xi32, #column> -> tensor<64x64xi32, #column>
    %b = tt.broadcast %column : tensor<1x64xi32, #column> -> tensor<64x64xi32, #column>
    %offset = arith.addi %a, %b : tensor<64x64xi32, #column>
    %f = tt.splat %from : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #column>
    %p = tt.addptr %f, %offset : tensor<64x64x!tt.ptr<f32>, #column>, tensor<64x64xi32, #column>
    %x = tt.load %p : tensor<64x64x!tt.ptr<f32>, #column>
    %y = ttg.convert_layout %x : tensor<64x64xf32, #column> -> tensor<64x64xf32, #row>
    %z = arith.addf %y, %y : tensor<64x64xf32, #row>
    %t = tt.splat %to : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #row>
    %o = ttg.convert_layout %offset : tensor<64x64xi32, #column> -> tensor<64x64xi32, #row>
    %q = tt.addptr %t, %o : tensor<64x64x!tt.ptr<f32>, #row>, tensor<64x64xi32, #row>
    tt.store %q, %z : tensor<64x64x!tt.ptr<f32>, #row>
    tt.return
  }
}

// -----

// A product that threads do becomes one of a matrix unit, and the accesses around it stay.

#thread = #ttg.blocked<{sizePerThread = [4, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: @product
  // REMOVE: tt.dot {{.*}} : tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> * {{.*}} -> tensor<64x64xf32, #blocked>
  // STAYS: tt.dot {{.*}} : tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> * {{.*}} -> tensor<64x64xf32, #blocked>
  // MULTIPLY: tt.dot {{.*}} : tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * {{.*}} -> tensor<64x64xf32, #mma>
  // COALESCE: tt.store %{{.+}}, %{{.+}} : tensor<64x64x!tt.ptr<f32>, #blocked{{.*}}>
  // REMOVE: tt.store %{{.+}}, %{{.+}} : tensor<64x64x!tt.ptr<f32>, #blocked>
  // MULTIPLY: tt.store %{{.+}}, %{{.+}} : tensor<64x64x!tt.ptr<f32>, #blocked>
  // STAYS: tt.store %{{.+}}, %{{.+}} : tensor<64x64x!tt.ptr<f32>, #blocked>
  tt.func public @product(%x: tensor<64x64x!tt.ptr<f16>, #thread>, %to: tensor<64x64x!tt.ptr<f32>, #thread>) {
    %none = arith.constant dense<0.0> : tensor<64x64xf32, #thread>
    %l = tt.load %x : tensor<64x64x!tt.ptr<f16>, #thread>
    %a = ttg.convert_layout %l : tensor<64x64xf16, #thread> -> tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #thread}>>
    %b = ttg.convert_layout %l : tensor<64x64xf16, #thread> -> tensor<64x64xf16, #ttg.dot_op<{opIdx = 1, parent = #thread}>>
    %d = tt.dot %a, %b, %none : tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #thread}>> * tensor<64x64xf16, #ttg.dot_op<{opIdx = 1, parent = #thread}>> -> tensor<64x64xf32, #thread>
    tt.store %to, %d : tensor<64x64x!tt.ptr<f32>, #thread>
    tt.return
  }
}
