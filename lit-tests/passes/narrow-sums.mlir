// RUN: llopt %s --narrow-sums | FileCheck %s

// What rows have in common, and a number for all, are added to the pointers of rows, before these become pointers of
// elements: of the five additions two are to all elements. The terms of columns keep their order.
// CHECK-LABEL: @rows(
// CHECK-SAME: %[[P:[^:]*]]: tensor<128x1x!tt.ptr<f16>>, %[[C:[^:]*]]: tensor<1x32xi32>, %[[R:[^:]*]]: tensor<128x1xi32>, %[[S:[^:]*]]: i64
// CHECK-NOT: tt.addptr {{.*}} : tensor<128x32x
// CHECK: %[[ROWS:.*]] = tt.addptr %[[P]], %[[R]] : tensor<128x1x!tt.ptr<f16>>, tensor<128x1xi32>
// CHECK: %[[EVERY:.*]] = tt.splat %[[S]] : i64 -> tensor<128x1xi64>
// CHECK: %[[ALL:.*]] = tt.addptr %[[ROWS]], %[[EVERY]] : tensor<128x1x!tt.ptr<f16>>, tensor<128x1xi64>
// CHECK: %[[TWICE:.*]] = tt.addptr %[[ALL]], %[[R]] : tensor<128x1x!tt.ptr<f16>>, tensor<128x1xi32>
// CHECK: tt.broadcast %[[TWICE]] : tensor<128x1x!tt.ptr<f16>> -> tensor<128x32x!tt.ptr<f16>>
// CHECK-COUNT-2: tt.addptr {{.*}} : tensor<128x32x!tt.ptr<f16>>, tensor<128x32xi32>
// CHECK-NEXT: tt.load
tt.func @rows(%p: tensor<128x1x!tt.ptr<f16>>, %c: tensor<1x32xi32>, %r: tensor<128x1xi32>, %s: i64) -> tensor<128x32xf16> {
  %ps = tt.broadcast %p : tensor<128x1x!tt.ptr<f16>> -> tensor<128x32x!tt.ptr<f16>>
  %cs = tt.broadcast %c : tensor<1x32xi32> -> tensor<128x32xi32>
  %rs = tt.broadcast %r : tensor<128x1xi32> -> tensor<128x32xi32>
  %ss = tt.splat %s : i64 -> tensor<128x32xi64>
  %a = tt.addptr %ps, %cs : tensor<128x32x!tt.ptr<f16>>, tensor<128x32xi32>
  %b = tt.addptr %a, %rs : tensor<128x32x!tt.ptr<f16>>, tensor<128x32xi32>
  %d = tt.addptr %b, %ss : tensor<128x32x!tt.ptr<f16>>, tensor<128x32xi64>
  %e = tt.addptr %d, %cs : tensor<128x32x!tt.ptr<f16>>, tensor<128x32xi32>
  %f = tt.addptr %e, %rs : tensor<128x32x!tt.ptr<f16>>, tensor<128x32xi32>
  %v = tt.load %f : tensor<128x32x!tt.ptr<f16>>
  tt.return %v : tensor<128x32xf16>
}

// A sum in front of a loop does not change in it, and is computed once: what the loop adds stays behind it. So does what
// is added to a sum with another use, and a constant, which the access adds itself.
// CHECK-LABEL: @as_they_are(
// CHECK: %[[SUM:.*]] = tt.addptr %{{.*}}, %{{.*}} : tensor<128x32x!tt.ptr<f16>>, tensor<128x32xi32>
// CHECK: scf.for
// CHECK: tt.addptr %[[SUM]], %{{.*}} : tensor<128x32x!tt.ptr<f16>>, tensor<128x32xi32>
// CHECK: tt.addptr %[[SUM]], %{{.*}} : tensor<128x32x!tt.ptr<f16>>, tensor<128x32xi32>
// CHECK: %[[NEXT:.*]] = tt.addptr %{{.*}}, %{{.*}} : tensor<128x32x!tt.ptr<f16>>, tensor<128x32xi32>
// CHECK: tt.addptr %[[NEXT]], %{{.*}} : tensor<128x32x!tt.ptr<f16>>, tensor<128x32xi32>
tt.func @as_they_are(%p: tensor<128x1x!tt.ptr<f16>>, %c: tensor<1x32xi32>, %n: i32, %v: tensor<128x32xf16>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %ps = tt.broadcast %p : tensor<128x1x!tt.ptr<f16>> -> tensor<128x32x!tt.ptr<f16>>
  %cs = tt.broadcast %c : tensor<1x32xi32> -> tensor<128x32xi32>
  %a = tt.addptr %ps, %cs : tensor<128x32x!tt.ptr<f16>>, tensor<128x32xi32>
  scf.for %i = %c0 to %n step %c1 : i32 {
    %is = tt.splat %i : i32 -> tensor<128x32xi32>
    %b = tt.addptr %a, %is : tensor<128x32x!tt.ptr<f16>>, tensor<128x32xi32>
    tt.store %b, %v : tensor<128x32x!tt.ptr<f16>>
  }
  %ns = tt.splat %n : i32 -> tensor<128x32xi32>
  %d = tt.addptr %a, %ns : tensor<128x32x!tt.ptr<f16>>, tensor<128x32xi32>
  tt.store %d, %v : tensor<128x32x!tt.ptr<f16>>
  %one = arith.constant dense<1> : tensor<128x32xi32>
  %e = tt.addptr %ps, %cs : tensor<128x32x!tt.ptr<f16>>, tensor<128x32xi32>
  %f = tt.addptr %e, %one : tensor<128x32x!tt.ptr<f16>>, tensor<128x32xi32>
  tt.store %f, %v : tensor<128x32x!tt.ptr<f16>>
  tt.return
}
