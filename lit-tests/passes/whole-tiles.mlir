// Tiles that are whole are computed without masks, and the last one apart.
//
// RUN: llopt %s --split-input-file --whole-tiles="target=cuda:90" --canonicalize | FileCheck %s
// RUN: llopt %s --split-input-file --whole-tiles="target=hip:gfx942" --canonicalize | FileCheck %s

// The loop ends behind the last whole tile, and loads without a mask. Another one goes on with the mask, from there to the
// old end. A bound near the least number would wrap.
// CHECK-LABEL: @row
// CHECK-SAME: %[[N:[a-z0-9]+]]: i32
// CHECK: %[[WRAPS:.*]] = arith.cmpi slt, %[[N]], %c-2147482625_i32
// CHECK: %[[BOUND:.*]] = arith.select %[[WRAPS]], %c-2147482625_i32, %[[N]]
// CHECK: %[[LIMIT:.*]] = arith.subi %[[BOUND]], %c1023_i32
// CHECK: %[[RUNS:.*]] = arith.cmpi sgt, %[[LIMIT]], %c0_i32
// CHECK: %[[MIDDLE:.*]] = arith.select %[[RUNS]], %{{.*}}, %c0_i32
// CHECK: %[[WHOLE:.*]] = scf.for %{{.*}} = %c0_i32 to %[[MIDDLE]] step %c1024_i32
// CHECK-NOT: arith.cmpi
// CHECK: tt.load %{{[0-9]+}} :
// CHECK: scf.yield
// CHECK: scf.for %{{.*}} = %[[MIDDLE]] to %[[N]] step %c1024_i32 iter_args(%{{.*}} = %[[WHOLE]])
// CHECK: %[[MASK:.*]] = arith.cmpi slt
// CHECK: tt.load %{{.*}}, %[[MASK]], %
// CHECK: scf.yield
// CHECK: llopt.rare
tt.func public @row(%data: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
  %zero = arith.constant dense<0.0> : tensor<1024xf32>
  %none = arith.constant dense<0.0> : tensor<1024xbf16>
  %c0 = arith.constant 0 : i32
  %step = arith.constant 1024 : i32
  %range = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
  %end = tt.splat %n : i32 -> tensor<1024xi32>
  %base = tt.splat %data : !tt.ptr<bf16> -> tensor<1024x!tt.ptr<bf16>>
  %sum = scf.for %i = %c0 to %n step %step iter_args(%acc = %zero) -> (tensor<1024xf32>) : i32 {
    %first = tt.splat %i : i32 -> tensor<1024xi32>
    %at = arith.addi %first, %range : tensor<1024xi32>
    %mask = arith.cmpi slt, %at, %end : tensor<1024xi32>
    %address = tt.addptr %base, %at : tensor<1024x!tt.ptr<bf16>>, tensor<1024xi32>
    %x = tt.load %address, %mask, %none : tensor<1024x!tt.ptr<bf16>>
    %wide = arith.extf %x : tensor<1024xbf16> to tensor<1024xf32>
    %next = arith.addf %acc, %wide : tensor<1024xf32>
    scf.yield %next : tensor<1024xf32>
  }
  %to = tt.splat %out : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %place = tt.addptr %to, %range : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  tt.store %place, %sum : tensor<1024x!tt.ptr<f32>>
  tt.return
}

// -----

// What a program computes once is there in two versions. A condition of the mask that is another one stays.
// CHECK-LABEL: @tile
// CHECK: %[[PID:.*]] = tt.get_program_id x
// CHECK: %[[START:.*]] = arith.muli %[[PID]]
// CHECK: %[[LIMIT:.*]] = arith.subi %{{.*}}, %c1023_i32
// CHECK: %[[WHOLE:.*]] = arith.cmpi slt, %[[START]], %[[LIMIT]]
// CHECK: scf.if %[[WHOLE]] {
// CHECK-NOT: arith.andi
// CHECK: %[[ALL:.*]] = tt.splat %{{.*}} : i1
// CHECK: %[[X:.*]] = tt.load %{{.*}}, %[[ALL]] :
// CHECK: tt.store %{{.*}}, %[[X]] :
// CHECK: } else {
// CHECK: %[[BOTH:.*]] = arith.andi
// CHECK: tt.load %{{.*}}, %[[BOTH]] :
// CHECK: } {llopt.rare}
// CHECK-NEXT: tt.return
tt.func public @tile(%from: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %to: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %n: i32, %asked: i1) {
  %size = arith.constant 1024 : i32
  %pid = tt.get_program_id x : i32
  %start = arith.muli %pid, %size : i32
  %range = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
  %first = tt.splat %start : i32 -> tensor<1024xi32>
  %at = arith.addi %first, %range : tensor<1024xi32>
  %end = tt.splat %n : i32 -> tensor<1024xi32>
  %mask = arith.cmpi slt, %at, %end : tensor<1024xi32>
  %all = tt.splat %asked : i1 -> tensor<1024xi1>
  %both = arith.andi %mask, %all : tensor<1024xi1>
  %p = tt.splat %from : !tt.ptr<i8> -> tensor<1024x!tt.ptr<i8>>
  %p_at = tt.addptr %p, %at : tensor<1024x!tt.ptr<i8>>, tensor<1024xi32>
  %x = tt.load %p_at, %both : tensor<1024x!tt.ptr<i8>>
  %q = tt.splat %to : !tt.ptr<i8> -> tensor<1024x!tt.ptr<i8>>
  %q_at = tt.addptr %q, %at : tensor<1024x!tt.ptr<i8>>, tensor<1024xi32>
  tt.store %q_at, %x, %mask : tensor<1024x!tt.ptr<i8>>
  tt.return
}

// -----

// With constants it is known which tiles are whole: here those of 15 iterations, which one more follows.
// CHECK-LABEL: @constants
// CHECK: scf.for %{{.*}} = %c0_i32 to %c15360_i32 step %c1024_i32
// CHECK: tt.load %{{[0-9]+}} :
// CHECK: arith.cmpi slt
// CHECK: tt.load %{{.*}}, %{{.*}}, %
tt.func public @constants(%data: !tt.ptr<bf16> {tt.divisibility = 4 : i32}, %shift: i32) -> tensor<1024xbf16> {
  %zero = arith.constant dense<0.0> : tensor<1024xbf16>
  %c0 = arith.constant 0 : i32
  %step = arith.constant 1024 : i32
  %last = arith.constant 16000 : i32
  %bound = arith.constant dense<15999> : tensor<1024xi32>
  %range = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
  %base = tt.splat %data : !tt.ptr<bf16> -> tensor<1024x!tt.ptr<bf16>>
  %sum = scf.for %i = %c0 to %last step %step iter_args(%acc = %zero) -> (tensor<1024xbf16>) : i32 {
    %first = tt.splat %i : i32 -> tensor<1024xi32>
    %at = arith.addi %first, %range : tensor<1024xi32>
    %mask = arith.cmpi slt, %at, %bound : tensor<1024xi32>
    %address = tt.addptr %base, %at : tensor<1024x!tt.ptr<bf16>>, tensor<1024xi32>
    %x = tt.load %address, %mask, %zero : tensor<1024x!tt.ptr<bf16>>
    %next = arith.addf %acc, %x : tensor<1024xbf16>
    scf.yield %next : tensor<1024xbf16>
  }
  tt.return %sum : tensor<1024xbf16>
}

// -----

// A row has the same place in each program, so nothing says how often it is whole.
// CHECK-LABEL: @same_row
// CHECK-NOT: scf.if
// CHECK: tt.return
tt.func public @same_row(%from: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %to: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %n: i32) {
  %at = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
  %end = tt.splat %n : i32 -> tensor<1024xi32>
  %mask = arith.cmpi slt, %at, %end : tensor<1024xi32>
  %p = tt.splat %from : !tt.ptr<i8> -> tensor<1024x!tt.ptr<i8>>
  %p_at = tt.addptr %p, %at : tensor<1024x!tt.ptr<i8>>, tensor<1024xi32>
  %x = tt.load %p_at, %mask : tensor<1024x!tt.ptr<i8>>
  %q = tt.splat %to : !tt.ptr<i8> -> tensor<1024x!tt.ptr<i8>>
  %q_at = tt.addptr %q, %at : tensor<1024x!tt.ptr<i8>>, tensor<1024xi32>
  tt.store %q_at, %x, %mask : tensor<1024x!tt.ptr<i8>>
  tt.return
}

// -----

// The mask leaves accesses as wide as they are, so there is nothing to save but a comparison.
// CHECK-LABEL: @aligned
// CHECK-NOT: scf.if
// CHECK: tt.return
tt.func public @aligned(%from: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}) {
  %size = arith.constant 1024 : i32
  %pid = tt.get_program_id x : i32
  %start = arith.muli %pid, %size : i32
  %range = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
  %first = tt.splat %start : i32 -> tensor<1024xi32>
  %at = arith.addi %first, %range : tensor<1024xi32>
  %end = tt.splat %n : i32 -> tensor<1024xi32>
  %mask = arith.cmpi slt, %at, %end : tensor<1024xi32>
  %p = tt.splat %from : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %p_at = tt.addptr %p, %at : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  %x = tt.load %p_at, %mask : tensor<1024x!tt.ptr<f32>>
  %q = tt.splat %to : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %q_at = tt.addptr %q, %at : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  tt.store %q_at, %x, %mask : tensor<1024x!tt.ptr<f32>>
  tt.return
}
