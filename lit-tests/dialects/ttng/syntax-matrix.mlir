// What is printed is what was read, character by character, from text and from bytecode.
// RUN: llopt %s --split-input-file --verify-roundtrip | grep -v '^ *\(//.*\)*$' > %t.printed
// RUN: grep -v '^ *\(//.*\)*$' %s | diff - %t.printed

#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // Products of a group of warps: the left operand in shared memory or in registers, with all options.
  tt.func @group(%arg0: !ttg.memdesc<64x64xf16, #shared, #smem>, %arg1: tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>, %arg2: tensor<64x64xf32, #mma>, %arg3: i1) -> tensor<64x64xf32, #mma> {
    %0 = ttng.warp_group_dot %arg0, %arg0, %arg2 : !ttg.memdesc<64x64xf16, #shared, #smem> * !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf32, #mma>
    %1 = ttng.warp_group_dot %arg1, %arg0, %0, %arg3 {inputPrecision = 0 : i32, isAsync = true, maxNumImpreciseAcc = 1073741824 : i32} : tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf32, #mma>
    %2:2 = ttng.warp_group_dot_wait %1, %arg0 {pendings = 0 : i32} : tensor<64x64xf32, #mma>, !ttg.memdesc<64x64xf16, #shared, #smem>
    tt.return %2#0 : tensor<64x64xf32, #mma>
  }
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#shared1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#shared2 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 8}>
#shared3 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 8}>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#tmem_scales = #ttng.tensor_memory_scales_encoding<>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
  // Products in tensor memory: without and with tokens and barriers.
  tt.func @tensor_memory(%arg0: !ttg.memdesc<128x64xf16, #shared, #smem>, %arg1: !ttg.memdesc<64x64xf16, #shared, #smem>, %arg2: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, %arg3: !ttg.async.token, %arg4: !ttg.memdesc<1xi64, #shared1, #smem, mutable>, %arg5: i1) {
    ttng.tc_gen5_mma %arg0, %arg1, %arg2, %arg5, %arg5 : !ttg.memdesc<128x64xf16, #shared, #smem>, !ttg.memdesc<64x64xf16, #shared, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
    %0 = ttng.tc_gen5_mma %arg0, %arg1, %arg2[%arg3], %arg5, %arg5, %arg4[%arg5] {is_async} : !ttg.memdesc<128x64xf16, #shared, #smem>, !ttg.memdesc<64x64xf16, #shared, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, !ttg.memdesc<1xi64, #shared1, #smem, mutable>
    %1 = ttng.tc_gen5_mma %arg0, %arg1, %arg2[], %arg5, %arg5 : !ttg.memdesc<128x64xf16, #shared, #smem>, !ttg.memdesc<64x64xf16, #shared, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
    tt.return
  }

  // The same with scales.
  tt.func @scaled(%arg0: !ttg.memdesc<128x128xf8E5M2, #shared2, #smem>, %arg1: !ttg.memdesc<128x64xf8E4M3FN, #shared3, #smem>, %arg2: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, %arg3: !ttg.memdesc<128x4xi8, #tmem_scales, #ttng.tensor_memory>, %arg4: !ttg.memdesc<64x4xi8, #tmem_scales, #ttng.tensor_memory>, %arg5: !ttg.async.token, %arg6: !ttg.memdesc<1xi64, #shared1, #smem, mutable>, %arg7: i1) {
    ttng.tc_gen5_mma_scaled %arg0, %arg1, %arg2, %arg3, %arg4, %arg7, %arg7 lhs = e5m2 rhs = e4m3 : !ttg.memdesc<128x128xf8E5M2, #shared2, #smem>, !ttg.memdesc<128x64xf8E4M3FN, #shared3, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, !ttg.memdesc<128x4xi8, #tmem_scales, #ttng.tensor_memory>, !ttg.memdesc<64x4xi8, #tmem_scales, #ttng.tensor_memory>
    %0 = ttng.tc_gen5_mma_scaled %arg0, %arg1, %arg2[%arg5], %arg3, %arg4, %arg7, %arg7 lhs = e5m2 rhs = e4m3, %arg6[%arg7] {is_async} : !ttg.memdesc<128x128xf8E5M2, #shared2, #smem>, !ttg.memdesc<128x64xf8E4M3FN, #shared3, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, !ttg.memdesc<128x4xi8, #tmem_scales, #ttng.tensor_memory>, !ttg.memdesc<64x4xi8, #tmem_scales, #ttng.tensor_memory>, !ttg.memdesc<1xi64, #shared1, #smem, mutable>
    tt.return
  }
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16, CGALayout = [[1, 0]]}>
#shared1 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16, CGALayout = [[0, 1]]}>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1, CTASplitM = 2, twoCTAs = true>
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
  // Two blocks of a cluster work on one product.
  tt.func @two_blocks(%arg0: !ttg.memdesc<256x64xf16, #shared, #smem>, %arg1: !ttg.memdesc<64x64xf16, #shared1, #smem>, %arg2: !ttg.memdesc<256x64xf32, #tmem, #ttng.tensor_memory, mutable>, %arg3: i1) {
    ttng.tc_gen5_mma %arg0, %arg1, %arg2, %arg3, %arg3 {two_ctas} : !ttg.memdesc<256x64xf16, #shared, #smem>, !ttg.memdesc<64x64xf16, #shared1, #smem>, !ttg.memdesc<256x64xf32, #tmem, #ttng.tensor_memory, mutable>
    tt.return
  }
}
