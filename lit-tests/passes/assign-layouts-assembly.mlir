// Assembly that gets several elements at a time: neighbours along the last dimension, whatever lies together in memory.
//
// RUN: llopt compile %s --target cuda:90 --num-warps 4 --emit ttgir | FileCheck %s
// RUN: llopt compile %s --target cuda:80 --num-warps 4 --emit ttgir | FileCheck %s

// The tensor is loaded and stored by columns, and in between turned to rows.
// CHECK: #[[ROWS:.*]] = #ttg.blocked<{sizePerThread = [1, {{4|8|16}}], {{.*}}order = [1, 0]}>
// CHECK-LABEL: @bytes
// CHECK: tt.load
// CHECK: ttg.convert_layout {{.*}} -> tensor<64x64xi8, #[[ROWS]]>
// CHECK: tt.elementwise_inline_asm {{.*}}packed_element = 4 : i32{{.*}} : tensor<64x64xi8, #[[ROWS]]>
// CHECK: ttg.convert_layout
// CHECK: tt.store
module {
  tt.func public @bytes(%from: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %to: !tt.ptr<i8> {tt.divisibility = 16 : i32}) {
    %width = arith.constant dense<64> : tensor<1x64xi32>
    %range = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %rows = tt.expand_dims %range {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %columns = tt.expand_dims %range {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %starts = arith.muli %columns, %width : tensor<1x64xi32>
    %across = tt.broadcast %starts : tensor<1x64xi32> -> tensor<64x64xi32>
    %down = tt.broadcast %rows : tensor<64x1xi32> -> tensor<64x64xi32>
    %offsets = arith.addi %across, %down : tensor<64x64xi32>
    %p = tt.splat %from : !tt.ptr<i8> -> tensor<64x64x!tt.ptr<i8>>
    %q = tt.addptr %p, %offsets : tensor<64x64x!tt.ptr<i8>>, tensor<64x64xi32>
    %x = tt.load %q : tensor<64x64x!tt.ptr<i8>>
    %y = tt.elementwise_inline_asm "prmt.b32 $0, $1, 0, 0x0123;" {constraints = "=r,r", packed_element = 4 : i32, pure = true} %x : tensor<64x64xi8> -> tensor<64x64xi8>
    %r = tt.splat %to : !tt.ptr<i8> -> tensor<64x64x!tt.ptr<i8>>
    %s = tt.addptr %r, %offsets : tensor<64x64x!tt.ptr<i8>>, tensor<64x64xi32>
    tt.store %s, %y : tensor<64x64x!tt.ptr<i8>>
    tt.return
  }
}
