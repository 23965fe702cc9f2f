// RUN: llopt %s --distinct-loads --canonicalize --cse | FileCheck %s
// RUN: llopt compile %s --target cuda:90 --num-warps 4 --emit ttgir -o - | FileCheck %s --check-prefix=RING
// RUN: llopt compile %s --target hip:gfx942 --num-warps 4 --emit ttgir -o - | FileCheck %s --check-prefix=RING

// Weights of four bits: eight rows of a tile are the numbers of the same words, which the loop carries and loads once. The pointers
// to the words of all numbers are gone.
// CHECK-LABEL: @weights(
// CHECK-NOT: tensor<64x64x!tt.ptr<i32>>
// CHECK: scf.for {{.*}} -> (tensor<64x64x!tt.ptr<f16>>, tensor<64x64xf32>, tensor<8x64x!tt.ptr<i32>>)
// CHECK: %[[WORDS:.*]] = tt.load %{{.*}} : tensor<8x64x!tt.ptr<i32>>
// CHECK: %[[APART:.*]] = tt.expand_dims %[[WORDS]] {axis = 1 : i32}
// CHECK: %[[EACH:.*]] = tt.broadcast %[[APART]] : tensor<8x1x64xi32> -> tensor<8x8x64xi32>
// CHECK: tt.reshape %[[EACH]] : tensor<8x8x64xi32> -> tensor<64x64xi32>

// The ring of buffers has one copy of each word.
// RING-LABEL: @weights(
// RING-NOT: 64x64xi32, #{{[a-z0-9]+}}, #smem
// RING: ttg.local_alloc{{.*}} : () -> !ttg.memdesc<{{[0-9]+}}x8x64xi32
tt.func public @weights(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %b: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}, %steps: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %zeros = arith.constant dense<0.0> : tensor<64x64xf32>
  %i = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %i1 = tt.expand_dims %i {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %i0 = tt.expand_dims %i {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %eight = arith.constant dense<8> : tensor<64x1xi32>
  %word = arith.divsi %i1, %eight : tensor<64x1xi32>
  %in_word = arith.remsi %i1, %eight : tensor<64x1xi32>
  %four = arith.constant dense<4> : tensor<64x1xi32>
  %bits = arith.muli %in_word, %four : tensor<64x1xi32>
  %shift = tt.broadcast %bits : tensor<64x1xi32> -> tensor<64x64xi32>
  %stride = tt.splat %n : i32 -> tensor<64x1xi32>
  %row = arith.muli %word, %stride : tensor<64x1xi32>
  %rows = tt.broadcast %row : tensor<64x1xi32> -> tensor<64x64xi32>
  %columns = tt.broadcast %i0 : tensor<1x64xi32> -> tensor<64x64xi32>
  %of_b = arith.addi %rows, %columns : tensor<64x64xi32>
  %bs = tt.splat %b : !tt.ptr<i32> -> tensor<64x64x!tt.ptr<i32>>
  %first_b = tt.addptr %bs, %of_b : tensor<64x64x!tt.ptr<i32>>, tensor<64x64xi32>
  %a_row = arith.muli %i1, %stride : tensor<64x1xi32>
  %a_rows = tt.broadcast %a_row : tensor<64x1xi32> -> tensor<64x64xi32>
  %of_a = arith.addi %a_rows, %columns : tensor<64x64xi32>
  %as = tt.splat %a : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
  %first_a = tt.addptr %as, %of_a : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
  %next_words = arith.muli %n, %c8 : i32
  %next_b = tt.splat %next_words : i32 -> tensor<64x64xi32>
  %next_a = arith.constant dense<64> : tensor<64x64xi32>
  %mask = arith.constant dense<15> : tensor<64x64xi32>
  %r:3 = scf.for %k = %c0 to %steps step %c1 iter_args(%pb = %first_b, %pa = %first_a, %sum = %zeros) -> (tensor<64x64x!tt.ptr<i32>>, tensor<64x64x!tt.ptr<f16>>, tensor<64x64xf32>) : i32 {
    %words = tt.load %pb : tensor<64x64x!tt.ptr<i32>>
    %x = tt.load %pa : tensor<64x64x!tt.ptr<f16>>
    %shifted = arith.shrui %words, %shift : tensor<64x64xi32>
    %codes = arith.andi %shifted, %mask : tensor<64x64xi32>
    %y = arith.sitofp %codes : tensor<64x64xi32> to tensor<64x64xf16>
    %d = tt.dot %x, %y, %sum : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    %qb = tt.addptr %pb, %next_b : tensor<64x64x!tt.ptr<i32>>, tensor<64x64xi32>
    %qa = tt.addptr %pa, %next_a : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
    scf.yield %qb, %qa, %d : tensor<64x64x!tt.ptr<i32>>, tensor<64x64x!tt.ptr<f16>>, tensor<64x64xf32>
  }
  %os = tt.splat %o : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
  %to = tt.addptr %os, %of_a : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
  tt.store %to, %r#2 : tensor<64x64x!tt.ptr<f32>>
  tt.return
}

// One scale for each row: a column is loaded, and repeated.
// CHECK-LABEL: @whole_rows(
// CHECK: %[[SCALE:.*]] = tt.load %{{.*}} : tensor<16x1x!tt.ptr<f32>>
// CHECK: tt.broadcast %[[SCALE]] : tensor<16x1xf32> -> tensor<16x128xf32>
tt.func public @whole_rows(%s: !tt.ptr<f32>, %o: tensor<16x128x!tt.ptr<f32>>) {
  %i = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %i1 = tt.expand_dims %i {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %rows = tt.broadcast %i1 : tensor<16x1xi32> -> tensor<16x128xi32>
  %base = tt.splat %s : !tt.ptr<f32> -> tensor<16x128x!tt.ptr<f32>>
  %p = tt.addptr %base, %rows : tensor<16x128x!tt.ptr<f32>>, tensor<16x128xi32>
  %x = tt.load %p : tensor<16x128x!tt.ptr<f32>>
  tt.store %o, %x : tensor<16x128x!tt.ptr<f32>>
  tt.return
}

// Two halves of each byte, with a mask that does not change within a byte either, since the bound is even; and rows of a table that
// another load finds, of which two neighbours are the same.
// CHECK-LABEL: @indirect(
// CHECK: %[[MASK:.*]] = arith.cmpi slt, %{{.*}}, %{{.*}} : tensor<64xi32>
// CHECK: %[[ROW:.*]] = tt.load %{{.*}}, %[[MASK]], %{{.*}} : tensor<64x!tt.ptr<i32>>
// CHECK: %[[AT:.*]] = tt.addptr %{{.*}}, %[[ROW]] : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
// CHECK: tt.load %[[AT]] : tensor<64x!tt.ptr<f32>>
tt.func public @indirect(%rows: !tt.ptr<i32>, %t: !tt.ptr<f32>, %n: i32 {tt.divisibility = 16 : i32}, %o: tensor<128x!tt.ptr<f32>>) {
  %i = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %two = arith.constant dense<2> : tensor<128xi32>
  %none = arith.constant dense<0> : tensor<128xi32>
  %half = arith.divsi %i, %two : tensor<128xi32>
  %end = tt.splat %n : i32 -> tensor<128xi32>
  %mask = arith.cmpi slt, %i, %end : tensor<128xi32>
  %base = tt.splat %rows : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>>
  %p = tt.addptr %base, %half : tensor<128x!tt.ptr<i32>>, tensor<128xi32>
  %row = tt.load %p, %mask, %none : tensor<128x!tt.ptr<i32>>
  %table = tt.splat %t : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
  %at = tt.addptr %table, %row : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %x = tt.load %at : tensor<128x!tt.ptr<f32>>
  tt.store %o, %x : tensor<128x!tt.ptr<f32>>
  tt.return
}

// Loads stay as they are where the mask may change within a word, where it is volatile, and where addresses come from outside.
// CHECK-LABEL: @others(
// CHECK-COUNT-2: tt.load {{.*}} : tensor<128x!tt.ptr<i32>>
// CHECK: tt.load {{.*}} : tensor<128x!tt.ptr<f32>>
tt.func public @others(%b: !tt.ptr<i32>, %n: i32, %from: tensor<128x!tt.ptr<f32>>, %o: tensor<128x!tt.ptr<i32>>, %of: tensor<128x!tt.ptr<f32>>) {
  %i = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %two = arith.constant dense<2> : tensor<128xi32>
  %none = arith.constant dense<0> : tensor<128xi32>
  %half = arith.divsi %i, %two : tensor<128xi32>
  %end = tt.splat %n : i32 -> tensor<128xi32>
  %mask = arith.cmpi slt, %i, %end : tensor<128xi32>
  %base = tt.splat %b : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>>
  %p = tt.addptr %base, %half : tensor<128x!tt.ptr<i32>>, tensor<128xi32>
  %x = tt.load %p, %mask, %none : tensor<128x!tt.ptr<i32>>
  %y = tt.load %p {isVolatile = true} : tensor<128x!tt.ptr<i32>>
  %z = tt.load %from : tensor<128x!tt.ptr<f32>>
  %sum = arith.addi %x, %y : tensor<128xi32>
  tt.store %o, %sum : tensor<128x!tt.ptr<i32>>
  tt.store %of, %z : tensor<128x!tt.ptr<f32>>
  tt.return
}
