// The remainder of two bf16 is that of singles, rounded without a loss; not every back end knows it of bf16.
// RUN: llopt compile %s --target cuda:90 --emit llvm | FileCheck %s
// RUN: llopt compile %s --target hip:gfx942 --emit llvm | FileCheck %s
// RUN: llopt compile %s --target hip:gfx942 --emit amdgcn | FileCheck %s --check-prefix=AMD

// CHECK-LABEL: @remainder(
// CHECK: frem float
// CHECK: fptrunc float {{.*}} to bfloat
// AMD-LABEL: remainder:
// AMD: v_rcp_f32
tt.func @remainder(%x: bf16, %y: bf16, %o: !tt.ptr<bf16>) {
  %v = arith.remf %x, %y : bf16
  tt.store %o, %v : !tt.ptr<bf16>
  tt.return
}
