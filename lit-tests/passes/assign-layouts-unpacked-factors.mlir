// RUN: llopt compile %s --target cuda:90 --num-warps 8 --num-stages 4 --emit ttgir -o - | FileCheck %s

// Weights of one bit, of which several warps could unpack the same ones: to shift, mask, convert and scale each of them twice would take
// longer than the product. So each is computed once, and warp groups take them from shared memory.
// CHECK-LABEL: @rows_64(
// CHECK: %[[UNPACKED:.*]] = math.fma {{.*}} : tensor<64x64xf16
// CHECK: %[[STORED:.*]] = ttg.local_alloc %[[UNPACKED]]
// CHECK: ttng.warp_group_dot %{{.*}}, %[[STORED]]
tt.func public @rows_64(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %b: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %s: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}, %steps: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zeros = arith.constant dense<0.0> : tensor<64x64xf32>
  %i = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %i1 = tt.expand_dims %i {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %i0 = tt.expand_dims %i {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %per_word = arith.constant dense<32> : tensor<64x1xi32>
  %word = arith.divsi %i1, %per_word : tensor<64x1xi32>
  %bits = arith.remsi %i1, %per_word : tensor<64x1xi32>
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
  %ss = tt.splat %s : !tt.ptr<f16> -> tensor<1x64x!tt.ptr<f16>>
  %of_s = tt.addptr %ss, %i0 : tensor<1x64x!tt.ptr<f16>>, tensor<1x64xi32>
  %c2 = arith.constant 2 : i32
  %next_words = arith.muli %n, %c2 : i32
  %next_b = tt.splat %next_words : i32 -> tensor<64x64xi32>
  %next_a = arith.constant dense<64> : tensor<64x64xi32>
  %mask = arith.constant dense<1> : tensor<64x64xi32>
  %r:3 = scf.for %k = %c0 to %steps step %c1 iter_args(%pb = %first_b, %pa = %first_a, %sum = %zeros) -> (tensor<64x64x!tt.ptr<i32>>, tensor<64x64x!tt.ptr<f16>>, tensor<64x64xf32>) : i32 {
    %words = tt.load %pb : tensor<64x64x!tt.ptr<i32>>
    %x = tt.load %pa : tensor<64x64x!tt.ptr<f16>>
    %at = arith.muli %k, %n : i32
    %ats = tt.splat %at : i32 -> tensor<1x64xi32>
    %ps = tt.addptr %of_s, %ats : tensor<1x64x!tt.ptr<f16>>, tensor<1x64xi32>
    %scale = tt.load %ps : tensor<1x64x!tt.ptr<f16>>
    %scales = tt.broadcast %scale : tensor<1x64xf16> -> tensor<64x64xf16>
    %shifted = arith.shrsi %words, %shift : tensor<64x64xi32>
    %codes = arith.andi %shifted, %mask : tensor<64x64xi32>
    %y = arith.sitofp %codes : tensor<64x64xi32> to tensor<64x64xf16>
    %w = math.fma %y, %scales, %scales : tensor<64x64xf16>
    %d = tt.dot %x, %w, %sum : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    %qb = tt.addptr %pb, %next_b : tensor<64x64x!tt.ptr<i32>>, tensor<64x64xi32>
    %qa = tt.addptr %pa, %next_a : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
    scf.yield %qb, %qa, %d : tensor<64x64x!tt.ptr<i32>>, tensor<64x64x!tt.ptr<f16>>, tensor<64x64xf32>
  }
  %os = tt.splat %o : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
  %to = tt.addptr %os, %of_a : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
  tt.store %to, %r#2 : tensor<64x64x!tt.ptr<f32>>
  tt.return
}

// Sixteen rows by eight warps, all of which read all of the first factor: eight times what a thread loads of it. Copies bring it, the
// words, and the scales, although some of these tensors have fewer elements than there are threads.
// CHECK-LABEL: @rows_16(
// CHECK: scf.for
// CHECK-NOT: tt.load
// CHECK-DAG: ttg.async_copy_global_to_local {{.*}} -> <16x32xf16
// CHECK-DAG: ttg.async_copy_global_to_local {{.*}} -> <1x128xi32
// CHECK-DAG: ttg.async_copy_global_to_local {{.*}} -> <1x128xf16
// CHECK: tt.dot
// CHECK: scf.yield
tt.func public @rows_16(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %b: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %s: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}, %steps: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zeros = arith.constant dense<0.0> : tensor<16x128xf32>
  %m = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %i = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %j = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %m1 = tt.expand_dims %m {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %i1 = tt.expand_dims %i {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %i0 = tt.expand_dims %i {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %j0 = tt.expand_dims %j {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %shift = tt.broadcast %i1 : tensor<32x1xi32> -> tensor<32x128xi32>
  %columns = tt.broadcast %j0 : tensor<1x128xi32> -> tensor<32x128xi32>
  %bs = tt.splat %b : !tt.ptr<i32> -> tensor<32x128x!tt.ptr<i32>>
  %first_b = tt.addptr %bs, %columns : tensor<32x128x!tt.ptr<i32>>, tensor<32x128xi32>
  %stride = tt.splat %n : i32 -> tensor<16x1xi32>
  %a_row = arith.muli %m1, %stride : tensor<16x1xi32>
  %a_rows = tt.broadcast %a_row : tensor<16x1xi32> -> tensor<16x32xi32>
  %a_columns = tt.broadcast %i0 : tensor<1x32xi32> -> tensor<16x32xi32>
  %of_a = arith.addi %a_rows, %a_columns : tensor<16x32xi32>
  %as = tt.splat %a : !tt.ptr<f16> -> tensor<16x32x!tt.ptr<f16>>
  %first_a = tt.addptr %as, %of_a : tensor<16x32x!tt.ptr<f16>>, tensor<16x32xi32>
  %ss = tt.splat %s : !tt.ptr<f16> -> tensor<1x128x!tt.ptr<f16>>
  %of_s = tt.addptr %ss, %j0 : tensor<1x128x!tt.ptr<f16>>, tensor<1x128xi32>
  %next_b = tt.splat %n : i32 -> tensor<32x128xi32>
  %next_a = arith.constant dense<32> : tensor<16x32xi32>
  %mask = arith.constant dense<1> : tensor<32x128xi32>
  %r:3 = scf.for %k = %c0 to %steps step %c1 iter_args(%pb = %first_b, %pa = %first_a, %sum = %zeros) -> (tensor<32x128x!tt.ptr<i32>>, tensor<16x32x!tt.ptr<f16>>, tensor<16x128xf32>) : i32 {
    %words = tt.load %pb : tensor<32x128x!tt.ptr<i32>>
    %x = tt.load %pa : tensor<16x32x!tt.ptr<f16>>
    %at = arith.muli %k, %n : i32
    %ats = tt.splat %at : i32 -> tensor<1x128xi32>
    %ps = tt.addptr %of_s, %ats : tensor<1x128x!tt.ptr<f16>>, tensor<1x128xi32>
    %scale = tt.load %ps : tensor<1x128x!tt.ptr<f16>>
    %scales = tt.broadcast %scale : tensor<1x128xf16> -> tensor<32x128xf16>
    %shifted = arith.shrsi %words, %shift : tensor<32x128xi32>
    %codes = arith.andi %shifted, %mask : tensor<32x128xi32>
    %y = arith.sitofp %codes : tensor<32x128xi32> to tensor<32x128xf16>
    %w = math.fma %y, %scales, %scales : tensor<32x128xf16>
    %d = tt.dot %x, %w, %sum : tensor<16x32xf16> * tensor<32x128xf16> -> tensor<16x128xf32>
    %qb = tt.addptr %pb, %next_b : tensor<32x128x!tt.ptr<i32>>, tensor<32x128xi32>
    %qa = tt.addptr %pa, %next_a : tensor<16x32x!tt.ptr<f16>>, tensor<16x32xi32>
    scf.yield %qb, %qa, %d : tensor<32x128x!tt.ptr<i32>>, tensor<16x32x!tt.ptr<f16>>, tensor<16x128xf32>
  }
  %o_row = tt.broadcast %a_row : tensor<16x1xi32> -> tensor<16x128xi32>
  %o_column = tt.broadcast %j0 : tensor<1x128xi32> -> tensor<16x128xi32>
  %of_o = arith.addi %o_row, %o_column : tensor<16x128xi32>
  %os = tt.splat %o : !tt.ptr<f32> -> tensor<16x128x!tt.ptr<f32>>
  %to = tt.addptr %os, %of_o : tensor<16x128x!tt.ptr<f32>>, tensor<16x128xi32>
  tt.store %to, %r#2 : tensor<16x128x!tt.ptr<f32>>
  tt.return
}
