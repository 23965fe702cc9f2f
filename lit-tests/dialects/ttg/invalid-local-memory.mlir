// RUN: llopt %s --split-input-file --verify-diagnostics

// Each part breaks one rule; the message says which, and what is at fault.

#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @not_shared() {
    // expected-error @+1 {{'ttg.local_alloc' op the buffer must be in shared memory, not in #ttng.tensor_memory}}
    %0 = ttg.local_alloc : () -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
    tt.return
  }
}

// -----

#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @part() {
    // expected-error @+1 {{'ttg.local_alloc' op an allocation is a whole buffer; its shape is [32, 64], that of the buffer [64, 64]}}
    %0 = ttg.local_alloc : () -> !ttg.memdesc<32x64xf16, #flat, #smem, mutable, 64x64>
    tt.return
  }
}

// -----

#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @alignment() {
    // expected-error @+1 {{'ttg.local_alloc' op alignment must be a power of two, but is 3}}
    %0 = ttg.local_alloc {alignment = 3 : i32} : () -> !ttg.memdesc<64x64xf16, #flat, #smem, mutable>
    tt.return
  }
}

// -----

#a2 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @value_element(%x: tensor<64x64xf32, #a2>) {
    // expected-error @+1 {{'ttg.local_alloc' op the value has elements of type 'f32', the buffer of 'f16'}}
    %0 = ttg.local_alloc %x : (tensor<64x64xf32, #a2>) -> !ttg.memdesc<64x64xf16, #flat, #smem>
    tt.return
  }
}

// -----

#a2 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @value_shape(%x: tensor<32x64xf16, #a2>) {
    // expected-error @+1 {{'ttg.local_alloc' op the value has shape [32, 64], the buffer [64, 64]}}
    %0 = ttg.local_alloc %x : (tensor<32x64xf16, #a2>) -> !ttg.memdesc<64x64xf16, #flat, #smem>
    tt.return
  }
}

// -----

#a3 = #ttg.blocked<{sizePerThread = [1, 1, 1], threadsPerWarp = [4, 8, 1], warpsPerCTA = [4, 1, 1], order = [2, 1, 0]}>
#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @several_buffers(%x: tensor<2x64x64xf16, #a3>) {
    // expected-error @+1 {{'ttg.local_alloc' op the value has rank 3, the layout of the buffer 2}}
    %0 = ttg.local_alloc %x : (tensor<2x64x64xf16, #a3>) -> !ttg.memdesc<2x64x64xf16, #flat, #smem>
    tt.return
  }
}

// -----

#a2 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @store_shape(%x: tensor<32x64xf16, #a2>, %b: !ttg.memdesc<64x64xf16, #flat, #smem, mutable>) {
    // expected-error @+1 {{'ttg.local_store' op the value has shape [32, 64], the buffer [64, 64]}}
    ttg.local_store %x, %b : tensor<32x64xf16, #a2> -> !ttg.memdesc<64x64xf16, #flat, #smem, mutable>
    tt.return
  }
}

// -----

#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
#a2 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @load_element(%b: !ttg.memdesc<64x64xf16, #flat, #smem, mutable>) {
    // expected-error @+1 {{'ttg.local_load' op the result has elements of type 'f32', the buffer of 'f16'}}
    %0 = ttg.local_load %b : !ttg.memdesc<64x64xf16, #flat, #smem, mutable> -> tensor<64x64xf32, #a2>
    tt.return
  }
}

// -----

#b1 = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#flat1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @copy_immutable(%p: tensor<512x!tt.ptr<f32>, #b1>, %b: !ttg.memdesc<512xf32, #flat1, #smem>) {
    // expected-error @+1 {{'ttg.async_copy_global_to_local' op cannot copy into an immutable buffer}}
    %0 = ttg.async_copy_global_to_local %p, %b : tensor<512x!tt.ptr<f32>, #b1> -> !ttg.memdesc<512xf32, #flat1, #smem>
    tt.return
  }
}

// -----

#b1 = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#flat1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @copy_shape(%p: tensor<512x!tt.ptr<f32>, #b1>, %b: !ttg.memdesc<256xf32, #flat1, #smem, mutable>) {
    // expected-error @+1 {{'ttg.async_copy_global_to_local' op the pointers have shape [512], the buffer [256]}}
    %0 = ttg.async_copy_global_to_local %p, %b : tensor<512x!tt.ptr<f32>, #b1> -> !ttg.memdesc<256xf32, #flat1, #smem, mutable>
    tt.return
  }
}

// -----

#b1 = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#flat1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @copy_element(%p: tensor<512x!tt.ptr<f32>, #b1>, %b: !ttg.memdesc<512xf16, #flat1, #smem, mutable>) {
    // expected-error @+1 {{'ttg.async_copy_global_to_local' op the pointers point to 'f32', the buffer has elements of type 'f16'}}
    %0 = ttg.async_copy_global_to_local %p, %b : tensor<512x!tt.ptr<f32>, #b1> -> !ttg.memdesc<512xf16, #flat1, #smem, mutable>
    tt.return
  }
}

// -----

#b1 = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#flat1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @copy_contiguity(%p: tensor<512x!tt.ptr<f32>, #b1>, %b: !ttg.memdesc<512xf32, #flat1, #smem, mutable>) {
    // expected-error @+1 {{'ttg.async_copy_global_to_local' op contiguity must be a power of two, but is 3}}
    %0 = ttg.async_copy_global_to_local %p, %b {contiguity = 3 : i32} : tensor<512x!tt.ptr<f32>, #b1> -> !ttg.memdesc<512xf32, #flat1, #smem, mutable>
    tt.return
  }
}
