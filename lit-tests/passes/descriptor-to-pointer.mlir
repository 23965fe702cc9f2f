// RUN: llopt %s --triton-rewrite-tensor-descriptor-to-pointer --cse | FileCheck %s
// RUN: llopt %s --triton-rewrite-tensor-descriptor-to-pointer=only-made=true | FileCheck %s --check-prefix=MADE

// A parameter becomes base, extents, strides and padding, with what descriptors promise; whether elements outside are NaN
// is known when the kernel runs.
// CHECK-LABEL: tt.func public @parameter(
// CHECK-SAME: [[BASE:%[^:]*]]: !tt.ptr<f16> {tt.divisibility = 16 : i32}, [[ROWS:%[^:]*]]: i64, [[COLUMNS:%[^:]*]]: i64, [[PITCH:%[^:]*]]: i64 {tt.divisibility = 8 : i32}, {{%[^:]*}}: i64, [[NAN:%[^:]*]]: i1, %{{.*}}: i32)
// CHECK-NOT: tensordesc
// CHECK-DAG: [[NANS:%.*]] = arith.constant 0x7E00 : f16
// CHECK-DAG: [[ZERO:%.*]] = arith.constant 0.000000e+00 : f16
// CHECK-DAG: tt.splat [[PITCH]] : i64 -> tensor<32x1xi64>
// CHECK-DAG: tt.splat [[ROWS]] : i64 -> tensor<32x1xi64>
// CHECK-DAG: tt.splat [[COLUMNS]] : i64 -> tensor<1x64xi64>
// CHECK-DAG: tt.splat [[BASE]] : !tt.ptr<f16>
// CHECK: [[OUTSIDE:%.*]] = arith.select [[NAN]], [[NANS]], [[ZERO]] : f16
// CHECK: [[OTHER:%.*]] = tt.splat [[OUTSIDE]]
// CHECK: tt.load %{{.*}}, %{{.*}}, [[OTHER]]
// MADE-LABEL: @parameter(
// MADE: tt.descriptor_load
tt.func public @parameter(%x: !tt.tensordesc<tensor<32x64xf16>>, %i: i32) -> tensor<32x64xf16> {
  %v = tt.descriptor_load %x[%i, %i] : !tt.tensordesc<tensor<32x64xf16>> -> tensor<32x64xf16>
  tt.return %v : tensor<32x64xf16>
}

// The extents that the frontend passes behind a descriptor are those with which the program computes. Integers outside
// are zero, and leading extents of one are dropped.
// CHECK-LABEL: tt.func public @passed(
// CHECK-SAME: i1, [[PLANES:%[^:]*]]: i32, [[ROWS:%[^:]*]]: i32, [[COLUMNS:%[^:]*]]: i32, {{%[^:]*}}: i64, {{%[^:]*}}: i64, {{%[^:]*}}: i64, %{{.*}}: i32)
// CHECK-NOT: arith.trunci
// CHECK-NOT: arith.select
// CHECK-DAG: arith.extsi [[PLANES]] : i32 to i64
// CHECK-DAG: arith.extsi [[ROWS]] : i32 to i64
// CHECK-DAG: arith.extsi [[COLUMNS]] : i32 to i64
// CHECK: tt.load %{{.*}} : tensor<32x64x!tt.ptr<i8>>
tt.func public @passed(%x: !tt.tensordesc<tensor<1x32x64xui8>>, %planes: i32, %rows: i32, %columns: i32, %s: i64, %t: i64, %u: i64, %i: i32) -> tensor<32x64xi8> {
  %v = tt.descriptor_load %x[%i, %i, %i] : !tt.tensordesc<tensor<1x32x64xui8>> -> tensor<32x64xi8>
  tt.return %v : tensor<32x64xi8>
}

// Of two descriptors that differ only in their base, a choice hands on the base.
// CHECK-LABEL: @chosen(
// CHECK: [[BASE:%.*]] = scf.if %{{.*}} -> (!tt.ptr<f32>) {
// CHECK: tt.splat [[BASE]]
// CHECK: tt.load
tt.func public @chosen(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %c: i1, %n: i32, %s: i64, %i: i32) -> tensor<32x64xf32> {
  %one = arith.constant 1 : i64
  %z = scf.if %c -> (!tt.tensordesc<tensor<32x64xf32>>) {
    tt.print ": " {hex = false, isSigned = array<i32: 0>} : %i : i32
    %x = tt.make_tensor_descriptor %p, [%n, %n], [%s, %one] : !tt.ptr<f32>, !tt.tensordesc<tensor<32x64xf32>>
    scf.yield %x : !tt.tensordesc<tensor<32x64xf32>>
  } else {
    %other = arith.constant 1 : i64
    %y = tt.make_tensor_descriptor %q, [%n, %n], [%s, %other] : !tt.ptr<f32>, !tt.tensordesc<tensor<32x64xf32>>
    scf.yield %y : !tt.tensordesc<tensor<32x64xf32>>
  }
  %v = tt.descriptor_load %z[%i, %i] : !tt.tensordesc<tensor<32x64xf32>> -> tensor<32x64xf32>
  tt.return %v : tensor<32x64xf32>
}

// What a region has computed has no name outside of it, and is handed on; so is a padding that differs.
// CHECK-LABEL: @computed(
// CHECK: [[PARTS:%.*]]:3 = scf.if %{{.*}} -> (!tt.ptr<f32>, i32, i1) {
// CHECK: [[N:%.*]] = tt.load
// CHECK: scf.yield %{{.*}}, [[N]], %{{.*}}
// CHECK-NOT: scf.yield %{{.*}}, %{{.*}}, %{{.*}}, %
// CHECK: arith.select [[PARTS]]#2
tt.func public @computed(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %l: !tt.ptr<i32>, %c: i1, %n: i32, %s: i64, %i: i32) -> tensor<32x64xf32> {
  %one = arith.constant 1 : i64
  %z = scf.if %c -> (!tt.tensordesc<tensor<32x64xf32>>) {
    %m = tt.load %l : !tt.ptr<i32>
    %x = tt.make_tensor_descriptor %p, [%m, %n], [%s, %one] {padding = 2 : i32} : !tt.ptr<f32>, !tt.tensordesc<tensor<32x64xf32>>
    scf.yield %x : !tt.tensordesc<tensor<32x64xf32>>
  } else {
    %y = tt.make_tensor_descriptor %q, [%n, %n], [%s, %one] : !tt.ptr<f32>, !tt.tensordesc<tensor<32x64xf32>>
    scf.yield %y : !tt.tensordesc<tensor<32x64xf32>>
  }
  %v = tt.descriptor_load %z[%i, %i] : !tt.tensordesc<tensor<32x64xf32>> -> tensor<32x64xf32>
  tt.return %v : tensor<32x64xf32>
}

// A loop carries the part that changes, and one that never changes carries none.
// CHECK-LABEL: @carried(
// CHECK: scf.for {{.*}} iter_args([[SUM:%[^ ]*]] = %{{[^,]*}}, [[BASE:%[^ ]*]] = %{{[^,]*}}) -> (tensor<32x64xf32>, !tt.ptr<f32>)
// CHECK: tt.splat [[BASE]]
// CHECK: [[NEXT:%.*]] = tt.addptr %{{.*}} : !tt.ptr<f32>, i32
// CHECK: scf.yield %{{.*}}, [[NEXT]] : tensor<32x64xf32>, !tt.ptr<f32>
tt.func public @carried(%p: !tt.ptr<f32>, %n: i32, %s: i64, %zero: tensor<32x64xf32>) -> tensor<32x64xf32> {
  %one = arith.constant 1 : i64
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %x = tt.make_tensor_descriptor %p, [%n, %n], [%s, %one] : !tt.ptr<f32>, !tt.tensordesc<tensor<32x64xf32>>
  %r:3 = scf.for %i = %c0 to %n step %c32 iter_args(%sum = %zero, %d = %x, %e = %x) -> (tensor<32x64xf32>, !tt.tensordesc<tensor<32x64xf32>>, !tt.tensordesc<tensor<32x64xf32>>) : i32 {
    %v = tt.descriptor_load %d[%i, %c0] : !tt.tensordesc<tensor<32x64xf32>> -> tensor<32x64xf32>
    %w = tt.descriptor_load %e[%i, %c0] : !tt.tensordesc<tensor<32x64xf32>> -> tensor<32x64xf32>
    %f = arith.addf %sum, %v : tensor<32x64xf32>
    %g = arith.addf %f, %w : tensor<32x64xf32>
    %q = tt.addptr %p, %i : !tt.ptr<f32>, i32
    %y = tt.make_tensor_descriptor %q, [%n, %n], [%s, %one] : !tt.ptr<f32>, !tt.tensordesc<tensor<32x64xf32>>
    scf.yield %g, %y, %e : tensor<32x64xf32>, !tt.tensordesc<tensor<32x64xf32>>, !tt.tensordesc<tensor<32x64xf32>>
  }
  tt.return %r#0 : tensor<32x64xf32>
}

// Both regions of a loop with a condition hand on, and what takes turns is carried.
// CHECK-LABEL: @turns(
// CHECK: scf.while ({{.*}}) : (i32, !tt.ptr<f32>, !tt.ptr<f32>) -> (i32, !tt.ptr<f32>, !tt.ptr<f32>) {
// CHECK-NOT: tensordesc
// CHECK: tt.return
tt.func public @turns(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %n: i32, %s: i64, %zero: tensor<32x64xf32>) {
  %one = arith.constant 1 : i64
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %x = tt.make_tensor_descriptor %p, [%n, %n], [%s, %one] : !tt.ptr<f32>, !tt.tensordesc<tensor<32x64xf32>>
  %y = tt.make_tensor_descriptor %q, [%n, %n], [%s, %one] : !tt.ptr<f32>, !tt.tensordesc<tensor<32x64xf32>>
  %r:3 = scf.while (%i = %c0, %d = %x, %e = %y) : (i32, !tt.tensordesc<tensor<32x64xf32>>, !tt.tensordesc<tensor<32x64xf32>>) -> (i32, !tt.tensordesc<tensor<32x64xf32>>, !tt.tensordesc<tensor<32x64xf32>>) {
    %more = arith.cmpi slt, %i, %n : i32
    scf.condition(%more) %i, %d, %e : i32, !tt.tensordesc<tensor<32x64xf32>>, !tt.tensordesc<tensor<32x64xf32>>
  } do {
  ^bb0(%i: i32, %d: !tt.tensordesc<tensor<32x64xf32>>, %e: !tt.tensordesc<tensor<32x64xf32>>):
    %v = tt.descriptor_load %d[%i, %c0] : !tt.tensordesc<tensor<32x64xf32>> -> tensor<32x64xf32>
    tt.descriptor_store %e[%i, %c0], %v : !tt.tensordesc<tensor<32x64xf32>>, tensor<32x64xf32>
    %next = arith.addi %i, %c1 : i32
    scf.yield %next, %e, %d : i32, !tt.tensordesc<tensor<32x64xf32>>, !tt.tensordesc<tensor<32x64xf32>>
  }
  tt.descriptor_store %r#1[%c0, %c0], %zero : !tt.tensordesc<tensor<32x64xf32>>, tensor<32x64xf32>
  tt.return
}

// Blocks take the parts that differ as arguments, whichever branch leads to them.
// CHECK-LABEL: @branches(
// CHECK: cf.cond_br %{{.*}}, ^[[FIRST:bb[0-9]+]](%{{[^,]*}}, %{{[^,]*}} : i32, !tt.ptr<f32>), ^[[SECOND:bb[0-9]+]]
// CHECK: ^[[FIRST]](%{{[^,]*}}: i32, [[BASE:%.*]]: !tt.ptr<f32>):
// CHECK: tt.splat [[BASE]]
// CHECK: ^[[SECOND]]:
// CHECK: cf.br ^[[FIRST]](%{{[^,]*}}, %{{[^,]*}} : i32, !tt.ptr<f32>)
tt.func public @branches(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %c: i1, %n: i32, %s: i64, %i: i32) -> tensor<32x64xf32> {
  %one = arith.constant 1 : i64
  %x = tt.make_tensor_descriptor %p, [%n, %n], [%s, %one] : !tt.ptr<f32>, !tt.tensordesc<tensor<32x64xf32>>
  cf.cond_br %c, ^bb1(%i, %x : i32, !tt.tensordesc<tensor<32x64xf32>>), ^bb2
^bb1(%j: i32, %z: !tt.tensordesc<tensor<32x64xf32>>):
  %v = tt.descriptor_load %z[%j, %i] : !tt.tensordesc<tensor<32x64xf32>> -> tensor<32x64xf32>
  tt.return %v : tensor<32x64xf32>
^bb2:
  tt.print ": " {hex = false, isSigned = array<i32: 0>} : %i : i32
  %y = tt.make_tensor_descriptor %q, [%n, %n], [%s, %one] : !tt.ptr<f32>, !tt.tensordesc<tensor<32x64xf32>>
  cf.br ^bb1(%i, %y : i32, !tt.tensordesc<tensor<32x64xf32>>)
}

// A function takes and returns what differs among its calls; constants that they agree on it has itself.
// CHECK-LABEL: @calls(
// CHECK: [[R:%.*]]:5 = tt.call @callee(%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}) : (!tt.ptr<f32>, i32, i32, i64) -> (tensor<32x64xf32>, !tt.ptr<f32>, i32, i32, i64)
// CHECK: tt.splat [[R]]#1
// CHECK: tt.func private @callee(%{{[^,]*}}: !tt.ptr<f32>, %{{[^,]*}}: i32, %{{[^,]*}}: i32, %{{[^,]*}}: i64) -> (tensor<32x64xf32>, !tt.ptr<f32>, i32, i32, i64) attributes {noinline = true}
tt.func public @calls(%p: !tt.ptr<f32>, %n: i32, %s: i64, %i: i32) -> (tensor<32x64xf32>, tensor<32x64xf32>) {
  %one = arith.constant 1 : i64
  %x = tt.make_tensor_descriptor %p, [%n, %n], [%s, %one] : !tt.ptr<f32>, !tt.tensordesc<tensor<32x64xf32>>
  %r:2 = tt.call @callee(%x) : (!tt.tensordesc<tensor<32x64xf32>>) -> (tensor<32x64xf32>, !tt.tensordesc<tensor<32x64xf32>>)
  %v = tt.descriptor_load %r#1[%i, %i] : !tt.tensordesc<tensor<32x64xf32>> -> tensor<32x64xf32>
  tt.return %r#0, %v : tensor<32x64xf32>, tensor<32x64xf32>
}

tt.func private @callee(%x: !tt.tensordesc<tensor<32x64xf32>>) -> (tensor<32x64xf32>, !tt.tensordesc<tensor<32x64xf32>>) attributes {noinline = true} {
  %c0 = arith.constant 0 : i32
  %v = tt.descriptor_load %x[%c0, %c0] : !tt.tensordesc<tensor<32x64xf32>> -> tensor<32x64xf32>
  tt.return %v, %x : tensor<32x64xf32>, !tt.tensordesc<tensor<32x64xf32>>
}

// Selects become selects of parts; the parts of one are known to the next.
// CHECK-LABEL: @selects(
// CHECK: [[ONE:%.*]] = arith.select %{{.*}} : !tt.ptr<f32>
// CHECK: [[TWO:%.*]] = arith.select %{{[^,]*}}, [[ONE]], %{{.*}} : !tt.ptr<f32>
// CHECK: tt.splat [[TWO]]
tt.func public @selects(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %o: !tt.ptr<f32>, %c: i1, %d: i1, %n: i32, %s: i64, %i: i32) -> tensor<32x64xf32> {
  %one = arith.constant 1 : i64
  %x = tt.make_tensor_descriptor %p, [%n, %n], [%s, %one] : !tt.ptr<f32>, !tt.tensordesc<tensor<32x64xf32>>
  %y = tt.make_tensor_descriptor %q, [%n, %n], [%s, %one] : !tt.ptr<f32>, !tt.tensordesc<tensor<32x64xf32>>
  %z = tt.make_tensor_descriptor %o, [%n, %n], [%s, %one] : !tt.ptr<f32>, !tt.tensordesc<tensor<32x64xf32>>
  %a = arith.select %c, %x, %y : !tt.tensordesc<tensor<32x64xf32>>
  %b = arith.select %d, %a, %z : !tt.tensordesc<tensor<32x64xf32>>
  %v = tt.descriptor_load %b[%i, %i] : !tt.tensordesc<tensor<32x64xf32>> -> tensor<32x64xf32>
  tt.return %v : tensor<32x64xf32>
}

// Gathers, scatters and reductions are accesses like others.
// CHECK-LABEL: @accesses(
// CHECK: arith.select
// CHECK: tt.load {{.*}} : tensor<32x64x!tt.ptr<f32>>
// CHECK: tt.store {{.*}} : tensor<32x64x!tt.ptr<f32>>
// CHECK: tt.atomic_rmw fadd, relaxed, gpu
tt.func public @accesses(%x: !tt.tensordesc<tensor<1x64xf32>>, %y: !tt.tensordesc<tensor<32x64xf32>>, %rows: tensor<32xi32>, %i: i32) {
  %v = tt.descriptor_gather %x[%rows, %i] : (!tt.tensordesc<tensor<1x64xf32>>, tensor<32xi32>, i32) -> tensor<32x64xf32>
  tt.descriptor_scatter %x[%rows, %i], %v : !tt.tensordesc<tensor<1x64xf32>>, tensor<32xi32>, i32, tensor<32x64xf32>
  tt.descriptor_reduce add, %y[%i, %i], %v : !tt.tensordesc<tensor<32x64xf32>>, tensor<32x64xf32>
  tt.return
}
