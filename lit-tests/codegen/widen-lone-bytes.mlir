// Bytes that are loaded one by one, each under a condition of its own, are converted one by one, too: to pack them into
// words would take longer.
//
// RUN: llopt compile %s --target cuda:90 | FileCheck %s
// RUN: llopt compile %s --target cuda:80 | FileCheck %s

#bytes = #ttg.blocked<{sizePerThread = [8], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: .entry one_by_one
  // CHECK-NOT: prmt
  // CHECK-COUNT-8: cvt.rn.f16.s
  // CHECK-NOT: prmt
  // CHECK: ret
  tt.func public @one_by_one(%in: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %halves: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %n: i32) {
    %i = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32, #bytes>
    %end = tt.splat %n : i32 -> tensor<256xi32, #bytes>
    %inside = arith.cmpi slt, %i, %end : tensor<256xi32, #bytes>
    %p = tt.splat %in : !tt.ptr<i8> -> tensor<256x!tt.ptr<i8>, #bytes>
    %a = tt.addptr %p, %i : tensor<256x!tt.ptr<i8>, #bytes>, tensor<256xi32, #bytes>
    %v = tt.load %a, %inside : tensor<256x!tt.ptr<i8>, #bytes>
    %h = arith.sitofp %v : tensor<256xi8, #bytes> to tensor<256xf16, #bytes>
    %x = tt.splat %halves : !tt.ptr<f16> -> tensor<256x!tt.ptr<f16>, #bytes>
    %b = tt.addptr %x, %i : tensor<256x!tt.ptr<f16>, #bytes>, tensor<256xi32, #bytes>
    tt.store %b, %h, %inside : tensor<256x!tt.ptr<f16>, #bytes>
    tt.return
  }
}
