// RUN: llopt %s --split-input-file --verify-diagnostics

// Each part breaks one rule; the message says which, and what is at fault.

#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
// expected-error @+1 {{a memory descriptor has at least one dimension}}
tt.func private @no_dimension(!ttg.memdesc<f32, #flat, #smem>)

// -----

#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
// expected-error @+1 {{dimension 1 of a memory descriptor has extent 3, which is no power of two}}
tt.func private @extent(!ttg.memdesc<64x3xf16, #flat, #smem, mutable>)

// -----

#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
// expected-error @+1 {{dimension 0 of a memory descriptor has extent 0, which is no power of two}}
tt.func private @zero(!ttg.memdesc<0x64xf16, #flat, #smem, mutable>)

// -----

#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
// expected-error @+1 {{the view of shape [64, 64] is not within the buffer of shape [32, 64]}}
tt.func private @outside(!ttg.memdesc<64x64xf16, #flat, #smem, mutable, 32x64>)

// -----

#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
// expected-error @+1 {{the buffer of shape [64] has fewer dimensions than its view [64, 64]}}
tt.func private @buffer_rank(!ttg.memdesc<64x64xf16, #flat, #smem, mutable, 64>)

// -----

#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
// expected-error @+1 {{a buffer cannot hold elements of type '!ttg.async.token'}}
tt.func private @element(!ttg.memdesc<64x64x!ttg.async.token, #flat, #smem>)

// -----

#a2 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#smem = #ttg.shared_memory
// expected-error @+1 {{`ttg.blocked` is a layout of registers, not of memory}}
tt.func private @registers(!ttg.memdesc<64x64xf16, #a2, #smem, mutable>)

// -----

#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
// expected-error @+1 {{a buffer of layout `ttg.swizzled_shared` must be in #ttg.shared_memory, not in #ttng.tensor_memory}}
tt.func private @space(!ttg.memdesc<64x64xf16, #flat, #ttng.tensor_memory, mutable>)

// -----

#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
// expected-error @+1 {{the layout has rank 2; it must be that of the view [2, 2, 64, 64], or one less for several buffers}}
tt.func private @rank(!ttg.memdesc<2x2x64x64xf16, #flat, #smem, mutable>)

// -----

#padded = #ttg.padded_shared<[32:+4] {order = [1, 0], shape = [64, 64]}>
#smem = #ttg.shared_memory
// expected-error @+1 {{the padded layout spans 64 elements along dimension 0, the buffer has 32}}
tt.func private @padded_extent(!ttg.memdesc<32x64xf16, #padded, #smem, mutable>)

// -----

#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
// expected-error @+1 {{tensor memory holds matrices or several of one kind, not shape [128]}}
tt.func private @tensor_memory_rank(!ttg.memdesc<128xf32, #tmem, #ttng.tensor_memory, mutable>)

// -----

#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#smem = #ttg.shared_memory
// expected-error @+1 {{a buffer of tensor memory must be in #ttng.tensor_memory, not in #ttg.shared_memory}}
tt.func private @tensor_memory_space(!ttg.memdesc<128x64xf32, #tmem, #smem, mutable>)

// -----

#tmem2 = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 2>
// expected-error @+1 {{colStride 2 times 32 bits of an element must be at most 32}}
tt.func private @column_stride(!ttg.memdesc<128x64xf32, #tmem2, #ttng.tensor_memory, mutable>)

// -----

#scales = #ttng.tensor_memory_scales_encoding<>
// expected-error @+1 {{scales in tensor memory form one matrix, not shape [2, 128, 32]}}
tt.func private @scales_rank(!ttg.memdesc<2x128x32xi8, #scales, #ttng.tensor_memory, mutable>)

// -----

#scales = #ttng.tensor_memory_scales_encoding<>
// expected-error @+1 {{scales in tensor memory have 8 bits; 'f16' has not}}
tt.func private @scales_element(!ttg.memdesc<128x32xf16, #scales, #ttng.tensor_memory, mutable>)

// -----

#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
// expected-error @+1 {{the buffer takes 1024 columns of 32 bits; tensor memory has 512}}
tt.func private @columns(!ttg.memdesc<128x1024xf32, #tmem, #ttng.tensor_memory, mutable>)

// -----

#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
// expected-error @+1 {{dim0 has size 64 in one block; the encoding needs at least 128}}
tt.func private @rows(!ttg.memdesc<64x64xf32, #tmem, #ttng.tensor_memory, mutable>)

// -----

#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
// expected-error @+1 {{`numPartitions` is 3, which is not a power of two}}
#shared = #ttg.partitioned_shared<{numPartitions = 3, numGroups = 4, partitionDim = 0, partitionLayout = #flat}>

// -----

#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
// expected-error @+1 {{`partitionDim` is 2; it must be a dimension of the layout of a piece}}
#shared = #ttg.partitioned_shared<{numPartitions = 2, numGroups = 4, partitionDim = 2, partitionLayout = #flat}>

// -----

#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// expected-error @+1 {{`ttg.partitioned_shared` cannot have the parent `ttg.blocked`; it must be an encoding of shared memory of a single block}}
#shared = #ttg.partitioned_shared<{numPartitions = 2, numGroups = 4, partitionDim = 0, partitionLayout = #blocked}>
