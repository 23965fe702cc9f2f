// RUN: llopt %s --triton-nvidia-tma-objects | FileCheck %s

// A loop accesses what is described outside of it: the description is written to memory once, and the unit reads it.
// CHECK-LABEL: @in_a_loop(
// CHECK: [[OBJECT:%.*]] = ttg.global_scratch_alloc {alignment = 128 : i32, nbytes = 128 : i32}
// CHECK: [[PITCH:%.*]] = arith.muli %{{.*}}, %{{.*}} : i64
// CHECK: ttng.tensormap_create [[OBJECT]], %{{.*}}, {{.*}}{elem_type = 7 : i32, fill_mode = 0 : i32, interleave_layout = 0 : i32, swizzle_mode = 3 : i32}
// CHECK: ttng.tensormap_fenceproxy_acquire [[OBJECT]]
// CHECK: [[X:%.*]] = ttng.reinterpret_tensor_descriptor [[OBJECT]]
// CHECK: scf.for
// CHECK: tt.descriptor_load [[X]]
tt.func public @in_a_loop(%p: !tt.ptr<f32>, %n: i32, %s: i64, %zero: tensor<32x64xf32>) -> tensor<32x64xf32> {
  %one = arith.constant 1 : i64
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %x = tt.make_tensor_descriptor %p, [%n, %n], [%s, %one] : !tt.ptr<f32>, !tt.tensordesc<tensor<32x64xf32>>
  %r = scf.for %i = %c0 to %n step %c32 iter_args(%sum = %zero) -> (tensor<32x64xf32>) : i32 {
    %v = tt.descriptor_load %x[%i, %c0] : !tt.tensordesc<tensor<32x64xf32>> -> tensor<32x64xf32>
    %next = arith.addf %sum, %v : tensor<32x64xf32>
    scf.yield %next : tensor<32x64xf32>
  }
  tt.return %r : tensor<32x64xf32>
}

// What control flow chooses is an object: nothing else says where the tensor is.
// CHECK-LABEL: @chosen(
// CHECK-COUNT-2: ttng.tensormap_create
// CHECK: arith.select {{.*}} !tt.tensordesc
tt.func public @chosen(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %c: i1, %n: i32, %s: i64, %i: i32) -> tensor<32x64xf32> {
  %one = arith.constant 1 : i64
  %x = tt.make_tensor_descriptor %p, [%n, %n], [%s, %one] : !tt.ptr<f32>, !tt.tensordesc<tensor<32x64xf32>>
  %y = tt.make_tensor_descriptor %q, [%n, %n], [%s, %one] : !tt.ptr<f32>, !tt.tensordesc<tensor<32x64xf32>>
  %z = arith.select %c, %x, %y : !tt.tensordesc<tensor<32x64xf32>>
  %v = tt.descriptor_load %z[%i, %i] : !tt.tensordesc<tensor<32x64xf32>> -> tensor<32x64xf32>
  tt.return %v : tensor<32x64xf32>
}

// One access beside what makes the descriptor, and rows that are gathered, are for pointers.
// CHECK-LABEL: @once(
// CHECK-NOT: ttng.tensormap_create
// CHECK: tt.return
tt.func public @once(%p: !tt.ptr<f32>, %n: i32, %s: i64, %i: i32) -> tensor<32x64xf32> {
  %one = arith.constant 1 : i64
  %x = tt.make_tensor_descriptor %p, [%n, %n], [%s, %one] : !tt.ptr<f32>, !tt.tensordesc<tensor<32x64xf32>>
  %v = tt.descriptor_load %x[%i, %i] : !tt.tensordesc<tensor<32x64xf32>> -> tensor<32x64xf32>
  tt.return %v : tensor<32x64xf32>
}

// The smaller of halves is found by the unit, of no atomic.
// CHECK-LABEL: @smaller(
// CHECK: ttng.tensormap_create
// CHECK: tt.descriptor_reduce min
tt.func public @smaller(%p: !tt.ptr<f16>, %n: i32, %s: i64, %i: i32, %v: tensor<32x64xf16>) {
  %one = arith.constant 1 : i64
  %x = tt.make_tensor_descriptor %p, [%n, %n], [%s, %one] : !tt.ptr<f16>, !tt.tensordesc<tensor<32x64xf16>>
  tt.descriptor_reduce min, %x[%i, %i], %v : !tt.tensordesc<tensor<32x64xf16>>, tensor<32x64xf16>
  tt.return
}
