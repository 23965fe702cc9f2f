// Loops without products: loads are one iteration ahead, through registers.
//
// RUN: llopt compile %s --target cuda:90 --num-warps 8 --emit ttgir -o - | FileCheck %s
// RUN: llopt compile %s --target cuda:90 --num-stages 1 --emit ttgir -o - | FileCheck %s --check-prefix=ONE
// RUN: llopt compile %s --target hip:gfx942 --emit ttgir -o - | FileCheck %s --check-prefix=APART

module {
  // The data of the first iteration are loaded before the loop, those of the next one before this one's work.
  // CHECK-LABEL: @sum
  // CHECK: %[[FIRST:.*]] = tt.load
  // CHECK: scf.for {{.*}} iter_args(%[[SUM:.*]] = %{{.*}}, %[[DATA:.*]] = %[[FIRST]])
  // CHECK: %[[NEXT:.*]] = tt.load
  // CHECK: %[[WIDE:.*]] = arith.extf %[[DATA]]
  // CHECK: %[[MORE:.*]] = arith.addf %[[SUM]], %[[WIDE]]
  // CHECK: scf.yield %[[MORE]], %[[NEXT]]
  // One stage leaves the loop as it is.
  // ONE-LABEL: @sum
  // ONE: scf.for
  // ONE: %[[DATA:.*]] = tt.load
  // ONE: arith.extf %[[DATA]]
  // Where no predicate turns an access off, the loop loads without a condition, and the last iteration is a loop of its
  // own that loads nothing.
  // APART-LABEL: @sum
  // APART: scf.for
  // APART: tt.load
  // APART: scf.yield
  // APART: scf.for
  // APART-NOT: tt.load
  // APART: scf.yield
  tt.func public @sum(%data: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}) {
    %zero = arith.constant dense<0.0> : tensor<1024xf32>
    %none = arith.constant dense<0.0> : tensor<1024xf16>
    %c0 = arith.constant 0 : i32
    %step = arith.constant 1024 : i32
    %range = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
    %end = tt.splat %n : i32 -> tensor<1024xi32>
    %base = tt.splat %data : !tt.ptr<f16> -> tensor<1024x!tt.ptr<f16>>
    %sum = scf.for %i = %c0 to %n step %step iter_args(%acc = %zero) -> (tensor<1024xf32>) : i32 {
      %first = tt.splat %i : i32 -> tensor<1024xi32>
      %at = arith.addi %first, %range : tensor<1024xi32>
      %mask = arith.cmpi slt, %at, %end : tensor<1024xi32>
      %address = tt.addptr %base, %at : tensor<1024x!tt.ptr<f16>>, tensor<1024xi32>
      %x = tt.load %address, %mask, %none : tensor<1024x!tt.ptr<f16>>
      %wide = arith.extf %x : tensor<1024xf16> to tensor<1024xf32>
      %next = arith.addf %acc, %wide : tensor<1024xf32>
      scf.yield %next : tensor<1024xf32>
    }
    %to = tt.splat %out : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %place = tt.addptr %to, %range : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    tt.store %place, %sum : tensor<1024x!tt.ptr<f32>>
    tt.return
  }

  // Two blocks of 112 registers for each thread are resident, but only one of 144. Without the other one, memory would
  // wait for the latency of each iteration.
  // CHECK-LABEL: @wide
  // CHECK: scf.for
  // CHECK: %[[DATA:.*]] = tt.load
  // CHECK: arith.extf %[[DATA]]
  // APART-LABEL: @wide
  // APART: scf.for
  // APART: tt.load
  // APART: arith.extf
  // APART-NOT: scf.for
  // APART: tt.return
  tt.func public @wide(%data: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}) {
    %zero = arith.constant dense<0.0> : tensor<16384xf32>
    %none = arith.constant dense<0.0> : tensor<16384xf16>
    %c0 = arith.constant 0 : i32
    %step = arith.constant 16384 : i32
    %range = tt.make_range {end = 16384 : i32, start = 0 : i32} : tensor<16384xi32>
    %end = tt.splat %n : i32 -> tensor<16384xi32>
    %base = tt.splat %data : !tt.ptr<f16> -> tensor<16384x!tt.ptr<f16>>
    %sum = scf.for %i = %c0 to %n step %step iter_args(%acc = %zero) -> (tensor<16384xf32>) : i32 {
      %first = tt.splat %i : i32 -> tensor<16384xi32>
      %at = arith.addi %first, %range : tensor<16384xi32>
      %mask = arith.cmpi slt, %at, %end : tensor<16384xi32>
      %address = tt.addptr %base, %at : tensor<16384x!tt.ptr<f16>>, tensor<16384xi32>
      %x = tt.load %address, %mask, %none : tensor<16384x!tt.ptr<f16>>
      %wide = arith.extf %x : tensor<16384xf16> to tensor<16384xf32>
      %next = arith.addf %acc, %wide : tensor<16384xf32>
      scf.yield %next : tensor<16384xf32>
    }
    %to = tt.splat %out : !tt.ptr<f32> -> tensor<16384x!tt.ptr<f32>>
    %place = tt.addptr %to, %range : tensor<16384x!tt.ptr<f32>>, tensor<16384xi32>
    tt.store %place, %sum : tensor<16384x!tt.ptr<f32>>
    tt.return
  }

  // A row whose number is in a table is loaded an iteration ahead, and the number two: the loop carries both.
  // CHECK-LABEL: @rows
  // CHECK-COUNT-2: tt.load %{{.*}} : !tt.ptr<i32>
  // CHECK: %[[FIRST:.*]] = tt.load %{{.*}} : tensor<1024x!tt.ptr<f16>
  // CHECK: scf.for {{.*}} iter_args({{.*}}%[[FIRST]]{{.*}})
  // CHECK: tt.load %{{.*}} : !tt.ptr<i32>
  // CHECK: tt.load %{{.*}} : tensor<1024x!tt.ptr<f16>
  // CHECK: arith.extf
  // ONE-LABEL: @rows
  // ONE: scf.for
  // ONE: tt.load
  // ONE: arith.extf
  tt.func public @rows(%data: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %table: !tt.ptr<i32>, %out: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
    %zero = arith.constant dense<0.0> : tensor<1024xf32>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c1024 = arith.constant 1024 : i32
    %range = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<1024xf32>) : i32 {
      %at = tt.addptr %table, %i : !tt.ptr<i32>, i32
      %row = tt.load %at : !tt.ptr<i32>
      %first = arith.muli %row, %c1024 : i32
      %start = tt.addptr %data, %first : !tt.ptr<f16>, i32
      %starts = tt.splat %start : !tt.ptr<f16> -> tensor<1024x!tt.ptr<f16>>
      %address = tt.addptr %starts, %range : tensor<1024x!tt.ptr<f16>>, tensor<1024xi32>
      %x = tt.load %address : tensor<1024x!tt.ptr<f16>>
      %wide = arith.extf %x : tensor<1024xf16> to tensor<1024xf32>
      %next = arith.addf %acc, %wide : tensor<1024xf32>
      scf.yield %next : tensor<1024xf32>
    }
    %to = tt.splat %out : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %place = tt.addptr %to, %range : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    tt.store %place, %sum : tensor<1024x!tt.ptr<f32>>
    tt.return
  }

  // What a loop stores is not loaded before it is stored.
  // CHECK-LABEL: @in_place
  // CHECK: scf.for
  // CHECK: %[[DATA:.*]] = tt.load
  // CHECK: arith.addf %[[DATA]]
  tt.func public @in_place(%data: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
    %c0 = arith.constant 0 : i32
    %step = arith.constant 512 : i32
    %range = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
    %base = tt.splat %data : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    scf.for %i = %c0 to %n step %step : i32 {
      %first = tt.splat %i : i32 -> tensor<1024xi32>
      %at = arith.addi %first, %range : tensor<1024xi32>
      %address = tt.addptr %base, %at : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
      %x = tt.load %address : tensor<1024x!tt.ptr<f32>>
      %twice = arith.addf %x, %x : tensor<1024xf32>
      tt.store %address, %twice : tensor<1024x!tt.ptr<f32>>
    }
    tt.return
  }
}
