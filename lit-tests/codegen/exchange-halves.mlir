// Lanes and registers change places by one instruction for two words, where the target has it.
//
// RUN: split-file %s %t
// RUN: llopt compile %t/halves.mlir --target hip:gfx950 | FileCheck %t/halves.mlir
// RUN: llopt explain %t/halves.mlir --target hip:gfx950 | FileCheck %t/halves.mlir --check-prefix=WHY
// RUN: llopt prove %t/halves.mlir --target hip:gfx950 | FileCheck %s --check-prefix=PROVEN
// RUN: llopt compile %t/halves.mlir --target hip:gfx942 | FileCheck %t/halves.mlir --check-prefix=OTHER
// RUN: llopt compile %t/rows.mlir --target hip:gfx950 | FileCheck %t/rows.mlir
// RUN: llopt explain %t/rows.mlir --target hip:gfx950 | FileCheck %t/rows.mlir --check-prefix=WHY
// RUN: llopt prove %t/rows.mlir --target hip:gfx950 | FileCheck %s --check-prefix=PROVEN

// PROVEN: ttg.convert_layout {{ *}}proven

//--- halves.mlir
// What a product of 32 by 32 leaves, for wide stores: elements 4 apart are in halves of the wave, and become neighbours.
#product32 = #ttg.linear<{register = [[1], [2], [8], [16]], lane = [[32], [64], [128], [256], [512], [4]], warp = [], block = []}>
#rows32 = #ttg.linear<{register = [[1], [2], [4], [16]], lane = [[32], [64], [128], [256], [512], [8]], warp = [], block = []}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 64 : i32} {
  // Sixteen halves are eight words, of which each exchange takes two.
  // CHECK-LABEL: halves:
  // CHECK-NOT: {{ds_|v_cndmask|v_perm_}}
  // CHECK-COUNT-4: v_permlane32_swap_b32
  // CHECK-NOT: {{ds_|v_cndmask|v_perm_|_swap}}
  // CHECK: s_endpgm
  // WHY: plan {{ *}}lanes exchange, cost 4.0, 4 swaps
  // OTHER-LABEL: halves:
  // OTHER-NOT: _swap
  tt.func public @halves(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f16> {tt.divisibility = 16 : i32}) {
    %r = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32, #product32>
    %p0 = tt.splat %p : !tt.ptr<f16> -> tensor<1024x!tt.ptr<f16>, #product32>
    %p1 = tt.addptr %p0, %r : tensor<1024x!tt.ptr<f16>, #product32>, tensor<1024xi32, #product32>
    %v = tt.load %p1 : tensor<1024x!tt.ptr<f16>, #product32>
    %w = ttg.convert_layout %v : tensor<1024xf16, #product32> -> tensor<1024xf16, #rows32>
    %s = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32, #rows32>
    %q0 = tt.splat %q : !tt.ptr<f16> -> tensor<1024x!tt.ptr<f16>, #rows32>
    %q1 = tt.addptr %q0, %s : tensor<1024x!tt.ptr<f16>, #rows32>, tensor<1024xi32, #rows32>
    tt.store %q1, %w : tensor<1024x!tt.ptr<f16>, #rows32>
    tt.return
  }
}

//--- rows.mlir
// What a product of 16 by 16 leaves: the same for rows of lanes and for halves.
#product16 = #ttg.linear<{register = [[1], [2], [16], [32]], lane = [[64], [128], [256], [512], [4], [8]], warp = [], block = []}>
#rows16 = #ttg.linear<{register = [[1], [2], [4], [8]], lane = [[64], [128], [256], [512], [16], [32]], warp = [], block = []}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 64 : i32} {
  // Sixteen words twice.
  // CHECK-LABEL: rows_and_halves:
  // CHECK-NOT: {{ds_|v_cndmask}}
  // CHECK-COUNT-16: v_permlane{{16|32}}_swap_b32
  // CHECK-NOT: {{ds_|v_cndmask|_swap}}
  // CHECK: s_endpgm
  // WHY: plan {{ *}}lanes exchange, cost 16.0, 16 swaps
  tt.func public @rows_and_halves(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %r = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32, #product16>
    %p0 = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #product16>
    %p1 = tt.addptr %p0, %r : tensor<1024x!tt.ptr<f32>, #product16>, tensor<1024xi32, #product16>
    %v = tt.load %p1 : tensor<1024x!tt.ptr<f32>, #product16>
    %w = ttg.convert_layout %v : tensor<1024xf32, #product16> -> tensor<1024xf32, #rows16>
    %s = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32, #rows16>
    %q0 = tt.splat %q : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #rows16>
    %q1 = tt.addptr %q0, %s : tensor<1024x!tt.ptr<f32>, #rows16>, tensor<1024xi32, #rows16>
    tt.store %q1, %w : tensor<1024x!tt.ptr<f32>, #rows16>
    tt.return
  }
}
