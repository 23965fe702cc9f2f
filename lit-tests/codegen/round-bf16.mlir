// Singles to bfloat16: by an instruction where there is one, else by their upper halves.
//
// RUN: llopt compile %s --target cuda:80 | FileCheck %s --check-prefix=BOTH --check-prefix=CONVERTS
// RUN: llopt compile %s --target cuda:75 | FileCheck %s --check-prefix=BOTH --check-prefix=BITS
// RUN: llopt compile %s --target cuda:70 | FileCheck %s --check-prefix=BOTH --check-prefix=BITS

#blocked = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  // NaN has one code, 0x7fff, as the instruction answers.
  // BOTH-LABEL: .entry toward_zero
  // CONVERTS: cvt.rz.bf16.f32
  // BITS-NOT: cvt.rz
  // BITS: setp.nan.f32
  // BITS: selp.b16 {{.*}}, 0x7FFF
  // BITS-NOT: cvt.rz
  tt.func public @toward_zero(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %q: !tt.ptr<bf16> {tt.divisibility = 16 : i32}) {
    %r = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32, #blocked>
    %s = tt.splat %p : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>, #blocked>
    %a = tt.addptr %s, %r : tensor<256x!tt.ptr<f32>, #blocked>, tensor<256xi32, #blocked>
    %v = tt.load %a : tensor<256x!tt.ptr<f32>, #blocked>
    %b = tt.fp_to_fp %v, rounding = rtz : tensor<256xf32, #blocked> -> tensor<256xbf16, #blocked>
    %t = tt.splat %q : !tt.ptr<bf16> -> tensor<256x!tt.ptr<bf16>, #blocked>
    %c = tt.addptr %t, %r : tensor<256x!tt.ptr<bf16>, #blocked>, tensor<256xi32, #blocked>
    tt.store %c, %b : tensor<256x!tt.ptr<bf16>, #blocked>
    tt.return
  }
}
