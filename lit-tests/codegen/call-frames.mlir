// A function's buffers begin where the caller has room for them: in front of them may be what the caller keeps, or another
// call's, which no barrier parts from this one.
//
// RUN: llopt compile %s --target cuda:90 --emit llvm -o - | FileCheck %s
// RUN: llopt compile %s --target hip:gfx942 --emit llvm -o - | FileCheck %s

module {
  tt.func private @total(%x: !tt.ptr<f32>) -> f32 attributes {noinline = true} {
    %range = tt.make_range {end = 4096 : i32, start = 0 : i32} : tensor<4096xi32>
    %all = tt.splat %x : !tt.ptr<f32> -> tensor<4096x!tt.ptr<f32>>
    %pointers = tt.addptr %all, %range : tensor<4096x!tt.ptr<f32>>, tensor<4096xi32>
    %elements = tt.load %pointers : tensor<4096x!tt.ptr<f32>>
    %sum = "tt.reduce"(%elements) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %both = arith.addf %a, %b : f32
      tt.reduce.return %both : f32
    }) : (tensor<4096xf32>) -> f32
    tt.return %sum : f32
  }

  // CHECK-LABEL: @kernel
  // CHECK: call float @"total$"({{.*}}ptr addrspace(3) @global_smem
  // CHECK: call float @"total$"({{.*}}ptr addrspace(3) {{.*}}getelementptr {{.*}}@global_smem, i32 128)
  tt.func public @kernel(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f32>) {
    %one = tt.call @total(%x) : (!tt.ptr<f32>) -> f32
    %two = tt.call @total(%y) : (!tt.ptr<f32>) -> f32
    %product = arith.mulf %one, %two : f32
    tt.store %out, %product : !tt.ptr<f32>
    tt.return
  }
}
