// RUN: llopt %s --split-input-file --verify-diagnostics

// Each part breaks one rule; the message says which, and what is at fault.

#w641 = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32} {
  tt.func @other_alone(%p: !tt.ptr<f32>, %o: tensor<1024xi32, #w641>, %v: tensor<1024xf32, #w641>) {
    // expected-error @+1 {{'amdg.buffer_load' op `other` needs a mask beside it}}
    %0 = "amdg.buffer_load"(%p, %o, %v) <{operandSegmentSizes = array<i32: 1, 1, 0, 0, 1>}> : (!tt.ptr<f32>, tensor<1024xi32, #w641>, tensor<1024xf32, #w641>) -> tensor<1024xf32, #w641>
    tt.return
  }
}

// -----

#w641 = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32} {
  tt.func @contiguity(%p: !tt.ptr<f32>, %o: tensor<1024xi32, #w641>) {
    // expected-error @+1 {{'amdg.buffer_load' op contiguity must be a power of two, but is 3}}
    %0 = amdg.buffer_load %p[%o] {contiguity = 3 : i32} : tensor<1024xf32, #w641>
    tt.return
  }
}

// -----

#w641 = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32} {
  tt.func @float_update(%p: !tt.ptr<f32>, %o: tensor<1024xi32, #w641>, %v: tensor<1024xf32, #w641>) {
    // expected-error @+1 {{'amdg.buffer_atomic_rmw' op there is no update `add` for elements of type 'f32'}}
    %0 = amdg.buffer_atomic_rmw add, relaxed, gpu, %v, %p[%o] : tensor<1024xf32, #w641>
    tt.return
  }
}

// -----

#w641 = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32} {
  tt.func @offsets(%p: !tt.ptr<f32>, %o: tensor<512xi32, #w641>, %v: tensor<1024xf32, #w641>) {
    // expected-error @+2 {{'amdg.buffer_store' op failed to verify that value and offsets have the same shape}}
    // expected-note @+1 {{expected 'tensor<1024xi32, #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>>', got 'tensor<512xi32, #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>>'}}
    "amdg.buffer_store"(%v, %p, %o) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}> : (tensor<1024xf32, #w641>, !tt.ptr<f32>, tensor<512xi32, #w641>) -> ()
    tt.return
  }
}

// -----

#w641 = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
#flat1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32} {
  tt.func @copy_immutable(%p: !tt.ptr<f32>, %o: tensor<1024xi32, #w641>, %b: !ttg.memdesc<1024xf32, #flat1, #smem>) {
    // expected-error @+1 {{'amdg.buffer_load_to_local' op cannot copy into an immutable buffer}}
    %0 = amdg.buffer_load_to_local %p[%o] into %b : <f32>[tensor<1024xi32, #w641>] -> !ttg.memdesc<1024xf32, #flat1, #smem>
    tt.return
  }
}

// -----

#w641 = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
#flat1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32} {
  tt.func @copy_shape(%p: !tt.ptr<f32>, %o: tensor<512xi32, #w641>, %b: !ttg.memdesc<1024xf32, #flat1, #smem, mutable>) {
    // expected-error @+1 {{'amdg.buffer_load_to_local' op the offsets have shape [512], the buffer [1024]}}
    %0 = amdg.buffer_load_to_local %p[%o] into %b : <f32>[tensor<512xi32, #w641>] -> !ttg.memdesc<1024xf32, #flat1, #smem, mutable>
    tt.return
  }
}

// -----

#w641 = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
#flat1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32} {
  tt.func @copy_other(%p: !tt.ptr<f32>, %o: tensor<1024xi32, #w641>, %m: tensor<1024xi1, #w641>, %v: tensor<1024xf16, #w641>, %b: !ttg.memdesc<1024xf32, #flat1, #smem, mutable>) {
    // expected-error @+1 {{'amdg.buffer_load_to_local' op `other` must have type 'tensor<1024xf32, #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>>', but has 'tensor<1024xf16, #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>>'}}
    %0 = amdg.buffer_load_to_local %p[%o] mask = %m other = %v into %b : <f32>[tensor<1024xi32, #w641>] tensor<1024xf16, #w641> -> !ttg.memdesc<1024xf32, #flat1, #smem, mutable>
    tt.return
  }
}

// -----

#column = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>
#smem = #ttg.shared_memory
#w64 = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [16, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32} {
  tt.func @packed_result(%a: !ttg.memdesc<64x128xi8, #column, #smem, mutable>) {
    // expected-error @+1 {{'amdg.local_load_packed_tranposed' op the result must have a layout #ttg.dot_op}}
    %0 = amdg.local_load_packed_tranposed %a : !ttg.memdesc<64x128xi8, #column, #smem, mutable> -> tensor<128x64xi8, #w64>
    tt.return
  }
}

// -----

#nvmma8 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 8}>
#smem = #ttg.shared_memory
#mfma = #ttg.amd_mfma<{version = 4, warpsPerCTA = [4, 1], instrShape = [16, 16, 32], isTransposed = true}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32} {
  tt.func @packed_layout(%a: !ttg.memdesc<64x128xi8, #nvmma8, #smem, mutable>) {
    // expected-error @+1 {{'amdg.local_load_packed_tranposed' op the buffer must have a layout #ttg.swizzled_shared}}
    %0 = amdg.local_load_packed_tranposed %a : !ttg.memdesc<64x128xi8, #nvmma8, #smem, mutable> -> tensor<128x64xi8, #ttg.dot_op<{opIdx = 0, parent = #mfma, kWidth = 16}>>
    tt.return
  }
}

// -----

#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
#mfma = #ttg.amd_mfma<{version = 4, warpsPerCTA = [4, 1], instrShape = [16, 16, 32], isTransposed = true}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32} {
  tt.func @packed_order(%a: !ttg.memdesc<64x128xi8, #flat, #smem, mutable>) {
    // expected-error @+1 {{'amdg.local_load_packed_tranposed' op the buffer must be contiguous along dimension 0, but its order is [1, 0]}}
    %0 = amdg.local_load_packed_tranposed %a : !ttg.memdesc<64x128xi8, #flat, #smem, mutable> -> tensor<128x64xi8, #ttg.dot_op<{opIdx = 0, parent = #mfma, kWidth = 16}>>
    tt.return
  }
}

// -----

#column = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>
#smem = #ttg.shared_memory
#mfma = #ttg.amd_mfma<{version = 4, warpsPerCTA = [4, 1], instrShape = [16, 16, 32], isTransposed = true}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32} {
  tt.func @packed_shape(%a: !ttg.memdesc<128x64xi8, #column, #smem, mutable>) {
    // expected-error @+1 {{'amdg.local_load_packed_tranposed' op a result of shape [128, 64] needs a buffer of shape [64, 128], not [128, 64]}}
    %0 = amdg.local_load_packed_tranposed %a : !ttg.memdesc<128x64xi8, #column, #smem, mutable> -> tensor<128x64xi8, #ttg.dot_op<{opIdx = 0, parent = #mfma, kWidth = 16}>>
    tt.return
  }
}

// -----

#padded = #ttg.padded_shared<[32:+4] {order = [1, 0], shape = [64, 64]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @mover_immutable(%d: !tt.tensordesc<tensor<64x64xf16>>, %i: i32, %s: !ttg.memdesc<64x64xf16, #padded, #smem>, %p: i1) {
    // expected-error @+1 {{'amdg.async_tdm_copy_global_to_local' op cannot copy into an immutable buffer}}
    %0 = amdg.async_tdm_copy_global_to_local %d[%i, %i] into %s, %p : !tt.tensordesc<tensor<64x64xf16>> -> !ttg.memdesc<64x64xf16, #padded, #smem>
    tt.return
  }
}

// -----

#padded = #ttg.padded_shared<[32:+4] {order = [1, 0], shape = [64, 64]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @mover_indices(%d: !tt.tensordesc<tensor<64x64xf16>>, %i: i32, %s: !ttg.memdesc<64x64xf16, #padded, #smem, mutable>, %p: i1) {
    // expected-error @+1 {{'amdg.async_tdm_copy_global_to_local' op has 1 indices, the block has rank 2}}
    %0 = amdg.async_tdm_copy_global_to_local %d[%i] into %s, %p : !tt.tensordesc<tensor<64x64xf16>> -> !ttg.memdesc<64x64xf16, #padded, #smem, mutable>
    tt.return
  }
}

// -----

#swizzled = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @mover_swizzle(%d: !tt.tensordesc<tensor<64x64xf16>>, %i: i32, %s: !ttg.memdesc<64x64xf16, #swizzled, #smem, mutable>, %p: i1) {
    // expected-error @+1 {{'amdg.async_tdm_copy_global_to_local' op the data mover does not swizzle; maxPhase must be 1, not 8}}
    %0 = amdg.async_tdm_copy_global_to_local %d[%i, %i] into %s, %p : !tt.tensordesc<tensor<64x64xf16>> -> !ttg.memdesc<64x64xf16, #swizzled, #smem, mutable>
    tt.return
  }
}

// -----

#finepad = #ttg.padded_shared<[2:+4] {order = [1, 0], shape = [64, 64]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @mover_interval(%d: !tt.tensordesc<tensor<64x64xf16>>, %i: i32, %s: !ttg.memdesc<64x64xf16, #finepad, #smem, mutable>, %p: i1) {
    // expected-error @+1 {{'amdg.async_tdm_copy_global_to_local' op the data mover pads after at least two dwords, not after 2 elements of 16 bits}}
    %0 = amdg.async_tdm_copy_global_to_local %d[%i, %i] into %s, %p : !tt.tensordesc<tensor<64x64xf16>> -> !ttg.memdesc<64x64xf16, #finepad, #smem, mutable>
    tt.return
  }
}

// -----

#thinpad = #ttg.padded_shared<[64:+1] {order = [1, 0], shape = [64, 64]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @mover_padding(%d: !tt.tensordesc<tensor<64x64xf16>>, %i: i32, %s: !ttg.memdesc<64x64xf16, #thinpad, #smem, mutable>, %p: i1) {
    // expected-error @+1 {{'amdg.async_tdm_copy_global_to_local' op the data mover pads by whole dwords, not by 1 elements of 16 bits}}
    %0 = amdg.async_tdm_copy_global_to_local %d[%i, %i] into %s, %p : !tt.tensordesc<tensor<64x64xf16>> -> !ttg.memdesc<64x64xf16, #thinpad, #smem, mutable>
    tt.return
  }
}

// -----

#nvmma = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @mover_layout(%d: !tt.tensordesc<tensor<64x64xf16>>, %i: i32, %s: !ttg.memdesc<64x64xf16, #nvmma, #smem, mutable>, %p: i1) {
    // expected-error @+1 {{'amdg.async_tdm_copy_global_to_local' op the data mover takes #ttg.swizzled_shared or #ttg.padded_shared, not `ttg.nvmma_shared`}}
    %0 = amdg.async_tdm_copy_global_to_local %d[%i, %i] into %s, %p : !tt.tensordesc<tensor<64x64xf16>> -> !ttg.memdesc<64x64xf16, #nvmma, #smem, mutable>
    tt.return
  }
}

// -----

#padded = #ttg.padded_shared<[32:+4] {order = [1, 0], shape = [64, 64]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @mover_reads(%d: !tt.tensordesc<tensor<64x64xf16>>, %i: i32, %s: !ttg.memdesc<64x64xf16, #padded, #smem, mutable>, %p: i1) {
    // expected-error @+1 {{'amdg.async_tdm_copy_local_to_global' op the data mover does not read padded buffers}}
    amdg.async_tdm_copy_local_to_global %d[%i, %i] from %s : !ttg.memdesc<64x64xf16, #padded, #smem, mutable> -> !tt.tensordesc<tensor<64x64xf16>>
    tt.return
  }
}

// -----

#padded = #ttg.padded_shared<[32:+4] {order = [1, 0], shape = [64, 64]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @mover_extent(%d: !tt.tensordesc<tensor<131072xf16>>, %i: i32, %s: !ttg.memdesc<64x64xf16, #padded, #smem, mutable>, %p: i1) {
    // expected-error @+1 {{'amdg.async_tdm_copy_global_to_local' op dimension 0 of the block has extent 131072, more than 65536}}
    %0 = amdg.async_tdm_copy_global_to_local %d[%i] into %s, %p : !tt.tensordesc<tensor<131072xf16>> -> !ttg.memdesc<64x64xf16, #padded, #smem, mutable>
    tt.return
  }
}
