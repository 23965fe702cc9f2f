// What reads a buffer that another op laid out is chosen by all it takes: passes over the banks, instructions, and the
// permutes of what is loaded in parts.
//
// RUN: split-file %s %t
// RUN: llopt compile %t/gfx950.mlir --target hip:gfx950 | FileCheck %t/gfx950.mlir
// RUN: llopt explain %t/gfx950.mlir --target hip:gfx950 | FileCheck %s --check-prefix=WHY
// RUN: llopt prove %t/gfx950.mlir --target hip:gfx950 | FileCheck %s --check-prefix=PROVEN
// RUN: llopt compile %t/gfx1100.mlir --target hip:gfx1100 | FileCheck %t/gfx1100.mlir
// RUN: llopt prove %t/gfx1100.mlir --target hip:gfx1100 | FileCheck %s --check-prefix=PROVEN

// PROVEN: ttg.local_load {{ *}}proven

//--- gfx950.mlir
#mfma = #ttg.amd_mfma<{version = 4, warpsPerCTA = [2, 2], instrShape = [32, 32, 16], isTransposed = true}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mfma, kWidth = 8}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mfma, kWidth = 8}>
#rows = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 16, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
  // The swizzle is made for rows: transposed reads have conflicts, and twice the passes of reads of single halves, but
  // those are four times as many instructions, with a permute for each pair.
  // CHECK-LABEL: columns:
  // CHECK-NOT: ds_read_u16
  // CHECK-COUNT-8: ds_read_b64_tr_b16
  // CHECK-NOT: ds_read_u16
  // CHECK: s_endpgm
  // WHY: ttg.local_load
  // WHY: access 16 instructions of 64 bits a thread (ds_read_b64_tr_b16), 128 wavefronts (bound 32)
  tt.func public @columns(%p: !tt.ptr<f32>) {
    %s = ttg.local_alloc : () -> !ttg.memdesc<64x128xf16, #rows, #smem, mutable>
    %v = ttg.local_load %s : !ttg.memdesc<64x128xf16, #rows, #smem, mutable> -> tensor<64x128xf16, #b>
    %a = arith.constant dense<1.0> : tensor<64x64xf16, #a>
    %zero = arith.constant dense<0.0> : tensor<64x128xf32, #mfma>
    %d = tt.dot %a, %v, %zero : tensor<64x64xf16, #a> * tensor<64x128xf16, #b> -> tensor<64x128xf32, #mfma>
    %q = tt.splat %p : !tt.ptr<f32> -> tensor<64x128x!tt.ptr<f32>, #mfma>
    tt.store %q, %d : tensor<64x128x!tt.ptr<f32>, #mfma>
    tt.return
  }
}

//--- gfx1100.mlir
#wmma = #ttg.amd_wmma<{version = 1, isTranspose = true, warpsPerCTA = [2, 2]}>
#b = #ttg.dot_op<{opIdx = 1, parent = #wmma, kWidth = 16}>
#rows = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1100", "ttg.threads-per-warp" = 32 : i32} {
  // There are no such reads; a half is loaded into the half of a register that it belongs to, whatever float it is.
  // CHECK-LABEL: halves:
  // CHECK-NOT: v_perm_b32
  // CHECK: ds_load_u16_d16_hi
  // CHECK-NOT: v_perm_b32
  // CHECK: s_endpgm
  tt.func public @halves(%p: !tt.ptr<f32>) {
    %s = ttg.local_alloc : () -> !ttg.memdesc<32x64xbf16, #rows, #smem, mutable>
    %v = ttg.local_load %s : !ttg.memdesc<32x64xbf16, #rows, #smem, mutable> -> tensor<32x64xbf16, #b>
    %a = arith.constant dense<1.0> : tensor<64x32xbf16, #ttg.dot_op<{opIdx = 0, parent = #wmma, kWidth = 16}>>
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #wmma>
    %d = tt.dot %a, %v, %zero : tensor<64x32xbf16, #ttg.dot_op<{opIdx = 0, parent = #wmma, kWidth = 16}>> * tensor<32x64xbf16, #b> -> tensor<64x64xf32, #wmma>
    %q = tt.splat %p : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #wmma>
    tt.store %q, %d : tensor<64x64x!tt.ptr<f32>, #wmma>
    tt.return
  }
}
