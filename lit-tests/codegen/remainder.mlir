// The remainder of two bf16 is that of singles, rounded without a loss; not every back end knows it of bf16.
// RUN: llopt compile %s --target cuda:90 --emit llvm | FileCheck %s --check-prefix=CHECK --check-prefix=ROUNDS
// RUN: llopt compile %s --target hip:gfx950 --emit llvm | FileCheck %s --check-prefix=CHECK --check-prefix=ROUNDS
// RUN: llopt compile %s --target hip:gfx942 --emit llvm | FileCheck %s --check-prefix=CHECK --check-prefix=BITS
// RUN: llopt compile %s --target hip:gfx942 --emit amdgcn | FileCheck %s --check-prefix=AMD

// CHECK-LABEL: @remainder(
// CHECK: frem float
// ROUNDS: fptrunc float {{.*}} to bfloat
// BITS: add i32 {{.*}}, 32767
// AMD-LABEL: remainder:
// AMD: v_rcp_f32
tt.func @remainder(%x: bf16, %y: bf16, %o: !tt.ptr<bf16>) {
  %v = arith.remf %x, %y : bf16
  tt.store %o, %v : !tt.ptr<bf16>
  tt.return
}
