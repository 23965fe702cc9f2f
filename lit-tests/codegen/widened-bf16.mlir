// What a target computes in f32 is not rounded to bfloat16 in between: the largest absolute value of widened numbers, which LLVM
// would choose as a bf16. And one NaN stands for all where rounding is by instructions for integers.
//
// RUN: llopt compile %s --target hip:gfx942 | FileCheck %s --check-prefix=SINGLES
// RUN: llopt compile %s --target hip:gfx1100 | FileCheck %s --check-prefix=SINGLES
// RUN: llopt compile %s --target hip:gfx950 | FileCheck %s --check-prefix=PAIRS
// RUN: llopt compile %s --target cuda:80 | FileCheck %s --check-prefix=HALVES
// RUN: llopt compile %s --target cuda:75 | FileCheck %s --check-prefix=OLD

module {
  // The operands of the largest are absolute values of singles, and only the stored result is rounded.
  // SINGLES-LABEL: {{^}}largest:
  // SINGLES-NOT: v_bfe_u32
  // SINGLES: v_max{{[a-z0-9_]*}} {{.*}}|v{{[0-9]+}}|
  // SINGLES: v_bfe_u32
  // SINGLES-NOT: v_or_b32{{.*}} 0x400000
  // SINGLES: v_cndmask_b32
  // SINGLES-NOT: v_bfe_u32
  // SINGLES: s_endpgm

  // PAIRS-LABEL: {{^}}largest:
  // PAIRS: v_max{{[a-z0-9_]*}} {{.*}}|v{{[0-9]+}}|
  // PAIRS: v_cvt_pk_bf16_f32
  // PAIRS-NOT: v_cvt_pk_bf16_f32
  // PAIRS: s_endpgm

  // HALVES-LABEL: .entry largest
  // HALVES: max.bf16
  // HALVES: cvt.rn.bf16.f32

  // OLD-LABEL: .entry largest
  // OLD: max.f32
  // OLD: selp.b32 {{.*}}, 2147418112
  tt.func public @largest(%p: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %q: !tt.ptr<bf16> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {start = 0 : i32, end = 2048 : i32} : tensor<2048xi32>
    %s = tt.splat %p : !tt.ptr<bf16> -> tensor<2048x!tt.ptr<bf16>>
    %a = tt.addptr %s, %i : tensor<2048x!tt.ptr<bf16>>, tensor<2048xi32>
    %x = tt.load %a : tensor<2048x!tt.ptr<bf16>>
    %positive = math.absf %x : tensor<2048xbf16>
    %wide = arith.extf %positive : tensor<2048xbf16> to tensor<2048xf32>
    %m = "tt.reduce"(%wide) <{axis = 0 : i32}> ({
    ^bb0(%l: f32, %r: f32):
      %o = arith.maxnumf %l, %r : f32
      tt.reduce.return %o : f32
    }) : (tensor<2048xf32>) -> f32
    %c = arith.constant 1.270000e+02 : f32
    %d = arith.mulf %m, %c : f32
    %n = arith.truncf %d : f32 to bf16
    tt.store %q, %n : !tt.ptr<bf16>
    tt.return
  }
}
