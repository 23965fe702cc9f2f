// Remainders of numbers that follow each other are computed once for as many of them as are known to stay in one period.
//
// RUN: llopt compile %s --target cuda:90 --num-warps 1 | FileCheck %s --check-prefix=PTX
#row = #ttg.blocked<{sizePerThread = [64], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  // A thread has 64 neighbours, and 16 divides the period: four remainders.
  // PTX-LABEL: .entry period(
  // PTX-COUNT-4: rem.u32
  // PTX-NOT: rem.u32
  // PTX: ret;
  tt.func public @period(%period: i32 {tt.divisibility = 16 : i32}, %to: !tt.ptr<i32> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {start = 0 : i32, end = 2048 : i32} : tensor<2048xi32, #row>
    %periods = tt.splat %period : i32 -> tensor<2048xi32, #row>
    %rest = arith.remui %i, %periods : tensor<2048xi32, #row>
    %tos = tt.splat %to : !tt.ptr<i32> -> tensor<2048x!tt.ptr<i32>, #row>
    %places = tt.addptr %tos, %i : tensor<2048x!tt.ptr<i32>, #row>, tensor<2048xi32, #row>
    tt.store %places, %rest : tensor<2048x!tt.ptr<i32>, #row>
    tt.return
  }
}
