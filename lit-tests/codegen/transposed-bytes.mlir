// Bytes that matrix instructions transpose on their way through shared memory (Blackwell): every element arrives.
//
// RUN: llopt compile %s --target cuda:100 | FileCheck %s
// RUN: llopt prove %s --target cuda:100 | FileCheck %s --check-prefix=PROVEN

// PROVEN-COUNT-2: ttg.convert_layout {{ *}}proven

#row = #ttg.blocked<{sizePerThread = [1, 16], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#column = #ttg.blocked<{sizePerThread = [16, 1], threadsPerWarp = [4, 8], warpsPerCTA = [1, 4], order = [0, 1]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
  // Rows become an operand of which a thread has four bytes of a column, and the result of a product becomes columns.
  // CHECK-LABEL: .entry turned
  // CHECK-DAG: ldmatrix.sync.aligned.m16n16.{{x[12]}}.trans.shared{{.*}}.b8
  // CHECK-DAG: stmatrix.sync.aligned.m16n8.{{x[124]}}.trans.shared{{.*}}.b8
  tt.func public @turned(%x: tensor<64x64xi8, #row>, %z: tensor<64x64xi8, #mma>, %p: tensor<64x64x!tt.ptr<i8>, #b>, %q: tensor<64x64x!tt.ptr<i8>, #column>) {
    %y = ttg.convert_layout %x : tensor<64x64xi8, #row> -> tensor<64x64xi8, #b>
    %w = ttg.convert_layout %z : tensor<64x64xi8, #mma> -> tensor<64x64xi8, #column>
    tt.store %p, %y : tensor<64x64x!tt.ptr<i8>, #b>
    tt.store %q, %w : tensor<64x64x!tt.ptr<i8>, #column>
    tt.return
  }
}
