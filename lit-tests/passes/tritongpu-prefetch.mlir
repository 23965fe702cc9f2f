// The first part of each factor is read at the end of the iteration before, and the product is cut into parts.
//
// RUN: llopt %s --split-input-file --tritongpu-prefetch | FileCheck %s

#s = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 4, order = [1, 0]}>
#c = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #c, kWidth = 2}>
#b = #ttg.dot_op<{opIdx = 1, parent = #c, kWidth = 2}>
#smem = #ttg.shared_memory
!ma = !ttg.memdesc<128x32xf16, #s, #smem>
!mb = !ttg.memdesc<32x64xf16, #s, #smem>
!sum = tensor<128x64xf32, #c>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  // Of k = 32 an instruction multiplies 16, so there are two parts. What is computed from a factor is computed from each part.
  // The second part multiplies when the next iteration's first part has been read.
  // CHECK-LABEL: @two
  // CHECK: %[[A0:.*]] = ttg.memdesc_subslice %{{.*}}[0, 0] : {{.*}} -> !ttg.memdesc<128x16xf16
  // CHECK: ttg.local_load %[[A0]]
  // CHECK: math.absf
  // CHECK: ttg.memdesc_subslice %{{.*}}[0, 0] : {{.*}} -> !ttg.memdesc<16x64xf16
  // CHECK: scf.for {{.*}} iter_args(%[[A:[a-z0-9]+]] = %{{.*}}, %[[B:[a-z0-9]+]] = %{{.*}}, %[[SUM:[a-z0-9]+]] = %{{.*}}, %[[X:[a-z0-9]+]] = %{{.*}}, %[[Y:[a-z0-9]+]] = %{{.*}})
  // CHECK: ttg.memdesc_subslice %[[A]][0, 16]
  // CHECK: %[[REST:.*]] = math.absf
  // CHECK: ttg.memdesc_subslice %[[B]][16, 0]
  // CHECK: %[[PART:.*]] = tt.dot %[[X]], %[[Y]], %[[SUM]]
  // CHECK: ttg.memdesc_subslice %{{.*}}[0, 0]
  // CHECK: %[[NEXT:.*]] = math.absf
  // CHECK: ttg.memdesc_subslice %{{.*}}[0, 0]
  // CHECK: %[[LAST:.*]] = ttg.local_load
  // CHECK: %[[DONE:.*]] = tt.dot %[[REST]], %{{.*}}, %[[PART]]
  // CHECK: scf.yield %{{.*}}, %{{.*}}, %[[DONE]], %[[NEXT]], %[[LAST]]
  tt.func @two(%x: tensor<128x32xf16, #a>, %y: tensor<32x64xf16, #b>, %n: i32) -> !sum {
    %zero = arith.constant dense<0.0> : !sum
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %s0 = ttg.local_alloc %x : (tensor<128x32xf16, #a>) -> !ma
    %t0 = ttg.local_alloc %y : (tensor<32x64xf16, #b>) -> !mb
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %s0, %t = %t0, %sum = %zero) -> (!ma, !mb, !sum) : i32 {
      %u = ttg.local_load %s : !ma -> tensor<128x32xf16, #a>
      %v = math.absf %u : tensor<128x32xf16, #a>
      %w = ttg.local_load %t : !mb -> tensor<32x64xf16, #b>
      %d = tt.dot %v, %w, %sum : tensor<128x32xf16, #a> * tensor<32x64xf16, #b> -> !sum
      %s1 = ttg.local_alloc %x : (tensor<128x32xf16, #a>) -> !ma
      %t1 = ttg.local_alloc %y : (tensor<32x64xf16, #b>) -> !mb
      scf.yield %s1, %t1, %d : !ma, !mb, !sum
    }
    tt.return %r#2 : !sum
  }

  // Nothing is known of when the next iteration's buffer is complete: it is another one of the function's.
  // CHECK-LABEL: @unknown
  // CHECK-NOT: ttg.memdesc_subslice
  // CHECK: tt.return
  tt.func @unknown(%s0: !ma, %s1: !ma, %y: tensor<32x64xf16, #b>, %n: i32) -> !sum {
    %zero = arith.constant dense<0.0> : !sum
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %t0 = ttg.local_alloc %y : (tensor<32x64xf16, #b>) -> !mb
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %s0, %t = %t0, %sum = %zero) -> (!ma, !mb, !sum) : i32 {
      %u = ttg.local_load %s : !ma -> tensor<128x32xf16, #a>
      %w = ttg.local_load %t : !mb -> tensor<32x64xf16, #b>
      %d = tt.dot %u, %w, %sum : tensor<128x32xf16, #a> * tensor<32x64xf16, #b> -> !sum
      %t1 = ttg.local_alloc %y : (tensor<32x64xf16, #b>) -> !mb
      scf.yield %s1, %t1, %d : !ma, !mb, !sum
    }
    tt.return %r#2 : !sum
  }
}
