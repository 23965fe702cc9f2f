// An access of NVIDIA's has a cache operator or a priority in the first level, and a volatile one has neither.
//
// RUN: llopt compile %s --target cuda:90 | FileCheck %s

#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  // CHECK: ld.global.L1::evict_last.L2::cache_hint.b32
  // CHECK: ld.global.cg.L2::cache_hint.b32
  // CHECK: ld.volatile.global.b32
  // CHECK: st.global.wb.L2::cache_hint.b32
  tt.func public @hints(%p: !tt.ptr<i32>) {
    %r = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #blocked>
    %s = tt.splat %p : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>, #blocked>
    %a = tt.addptr %s, %r : tensor<128x!tt.ptr<i32>, #blocked>, tensor<128xi32, #blocked>
    %x = tt.load %a evictionPolicy = evict_last : tensor<128x!tt.ptr<i32>, #blocked>
    %y = tt.load %a cacheModifier = cg evictionPolicy = evict_last : tensor<128x!tt.ptr<i32>, #blocked>
    %z = tt.load %a cacheModifier = ca evictionPolicy = evict_first {isVolatile = true} : tensor<128x!tt.ptr<i32>, #blocked>
    %u = arith.addi %x, %y : tensor<128xi32, #blocked>
    %v = arith.addi %u, %z : tensor<128xi32, #blocked>
    tt.store %a, %v cacheModifier = wb evictionPolicy = evict_first : tensor<128x!tt.ptr<i32>, #blocked>
    tt.return
  }
}
