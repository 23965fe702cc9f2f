// RUN: llopt %s --pass-pipeline='builtin.module(widen-products{target=cuda:80})' | FileCheck %s --check-prefixes=CHECK,STAYS,HALVES,NO-FNUZ
// RUN: llopt %s --pass-pipeline='builtin.module(widen-products{target=hip:gfx1100})' | FileCheck %s --check-prefixes=CHECK,STAYS,HALVES,NO-FNUZ
// RUN: llopt %s --pass-pipeline='builtin.module(widen-products{target=hip:gfx942})' | FileCheck %s --check-prefixes=CHECK,SUMS,HALVES,FNUZ
// RUN: llopt %s --pass-pipeline='builtin.module(widen-products{target=cuda:90})' | FileCheck %s --check-prefixes=CHECK,STAYS,NARROW,NO-FNUZ
// RUN: llopt %s --pass-pipeline='builtin.module(widen-products{target=hip:gfx950})' | FileCheck %s --check-prefixes=CHECK,SUMS,NARROW
// RUN: llopt %s --pass-pipeline='builtin.module(widen-products{target=cuda:70})' | FileCheck %s --check-prefixes=CHECK,STAYS,NARROW
// RUN: not llopt %s --widen-products 2>&1 | FileCheck %s --check-prefix=NO-TARGET

// NO-TARGET: expected 'cuda:<compute capability>' or 'hip:<gfx name>'

#b = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  // A unit that knows 16-bit floats only gets these; two kinds of eight bits may meet.
  // CHECK-LABEL: @eight_bits
  // HALVES: %[[A:.*]] = tt.fp_to_fp %arg0 : tensor<32x32xf8E5M2> -> tensor<32x32xf16>
  // HALVES: %[[B:.*]] = tt.fp_to_fp %arg1 : tensor<32x32xf8E4M3FN> -> tensor<32x32xf16>
  // HALVES: tt.dot %[[A]], %[[B]], %arg2 : tensor<32x32xf16> * tensor<32x32xf16> -> tensor<32x32xf32>
  // NARROW: tt.dot %arg0, %arg1, %arg2
  tt.func @eight_bits(%a: tensor<32x32xf8E5M2>, %b: tensor<32x32xf8E4M3FN>, %c: tensor<32x32xf32>) -> tensor<32x32xf32> {
    %d = tt.dot %a, %b, %c {maxNumImpreciseAcc = 32 : i32} : tensor<32x32xf8E5M2> * tensor<32x32xf8E4M3FN> -> tensor<32x32xf32>
    tt.return %d : tensor<32x32xf32>
  }

  // The floats without negative zeros are those of one generation of units.
  // CHECK-LABEL: @without_negative_zeros
  // FNUZ: tt.dot %arg0, %arg1, %arg2
  // NO-FNUZ: tt.dot %{{.*}} : tensor<32x32xf16>
  tt.func @without_negative_zeros(%a: tensor<32x32xf8E4M3FNUZ>, %b: tensor<32x32xf8E4M3FNUZ>, %c: tensor<32x32xf32>) -> tensor<32x32xf32> {
    %d = tt.dot %a, %b, %c : tensor<32x32xf8E4M3FNUZ> * tensor<32x32xf8E4M3FNUZ> -> tensor<32x32xf32>
    tt.return %d : tensor<32x32xf32>
  }

  // Some units sum halves in 32 bits only; the sum is rounded then.
  // CHECK-LABEL: @sum_of_halves
  // SUMS: %[[SUM:.*]] = arith.extf %arg2
  // SUMS: %[[WIDE:.*]] = tt.dot %arg0, %arg1, %[[SUM]] : tensor<32x32xf16> * tensor<32x32xf16> -> tensor<32x32xf32>
  // SUMS: arith.truncf %[[WIDE]] : tensor<32x32xf32> to tensor<32x32xf16>
  // STAYS: tt.dot %arg0, %arg1, %arg2
  tt.func @sum_of_halves(%a: tensor<32x32xf16>, %b: tensor<32x32xf16>, %c: tensor<32x32xf16>) -> tensor<32x32xf16> {
    %d = tt.dot %a, %b, %c : tensor<32x32xf16> * tensor<32x32xf16> -> tensor<32x32xf16>
    tt.return %d : tensor<32x32xf16>
  }

  // Layouts say already who multiplies.
  // CHECK-LABEL: @laid_out
  // CHECK: tt.dot %arg0, %arg1, %arg2
  tt.func @laid_out(%a: tensor<32x32xf8E5M2, #ttg.dot_op<{opIdx = 0, parent = #b}>>, %b: tensor<32x32xf8E5M2, #ttg.dot_op<{opIdx = 1, parent = #b}>>, %c: tensor<32x32xf32, #b>) -> tensor<32x32xf32, #b> {
    %d = tt.dot %a, %b, %c : tensor<32x32xf8E5M2, #ttg.dot_op<{opIdx = 0, parent = #b}>> * tensor<32x32xf8E5M2, #ttg.dot_op<{opIdx = 1, parent = #b}>> -> tensor<32x32xf32, #b>
    tt.return %d : tensor<32x32xf32, #b>
  }
}
