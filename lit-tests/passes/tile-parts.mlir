// RUN: llopt %s --split-input-file --tile-parts=parts=2 | FileCheck %s --check-prefix=PARTS
// RUN: llopt %s --split-input-file --tile-parts=rows=16 | FileCheck %s --check-prefix=ROWS

// The columns of a tile are computed by two blocks, and a block computes 16 rows where the matrix has no more.

// Rows, columns and depths have the same range; only the columns get their own, which begins at the block's part. There
// are twice as many blocks as programs along x.
// PARTS: module attributes {"ttg.tile-parts" = 2 : i32}
// PARTS-LABEL: @product(
// PARTS: %[[TWO:.*]] = arith.constant 2 : i32
// PARTS: %[[BLOCK:.*]] = tt.get_program_id x
// PARTS: %[[PROGRAM:.*]] = arith.divui %[[BLOCK]], %[[TWO]]
// PARTS: %[[PART:.*]] = arith.remui %[[BLOCK]], %[[TWO]]
// PARTS: %[[WIDTH:.*]] = arith.constant 32 : i32
// PARTS: %[[FIRST:.*]] = arith.muli %[[PART]], %[[WIDTH]]
// PARTS: arith.muli %[[PROGRAM]]
// PARTS: %[[RANGE:.*]] = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
// PARTS: %[[FIRSTS:.*]] = tt.splat %[[FIRST]] : i32 -> tensor<32xi32>
// PARTS: %[[OWN:.*]] = arith.addi %[[RANGE]], %[[FIRSTS]]
// PARTS: tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
// PARTS: tt.expand_dims %[[OWN]] {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
// PARTS: scf.for {{.*}} -> (tensor<64x32xf32>
// PARTS: tt.load {{.*}} : tensor<64x64x!tt.ptr<f16>>
// PARTS: tt.load {{.*}} : tensor<64x32x!tt.ptr<f16>>
// PARTS: tt.dot {{.*}} tensor<64x64xf16> * tensor<64x32xf16> -> tensor<64x32xf32>
// PARTS: tt.store {{.*}} : tensor<64x32x!tt.ptr<f32>>

// With 16 rows or fewer from the first one on, 16 are computed; otherwise all, by a loop that is not pipelined.
// ROWS-LABEL: @product(
// ROWS: %[[START:.*]] = arith.muli
// ROWS-DAG: %[[END64:.*]] = arith.extsi %arg3 : i32 to i64
// ROWS-DAG: %[[START64:.*]] = arith.extsi %[[START]] : i32 to i64
// ROWS: %[[INSIDE:.*]] = arith.subi %[[END64]], %[[START64]]
// ROWS: %[[MOST:.*]] = arith.constant 17 : i64
// ROWS: arith.cmpi slt, %[[INSIDE]], %[[MOST]]
// ROWS: %[[FARTHEST:.*]] = arith.constant 2147483583 : i64
// ROWS: arith.cmpi slt, %[[START64]], %[[FARTHEST]]
// ROWS: scf.if
// ROWS: tt.dot {{.*}} tensor<16x64xf16> * tensor<64x64xf16> -> tensor<16x64xf32>
// ROWS: tt.store {{.*}} : tensor<16x64x!tt.ptr<f32>>
// ROWS: } else {
// ROWS: tt.dot {{.*}} tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
// ROWS: } {llopt.rare, tt.num_stages = 1 : i32}
// ROWS: tt.store {{.*}} : tensor<64x64x!tt.ptr<f32>>
// ROWS: } {llopt.rare, llopt.versions}
tt.func public @product(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %c: !tt.ptr<f32>, %m: i32, %k: i32) {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %deep = arith.constant dense<64> : tensor<64x64xi32>
  %program = tt.get_program_id x : i32
  %start = arith.muli %program, %c64 : i32
  %range = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %starts = tt.splat %start : i32 -> tensor<64xi32>
  %rows = arith.addi %starts, %range : tensor<64xi32>
  %row = tt.expand_dims %rows {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %column = tt.expand_dims %range {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %depth = tt.expand_dims %range {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %ks = tt.splat %k : i32 -> tensor<64x1xi32>
  %row_k = arith.muli %row, %ks : tensor<64x1xi32>
  %left_rows = tt.broadcast %row_k : tensor<64x1xi32> -> tensor<64x64xi32>
  %along = tt.expand_dims %range {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %left_depths = tt.broadcast %along : tensor<1x64xi32> -> tensor<64x64xi32>
  %left_offsets = arith.addi %left_rows, %left_depths : tensor<64x64xi32>
  %as = tt.splat %a : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
  %left = tt.addptr %as, %left_offsets : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
  %depth_k = arith.muli %depth, %ks : tensor<64x1xi32>
  %right_depths = tt.broadcast %depth_k : tensor<64x1xi32> -> tensor<64x64xi32>
  %right_columns = tt.broadcast %column : tensor<1x64xi32> -> tensor<64x64xi32>
  %right_offsets = arith.addi %right_depths, %right_columns : tensor<64x64xi32>
  %bs = tt.splat %b : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
  %right = tt.addptr %bs, %right_offsets : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
  %sum:2 = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero, %at = %left) -> (tensor<64x64xf32>, tensor<64x64x!tt.ptr<f16>>) : i32 {
    %x = tt.load %at : tensor<64x64x!tt.ptr<f16>>
    %y = tt.load %right : tensor<64x64x!tt.ptr<f16>>
    %next = tt.dot %x, %y, %acc : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    %then = tt.addptr %at, %deep : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
    scf.yield %next, %then : tensor<64x64xf32>, tensor<64x64x!tt.ptr<f16>>
  }
  %ms = tt.splat %m : i32 -> tensor<64x1xi32>
  %inside = arith.cmpi slt, %row, %ms : tensor<64x1xi32>
  %mask = tt.broadcast %inside : tensor<64x1xi1> -> tensor<64x64xi1>
  %places = arith.addi %left_rows, %right_columns : tensor<64x64xi32>
  %cs = tt.splat %c : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
  %out = tt.addptr %cs, %places : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
  tt.store %out, %sum#0, %mask : tensor<64x64x!tt.ptr<f32>>
  tt.return
}

// -----

// The sum of a row needs all of its columns, and all rows are stored.
// PARTS-LABEL: @sums(
// PARTS-NOT: ttg.tile-parts
// PARTS: tt.dot {{.*}} tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
// ROWS-LABEL: @sums(
// ROWS-NOT: scf.if
// ROWS: tt.dot {{.*}} tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
tt.func public @sums(%x: tensor<64x64xf16>, %c: !tt.ptr<f32>) {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %product = tt.dot %x, %x, %zero : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
  %sum = "tt.reduce"(%product) <{axis = 1 : i32}> ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    tt.reduce.return %r : f32
  }) : (tensor<64x64xf32>) -> tensor<64xf32>
  %range = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %cs = tt.splat %c : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %out = tt.addptr %cs, %range : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  tt.store %out, %sum : tensor<64x!tt.ptr<f32>>
  tt.return
}

// -----

// Without a loop over k, the loop over tiles is the one of the product, and only it knows where the rows of a tile begin.
// ROWS-LABEL: @several_tiles(
// ROWS-NOT: scf.if
// ROWS: tt.dot {{.*}} tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
tt.func public @several_tiles(%x: tensor<64x64xf16>, %c: !tt.ptr<f32>, %m: i32, %tiles: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %range = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  scf.for %tile = %c0 to %tiles step %c1 : i32 {
    %product = tt.dot %x, %x, %zero : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    %first = arith.muli %tile, %c64 : i32
    %firsts = tt.splat %first : i32 -> tensor<64xi32>
    %rows = arith.addi %firsts, %range : tensor<64xi32>
    %row = tt.expand_dims %rows {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %ms = tt.splat %m : i32 -> tensor<64x1xi32>
    %inside = arith.cmpi slt, %row, %ms : tensor<64x1xi32>
    %mask = tt.broadcast %inside : tensor<64x1xi1> -> tensor<64x64xi1>
    %places = tt.broadcast %row : tensor<64x1xi32> -> tensor<64x64xi32>
    %cs = tt.splat %c : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
    %out = tt.addptr %cs, %places : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
    tt.store %out, %product, %mask : tensor<64x64x!tt.ptr<f32>>
  }
  tt.return
}

// -----

// The body of a loop over programs is the program: it chooses where it knows the rows.
// ROWS-LABEL: @programs(
// ROWS: scf.for
// ROWS: scf.if
// ROWS: scf.for
// ROWS: tt.dot {{.*}} tensor<16x64xf16> * tensor<64x64xf16> -> tensor<16x64xf32>
// ROWS: tt.store {{.*}} : tensor<16x64x!tt.ptr<f32>>
// ROWS: } else {
// ROWS: tt.dot {{.*}} tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
// ROWS: tt.store {{.*}} : tensor<64x64x!tt.ptr<f32>>
// ROWS: } {llopt.rare, llopt.versions}
tt.func public @programs(%x: tensor<64x64xf16>, %c: !tt.ptr<f32>, %m: i32, %k: i32, %tiles: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %range = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %one = arith.constant dense<1.0> : tensor<64x64xf16>
  scf.for %tile = %c0 to %tiles step %c1 : i32 {
    %product = scf.for %i = %c0 to %k step %c1 iter_args(%sum = %zero) -> (tensor<64x64xf32>) : i32 {
      %next = tt.dot %one, %x, %sum : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %next : tensor<64x64xf32>
    }
    %first = arith.muli %tile, %c64 : i32
    %firsts = tt.splat %first : i32 -> tensor<64xi32>
    %rows = arith.addi %firsts, %range : tensor<64xi32>
    %row = tt.expand_dims %rows {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %ms = tt.splat %m : i32 -> tensor<64x1xi32>
    %inside = arith.cmpi slt, %row, %ms : tensor<64x1xi32>
    %mask = tt.broadcast %inside : tensor<64x1xi1> -> tensor<64x64xi1>
    %places = tt.broadcast %row : tensor<64x1xi32> -> tensor<64x64xi32>
    %cs = tt.splat %c : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
    %out = tt.addptr %cs, %places : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
    tt.store %out, %product, %mask : tensor<64x64x!tt.ptr<f32>>
  }
  tt.return
}

// -----

// Blocks of descriptors are as large as the part: the launcher takes their extents from the type. The store drops rows
// beyond those of its tensor, so few are computed if no more are inside; the version with all of them moves several blocks.
// PARTS: module attributes {"ttg.tile-parts" = 2 : i32}
// PARTS-LABEL: @blocks(%arg0: !tt.tensordesc<tensor<64x64xf16>>,
// PARTS-SAME: %arg5: !tt.tensordesc<tensor<32x64xf16>>,
// PARTS-SAME: %arg10: !tt.tensordesc<tensor<64x32xf16>>,
// PARTS: %[[FIRST:.*]] = arith.muli
// PARTS: tt.descriptor_load %arg0[%[[M:[a-z0-9_]+]], %{{.*}}] : {{.*}} -> tensor<64x64xf16>
// PARTS: %[[N:.*]] = arith.addi %{{.*}}, %[[FIRST]] : i32
// PARTS: tt.descriptor_load %arg5[%[[N]], %{{.*}}] : {{.*}} -> tensor<32x64xf16>
// PARTS: tt.dot {{.*}} tensor<64x64xf16> * tensor<64x32xf16> -> tensor<64x32xf32>
// PARTS: %[[N:.*]] = arith.addi %{{.*}}, %[[FIRST]] : i32
// PARTS: tt.descriptor_store %arg10[%[[M]], %[[N]]], {{.*}}, tensor<64x32xf16>
// ROWS-LABEL: @blocks(%arg0: !tt.tensordesc<tensor<16x64xf16>>,
// ROWS-SAME: %arg5: !tt.tensordesc<tensor<64x64xf16>>,
// ROWS-SAME: %arg10: !tt.tensordesc<tensor<16x64xf16>>, %[[END:arg11]]: i32
// ROWS: arith.extsi %[[END]] : i32 to i64
// ROWS: scf.if
// ROWS: tt.descriptor_load %arg0{{.*}} -> tensor<16x64xf16>
// ROWS: tt.descriptor_load %arg5{{.*}} -> tensor<64x64xf16>
// ROWS: tt.descriptor_store %arg10{{.*}}, tensor<16x64xf16>
// ROWS: } else {
// ROWS: tt.descriptor_load %arg0{{.*}} : !tt.tensordesc<tensor<16x64xf16>> -> tensor<64x64xf16>
// ROWS: tt.descriptor_store %arg10{{.*}} : !tt.tensordesc<tensor<16x64xf16>>, tensor<64x64xf16>
tt.func public @blocks(%a: !tt.tensordesc<tensor<64x64xf16>>, %a_m: i32, %a_k: i32, %a_s: i64, %a_1: i64,
    %b: !tt.tensordesc<tensor<64x64xf16>>, %b_n: i32, %b_k: i32, %b_s: i64, %b_1: i64,
    %c: !tt.tensordesc<tensor<64x64xf16>>, %c_m: i32, %c_n: i32, %c_s: i64, %c_1: i64, %k: i32) {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %px = tt.get_program_id x : i32
  %py = tt.get_program_id y : i32
  %m0 = arith.muli %py, %c64 : i32
  %n0 = arith.muli %px, %c64 : i32
  %sum = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %x = tt.descriptor_load %a[%m0, %i] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
    %y = tt.descriptor_load %b[%n0, %i] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
    %right = tt.trans %y {order = array<i32: 1, 0>} : tensor<64x64xf16> -> tensor<64x64xf16>
    %next = tt.dot %x, %right, %acc : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  %stored = arith.truncf %sum : tensor<64x64xf32> to tensor<64x64xf16>
  tt.descriptor_store %c[%m0, %n0], %stored : !tt.tensordesc<tensor<64x64xf16>>, tensor<64x64xf16>
  tt.return
}

// -----

// Rows of a block that the kernel also loads whole keep their length.
// PARTS-LABEL: @whole_rows(
// PARTS-NOT: ttg.tile-parts
// PARTS: tt.dot {{.*}} tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
tt.func public @whole_rows(%b: !tt.tensordesc<tensor<64x64xf16>>, %b_k: i32, %b_n: i32, %b_s: i64, %b_1: i64, %c: !tt.ptr<f32>, %k: i32) {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %px = tt.get_program_id x : i32
  %n0 = arith.muli %px, %c64 : i32
  %x = tt.descriptor_load %b[%c0, %c0] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
  %sum = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %y = tt.descriptor_load %b[%i, %n0] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
    %next = tt.dot %x, %y, %acc : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  %cs = tt.splat %c : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
  tt.store %cs, %sum : tensor<64x64x!tt.ptr<f32>>
  tt.return
}

// -----

// Where the extents of a tensor are not passed behind its descriptor, nobody knows how many rows it has.
// ROWS-LABEL: @unknown_extents(
// ROWS-NOT: scf.if
// ROWS: tt.dot {{.*}} tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
tt.func public @unknown_extents(%a: !tt.tensordesc<tensor<64x64xf16>>, %b: !tt.tensordesc<tensor<64x64xf16>>, %c: !tt.tensordesc<tensor<64x64xf32>>, %k: i32) {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %px = tt.get_program_id x : i32
  %n0 = arith.muli %px, %c64 : i32
  %sum = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %x = tt.descriptor_load %a[%c0, %i] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
    %y = tt.descriptor_load %b[%i, %n0] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
    %next = tt.dot %x, %y, %acc : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  tt.descriptor_store %c[%c0, %n0], %sum : !tt.tensordesc<tensor<64x64xf32>>, tensor<64x64xf32>
  tt.return
}
