// The blocks of a cluster divide what tensor descriptors move; the type of a descriptor says how.
//
// RUN: llopt %s --triton-nvidia-optimize-descriptor-encoding=num-ctas=2 | FileCheck %s
// RUN: llopt %s --triton-nvidia-optimize-descriptor-encoding=num-ctas=1 | FileCheck %s --check-prefix=ALONE
// RUN: llopt compile %s --target cuda:90 --num-ctas 2 --emit ttgir | FileCheck %s --check-prefix=COPIES

// CHECK-DAG: #[[ROWS:.+]] = #ttg.nvmma_shared<{swizzlingByteWidth = 128, {{.+}}, CGALayout = {{\[}}[1, 0]]}>
// CHECK-DAG: #[[WHOLE:.+]] = #ttg.nvmma_shared<{swizzlingByteWidth = 128, {{.+}} elementBitWidth = 16, CGALayout = {{\[}}[0, 0]]}>
// CHECK-DAG: #[[HALF:.+]] = #ttg.nvmma_shared<{swizzlingByteWidth = 64, {{.+}}, CGALayout = {{\[}}[0, 1]]}>
// CHECK-DAG: #[[WIDE:.+]] = #ttg.nvmma_shared<{swizzlingByteWidth = 128, {{.+}} elementBitWidth = 32, CGALayout = {{\[}}[0, 1]]}>
// CHECK-DAG: #[[COLUMNS:.+]] = #ttg.nvmma_shared<{swizzlingByteWidth = 0, {{.+}} elementBitWidth = 32, CGALayout = {{\[}}[0, 1]]}>
// CHECK-DAG: #[[SAME:.+]] = #ttg.nvmma_shared<{swizzlingByteWidth = 0, {{.+}} elementBitWidth = 32, CGALayout = {{\[}}[0, 0]]}>
// ALONE-NOT: CGALayout

// Rows where nothing else is asked for; where there is one, its halves; where these are too short, all have all.
// CHECK-LABEL: @alone(
// CHECK-SAME: tensordesc<tensor<32x64xf32, #[[ROWS]]>>
// CHECK-SAME: tensordesc<tensor<1x64xf32, #[[COLUMNS]]>>
// CHECK-SAME: tensordesc<tensor<1x4xf32, #[[SAME]]>>
//
// Each block copies half of the bytes, and its copies begin where its half does. Of what both have, one adds.
// COPIES-LABEL: @alone(
// COPIES: ttng.barrier_expect %{{.+}}, 4096
// COPIES: ttng.barrier_expect %{{.+}}, 128
// COPIES: ttng.async_tma_reduce
tt.func public @alone(%x: !tt.tensordesc<tensor<32x64xf32>>, %y: !tt.tensordesc<tensor<1x64xf32>>, %s: !tt.tensordesc<tensor<1x4xf32>>, %i: i32) {
  %v = tt.descriptor_load %x[%i, %i] : !tt.tensordesc<tensor<32x64xf32>> -> tensor<32x64xf32>
  tt.descriptor_store %x[%i, %i], %v : !tt.tensordesc<tensor<32x64xf32>>, tensor<32x64xf32>
  %w = tt.descriptor_load %y[%i, %i] : !tt.tensordesc<tensor<1x64xf32>> -> tensor<1x64xf32>
  tt.descriptor_store %y[%i, %i], %w : !tt.tensordesc<tensor<1x64xf32>>, tensor<1x64xf32>
  %one = arith.constant dense<1.0> : tensor<1x4xf32>
  tt.descriptor_reduce add, %s[%i, %i], %one : !tt.tensordesc<tensor<1x4xf32>>, tensor<1x4xf32>
  tt.return
}

// A product of 128 x 64: each block has 64 rows of the result, so 64 rows of the first factor and all of the second,
// however it lies in memory.
// CHECK-LABEL: @product(
// CHECK-SAME: %{{.+}}: !tt.tensordesc<tensor<128x64xf16, #[[R16:.+]]>>, %{{.+}}: !tt.tensordesc<tensor<64x64xf16, #[[WHOLE]]>>, %{{.+}}: !tt.tensordesc<tensor<128x64xf16, #[[R16]]>>
// COPIES-LABEL: @product(
// COPIES: ttng.warp_group_dot
tt.func public @product(%a: !tt.tensordesc<tensor<128x64xf16>>, %b: !tt.tensordesc<tensor<64x64xf16>>, %c: !tt.tensordesc<tensor<128x64xf16>>, %i: i32) {
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  %x = tt.descriptor_load %a[%i, %i] : !tt.tensordesc<tensor<128x64xf16>> -> tensor<128x64xf16>
  %y = tt.descriptor_load %b[%i, %i] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
  %t = tt.trans %y {order = array<i32: 1, 0>} : tensor<64x64xf16> -> tensor<64x64xf16>
  %d = tt.dot %x, %t, %zero : tensor<128x64xf16> * tensor<64x64xf16> -> tensor<128x64xf32>
  %h = arith.truncf %d : tensor<128x64xf32> to tensor<128x64xf16>
  tt.descriptor_store %c[%i, %i], %h : !tt.tensordesc<tensor<128x64xf16>>, tensor<128x64xf16>
  tt.return
}

// Of 64 x 128 each block has 64 columns: of the second factor half a row, and the object's swizzle is as wide as that.
// CHECK-LABEL: @columns(
// CHECK-SAME: tensordesc<tensor<64x64xf16, #[[WHOLE]]>>, %{{.+}}: !tt.tensordesc<tensor<64x64xf16, #[[HALF]]>>
tt.func public @columns(%a: !tt.tensordesc<tensor<64x64xf16>>, %b: !tt.tensordesc<tensor<64x64xf16>>, %p: tensor<64x64x!tt.ptr<f32>>, %i: i32) {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %x = tt.descriptor_load %a[%i, %i] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
  %y = tt.descriptor_load %b[%i, %i] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
  %d = tt.dot %x, %y, %zero : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
  tt.store %p, %d : tensor<64x64x!tt.ptr<f32>>
  tt.return
}

// So is the result behind a choice, here with 32 columns for each block.
// CHECK-LABEL: @chosen(
// CHECK-SAME: tensordesc<tensor<64x64xf32, #[[WIDE]]>>, %
tt.func public @chosen(%c: !tt.tensordesc<tensor<64x64xf32>>, %a: !tt.tensordesc<tensor<64x64xf16>>, %b: !tt.tensordesc<tensor<64x64xf16>>, %i: i32, %is: i1) {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %d = scf.if %is -> (tensor<64x64xf32>) {
    %x = tt.descriptor_load %a[%i, %i] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
    %y = tt.descriptor_load %b[%i, %i] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
    %e = tt.dot %x, %y, %zero : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %e : tensor<64x64xf32>
  } else {
    scf.yield %zero : tensor<64x64xf32>
  }
  tt.descriptor_store %c[%i, %i], %d : !tt.tensordesc<tensor<64x64xf32>>, tensor<64x64xf32>
  tt.return
}

// What control flow hands on has one type wherever it goes.
// CHECK-LABEL: @handed_on(
// CHECK: %[[X:.+]] = tt.make_tensor_descriptor {{.+}}tensor<32x64xf32, #[[ROWS]]>>
// CHECK: scf.for {{.+}} iter_args(%{{.+}} = %[[X]]) -> (!tt.tensordesc<tensor<32x64xf32, #[[ROWS]]>>)
tt.func public @handed_on(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32, %s: i64) {
  %one = arith.constant 1 : i64
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %x = tt.make_tensor_descriptor %p, [%n, %n], [%s, %one] : !tt.ptr<f32>, !tt.tensordesc<tensor<32x64xf32>>
  %r = scf.for %i = %c0 to %n step %c32 iter_args(%y = %x) -> (!tt.tensordesc<tensor<32x64xf32>>) : i32 {
    %v = tt.descriptor_load %y[%i, %c0] : !tt.tensordesc<tensor<32x64xf32>> -> tensor<32x64xf32>
    %w = arith.addf %v, %v : tensor<32x64xf32>
    tt.descriptor_store %y[%i, %c0], %w : !tt.tensordesc<tensor<32x64xf32>>, tensor<32x64xf32>
    scf.yield %x : !tt.tensordesc<tensor<32x64xf32>>
  }
  tt.return
}
