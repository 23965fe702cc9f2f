// RUN: llopt %s --assign-layouts="target=hip:gfx942" --canonicalize --cse --split-input-file | FileCheck %s
// RUN: llopt %s --assign-layouts --canonicalize --cse --split-input-file | FileCheck %s

// A sum that the loop scales is kept as a partial sum for each thread, which is scaled by itself: the loop reduces in
// threads only. The first partial sum starts with the initial value.

// CHECK-LABEL: @scaled_sum
// CHECK: %[[FIRST:.+]] = arith.cmpi eq
// CHECK: arith.select %[[FIRST]], {{.*}} : tensor<[[PARTS:[0-9]+]]xi1, {{.*}}, tensor<[[PARTS]]xf32,
// CHECK: scf.for {{.*}} -> (tensor<[[PARTS]]xf32,
// CHECK: "tt.reduce"(%{{.*}})
// CHECK: -> tensor<[[PARTS]]xf32,
// CHECK: arith.mulf {{.*}} : tensor<[[PARTS]]xf32,
// CHECK: arith.addf {{.*}} : tensor<[[PARTS]]xf32,
// CHECK: scf.yield
// CHECK: "tt.reduce"(%{{.*}}) <{axis = 0 : i32}>
// CHECK: -> f32
// CHECK: tt.return
module {
  tt.func public @scaled_sum(%from: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}, %start: f32) {
    %zero = arith.constant 0 : i32
    %step = arith.constant 1024 : i32
    %range = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
    %base = tt.splat %from : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %sums = scf.for %i = %zero to %n step %step iter_args(%l = %start) -> (f32) : i32 {
      %offset = tt.splat %i : i32 -> tensor<1024xi32>
      %place = arith.addi %offset, %range : tensor<1024xi32>
      %p = tt.addptr %base, %place : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
      %x = tt.load %p : tensor<1024x!tt.ptr<f32>>
      %q = tt.addptr %to, %i : !tt.ptr<f32>, i32
      %factor = tt.load %q : !tt.ptr<f32>
      %l_scaled = arith.mulf %l, %factor : f32
      %sum = "tt.reduce"(%x) <{axis = 0 : i32}> ({
      ^bb0(%a: f32, %b: f32):
        %c = arith.addf %a, %b : f32
        tt.reduce.return %c : f32
      }) : (tensor<1024xf32>) -> f32
      %l_next = arith.addf %l_scaled, %sum : f32
      scf.yield %l_next : f32
    }
    tt.store %to, %sums : !tt.ptr<f32>
    tt.return
  }
}

// -----

// The maximum that is subtracted from what is summed is that of each thread, too, so nothing in the loop is reduced across
// lanes. A sum whose maximum was negative infinity counts as zero as soon as there is a greater one. Behind the loop the
// greatest of all is found, and the sums are scaled by how much less their own is.

// CHECK-LABEL: @shifted_sum
// CHECK: scf.for {{.*}} iter_args(%[[M:.+]] = %{{.*}}, %[[P:.+]] = %{{.*}}) -> (tensor<[[PARTS:[0-9]+]]xf32, {{.*}}, tensor<[[PARTS]]xf32,
// CHECK-NOT: -> f32
// CHECK: %[[NEXT:.+]] = arith.maxnumf %[[M]], %{{.*}} : tensor<[[PARTS]]xf32,
// CHECK: %[[GROWN:.+]] = arith.subf %[[M]], %[[NEXT]]
// CHECK: %[[FACTOR:.+]] = math.exp2 %[[GROWN]]
// CHECK: %[[SCALED:.+]] = arith.mulf %[[P]], %[[FACTOR]]
// CHECK: %[[NONE:.+]] = arith.cmpf oeq, %[[M]]
// CHECK: %[[KEPT:.+]] = arith.select %[[NONE]], %{{.*}}, %[[SCALED]]
// CHECK: tt.expand_dims %[[NEXT]]
// CHECK: arith.addf %[[KEPT]], %{{.*}} : tensor<[[PARTS]]xf32,
// CHECK: scf.yield
// CHECK: arith.maxnumf
// CHECK: -> f32
// CHECK: arith.subf {{.*}} : tensor<[[PARTS]]xf32,
// CHECK: math.exp2 {{.*}} : tensor<[[PARTS]]xf32,
// CHECK: arith.addf
// CHECK: -> f32
// CHECK: tt.return
module {
  tt.func public @shifted_sum(%from: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}, %start: f32) {
    %zero = arith.constant 0 : i32
    %step = arith.constant 1024 : i32
    %least = arith.constant 0xFF800000 : f32
    %range = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
    %base = tt.splat %from : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %sums:2 = scf.for %i = %zero to %n step %step iter_args(%m = %least, %l = %start) -> (f32, f32) : i32 {
      %offset = tt.splat %i : i32 -> tensor<1024xi32>
      %place = arith.addi %offset, %range : tensor<1024xi32>
      %p = tt.addptr %base, %place : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
      %x = tt.load %p : tensor<1024x!tt.ptr<f32>>
      %largest = "tt.reduce"(%x) <{axis = 0 : i32}> ({
      ^bb0(%a: f32, %b: f32):
        %c = arith.maxnumf %a, %b : f32
        tt.reduce.return %c : f32
      }) : (tensor<1024xf32>) -> f32
      %next = arith.maxnumf %m, %largest : f32
      %grown = arith.subf %m, %next : f32
      %factor = math.exp2 %grown : f32
      %l_scaled = arith.mulf %l, %factor : f32
      %all = tt.splat %next : f32 -> tensor<1024xf32>
      %d = arith.subf %x, %all : tensor<1024xf32>
      %e = math.exp2 %d : tensor<1024xf32>
      %sum = "tt.reduce"(%e) <{axis = 0 : i32}> ({
      ^bb0(%a: f32, %b: f32):
        %c = arith.addf %a, %b : f32
        tt.reduce.return %c : f32
      }) : (tensor<1024xf32>) -> f32
      %l_next = arith.addf %l_scaled, %sum : f32
      scf.yield %next, %l_next : f32, f32
    }
    %result = arith.addf %sums#0, %sums#1 : f32
    tt.store %to, %result : !tt.ptr<f32>
    tt.return
  }
}
