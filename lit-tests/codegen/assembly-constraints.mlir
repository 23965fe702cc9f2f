// Inline assembly whose constraints do not fit its operands is refused where it stands.
//
// RUN: not llopt compile %s --target cuda:90 2>&1 | FileCheck %s
// RUN: not llopt compile %s --target hip:gfx1100 2>&1 | FileCheck %s
// CHECK: assembly-constraints.mlir:[[@LINE+10]]:10: error: 'tt.elementwise_inline_asm': its constraints '=f,f,q' list 2 inputs, not 1

#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%p: !tt.ptr<f32>) {
    %r = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #blocked>
    %s = tt.splat %p : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #blocked>
    %a = tt.addptr %s, %r : tensor<128x!tt.ptr<f32>, #blocked>, tensor<128xi32, #blocked>
    %v = tt.load %a : tensor<128x!tt.ptr<f32>, #blocked>
    // A word of the constraints too many.
    %x = tt.elementwise_inline_asm "add.f32 $0, $1;" {constraints = "=f,f,q", packed_element = 1 : i32, pure = true} %v : tensor<128xf32, #blocked> -> tensor<128xf32, #blocked>
    tt.store %a, %x : tensor<128x!tt.ptr<f32>, #blocked>
    tt.return
  }
}
