// Loops without products whose program asks for stages: loads are as many iterations ahead as it says, through rings of
// buffers, unless that is slower by the model than registers an iteration ahead.
//
// RUN: llopt compile %s --target cuda:90 --emit ttgir -o - | FileCheck %s
// RUN: llopt compile %s --target cuda:80 --emit ttgir -o - | FileCheck %s
// RUN: llopt compile %s --target hip:gfx942 --emit ttgir -o - | FileCheck %s --check-prefix=REGISTERS

module {
  // Three stages are two iterations ahead: each tensor is copied twice before the loop, and one group of copies may be
  // outstanding when an iteration reads its data. A slot more lets copies come first in an iteration.
  // CHECK-LABEL: @three
  // CHECK-COUNT-2: ttg.local_alloc : () -> !ttg.memdesc<3x1024xf32
  // CHECK-COUNT-4: ttg.async_copy_global_to_local
  // CHECK: scf.for
  // CHECK: ttg.async_wait %{{.*}} {num = 1 : i32}
  // CHECK-COUNT-2: ttg.async_copy_global_to_local
  // CHECK-COUNT-2: ttg.local_load
  // CHECK-NOT: ttg.async_copy_global_to_local
  // CHECK: scf.yield
  // Where there are no asynchronous copies, registers are loaded an iteration ahead.
  // REGISTERS-LABEL: @three
  // REGISTERS-NOT: ttg.async_copy_global_to_local
  // REGISTERS: scf.for
  tt.func public @three(%a: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}, %tiles: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %size = arith.constant 1024 : i32
    %range = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
    %end = tt.splat %n : i32 -> tensor<1024xi32>
    %as = tt.splat %a : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %bs = tt.splat %b : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %os = tt.splat %o : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    scf.for %i = %c0 to %tiles step %c1 : i32 {
      %first = arith.muli %i, %size : i32
      %firsts = tt.splat %first : i32 -> tensor<1024xi32>
      %at = arith.addi %firsts, %range : tensor<1024xi32>
      %mask = arith.cmpi slt, %at, %end : tensor<1024xi32>
      %ap = tt.addptr %as, %at : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
      %x = tt.load %ap, %mask : tensor<1024x!tt.ptr<f32>>
      %bp = tt.addptr %bs, %at : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
      %y = tt.load %bp, %mask : tensor<1024x!tt.ptr<f32>>
      %z = arith.addf %x, %y : tensor<1024xf32>
      %op = tt.addptr %os, %at : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
      tt.store %op, %z, %mask : tensor<1024x!tt.ptr<f32>>
    } {tt.num_stages = 3 : i32}
    tt.return
  }

  // Two stages are one iteration ahead, in registers.
  // CHECK-LABEL: @two
  // CHECK-COUNT-2: tt.load
  // CHECK: scf.for
  // CHECK-COUNT-2: tt.load
  tt.func public @two(%a: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}, %tiles: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %size = arith.constant 1024 : i32
    %range = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
    %end = tt.splat %n : i32 -> tensor<1024xi32>
    %as = tt.splat %a : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %bs = tt.splat %b : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %os = tt.splat %o : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    scf.for %i = %c0 to %tiles step %c1 : i32 {
      %first = arith.muli %i, %size : i32
      %firsts = tt.splat %first : i32 -> tensor<1024xi32>
      %at = arith.addi %firsts, %range : tensor<1024xi32>
      %mask = arith.cmpi slt, %at, %end : tensor<1024xi32>
      %ap = tt.addptr %as, %at : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
      %x = tt.load %ap, %mask : tensor<1024x!tt.ptr<f32>>
      %bp = tt.addptr %bs, %at : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
      %y = tt.load %bp, %mask : tensor<1024x!tt.ptr<f32>>
      %z = arith.addf %x, %y : tensor<1024xf32>
      %op = tt.addptr %os, %at : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
      tt.store %op, %z, %mask : tensor<1024x!tt.ptr<f32>>
    } {tt.num_stages = 2 : i32}
    tt.return
  }

  // Special functions limit this loop, and a ring would take time beside them.
  // CHECK-LABEL: @busy
  // CHECK-NOT: ttg.async_copy_global_to_local
  // CHECK: scf.for
  tt.func public @busy(%a: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}, %tiles: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %size = arith.constant 1024 : i32
    %range = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
    %end = tt.splat %n : i32 -> tensor<1024xi32>
    %as = tt.splat %a : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %bs = tt.splat %b : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %os = tt.splat %o : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    scf.for %i = %c0 to %tiles step %c1 : i32 {
      %first = arith.muli %i, %size : i32
      %firsts = tt.splat %first : i32 -> tensor<1024xi32>
      %at = arith.addi %firsts, %range : tensor<1024xi32>
      %mask = arith.cmpi slt, %at, %end : tensor<1024xi32>
      %ap = tt.addptr %as, %at : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
      %x = tt.load %ap, %mask : tensor<1024x!tt.ptr<f32>>
      %bp = tt.addptr %bs, %at : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
      %y = tt.load %bp, %mask : tensor<1024x!tt.ptr<f32>>
      %z = arith.addf %x, %y : tensor<1024xf32>
      %w0 = math.exp2 %z : tensor<1024xf32>
      %w1 = math.exp2 %w0 : tensor<1024xf32>
      %w2 = math.exp2 %w1 : tensor<1024xf32>
      %w3 = math.exp2 %w2 : tensor<1024xf32>
      %w4 = math.exp2 %w3 : tensor<1024xf32>
      %w5 = math.exp2 %w4 : tensor<1024xf32>
      %w6 = math.exp2 %w5 : tensor<1024xf32>
      %w7 = math.exp2 %w6 : tensor<1024xf32>
      %w8 = math.exp2 %w7 : tensor<1024xf32>
      %w9 = math.exp2 %w8 : tensor<1024xf32>
      %w10 = math.exp2 %w9 : tensor<1024xf32>
      %w11 = math.exp2 %w10 : tensor<1024xf32>
      %op = tt.addptr %os, %at : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
      tt.store %op, %w11, %mask : tensor<1024x!tt.ptr<f32>>
    } {tt.num_stages = 4 : i32}
    tt.return
  }
}
