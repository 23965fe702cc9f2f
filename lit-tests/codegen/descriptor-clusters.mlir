// Each block of a cluster copies its part with a barrier of its own; of what all have, one block adds.
//
// RUN: llopt compile %s --target cuda:90 --num-ctas 2 | FileCheck %s

// CHECK-LABEL: .entry alone(
// CHECK: mov.u32 [[RANK:%r[0-9]+]], %cluster_ctarank
// CHECK: mbarrier.arrive.expect_tx.{{.+}}, 4096
// CHECK: cp.async.bulk.tensor.2d.shared::cluster.global
// CHECK: mbarrier.arrive.expect_tx.{{.+}}, 128
// CHECK: cp.async.bulk.tensor.2d.shared::cluster.global
// The block's number in the cluster decides who adds.
// CHECK: setp.eq.b32 {{.+}}, [[RANK]], 0
// CHECK: cp.reduce.async.bulk.tensor.2d.global.shared::cta.add
tt.func public @alone(%x: !tt.tensordesc<tensor<32x64xf32>>, %y: !tt.tensordesc<tensor<1x64xf32>>, %s: !tt.tensordesc<tensor<1x4xf32>>, %i: i32) {
  %v = tt.descriptor_load %x[%i, %i] : !tt.tensordesc<tensor<32x64xf32>> -> tensor<32x64xf32>
  tt.descriptor_store %x[%i, %i], %v : !tt.tensordesc<tensor<32x64xf32>>, tensor<32x64xf32>
  %w = tt.descriptor_load %y[%i, %i] : !tt.tensordesc<tensor<1x64xf32>> -> tensor<1x64xf32>
  tt.descriptor_store %y[%i, %i], %w : !tt.tensordesc<tensor<1x64xf32>>, tensor<1x64xf32>
  %one = arith.constant dense<1.0> : tensor<1x4xf32>
  tt.descriptor_reduce add, %s[%i, %i], %one : !tt.tensordesc<tensor<1x4xf32>>, tensor<1x4xf32>
  tt.return
}
