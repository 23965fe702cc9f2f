// RUN: llopt %s --stage-conversions | FileCheck %s

#sums = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 1], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #sums, kWidth = 2}>
#b = #ttg.dot_op<{opIdx = 1, parent = #sums, kWidth = 2}>
#wide = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [2, 16], warpsPerCTA = [2, 1], order = [1, 0]}>
#rows = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [2, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 2 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {

// Four tiles of 64 registers each are too many with the sums: the one that is needed last is stored before the fourth
// is loaded, and read by its product.
// CHECK-LABEL: @needed_last
// CHECK: %[[X:.*]] = tt.load %arg0
// CHECK: %[[Y:.*]] = tt.load %arg1
// CHECK: %[[Z:.*]] = tt.load %arg2
// CHECK: %[[BUFFER:.*]] = ttg.local_alloc %[[Z]]
// CHECK: tt.load %arg3
// CHECK: tt.dot
// CHECK: %[[READ:.*]] = ttg.local_load %[[BUFFER]]
// CHECK-NEXT: tt.dot {{.*}}, %[[READ]]
tt.func @needed_last(%p: tensor<64x128x!tt.ptr<f16>, #wide>, %q: tensor<128x64x!tt.ptr<f16>, #rows>, %r: tensor<128x64x!tt.ptr<f16>, #rows>, %s: tensor<128x64x!tt.ptr<f16>, #rows>, %c: tensor<64x64xf32, #sums>) -> (tensor<64x64xf32, #sums>, tensor<128x64xf16, #rows>) {
  %x = tt.load %p : tensor<64x128x!tt.ptr<f16>, #wide>
  %y = tt.load %q : tensor<128x64x!tt.ptr<f16>, #rows>
  %z = tt.load %r : tensor<128x64x!tt.ptr<f16>, #rows>
  %w = tt.load %s : tensor<128x64x!tt.ptr<f16>, #rows>
  %a = ttg.convert_layout %x : tensor<64x128xf16, #wide> -> tensor<64x128xf16, #a>
  %b = ttg.convert_layout %y : tensor<128x64xf16, #rows> -> tensor<128x64xf16, #b>
  %0 = tt.dot %a, %b, %c : tensor<64x128xf16, #a> * tensor<128x64xf16, #b> -> tensor<64x64xf32, #sums>
  %d = ttg.convert_layout %z : tensor<128x64xf16, #rows> -> tensor<128x64xf16, #b>
  %1 = tt.dot %a, %d, %0 : tensor<64x128xf16, #a> * tensor<128x64xf16, #b> -> tensor<64x64xf32, #sums>
  tt.return %1, %w : tensor<64x64xf32, #sums>, tensor<128x64xf16, #rows>
}

// Where there are enough registers, conversions stay: their scratch memory is used again.
// CHECK-LABEL: @enough
// CHECK-NOT: ttg.local_alloc
// CHECK: ttg.convert_layout
tt.func @enough(%p: tensor<64x32x!tt.ptr<f16>, #wide>, %mb: !ttg.memdesc<32x64xf16, #shared, #smem>, %c: tensor<64x64xf32, #sums>) -> tensor<64x64xf32, #sums> {
  %x = tt.load %p : tensor<64x32x!tt.ptr<f16>, #wide>
  %a = ttg.convert_layout %x : tensor<64x32xf16, #wide> -> tensor<64x32xf16, #a>
  %b = ttg.local_load %mb : !ttg.memdesc<32x64xf16, #shared, #smem> -> tensor<32x64xf16, #b>
  %0 = tt.dot %a, %b, %c : tensor<64x32xf16, #a> * tensor<32x64xf16, #b> -> tensor<64x64xf32, #sums>
  tt.return %0 : tensor<64x64xf32, #sums>
}

// Factors that a loop reads in each iteration leave too few registers: they come from buffers in the loop.
// CHECK-LABEL: @read_in_loops
// CHECK: %[[K:.*]] = ttg.local_alloc
// CHECK: scf.for
// CHECK: ttg.local_load %[[K]]
// CHECK-NEXT: tt.dot
tt.func @read_in_loops(%x: tensor<64x128xf16, #wide>, %y: tensor<64x128xf16, #wide>, %p: tensor<128x64x!tt.ptr<f16>, #rows>, %c: tensor<64x64xf32, #sums>, %n: i32) -> (tensor<64x64xf32, #sums>, tensor<64x64xf32, #sums>) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %k = ttg.convert_layout %x : tensor<64x128xf16, #wide> -> tensor<64x128xf16, #a>
  %l = ttg.convert_layout %y : tensor<64x128xf16, #wide> -> tensor<64x128xf16, #a>
  %0:2 = scf.for %i = %zero to %n step %one iter_args(%s = %c, %t = %c) -> (tensor<64x64xf32, #sums>, tensor<64x64xf32, #sums>) : i32 {
    %z = tt.load %p : tensor<128x64x!tt.ptr<f16>, #rows>
    %b = ttg.convert_layout %z : tensor<128x64xf16, #rows> -> tensor<128x64xf16, #b>
    %1 = tt.dot %k, %b, %s : tensor<64x128xf16, #a> * tensor<128x64xf16, #b> -> tensor<64x64xf32, #sums>
    %2 = tt.dot %l, %b, %t : tensor<64x128xf16, #a> * tensor<128x64xf16, #b> -> tensor<64x64xf32, #sums>
    scf.yield %1, %2 : tensor<64x64xf32, #sums>, tensor<64x64xf32, #sums>
  }
  tt.return %0#0, %0#1 : tensor<64x64xf32, #sums>, tensor<64x64xf32, #sums>
}
// A factor of two loops in a row is read by each of them from the one buffer.
// CHECK-LABEL: @read_in_two_loops
// CHECK: %[[K:.*]] = ttg.local_alloc %arg0
// CHECK-NOT: ttg.local_alloc %arg0
// CHECK: scf.for
// CHECK: %[[READ:.*]] = ttg.local_load %[[K]]
// CHECK: tt.dot %[[READ]]
// CHECK: scf.for
// CHECK: %[[AGAIN:.*]] = ttg.local_load %[[K]]
// CHECK: tt.dot %[[AGAIN]]
tt.func @read_in_two_loops(%x: tensor<64x128xf16, #wide>, %y: tensor<64x128xf16, #wide>, %p: tensor<128x64x!tt.ptr<f16>, #rows>, %c: tensor<64x64xf32, #sums>, %n: i32) -> (tensor<64x64xf32, #sums>, tensor<64x64xf32, #sums>) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %k = ttg.convert_layout %x : tensor<64x128xf16, #wide> -> tensor<64x128xf16, #a>
  %l = ttg.convert_layout %y : tensor<64x128xf16, #wide> -> tensor<64x128xf16, #a>
  %0:2 = scf.for %i = %zero to %n step %one iter_args(%s = %c, %t = %c) -> (tensor<64x64xf32, #sums>, tensor<64x64xf32, #sums>) : i32 {
    %z = tt.load %p : tensor<128x64x!tt.ptr<f16>, #rows>
    %b = ttg.convert_layout %z : tensor<128x64xf16, #rows> -> tensor<128x64xf16, #b>
    %1 = tt.dot %k, %b, %s : tensor<64x128xf16, #a> * tensor<128x64xf16, #b> -> tensor<64x64xf32, #sums>
    %2 = tt.dot %l, %b, %t : tensor<64x128xf16, #a> * tensor<128x64xf16, #b> -> tensor<64x64xf32, #sums>
    scf.yield %1, %2 : tensor<64x64xf32, #sums>, tensor<64x64xf32, #sums>
  }
  %3:2 = scf.for %i = %zero to %n step %one iter_args(%s = %0#0, %t = %0#1) -> (tensor<64x64xf32, #sums>, tensor<64x64xf32, #sums>) : i32 {
    %z = tt.load %p : tensor<128x64x!tt.ptr<f16>, #rows>
    %b = ttg.convert_layout %z : tensor<128x64xf16, #rows> -> tensor<128x64xf16, #b>
    %1 = tt.dot %k, %b, %s : tensor<64x128xf16, #a> * tensor<128x64xf16, #b> -> tensor<64x64xf32, #sums>
    %2 = tt.dot %l, %b, %t : tensor<64x128xf16, #a> * tensor<128x64xf16, #b> -> tensor<64x64xf32, #sums>
    scf.yield %1, %2 : tensor<64x64xf32, #sums>, tensor<64x64xf32, #sums>
  }
  tt.return %3#0, %3#1 : tensor<64x64xf32, #sums>, tensor<64x64xf32, #sums>
}
}
