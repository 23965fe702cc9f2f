// What is printed is what was read, character by character, from text and from bytecode.
// RUN: llopt %s --split-input-file --verify-roundtrip | grep -v '^ *\(//.*\)*$' > %t.printed
// RUN: grep -v '^ *\(//.*\)*$' %s | diff - %t.printed

#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
  // Loads and stores through a buffer descriptor, with every optional operand and attribute.
  tt.func @buffer(%arg0: !tt.ptr<f32>, %arg1: tensor<1024xi32, #blocked>, %arg2: tensor<1024xi1, #blocked>, %arg3: tensor<1024xf32, #blocked>, %arg4: i32, %arg5: !ttg.memdesc<1024xf32, #shared, #smem, mutable>) {
    %0 = amdg.buffer_load %arg0[%arg1] : tensor<1024xf32, #blocked>
    %1 = amdg.buffer_load %arg0[%arg1], %arg2, %arg3 cacheModifier = cg stride = %arg4 {contiguity = 4 : i32} : tensor<1024xf32, #blocked>
    %2 = amdg.buffer_load_to_local %arg0[%arg1] into %arg5 : <f32>[tensor<1024xi32, #blocked>]  -> <1024xf32, #shared, #smem, mutable>
    %3 = amdg.buffer_load_to_local %arg0[%arg1] mask = %arg2 other = %arg3 stride = %arg4 cacheModifier = cs into %arg5 {contiguity = 2 : i32} : <f32>[tensor<1024xi32, #blocked>] tensor<1024xf32, #blocked> -> <1024xf32, #shared, #smem, mutable>
    amdg.buffer_store %arg3, %arg0[%arg1] : tensor<1024xf32, #blocked>
    amdg.buffer_store %arg3, %arg0[%arg1], %arg2 cacheModifier = cs stride = %arg4 {contiguity = 4 : i32} : tensor<1024xf32, #blocked>
    tt.return
  }

  // Atomics through a buffer descriptor.
  tt.func @atomics(%arg0: !tt.ptr<f32>, %arg1: !tt.ptr<i32>, %arg2: tensor<1024xi32, #blocked>, %arg3: tensor<1024xi1, #blocked>, %arg4: tensor<1024xf32, #blocked>, %arg5: i32) {
    %0 = amdg.buffer_atomic_rmw fadd, acq_rel, gpu, %arg4, %arg0[%arg2] : tensor<1024xf32, #blocked>
    %1 = amdg.buffer_atomic_rmw fadd, relaxed, gpu, %arg4, %arg0[%arg2], %arg3 stride = %arg5 {contiguity = 2 : i32} : tensor<1024xf32, #blocked>
    %2 = amdg.buffer_atomic_cas acq_rel, gpu, %arg2, %arg2, %arg1[%arg2] : tensor<1024xi32, #blocked>
    %3 = amdg.buffer_atomic_cas release, sys, %arg2, %arg2, %arg1[%arg2] stride = %arg5 {contiguity = 2 : i32} : tensor<1024xi32, #blocked>
    tt.return
  }

  // Steps of Triton's own lowering, on types of LLVM's dialect.
  tt.func @masked(%arg0: !llvm.ptr<1>, %arg1: vector<4xf32>, %arg2: i1, %arg3: i16) {
    %0 = amdg.masked_load %arg0, %arg2, %arg1 : (!llvm.ptr<1>, i1, vector<4xf32>) -> vector<4xf32>
    %1 = amdg.masked_load %arg0, %arg2, %arg1, %arg3 cacheModifier = cg forceNoAlias true : (!llvm.ptr<1>, i1, vector<4xf32>, i16) -> vector<4xf32>
    amdg.masked_store %arg0, %0, %arg2 : !llvm.ptr<1>, vector<4xf32>, i1
    amdg.masked_store %arg0, %0, %arg2 cacheModifier = wt forceNoAlias true : !llvm.ptr<1>, vector<4xf32>, i1
    tt.return
  }
}

// -----

#mma = #ttg.amd_mfma<{version = 4, warpsPerCTA = [4, 1], instrShape = [16, 16, 128], isTransposed = true}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>
#shared1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
  // Packed 4-bit elements, read transposed, after a copy and at once.
  tt.func @packed(%arg0: !ttg.memdesc<64x128xi8, #shared, #smem, mutable>, %arg1: !ttg.memdesc<128x64xi8, #shared1, #smem, mutable>, %arg2: !ttg.async.token) {
    %0 = amdg.local_load_packed_tranposed %arg0 : !ttg.memdesc<64x128xi8, #shared, #smem, mutable> -> tensor<128x64xi8, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 16}>>
    %1 = amdg.local_load_packed_tranposed %arg1 token %arg2 : !ttg.memdesc<128x64xi8, #shared1, #smem, mutable> -> tensor<64x128xi8, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 16}>>
    tt.return
  }
}

// -----

#shared = #ttg.padded_shared<[32:+4] {order = [1, 0], shape = [64, 64]}>
#shared1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#shared2 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
  // Blocks to and from shared memory by the tensor data mover.
  tt.func @mover(%arg0: !tt.tensordesc<tensor<64x64xf16>>, %arg1: i32, %arg2: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %arg3: !ttg.memdesc<1xi64, #shared1, #smem, mutable>, %arg4: i1, %arg5: !ttg.memdesc<64x64xf16, #shared2, #smem, mutable>) {
    %0 = amdg.async_tdm_copy_global_to_local %arg0[%arg1, %arg1] into %arg2, %arg4 : !tt.tensordesc<tensor<64x64xf16>> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    %1 = amdg.async_tdm_copy_global_to_local %arg0[%arg1, %arg1] into %arg2, %arg4, barrier = %arg3 : !tt.tensordesc<tensor<64x64xf16>>, !ttg.memdesc<1xi64, #shared1, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    amdg.async_tdm_copy_local_to_global %arg0[%arg1, %arg1] from %arg5 : !ttg.memdesc<64x64xf16, #shared2, #smem, mutable> -> !tt.tensordesc<tensor<64x64xf16>>
    %2 = amdg.async_tdm_wait %0, %1 {num = 0 : i32}
    %3 = amdg.async_tdm_wait  {num = 0 : i32}
    tt.return
  }
}
