// What is printed is what was read, character by character, from text and from bytecode.
// RUN: llopt %s --split-input-file --verify-roundtrip | grep -v '^ *\(//.*\)*$' > %t.printed
// RUN: grep -v '^ *\(//.*\)*$' %s | diff - %t.printed

#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#shared1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // Blocks to and from shared memory.
  tt.func @blocks(%arg0: !tt.tensordesc<tensor<64x64xf16, #shared>>, %arg1: i32, %arg2: !ttg.memdesc<1xi64, #shared1, #smem, mutable>, %arg3: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %arg4: i1) {
    ttng.async_tma_copy_global_to_local %arg0[%arg1, %arg1] %arg3, %arg2, %arg4 : !tt.tensordesc<tensor<64x64xf16, #shared>>, !ttg.memdesc<1xi64, #shared1, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    ttng.async_tma_copy_global_to_local %arg0[%arg1, %arg1] %arg3, %arg2, %arg4 cacheModifier = cg evictionPolicy = evict_last {isVolatile = true} : !tt.tensordesc<tensor<64x64xf16, #shared>>, !ttg.memdesc<1xi64, #shared1, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    ttng.async_tma_prefetch %arg0[%arg1, %arg1] %arg3, %arg4 : !tt.tensordesc<tensor<64x64xf16, #shared>>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    ttng.async_tma_copy_local_to_global %arg0[%arg1, %arg1] %arg3 : !tt.tensordesc<tensor<64x64xf16, #shared>>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    ttng.async_tma_reduce add, %arg0[%arg1, %arg1] %arg3 : !tt.tensordesc<tensor<64x64xf16, #shared>>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    ttng.async_tma_store_wait {pendings = 0 : i32}
    tt.return
  }

  // Rows picked by index.
  tt.func @rows(%arg0: !tt.tensordesc<tensor<1x64xf16, #shared>>, %arg1: tensor<64xi32, #blocked>, %arg2: i32, %arg3: !ttg.memdesc<1xi64, #shared1, #smem, mutable>, %arg4: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %arg5: i1) {
    ttng.async_tma_gather %arg0[%arg1, %arg2] %arg4, %arg3, %arg5 : !tt.tensordesc<tensor<1x64xf16, #shared>>, tensor<64xi32, #blocked>, i32, !ttg.memdesc<1xi64, #shared1, #smem, mutable>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, i1
    ttng.async_tma_scatter %arg0[%arg1, %arg2] %arg4 : !tt.tensordesc<tensor<1x64xf16, #shared>>, tensor<64xi32, #blocked>, i32, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    tt.return
  }

  // Descriptor objects in memory.
  tt.func @objects(%arg0: !tt.ptr<i8>, %arg1: !tt.ptr<f16>, %arg2: i32, %arg3: i64) -> !tt.tensordesc<tensor<64x64xf16, #shared>> {
    ttng.tensormap_create %arg0, %arg1, [%arg2, %arg2], [%arg2, %arg2], [%arg3], [%arg2, %arg2] {elem_type = 6 : i32, fill_mode = 0 : i32, interleave_layout = 0 : i32, swizzle_mode = 3 : i32} : (!tt.ptr<i8>, !tt.ptr<f16>, i32, i32, i32, i32, i64, i32, i32) -> ()
    ttng.tensormap_fenceproxy_acquire %arg0 : !tt.ptr<i8>
    %0 = ttng.reinterpret_tensor_descriptor %arg0 : !tt.ptr<i8> to !tt.tensordesc<tensor<64x64xf16, #shared>>
    tt.return %0 : !tt.tensordesc<tensor<64x64xf16, #shared>>
  }
}
