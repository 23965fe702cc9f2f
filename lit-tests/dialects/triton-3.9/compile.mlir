// RUN: llopt compile %s --target cuda:80 --emit ptx | FileCheck %s --check-prefix=PTX
// RUN: llopt compile %s --target cuda:90 --emit ptx | FileCheck %s --check-prefix=PTX
// RUN: llopt compile %s --target cuda:100 --emit ptx | FileCheck %s --check-prefix=PTX
// RUN: llopt compile %s --target cuda:120 --emit ptx | FileCheck %s --check-prefix=PTX
// RUN: llopt compile %s --target hip:gfx90a --emit amdgcn | FileCheck %s --check-prefix=BITS
// RUN: llopt compile %s --target hip:gfx942 --emit amdgcn | FileCheck %s --check-prefix=NT
// RUN: llopt compile %s --target hip:gfx950 --emit amdgcn | FileCheck %s --check-prefix=NT
// RUN: llopt compile %s --target hip:gfx1100 --emit amdgcn | FileCheck %s --check-prefix=BITS
// RUN: llopt compile %s --target hip:gfx1200 --emit amdgcn | FileCheck %s --check-prefix=TH

// A kernel as Triton 3.9 prints it, for every target: what is said to the caches in one attribute reaches the
// instructions.

// PTX: ld.global.ca
// PTX: ld.volatile.global
// PTX: st.global.cs
// BITS: global_load_{{.*}} glc
// BITS: global_store_{{.*}} glc slc
// NT: global_load_{{.*}} sc0 sc1
// NT: global_store_{{.*}} nt
// TH: global_load_{{.*}} scope:SCOPE_SYS
// TH: global_store_{{.*}} th:TH_STORE_NT
module {
  tt.func public @copy_hints(%src: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %dst: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %o = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
    %a = tt.splat %src : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %a_0 = tt.addptr %a, %o : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    %x = tt.load %a_0 {cachePolicy = #tt.cache_policy<cache_modifier = ca, eviction_policy = evict_normal>} : tensor<1024x!tt.ptr<f32>>
    %n_1 = tt.splat %n : i32 -> tensor<1024xi32>
    %a_2 = tt.addptr %a_0, %n_1 : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    %y = tt.load %a_2 {isVolatile = true} : tensor<1024x!tt.ptr<f32>>
    %s = arith.addf %x, %y : tensor<1024xf32>
    %d = tt.splat %dst : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %d_3 = tt.addptr %d, %o : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    tt.store %d_3, %s {cachePolicy = #tt.cache_policy<cache_modifier = cs, eviction_policy = evict_normal>} : tensor<1024x!tt.ptr<f32>>
    tt.return
  }
}
