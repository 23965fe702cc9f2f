// RUN: llopt %s --split-input-file --verify-diagnostics | FileCheck %s

// Triton 3.9 keeps what is said to the caches in one attribute; 3.6 in two clauses.

// CHECK-LABEL: tt.func @policy
tt.func @policy(%p: tensor<1024x!tt.ptr<f32>>, %d: !tt.tensordesc<128x64xf16>, %c: i32) {
  // CHECK: tt.load %{{[^ ]*}} cacheModifier = ca : tensor<1024x!tt.ptr<f32>>
  %0 = tt.load %p {cachePolicy = #tt.cache_policy<cache_modifier = ca, eviction_policy = evict_normal>} : tensor<1024x!tt.ptr<f32>>
  // CHECK: tt.store %{{.*}} evictionPolicy = evict_first : tensor<1024x!tt.ptr<f32>>
  tt.store %p, %0 {cachePolicy = #tt.cache_policy<cache_modifier = none, eviction_policy = evict_first>} : tensor<1024x!tt.ptr<f32>>
  // CHECK: tt.descriptor_load %{{.*}} evictionPolicy = evict_last
  %1 = tt.descriptor_load %d[%c, %c] {cachePolicy = #tt.cache_policy<cache_modifier = none, eviction_policy = evict_last>} : !tt.tensordesc<128x64xf16> -> tensor<128x64xf16>
  tt.return
}

// -----

tt.func @both(%p: !tt.ptr<f32>) {
  // expected-error @+1 {{custom op 'tt.load' `cachePolicy` and `cache` are both given}}
  %0 = tt.load %p cacheModifier = ca {cachePolicy = #tt.cache_policy<cache_modifier = cg, eviction_policy = evict_normal>} : !tt.ptr<f32>
  tt.return
}
