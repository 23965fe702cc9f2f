// The blocks of a cluster divide the result of a product, and each loads what it multiplies.
//
// RUN: llopt %s --assign-layouts="target=cuda:90 num-ctas=2" --canonicalize --cse --verify-layouts | FileCheck %s
// RUN: llopt compile %s --target cuda:90 --num-ctas 2 --emit ttgir | FileCheck %s --check-prefix=WHOLE

// Groups of warps multiply: the result is divided, and of one factor both blocks have all in their memory.
// CHECK-DAG: #[[P:.+]] = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], CGALayout = [{{\[(0, 1|1, 0)\]}}]
// CHECK-DAG: #[[ALL:.+]] = #ttg.nvmma_shared<{{.+}}CGALayout = {{\[}}[0, 0]]}>
// CHECK-LABEL: @product
// CHECK: ttg.local_alloc %{{.+}} -> !ttg.memdesc<{{.+}}, #[[ALL]], #smem>
// CHECK: ttng.warp_group_dot {{.+}} -> tensor<128x128xf32, #[[P]]>
// WHOLE: = ttng.warp_group_dot
tt.func public @product(%from: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %other: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f16> {tt.divisibility = 16 : i32}) {
  %r = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %k = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %row = tt.expand_dims %r {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
  %depth = tt.expand_dims %k {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %width = arith.constant dense<64> : tensor<128x1xi32>
  %start = arith.muli %row, %width : tensor<128x1xi32>
  %a = tt.broadcast %start : tensor<128x1xi32> -> tensor<128x64xi32>
  %b = tt.broadcast %depth : tensor<1x64xi32> -> tensor<128x64xi32>
  %offset = arith.addi %a, %b : tensor<128x64xi32>
  %f = tt.splat %from : !tt.ptr<f16> -> tensor<128x64x!tt.ptr<f16>>
  %p = tt.addptr %f, %offset : tensor<128x64x!tt.ptr<f16>>, tensor<128x64xi32>
  %x = tt.load %p : tensor<128x64x!tt.ptr<f16>>
  %down = tt.expand_dims %k {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %column = tt.expand_dims %r {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %height = arith.constant dense<128> : tensor<64x1xi32>
  %first = arith.muli %down, %height : tensor<64x1xi32>
  %c = tt.broadcast %first : tensor<64x1xi32> -> tensor<64x128xi32>
  %d = tt.broadcast %column : tensor<1x128xi32> -> tensor<64x128xi32>
  %place = arith.addi %c, %d : tensor<64x128xi32>
  %o = tt.splat %other : !tt.ptr<f16> -> tensor<64x128x!tt.ptr<f16>>
  %s = tt.addptr %o, %place : tensor<64x128x!tt.ptr<f16>>, tensor<64x128xi32>
  %y = tt.load %s : tensor<64x128x!tt.ptr<f16>>
  %none = arith.constant dense<0.0> : tensor<128x128xf32>
  %z = tt.dot %x, %y, %none : tensor<128x64xf16> * tensor<64x128xf16> -> tensor<128x128xf32>
  %h = arith.truncf %z : tensor<128x128xf32> to tensor<128x128xf16>
  %e = arith.constant dense<128> : tensor<128x1xi32>
  %line = arith.muli %row, %e : tensor<128x1xi32>
  %g = tt.broadcast %line : tensor<128x1xi32> -> tensor<128x128xi32>
  %i = tt.broadcast %column : tensor<1x128xi32> -> tensor<128x128xi32>
  %at = arith.addi %g, %i : tensor<128x128xi32>
  %u = tt.splat %to : !tt.ptr<f16> -> tensor<128x128x!tt.ptr<f16>>
  %q = tt.addptr %u, %at : tensor<128x128x!tt.ptr<f16>>, tensor<128x128xi32>
  tt.store %q, %h : tensor<128x128x!tt.ptr<f16>>
  tt.return
}
