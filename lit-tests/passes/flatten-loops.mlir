// A loop and the one in it become one where the program asks for it.
//
// RUN: llopt %s --tritongpu-fuse-nested-loops | FileCheck %s
// RUN: llopt compile %s --target cuda:90 --emit ttgir | FileCheck %s --check-prefix=WHOLE
// RUN: llopt compile %s --target hip:gfx942 --emit ttgir | FileCheck %s --check-prefix=WHOLE

// The bounds of the inner loop are the same in all iterations: their counts are multiplied. The inner loop may be without
// an iteration, so its body has a condition.
// CHECK-LABEL: @same(
// CHECK: %[[ALL:.+]] = arith.muli %{{.+}}, %{{.+}} : i64
// CHECK: scf.for %{{.+}} = %{{.+}} to %[[ALL]] step %{{.+}} iter_args(%[[LEFT:.+]] = %{{.+}}, %{{.+}} = %{{.+}}, %{{.+}} = %{{.+}}, %{{.+}} = %{{.+}}, %{{.+}} = %{{.+}}) -> (i64, i32, i32, i32, i32) : i64 {
// CHECK: %[[FIRST:.+]] = arith.cmpi eq, %[[LEFT]]
// CHECK: scf.if %[[FIRST]]
// CHECK: scf.if
// CHECK: tt.store
// CHECK: scf.if
// CHECK-NOT: scf.for
// WHOLE-LABEL: @same(
// WHOLE-COUNT-1: scf.for
// WHOLE-NOT: scf.for
tt.func public @same(%n: i32, %p: !tt.ptr<i32>) {
  %c32 = arith.constant 32 : i32
  %c1 = arith.constant 1 : i32
  %c0 = arith.constant 0 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%k = %c1) -> (i32) : i32 {
    %s = scf.for %j = %c0 to %n step %c1 iter_args(%l = %k) -> (i32) : i32 {
      %row = arith.muli %i, %c32 : i32
      %q = tt.addptr %p, %row : !tt.ptr<i32>, i32
      %t = tt.addptr %q, %j : !tt.ptr<i32>, i32
      tt.store %t, %l : !tt.ptr<i32>
      %m = arith.addi %l, %c1 : i32
      scf.yield %m : i32
    }
    scf.yield %s : i32
  } {tt.flatten}
  tt.return
}

// They follow from the outer number: a loop adds their counts up. The program promises that there is an iteration.
// CHECK-LABEL: @dependent(
// CHECK: %[[ALL:.+]] = scf.for
// CHECK: }
// CHECK: scf.for {{.+}} to %[[ALL]]
// CHECK: scf.if
// CHECK: }
// CHECK-NOT: scf.if
// CHECK: tt.store
// CHECK-NOT: scf.for
// WHOLE-LABEL: @dependent(
// WHOLE-COUNT-2: scf.for
// WHOLE-NOT: scf.for
tt.func public @dependent(%n: i32, %p: !tt.ptr<i32>) {
  %c1 = arith.constant 1 : i32
  %c0 = arith.constant 0 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%k = %c0) -> (i32) : i32 {
    %lower = arith.addi %i, %i : i32
    %upper = arith.addi %lower, %c1 : i32
    %runs = arith.cmpi sgt, %upper, %lower : i32
    llvm.intr.assume %runs : i1
    %s = scf.for %j = %lower to %upper step %c1 iter_args(%l = %k) -> (i32) : i32 {
      %t = tt.addptr %p, %l : !tt.ptr<i32>, i32
      tt.store %t, %j : !tt.ptr<i32>
      %m = arith.addi %l, %c1 : i32
      scf.yield %m : i32
    }
    scf.yield %s : i32
  } {tt.flatten}
  tt.return
}

// A bound that an outer iteration hands to the next is not known before: the loops stay.
// CHECK-LABEL: @carried(
// WHOLE-LABEL: @carried(
// CHECK: scf.for
// CHECK: scf.for
// CHECK: tt.flatten
tt.func public @carried(%n: i32, %p: !tt.ptr<i32>) {
  %c1 = arith.constant 1 : i32
  %c0 = arith.constant 0 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%k = %c1) -> (i32) : i32 {
    %s = scf.for %j = %c0 to %k step %c1 iter_args(%l = %k) -> (i32) : i32 {
      %t = tt.addptr %p, %l : !tt.ptr<i32>, i32
      tt.store %t, %j : !tt.ptr<i32>
      %m = arith.addi %l, %c1 : i32
      scf.yield %m : i32
    }
    scf.yield %s : i32
  } {tt.flatten}
  tt.return
}

// A product is pipelined in its own loop.
// CHECK-LABEL: @product(
// CHECK: scf.for
// CHECK: scf.for
// CHECK: tt.dot
tt.func public @product(%n: i32, %a: tensor<32x32xf16>, %p: tensor<32x32x!tt.ptr<f32>>) {
  %c1 = arith.constant 1 : i32
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  scf.for %i = %c0 to %n step %c1 : i32 {
    %s = scf.for %j = %c0 to %n step %c1 iter_args(%l = %zero) -> (tensor<32x32xf32>) : i32 {
      %d = tt.dot %a, %a, %l : tensor<32x32xf16> * tensor<32x32xf16> -> tensor<32x32xf32>
      scf.yield %d : tensor<32x32xf32>
    }
    tt.store %p, %s : tensor<32x32x!tt.ptr<f32>>
  } {tt.flatten}
  tt.return
}

// The loop asks for as many stages as that one of the two which asks for more.
// CHECK-LABEL: @stages(
// CHECK: tt.num_stages = 3
// WHOLE-LABEL: @stages(
// WHOLE-COUNT-1: scf.for
tt.func public @stages(%n: i32, %p: !tt.ptr<i32>) {
  %c1 = arith.constant 1 : i32
  %c0 = arith.constant 0 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    scf.for %j = %c0 to %n step %c1 : i32 {
      %q = tt.addptr %p, %j : !tt.ptr<i32>, i32
      tt.store %q, %i : !tt.ptr<i32>
    } {tt.num_stages = 3 : i32}
  } {tt.flatten, tt.num_stages = 2 : i32}
  tt.return
}

// A nest with a product stays one, whose inner loop has the stages of both; where they ask for one, it has those of the kernel.
// CHECK-LABEL: @products(
// CHECK: tt.dot
// CHECK: } {tt.num_stages = 3 : i32}
// CHECK: tt.dot
// CHECK: scf.yield
// CHECK-NEXT: }
// CHECK-NOT: tt.num_stages
tt.func public @products(%n: i32, %a: tensor<32x32xf16>, %zero: tensor<32x32xf32>, %p: tensor<32x32x!tt.ptr<f32>>) {
  %c1 = arith.constant 1 : i32
  %c0 = arith.constant 0 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %x = scf.for %j = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<32x32xf32>) : i32 {
      %y = tt.dot %a, %a, %sum : tensor<32x32xf16> * tensor<32x32xf16> -> tensor<32x32xf32>
      scf.yield %y : tensor<32x32xf32>
    } {tt.num_stages = 1 : i32}
    tt.store %p, %x : tensor<32x32x!tt.ptr<f32>>
  } {tt.flatten, tt.num_stages = 3 : i32}
  scf.for %i = %c0 to %n step %c1 : i32 {
    %x = scf.for %j = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<32x32xf32>) : i32 {
      %y = tt.dot %a, %a, %sum : tensor<32x32xf16> * tensor<32x32xf16> -> tensor<32x32xf32>
      scf.yield %y : tensor<32x32xf32>
    } {tt.num_stages = 1 : i32}
    tt.store %p, %x : tensor<32x32x!tt.ptr<f32>>
  } {tt.flatten}
  tt.return
}

// An inner loop of many iterations stays one, with the stages that both ask for.
// CHECK-LABEL: @long_rows(
// CHECK: scf.for
// CHECK: scf.for
// CHECK-NOT: scf.if
// CHECK: tt.num_stages = 3
tt.func public @long_rows(%n: i32, %p: !tt.ptr<i32>) {
  %c1 = arith.constant 1 : i32
  %c0 = arith.constant 0 : i32
  %c256 = arith.constant 256 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %r = scf.for %j = %c0 to %c256 step %c1 iter_args(%l = %c0) -> (i32) : i32 {
      %t = tt.addptr %p, %j : !tt.ptr<i32>, i32
      %v = tt.load %t : !tt.ptr<i32>
      %m = arith.addi %l, %v : i32
      scf.yield %m : i32
    }
    %q = tt.addptr %p, %i : !tt.ptr<i32>, i32
    tt.store %q, %r : !tt.ptr<i32>
  } {tt.flatten, tt.num_stages = 3 : i32}
  tt.return
}
