// RUN: llopt %s --assign-layouts --canonicalize --cse --split-input-file | FileCheck %s
// RUN: llopt %s --assign-layouts="target=hip:gfx942" --canonicalize --cse --split-input-file | FileCheck %s

// What is gathered from may lie as it was loaded, the result as it is stored.

// CHECK-LABEL: module
module {
  // CHECK-LABEL: @gather
  // CHECK-NOT: ttg.convert_layout
  // CHECK: tt.gather %{{.*}}[%{{.*}}] {axis = 0 : i32} : (tensor<256xf32, #{{.+}}>, tensor<1024xi32, #[[I:.+]]>) -> tensor<1024xf32, #[[I]]>
  // CHECK-NOT: ttg.convert_layout
  // CHECK: tt.return
  tt.func public @gather(%from: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %indices: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %r = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
    %f = tt.splat %from : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>>
    %p = tt.addptr %f, %r : tensor<256x!tt.ptr<f32>>, tensor<256xi32>
    %x = tt.load %p : tensor<256x!tt.ptr<f32>>
    %s = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
    %i = tt.splat %indices : !tt.ptr<i32> -> tensor<1024x!tt.ptr<i32>>
    %ip = tt.addptr %i, %s : tensor<1024x!tt.ptr<i32>>, tensor<1024xi32>
    %index = tt.load %ip : tensor<1024x!tt.ptr<i32>>
    %y = tt.gather %x[%index] {axis = 0 : i32} : (tensor<256xf32>, tensor<1024xi32>) -> tensor<1024xf32>
    %t = tt.splat %to : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %q = tt.addptr %t, %s : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    tt.store %q, %y : tensor<1024x!tt.ptr<f32>>
    tt.return
  }
}

// -----

// What is counted and its mask have one layout, the counts another.

// CHECK-LABEL: module
module {
  // CHECK-LABEL: @histogram
  // CHECK-NOT: ttg.convert_layout
  // CHECK: tt.histogram %{{.*}}, %{{.*}} : tensor<2048xi32, #[[V:.+]]> -> tensor<16xi32, #{{.+}}>
  // CHECK-NOT: ttg.convert_layout
  // CHECK: tt.return
  tt.func public @histogram(%from: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %to: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}) {
    %r = tt.make_range {start = 0 : i32, end = 2048 : i32} : tensor<2048xi32>
    %bound = tt.splat %n : i32 -> tensor<2048xi32>
    %mask = arith.cmpi slt, %r, %bound : tensor<2048xi32>
    %f = tt.splat %from : !tt.ptr<i32> -> tensor<2048x!tt.ptr<i32>>
    %p = tt.addptr %f, %r : tensor<2048x!tt.ptr<i32>>, tensor<2048xi32>
    %x = tt.load %p : tensor<2048x!tt.ptr<i32>>
    %h = tt.histogram %x, %mask : tensor<2048xi32> -> tensor<16xi32>
    %b = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
    %t = tt.splat %to : !tt.ptr<i32> -> tensor<16x!tt.ptr<i32>>
    %q = tt.addptr %t, %b : tensor<16x!tt.ptr<i32>>, tensor<16xi32>
    tt.store %q, %h : tensor<16x!tt.ptr<i32>>
    tt.return
  }
}

// -----

// Tensors go into a function and come back in the layout of its arguments and results.

// CHECK-LABEL: module
module {
  // CHECK: tt.func private @doubled(%{{.*}}: tensor<256xf32, #[[B:.+]]>) -> tensor<256xf32, #[[B]]>
  tt.func private @doubled(%x: tensor<256xf32>) -> tensor<256xf32> attributes {noinline = true} {
    %y = arith.addf %x, %x : tensor<256xf32>
    tt.return %y : tensor<256xf32>
  }
  // CHECK-LABEL: @calls
  // CHECK-NOT: ttg.convert_layout
  // CHECK: tt.call @doubled(%{{.*}}) : (tensor<256xf32, #[[B]]>) -> tensor<256xf32, #[[B]]>
  // CHECK-NOT: ttg.convert_layout
  // CHECK: tt.return
  tt.func public @calls(%at: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %r = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
    %f = tt.splat %at : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>>
    %p = tt.addptr %f, %r : tensor<256x!tt.ptr<f32>>, tensor<256xi32>
    %x = tt.load %p : tensor<256x!tt.ptr<f32>>
    %y = tt.call @doubled(%x) : (tensor<256xf32>) -> tensor<256xf32>
    tt.store %p, %y : tensor<256x!tt.ptr<f32>>
    tt.return
  }
}

// -----
