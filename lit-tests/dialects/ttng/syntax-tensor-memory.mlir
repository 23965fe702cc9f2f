// What is printed is what was read, character by character, from text and from bytecode.
// RUN: llopt %s --split-input-file --verify-roundtrip | grep -v '^ *\(//.*\)*$' > %t.printed
// RUN: grep -v '^ *\(//.*\)*$' %s | diff - %t.printed

#blocked = #ttg.blocked<{sizePerThread = [1, 64], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#shared1 = #ttg.nvmma_shared<{swizzlingByteWidth = 0, transposed = false, elementBitWidth = 8}>
#shared2 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#tmem1 = #ttng.tensor_memory_encoding<blockM = 64, blockN = 64, colStride = 2>
#tmem2 = #ttng.tensor_memory_encoding<blockM = 128, blockN = 32, colStride = 1, CTASplitN = 2>
#tmem3 = #ttng.tensor_memory_encoding<blockM = 128, blockN = 32, colStride = 1>
#tmem_scales = #ttng.tensor_memory_scales_encoding<>
#tmem_scales1 = #ttng.tensor_memory_scales_encoding<CTASplitM = 2, CTASplitN = 2>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
  // Buffers, with a first value and without, with a token and without.
  tt.func @buffers(%arg0: tensor<128x64xf32, #blocked>, %arg1: i1) -> tensor<128x64xf32, #blocked> {
    %result = ttng.tmem_alloc %arg0 : (tensor<128x64xf32, #blocked>) -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory>
    %result_0 = ttng.tmem_alloc : () -> !ttg.memdesc<2x64x64xf16, #tmem1, #ttng.tensor_memory, mutable>
    %result_1, %token = ttng.tmem_alloc : () -> (!ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, !ttg.async.token)
    %0 = ttng.tmem_store %arg0, %result_1[%token], %arg1 : tensor<128x64xf32, #blocked> -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
    ttng.tmem_store %arg0, %result_1, %arg1 : tensor<128x64xf32, #blocked> -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
    %result_2, %token_3 = ttng.tmem_load %result_1[%0] : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> tensor<128x64xf32, #blocked>
    %result_4 = ttng.tmem_load %result_1 : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> tensor<128x64xf32, #blocked>
    tt.return %result_2 : tensor<128x64xf32, #blocked>
  }

  // A range of columns, and one of several buffers.
  tt.func @views(%arg0: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, %arg1: !ttg.memdesc<2x128x64xf32, #tmem, #ttng.tensor_memory, mutable>, %arg2: i32, %arg3: !ttg.memdesc<128x64xf32, #tmem2, #ttng.tensor_memory>) {
    %0 = ttng.tmem_subslice %arg0 {N = 32 : i32} : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> !ttg.memdesc<128x32xf32, #tmem3, #ttng.tensor_memory, mutable, 128x64>
    %1 = ttg.memdesc_index %arg1[%arg2] : !ttg.memdesc<2x128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
    tt.return
  }

  // Copies of an accumulator and of scales, with a barrier and without.
  tt.func @copies(%arg0: !ttg.memdesc<128x64xf32, #shared, #smem>, %arg1: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, %arg2: !ttg.memdesc<128x32xi8, #shared1, #smem>, %arg3: !ttg.memdesc<128x32xi8, #tmem_scales, #ttng.tensor_memory, mutable>, %arg4: !ttg.memdesc<128x32xi8, #tmem_scales1, #ttng.tensor_memory, mutable>, %arg5: !ttg.memdesc<1xi64, #shared2, #smem, mutable>) {
    ttng.tmem_copy %arg0, %arg1 : !ttg.memdesc<128x64xf32, #shared, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
    ttng.tmem_copy %arg2, %arg3, %arg5 : !ttg.memdesc<128x32xi8, #shared1, #smem>, !ttg.memdesc<128x32xi8, #tmem_scales, #ttng.tensor_memory, mutable>, !ttg.memdesc<1xi64, #shared2, #smem, mutable>
    tt.return
  }
}
