// What is printed is what was read, character by character, from text and from bytecode.
// RUN: llopt %s --split-input-file --verify-roundtrip | grep -v '^ *\(//.*\)*$' > %t.printed
// RUN: grep -v '^ *\(//.*\)*$' %s | diff - %t.printed

// Layouts of registers that need no vendor, on a cluster of two blocks.
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0], CGALayout = [[1, 0]]}>
#blocked1 = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0], CGALayout = [[0]]}>
#linear = #ttg.linear<{register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = [[128], [256]], block = [[512]]}>
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @registers(%arg0: tensor<32x64xf32, #blocked>, %arg1: tensor<32xf32, #ttg.slice<{dim = 1, parent = #blocked}>>, %arg2: tensor<1024xf32, #linear>, %arg3: tensor<32x64xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>) -> tensor<1024xf32, #blocked1> {
    %0 = ttg.convert_layout %arg2 : tensor<1024xf32, #linear> -> tensor<1024xf32, #blocked1>
    tt.return %0 : tensor<1024xf32, #blocked1>
  }
}

// -----

// Products of mma.sync and wgmma, and their operands.
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#mma1 = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @nvidia(%arg0: tensor<32x16xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>, %arg1: tensor<16x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>>, %arg2: tensor<32x64xf32, #mma>, %arg3: tensor<64x64xf32, #mma1>, %arg4: tensor<64x16xf16, #ttg.dot_op<{opIdx = 0, parent = #mma1, kWidth = 2}>>) {
    %0 = tt.dot %arg0, %arg1, %arg2 : tensor<32x16xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<16x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<32x64xf32, #mma>
    tt.return
  }
}

// -----

// Products of AMD's matrix instructions on warps of 64 lanes, with all that is left out by default.
#mma = #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = true}>
#mma1 = #ttg.amd_mfma<{version = 4, warpsPerCTA = [4, 1], instrShape = [16, 16, 32], isTransposed = false, tilesPerWarp = [2, 2]}>
#mma2 = #ttg.amd_mfma<{version = 2, warpsPerCTA = [4, 1], instrShape = [16, 16, 4], isTransposed = false, elementBitWidth = 64}>
#mma3 = #ttg.amd_mfma<{version = 1, warpsPerCTA = [4, 1], instrShape = [32, 32, 8], isTransposed = false}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
  tt.func @cdna(%arg0: tensor<64x64xf32, #mma>, %arg1: tensor<128x128xf32, #mma1>, %arg2: tensor<64x64xf64, #mma2>, %arg3: tensor<128x32xf32, #mma3>, %arg4: tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>>) {
    tt.return
  }
}

// -----

// Products of AMD's matrix instructions on warps of 32 lanes.
#mma = #ttg.amd_wmma<{version = 1, isTranspose = false, warpsPerCTA = [2, 2]}>
#mma1 = #ttg.amd_wmma<{version = 2, isTranspose = true, warpsPerCTA = [4, 1], tilesPerWarp = [2, 1]}>
#mma2 = #ttg.amd_wmma<{version = 3, isTranspose = true, warpsPerCTA = [4, 1], instrShape = [16, 16, 128]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1200", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @rdna(%arg0: tensor<64x64xf32, #mma>, %arg1: tensor<128x128xf32, #mma1>, %arg2: tensor<64x64xf32, #mma2>, %arg3: tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 16}>>) {
    tt.return
  }
}

// -----

// Layouts of shared memory, for one block and for two.
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#shared1 = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0], CGALayout = [[1, 0]]}>
#shared2 = #ttg.amd_rotating_shared<{vec = 4, perPhase = 1, maxPhase = 16, order = [1, 0]}>
#shared3 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#shared4 = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = true, elementBitWidth = 8, fp4Padded = true, CGALayout = [[0, 1]]}>
#shared5 = #ttg.nvmma_shared<{swizzlingByteWidth = 32, transposed = false, elementBitWidth = 32, rank = 3}>
#shared6 = #ttg.padded_shared<[64:+4, 256:+8] {order = [1, 0], shape = [16, 64]}>
#shared7 = #ttg.padded_shared<[4:+1] {offset = [[0, 2], [0, 1], [1, 0]], block = []}>
#shared8 = #ttg.shared_linear<{offset = [[0, 1], [0, 2], [1, 0], [2, 0]]}, alignment = 16>
#shared9 = #ttg.shared_linear<{offset = [[0, 1], [1, 0]], block = [[2, 0]]}, alignment = 128>
#smem = #ttg.shared_memory
#shared10 = #ttg.partitioned_shared<{numPartitions = 2, numGroups = 4, partitionDim = 0, partitionLayout = #shared}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32} {
  tt.func @memory(%arg0: !ttg.memdesc<64x64xf16, #shared, #smem>, %arg1: !ttg.memdesc<64x64xf16, #shared1, #smem, mutable>, %arg2: !ttg.memdesc<64x64xf16, #shared2, #smem>, %arg3: !ttg.memdesc<3x64x64xf16, #shared3, #smem, mutable>, %arg4: !ttg.memdesc<64x64xi8, #shared4, #smem>, %arg5: !ttg.memdesc<2x8x64xf32, #shared5, #smem>, %arg6: !ttg.memdesc<16x64xf32, #shared6, #smem>, %arg7: !ttg.memdesc<2x4xf32, #shared7, #smem>, %arg8: !ttg.memdesc<4x4xf32, #shared8, #smem>, %arg9: !ttg.memdesc<4x2xf32, #shared9, #smem>, %arg10: !ttg.memdesc<32x64xf16, #shared, #smem, mutable, 3x64x64>, %arg11: !ttg.memdesc<4x4x!tt.ptr<f32>, #shared8, #smem>, %arg12: !ttg.memdesc<128x64xf16, #shared10, #smem>) {
    tt.return
  }
}

// -----

// Products spread over the two blocks of a cluster.
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], CGALayout = [[1, 0]], instrShape = [16, 8]}>
#mma1 = #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = true, CGALayout = [[0, 1]]}>
#mma2 = #ttg.amd_wmma<{version = 3, isTranspose = true, warpsPerCTA = [4, 1], CGALayout = [[0, 0]], instrShape = [16, 16, 32]}>
#shared = #ttg.amd_rotating_shared<{vec = 4, perPhase = 1, maxPhase = 16, order = [1, 0], CGALayout = [[1, 0]]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32} {
  tt.func @clusters(%arg0: tensor<64x64xf32, #mma>, %arg1: tensor<64x64xf32, #mma1>, %arg2: tensor<64x64xf32, #mma2>, %arg3: !ttg.memdesc<64x64xf16, #shared, #smem>) {
    tt.return
  }
}
