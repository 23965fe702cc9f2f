// Doubles become eight-bit floats by way of singles, which is where the hardware's conversions begin.
// RUN: llopt compile %s --target cuda:90 --emit ptx | FileCheck %s --check-prefix=NVIDIA
// RUN: llopt compile %s --target hip:gfx950 --emit amdgcn | FileCheck %s --check-prefix=AMD

// NVIDIA-LABEL: .entry narrow(
// NVIDIA: cvt.rn.f32.f64
// NVIDIA: cvt.rn.satfinite.e5m2x2.f32
// AMD-LABEL: narrow:
// AMD: v_cvt_f32_f64
// AMD: v_cvt_{{(scalef32_)?}}pk_bf8_f32
tt.func @narrow(%x: !tt.ptr<f64>, %o: !tt.ptr<f8E5M2>) {
  %at = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %xs = tt.splat %x : !tt.ptr<f64> -> tensor<1024x!tt.ptr<f64>>
  %from = tt.addptr %xs, %at : tensor<1024x!tt.ptr<f64>>, tensor<1024xi32>
  %v = tt.load %from : tensor<1024x!tt.ptr<f64>>
  %n = tt.fp_to_fp %v, rounding = rtne : tensor<1024xf64> -> tensor<1024xf8E5M2>
  %os = tt.splat %o : !tt.ptr<f8E5M2> -> tensor<1024x!tt.ptr<f8E5M2>>
  %to = tt.addptr %os, %at : tensor<1024x!tt.ptr<f8E5M2>>, tensor<1024xi32>
  tt.store %to, %n : tensor<1024x!tt.ptr<f8E5M2>>
  tt.return
}
