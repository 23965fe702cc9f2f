// RUN: llopt compile %s --target hip:gfx942 --num-warps 1 | FileCheck %s
// RUN: llopt compile %s --target hip:gfx1100 --num-warps 1 | FileCheck %s

// A number that a reduction leaves in all lanes is in a scalar register, and the loop that it ends branches on that without a mask of
// lanes.

// CHECK-LABEL: search:
// CHECK: global_load_
// CHECK: v_readfirstlane_b32 [[WORD:s[0-9]+]]
// CHECK: s_cmp_{{[a-z]+}}_{{[iu]}}32 [[WORD]], 0
// CHECK: s_cbranch_scc{{[01]}}
module {
  tt.func public @search(%p: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %q: !tt.ptr<i32> {tt.divisibility = 16 : i32}) {
    %zero = arith.constant 0 : i32
    %step = arith.constant 32 : i32
    %lanes = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
    %s = tt.splat %p : !tt.ptr<i32> -> tensor<32x!tt.ptr<i32>>
    %at = tt.addptr %s, %lanes : tensor<32x!tt.ptr<i32>>, tensor<32xi32>
    %r:2 = scf.while (%first = %zero, %word = %zero) : (i32, i32) -> (i32, i32) {
      %none = arith.cmpi eq, %word, %zero : i32
      scf.condition(%none) %first, %word : i32, i32
    } do {
    ^bb0(%first: i32, %word: i32):
      %next = arith.addi %first, %step : i32
      %far = tt.splat %next : i32 -> tensor<32xi32>
      %there = tt.addptr %at, %far : tensor<32x!tt.ptr<i32>>, tensor<32xi32>
      %x = tt.load %there : tensor<32x!tt.ptr<i32>>
      %all = "tt.reduce"(%x) <{axis = 0 : i32}> ({
      ^bb0(%a: i32, %b: i32):
        %c = arith.ori %a, %b : i32
        tt.reduce.return %c : i32
      }) : (tensor<32xi32>) -> i32
      scf.yield %next, %all : i32, i32
    }
    tt.store %q, %r#1 : !tt.ptr<i32>
    tt.return
  }
}
