// The blocks of a cluster share the iterations of a loop of products and add their sums.
//
// RUN: llopt %s --split-input-file --tritongpu-split-k=blocks=2 --canonicalize | FileCheck %s
// RUN: llopt %s --split-input-file --tritongpu-split-k=blocks=2 | llopt --split-input-file --tritongpu-split-k=blocks=1 | FileCheck %s --check-prefix=ONCE
// RUN: not llopt %s --split-input-file --tritongpu-split-k=blocks=3 2>&1 | FileCheck %s --check-prefix=THREE
// THREE: blocks is 3, not 1, 2, 4 or 8

// An unknown number of iterations: each block has ceil(n / 2), the last one what is left. Pointers begin where the part
// does, offsets are multiplied in 64 bits. Each block stores its rows.
// ONCE-COUNT-5: ttg.cluster-split
// CHECK: "ttg.cluster-split" = 2 : i32
// CHECK-LABEL: @stored(
// CHECK: %[[RANK:.+]] = ttng.cluster_rank : i32
// CHECK: %[[MORE:.+]] = arith.addi %{{.+}}, %c1{{.*}} : i32
// CHECK: %[[CHUNK:.+]] = arith.divui %[[MORE]], %c2{{.*}} : i32
// CHECK: %[[AT:.+]] = arith.muli %[[RANK]], %[[CHUNK]] : i32
// CHECK: %[[START:.+]] = arith.select %{{.+}}, %[[AT]], %{{.+}} : i32
// CHECK: %[[WIDE:.+]] = arith.extui %[[START]] : i32 to i64
// CHECK: %[[SKIPPED:.+]] = arith.muli %[[WIDE]], %c4096{{.*}} : i64
// CHECK: %[[SPREAD:.+]] = tt.splat %[[SKIPPED]]
// CHECK: %[[FIRST:.+]] = tt.addptr %{{.+}}, %[[SPREAD]] : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi64>
// CHECK: %[[R:.+]]:2 = scf.for %{{.+}} = %[[START]] to %{{.+}} step %{{.+}} iter_args(%{{.+}} = %[[FIRST]], %{{.+}} = %cst{{.*}})
// CHECK: %[[PART:.+]] = ttng.cluster_sum %[[R]]#1 : tensor<64x64xf32> -> tensor<32x64xf32>
// CHECK: arith.muli %[[RANK]], %c32{{.*}} : i32
// CHECK: tt.store %{{.+}}, %[[PART]] : tensor<32x64x!tt.ptr<f32>>
// CHECK-NOT: tt.store
module {
  tt.func public @stored(%a: !tt.ptr<f16>, %c: !tt.ptr<f32>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %width = arith.constant dense<64> : tensor<64x1xi32>
    %step = arith.constant dense<4096> : tensor<64x64xi32>
    %range = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %rows = tt.expand_dims %range {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %columns = tt.expand_dims %range {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %scaled = arith.muli %rows, %width : tensor<64x1xi32>
    %down = tt.broadcast %scaled : tensor<64x1xi32> -> tensor<64x64xi32>
    %across = tt.broadcast %columns : tensor<1x64xi32> -> tensor<64x64xi32>
    %offsets = arith.addi %down, %across : tensor<64x64xi32>
    %pa = tt.splat %a : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
    %qa = tt.addptr %pa, %offsets : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %qa, %acc = %zero) -> (tensor<64x64x!tt.ptr<f16>>, tensor<64x64xf32>) : i32 {
      %x = tt.load %p : tensor<64x64x!tt.ptr<f16>>
      %d = tt.dot %x, %x, %acc : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
      %np = tt.addptr %p, %step : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
      scf.yield %np, %d : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xf32>
    }
    %pc = tt.splat %c : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
    %qc = tt.addptr %pc, %offsets : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
    tt.store %qc, %r#1 : tensor<64x64x!tt.ptr<f32>>
    tt.return
  }
}

// -----

// A known, even number of iterations needs no bounds at run time. Only the first block begins with what is added to.
// CHECK: "ttg.cluster-split" = 2 : i32
// CHECK-LABEL: @known(
// CHECK: %[[RANK:.+]] = ttng.cluster_rank : i32
// CHECK-NOT: arith.divui
// CHECK: %[[START:.+]] = arith.muli %[[RANK]], %c8{{.*}} : i32
// CHECK: %[[END:.+]] = arith.addi %[[START]], %c8{{.*}} : i32
// CHECK: %[[IS:.+]] = arith.cmpi eq, %[[RANK]], %c0{{.*}} : i32
// CHECK: %[[INITIAL:.+]] = arith.select %[[IS]], %{{.+}}, %cst{{.*}} : tensor<32x32xf32>
// CHECK: scf.for %{{.+}} = %[[START]] to %[[END]] step %{{.+}} iter_args(%{{.+}} = %[[INITIAL]])
// CHECK: %[[PART:.+]] = ttng.cluster_sum %{{.+}} : tensor<32x32xf32> -> tensor<16x32xf32>
// CHECK: tt.store %{{.+}}, %[[PART]]
module {
  tt.func public @known(%x: tensor<32x32xf16>, %begin: tensor<32x32xf32>, %cb: !tt.ptr<f32>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c16 = arith.constant 16 : i32
    %r = scf.for %i = %c0 to %c16 step %c1 iter_args(%acc = %begin) -> (tensor<32x32xf32>) : i32 {
      %d = tt.dot %x, %x, %acc : tensor<32x32xf16> * tensor<32x32xf16> -> tensor<32x32xf32>
      scf.yield %d : tensor<32x32xf32>
    }
    %pc = tt.splat %cb : !tt.ptr<f32> -> tensor<32x32x!tt.ptr<f32>>
    tt.store %pc, %r : tensor<32x32x!tt.ptr<f32>>
    tt.return
  }
}

// -----

// Rows are summed after the loop: the first block does it alone, with the whole sum.
// CHECK: "ttg.cluster-split" = 2 : i32
// CHECK-LABEL: @whole(
// CHECK: %[[RANK:.+]] = ttng.cluster_rank : i32
// CHECK: %[[R:.+]] = scf.for
// CHECK: %[[WHOLE:.+]] = ttng.cluster_sum %[[R]] : tensor<32x32xf32> -> tensor<32x32xf32>
// CHECK: %[[IS:.+]] = arith.cmpi eq, %[[RANK]], %c0{{.*}} : i32
// CHECK: scf.if %[[IS]] {
// CHECK: "tt.reduce"(%[[WHOLE]])
// CHECK: tt.store
// CHECK: }
// CHECK-NEXT: tt.return
module {
  tt.func public @whole(%x: tensor<32x32xf16>, %c: tensor<32x!tt.ptr<f32>>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c16 = arith.constant 16 : i32
    %zero = arith.constant dense<0.0> : tensor<32x32xf32>
    %r = scf.for %i = %c0 to %c16 step %c1 iter_args(%acc = %zero) -> (tensor<32x32xf32>) : i32 {
      %d = tt.dot %x, %x, %acc : tensor<32x32xf16> * tensor<32x32xf16> -> tensor<32x32xf32>
      scf.yield %d : tensor<32x32xf32>
    }
    %s = "tt.reduce"(%r) <{axis = 1 : i32}> ({
    ^bb0(%p: f32, %q: f32):
      %o = arith.addf %p, %q : f32
      tt.reduce.return %o : f32
    }) : (tensor<32x32xf32>) -> tensor<32xf32>
    tt.store %c, %s : tensor<32x!tt.ptr<f32>>
    tt.return
  }
}

// -----

// A loop without products stays.
// CHECK-LABEL: @other(
// CHECK-NOT: ttng
module {
  tt.func public @other(%n: i32, %c: !tt.ptr<i32>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %c0) -> (i32) : i32 {
      %d = arith.addi %acc, %i : i32
      scf.yield %d : i32
    }
    tt.store %c, %r : !tt.ptr<i32>
    tt.return
  }
}

// -----

// The first of two versions is shared by all blocks of the cluster, the other one is left to the first block. Both follow from
// the same numbers, so all blocks choose the same.
// CHECK: "ttg.cluster-split" = 2 : i32
// CHECK-LABEL: @versions(
// CHECK: %[[RANK:.+]] = ttng.cluster_rank : i32
// CHECK: scf.if %{{.+}} {
// CHECK: %[[R:.+]]:2 = scf.for
// CHECK: %[[PART:.+]] = ttng.cluster_sum %[[R]]#1 : tensor<16x64xf32> -> tensor<8x64xf32>
// CHECK: tt.store %{{.+}}, %[[PART]]
// CHECK: } else {
// CHECK: %[[FIRST:.+]] = arith.cmpi eq, %[[RANK]], %c0{{.*}} : i32
// CHECK-NEXT: scf.if %[[FIRST]] {
// CHECK: %[[S:.+]]:2 = scf.for
// CHECK-NOT: ttng.cluster_sum
// CHECK: tt.store %{{.+}}, %[[S]]#1
module {
  tt.func public @versions(%a: !tt.ptr<f16>, %c: !tt.ptr<f32>, %m: i32, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c16 = arith.constant 16 : i32
    %few = arith.cmpi sle, %m, %c16 : i32
    scf.if %few {
      %zero = arith.constant dense<0.0> : tensor<16x64xf32>
      %step = arith.constant dense<64> : tensor<16x64xi32>
      %range = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
      %rows = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
      %column = tt.expand_dims %rows {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
      %row = tt.expand_dims %range {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
      %width = arith.constant dense<64> : tensor<16x1xi32>
      %scaled = arith.muli %column, %width : tensor<16x1xi32>
      %down = tt.broadcast %scaled : tensor<16x1xi32> -> tensor<16x64xi32>
      %across = tt.broadcast %row : tensor<1x64xi32> -> tensor<16x64xi32>
      %offsets = arith.addi %down, %across : tensor<16x64xi32>
      %pa = tt.splat %a : !tt.ptr<f16> -> tensor<16x64x!tt.ptr<f16>>
      %qa = tt.addptr %pa, %offsets : tensor<16x64x!tt.ptr<f16>>, tensor<16x64xi32>
      %b = arith.constant dense<1.0> : tensor<64x64xf16>
      %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %qa, %acc = %zero) -> (tensor<16x64x!tt.ptr<f16>>, tensor<16x64xf32>) : i32 {
        %x = tt.load %p : tensor<16x64x!tt.ptr<f16>>
        %d = tt.dot %x, %b, %acc : tensor<16x64xf16> * tensor<64x64xf16> -> tensor<16x64xf32>
        %np = tt.addptr %p, %step : tensor<16x64x!tt.ptr<f16>>, tensor<16x64xi32>
        scf.yield %np, %d : tensor<16x64x!tt.ptr<f16>>, tensor<16x64xf32>
      }
      %pc = tt.splat %c : !tt.ptr<f32> -> tensor<16x64x!tt.ptr<f32>>
      %qc = tt.addptr %pc, %offsets : tensor<16x64x!tt.ptr<f32>>, tensor<16x64xi32>
      tt.store %qc, %r#1 : tensor<16x64x!tt.ptr<f32>>
    } else {
      %zero = arith.constant dense<0.0> : tensor<64x64xf32>
      %step = arith.constant dense<64> : tensor<64x64xi32>
      %range = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
      %column = tt.expand_dims %range {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
      %row = tt.expand_dims %range {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
      %width = arith.constant dense<64> : tensor<64x1xi32>
      %scaled = arith.muli %column, %width : tensor<64x1xi32>
      %down = tt.broadcast %scaled : tensor<64x1xi32> -> tensor<64x64xi32>
      %across = tt.broadcast %row : tensor<1x64xi32> -> tensor<64x64xi32>
      %offsets = arith.addi %down, %across : tensor<64x64xi32>
      %pa = tt.splat %a : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
      %qa = tt.addptr %pa, %offsets : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
      %b = arith.constant dense<1.0> : tensor<64x64xf16>
      %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %qa, %acc = %zero) -> (tensor<64x64x!tt.ptr<f16>>, tensor<64x64xf32>) : i32 {
        %x = tt.load %p : tensor<64x64x!tt.ptr<f16>>
        %d = tt.dot %x, %b, %acc : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
        %np = tt.addptr %p, %step : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
        scf.yield %np, %d : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xf32>
      } {llopt.rare}
      %pc = tt.splat %c : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
      %qc = tt.addptr %pc, %offsets : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
      tt.store %qc, %r#1 : tensor<64x64x!tt.ptr<f32>>
    } {llopt.rare, llopt.versions}
    tt.return
  }
}

// -----

// A store through a descriptor moves blocks as large as a block's part, which begins at its rank.
// CHECK-LABEL: @through_a_descriptor(
// CHECK-SAME: !tt.tensordesc<tensor<32x64xf32>>
// CHECK: %[[RANK:.+]] = ttng.cluster_rank : i32
// CHECK: %[[PART:.+]] = ttng.cluster_sum %{{.+}} : tensor<64x64xf32> -> tensor<32x64xf32>
// CHECK: %[[FIRST:.+]] = arith.muli %[[RANK]], %c32{{.*}} : i32
// CHECK: %[[ROW:.+]] = arith.addi %{{.+}}, %[[FIRST]] : i32
// CHECK: tt.descriptor_store %{{.+}}[%[[ROW]], %c0{{.*}}], %[[PART]] : !tt.tensordesc<tensor<32x64xf32>>, tensor<32x64xf32>
module {
  tt.func public @through_a_descriptor(%a: !tt.tensordesc<tensor<64x64xf16>>, %a_m: i32, %a_k: i32, %a_s: i64, %a_1: i64,
      %c: !tt.tensordesc<tensor<64x64xf32>>, %c_m: i32, %c_n: i32, %c_s: i64, %c_1: i64, %n: i32, %m0: i32) {
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %b = arith.constant dense<1.0> : tensor<64x64xf16>
    %sum = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %x = tt.descriptor_load %a[%m0, %i] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
      %d = tt.dot %x, %b, %acc : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    tt.descriptor_store %c[%m0, %c0], %sum : !tt.tensordesc<tensor<64x64xf32>>, tensor<64x64xf32>
    tt.return
  }
}
