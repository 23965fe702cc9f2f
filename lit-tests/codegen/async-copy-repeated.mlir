// RUN: llopt compile %s --target hip:gfx950 | FileCheck %s

#each = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
#tile = #ttg.blocked<{sizePerThread = [16], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32, ttg.target = "hip:gfx950"} {
  // Numbers of which each of four warps has all: one of them copies these to LDS, without registers and without a wait for
  // them. The others have issued one copy less, so that a wait may only leave what all warps have issued: one copy, of
  // the second group.
  // CHECK-LABEL: repeated:
  // CHECK: s_and_saveexec_b64
  // CHECK: buffer_load_dword v{{[0-9]+}}, {{.*}} lds
  // CHECK-NOT: s_waitcnt vmcnt
  // CHECK: buffer_load_dwordx4 v{{[0-9]+}}, {{.*}} lds
  // CHECK-NOT: ds_write
  // CHECK: s_waitcnt vmcnt(1)
  // CHECK: ds_read
  tt.func public @repeated(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32, tt.pointer_range = 32 : i32},
                           %q: !tt.ptr<i8> {tt.divisibility = 16 : i32, tt.pointer_range = 32 : i32},
                           %o: !tt.ptr<f32> {tt.divisibility = 16 : i32, tt.pointer_range = 32 : i32}) {
    %few = ttg.local_alloc : () -> !ttg.memdesc<64xf32, #flat, #smem, mutable>
    %many = ttg.local_alloc : () -> !ttg.memdesc<4096xi8, #flat, #smem, mutable>
    %i = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #each>
    %j = tt.make_range {start = 0 : i32, end = 4096 : i32} : tensor<4096xi32, #tile>
    %a = amdg.buffer_load_to_local %p[%i] into %few : <f32>[tensor<64xi32, #each>] -> <64xf32, #flat, #smem, mutable>
    %ga = ttg.async_commit_group tokens %a
    %b = amdg.buffer_load_to_local %q[%j] into %many : <i8>[tensor<4096xi32, #tile>] -> <4096xi8, #flat, #smem, mutable>
    %gb = ttg.async_commit_group tokens %b
    %w = ttg.async_wait {num = 1 : i32}
    %x = ttg.local_load %few : !ttg.memdesc<64xf32, #flat, #smem, mutable> -> tensor<64xf32, #each>
    %at = tt.splat %o : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #each>
    %to = tt.addptr %at, %i : tensor<64x!tt.ptr<f32>, #each>, tensor<64xi32, #each>
    tt.store %to, %x : tensor<64x!tt.ptr<f32>, #each>
    tt.return
  }
}
