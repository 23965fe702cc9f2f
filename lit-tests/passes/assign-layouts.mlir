// RUN: llopt %s --assign-layouts --canonicalize --cse --split-input-file | FileCheck %s
// RUN: llopt %s --assign-layouts="target=hip:gfx942 num-warps=8" --canonicalize --cse --split-input-file | FileCheck %s --check-prefix=HIP

// One vector of 16 bytes for each thread, and no conversion: everything follows the accesses. On a
// GPU with warps of 64, and with twice the warps, less is left for each thread.

// CHECK: #[[B:.+]] = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK: module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32}
// HIP: #[[B:.+]] = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [64], warpsPerCTA = [8], order = [0]}>
// HIP: module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32}
module {
  // CHECK-LABEL: @copy
  // CHECK-NOT: ttg.convert_layout
  // CHECK: tt.load {{.*}} tensor<1024x!tt.ptr<f32>, #[[B]]>
  // CHECK-NOT: ttg.convert_layout
  // CHECK: tt.store {{.*}} tensor<1024x!tt.ptr<f32>, #[[B]]>
  tt.func public @copy(%from: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %r = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
    %f = tt.splat %from : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %p = tt.addptr %f, %r : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    %x = tt.load %p : tensor<1024x!tt.ptr<f32>>
    %t = tt.splat %to : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %q = tt.addptr %t, %r : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    tt.store %q, %x : tensor<1024x!tt.ptr<f32>>
    tt.return
  }
}

// -----

// A transpose reads rows and writes columns, each coalesced. What moves is the data, once; the
// offsets that both sides share are computed twice instead of being converted.

// CHECK-LABEL: module
module {
  // CHECK-LABEL: @transpose
  // CHECK: tt.load {{.*}} tensor<64x64x!tt.ptr<f32>, #[[ROWS:.+]]>
  // CHECK: ttg.convert_layout {{.*}} tensor<64x64xf32,
  // CHECK-NOT: ttg.convert_layout
  // CHECK: tt.store {{.*}} tensor<64x64x!tt.ptr<f32>, #[[COLUMNS:.+]]>
  tt.func public @transpose(%from: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %stride: i32 {tt.divisibility = 16 : i32}) {
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %row = tt.expand_dims %r {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %column = tt.expand_dims %r {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %s = tt.splat %stride : i32 -> tensor<64x1xi32>
    %start = arith.muli %row, %s : tensor<64x1xi32>
    %starts = tt.broadcast %start : tensor<64x1xi32> -> tensor<64x64xi32>
    %columns = tt.broadcast %column : tensor<1x64xi32> -> tensor<64x64xi32>
    %offset = arith.addi %starts, %columns : tensor<64x64xi32>
    %f = tt.splat %from : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
    %p = tt.addptr %f, %offset : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
    %x = tt.load %p : tensor<64x64x!tt.ptr<f32>>
    %y = tt.trans %x {order = array<i32: 1, 0>} : tensor<64x64xf32> -> tensor<64x64xf32>
    %t = tt.splat %to : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
    %q = tt.addptr %t, %offset : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
    tt.store %q, %y : tensor<64x64x!tt.ptr<f32>>
    tt.return
  }
}

// -----

// A value that a loop carries has one layout, that of the accesses in the loop.

// CHECK-LABEL: module
module {
  // CHECK-LABEL: @loop
  // CHECK: scf.for {{.*}} -> (tensor<256x!tt.ptr<f32>, #[[B]]>, tensor<256xf32, #[[B]]>)
  // CHECK-NOT: ttg.convert_layout
  tt.func public @loop(%from: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %step = arith.constant dense<256> : tensor<256xi32>
    %none = arith.constant dense<0.0> : tensor<256xf32>
    %r = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
    %f = tt.splat %from : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>>
    %p = tt.addptr %f, %r : tensor<256x!tt.ptr<f32>>, tensor<256xi32>
    %last, %sum = scf.for %i = %zero to %n step %one iter_args(%q = %p, %a = %none) -> (tensor<256x!tt.ptr<f32>>, tensor<256xf32>) : i32 {
      %x = tt.load %q : tensor<256x!tt.ptr<f32>>
      %b = arith.addf %a, %x : tensor<256xf32>
      %next = tt.addptr %q, %step : tensor<256x!tt.ptr<f32>>, tensor<256xi32>
      scf.yield %next, %b : tensor<256x!tt.ptr<f32>>, tensor<256xf32>
    }
    %t = tt.splat %to : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>>
    %o = tt.addptr %t, %r : tensor<256x!tt.ptr<f32>>, tensor<256xi32>
    tt.store %o, %sum : tensor<256x!tt.ptr<f32>>
    tt.return
  }
}

// -----

// Both elements of a pair are in one thread, whatever the accesses around would like.

// CHECK-LABEL: module
module {
  // CHECK-LABEL: @pairs
  // CHECK: tt.split %{{.*}} : tensor<64x2xi32, #[[PAIR:.+]]> -> tensor<64xi32, #{{.+}}>
  // CHECK: tt.join %{{.*}} : tensor<64xi32, #{{.+}}> -> tensor<64x2xi32,
  tt.func public @pairs(%from: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %to: !tt.ptr<i32> {tt.divisibility = 16 : i32}) {
    %r = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
    %f = tt.splat %from : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>>
    %p = tt.addptr %f, %r : tensor<128x!tt.ptr<i32>>, tensor<128xi32>
    %x = tt.load %p : tensor<128x!tt.ptr<i32>>
    %y = tt.reshape %x : tensor<128xi32> -> tensor<64x2xi32>
    %even, %odd = tt.split %y : tensor<64x2xi32> -> tensor<64xi32>
    %z = tt.join %odd, %even : tensor<64xi32> -> tensor<64x2xi32>
    %t = tt.trans %z {order = array<i32: 1, 0>} : tensor<64x2xi32> -> tensor<2x64xi32>
    %u = tt.reshape %t : tensor<2x64xi32> -> tensor<128xi32>
    %g = tt.splat %to : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>>
    %q = tt.addptr %g, %r : tensor<128x!tt.ptr<i32>>, tensor<128xi32>
    tt.store %q, %u : tensor<128x!tt.ptr<i32>>
    tt.return
  }
}
