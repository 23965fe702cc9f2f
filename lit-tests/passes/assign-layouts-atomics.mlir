// Sums in memory: each thread has as many neighbours as one instruction of the target updates.
//
// RUN: llopt %s --assign-layouts=target=cuda:90 | FileCheck %s --check-prefix=VECTOR
// RUN: llopt %s --assign-layouts=target=cuda:80 | FileCheck %s --check-prefix=PAIR
// RUN: llopt %s --assign-layouts=target=hip:gfx942 | FileCheck %s --check-prefix=PAIR

// `red` of sm_90 adds eight halves; a mask that may differ from element to element would split them. AMD adds a pair,
// whose mask does not matter.
// VECTOR: #ttg.blocked<{sizePerThread = [8], {{.*}}
// PAIR: #ttg.blocked<{sizePerThread = [2], {{.*}}
module {
  tt.func public @add(%to: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %x: f16) {
    %mask = arith.constant dense<true> : tensor<4096xi1>
    %i = tt.make_range {start = 0 : i32, end = 4096 : i32} : tensor<4096xi32>
    %v = tt.splat %x : f16 -> tensor<4096xf16>
    %t = tt.splat %to : !tt.ptr<f16> -> tensor<4096x!tt.ptr<f16>>
    %p = tt.addptr %t, %i : tensor<4096x!tt.ptr<f16>>, tensor<4096xi32>
    %old = tt.atomic_rmw fadd, relaxed, gpu, %p, %v, %mask : (tensor<4096x!tt.ptr<f16>>, tensor<4096xf16>, tensor<4096xi1>) -> tensor<4096xf16>
    tt.return
  }
}
