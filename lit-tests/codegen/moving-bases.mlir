// Rows of a matrix that begin anywhere are loaded an element at a time. Pointers to all of them do not fit into registers
// beside the sums of a large product: one base for each matrix is carried, and offsets of 32 bits are added where an
// access needs them.
//
// RUN: llopt compile %s --num-warps 8 --target cuda:90 --emit ttgir | FileCheck %s
// RUN: llopt compile %s --num-warps 8 --target cuda:90 | FileCheck %s --check-prefix=PTX
// RUN: llopt explain %s --num-warps 8 --target cuda:90 | FileCheck %s --check-prefix=SAID
// RUN: llopt compile %s --num-warps 8 --target hip:gfx942 | FileCheck %s --check-prefix=GCN
//
// A small product has registers for pointers.
// RUN: sed -e 's/256/32/g' %s > %t.small.mlir
// RUN: llopt compile %t.small.mlir --num-warps 8 --target cuda:90 --emit ttgir | FileCheck %s --check-prefix=SMALL

// What the columns of a row have in common comes first: it becomes part of the base.
// CHECK: scf.for {{.*}} -> (tensor<128x256xf32, {{.*}}>, !tt.ptr<f16>, !tt.ptr<f16>)
// CHECK: tt.addptr {{.*}} : tensor<1x64x!tt.ptr<f16>, {{.*}}>, tensor<1x64xi32
// CHECK: tt.addptr {{.*}} : tensor<128x64x!tt.ptr<f16>, {{.*}}>, tensor<128x64xi32
// CHECK: scf.yield {{.*}} : tensor<128x256xf32, {{.*}}>, !tt.ptr<f16>, !tt.ptr<f16>

// PTX: $L__BB0_2:
// PTX: mad.wide.s32 %{{[a-z0-9]*}}, %{{[a-z0-9]*}}, 2, %
// PTX: wgmma.mma_async

// Nor is there room for what is loaded while a product is running.
// SAID: is not pipelined
// SAID: its registers do not fit beside those of the products

// GCN: s_endpgm

// SMALL: scf.for {{.*}} -> ({{.*}}tensor<128x64x!tt.ptr<f16>

tt.func public @product(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %c: !tt.ptr<f32>, %stride: i32, %k: i32) {
  %sum = arith.constant dense<0.0> : tensor<128x256xf32>
  %step = arith.constant dense<64> : tensor<128x64xi32>
  %across = arith.constant dense<64> : tensor<64x256xi32>
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %rows = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %columns = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
  %depths = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %row = tt.expand_dims %rows {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
  %column = tt.expand_dims %columns {axis = 0 : i32} : tensor<256xi32> -> tensor<1x256xi32>
  %right = tt.expand_dims %depths {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %down = tt.expand_dims %depths {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %strides = tt.splat %stride : i32 -> tensor<128x1xi32>
  %apart = tt.splat %stride : i32 -> tensor<1x256xi32>
  %first = arith.muli %row, %strides : tensor<128x1xi32>
  %begin = arith.muli %column, %apart : tensor<1x256xi32>
  %bases = tt.splat %a : !tt.ptr<f16> -> tensor<128x1x!tt.ptr<f16>>
  %lines = tt.addptr %bases, %first : tensor<128x1x!tt.ptr<f16>>, tensor<128x1xi32>
  %wide = tt.broadcast %lines : tensor<128x1x!tt.ptr<f16>> -> tensor<128x64x!tt.ptr<f16>>
  %rights = tt.broadcast %right : tensor<1x64xi32> -> tensor<128x64xi32>
  %p = tt.addptr %wide, %rights : tensor<128x64x!tt.ptr<f16>>, tensor<128x64xi32>
  %others = tt.splat %b : !tt.ptr<f16> -> tensor<64x1x!tt.ptr<f16>>
  %deep = tt.addptr %others, %down : tensor<64x1x!tt.ptr<f16>>, tensor<64x1xi32>
  %deeper = tt.broadcast %deep : tensor<64x1x!tt.ptr<f16>> -> tensor<64x256x!tt.ptr<f16>>
  %begins = tt.broadcast %begin : tensor<1x256xi32> -> tensor<64x256xi32>
  %q = tt.addptr %deeper, %begins : tensor<64x256x!tt.ptr<f16>>, tensor<64x256xi32>
  %r:3 = scf.for %i = %c0 to %k step %c64 iter_args(%x = %p, %y = %q, %s = %sum) -> (tensor<128x64x!tt.ptr<f16>>, tensor<64x256x!tt.ptr<f16>>, tensor<128x256xf32>) : i32 {
    %u = tt.load %x : tensor<128x64x!tt.ptr<f16>>
    %v = tt.load %y : tensor<64x256x!tt.ptr<f16>>
    %next = tt.dot %u, %v, %s : tensor<128x64xf16> * tensor<64x256xf16> -> tensor<128x256xf32>
    %x1 = tt.addptr %x, %step : tensor<128x64x!tt.ptr<f16>>, tensor<128x64xi32>
    %y1 = tt.addptr %y, %across : tensor<64x256x!tt.ptr<f16>>, tensor<64x256xi32>
    scf.yield %x1, %y1, %next : tensor<128x64x!tt.ptr<f16>>, tensor<64x256x!tt.ptr<f16>>, tensor<128x256xf32>
  }
  %line = tt.splat %c : !tt.ptr<f32> -> tensor<128x1x!tt.ptr<f32>>
  %across256 = arith.constant dense<256> : tensor<128x1xi32>
  %down256 = arith.muli %row, %across256 : tensor<128x1xi32>
  %there = tt.addptr %line, %down256 : tensor<128x1x!tt.ptr<f32>>, tensor<128x1xi32>
  %far = tt.broadcast %there : tensor<128x1x!tt.ptr<f32>> -> tensor<128x256x!tt.ptr<f32>>
  %over = tt.broadcast %column : tensor<1x256xi32> -> tensor<128x256xi32>
  %places = tt.addptr %far, %over : tensor<128x256x!tt.ptr<f32>>, tensor<128x256xi32>
  tt.store %places, %r#2 : tensor<128x256x!tt.ptr<f32>>
  tt.return
}
