// What LLVM warns of reaches the user, and the code is made.
//
// RUN: llopt compile %s --target hip:gfx942 -o %t.s 2>&1 | FileCheck %s
// RUN: FileCheck %s --check-prefix=CODE --input-file=%t.s
// CHECK: warning: inline asm clobber list contains reserved registers: exec
// CODE: v_mov_b32

#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32} {
  tt.func public @f(%p: !tt.ptr<i32>) {
    %r = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32, #blocked>
    %s = tt.splat %p : !tt.ptr<i32> -> tensor<256x!tt.ptr<i32>, #blocked>
    %a = tt.addptr %s, %r : tensor<256x!tt.ptr<i32>, #blocked>, tensor<256xi32, #blocked>
    %x = tt.elementwise_inline_asm "v_mov_b32 $0, $1" {constraints = "=v,v,~{exec}", packed_element = 1 : i32, pure = true} %r : tensor<256xi32, #blocked> -> tensor<256xi32, #blocked>
    tt.store %a, %x : tensor<256x!tt.ptr<i32>, #blocked>
    tt.return
  }
}
