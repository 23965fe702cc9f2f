// A gather whose source, indices and result do not fit into registers together loads a few of each at a time.
//
// RUN: llopt compile %s --target hip:gfx1100 --emit llvm | FileCheck %s --check-prefixes=CHECK,ASIDE
// RUN: sed -e 's/threadsPerWarp = .1, 32./threadsPerWarp = [1, 64]/' -e 's/per-warp" = 32/per-warp" = 64/' %s > %t.64.mlir
// RUN: llopt compile %t.64.mlir --target hip:gfx942 --emit llvm | FileCheck %s --check-prefixes=CHECK,KEPT
// RUN: llopt compile %s --target cuda:80 --emit llvm | FileCheck %s --check-prefix=PTXAS
//
// LLVM's register allocator has little to do: both take a second.
// RUN: llopt compile %s --target hip:gfx1100 | FileCheck %s --check-prefix=GCN
// RUN: llopt compile %t.64.mlir --target hip:gfx942 | FileCheck %s --check-prefix=GCN
// RUN: llopt prove %s --target hip:gfx1100 | FileCheck %s --check-prefix=PROVEN
// RUN: llopt prove %t.64.mlir --target hip:gfx942 | FileCheck %s --check-prefix=PROVEN

// PROVEN: proven: 1 of 1
// GCN: s_endpgm

// Addresses follow from a copy of the thread's number; 32 elements go to shared memory before the next are loaded.
// CHECK: call i32 asm sideeffect "v_mov_b32
// CHECK-COUNT-32: load i32, ptr addrspace(1)
// CHECK-NOT: load i32, ptr addrspace(1)
// CHECK-COUNT-32: store i32 {{.*}}, ptr addrspace(3)
// CHECK: load i32, ptr addrspace(1)
// CHECK: s.barrier
// So are indices, by another copy, and what they read is set aside if the results of all rounds are too many.
// CHECK: asm sideeffect "v_mov_b32
// CHECK-COUNT-32: load i32, ptr addrspace(1)
// CHECK-NOT: load i32, ptr addrspace(1)
// CHECK-COUNT-32: load {{i32|float}}, ptr addrspace(3)
// ASIDE: store {{.*}}, ptr addrspace(5)
// KEPT-NOT: addrspace(5)
// Nobody stores before all have read.
// CHECK: load {{i32|float}}, ptr addrspace(3)
// CHECK: s.barrier
// CHECK: asm sideeffect "v_mov_b32
// ASIDE: load {{.*}}, ptr addrspace(5)
// CHECK: store {{.*}}, ptr addrspace(1)

// ptxas allocates registers itself: no copies, and nothing aside.
// PTXAS-NOT: asm
// PTXAS-NOT: alloca
// PTXAS: ret void

#blocked = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @gather(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32, tt.pointer_range = 32 : i32}, %idx: !tt.ptr<i32> {tt.divisibility = 16 : i32, tt.pointer_range = 32 : i32}, %o: !tt.ptr<f32> {tt.divisibility = 16 : i32, tt.pointer_range = 32 : i32}) attributes {noinline = false} {
    %cst = arith.constant dense<64> : tensor<512x1xi32, #blocked>
    %im = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
    %jn = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
    %off = tt.expand_dims %im {axis = 1 : i32} : tensor<512xi32, #ttg.slice<{dim = 1, parent = #blocked}>> -> tensor<512x1xi32, #blocked>
    %off_0 = arith.muli %off, %cst : tensor<512x1xi32, #blocked>
    %off_1 = tt.expand_dims %jn {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>> -> tensor<1x64xi32, #blocked>
    %off_2 = tt.broadcast %off_0 : tensor<512x1xi32, #blocked> -> tensor<512x64xi32, #blocked>
    %off_3 = tt.broadcast %off_1 : tensor<1x64xi32, #blocked> -> tensor<512x64xi32, #blocked>
    %off_4 = arith.addi %off_2, %off_3 : tensor<512x64xi32, #blocked>
    %0 = tt.splat %o : !tt.ptr<f32> -> tensor<512x64x!tt.ptr<f32>, #blocked>
    %1 = tt.addptr %0, %off_4 : tensor<512x64x!tt.ptr<f32>, #blocked>, tensor<512x64xi32, #blocked>
    %2 = tt.splat %x : !tt.ptr<f32> -> tensor<512x64x!tt.ptr<f32>, #blocked>
    %3 = tt.addptr %2, %off_4 : tensor<512x64x!tt.ptr<f32>, #blocked>, tensor<512x64xi32, #blocked>
    %4 = tt.load %3 : tensor<512x64x!tt.ptr<f32>, #blocked>
    %5 = tt.splat %idx : !tt.ptr<i32> -> tensor<512x64x!tt.ptr<i32>, #blocked>
    %6 = tt.addptr %5, %off_4 : tensor<512x64x!tt.ptr<i32>, #blocked>, tensor<512x64xi32, #blocked>
    %7 = tt.load %6 : tensor<512x64x!tt.ptr<i32>, #blocked>
    %8 = tt.gather %4[%7] {axis = 0 : i32} : (tensor<512x64xf32, #blocked>, tensor<512x64xi32, #blocked>) -> tensor<512x64xf32, #blocked>
    tt.store %1, %8 : tensor<512x64x!tt.ptr<f32>, #blocked>
    tt.return
  }
}
