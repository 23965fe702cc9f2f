// An element that each lane has of its own does not fit into a register that all lanes share: whoever wrote the assembly
// learns so where it stands.
//
// RUN: not llopt compile %s --target hip:gfx942 --emit amdgcn 2>&1 | FileCheck %s
// RUN: llopt compile %s --target cuda:90 --emit ptx | FileCheck %s --check-prefix=NVIDIA
// CHECK: assembly-scalar-registers.mlir:[[@LINE+8]]:{{[0-9]+}}: error: the kernel's inline assembly is refused: {{.*}}illegal VGPR to SGPR copy

// NVIDIA: // begin inline asm
tt.func @own(%p: !tt.ptr<i32>) {
  %r = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %s = tt.splat %p : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>>
  %a = tt.addptr %s, %r : tensor<128x!tt.ptr<i32>>, tensor<128xi32>
  %v = tt.load %a : tensor<128x!tt.ptr<i32>>
  %x = tt.elementwise_inline_asm "" {constraints = "=r,0", packed_element = 1 : i32, pure = false} %v : tensor<128xi32> -> tensor<128xi32>
  tt.store %a, %x : tensor<128x!tt.ptr<i32>>
  tt.return
}
