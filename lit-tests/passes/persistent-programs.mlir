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
// CHECK: %[[ALL:.*]] = arith.muli %{{.*}}, %arg8
// CHECK: %[[END:.*]] = arith.extsi %[[ALL]]
// CHECK: %[[ALWAYS:.*]] = scf.for %[[FIRST:.*]] = %{{.*}} to %[[END]] step %{{.*}} iter_args(%[[SO_FAR:.*]] = %true) -> (i1)
// CHECK: %[[IS_PROGRAM:.*]] = arith.cmpi slt, %[[NUMBER:.*]], %{{.*}} : tensor<128xi64>
// CHECK: %[[PROGRAMS:.*]] = arith.select %[[IS_PROGRAM]], %[[NUMBER]]
// CHECK: arith.trunci %[[PROGRAMS]]
// CHECK: %[[ONE:.*]] = "tt.reduce"
// CHECK: arith.andi %{{.*}} : i1
// CHECK: %[[BOTH:.*]] = arith.andi %[[SO_FAR]], %[[ONE]] : i1
// CHECK-NEXT: scf.yield %[[BOTH]]
// CHECK-DAG: %[[WITHOUT:.*]] = arith.select %[[ALWAYS]], %{{.*}}, %[[ALL]]
// CHECK-DAG: %[[WITH:.*]] = arith.select %[[ALWAYS]], %[[ALL]]
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[WITH]]
// CHECK-NOT: scf.if
// CHECK: tt.descriptor_load
// CHECK: tt.descriptor_store
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[WITHOUT]]
// CHECK-NOT: scf.if
// CHECK: tt.load
// CHECK: tt.store
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
  } {llopt.versions}
  scf.if %is_small {
    tt.descriptor_store %c[%m, %c0], %sum : !tt.tensordesc<tensor<128x128xf32>>, tensor<128x128xf32>
  } else {
    %p = tt.splat %pc : !tt.ptr<f32> -> tensor<128x128x!tt.ptr<f32>>
    tt.store %p, %sum : tensor<128x128x!tt.ptr<f32>>
  } {llopt.versions}
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

// -----

// Two loops, of which the second goes on with the sum of the first and has a mask, become one: its iterations are those of
// both, loads and product are common to them, and what differs is in a conditional. Programs with more iterations have
// larger numbers along x, so a block computes pairs of a long and a short one: the loop over programs counts what the block
// computes, and numbers along x are also counted from the end. Those of the next program are computed behind the loop.
// CHECK-LABEL: @sequence
// CHECK-SAME: %[[X:[^ ]*]]: i32, %[[Y:[^ ]*]]: i32, %[[Z:[^ ]*]]: i32)
// CHECK-DAG: %[[HALF:.*]] = arith.divui %[[X]], %c2_i32
// CHECK: %[[END:.*]] = arith.subi %[[X]], %c1_i32
// CHECK: scf.for %[[P:.*]] = %c0_i32 to %{{.*}} step %c1_i32 iter_args(%[[ALONG:.*]] = %{{.*}}, %[[ROW:.*]] = %{{.*}})
// CHECK: %[[DIAGONAL:.*]] = arith.muli %[[ALONG]], %c64_i32
// CHECK: %[[COUNT:.*]] = arith.select %{{.*}}, %{{.*}}, %c0_i32 : i32
// CHECK: %[[ALL:.*]] = arith.addi %[[COUNT]], %{{.*}} : i32
// CHECK: scf.for unsigned %[[T:.*]] = %c0_i32 to %[[ALL]] step %c1_i32 iter_args(%[[SUM:.*]] = %{{.*}})
// CHECK: %[[IS_FIRST:.*]] = arith.cmpi ult, %[[T]], %[[COUNT]]
// CHECK: %[[K:.*]] = arith.select %[[IS_FIRST]]
// CHECK-COUNT-2: tt.descriptor_load %{{.*}}%[[K]]
// CHECK: %[[PRODUCT:.*]] = tt.dot
// CHECK-NEXT: %[[NEXT:.*]] = scf.if %[[IS_FIRST]]
// CHECK-NEXT: arith.addf %[[SUM]], %[[PRODUCT]]
// CHECK: } else {
// CHECK: arith.select %{{.*}}, %[[PRODUCT]]
// CHECK-NEXT: arith.addf %[[SUM]]
// CHECK: scf.yield %[[NEXT]]
// CHECK: arith.addi %[[P]], %c1_i32
// CHECK: arith.subi %[[END]], %{{.*}} : i32
// CHECK: %[[NEXT_ALONG:.*]] = arith.select %{{.*}}, %[[HALF]], %{{.*}} : i32
// CHECK: tt.store
// CHECK: scf.yield %[[NEXT_ALONG]], %
// CHECK-NOT: scf.for
tt.func public @sequence(%a: !tt.tensordesc<tensor<128x64xf16>>, %b: !tt.tensordesc<tensor<64x256xf16>>, %c: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %c256 = arith.constant 256 : i32
  %zero = arith.constant dense<0.0> : tensor<128x256xf32>
  %x = tt.get_program_id x : i32
  %y = tt.get_program_id y : i32
  %z = tt.get_program_id z : i32
  %across = tt.get_num_programs x : i32
  %down = tt.get_num_programs y : i32
  %plane = arith.muli %z, %down : i32
  %line = arith.addi %plane, %y : i32
  %before = arith.muli %line, %across : i32
  %tile = arith.addi %before, %x : i32
  %m = arith.muli %tile, %c128 : i32
  %diagonal = arith.muli %x, %c64 : i32
  %r = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
  %n = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32>
  %r1 = tt.expand_dims %r {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
  %n1 = tt.expand_dims %n {axis = 0 : i32} : tensor<256xi32> -> tensor<1x256xi32>
  %r2 = tt.broadcast %r1 : tensor<128x1xi32> -> tensor<128x256xi32>
  %n2 = tt.broadcast %n1 : tensor<1x256xi32> -> tensor<128x256xi32>
  %off = scf.for %k = %c0 to %diagonal step %c64 iter_args(%sum = %zero) -> (tensor<128x256xf32>) : i32 {
    %l = tt.descriptor_load %a[%m, %k] : !tt.tensordesc<tensor<128x64xf16>> -> tensor<128x64xf16>
    %f = tt.descriptor_load %b[%k, %c0] : !tt.tensordesc<tensor<64x256xf16>> -> tensor<64x256xf16>
    %d = tt.dot %l, %f, %zero, inputPrecision = tf32 : tensor<128x64xf16> * tensor<64x256xf16> -> tensor<128x256xf32>
    %next = arith.addf %sum, %d : tensor<128x256xf32>
    scf.yield %next : tensor<128x256xf32>
  }
  %after = arith.addi %diagonal, %c64 : i32
  %all = scf.for %k = %diagonal to %after step %c64 iter_args(%sum = %off) -> (tensor<128x256xf32>) : i32 {
    %l = tt.descriptor_load %a[%m, %k] : !tt.tensordesc<tensor<128x64xf16>> -> tensor<128x64xf16>
    %f = tt.descriptor_load %b[%k, %c0] : !tt.tensordesc<tensor<64x256xf16>> -> tensor<64x256xf16>
    %d = tt.dot %l, %f, %zero, inputPrecision = tf32 : tensor<128x64xf16> * tensor<64x256xf16> -> tensor<128x256xf32>
    %is_below = arith.cmpi sge, %r2, %n2 : tensor<128x256xi32>
    %kept = arith.select %is_below, %d, %zero : tensor<128x256xi1>, tensor<128x256xf32>
    %next = arith.addf %sum, %kept : tensor<128x256xf32>
    scf.yield %next : tensor<128x256xf32>
  }
  %first = arith.muli %m, %c256 : i32
  %p = tt.addptr %c, %first : !tt.ptr<f32>, i32
  %w = arith.constant dense<256> : tensor<128x256xi32>
  %rows = arith.muli %r2, %w : tensor<128x256xi32>
  %at = arith.addi %rows, %n2 : tensor<128x256xi32>
  %q = tt.splat %p : !tt.ptr<f32> -> tensor<128x256x!tt.ptr<f32>>
  %s = tt.addptr %q, %at : tensor<128x256x!tt.ptr<f32>>, tensor<128x256xi32>
  tt.store %s, %all : tensor<128x256x!tt.ptr<f32>>
  tt.return
}

// -----

// Here the second loop loads what the first does not, so each block computes one program.
// CHECK-LABEL: @other_loads
// CHECK-NOT: get_num_programs
tt.func public @other_loads(%a: !tt.tensordesc<tensor<128x64xf16>>, %b: !tt.tensordesc<tensor<64x128xf16>>, %c: !tt.tensordesc<tensor<128x128xf32>>, %K: i32) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %x = tt.get_program_id x : i32
  %first = scf.for %k = %c0 to %K step %c64 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
    %l = tt.descriptor_load %a[%x, %k] : !tt.tensordesc<tensor<128x64xf16>> -> tensor<128x64xf16>
    %r = tt.descriptor_load %b[%k, %c0] : !tt.tensordesc<tensor<64x128xf16>> -> tensor<64x128xf16>
    %next = tt.dot %l, %r, %acc, inputPrecision = tf32 : tensor<128x64xf16> * tensor<64x128xf16> -> tensor<128x128xf32>
    scf.yield %next : tensor<128x128xf32>
  }
  %all = scf.for %k = %c0 to %K step %c64 iter_args(%acc = %first) -> (tensor<128x128xf32>) : i32 {
    %l = tt.descriptor_load %a[%x, %k] : !tt.tensordesc<tensor<128x64xf16>> -> tensor<128x64xf16>
    %r = tt.descriptor_load %b[%k, %c0] : !tt.tensordesc<tensor<64x128xf16>> -> tensor<64x128xf16>
    %once = tt.dot %l, %r, %acc, inputPrecision = tf32 : tensor<128x64xf16> * tensor<64x128xf16> -> tensor<128x128xf32>
    %again = tt.descriptor_load %a[%k, %x] : !tt.tensordesc<tensor<128x64xf16>> -> tensor<128x64xf16>
    %next = tt.dot %again, %r, %once, inputPrecision = tf32 : tensor<128x64xf16> * tensor<64x128xf16> -> tensor<128x128xf32>
    scf.yield %next : tensor<128x128xf32>
  }
  tt.descriptor_store %c[%x, %c0], %all : !tt.tensordesc<tensor<128x128xf32>>, tensor<128x128xf32>
  tt.return
}
