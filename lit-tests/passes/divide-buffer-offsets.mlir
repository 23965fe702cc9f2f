// What offsets into buffers have in common in all iterations of a loop is computed before it.
//
// RUN: llopt %s --divide-buffer-offsets --canonicalize --cse | FileCheck %s
// RUN: llopt compile %s --target hip:gfx942 --num-warps 4 --emit ttgir | FileCheck %s --check-prefix=WHOLE

// The pass is a part of the pipeline.
// WHOLE-LABEL: @kernel
// WHOLE: scf.for
// WHOLE-NOT: arith.muli {{.*}} tensor
// WHOLE: amdg.buffer_load
// WHOLE: scf.yield

// Rows of a tile: the first row times the length of a row is added to what is the same in all iterations. The rows are compared
// with a bound in the loop, so they stay there.
// CHECK-LABEL: @rows
// CHECK: %[[OWN:.+]] = arith.muli %{{.+}}, %{{.+}} : tensor<8x1xi32>
// CHECK: %[[WIDE:.+]] = tt.broadcast %[[OWN]]
// CHECK: %[[REST:.+]] = arith.addi %[[WIDE]], %{{.+}} : tensor<8x16xi32>
// CHECK: scf.for %[[I:[a-z0-9]+]] =
// CHECK-NOT: arith.muli {{.*}} tensor
// CHECK: %[[FIRST:.+]] = arith.muli %[[I]], %arg2 : i32
// CHECK: %[[SPLAT:.+]] = tt.splat %[[FIRST]] : i32 -> tensor<8x16xi32>
// CHECK: %[[O:.+]] = arith.addi %[[SPLAT]], %[[REST]] : tensor<8x16xi32>
// CHECK-NOT: arith.muli {{.*}} tensor
// CHECK: amdg.buffer_load %arg0[%[[O]]], %
// CHECK: amdg.buffer_load %arg1[%[[O]]], %
tt.func public @rows(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32, %m: i32) -> tensor<8x16xf32> {
  %zero = arith.constant 0 : i32
  %step = arith.constant 8 : i32
  %none = arith.constant dense<0.0> : tensor<8x16xf32>
  %r = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
  %c = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %column = tt.expand_dims %c {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
  %columns = tt.broadcast %column : tensor<1x16xi32> -> tensor<8x16xi32>
  %length = tt.splat %n : i32 -> tensor<8x1xi32>
  %bound = tt.splat %m : i32 -> tensor<8x1xi32>
  %sum = scf.for %i = %zero to %m step %step iter_args(%s = %none) -> (tensor<8x16xf32>) : i32 {
    %first = tt.splat %i : i32 -> tensor<8xi32>
    %own = arith.addi %first, %r : tensor<8xi32>
    %row = tt.expand_dims %own {axis = 1 : i32} : tensor<8xi32> -> tensor<8x1xi32>
    %is = arith.cmpi slt, %row, %bound : tensor<8x1xi32>
    %mask = tt.broadcast %is : tensor<8x1xi1> -> tensor<8x16xi1>
    %at = arith.muli %row, %length : tensor<8x1xi32>
    %rows = tt.broadcast %at : tensor<8x1xi32> -> tensor<8x16xi32>
    %o = arith.addi %rows, %columns : tensor<8x16xi32>
    %a = amdg.buffer_load %x[%o], %mask, %none : tensor<8x16xf32>
    %b = amdg.buffer_load %y[%o], %mask, %none : tensor<8x16xf32>
    %t = arith.addf %s, %a : tensor<8x16xf32>
    %u = arith.addf %t, %b : tensor<8x16xf32>
    scf.yield %u : tensor<8x16xf32>
  }
  tt.return %sum : tensor<8x16xf32>
}

// With rows of a known length the rest is a number of the buffer by itself, so the scalar goes to the base.
// CHECK-LABEL: @known_length
// CHECK: %[[REST:.+]] = arith.addi
// CHECK: scf.for %[[I:[a-z0-9]+]] =
// CHECK: %[[FIRST:.+]] = arith.muli %[[I]], %{{.+}} : i32
// CHECK: %[[BASE:.+]] = tt.addptr %arg0, %[[FIRST]] : !tt.ptr<f32>, i32
// CHECK: amdg.buffer_load %[[BASE]][%[[REST]]]
tt.func public @known_length(%x: !tt.ptr<f32>, %m: i32) -> tensor<8x16xf32> {
  %zero = arith.constant 0 : i32
  %step = arith.constant 8 : i32
  %none = arith.constant dense<0.0> : tensor<8x16xf32>
  %length = arith.constant dense<1024> : tensor<8x1xi32>
  %r = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
  %c = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %column = tt.expand_dims %c {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
  %columns = tt.broadcast %column : tensor<1x16xi32> -> tensor<8x16xi32>
  %sum = scf.for %i = %zero to %m step %step iter_args(%s = %none) -> (tensor<8x16xf32>) : i32 {
    %first = tt.splat %i : i32 -> tensor<8xi32>
    %own = arith.addi %first, %r : tensor<8xi32>
    %row = tt.expand_dims %own {axis = 1 : i32} : tensor<8xi32> -> tensor<8x1xi32>
    %at = arith.muli %row, %length : tensor<8x1xi32>
    %rows = tt.broadcast %at : tensor<8x1xi32> -> tensor<8x16xi32>
    %o = arith.addi %rows, %columns : tensor<8x16xi32>
    %a = amdg.buffer_load %x[%o] : tensor<8x16xf32>
    %t = arith.addf %s, %a : tensor<8x16xf32>
    scf.yield %t : tensor<8x16xf32>
  }
  tt.return %sum : tensor<8x16xf32>
}

// One addition for each address would take the place of another one.
// CHECK-LABEL: @nothing_saved
// CHECK: scf.for %[[I:[a-z0-9]+]] =
// CHECK: %[[SPLAT:.+]] = tt.splat %[[I]]
// CHECK: %[[O:.+]] = arith.addi %[[SPLAT]], %arg1
// CHECK: amdg.buffer_load %arg0[%[[O]]]
tt.func public @nothing_saved(%x: !tt.ptr<f32>, %own: tensor<16xi32>, %m: i32) -> tensor<16xf32> {
  %zero = arith.constant 0 : i32
  %step = arith.constant 16 : i32
  %none = arith.constant dense<0.0> : tensor<16xf32>
  %sum = scf.for %i = %zero to %m step %step iter_args(%s = %none) -> (tensor<16xf32>) : i32 {
    %first = tt.splat %i : i32 -> tensor<16xi32>
    %o = arith.addi %first, %own : tensor<16xi32>
    %a = amdg.buffer_load %x[%o] : tensor<16xf32>
    %t = arith.addf %s, %a : tensor<16xf32>
    scf.yield %t : tensor<16xf32>
  }
  tt.return %sum : tensor<16xf32>
}

// A scalar that was loaded need not be the same in all lanes when code is generated.
// CHECK-LABEL: @loaded
// CHECK: scf.for
// CHECK: arith.muli %{{.+}}, %{{.+}} : tensor<16xi32>
// CHECK: amdg.buffer_load
tt.func public @loaded(%x: !tt.ptr<f32>, %at: !tt.ptr<i32>, %n: i32, %own: tensor<16xi32>, %m: i32) -> tensor<16xf32> {
  %zero = arith.constant 0 : i32
  %step = arith.constant 16 : i32
  %none = arith.constant dense<0.0> : tensor<16xf32>
  %length = tt.splat %n : i32 -> tensor<16xi32>
  %sum = scf.for %i = %zero to %m step %step iter_args(%s = %none) -> (tensor<16xf32>) : i32 {
    %which = tt.addptr %at, %i : !tt.ptr<i32>, i32
    %row = tt.load %which : !tt.ptr<i32>
    %first = tt.splat %row : i32 -> tensor<16xi32>
    %rows = arith.addi %first, %own : tensor<16xi32>
    %o = arith.muli %rows, %length : tensor<16xi32>
    %a = amdg.buffer_load %x[%o] : tensor<16xf32>
    %t = arith.addf %s, %a : tensor<16xf32>
    scf.yield %t : tensor<16xf32>
  }
  tt.return %sum : tensor<16xf32>
}

// A kernel as it comes: the layouts' conversions are moved out of the loop as well.
tt.func public @kernel(%from: !tt.ptr<f32> {tt.divisibility = 16 : i32, tt.pointer_range = 32 : i32}, %to: !tt.ptr<f32> {tt.divisibility = 16 : i32, tt.pointer_range = 32 : i32}, %n: i32 {tt.divisibility = 16 : i32}, %m: i32) {
  %zero = arith.constant 0 : i32
  %step = arith.constant 32 : i32
  %none = arith.constant dense<0.0> : tensor<32x128xf32>
  %r = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %c = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %column = tt.expand_dims %c {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %columns = tt.broadcast %column : tensor<1x128xi32> -> tensor<32x128xi32>
  %length = tt.splat %n : i32 -> tensor<32x1xi32>
  %bound = tt.splat %m : i32 -> tensor<32x1xi32>
  %f = tt.splat %from : !tt.ptr<f32> -> tensor<32x1x!tt.ptr<f32>>
  %sum = scf.for %i = %zero to %m step %step iter_args(%s = %none) -> (tensor<32x128xf32>) : i32 {
    %first = tt.splat %i : i32 -> tensor<32xi32>
    %own = arith.addi %first, %r : tensor<32xi32>
    %row = tt.expand_dims %own {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
    %is = arith.cmpi slt, %row, %bound : tensor<32x1xi32>
    %mask = tt.broadcast %is : tensor<32x1xi1> -> tensor<32x128xi1>
    %at = arith.muli %row, %length : tensor<32x1xi32>
    %p = tt.addptr %f, %at : tensor<32x1x!tt.ptr<f32>>, tensor<32x1xi32>
    %q = tt.broadcast %p : tensor<32x1x!tt.ptr<f32>> -> tensor<32x128x!tt.ptr<f32>>
    %o = tt.addptr %q, %columns : tensor<32x128x!tt.ptr<f32>>, tensor<32x128xi32>
    %a = tt.load %o, %mask, %none : tensor<32x128x!tt.ptr<f32>>
    %t = arith.addf %s, %a : tensor<32x128xf32>
    scf.yield %t : tensor<32x128xf32>
  }
  %sums = "tt.reduce"(%sum) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<32x128xf32>) -> tensor<128xf32>
  %t = tt.splat %to : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
  %u = tt.addptr %t, %c : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  tt.store %u, %sums : tensor<128x!tt.ptr<f32>>
  tt.return
}
