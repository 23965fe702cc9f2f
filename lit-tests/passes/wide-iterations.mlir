// Two iterations of a loop that reduces over tiles as one.
//
// RUN: llopt %s --wide-iterations=everywhere=true | FileCheck %s

!q = tensor<64x64xf16>
!s = tensor<64x64xf32>
!d = !tt.tensordesc<tensor<64x64xf16>>

// Attention: tiles of keys and values have twice as many rows, of which each copy still has a block. The maximum is scaled, so
// that is done for scales that are not negative, and the loop as it was remains for others and for an odd iteration.
// CHECK-LABEL: @attention
// CHECK: %[[OK:.*]] = arith.cmpf oge, %{{.*}}, %{{.*}} : f32
// CHECK: %[[MIDDLE:.*]] = arith.select %[[OK]]
// CHECK: %[[WIDE:.*]]:4 = scf.for {{.*}} to %[[MIDDLE]] step %c128_i32
// CHECK:   tt.descriptor_load {{.*}} : !tt.tensordesc<tensor<64x64xf16>> -> tensor<128x64xf16>
// CHECK:   tt.dot {{.*}} : tensor<64x64xf16> * tensor<64x128xf16> -> tensor<64x128xf32>
// CHECK:   tt.dot {{.*}} : tensor<64x128xf16> * tensor<128x64xf16> -> tensor<64x64xf32>
// CHECK:   %[[NEXT:.*]] = arith.addi %{{.*}}, %c64_i32
// CHECK:   arith.addi %[[NEXT]], %c64_i32
// CHECK: scf.for {{.*}} = %[[MIDDLE]] to %{{.*}} step %c64_i32 iter_args(%{{.*}} = %[[WIDE]]#0
// CHECK: } {llopt.rare, tt.num_stages = 1 : i32}
tt.func @attention(%qs: !d, %ks: !d, %vs: !d, %scale: f32, %n: i32) -> (!s, tensor<64xf32>) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : !s
  %least = arith.constant dense<0xFF800000> : tensor<64xf32>
  %one = arith.constant dense<1.0> : tensor<64xf32>
  %scales = tt.splat %scale : f32 -> !s
  %row_scales = tt.splat %scale : f32 -> tensor<64xf32>
  %q = tt.descriptor_load %qs[%c0, %c0] : !d -> !q
  %r:4 = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero, %l = %one, %m = %least, %at = %c0) -> (!s, tensor<64xf32>, tensor<64xf32>, i32) : i32 {
    %k = tt.descriptor_load %ks[%at, %c0] : !d -> !q
    %kt = tt.trans %k {order = array<i32: 1, 0>} : !q -> !q
    %s = tt.dot %q, %kt, %zero : !q * !q -> !s
    %largest = "tt.reduce"(%s) <{axis = 1 : i32}> ({
    ^bb0(%x: f32, %y: f32):
      %z = arith.maxnumf %x, %y : f32
      tt.reduce.return %z : f32
    }) : (!s) -> tensor<64xf32>
    %row = arith.mulf %largest, %row_scales : tensor<64xf32>
    %next = arith.maxnumf %m, %row : tensor<64xf32>
    %scaled = arith.mulf %s, %scales : !s
    %next1 = tt.expand_dims %next {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
    %next2 = tt.broadcast %next1 : tensor<64x1xf32> -> !s
    %d = arith.subf %scaled, %next2 : !s
    %p = math.exp2 %d : !s
    %up = arith.subf %m, %next : tensor<64xf32>
    %alpha = math.exp2 %up : tensor<64xf32>
    %sum = "tt.reduce"(%p) <{axis = 1 : i32}> ({
    ^bb0(%x: f32, %y: f32):
      %z = arith.addf %x, %y : f32
      tt.reduce.return %z : f32
    }) : (!s) -> tensor<64xf32>
    %alpha1 = tt.expand_dims %alpha {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
    %alpha2 = tt.broadcast %alpha1 : tensor<64x1xf32> -> !s
    %scaled_acc = arith.mulf %acc, %alpha2 : !s
    %v = tt.descriptor_load %vs[%at, %c0] : !d -> !q
    %h = arith.truncf %p : !s to !q
    %acc2 = tt.dot %h, %v, %scaled_acc : !q * !q -> !s
    %l1 = arith.mulf %l, %alpha : tensor<64xf32>
    %l2 = arith.addf %l1, %sum : tensor<64xf32>
    %at2 = arith.addi %at, %c64 : i32
    scf.yield %acc2, %l2, %next, %at2 : !s, tensor<64xf32>, tensor<64xf32>, i32
  }
  tt.return %r#0, %r#1 : !s, tensor<64xf32>
}

// A mask of the numbers of keys, from a range that is made before the loop, is one of twice as many numbers. The number of
// iterations is even, so no other loop remains.
// CHECK-LABEL: @masked_sum
// CHECK: tt.make_range {end = 32 : i32, start = 0 : i32}
// CHECK: scf.for
// CHECK:   arith.cmpi slt, {{.*}} : tensor<32xi32>
// CHECK:   tt.load {{.*}} : tensor<32x!tt.ptr<f32>>
// CHECK-NOT: scf.for
// CHECK: tt.return
tt.func @masked_sum(%p: !tt.ptr<f32>, %n: i32, %groups: i32) -> f32 {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant 0.0 : f32
  %range = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %ns = tt.splat %n : i32 -> tensor<16xi32>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %upper = arith.muli %groups, %c64 : i32
  %r = scf.for %i = %c0 to %upper step %c16 iter_args(%sum = %zero) -> (f32) : i32 {
    %first = tt.splat %i : i32 -> tensor<16xi32>
    %at = arith.addi %first, %range : tensor<16xi32>
    %mask = arith.cmpi slt, %at, %ns : tensor<16xi32>
    %q = tt.addptr %ps, %at : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    %x = tt.load %q, %mask : tensor<16x!tt.ptr<f32>>
    %s = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<16xf32>) -> f32
    %next = arith.addf %sum, %s : f32
    scf.yield %next : f32
  }
  tt.return %r : f32
}

// What is halved in each iteration is halved twice in two of them, and once in a wide one.
// CHECK-LABEL: @fades
// CHECK-NOT: tensor<32xf32>
// CHECK: tt.return
tt.func @fades(%p: !tt.ptr<f32>, %n: i32) -> f32 {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
  %range = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %r = scf.for %i = %c0 to %n step %c16 iter_args(%sum = %zero) -> (f32) : i32 {
    %first = tt.splat %i : i32 -> tensor<16xi32>
    %at = arith.addi %first, %range : tensor<16xi32>
    %q = tt.addptr %ps, %at : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    %x = tt.load %q : tensor<16x!tt.ptr<f32>>
    %s = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<16xf32>) -> f32
    %faded = arith.mulf %sum, %half : f32
    %next = arith.addf %faded, %s : f32
    scf.yield %next : f32
  }
  tt.return %r : f32
}

// Each tile is stored, so it matters which one it is.
// CHECK-LABEL: @stores
// CHECK-NOT: tensor<32xf32>
// CHECK: tt.return
tt.func @stores(%p: !tt.ptr<f32>, %to: !tt.ptr<f32>, %n: i32) -> f32 {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %zero = arith.constant 0.0 : f32
  %range = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %r = scf.for %i = %c0 to %n step %c16 iter_args(%sum = %zero) -> (f32) : i32 {
    %first = tt.splat %i : i32 -> tensor<16xi32>
    %at = arith.addi %first, %range : tensor<16xi32>
    %q = tt.addptr %ps, %at : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    %x = tt.load %q : tensor<16x!tt.ptr<f32>>
    %s = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<16xf32>) -> f32
    tt.store %to, %s : !tt.ptr<f32>
    %next = arith.addf %sum, %s : f32
    scf.yield %next : f32
  }
  tt.return %r : f32
}

// Rows and columns have the same numbers, as the tile is added to itself turned, so there is no dimension that could grow
// alone.
// CHECK-LABEL: @turned
// CHECK-NOT: tensor<32x
// CHECK: tt.return
tt.func @turned(%d: !tt.tensordesc<tensor<16x16xf32>>, %n: i32) -> tensor<16xf32> {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %zero = arith.constant dense<0.0> : tensor<16xf32>
  %r = scf.for %i = %c0 to %n step %c16 iter_args(%sum = %zero) -> (tensor<16xf32>) : i32 {
    %x = tt.descriptor_load %d[%i, %c0] : !tt.tensordesc<tensor<16x16xf32>> -> tensor<16x16xf32>
    %t = tt.trans %x {order = array<i32: 1, 0>} : tensor<16x16xf32> -> tensor<16x16xf32>
    %both = arith.addf %x, %t : tensor<16x16xf32>
    %s = "tt.reduce"(%both) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<16x16xf32>) -> tensor<16xf32>
    %next = arith.addf %sum, %s : tensor<16xf32>
    scf.yield %next : tensor<16xf32>
  }
  tt.return %r : tensor<16xf32>
}
