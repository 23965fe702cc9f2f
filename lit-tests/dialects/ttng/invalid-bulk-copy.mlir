// RUN: llopt %s --split-input-file --verify-diagnostics

// Each part breaks one rule; the message says which, and what is at fault.

#nvmma = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#flat1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @coordinates(%d: !tt.tensordesc<tensor<64x64xf16, #nvmma>>, %i: i32, %b: !ttg.memdesc<1xi64, #flat1, #smem, mutable>, %s: !ttg.memdesc<64x64xf16, #nvmma, #smem, mutable>, %p: i1) {
    // expected-error @+1 {{'ttng.async_tma_copy_global_to_local' op a bulk copy has 1 to 5 coordinates, not 0}}
    ttng.async_tma_copy_global_to_local %d[] %s, %b, %p : !tt.tensordesc<tensor<64x64xf16, #nvmma>>, !ttg.memdesc<1xi64, #flat1, #smem, mutable> -> !ttg.memdesc<64x64xf16, #nvmma, #smem, mutable>
    tt.return
  }
}

// -----

#nvmma = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#flat1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @immutable(%d: !tt.tensordesc<tensor<64x64xf16, #nvmma>>, %i: i32, %b: !ttg.memdesc<1xi64, #flat1, #smem, mutable>, %s: !ttg.memdesc<64x64xf16, #nvmma, #smem>, %p: i1) {
    // expected-error @+1 {{'ttng.async_tma_copy_global_to_local' op cannot copy into an immutable buffer}}
    ttng.async_tma_copy_global_to_local %d[%i, %i] %s, %b, %p : !tt.tensordesc<tensor<64x64xf16, #nvmma>>, !ttg.memdesc<1xi64, #flat1, #smem, mutable> -> !ttg.memdesc<64x64xf16, #nvmma, #smem>
    tt.return
  }
}

// -----

#nvmma = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#flat1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @layout(%d: !tt.tensordesc<tensor<64x64xf16, #nvmma>>, %i: i32, %b: !ttg.memdesc<1xi64, #flat1, #smem, mutable>, %s: !ttg.memdesc<64x64xf16, #flat, #smem, mutable>, %p: i1) {
    // expected-error @+1 {{'ttng.async_tma_copy_global_to_local' op the buffer must have the layout #ttg.nvmma_shared, not `ttg.swizzled_shared`}}
    ttng.async_tma_copy_global_to_local %d[%i, %i] %s, %b, %p : !tt.tensordesc<tensor<64x64xf16, #nvmma>>, !ttg.memdesc<1xi64, #flat1, #smem, mutable> -> !ttg.memdesc<64x64xf16, #flat, #smem, mutable>
    tt.return
  }
}

// -----

#nvmma = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @many_coordinates(%d: !tt.tensordesc<tensor<64x64xf16, #nvmma>>, %i: i32, %s: !ttg.memdesc<64x64xf16, #nvmma, #smem, mutable>) {
    // expected-error @+1 {{'ttng.async_tma_copy_local_to_global' op a bulk copy has 1 to 5 coordinates, not 6}}
    ttng.async_tma_copy_local_to_global %d[%i, %i, %i, %i, %i, %i] %s : !tt.tensordesc<tensor<64x64xf16, #nvmma>>, !ttg.memdesc<64x64xf16, #nvmma, #smem, mutable>
    tt.return
  }
}

// -----

#nvmma = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @reduce_coordinates(%d: !tt.tensordesc<tensor<64x64xf16, #nvmma>>, %i: i32, %s: !ttg.memdesc<64x64xf16, #nvmma, #smem, mutable>) {
    // expected-error @+1 {{'ttng.async_tma_reduce' op a bulk copy has 1 to 5 coordinates, not 0}}
    ttng.async_tma_reduce add, %d[] %s : !tt.tensordesc<tensor<64x64xf16, #nvmma>>, !ttg.memdesc<64x64xf16, #nvmma, #smem, mutable>
    tt.return
  }
}

// -----

#nvmma = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#a1 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#flat1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @gather_immutable(%d: !tt.tensordesc<tensor<1x64xf16, #nvmma>>, %x: tensor<64xi32, #a1>, %y: i32, %b: !ttg.memdesc<1xi64, #flat1, #smem, mutable>, %s: !ttg.memdesc<64x64xf16, #nvmma, #smem>, %p: i1) {
    // expected-error @+1 {{'ttng.async_tma_gather' op cannot copy into an immutable buffer}}
    ttng.async_tma_gather %d[%x, %y] %s, %b, %p : !tt.tensordesc<tensor<1x64xf16, #nvmma>>, tensor<64xi32, #a1>, i32, !ttg.memdesc<1xi64, #flat1, #smem, mutable>, !ttg.memdesc<64x64xf16, #nvmma, #smem>, i1
    tt.return
  }
}

// -----

#nvmma = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#a1 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @scatter_rows(%d: !tt.tensordesc<tensor<1x64xf16, #nvmma>>, %x: tensor<32xi32, #a1>, %y: i32, %s: !ttg.memdesc<64x64xf16, #nvmma, #smem, mutable>) {
    // expected-error @+1 {{'ttng.async_tma_scatter' op there are 32 row numbers for 64 rows}}
    ttng.async_tma_scatter %d[%x, %y] %s : !tt.tensordesc<tensor<1x64xf16, #nvmma>>, tensor<32xi32, #a1>, i32, !ttg.memdesc<64x64xf16, #nvmma, #smem, mutable>
    tt.return
  }
}

// -----

tt.func @tensormap(%o: !tt.ptr<i8>, %a: !tt.ptr<f16>, %n: i32, %s: i64) {
  // expected-error @+1 {{'ttng.tensormap_create' op `global_dim` has 1 entries; a box of rank 2 needs 2}}
  ttng.tensormap_create %o, %a, [%n, %n], [%n], [%s], [%n, %n] {elem_type = 6 : i32, fill_mode = 0 : i32, interleave_layout = 0 : i32, swizzle_mode = 3 : i32} : (!tt.ptr<i8>, !tt.ptr<f16>, i32, i32, i32, i64, i32, i32) -> ()
  tt.return
}

// -----

tt.func @tensormap_mode(%o: !tt.ptr<i8>, %a: !tt.ptr<f16>, %n: i32) {
  // expected-error @+1 {{'ttng.tensormap_create' op attribute 'swizzle_mode' must be between 0 and 3, but is 4 : i32}}
  ttng.tensormap_create %o, %a, [%n], [%n], [], [%n] {elem_type = 6 : i32, fill_mode = 0 : i32, interleave_layout = 0 : i32, swizzle_mode = 4 : i32} : (!tt.ptr<i8>, !tt.ptr<f16>, i32, i32, i32) -> ()
  tt.return
}
