// RUN: llopt %s --split-input-file --verify-diagnostics

// Each part breaks one rule; the message says which, and what is at fault.

#nvmma32 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @alloc_space() {
    // expected-error @+1 {{'ttng.tmem_alloc' op the buffer must be in tensor memory, not have a layout of kind `ttg.nvmma_shared`}}
    %0 = ttng.tmem_alloc : () -> !ttg.memdesc<128x64xf32, #nvmma32, #smem, mutable>
    tt.return
  }
}

// -----

#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @alloc_immutable() {
    // expected-error @+1 {{'ttng.tmem_alloc' op a buffer without an initial value must be mutable}}
    %0 = ttng.tmem_alloc : () -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory>
    tt.return
  }
}

// -----

#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @alloc_part() {
    // expected-error @+1 {{'ttng.tmem_alloc' op an allocation is a whole buffer; its shape is [128, 32], that of the buffer [128, 64]}}
    %0 = ttng.tmem_alloc : () -> !ttg.memdesc<128x32xf32, #tmem, #ttng.tensor_memory, mutable, 128x64>
    tt.return
  }
}

// -----

#a2 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @alloc_layout(%x: tensor<128x64xf32, #a2>) {
    // expected-error @+1 {{'ttng.tmem_alloc' op no instruction moves the value in the layout #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}> between registers and tensor memory; it could have #ttg.linear<{register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]], block = []}>}}
    %0 = ttng.tmem_alloc %x : (tensor<128x64xf32, #a2>) -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory>
    tt.return
  }
}

// -----

#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#a2 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @load_layout(%d: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>) {
    // expected-error @+1 {{'ttng.tmem_load' op no instruction moves the result in the layout #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}> between registers and tensor memory; it could have #ttg.linear<{register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]], block = []}>}}
    %0 = ttng.tmem_load %d : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> tensor<128x64xf32, #a2>
    tt.return
  }
}

// -----

#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#a2 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @store_layout(%d: !ttg.memdesc<128x64xf16, #tmem, #ttng.tensor_memory, mutable>, %x: tensor<128x64xf16, #a2>, %p: i1) {
    // expected-error @+1 {{'ttng.tmem_store' op no instruction moves the value in the layout #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}> between registers and tensor memory; it could have #ttg.linear<{register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]], block = []}>}}
    ttng.tmem_store %x, %d, %p : tensor<128x64xf16, #a2> -> !ttg.memdesc<128x64xf16, #tmem, #ttng.tensor_memory, mutable>
    tt.return
  }
}

// -----

#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#tm32rev = #ttg.linear<{register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[64, 0], [32, 0]], block = []}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @load_warps(%d: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>) {
    // expected-error @+1 {{'ttng.tmem_load' op no instruction moves the result in the layout #ttg.linear<{register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[64, 0], [32, 0]], block = []}> between registers and tensor memory; it could have #ttg.linear<{register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]], block = []}>}}
    %0 = ttng.tmem_load %d : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> tensor<128x64xf32, #tm32rev>
    tt.return
  }
}

// -----

#scales = #ttng.tensor_memory_scales_encoding<>
#a2 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @load_scales(%d: !ttg.memdesc<128x32xi8, #scales, #ttng.tensor_memory, mutable>) {
    // expected-error @+1 {{'ttng.tmem_load' op scales cannot be read back; the buffer must have a layout #ttng.tensor_memory_encoding}}
    %0 = ttng.tmem_load %d : !ttg.memdesc<128x32xi8, #scales, #ttng.tensor_memory, mutable> -> tensor<128x32xi8, #a2>
    tt.return
  }
}

// -----

#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#tm32 = #ttg.blocked<{sizePerThread = [1, 64], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @load_shape(%d: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>) {
    // expected-error @+1 {{'ttng.tmem_load' op the result has shape [64, 64], the buffer [128, 64]}}
    %0 = ttng.tmem_load %d : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> tensor<64x64xf32, #tm32>
    tt.return
  }
}

// -----

#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
#a2 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @load_shared(%d: !ttg.memdesc<64x64xf16, #flat, #smem, mutable>) {
    // expected-error @+1 {{'ttng.tmem_load' op the buffer must be in tensor memory, not have a layout of kind `ttg.swizzled_shared`}}
    %0 = ttng.tmem_load %d : !ttg.memdesc<64x64xf16, #flat, #smem, mutable> -> tensor<64x64xf16, #a2>
    tt.return
  }
}

// -----

#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#a3 = #ttg.blocked<{sizePerThread = [1, 1, 1], threadsPerWarp = [4, 8, 1], warpsPerCTA = [4, 1, 1], order = [2, 1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @load_rank(%d: !ttg.memdesc<2x128x64xf32, #tmem, #ttng.tensor_memory, mutable>) {
    // expected-error @+1 {{'ttng.tmem_load' op tensor memory is moved as a matrix, not in shape [2, 128, 64]}}
    %0 = ttng.tmem_load %d : !ttg.memdesc<2x128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> tensor<2x128x64xf32, #a3>
    tt.return
  }
}

// -----

#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#tm32 = #ttg.blocked<{sizePerThread = [1, 64], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @store_immutable(%d: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory>, %x: tensor<128x64xf32, #tm32>, %p: i1) {
    // expected-error @+1 {{'ttng.tmem_store' op cannot store into an immutable buffer}}
    ttng.tmem_store %x, %d, %p : tensor<128x64xf32, #tm32> -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory>
    tt.return
  }
}

// -----

#scales = #ttng.tensor_memory_scales_encoding<>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @slice_scales(%d: !ttg.memdesc<128x32xi8, #scales, #ttng.tensor_memory, mutable>) {
    // expected-error @+1 {{'ttng.tmem_subslice' op source and view must have a layout #ttng.tensor_memory_encoding}}
    %0 = ttng.tmem_subslice %d {N = 0 : i32} : !ttg.memdesc<128x32xi8, #scales, #ttng.tensor_memory, mutable> -> !ttg.memdesc<128x16xi8, #scales, #ttng.tensor_memory, mutable>
    tt.return
  }
}

// -----

#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#tmem64 = #ttng.tensor_memory_encoding<blockM = 64, blockN = 64, colStride = 1>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @slice_rows(%d: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>) {
    // expected-error @+1 {{'ttng.tmem_subslice' op the view must keep blockM, colStride and the split among blocks}}
    %0 = ttng.tmem_subslice %d {N = 0 : i32} : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> !ttg.memdesc<64x64xf32, #tmem64, #ttng.tensor_memory, mutable>
    tt.return
  }
}

// -----

#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#tmemN = #ttng.tensor_memory_encoding<blockM = 128, blockN = 32, colStride = 1>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @slice_element(%d: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>) {
    // expected-error @+1 {{'ttng.tmem_subslice' op the source has elements of type 'f32', the view of 'i32'}}
    %0 = ttng.tmem_subslice %d {N = 0 : i32} : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> !ttg.memdesc<128x32xi32, #tmemN, #ttng.tensor_memory, mutable, 128x64>
    tt.return
  }
}

// -----

#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#tmemN = #ttng.tensor_memory_encoding<blockM = 128, blockN = 32, colStride = 1>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @slice_columns(%d: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>) {
    // expected-error @+1 {{'ttng.tmem_subslice' op 32 columns from 48 on are not within 64}}
    %0 = ttng.tmem_subslice %d {N = 48 : i32} : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> !ttg.memdesc<128x32xf32, #tmemN, #ttng.tensor_memory, mutable, 128x64>
    tt.return
  }
}

// -----

#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @copy_from(%a: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, %d: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>) {
    // expected-error @+1 {{'ttng.tmem_copy' op the source must be in shared memory, not in #ttng.tensor_memory}}
    ttng.tmem_copy %a, %d : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
    tt.return
  }
}

// -----

#nvmma32 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @copy_to(%a: !ttg.memdesc<128x64xf32, #nvmma32, #smem>, %d: !ttg.memdesc<128x64xf32, #nvmma32, #smem, mutable>) {
    // expected-error @+1 {{'ttng.tmem_copy' op the buffer must be in tensor memory, not have a layout of kind `ttg.nvmma_shared`}}
    ttng.tmem_copy %a, %d : !ttg.memdesc<128x64xf32, #nvmma32, #smem>, !ttg.memdesc<128x64xf32, #nvmma32, #smem, mutable>
    tt.return
  }
}

// -----

#nvmma32 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @copy_shape(%a: !ttg.memdesc<64x64xf32, #nvmma32, #smem>, %d: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>) {
    // expected-error @+1 {{'ttng.tmem_copy' op the source has shape [64, 64], the target [128, 64]}}
    ttng.tmem_copy %a, %d : !ttg.memdesc<64x64xf32, #nvmma32, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
    tt.return
  }
}

// -----

#nvmma32 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @copy_immutable(%a: !ttg.memdesc<128x64xf32, #nvmma32, #smem>, %d: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory>) {
    // expected-error @+1 {{'ttng.tmem_copy' op cannot copy into an immutable buffer}}
    ttng.tmem_copy %a, %d : !ttg.memdesc<128x64xf32, #nvmma32, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory>
    tt.return
  }
}

// -----

#nvmma32 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#flat1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @copy_barrier(%a: !ttg.memdesc<128x64xf32, #nvmma32, #smem>, %d: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, %bar: !ttg.memdesc<1xi32, #flat1, #smem, mutable>) {
    // expected-error @+1 {{'ttng.tmem_copy' op a barrier must be one i64 in shared memory, not '!ttg.memdesc<1xi32, #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>, #ttg.shared_memory, mutable>'}}
    ttng.tmem_copy %a, %d, %bar : !ttg.memdesc<128x64xf32, #nvmma32, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, !ttg.memdesc<1xi32, #flat1, #smem, mutable>
    tt.return
  }
}

// -----

#lin8 = #ttg.shared_linear<{offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [64, 0]]}, alignment = 8>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @copy_alignment(%a: !ttg.memdesc<128x64xf32, #lin8, #smem>, %d: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>) {
    // expected-error @+1 {{'ttng.tmem_copy' op the source must be aligned to 16 bytes; its layout `ttg.shared_linear` asks for 8}}
    ttng.tmem_copy %a, %d : !ttg.memdesc<128x64xf32, #lin8, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
    tt.return
  }
}

// -----

#nvmma32 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @copy_blocks(%a: !ttg.memdesc<128x64xf32, #nvmma32, #smem>, %d: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>) {
    // expected-error @+1 {{'ttng.tmem_copy' op copies within one block, but the cluster has 2}}
    ttng.tmem_copy %a, %d : !ttg.memdesc<128x64xf32, #nvmma32, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
    tt.return
  }
}

// -----

#nvmmaT = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 32}>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @copy_transposed(%a: !ttg.memdesc<128x64xf32, #nvmmaT, #smem>, %d: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>) {
    // expected-error @+1 {{'ttng.tmem_copy' op the source must be neither transposed nor padded}}
    ttng.tmem_copy %a, %d : !ttg.memdesc<128x64xf32, #nvmmaT, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
    tt.return
  }
}

// -----

#nvmma8 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 8}>
#smem = #ttg.shared_memory
#scales = #ttng.tensor_memory_scales_encoding<>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @copy_swizzled_scales(%a: !ttg.memdesc<128x128xi8, #nvmma8, #smem>, %d: !ttg.memdesc<128x128xi8, #scales, #ttng.tensor_memory, mutable>) {
    // expected-error @+1 {{'ttng.tmem_copy' op scales must not be swizzled; the source has swizzlingByteWidth = 128}}
    ttng.tmem_copy %a, %d : !ttg.memdesc<128x128xi8, #nvmma8, #smem>, !ttg.memdesc<128x128xi8, #scales, #ttng.tensor_memory, mutable>
    tt.return
  }
}

// -----

#nvmma32 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#smem = #ttg.shared_memory
#tmem64 = #ttng.tensor_memory_encoding<blockM = 64, blockN = 64, colStride = 1>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @copy_half_blocks(%a: !ttg.memdesc<64x64xf32, #nvmma32, #smem>, %d: !ttg.memdesc<64x64xf32, #tmem64, #ttng.tensor_memory, mutable>) {
    // expected-error @+1 {{'ttng.tmem_copy' op the target must have blockM = 128, but has 64}}
    ttng.tmem_copy %a, %d : !ttg.memdesc<64x64xf32, #nvmma32, #smem>, !ttg.memdesc<64x64xf32, #tmem64, #ttng.tensor_memory, mutable>
    tt.return
  }
}

// -----

#nvmma0 = #ttg.nvmma_shared<{swizzlingByteWidth = 0, transposed = false, elementBitWidth = 32}>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @copy_unswizzled(%a: !ttg.memdesc<128x64xf32, #nvmma0, #smem>, %d: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>) {
    // expected-error @+1 {{'ttng.tmem_copy' op the source of an accumulator must be swizzled, but has swizzlingByteWidth = 0}}
    ttng.tmem_copy %a, %d : !ttg.memdesc<128x64xf32, #nvmma0, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
    tt.return
  }
}

// -----

#nvmma = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @copy_narrow(%a: !ttg.memdesc<128x64xf16, #nvmma, #smem>, %d: !ttg.memdesc<128x64xf16, #tmem, #ttng.tensor_memory, mutable>) {
    // expected-error @+1 {{'ttng.tmem_copy' op elements must have 32 bits, not be 'f16'}}
    ttng.tmem_copy %a, %d : !ttg.memdesc<128x64xf16, #nvmma, #smem>, !ttg.memdesc<128x64xf16, #tmem, #ttng.tensor_memory, mutable>
    tt.return
  }
}
