// What is printed is what was read, character by character, from text and from bytecode.
// RUN: llopt %s --split-input-file --verify-roundtrip | grep -v '^ *\(//.*\)*$' > %t.printed
// RUN: grep -v '^ *\(//.*\)*$' %s | diff - %t.printed

// Buffers: initialised or not, aligned or not, freed, loaded with and without a token.
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#blocked1 = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#shared1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#shared2 = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [0, 1]}>
#shared3 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#shared4 = #ttg.nvmma_shared<{swizzlingByteWidth = 0, transposed = false, elementBitWidth = 16}>
#shared5 = #ttg.shared_linear<{offset = [[1, 0], [2, 0], [0, 1]]}, alignment = 16>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @buffers(%arg0: tensor<64x64xf16, #blocked>) -> tensor<64x64xf16, #blocked> {
    %0 = ttg.local_alloc %arg0 : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
    %1 = ttg.local_alloc {alignment = 128 : i32} : () -> !ttg.memdesc<3x64x64xf16, #shared, #smem, mutable>
    %c0_i32 = arith.constant 0 : i32
    %2 = ttg.memdesc_index %1[%c0_i32] : !ttg.memdesc<3x64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    ttg.local_store %arg0, %2 : tensor<64x64xf16, #blocked> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    ttg.local_barrier
    %3 = ttg.local_load %0 : !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf16, #blocked>
    %4 = ttg.async_wait {num = 0 : i32}
    %5 = ttg.local_load %2 token %4 : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf16, #blocked>
    ttg.local_dealloc %1 : !ttg.memdesc<3x64x64xf16, #shared, #smem, mutable>
    tt.return %5 : tensor<64x64xf16, #blocked>
  }

  // Views: a part, permuted dimensions, another shape, another type.
  tt.func @views(%arg0: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %arg1: !ttg.memdesc<64x64xf16, #shared1, #smem, mutable>) {
    %0 = ttg.memdesc_subslice %arg0[32, 0] : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<32x64xf16, #shared, #smem, mutable, 64x64>
    %1 = ttg.memdesc_trans %arg0 {order = array<i32: 1, 0>} : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared2, #smem, mutable>
    %2 = ttg.memdesc_reshape %arg1 : !ttg.memdesc<64x64xf16, #shared1, #smem, mutable> -> !ttg.memdesc<4096xf16, #shared3, #smem, mutable>
    %3 = ttg.memdesc_reinterpret %arg1 : !ttg.memdesc<64x64xf16, #shared1, #smem, mutable> -> !ttg.memdesc<32x64xf32, #shared1, #smem, mutable>
    tt.return
  }

  // What a transposed view of rows without a swizzle is.
  tt.func @turned_rows(%arg0: !ttg.memdesc<2x4xf16, #shared4, #smem, mutable>) {
    %0 = ttg.memdesc_trans %arg0 {order = array<i32: 1, 0>} : !ttg.memdesc<2x4xf16, #shared4, #smem, mutable> -> !ttg.memdesc<4x2xf16, #shared5, #smem, mutable>
    tt.return
  }

  // A view of one element has a layout that says its rank.
  tt.func @one_element(%arg0: !ttg.memdesc<1xi32, #shared3, #smem, mutable>) {
    %0 = ttg.memdesc_reshape %arg0 : !ttg.memdesc<1xi32, #shared3, #smem, mutable> -> !ttg.memdesc<1x1xi32, #shared1, #smem, mutable>
    tt.return
  }

  // Asynchronous copies with every optional operand, groups of them, and waits.
  tt.func @copies(%arg0: tensor<512x!tt.ptr<f32>, #blocked1>, %arg1: !ttg.memdesc<512xf32, #shared3, #smem, mutable>, %arg2: tensor<512xi1, #blocked1>, %arg3: tensor<512xf32, #blocked1>) {
    %0 = ttg.async_copy_global_to_local %arg0, %arg1 : tensor<512x!tt.ptr<f32>, #blocked1> -> <512xf32, #shared3, #smem, mutable>
    %1 = ttg.async_copy_global_to_local %arg0, %arg1 mask %arg2 other %arg3 : tensor<512x!tt.ptr<f32>, #blocked1> -> <512xf32, #shared3, #smem, mutable>
    %2 = ttg.async_copy_global_to_local %arg0, %arg1 mask %arg2 cacheModifier = cg evictionPolicy = evict_first {contiguity = 4 : i32, isVolatile = true} : tensor<512x!tt.ptr<f32>, #blocked1> -> <512xf32, #shared3, #smem, mutable>
    %3 = ttg.async_commit_group tokens %0, %1
    %4 = ttg.async_commit_group
    %5 = ttg.async_wait %3, %4 {num = 1 : i32}
    tt.return
  }

  // Memory of the program's own.
  tt.func @others() -> !tt.ptr<i8> {
    %0 = ttg.global_scratch_alloc {alignment = 128 : i32, nbytes = 256 : i32} : !tt.ptr<i8>
    tt.return %0 : !tt.ptr<i8>
  }
}
