// RUN: llopt %s --assign-layouts --canonicalize --cse --split-input-file | FileCheck %s
// RUN: llopt %s --assign-layouts="target=hip:gfx942" --canonicalize --cse --split-input-file | FileCheck %s --check-prefix=HIP

// What a mask forbids is no vector: each lane takes an element and its neighbour the next one.

// CHECK: #[[B:.+]] = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// HIP: #[[B:.+]] = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
module {
  // CHECK-LABEL: @masked
  // CHECK: tt.load {{.*}} tensor<1024x!tt.ptr<f32>, #[[B]]>
  // HIP-LABEL: @masked
  // HIP: tt.load {{.*}} tensor<1024x!tt.ptr<f32>, #[[B]]>
  tt.func public @masked(%from: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
    %r = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
    %bound = tt.splat %n : i32 -> tensor<1024xi32>
    %mask = arith.cmpi slt, %r, %bound : tensor<1024xi32>
    %f = tt.splat %from : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %p = tt.addptr %f, %r : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    %x = tt.load %p, %mask : tensor<1024x!tt.ptr<f32>>
    %t = tt.splat %to : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %q = tt.addptr %t, %r : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    tt.store %q, %x, %mask : tensor<1024x!tt.ptr<f32>>
    tt.return
  }
}

// -----

// Addresses that a program loads may be anywhere: they are no reason to convert anything.

// CHECK-LABEL: module
// HIP-LABEL: module
module {
  // CHECK-LABEL: @gathered
  // CHECK-NOT: ttg.convert_layout
  // CHECK: tt.return
  // HIP-LABEL: @gathered
  // HIP-NOT: ttg.convert_layout
  // HIP: tt.return
  tt.func public @gathered(%from: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %indices: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %rows = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %row = tt.expand_dims %rows {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %column = tt.expand_dims %rows {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %extent = arith.constant dense<64> : tensor<1x64xi32>
    %start = arith.muli %column, %extent : tensor<1x64xi32>
    %a = tt.broadcast %row : tensor<64x1xi32> -> tensor<64x64xi32>
    %b = tt.broadcast %start : tensor<1x64xi32> -> tensor<64x64xi32>
    %offset = arith.addi %a, %b : tensor<64x64xi32>
    %i = tt.splat %indices : !tt.ptr<i32> -> tensor<64x64x!tt.ptr<i32>>
    %ip = tt.addptr %i, %offset : tensor<64x64x!tt.ptr<i32>>, tensor<64x64xi32>
    %index = tt.load %ip : tensor<64x64x!tt.ptr<i32>>
    %f = tt.splat %from : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
    %p = tt.addptr %f, %index : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
    %x = tt.load %p : tensor<64x64x!tt.ptr<f32>>
    %t = tt.splat %to : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
    %q = tt.addptr %t, %offset : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
    tt.store %q, %x : tensor<64x64x!tt.ptr<f32>>
    tt.return
  }
}

// -----

// A loop that adds up sums of columns keeps a partial sum for each thread, and brings the threads together
// after its end.

// CHECK-LABEL: module
// HIP-LABEL: module
module {
  // CHECK-LABEL: @sums_of_columns
  // CHECK: scf.for {{.*}} -> (tensor<[[PARTS:[0-9]+]]x32xf32,
  // CHECK: tt.load {{.*}} tensor<64x32x!tt.ptr<f32>,
  // CHECK: "tt.reduce"(%{{.*}}) <{axis = 0 : i32}>
  // CHECK: -> tensor<[[PARTS]]x32xf32,
  // CHECK-NOT: ttg.convert_layout
  // CHECK: scf.yield
  // CHECK: "tt.reduce"(%{{.*}}) <{axis = 0 : i32}>
  // CHECK: -> tensor<32xf32,
  // HIP-LABEL: @sums_of_columns
  // HIP: scf.for {{.*}} -> (tensor<{{[0-9]+}}x32xf32,
  // HIP-NOT: ttg.convert_layout
  // HIP: scf.yield
  tt.func public @sums_of_columns(%from: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %stride: i32 {tt.divisibility = 16 : i32}, %n: i32) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %none = arith.constant dense<0.0> : tensor<32xf32>
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %c = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
    %row = tt.expand_dims %r {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %column = tt.expand_dims %c {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %s = tt.splat %stride : i32 -> tensor<64x1xi32>
    %start = arith.muli %row, %s : tensor<64x1xi32>
    %a = tt.broadcast %start : tensor<64x1xi32> -> tensor<64x32xi32>
    %b = tt.broadcast %column : tensor<1x32xi32> -> tensor<64x32xi32>
    %offset = arith.addi %a, %b : tensor<64x32xi32>
    %f = tt.splat %from : !tt.ptr<f32> -> tensor<64x32x!tt.ptr<f32>>
    %p = tt.addptr %f, %offset : tensor<64x32x!tt.ptr<f32>>, tensor<64x32xi32>
    %step = tt.splat %stride : i32 -> tensor<64x32xi32>
    %sum, %last = scf.for %i = %zero to %n step %one iter_args(%acc = %none, %q = %p) -> (tensor<32xf32>, tensor<64x32x!tt.ptr<f32>>) : i32 {
      %x = tt.load %q : tensor<64x32x!tt.ptr<f32>>
      %total = "tt.reduce"(%x) <{axis = 0 : i32}> ({
      ^bb0(%left: f32, %right: f32):
        %both = arith.addf %left, %right : f32
        tt.reduce.return %both : f32
      }) : (tensor<64x32xf32>) -> tensor<32xf32>
      %more = arith.addf %acc, %total : tensor<32xf32>
      %next = tt.addptr %q, %step : tensor<64x32x!tt.ptr<f32>>, tensor<64x32xi32>
      scf.yield %more, %next : tensor<32xf32>, tensor<64x32x!tt.ptr<f32>>
    }
    %t = tt.splat %to : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
    %o = tt.addptr %t, %c : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
    tt.store %o, %sum : tensor<32x!tt.ptr<f32>>
    tt.return
  }
}

// -----

// A maximum that is compared with more than the loop's own maximum is not the loop's to put off.

// CHECK-LABEL: module
// HIP-LABEL: module
module {
  // CHECK-LABEL: @used_in_the_loop
  // CHECK: scf.for {{.*}} -> (f32)
  // HIP-LABEL: @used_in_the_loop
  // HIP: scf.for {{.*}} -> (f32)
  tt.func public @used_in_the_loop(%from: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f32>, %n: i32) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %none = arith.constant 0.0 : f32
    %r = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
    %f = tt.splat %from : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %p = tt.addptr %f, %r : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    %sum = scf.for %i = %zero to %n step %one iter_args(%acc = %none) -> (f32) : i32 {
      %x = tt.load %p : tensor<1024x!tt.ptr<f32>>
      %total = "tt.reduce"(%x) <{axis = 0 : i32}> ({
      ^bb0(%left: f32, %right: f32):
        %both = arith.addf %left, %right : f32
        tt.reduce.return %both : f32
      }) : (tensor<1024xf32>) -> f32
      %more = arith.addf %acc, %total : f32
      tt.store %to, %more : !tt.ptr<f32>
      scf.yield %more : f32
    }
    tt.return
  }
}
