// Eight-bit floats become doubles by way of the narrower floats where the hardware's conversions end.
// RUN: llopt compile %s --target cuda:90 --emit ptx | FileCheck %s --check-prefix=NVIDIA
// RUN: llopt compile %s --target hip:gfx942 --emit amdgcn | FileCheck %s --check-prefix=AMD

// NVIDIA-LABEL: .entry widen(
// NVIDIA: cvt.f64.f16
// AMD-LABEL: widen:
// AMD: v_cvt_f64_f32
tt.func @widen(%x: !tt.ptr<f8E5M2>, %o: !tt.ptr<f64>) {
  %at = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %xs = tt.splat %x : !tt.ptr<f8E5M2> -> tensor<1024x!tt.ptr<f8E5M2>>
  %from = tt.addptr %xs, %at : tensor<1024x!tt.ptr<f8E5M2>>, tensor<1024xi32>
  %v = tt.load %from : tensor<1024x!tt.ptr<f8E5M2>>
  %n = arith.extf %v : tensor<1024xf8E5M2> to tensor<1024xf64>
  %os = tt.splat %o : !tt.ptr<f64> -> tensor<1024x!tt.ptr<f64>>
  %to = tt.addptr %os, %at : tensor<1024x!tt.ptr<f64>>, tensor<1024xi32>
  tt.store %to, %n : tensor<1024x!tt.ptr<f64>>
  tt.return
}
