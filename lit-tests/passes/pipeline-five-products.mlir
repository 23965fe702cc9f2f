// The backward pass of attention in five products, as in tools/gpu/attention_backward_kernels.py: a block of keys goes over
// tiles of queries, and adds its part of dQ to memory by the copy unit.
//
// RUN: llopt compile %s --target cuda:90 --num-warps 8 --num-stages 3 --emit ttgir -o - | FileCheck %s
// RUN: llopt compile %s --target cuda:90 --num-warps 8 --num-stages 3 | FileCheck %s --check-prefix=PTX

module {
  // Keys and values arrive while the first tiles of queries are copied.
  // CHECK-LABEL: @backward
  // CHECK: ttng.async_tma_copy_global_to_local %arg1
  // CHECK: ttng.async_tma_copy_global_to_local %arg2
  // CHECK-NOT: ttng.wait_barrier
  // CHECK: ttng.async_tma_copy_global_to_local %arg0
  // CHECK: ttng.async_tma_copy_global_to_local %arg0
  // CHECK: ttng.wait_barrier
  // CHECK: ttng.wait_barrier
  // CHECK: scf.for
  // The scores and dP, whose factor is loaded after them, run at a time, and the rows of logarithms are read meanwhile.
  // CHECK: %[[S:.*]] = ttng.warp_group_dot {{.*}}isAsync = true
  // CHECK: %[[DP:.*]] = ttng.warp_group_dot {{.*}}isAsync = true
  // CHECK: ttg.local_load
  // CHECK: ttng.warp_group_dot_wait %[[S]], %{{.*}} {pendings = 1
  // CHECK: math.exp2
  // CHECK: %[[DV:.*]] = ttng.warp_group_dot {{.*}}isAsync = true
  // CHECK: ttg.local_load
  // CHECK: ttng.warp_group_dot_wait %[[DP]] {pendings = 1
  // CHECK: ttg.local_alloc
  // The sum dK comes last, and runs on. dV is complete where dQ is.
  // CHECK: %[[DQ:.*]] = ttng.warp_group_dot {{.*}}isAsync = true
  // CHECK: ttng.warp_group_dot {{.*}}isAsync = true
  // The loads for a later iteration are issued before dQ is added, by which the copy unit is busy for longer.
  // CHECK: ttng.async_tma_store_wait {pendings = 0
  // CHECK: ttng.async_tma_copy_global_to_local
  // CHECK: %[[DONE:.*]]:3 = ttng.warp_group_dot_wait %[[DQ]], %[[DV]], %{{.*}} {pendings = 1
  // CHECK: ttg.local_store %[[DONE]]#0
  // CHECK: ttng.async_tma_reduce add
  // CHECK-NOT: ttng.warp_group_dot_wait
  // CHECK: scf.yield

  // Each product adds the constants of its descriptors to one field of the address, and the warps synchronise three times: for
  // dS, for the slot of the ring, for dQ.
  // PTX: add.s32 low0, %r[[K:[0-9]+]], [[#BEGIN:]];
  // PTX-NEXT: mov.b64 matrix0, {low0, {{[0-9]+}}};
  // PTX: add.s32 low2, %r[[K]], [[#BEGIN + 2]];
  // PTX: wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {{.*}}, matrix0, matrix1, never
  // PTX: stmatrix
  // PTX: bar.sync
  // PTX: bar.sync
  // PTX: st.shared
  // PTX: bar.sync
  // PTX-NOT: bar.sync
  // PTX: cp.reduce.async.bulk.tensor
  // PTX-NOT: bar.sync
  // PTX: bra
  tt.func public @backward(%q: !tt.tensordesc<tensor<64x128xf16>>, %k: !tt.tensordesc<tensor<128x128xf16>>, %v: !tt.tensordesc<tensor<128x128xf16>>, %do: !tt.tensordesc<tensor<64x128xf16>>, %logarithms: !tt.tensordesc<tensor<64xf32>>, %delta: !tt.tensordesc<tensor<64xf32>>, %dq: !tt.tensordesc<tensor<64x128xf32>>, %dk: !tt.tensordesc<tensor<128x128xf16>>, %dv: !tt.tensordesc<tensor<128x128xf16>>, %scale: f32, %length: i32 {tt.divisibility = 16 : i32}) {
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    %c128 = arith.constant 128 : i32
    %none = arith.constant dense<0.0> : tensor<128x64xf32>
    %nothing = arith.constant dense<0.0> : tensor<64x128xf32>
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %block = tt.get_program_id x : i32
    %column = arith.muli %block, %c128 : i32
    %keys = tt.descriptor_load %k[%column, %c0] : !tt.tensordesc<tensor<128x128xf16>> -> tensor<128x128xf16>
    %values = tt.descriptor_load %v[%column, %c0] : !tt.tensordesc<tensor<128x128xf16>> -> tensor<128x128xf16>
    %sums:2 = scf.for %row = %c0 to %length step %c64 iter_args(%dk_sum = %zero, %dv_sum = %zero) -> (tensor<128x128xf32>, tensor<128x128xf32>) : i32 {
      %queries = tt.descriptor_load %q[%row, %c0] : !tt.tensordesc<tensor<64x128xf16>> -> tensor<64x128xf16>
      %qt = tt.trans %queries {order = array<i32: 1, 0>} : tensor<64x128xf16> -> tensor<128x64xf16>
      %s = tt.dot %keys, %qt, %none : tensor<128x128xf16> * tensor<128x64xf16> -> tensor<128x64xf32>
      %factor = tt.splat %scale : f32 -> tensor<128x64xf32>
      %scaled = arith.mulf %s, %factor : tensor<128x64xf32>
      %l = tt.descriptor_load %logarithms[%row] : !tt.tensordesc<tensor<64xf32>> -> tensor<64xf32>
      %l1 = tt.expand_dims %l {axis = 0 : i32} : tensor<64xf32> -> tensor<1x64xf32>
      %l2 = tt.broadcast %l1 : tensor<1x64xf32> -> tensor<128x64xf32>
      %exponents = arith.subf %scaled, %l2 : tensor<128x64xf32>
      %p = math.exp2 %exponents : tensor<128x64xf32>
      %given = tt.descriptor_load %do[%row, %c0] : !tt.tensordesc<tensor<64x128xf16>> -> tensor<64x128xf16>
      %ot = tt.trans %given {order = array<i32: 1, 0>} : tensor<64x128xf16> -> tensor<128x64xf16>
      %dp = tt.dot %values, %ot, %none : tensor<128x128xf16> * tensor<128x64xf16> -> tensor<128x64xf32>
      %ph = arith.truncf %p : tensor<128x64xf32> to tensor<128x64xf16>
      %dv_new = tt.dot %ph, %given, %dv_sum : tensor<128x64xf16> * tensor<64x128xf16> -> tensor<128x128xf32>
      %d = tt.descriptor_load %delta[%row] : !tt.tensordesc<tensor<64xf32>> -> tensor<64xf32>
      %d1 = tt.expand_dims %d {axis = 0 : i32} : tensor<64xf32> -> tensor<1x64xf32>
      %d2 = tt.broadcast %d1 : tensor<1x64xf32> -> tensor<128x64xf32>
      %apart = arith.subf %dp, %d2 : tensor<128x64xf32>
      %ds = arith.mulf %p, %apart : tensor<128x64xf32>
      %dsh = arith.truncf %ds : tensor<128x64xf32> to tensor<128x64xf16>
      %dk_new = tt.dot %dsh, %queries, %dk_sum : tensor<128x64xf16> * tensor<64x128xf16> -> tensor<128x128xf32>
      %dst = tt.trans %dsh {order = array<i32: 1, 0>} : tensor<128x64xf16> -> tensor<64x128xf16>
      %part = tt.dot %dst, %keys, %nothing : tensor<64x128xf16> * tensor<128x128xf16> -> tensor<64x128xf32>
      tt.descriptor_reduce add, %dq[%row, %c0], %part : !tt.tensordesc<tensor<64x128xf32>>, tensor<64x128xf32>
      scf.yield %dk_new, %dv_new : tensor<128x128xf32>, tensor<128x128xf32>
    }
    %dvh = arith.truncf %sums#1 : tensor<128x128xf32> to tensor<128x128xf16>
    tt.descriptor_store %dv[%column, %c0], %dvh : !tt.tensordesc<tensor<128x128xf16>>, tensor<128x128xf16>
    %dkh = arith.truncf %sums#0 : tensor<128x128xf32> to tensor<128x128xf16>
    tt.descriptor_store %dk[%column, %c0], %dkh : !tt.tensordesc<tensor<128x128xf16>>, tensor<128x128xf16>
    tt.return
  }
}
