// Several iterations of a loop are the rows of one tile.
//
// RUN: llopt %s --split-input-file --row-iterations="target=cuda:90 num-warps=8" | FileCheck %s
// RUN: llopt %s --split-input-file --row-iterations="target=hip:gfx942 num-warps=8" | FileCheck %s

// Four rows at a time, as long as rows of the result are apart and there are four: each number is a tensor of four, each
// row a tile, and what is reduced is a row of it. The loop as it was remains.
// CHECK-LABEL: @rows
// CHECK-SAME: %[[X:[a-z0-9]+]]: !tt.ptr<f32>
// CHECK: %[[DISTANCE:.*]] = arith.muli %{{.*}}, %{{.*}} : i64
// CHECK: %[[APART:.*]] = arith.cmpi slt, %c1023_i64, %[[DISTANCE]] : i64
// CHECK: arith.andi %[[APART]], %{{.*}} : i1
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %[[MIDDLE:.*]] step %{{.*}} : i32
// CHECK: %[[R:.*]] = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
// CHECK: tt.splat %[[I]] : i32 -> tensor<4xi32>
// CHECK: tt.load %{{.*}}, %{{.*}}, %{{.*}} : tensor<4x1024x!tt.ptr<f32>>
// CHECK: "tt.reduce"(%{{.*}}) <{axis = 1 : i32}>
// CHECK: (tensor<4x1024xf32>) -> tensor<4xf32>
// CHECK: tt.store %{{.*}} : tensor<4x1024x!tt.ptr<f32>>
// CHECK: llopt.grouped = 4 : i32
// CHECK: scf.for %{{.*}} = %[[MIDDLE]] to
// CHECK: tt.load %{{.*}} : tensor<1024x!tt.ptr<f32>>
// CHECK: llopt.rare
tt.func public @rows(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32, %sx: i32 {tt.divisibility = 16 : i32}, %so: i32 {tt.divisibility = 16 : i32}, %columns: i32) {
  %none = arith.constant dense<0xFF800000> : tensor<1024xf32>
  %first = tt.get_program_id x : i32
  %step = tt.get_num_programs x : i32
  %o = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
  %end = tt.splat %columns : i32 -> tensor<1024xi32>
  %mask = arith.cmpi slt, %o, %end : tensor<1024xi32>
  scf.for %row = %first to %n step %step : i32 {
    %at = arith.muli %row, %sx : i32
    %p = tt.addptr %x, %at : !tt.ptr<f32>, i32
    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %from = tt.addptr %ps, %o : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    %v = tt.load %from, %mask, %none : tensor<1024x!tt.ptr<f32>>
    %most = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %m = arith.maxnumf %a, %b : f32
      tt.reduce.return %m : f32
    }) : (tensor<1024xf32>) -> f32
    %mosts = tt.splat %most : f32 -> tensor<1024xf32>
    %y = arith.subf %v, %mosts : tensor<1024xf32>
    %to_row = arith.muli %row, %so : i32
    %q = tt.addptr %out, %to_row : !tt.ptr<f32>, i32
    %qs = tt.splat %q : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %to = tt.addptr %qs, %o : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    tt.store %to, %y, %mask : tensor<1024x!tt.ptr<f32>>
  } {tt.num_stages = 4 : i32}
  tt.return
}

// -----

// Where a loop stores to what it loads from, the next iteration may need what this one stores.
// CHECK-LABEL: @in_place
// CHECK: scf.for
// CHECK-NOT: tensor<4x1024
// CHECK-NOT: scf.for
tt.func public @in_place(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32, %s: i32 {tt.divisibility = 16 : i32}) {
  %first = tt.get_program_id x : i32
  %step = tt.get_num_programs x : i32
  %o = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
  scf.for %row = %first to %n step %step : i32 {
    %at = arith.muli %row, %s : i32
    %p = tt.addptr %x, %at : !tt.ptr<f32>, i32
    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %from = tt.addptr %ps, %o : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    %v = tt.load %from : tensor<1024x!tt.ptr<f32>>
    %sum = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %m = arith.addf %a, %b : f32
      tt.reduce.return %m : f32
    }) : (tensor<1024xf32>) -> f32
    %sums = tt.splat %sum : f32 -> tensor<1024xf32>
    %y = arith.divf %v, %sums : tensor<1024xf32>
    tt.store %from, %y : tensor<1024x!tt.ptr<f32>>
  }
  tt.return
}

// -----

// A loop that carries its sum has one iteration after the other.
// CHECK-LABEL: @carried
// CHECK: scf.for
// CHECK-NOT: tensor<4x1024
// CHECK-NOT: scf.for
tt.func public @carried(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f32>, %n: i32, %s: i32 {tt.divisibility = 16 : i32}) {
  %first = tt.get_program_id x : i32
  %step = tt.get_num_programs x : i32
  %zero = arith.constant 0.0 : f32
  %o = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
  %all = scf.for %row = %first to %n step %step iter_args(%acc = %zero) -> (f32) : i32 {
    %at = arith.muli %row, %s : i32
    %p = tt.addptr %x, %at : !tt.ptr<f32>, i32
    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %from = tt.addptr %ps, %o : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    %v = tt.load %from : tensor<1024x!tt.ptr<f32>>
    %sum = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %m = arith.addf %a, %b : f32
      tt.reduce.return %m : f32
    }) : (tensor<1024xf32>) -> f32
    %next = arith.addf %acc, %sum : f32
    scf.yield %next : f32
  }
  tt.store %out, %all : !tt.ptr<f32>
  tt.return
}

// -----

// Numbers that are stored one by one in each iteration become a tensor of them.
// CHECK-LABEL: @sums
// CHECK: tensor<[[ROWS:[48]]]x1024xf32>) -> tensor<[[ROWS]]xf32>
// CHECK: tt.store %{{.*}} : tensor<[[ROWS]]x!tt.ptr<f32>>
tt.func public @sums(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f32>, %n: i32, %s: i32 {tt.divisibility = 16 : i32}) {
  %first = tt.get_program_id x : i32
  %step = tt.get_num_programs x : i32
  %o = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
  scf.for %row = %first to %n step %step : i32 {
    %at = arith.muli %row, %s : i32
    %p = tt.addptr %x, %at : !tt.ptr<f32>, i32
    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %from = tt.addptr %ps, %o : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    %v = tt.load %from : tensor<1024x!tt.ptr<f32>>
    %sum = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %m = arith.addf %a, %b : f32
      tt.reduce.return %m : f32
    }) : (tensor<1024xf32>) -> f32
    %to = tt.addptr %out, %row : !tt.ptr<f32>, i32
    tt.store %to, %sum : !tt.ptr<f32>
  }
  tt.return
}
