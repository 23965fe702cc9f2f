// Loops of products that skip iterations.
//
// RUN: llopt %s --compact-iterations | FileCheck %s

!p = tensor<16x16x!tt.ptr<f16>>
!x = tensor<16x16xf16>
!sum = tensor<16x16xf32>

// The kept iterations are counted, 128 conditions at a time; then the loop runs so often, and each iteration takes the lowest
// bit of a word of 32 conditions, after it has looked for a word that is not zero.
// CHECK-LABEL: @skips
// CHECK: scf.for
// CHECK:   tt.load {{.*}} : tensor<128x!tt.ptr<i32>>
// CHECK: %[[COUNT:.*]] = "tt.reduce"
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[COUNT]] step %{{.*}} iter_args(%[[SUM:.*]] = %{{.*}}, %[[FIRST:.*]] = %c-32_i32{{.*}}, %[[WORD:.*]] = %{{.*}})
// CHECK:   %[[FOUND:.*]]:2 = scf.while (%{{.*}} = %[[FIRST]], %{{.*}} = %[[WORD]])
// CHECK:     tt.load {{.*}} : tensor<32x!tt.ptr<i32>>
// CHECK:     "tt.reduce"
// CHECK:   %[[BELOW:.*]] = math.ctpop
// CHECK:   %[[I:.*]] = arith.addi %[[FOUND]]#0, %[[BELOW]]
// CHECK-NOT: scf.if
// CHECK:   tt.load
// CHECK:   %[[D:.*]] = tt.dot {{.*}}, %[[SUM]]
// CHECK:   scf.yield %[[D]], %[[FOUND]]#0
tt.func @skips(%p: !p, %x: !x, %flags: !tt.ptr<i32>, %n: i32) -> !sum {
  %zero = arith.constant dense<0.0> : !sum
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (!sum) : i32 {
    %at = tt.addptr %flags, %i : !tt.ptr<i32>, i32
    %flag = tt.load %at : !tt.ptr<i32>
    %keep = arith.cmpi ne, %flag, %c0 : i32
    %next = scf.if %keep -> (!sum) {
      %offset = tt.splat %i : i32 -> tensor<16x16xi32>
      %q = tt.addptr %p, %offset : !p, tensor<16x16xi32>
      %y = tt.load %q : !p
      %d = tt.dot %x, %y, %sum : !x * !x -> !sum
      scf.yield %d : !sum
    } else {
      scf.yield %sum : !sum
    }
    scf.yield %next : !sum
  }
  tt.return %r : !sum
}

// Pointers that move in each iteration are those of its number: the one to the condition for many iterations at a time. The
// bits of conditions that do not hold are those of the second block.
// CHECK-LABEL: @moves
// CHECK: arith.extui %{{.*}} : tensor<128xi32> to tensor<128xi64>
// CHECK: arith.xori %{{.*}} : tensor<128xi1>
// CHECK: scf.while
// CHECK: %[[I:.*]] = arith.addi %{{.*}}#0, %{{.*}} : i32
// CHECK: %[[WIDE:.*]] = arith.extui %[[I]] : i32 to i64
// CHECK: %[[FAR:.*]] = arith.muli %{{.*}}, %[[WIDE]] : i64
// CHECK: %[[OFFSETS:.*]] = tt.splat %[[FAR]]
// CHECK: %[[Q:.*]] = tt.addptr %{{.*}}, %[[OFFSETS]]
// CHECK: tt.load %[[Q]] : tensor<16x16x!tt.ptr<f16>>
tt.func @moves(%p: !p, %x: !x, %flags: !tt.ptr<i1>, %n: i32) -> !sum {
  %zero = arith.constant dense<0.0> : !sum
  %step = arith.constant dense<64> : tensor<16x16xi32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%q = %p, %at = %flags, %sum = %zero) -> (!p, !tt.ptr<i1>, !sum) : i32 {
    %skip = tt.load %at : !tt.ptr<i1>
    %next = scf.if %skip -> (!sum) {
      scf.yield %sum : !sum
    } else {
      %y = tt.load %q : !p
      %d = tt.dot %x, %y, %sum : !x * !x -> !sum
      scf.yield %d : !sum
    }
    %q1 = tt.addptr %q, %step : !p, tensor<16x16xi32>
    %at1 = tt.addptr %at, %c1 : !tt.ptr<i1>, i32
    scf.yield %q1, %at1, %next : !p, !tt.ptr<i1>, !sum
  }
  tt.return %r#2 : !sum
}

// A loop that may begin below zero can have more iterations than a signed number.
// CHECK-LABEL: @from_anywhere
// CHECK: scf.for unsigned
// CHECK: scf.for unsigned
tt.func @from_anywhere(%p: !p, %x: !x, %flags: !tt.ptr<i1>, %m: i32, %n: i32) -> !sum {
  %zero = arith.constant dense<0.0> : !sum
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %m to %n step %c1 iter_args(%sum = %zero) -> (!sum) : i32 {
    %at = tt.addptr %flags, %i : !tt.ptr<i1>, i32
    %keep = tt.load %at : !tt.ptr<i1>
    %next = scf.if %keep -> (!sum) {
      %d = tt.dot %x, %x, %sum : !x * !x -> !sum
      scf.yield %d : !sum
    } else {
      scf.yield %sum : !sum
    }
    scf.yield %next : !sum
  }
  tt.return %r : !sum
}

// A kept iteration may change the conditions of those behind it.
// CHECK-LABEL: @writes_conditions
// CHECK-NOT: scf.while
tt.func @writes_conditions(%x: !x, %flags: !tt.ptr<i1>, %n: i32) -> !sum {
  %zero = arith.constant dense<0.0> : !sum
  %true = arith.constant true
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (!sum) : i32 {
    %at = tt.addptr %flags, %i : !tt.ptr<i1>, i32
    %keep = tt.load %at : !tt.ptr<i1>
    %next = scf.if %keep -> (!sum) {
      %d = tt.dot %x, %x, %sum : !x * !x -> !sum
      %after = tt.addptr %at, %c1 : !tt.ptr<i1>, i32
      tt.store %after, %true : !tt.ptr<i1>
      scf.yield %d : !sum
    } else {
      scf.yield %sum : !sum
    }
    scf.yield %next : !sum
  }
  tt.return %r : !sum
}

// Each iteration counts itself in a value that is used after the loop.
// CHECK-LABEL: @counts
// CHECK-NOT: scf.while
tt.func @counts(%x: !x, %flags: !tt.ptr<i1>, %n: i32) -> (!sum, i32) {
  %zero = arith.constant dense<0.0> : !sum
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero, %k = %c0) -> (!sum, i32) : i32 {
    %at = tt.addptr %flags, %i : !tt.ptr<i1>, i32
    %keep = tt.load %at : !tt.ptr<i1>
    %next = scf.if %keep -> (!sum) {
      %d = tt.dot %x, %x, %sum : !x * !x -> !sum
      scf.yield %d : !sum
    } else {
      scf.yield %sum : !sum
    }
    %k1 = arith.addi %k, %c1 : i32
    scf.yield %next, %k1 : !sum, i32
  }
  tt.return %r#0, %r#1 : !sum, i32
}

// Whether an iteration is skipped depends on the sum of those before.
// CHECK-LABEL: @depends
// CHECK-NOT: scf.while
tt.func @depends(%x: !x, %n: i32) -> !sum {
  %zero = arith.constant dense<0.0> : !sum
  %limit = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %first = arith.constant 0.0 : f32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero, %most = %first) -> (!sum, f32) : i32 {
    %keep = arith.cmpf olt, %most, %limit : f32
    %next:2 = scf.if %keep -> (!sum, f32) {
      %d = tt.dot %x, %x, %sum : !x * !x -> !sum
      scf.yield %d, %limit : !sum, f32
    } else {
      scf.yield %sum, %most : !sum, f32
    }
    scf.yield %next#0, %next#1 : !sum, f32
  }
  tt.return %r#0 : !sum
}
