// A promise of contiguity is believed of what one access moves, and of nothing else.
//
// RUN: llopt compile %s --target cuda:90 --num-warps 1 | FileCheck %s --check-prefix=PTX
#row = #ttg.blocked<{sizePerThread = [64], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  // The rows of a tile begin again where the matrix ends, which may be anywhere, and the program promises that they do
  // not, as it stores none of those that do. Each of a thread's 64 remainders is computed, while stores move vectors.
  // PTX-LABEL: .entry promised(
  // PTX-COUNT-64: rem.u32
  // PTX-NOT: rem.u32
  // PTX: st.global.v4
  // PTX: ret;
  tt.func public @promised(%period: i32, %to: !tt.ptr<i32> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {start = 0 : i32, end = 2048 : i32} : tensor<2048xi32, #row>
    %periods = tt.splat %period : i32 -> tensor<2048xi32, #row>
    %rest = arith.remui %i, %periods {tt.contiguity = dense<64> : tensor<1xi32>, tt.divisibility = dense<64> : tensor<1xi32>} : tensor<2048xi32, #row>
    %tos = tt.splat %to : !tt.ptr<i32> -> tensor<2048x!tt.ptr<i32>, #row>
    %places = tt.addptr %tos, %i : tensor<2048x!tt.ptr<i32>, #row>, tensor<2048xi32, #row>
    tt.store %places, %rest : tensor<2048x!tt.ptr<i32>, #row>
    tt.return
  }
}
