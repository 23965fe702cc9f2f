// Pairs of four-bit elements that lie along M or N in shared memory are read as pairs along K.
//
// RUN: split-file %s %t
// RUN: llopt compile %t/operands.mlir --target hip:gfx950 | FileCheck %t/operands.mlir
// RUN: llopt compile %t/other.mlir --target hip:gfx942 | FileCheck %t/other.mlir
// RUN: llopt prove %t/operands.mlir --target hip:gfx950 | FileCheck %s --check-prefix=PROVEN
// RUN: llopt prove %t/other.mlir --target hip:gfx942 | FileCheck %s --check-prefix=PROVEN

// PROVEN: amdg.local_load_packed_tranposed {{ *}}proven
// PROVEN: amdg.local_load_packed_tranposed {{ *}}proven

//--- operands.mlir
#mfma = #ttg.amd_mfma<{version = 4, warpsPerCTA = [2, 2], instrShape = [16, 16, 128], isTransposed = true}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mfma, kWidth = 16}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mfma, kWidth = 16}>
#columns = #ttg.swizzled_shared<{vec = 16, perPhase = 2, maxPhase = 8, order = [0, 1]}>
#rows = #ttg.swizzled_shared<{vec = 16, perPhase = 2, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
  // Each lane has columns of sixteen elements: loads that transpose halves of bytes bring them.
  // CHECK-LABEL: operands:
  // CHECK-NOT: ds_read_u8
  // CHECK: ds_read_b64_tr_b4
  // CHECK-NOT: ds_read_u8
  // CHECK: s_endpgm
  tt.func public @operands(%p: !tt.ptr<i8>) {
    %sa = ttg.local_alloc : () -> !ttg.memdesc<64x128xi8, #columns, #smem, mutable>
    %sb = ttg.local_alloc : () -> !ttg.memdesc<128x64xi8, #rows, #smem, mutable>
    %0 = amdg.local_load_packed_tranposed %sa : !ttg.memdesc<64x128xi8, #columns, #smem, mutable> -> tensor<128x64xi8, #a>
    %1 = amdg.local_load_packed_tranposed %sb : !ttg.memdesc<128x64xi8, #rows, #smem, mutable> -> tensor<64x128xi8, #b>
    %qa = tt.splat %p : !tt.ptr<i8> -> tensor<128x64x!tt.ptr<i8>, #a>
    %qb = tt.splat %p : !tt.ptr<i8> -> tensor<64x128x!tt.ptr<i8>, #b>
    tt.store %qa, %0 : tensor<128x64x!tt.ptr<i8>, #a>
    tt.store %qb, %1 : tensor<64x128x!tt.ptr<i8>, #b>
    tt.return
  }
}

//--- other.mlir
#mfma = #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [16, 16, 16], isTransposed = true}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mfma, kWidth = 4}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mfma, kWidth = 4}>
#columns = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 4, order = [0, 1]}>
#rows = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 4, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
  // There is no such load: each byte is made of a half of each of two.
  // CHECK-LABEL: other:
  // CHECK: ds_read_u8
  // CHECK: s_endpgm
  tt.func public @other(%p: !tt.ptr<i8>) {
    %sa = ttg.local_alloc : () -> !ttg.memdesc<16x64xi8, #columns, #smem, mutable>
    %sb = ttg.local_alloc : () -> !ttg.memdesc<64x16xi8, #rows, #smem, mutable>
    %0 = amdg.local_load_packed_tranposed %sa : !ttg.memdesc<16x64xi8, #columns, #smem, mutable> -> tensor<32x32xi8, #a>
    %1 = amdg.local_load_packed_tranposed %sb : !ttg.memdesc<64x16xi8, #rows, #smem, mutable> -> tensor<32x32xi8, #b>
    %qa = tt.splat %p : !tt.ptr<i8> -> tensor<32x32x!tt.ptr<i8>, #a>
    %qb = tt.splat %p : !tt.ptr<i8> -> tensor<32x32x!tt.ptr<i8>, #b>
    tt.store %qa, %0 : tensor<32x32x!tt.ptr<i8>, #a>
    tt.store %qb, %1 : tensor<32x32x!tt.ptr<i8>, #b>
    tt.return
  }
}
