// RUN: llopt %s --print-axis-info --split-input-file --verify-diagnostics -o /dev/null

// What the arguments of a kernel promise, and a vector access of the usual kind.

tt.func public @masked_vector(%base: !tt.ptr<f16> {tt.divisibility = 16 : i32},
                              %n: i32 {tt.divisibility = 16 : i32}) {
  // expected-remark @below {{contiguity = [1], divisibility = [1024], constancy = [1], constant_value = 1024}}
  %block = arith.constant 1024 : i32
  // expected-remark @below {{contiguity = [1], divisibility = [1], constancy = [1], constant_value = <none>}}
  %program = tt.get_program_id x : i32
  // expected-remark @below {{contiguity = [1], divisibility = [1024], constancy = [1], constant_value = <none>}}
  %start = arith.muli %program, %block : i32
  // expected-remark @below {{contiguity = [1024], divisibility = [4611686018427387904], constancy = [1], constant_value = <none>}}
  %range = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  // expected-remark @below {{contiguity = [1], divisibility = [1024], constancy = [1024], constant_value = <none>}}
  %starts = tt.splat %start : i32 -> tensor<1024xi32>
  // expected-remark @below {{contiguity = [1024], divisibility = [1024], constancy = [1], constant_value = <none>}}
  %offsets = arith.addi %starts, %range : tensor<1024xi32>
  // expected-remark @below {{contiguity = [1], divisibility = [16], constancy = [1024], constant_value = <none>}}
  %bound = tt.splat %n : i32 -> tensor<1024xi32>
  // expected-remark @below {{contiguity = [1], divisibility = [1], constancy = [16], constant_value = <none>}}
  %mask = arith.cmpi slt, %offsets, %bound : tensor<1024xi32>
  // expected-remark @below {{contiguity = [1], divisibility = [16], constancy = [1024], constant_value = <none>}}
  %bases = tt.splat %base : !tt.ptr<f16> -> tensor<1024x!tt.ptr<f16>>
  // expected-remark @below {{contiguity = [1024], divisibility = [16], constancy = [1], constant_value = <none>}}
  %pointers = tt.addptr %bases, %offsets : tensor<1024x!tt.ptr<f16>>, tensor<1024xi32>
  // expected-remark @below {{contiguity = [1], divisibility = [1], constancy = [1], constant_value = <none>}}
  %loaded = tt.load %pointers, %mask : tensor<1024x!tt.ptr<f16>>
  tt.return
}

// -----

// Two dimensions: rows of unknown stride.

tt.func public @rows(%base: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %stride: i32) {
  // expected-remark @below {{contiguity = [64], divisibility = [4611686018427387904], constancy = [1], constant_value = <none>}}
  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  // expected-remark @below {{contiguity = [64, 1], divisibility = [4611686018427387904, 1], constancy = [1, 1], constant_value = <none>}}
  %row = tt.expand_dims %r {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  // expected-remark @below {{contiguity = [1, 64], divisibility = [1, 4611686018427387904], constancy = [1, 1], constant_value = <none>}}
  %column = tt.expand_dims %r {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  // expected-remark @below {{contiguity = [1, 1], divisibility = [1, 1], constancy = [64, 1], constant_value = <none>}}
  %strides = tt.splat %stride : i32 -> tensor<64x1xi32>
  // expected-remark @below {{contiguity = [1, 1], divisibility = [1, 1], constancy = [1, 1], constant_value = <none>}}
  %starts = arith.muli %row, %strides : tensor<64x1xi32>
  // expected-remark @below {{contiguity = [1, 1], divisibility = [1, 1], constancy = [1, 64], constant_value = <none>}}
  %left = tt.broadcast %starts : tensor<64x1xi32> -> tensor<64x64xi32>
  // expected-remark @below {{contiguity = [1, 64], divisibility = [1, 4611686018427387904], constancy = [64, 1], constant_value = <none>}}
  %right = tt.broadcast %column : tensor<1x64xi32> -> tensor<64x64xi32>
  // expected-remark @below {{contiguity = [1, 64], divisibility = [1, 1], constancy = [1, 1], constant_value = <none>}}
  %offsets = arith.addi %left, %right : tensor<64x64xi32>
  // expected-remark @below {{contiguity = [1, 1], divisibility = [16, 16], constancy = [64, 64], constant_value = <none>}}
  %bases = tt.splat %base : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
  // expected-remark @below {{contiguity = [1, 64], divisibility = [4, 4], constancy = [1, 1], constant_value = <none>}}
  %pointers = tt.addptr %bases, %offsets : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
  // expected-remark @below {{contiguity = [64, 1], divisibility = [4, 4], constancy = [1, 1], constant_value = <none>}}
  %turned = tt.trans %pointers {order = array<i32: 1, 0>} : tensor<64x64x!tt.ptr<f32>> -> tensor<64x64x!tt.ptr<f32>>
  tt.return
}

// -----

// A loop: the induction variable is divisible by what divides its start and its step, and a carried
// pointer by what divides the pointer and its advance.

tt.func public @loop(%base: !tt.ptr<f32> {tt.divisibility = 32 : i32}, %n: i32) {
  // expected-remark @below {{divisibility = [32], constancy = [1], constant_value = 32}}
  %start = arith.constant 32 : i32
  // expected-remark @below {{divisibility = [8], constancy = [1], constant_value = 8}}
  %step = arith.constant 8 : i32
  // expected-remark @below {{constant_value = 4}}
  %four = arith.constant 4 : i32
  // expected-remark @below {{contiguity = [1], divisibility = [16], constancy = [1], constant_value = <none>}}
  %end = scf.for %i = %start to %n step %step iter_args(%p = %base) -> (!tt.ptr<f32>) : i32 {
    // expected-remark @below {{contiguity = [1], divisibility = [4], constancy = [1], constant_value = <none>}}
    %j = arith.addi %i, %four : i32
    // expected-remark @below {{contiguity = [1], divisibility = [16], constancy = [1], constant_value = <none>}}
    %next = tt.addptr %p, %four : !tt.ptr<f32>, i32
    scf.yield %next : !tt.ptr<f32>
  }
  tt.return
}

// -----

// Control flow of other kinds: a value is what holds of all that may reach it.

tt.func public @joins(%condition: i1, %n: i32 {tt.divisibility = 8 : i32}) {
  // expected-remark @below {{constant_value = 64}}
  %a = arith.constant 64 : i32
  // expected-remark @below {{constant_value = 48}}
  %b = arith.constant 48 : i32
  // expected-remark @below {{contiguity = [1], divisibility = [16], constancy = [1], constant_value = <none>}}
  %either = scf.if %condition -> i32 {
    scf.yield %a : i32
  } else {
    scf.yield %b : i32
  }
  // expected-remark @below {{contiguity = [1], divisibility = [8], constancy = [1], constant_value = <none>}}
  %last = scf.while (%x = %either) : (i32) -> i32 {
    // expected-remark @below {{constant_value = <none>}}
    %more = arith.cmpi slt, %x, %n : i32
    scf.condition(%more) %x : i32
  } do {
  ^bb0(%y: i32):
    // expected-remark @below {{contiguity = [1], divisibility = [8], constancy = [1], constant_value = <none>}}
    %z = arith.addi %y, %n : i32
    scf.yield %z : i32
  }
  cf.cond_br %condition, ^one(%a : i32), ^two
^one(%from: i32):
  // expected-remark @below {{contiguity = [1], divisibility = [32], constancy = [1], constant_value = <none>}}
  %promised = arith.addi %from, %n {tt.divisibility = 32 : i32} : i32
  cf.br ^two
^two:
  tt.return
}

// -----

// A private function sees what all its callers pass, and they see what it returns.

tt.func private @advance(%p: !tt.ptr<i32>, %by: i32) -> !tt.ptr<i32> {
  // expected-remark @below {{contiguity = [1], divisibility = [8], constancy = [1], constant_value = <none>}}
  %q = tt.addptr %p, %by : !tt.ptr<i32>, i32
  tt.return %q : !tt.ptr<i32>
}

tt.func public @caller(%p: !tt.ptr<i32> {tt.divisibility = 16 : i32}) {
  // expected-remark @below {{constant_value = 4}}
  %four = arith.constant 4 : i32
  // expected-remark @below {{constant_value = 2}}
  %two = arith.constant 2 : i32
  // expected-remark @below {{contiguity = [1], divisibility = [8], constancy = [1], constant_value = <none>}}
  %q = tt.call @advance(%p, %four) : (!tt.ptr<i32>, i32) -> !tt.ptr<i32>
  // expected-remark @below {{contiguity = [1], divisibility = [8], constancy = [1], constant_value = <none>}}
  %r = tt.call @advance(%p, %two) : (!tt.ptr<i32>, i32) -> !tt.ptr<i32>
  tt.return
}

// -----

// Division and remainder of what may be negative say less than of what may not; rows and columns of
// a flat index.

tt.func public @flat_index(%shift: i32 {tt.divisibility = 16 : i32}) {
  // expected-remark @below {{contiguity = [256]}}
  %r = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
  // expected-remark @below {{constant_value = 32}}
  %width = arith.constant dense<32> : tensor<256xi32>
  // expected-remark @below {{contiguity = [1], divisibility = [1], constancy = [32], constant_value = <none>}}
  %row = arith.divsi %r, %width : tensor<256xi32>
  // expected-remark @below {{contiguity = [32], divisibility = [32], constancy = [1], constant_value = <none>}}
  %column = arith.remsi %r, %width : tensor<256xi32>
  // expected-remark @below {{divisibility = [16], constancy = [256]}}
  %shifts = tt.splat %shift : i32 -> tensor<256xi32>
  // expected-remark @below {{contiguity = [256], divisibility = [16], constancy = [1], constant_value = <none>}}
  %moved = arith.addi %r, %shifts : tensor<256xi32>
  // expected-remark @below {{contiguity = [1], divisibility = [1], constancy = [1], constant_value = <none>}}
  %unsure = arith.divsi %moved, %width : tensor<256xi32>
  // expected-remark @below {{contiguity = [1], divisibility = [1], constancy = [16], constant_value = <none>}}
  %sure = arith.divui %moved, %width : tensor<256xi32>
  tt.return
}

// -----

// A program's number over the tiles of a group counts tiles: the columns of the tile stay contiguous where they wrap.

tt.func public @columns_of_tile(%tiles: i32, %columns: i32 {tt.divisibility = 16 : i32}) {
  // expected-remark @below {{contiguity = [1]}}
  %program = tt.get_program_id x : i32
  // expected-remark @below {{contiguity = [1]}}
  %tile = arith.divsi %program, %tiles : i32
  // expected-remark @below {{constant_value = 64}}
  %width = arith.constant 64 : i32
  // expected-remark @below {{divisibility = [64]}}
  %first = arith.muli %tile, %width : i32
  // expected-remark @below {{constancy = [64]}}
  %start = tt.splat %first : i32 -> tensor<64xi32>
  // expected-remark @below {{contiguity = [64]}}
  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  // expected-remark @below {{contiguity = [64], divisibility = [64]}}
  %all = arith.addi %start, %r : tensor<64xi32>
  // expected-remark @below {{constancy = [64]}}
  %extent = tt.splat %columns : i32 -> tensor<64xi32>
  // expected-remark @below {{contiguity = [16], divisibility = [16], constancy = [1], constant_value = <none>}}
  %wrapped = arith.remsi %all, %extent : tensor<64xi32>
  tt.return
}

// -----

// Rearranging elements.

tt.func public @rearranged() {
  // expected-remark @below {{contiguity = [64], divisibility = [64]}}
  %r = tt.make_range {start = 64 : i32, end = 128 : i32} : tensor<64xi32>
  // expected-remark @below {{contiguity = [1, 16], divisibility = [1, 16], constancy = [1, 1], constant_value = <none>}}
  %tile = tt.reshape %r : tensor<64xi32> -> tensor<4x16xi32>
  // expected-remark @below {{contiguity = [1], divisibility = [1], constancy = [1], constant_value = <none>}}
  %shuffled = tt.reshape %tile allow_reorder : tensor<4x16xi32> -> tensor<64xi32>
  // expected-remark @below {{contiguity = [1, 16, 1], divisibility = [1, 16, 1], constancy = [1, 1, 1], constant_value = <none>}}
  %pair = tt.join %tile, %tile : tensor<4x16xi32> -> tensor<4x16x2xi32>
  // expected-remark @below {{result 0: contiguity = [1, 16], divisibility = [1, 16], constancy = [1, 1], constant_value = <none>}}
  // expected-remark @below {{result 1: contiguity = [1, 16], divisibility = [1, 16], constancy = [1, 1], constant_value = <none>}}
  %one, %other = tt.split %pair : tensor<4x16x2xi32> -> tensor<4x16xi32>
  tt.return
}

// -----

// Integers as addresses and back: neighbours are then a pointee apart.

tt.func public @as_integers(%base: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  // expected-remark @below {{contiguity = [32]}}
  %r = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  // expected-remark @below {{divisibility = [16], constancy = [32]}}
  %bases = tt.splat %base : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
  // expected-remark @below {{contiguity = [32], divisibility = [16]}}
  %pointers = tt.addptr %bases, %r : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
  // expected-remark @below {{contiguity = [1], divisibility = [4], constancy = [1], constant_value = <none>}}
  %numbers = tt.ptr_to_int %pointers : tensor<32x!tt.ptr<f32>> -> tensor<32xi64>
  // expected-remark @below {{contiguity = [1], divisibility = [4], constancy = [1], constant_value = <none>}}
  %bytes = tt.bitcast %pointers : tensor<32x!tt.ptr<f32>> -> tensor<32x!tt.ptr<i8>>
  tt.return
}
