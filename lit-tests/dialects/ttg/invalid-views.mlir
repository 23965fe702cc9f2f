// RUN: llopt %s --split-input-file --verify-diagnostics

// Each part breaks one rule; the message says which, and what is at fault.

#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @space(%b: !ttg.memdesc<2x128x64xf32, #flat, #smem, mutable>, %i: i32) {
    // expected-error @+1 {{'ttg.memdesc_index' op the source is in #ttg.shared_memory, the view in #ttng.tensor_memory}}
    %0 = ttg.memdesc_index %b[%i] : !ttg.memdesc<2x128x64xf32, #flat, #smem, mutable> -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
    tt.return
  }
}

// -----

#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
#column = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @mutability(%b: !ttg.memdesc<64x32xf16, #flat, #smem>) {
    // expected-error @+1 {{'ttg.memdesc_trans' op a view of an immutable buffer is immutable}}
    %0 = ttg.memdesc_trans %b {order = array<i32: 1, 0>} : !ttg.memdesc<64x32xf16, #flat, #smem> -> !ttg.memdesc<32x64xf16, #column, #smem, mutable>
    tt.return
  }
}

// -----

#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @index_element(%b: !ttg.memdesc<2x64x64xf16, #flat, #smem, mutable>, %i: i32) {
    // expected-error @+1 {{'ttg.memdesc_index' op the source has elements of type 'f16', the view of 'bf16'}}
    %0 = ttg.memdesc_index %b[%i] : !ttg.memdesc<2x64x64xf16, #flat, #smem, mutable> -> !ttg.memdesc<64x64xbf16, #flat, #smem, mutable>
    tt.return
  }
}

// -----

#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @index_part(%b: !ttg.memdesc<2x64x64xf16, #flat, #smem, mutable, 4x64x64>, %i: i32) {
    // expected-error @+1 {{'ttg.memdesc_index' op the source must be a whole buffer, but is a part ([2, 64, 64]) of one of shape [4, 64, 64]}}
    %0 = ttg.memdesc_index %b[%i] : !ttg.memdesc<2x64x64xf16, #flat, #smem, mutable, 4x64x64> -> !ttg.memdesc<64x64xf16, #flat, #smem, mutable>
    tt.return
  }
}

// -----

#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @index_shape(%b: !ttg.memdesc<2x64x64xf16, #flat, #smem, mutable>, %i: i32) {
    // expected-error @+1 {{'ttg.memdesc_index' op the view must have shape [64, 64], but has [64, 32]}}
    %0 = ttg.memdesc_index %b[%i] : !ttg.memdesc<2x64x64xf16, #flat, #smem, mutable> -> !ttg.memdesc<64x32xf16, #flat, #smem, mutable>
    tt.return
  }
}

// -----

#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @index_of_part(%b: !ttg.memdesc<2x64x64xf16, #flat, #smem, mutable>, %i: i32) {
    // expected-error @+1 {{'ttg.memdesc_index' op the view is a whole buffer of shape [64, 64], not a part of one of shape [2, 64, 64]}}
    %0 = ttg.memdesc_index %b[%i] : !ttg.memdesc<2x64x64xf16, #flat, #smem, mutable> -> !ttg.memdesc<64x64xf16, #flat, #smem, mutable, 2x64x64>
    tt.return
  }
}

// -----

#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
#flat1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @slice_rank(%b: !ttg.memdesc<64x64xf16, #flat, #smem, mutable>) {
    // expected-error @+1 {{'ttg.memdesc_subslice' op the view must have rank 2, but has 1}}
    %0 = ttg.memdesc_subslice %b [0, 0] : !ttg.memdesc<64x64xf16, #flat, #smem, mutable> -> !ttg.memdesc<64xf16, #flat1, #smem, mutable>
    tt.return
  }
}

// -----

#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @slice_offsets(%b: !ttg.memdesc<64x64xf16, #flat, #smem, mutable>) {
    // expected-error @+1 {{'ttg.memdesc_subslice' op has 1 offsets for a buffer of rank 2}}
    %0 = ttg.memdesc_subslice %b [0] : !ttg.memdesc<64x64xf16, #flat, #smem, mutable> -> !ttg.memdesc<32x64xf16, #flat, #smem, mutable, 64x64>
    tt.return
  }
}

// -----

#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
#column = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @slice_layout(%b: !ttg.memdesc<64x64xf16, #flat, #smem, mutable>) {
    // expected-error @+1 {{'ttg.memdesc_subslice' op the view must keep the layout #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>, but has #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>}}
    %0 = ttg.memdesc_subslice %b [0, 0] : !ttg.memdesc<64x64xf16, #flat, #smem, mutable> -> !ttg.memdesc<32x64xf16, #column, #smem, mutable, 64x64>
    tt.return
  }
}

// -----

#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @slice_beyond(%b: !ttg.memdesc<64x64xf16, #flat, #smem, mutable>) {
    // expected-error @+1 {{'ttg.memdesc_subslice' op dimension 0: 32 elements from 64 on are not within 64}}
    %0 = ttg.memdesc_subslice %b [64, 0] : !ttg.memdesc<64x64xf16, #flat, #smem, mutable> -> !ttg.memdesc<32x64xf16, #flat, #smem, mutable, 64x64>
    tt.return
  }
}

// -----

#swizzled = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @slice_swizzle(%b: !ttg.memdesc<64x64xf16, #swizzled, #smem, mutable>) {
    // expected-error @+1 {{'ttg.memdesc_subslice' op dimension 0 cannot be cut at 4: the layout swizzles across it}}
    %0 = ttg.memdesc_subslice %b [4, 0] : !ttg.memdesc<64x64xf16, #swizzled, #smem, mutable> -> !ttg.memdesc<4x64xf16, #swizzled, #smem, mutable, 64x64>
    tt.return
  }
}

// -----

#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @slice_buffer(%b: !ttg.memdesc<64x64xf16, #flat, #smem, mutable>) {
    // expected-error @+1 {{'ttg.memdesc_subslice' op the view must be a part of the buffer of shape [64, 64]; in one of shape [64, 32] its elements have other places}}
    %0 = ttg.memdesc_subslice %b [0, 32] : !ttg.memdesc<64x64xf16, #flat, #smem, mutable> -> !ttg.memdesc<64x32xf16, #flat, #smem, mutable>
    tt.return
  }
}

// -----

#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @trans_order(%b: !ttg.memdesc<64x64xf16, #flat, #smem, mutable>) {
    // expected-error @+1 {{'ttg.memdesc_trans' op order [1, 1] must be a permutation of 0 to 1}}
    %0 = ttg.memdesc_trans %b {order = array<i32: 1, 1>} : !ttg.memdesc<64x64xf16, #flat, #smem, mutable> -> !ttg.memdesc<64x64xf16, #flat, #smem, mutable>
    tt.return
  }
}

// -----

#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
#column = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @trans_shape(%b: !ttg.memdesc<64x32xf16, #flat, #smem, mutable>) {
    // expected-error @+1 {{'ttg.memdesc_trans' op the view must have shape [32, 64], but has [64, 32]}}
    %0 = ttg.memdesc_trans %b {order = array<i32: 1, 0>} : !ttg.memdesc<64x32xf16, #flat, #smem, mutable> -> !ttg.memdesc<64x32xf16, #column, #smem, mutable>
    tt.return
  }
}

// -----

// Without a swizzle, `transposed` does not exchange rows and columns.
#rows = #ttg.nvmma_shared<{swizzlingByteWidth = 0, transposed = false, elementBitWidth = 16}>
#columns = #ttg.nvmma_shared<{swizzlingByteWidth = 0, transposed = true, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @trans_unswizzled(%b: !ttg.memdesc<2x4xf16, #rows, #smem, mutable>) {
    // expected-error @+2 {{'ttg.memdesc_trans' op inferred type(s) '!ttg.memdesc<4x2xf16, #ttg.shared_linear<{offset = [[1, 0], [2, 0], [0, 1]]}, alignment = 128>, #ttg.shared_memory, mutable>' are incompatible with return type(s) of operation '!ttg.memdesc<4x2xf16, #ttg.nvmma_shared<{swizzlingByteWidth = 0, transposed = true, elementBitWidth = 16}>, #ttg.shared_memory, mutable>'}}
    // expected-error @+1 {{'ttg.memdesc_trans' op failed to infer returned types}}
    %0 = ttg.memdesc_trans %b {order = array<i32: 1, 0>} : !ttg.memdesc<2x4xf16, #rows, #smem, mutable> -> !ttg.memdesc<4x2xf16, #columns, #smem, mutable>
    tt.return
  }
}

// -----

#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @trans_layout(%b: !ttg.memdesc<64x32xf16, #flat, #smem, mutable>) {
    // expected-error @+2 {{'ttg.memdesc_trans' op inferred type(s) '!ttg.memdesc<32x64xf16, #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>, #ttg.shared_memory, mutable>' are incompatible with return type(s) of operation '!ttg.memdesc<32x64xf16, #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>, #ttg.shared_memory, mutable>'}}
    // expected-error @+1 {{'ttg.memdesc_trans' op failed to infer returned types}}
    %0 = ttg.memdesc_trans %b {order = array<i32: 1, 0>} : !ttg.memdesc<64x32xf16, #flat, #smem, mutable> -> !ttg.memdesc<32x64xf16, #flat, #smem, mutable>
    tt.return
  }
}

// -----

#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
#flat1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @reshape_size(%b: !ttg.memdesc<64x64xf16, #flat, #smem, mutable>) {
    // expected-error @+1 {{'ttg.memdesc_reshape' op the source has 4096 elements, the view 2048}}
    %0 = ttg.memdesc_reshape %b : !ttg.memdesc<64x64xf16, #flat, #smem, mutable> -> !ttg.memdesc<2048xf16, #flat1, #smem, mutable>
    tt.return
  }
}

// -----

#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
#flat1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @reshape_element(%b: !ttg.memdesc<64x64xf16, #flat, #smem, mutable>) {
    // expected-error @+1 {{'ttg.memdesc_reshape' op requires one element type for all memory descriptors; result #0 has bf16, operand #0 has f16}}
    %0 = ttg.memdesc_reshape %b : !ttg.memdesc<64x64xf16, #flat, #smem, mutable> -> !ttg.memdesc<4096xbf16, #flat1, #smem, mutable>
    tt.return
  }
}

// -----

#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
#flat1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @reshape_part(%b: !ttg.memdesc<32x64xf16, #flat, #smem, mutable, 64x64>) {
    // expected-error @+1 {{'ttg.memdesc_reshape' op a part of a buffer (shape [32, 64] of [64, 64]) cannot be reshaped}}
    %0 = ttg.memdesc_reshape %b : !ttg.memdesc<32x64xf16, #flat, #smem, mutable, 64x64> -> !ttg.memdesc<2048xf16, #flat1, #smem, mutable>
    tt.return
  }
}

// -----

#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
#flat1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @reshape_buffers(%b: !ttg.memdesc<2x64x64xf16, #flat, #smem, mutable>) {
    // expected-error @+1 {{'ttg.memdesc_reshape' op several buffers (shape [2, 64, 64]) cannot be reshaped at once}}
    %0 = ttg.memdesc_reshape %b : !ttg.memdesc<2x64x64xf16, #flat, #smem, mutable> -> !ttg.memdesc<2x4096xf16, #flat1, #smem, mutable>
    tt.return
  }
}

// -----

#swizzled = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
#flat1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @reshape_layout(%b: !ttg.memdesc<64x64xf16, #swizzled, #smem, mutable>) {
    // expected-error @+1 {{'ttg.memdesc_reshape' op the layout of the view moves elements; expected #ttg.shared_linear<{offset = [[1], [2], [4], [8], [16], [32], [72], [144], [288], [512], [1024], [2048]]}, alignment = 16>, got #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>}}
    %0 = ttg.memdesc_reshape %b : !ttg.memdesc<64x64xf16, #swizzled, #smem, mutable> -> !ttg.memdesc<4096xf16, #flat1, #smem, mutable>
    tt.return
  }
}

// -----

#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @reinterpret_size(%b: !ttg.memdesc<64x64xf16, #flat, #smem, mutable>) {
    // expected-error @+1 {{'ttg.memdesc_reinterpret' op the view needs 131072 bits, the source has 65536}}
    %0 = ttg.memdesc_reinterpret %b : !ttg.memdesc<64x64xf16, #flat, #smem, mutable> -> !ttg.memdesc<128x64xf16, #flat, #smem, mutable>
    tt.return
  }

  // Two buffers of a ring may be one view, but not three buffers of a ring of two.
  tt.func @reinterpret_ring(%ring: !ttg.memdesc<2x64x64xf16, #flat, #smem, mutable>) {
    %zero = arith.constant 0 : i32
    %b = ttg.memdesc_index %ring[%zero] : !ttg.memdesc<2x64x64xf16, #flat, #smem, mutable> -> !ttg.memdesc<64x64xf16, #flat, #smem, mutable>
    %both = ttg.memdesc_reinterpret %b : !ttg.memdesc<64x64xf16, #flat, #smem, mutable> -> !ttg.memdesc<128x64xf16, #flat, #smem, mutable>
    // expected-error @+1 {{'ttg.memdesc_reinterpret' op the view needs 196608 bits, the source has 131072}}
    %more = ttg.memdesc_reinterpret %b : !ttg.memdesc<64x64xf16, #flat, #smem, mutable> -> !ttg.memdesc<192x64xf16, #flat, #smem, mutable>
    tt.return
  }
}
