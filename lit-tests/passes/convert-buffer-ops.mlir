// Accesses through pointers become accesses of buffers where offsets fit into 32 bits.
//
// RUN: llopt %s --tritonamdgpu-convert-buffer-ops --canonicalize --cse | FileCheck %s
// RUN: llopt compile %s --target hip:gfx942 --num-warps 1 --emit ttgir | FileCheck %s --check-prefix=WHOLE
// RUN: llopt compile %s --target cuda:90 --num-warps 1 --emit ttgir | FileCheck %s --check-prefix=NONE

// WHOLE: amdg.buffer_load
// NONE-NOT: amdg.

// The tensors behind the arguments are small, so that offsets from them fit, whatever the program's number is.
// CHECK-LABEL: @promised
// CHECK: %[[X:.+]] = amdg.buffer_load %arg0[%[[O:.+]]], %[[M:.+]] : tensor<64xf32>
// CHECK: amdg.buffer_store %[[X]], %arg1[%[[O]]], %[[M]] : tensor<64xf32>
tt.func public @promised(%from: !tt.ptr<f32> {tt.pointer_range = 32 : i32}, %to: !tt.ptr<f32> {tt.pointer_range = 32 : i32}, %n: i32) {
  %size = arith.constant 64 : i32
  %id = tt.get_program_id x : i32
  %first = arith.muli %id, %size : i32
  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %firsts = tt.splat %first : i32 -> tensor<64xi32>
  %o = arith.addi %firsts, %r : tensor<64xi32>
  %bound = tt.splat %n : i32 -> tensor<64xi32>
  %m = arith.cmpi slt, %o, %bound : tensor<64xi32>
  %f = tt.splat %from : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %p = tt.addptr %f, %o : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %x = tt.load %p, %m : tensor<64x!tt.ptr<f32>>
  %t = tt.splat %to : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %q = tt.addptr %t, %o : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  tt.store %q, %x, %m : tensor<64x!tt.ptr<f32>>
  tt.return
}

// What all threads add in an iteration belongs to the base, where the rest is a small number by itself.
// CHECK-LABEL: @tile_by_tile
// CHECK: %[[R:.+]] = tt.make_range
// CHECK: scf.for %[[I:[a-z0-9]+]] =
// CHECK: %[[FROM:.+]] = tt.addptr %arg0, %[[I]] : !tt.ptr<f32>, i32
// CHECK: amdg.buffer_load %[[FROM]][%[[R]]] : tensor<64xf32>
tt.func public @tile_by_tile(%from: !tt.ptr<f32> {tt.pointer_range = 32 : i32}, %to: !tt.ptr<f32> {tt.pointer_range = 32 : i32}, %at: !tt.ptr<i32>, %n: i32) {
  %zero = arith.constant 0 : i32
  %step = arith.constant 64 : i32
  %none = arith.constant dense<0.0> : tensor<64xf32>
  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %f = tt.splat %from : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %sum = scf.for %i = %zero to %n step %step iter_args(%s = %none) -> (tensor<64xf32>) : i32 {
    %firsts = tt.splat %i : i32 -> tensor<64xi32>
    %o = arith.addi %firsts, %r : tensor<64xi32>
    %p = tt.addptr %f, %o : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %x = tt.load %p : tensor<64x!tt.ptr<f32>>
    %t = arith.addf %s, %x : tensor<64xf32>
    scf.yield %t : tensor<64xf32>
  }
  %t = tt.splat %to : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %q = tt.addptr %t, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  tt.store %q, %sum : tensor<64x!tt.ptr<f32>>
  tt.return
}

// A loop goes on with the pointers at which another one has ended: both carry offsets.
// CHECK-LABEL: @one_after_the_other
// CHECK-SAME: %[[FROM:[a-z0-9]+]]: !tt.ptr<f32>
// CHECK: %[[FIRST:.+]]:2 = scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[O:[a-z0-9]+]] = %{{.*}}) -> (tensor<64xf32>, tensor<64xi32>)
// CHECK: amdg.buffer_load %[[FROM]][%[[O]]]
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[FIRST]]#0, %[[P:[a-z0-9]+]] = %[[FIRST]]#1) -> (tensor<64xf32>, tensor<64xi32>)
// CHECK: amdg.buffer_load %[[FROM]][%[[P]]]
// Where the second one returns its pointers, both keep them.
// CHECK-LABEL: @returned
// CHECK-COUNT-2: scf.for {{.*}} -> (tensor<64xf32>, tensor<64x!tt.ptr<f32>>)
tt.func public @one_after_the_other(%from: !tt.ptr<f32> {tt.pointer_range = 32 : i32}, %by: i32, %m: i32, %n: i32) -> tensor<64xf32> {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %none = arith.constant dense<0.0> : tensor<64xf32>
  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %step = tt.splat %by : i32 -> tensor<64xi32>
  %f = tt.splat %from : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %p = tt.addptr %f, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %first:2 = scf.for %i = %zero to %m step %one iter_args(%s = %none, %q = %p) -> (tensor<64xf32>, tensor<64x!tt.ptr<f32>>) : i32 {
    %x = tt.load %q : tensor<64x!tt.ptr<f32>>
    %t = arith.addf %s, %x : tensor<64xf32>
    %next = tt.addptr %q, %step : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    scf.yield %t, %next : tensor<64xf32>, tensor<64x!tt.ptr<f32>>
  }
  %second:2 = scf.for %i = %m to %n step %one iter_args(%s = %first#0, %q = %first#1) -> (tensor<64xf32>, tensor<64x!tt.ptr<f32>>) : i32 {
    %x = tt.load %q : tensor<64x!tt.ptr<f32>>
    %t = arith.mulf %s, %x : tensor<64xf32>
    %next = tt.addptr %q, %step : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    scf.yield %t, %next : tensor<64xf32>, tensor<64x!tt.ptr<f32>>
  }
  tt.return %second#0 : tensor<64xf32>
}

tt.func @returned(%from: !tt.ptr<f32> {tt.pointer_range = 32 : i32}, %by: i32, %m: i32, %n: i32) -> (tensor<64xf32>, tensor<64x!tt.ptr<f32>>) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %none = arith.constant dense<0.0> : tensor<64xf32>
  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %step = tt.splat %by : i32 -> tensor<64xi32>
  %f = tt.splat %from : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %p = tt.addptr %f, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %first:2 = scf.for %i = %zero to %m step %one iter_args(%s = %none, %q = %p) -> (tensor<64xf32>, tensor<64x!tt.ptr<f32>>) : i32 {
    %x = tt.load %q : tensor<64x!tt.ptr<f32>>
    %t = arith.addf %s, %x : tensor<64xf32>
    %next = tt.addptr %q, %step : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    scf.yield %t, %next : tensor<64xf32>, tensor<64x!tt.ptr<f32>>
  }
  %second:2 = scf.for %i = %m to %n step %one iter_args(%s = %first#0, %q = %first#1) -> (tensor<64xf32>, tensor<64x!tt.ptr<f32>>) : i32 {
    %x = tt.load %q : tensor<64x!tt.ptr<f32>>
    %t = arith.mulf %s, %x : tensor<64xf32>
    %next = tt.addptr %q, %step : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    scf.yield %t, %next : tensor<64xf32>, tensor<64x!tt.ptr<f32>>
  }
  tt.return %second#0, %second#1 : tensor<64xf32>, tensor<64x!tt.ptr<f32>>
}

// A number that was loaded may be kept in vector registers, where a base cannot be.
// CHECK-LABEL: @loaded
// CHECK: scf.for
// CHECK: %[[O:.+]] = arith.addi
// CHECK: amdg.buffer_load %arg0[%[[O]]] : tensor<64xf32>
tt.func public @loaded(%from: !tt.ptr<f32> {tt.pointer_range = 32 : i32}, %to: !tt.ptr<f32> {tt.pointer_range = 32 : i32}, %at: !tt.ptr<i32>, %n: i32) {
  %zero = arith.constant 0 : i32
  %step = arith.constant 64 : i32
  %none = arith.constant dense<0.0> : tensor<64xf32>
  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %f = tt.splat %from : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %sum = scf.for %i = %zero to %n step %step iter_args(%s = %none) -> (tensor<64xf32>) : i32 {
    %word = tt.addptr %at, %i : !tt.ptr<i32>, i32
    %first = tt.load %word : !tt.ptr<i32>
    %firsts = tt.splat %first : i32 -> tensor<64xi32>
    %o = arith.addi %firsts, %r : tensor<64xi32>
    %p = tt.addptr %f, %o : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %x = tt.load %p : tensor<64x!tt.ptr<f32>>
    %t = arith.addf %s, %x : tensor<64xf32>
    scf.yield %t : tensor<64xf32>
  }
  %t = tt.splat %to : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %q = tt.addptr %t, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  tt.store %q, %sum : tensor<64x!tt.ptr<f32>>
  tt.return
}

// Without a promise, a constant range is small enough, and the number of a program is not. Without a mask, too, nothing is
// gained where the range is known.
// CHECK-LABEL: @ranges
// CHECK: tt.load
// CHECK: amdg.buffer_load %arg0
// CHECK: tt.store
tt.func public @ranges(%from: !tt.ptr<f32>, %to: !tt.ptr<f32>, %n: i32) {
  %size = arith.constant 64 : i32
  %id = tt.get_program_id x : i32
  %first = arith.muli %id, %size : i32
  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %bound = tt.splat %n : i32 -> tensor<64xi32>
  %m = arith.cmpi slt, %r, %bound : tensor<64xi32>
  %firsts = tt.splat %first : i32 -> tensor<64xi32>
  %o = arith.addi %firsts, %r : tensor<64xi32>
  %f = tt.splat %from : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %p = tt.addptr %f, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %x = tt.load %p : tensor<64x!tt.ptr<f32>>
  %y = tt.load %p, %m : tensor<64x!tt.ptr<f32>>
  %z = arith.addf %x, %y : tensor<64xf32>
  %t = tt.splat %to : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %q = tt.addptr %t, %o : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  tt.store %q, %z, %m : tensor<64x!tt.ptr<f32>>
  tt.return
}

// What may be negative counts from the argument: the scalar becomes a part of the offset.
// CHECK-LABEL: @backwards
// CHECK: %[[LAST:.+]] = tt.splat %arg2 : i32 -> tensor<64xi32>
// CHECK: %[[O:.+]] = arith.subi %[[LAST]], %{{.+}} : tensor<64xi32>
// CHECK: %[[X:.+]] = amdg.buffer_load %arg0[%[[O]]] : tensor<64xf32>
tt.func public @backwards(%from: !tt.ptr<f32> {tt.pointer_range = 32 : i32}, %to: !tt.ptr<f32> {tt.pointer_range = 32 : i32}, %last: i32) {
  %end = tt.addptr %from, %last : !tt.ptr<f32>, i32
  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %minus = arith.constant dense<-1> : tensor<64xi32>
  %o = arith.muli %r, %minus : tensor<64xi32>
  %f = tt.splat %end : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %p = tt.addptr %f, %o : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %x = tt.load %p : tensor<64x!tt.ptr<f32>>
  %t = tt.splat %to : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %q = tt.addptr %t, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  tt.store %q, %x : tensor<64x!tt.ptr<f32>>
  tt.return
}

// Rows and columns are added to a pointer one after the other, with a broadcast between.
// CHECK-LABEL: @tile
// CHECK-NOT: tt.addptr
// CHECK: amdg.buffer_load %arg0[%{{.+}}] : tensor<32x64xf16>
// CHECK: tt.return
tt.func public @tile(%from: !tt.ptr<f16> {tt.pointer_range = 32 : i32}, %to: !tt.ptr<f16> {tt.pointer_range = 32 : i32}, %stride: i32) {
  %r = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %c = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %row = tt.expand_dims %r {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %column = tt.expand_dims %c {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %s = tt.splat %stride : i32 -> tensor<32x1xi32>
  %start = arith.muli %row, %s : tensor<32x1xi32>
  %f = tt.splat %from : !tt.ptr<f16> -> tensor<32x1x!tt.ptr<f16>>
  %rows = tt.addptr %f, %start : tensor<32x1x!tt.ptr<f16>>, tensor<32x1xi32>
  %spread = tt.broadcast %rows : tensor<32x1x!tt.ptr<f16>> -> tensor<32x64x!tt.ptr<f16>>
  %columns = tt.broadcast %column : tensor<1x64xi32> -> tensor<32x64xi32>
  %p = tt.addptr %spread, %columns : tensor<32x64x!tt.ptr<f16>>, tensor<32x64xi32>
  %x = tt.load %p : tensor<32x64x!tt.ptr<f16>>
  %t = tt.splat %to : !tt.ptr<f16> -> tensor<32x64x!tt.ptr<f16>>
  %q = tt.addptr %t, %columns : tensor<32x64x!tt.ptr<f16>>, tensor<32x64xi32>
  tt.store %q, %x : tensor<32x64x!tt.ptr<f16>>
  tt.return
}

// A loop that steps through memory carries offsets, from the argument on, and not pointers. Those of the load ahead are
// computed from them. Nothing changes where something else than accesses needs the pointers.
// CHECK-LABEL: @stepped
// CHECK: %[[START:.+]] = arith.addi
// CHECK: scf.for {{.*}} iter_args(%{{.+}} = %{{.+}}, %[[O:.+]] = %[[START]]) -> (tensor<64xf32>, tensor<64xi32>)
// CHECK: %[[NEXT:.+]] = arith.addi %[[O]], %{{.+}} : tensor<64xi32>
// CHECK: amdg.buffer_load %arg0[%[[NEXT]]] : tensor<64xf32>
// CHECK: scf.yield %{{.+}}, %[[NEXT]]
// CHECK: amdg.buffer_load %arg0[
tt.func public @stepped(%from: !tt.ptr<f32> {tt.pointer_range = 32 : i32}, %to: !tt.ptr<f32> {tt.pointer_range = 32 : i32}, %n: i32, %by: i64) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %none = arith.constant dense<0.0> : tensor<64xf32>
  %id = tt.get_program_id x : i32
  %first = tt.addptr %from, %n : !tt.ptr<f32>, i32
  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %f = tt.splat %first : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %p = tt.addptr %f, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %step = tt.splat %by : i64 -> tensor<64xi64>
  %sum:2 = scf.for %i = %zero to %n step %one iter_args(%s = %none, %q = %p) -> (tensor<64xf32>, tensor<64x!tt.ptr<f32>>) : i32 {
    %next = tt.addptr %q, %step : tensor<64x!tt.ptr<f32>>, tensor<64xi64>
    %x = tt.load %next : tensor<64x!tt.ptr<f32>>
    %t = arith.addf %s, %x : tensor<64xf32>
    scf.yield %t, %next : tensor<64xf32>, tensor<64x!tt.ptr<f32>>
  }
  %last = tt.load %sum#1 : tensor<64x!tt.ptr<f32>>
  %all = arith.addf %sum#0, %last : tensor<64xf32>
  %t = tt.splat %to : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %q = tt.addptr %t, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  tt.store %q, %all : tensor<64x!tt.ptr<f32>>
  tt.return
}

// CHECK-LABEL: @kept
// CHECK: scf.for {{.*}} -> (tensor<64x!tt.ptr<f32>>)
// CHECK: tt.ptr_to_int
tt.func public @kept(%from: !tt.ptr<f32> {tt.pointer_range = 32 : i32}, %to: !tt.ptr<i64> {tt.pointer_range = 32 : i32}, %n: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %f = tt.splat %from : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %p = tt.addptr %f, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %end = scf.for %i = %zero to %n step %one iter_args(%q = %p) -> (tensor<64x!tt.ptr<f32>>) : i32 {
    %next = tt.addptr %q, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    scf.yield %next : tensor<64x!tt.ptr<f32>>
  }
  %number = tt.ptr_to_int %end : tensor<64x!tt.ptr<f32>> -> tensor<64xi64>
  %t = tt.splat %to : !tt.ptr<i64> -> tensor<64x!tt.ptr<i64>>
  %q = tt.addptr %t, %r : tensor<64x!tt.ptr<i64>>, tensor<64xi32>
  tt.store %q, %number : tensor<64x!tt.ptr<i64>>
  tt.return
}
