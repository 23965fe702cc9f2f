// Blocks that compute program after program, so that the tiles of the next one are fetched while the last is stored.
//
// RUN: llopt %s --split-input-file --persistent-programs --cse --canonicalize | FileCheck %s

// A loop over programs is around everything that depends on the program. The grid has two dimensions, of which three
// more parameters are the extents; the number of programs along x is one of them. Numbers that all programs have stay
// before the loop.
// CHECK: module attributes {{{.*}}ttg.program-extents
// CHECK-LABEL: @two_dimensions
// CHECK-SAME: %[[X:[^ ]*]]: i32, %[[Y:[^ ]*]]: i32, %[[Z:[^ ]*]]: i32)
// CHECK: %[[STEPS:.*]] = arith.divsi
// CHECK: %[[BLOCK:.*]] = tt.get_program_id x
// CHECK: %[[BLOCKS:.*]] = tt.get_num_programs x
// CHECK: %[[PLANE:.*]] = arith.muli %[[X]], %[[Y]]
// CHECK: %[[ALL:.*]] = arith.muli %[[PLANE]], %[[Z]]
// CHECK: scf.for %[[P:.*]] = %[[BLOCK]] to %[[ALL]] step %[[BLOCKS]] : i32 {
// CHECK-DAG: arith.remui %[[P]], %[[X]]
// CHECK-DAG: %[[ROW:.*]] = arith.divui %[[P]], %[[X]]
// CHECK-DAG: arith.remui %[[ROW]], %[[Y]]
// CHECK-NOT: get_program_id
// CHECK: scf.for %{{.*}} = %c0_i32 to %[[STEPS]]
// CHECK: arith.muli %{{.*}}, %[[X]]
// CHECK: tt.descriptor_store %arg2
// CHECK-NEXT: }
// CHECK-NEXT: tt.return
tt.func public @two_dimensions(%a: !tt.tensordesc<tensor<128x64xf16>>, %b: !tt.tensordesc<tensor<64x128xf16>>, %c: !tt.tensordesc<tensor<128x128xf16>>, %K: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %x = tt.get_program_id x : i32
  %y = tt.get_program_id y : i32
  %across = tt.get_num_programs x : i32
  %m = arith.muli %y, %c128 : i32
  %n = arith.muli %x, %c128 : i32
  %steps = arith.divsi %K, %c64 : i32
  %sum = scf.for %i = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
    %k = arith.muli %i, %c64 : i32
    %l = tt.descriptor_load %a[%m, %k] : !tt.tensordesc<tensor<128x64xf16>> -> tensor<128x64xf16>
    %r = tt.descriptor_load %b[%k, %n] : !tt.tensordesc<tensor<64x128xf16>> -> tensor<64x128xf16>
    %next = tt.dot %l, %r, %acc, inputPrecision = tf32 : tensor<128x64xf16> * tensor<64x128xf16> -> tensor<128x128xf32>
    scf.yield %next : tensor<128x128xf32>
  }
  %narrow = arith.truncf %sum : tensor<128x128xf32> to tensor<128x128xf16>
  %skewed = arith.muli %y, %across : i32
  %row = arith.addi %m, %skewed : i32
  tt.descriptor_store %c[%row, %n], %narrow : !tt.tensordesc<tensor<128x128xf16>>, tensor<128x128xf16>
  tt.return
}

// -----

// Which of two loops a program executes depends on its number. A block executes one of them for all of its programs:
// the conditions of 128 programs are computed at a time, with the last program repeated, and one of the loops over
// programs is empty. The other conditionals with this condition are decided with it.
// CHECK-LABEL: @two_loops
// CHECK: %[[ALWAYS:.*]] = scf.for %[[FIRST:.*]] = %{{.*}} to %[[ALL:.*]] step %{{.*}} iter_args(%[[SO_FAR:.*]] = %true) -> (i1)
// CHECK: %[[IS_PROGRAM:.*]] = arith.cmpi slt, %[[NUMBER:.*]], %{{.*}} : tensor<128xi32>
// CHECK: %[[PROGRAMS:.*]] = arith.select %[[IS_PROGRAM]], %[[NUMBER]]
// CHECK: %[[ONE:.*]] = "tt.reduce"
// CHECK: arith.andi %{{.*}} : i1
// CHECK: %[[BOTH:.*]] = arith.andi %[[SO_FAR]], %[[ONE]] : i1
// CHECK-NEXT: scf.yield %[[BOTH]]
// CHECK: %[[WITHOUT:.*]] = arith.select %[[ALWAYS]], %{{.*}}, %[[ALL]]
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[WITHOUT]]
// CHECK-NOT: scf.if
// CHECK: tt.load
// CHECK: tt.store
// CHECK: %[[WITH:.*]] = arith.select %[[ALWAYS]], %[[ALL]]
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[WITH]]
// CHECK-NOT: scf.if
// CHECK: tt.descriptor_load
// CHECK: tt.descriptor_store
tt.func public @two_loops(%a: !tt.tensordesc<tensor<128x64xf16>>, %b: !tt.tensordesc<tensor<64x128xf16>>, %c: !tt.tensordesc<tensor<128x128xf32>>, %pa: !tt.ptr<f16>, %pc: !tt.ptr<f32>, %K: i32) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %limit = arith.constant 1000000 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %x = tt.get_program_id x : i32
  %m = arith.muli %x, %c128 : i32
  %is_small = arith.cmpi slt, %m, %limit : i32
  %sum = scf.if %is_small -> (tensor<128x128xf32>) {
    %s = scf.for %k = %c0 to %K step %c64 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %l = tt.descriptor_load %a[%m, %k] : !tt.tensordesc<tensor<128x64xf16>> -> tensor<128x64xf16>
      %r = tt.descriptor_load %b[%k, %c0] : !tt.tensordesc<tensor<64x128xf16>> -> tensor<64x128xf16>
      %next = tt.dot %l, %r, %acc, inputPrecision = tf32 : tensor<128x64xf16> * tensor<64x128xf16> -> tensor<128x128xf32>
      scf.yield %next : tensor<128x128xf32>
    }
    scf.yield %s : tensor<128x128xf32>
  } else {
    %s = scf.for %k = %c0 to %K step %c64 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %p = tt.splat %pa : !tt.ptr<f16> -> tensor<128x64x!tt.ptr<f16>>
      %l = tt.load %p : tensor<128x64x!tt.ptr<f16>>
      %r = tt.descriptor_load %b[%k, %c0] : !tt.tensordesc<tensor<64x128xf16>> -> tensor<64x128xf16>
      %next = tt.dot %l, %r, %acc, inputPrecision = tf32 : tensor<128x64xf16> * tensor<64x128xf16> -> tensor<128x128xf32>
      scf.yield %next : tensor<128x128xf32>
    }
    scf.yield %s : tensor<128x128xf32>
  }
  scf.if %is_small {
    tt.descriptor_store %c[%m, %c0], %sum : !tt.tensordesc<tensor<128x128xf32>>, tensor<128x128xf32>
  } else {
    %p = tt.splat %pc : !tt.ptr<f32> -> tensor<128x128x!tt.ptr<f32>>
    tt.store %p, %sum : tensor<128x128x!tt.ptr<f32>>
  }
  tt.return
}

// -----

// An atomic operation may be how programs wait for each other, so each block computes one program.
// CHECK-LABEL: @may_wait
// CHECK-NOT: get_num_programs
tt.func public @may_wait(%a: !tt.tensordesc<tensor<128x64xf16>>, %b: !tt.tensordesc<tensor<64x128xf16>>, %c: !tt.tensordesc<tensor<128x128xf32>>, %lock: !tt.ptr<i32>, %K: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %true = arith.constant true
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %x = tt.get_program_id x : i32
  %old = tt.atomic_rmw add, acq_rel, gpu, %lock, %c1, %true : (!tt.ptr<i32>, i32, i1) -> i32
  %sum = scf.for %k = %c0 to %K step %c64 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
    %l = tt.descriptor_load %a[%x, %k] : !tt.tensordesc<tensor<128x64xf16>> -> tensor<128x64xf16>
    %r = tt.descriptor_load %b[%k, %c0] : !tt.tensordesc<tensor<64x128xf16>> -> tensor<64x128xf16>
    %next = tt.dot %l, %r, %acc, inputPrecision = tf32 : tensor<128x64xf16> * tensor<64x128xf16> -> tensor<128x128xf32>
    scf.yield %next : tensor<128x128xf32>
  }
  tt.descriptor_store %c[%x, %old], %sum : !tt.tensordesc<tensor<128x128xf32>>, tensor<128x128xf32>
  tt.return
}
