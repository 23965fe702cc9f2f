// RUN: llopt %s --split-input-file --verify-diagnostics

// Each part breaks one rule; the message says which, and what is at fault.

#nvmma = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
#mma3 = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @k(%a: !ttg.memdesc<64x32xf16, #nvmma, #smem>, %b: !ttg.memdesc<64x64xf16, #nvmma, #smem>, %c: tensor<64x64xf32, #mma3>) {
    // expected-error @+1 {{'ttng.warp_group_dot' op K is 32 in the left operand [64, 32] and 64 in the right one [64, 64]}}
    %0 = ttng.warp_group_dot %a, %b, %c : !ttg.memdesc<64x32xf16, #nvmma, #smem> * !ttg.memdesc<64x64xf16, #nvmma, #smem> -> tensor<64x64xf32, #mma3>
    tt.return
  }
}

// -----

#nvmma = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
#mma3 = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @element(%a: !ttg.memdesc<64x64xi16, #nvmma, #smem>, %b: !ttg.memdesc<64x64xf16, #nvmma, #smem>, %c: tensor<64x64xi32, #mma3>) {
    // expected-error @+1 {{'ttng.warp_group_dot' op there is no product of 'i16' (left operand)}}
    %0 = ttng.warp_group_dot %a, %b, %c : !ttg.memdesc<64x64xi16, #nvmma, #smem> * !ttg.memdesc<64x64xf16, #nvmma, #smem> -> tensor<64x64xi32, #mma3>
    tt.return
  }
}

// -----

#nvmma8 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 8}>
#smem = #ttg.shared_memory
#mma3 = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @imprecise(%a: !ttg.memdesc<64x64xf8E5M2, #nvmma8, #smem>, %b: !ttg.memdesc<64x64xf8E5M2, #nvmma8, #smem>, %c: tensor<64x64xf32, #mma3>) {
    // expected-error @+1 {{'ttng.warp_group_dot' op products of 'f8E5M2' are summed in f32 only from maxNumImpreciseAcc = 32 on, not 0}}
    %0 = ttng.warp_group_dot %a, %b, %c : !ttg.memdesc<64x64xf8E5M2, #nvmma8, #smem> * !ttg.memdesc<64x64xf8E5M2, #nvmma8, #smem> -> tensor<64x64xf32, #mma3>
    tt.return
  }
}

// -----

#nvmma = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
#a2 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @result_layout(%a: !ttg.memdesc<64x64xf16, #nvmma, #smem>, %b: !ttg.memdesc<64x64xf16, #nvmma, #smem>, %c: tensor<64x64xf32, #a2>) {
    // expected-error @+1 {{'ttng.warp_group_dot' op the result must have a layout #ttg.nvidia_mma of version 3}}
    %0 = ttng.warp_group_dot %a, %b, %c : !ttg.memdesc<64x64xf16, #nvmma, #smem> * !ttg.memdesc<64x64xf16, #nvmma, #smem> -> tensor<64x64xf32, #a2>
    tt.return
  }
}

// -----

#nvmma = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
#mma2 = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @result_version(%a: !ttg.memdesc<64x64xf16, #nvmma, #smem>, %b: !ttg.memdesc<64x64xf16, #nvmma, #smem>, %c: tensor<64x64xf32, #mma2>) {
    // expected-error @+1 {{'ttng.warp_group_dot' op the result must have a layout of version 3, not 2}}
    %0 = ttng.warp_group_dot %a, %b, %c : !ttg.memdesc<64x64xf16, #nvmma, #smem> * !ttg.memdesc<64x64xf16, #nvmma, #smem> -> tensor<64x64xf32, #mma2>
    tt.return
  }
}

// -----

#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
#nvmma = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#mma3 = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @left_layout(%a: !ttg.memdesc<64x64xf16, #flat, #smem>, %b: !ttg.memdesc<64x64xf16, #nvmma, #smem>, %c: tensor<64x64xf32, #mma3>) {
    // expected-error @+1 {{'ttng.warp_group_dot' op the left operand must have a layout #ttg.nvmma_shared or #ttg.shared_linear, not `ttg.swizzled_shared`}}
    %0 = ttng.warp_group_dot %a, %b, %c : !ttg.memdesc<64x64xf16, #flat, #smem> * !ttg.memdesc<64x64xf16, #nvmma, #smem> -> tensor<64x64xf32, #mma3>
    tt.return
  }
}

// -----

#nvmma = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#mma3 = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @right_layout(%a: !ttg.memdesc<64x64xf16, #nvmma, #smem>, %b: !ttg.memdesc<64x64xf16, #flat, #smem>, %c: tensor<64x64xf32, #mma3>) {
    // expected-error @+1 {{'ttng.warp_group_dot' op the right operand must have a layout #ttg.nvmma_shared or #ttg.shared_linear, not `ttg.swizzled_shared`}}
    %0 = ttng.warp_group_dot %a, %b, %c : !ttg.memdesc<64x64xf16, #nvmma, #smem> * !ttg.memdesc<64x64xf16, #flat, #smem> -> tensor<64x64xf32, #mma3>
    tt.return
  }
}

// -----

#mma3 = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#nvmma = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @left_registers(%a: tensor<64x64xf16, #mma3>, %b: !ttg.memdesc<64x64xf16, #nvmma, #smem>, %c: tensor<64x64xf32, #mma3>) {
    // expected-error @+1 {{'ttng.warp_group_dot' op a left operand in registers must have a layout #ttg.dot_op}}
    %0 = ttng.warp_group_dot %a, %b, %c : tensor<64x64xf16, #mma3> * !ttg.memdesc<64x64xf16, #nvmma, #smem> -> tensor<64x64xf32, #mma3>
    tt.return
  }
}

// -----

#mma3 = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#nvmma = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @left_width(%a: tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma3, kWidth = 4}>>, %b: !ttg.memdesc<64x64xf16, #nvmma, #smem>, %c: tensor<64x64xf32, #mma3>) {
    // expected-error @+1 {{'ttng.warp_group_dot' op the left operand must have kWidth = 2, but has 4}}
    %0 = ttng.warp_group_dot %a, %b, %c : tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma3, kWidth = 4}>> * !ttg.memdesc<64x64xf16, #nvmma, #smem> -> tensor<64x64xf32, #mma3>
    tt.return
  }
}

// -----

#nvmma = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
#mma3w2 = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [2, 1], instrShape = [16, 64, 16]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 2 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @warps(%a: !ttg.memdesc<64x64xf16, #nvmma, #smem>, %b: !ttg.memdesc<64x64xf16, #nvmma, #smem>, %c: tensor<64x64xf32, #mma3w2>) {
    // expected-error @+1 {{'ttng.warp_group_dot' op needs whole groups of four warps, but there are 2}}
    %0 = ttng.warp_group_dot %a, %b, %c : !ttg.memdesc<64x64xf16, #nvmma, #smem> * !ttg.memdesc<64x64xf16, #nvmma, #smem> -> tensor<64x64xf32, #mma3w2>
    tt.return
  }
}

// -----

#nvmma = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
#mma3 = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @rows(%a: !ttg.memdesc<32x64xf16, #nvmma, #smem>, %b: !ttg.memdesc<64x64xf16, #nvmma, #smem>, %c: tensor<32x64xf32, #mma3>) {
    // expected-error @+1 {{'ttng.warp_group_dot' op M of one block is 32, which is no multiple of 64}}
    %0 = ttng.warp_group_dot %a, %b, %c : !ttg.memdesc<32x64xf16, #nvmma, #smem> * !ttg.memdesc<64x64xf16, #nvmma, #smem> -> tensor<32x64xf32, #mma3>
    tt.return
  }
}

// -----

tt.func @wait_nothing() {
  // expected-error @+1 {{'ttng.warp_group_dot_wait' op needs at least one value to wait for}}
  "ttng.warp_group_dot_wait"() <{pendings = 0 : i32}> : () -> ()
  tt.return
}

// -----

#mma3 = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @pendings(%x: tensor<64x64xf32, #mma3>) {
    // expected-error @+1 {{'ttng.warp_group_dot_wait' op pendings must not be negative, but is -1}}
    %0 = ttng.warp_group_dot_wait %x {pendings = -1 : i32} : tensor<64x64xf32, #mma3>
    tt.return
  }
}

// -----

#nvmma = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#flat1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @synchronous_barrier(%a: !ttg.memdesc<128x64xf16, #nvmma, #smem>, %b: !ttg.memdesc<64x64xf16, #nvmma, #smem>, %d: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, %p: i1, %bar: !ttg.memdesc<1xi64, #flat1, #smem, mutable>) {
    // expected-error @+1 {{'ttng.tc_gen5_mma' op a barrier needs `is_async`}}
    ttng.tc_gen5_mma %a, %b, %d, %p, %p, %bar[%p] : !ttg.memdesc<128x64xf16, #nvmma, #smem>, !ttg.memdesc<64x64xf16, #nvmma, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, !ttg.memdesc<1xi64, #flat1, #smem, mutable>
    tt.return
  }
}

// -----

#nvmma = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#flat1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @barrier_type(%a: !ttg.memdesc<128x64xf16, #nvmma, #smem>, %b: !ttg.memdesc<64x64xf16, #nvmma, #smem>, %d: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, %p: i1, %bar: !ttg.memdesc<1xi32, #flat1, #smem, mutable>) {
    // expected-error @+1 {{'ttng.tc_gen5_mma' op a barrier must be one i64 in shared memory, not '!ttg.memdesc<1xi32, #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>, #ttg.shared_memory, mutable>'}}
    ttng.tc_gen5_mma %a, %b, %d, %p, %p, %bar[%p] {is_async} : !ttg.memdesc<128x64xf16, #nvmma, #smem>, !ttg.memdesc<64x64xf16, #nvmma, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, !ttg.memdesc<1xi32, #flat1, #smem, mutable>
    tt.return
  }
}

// -----

#nvmma = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @no_product(%a: !ttg.memdesc<128x64xi16, #nvmma, #smem>, %b: !ttg.memdesc<64x64xi16, #nvmma, #smem>, %d: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, %p: i1) {
    // expected-error @+1 {{'ttng.tc_gen5_mma' op there is no product of 'i16' (left operand)}}
    ttng.tc_gen5_mma %a, %b, %d, %p, %p : !ttg.memdesc<128x64xi16, #nvmma, #smem>, !ttg.memdesc<64x64xi16, #nvmma, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
    tt.return
  }
}

// -----

#nvmma = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @kinds(%a: !ttg.memdesc<128x64xf16, #nvmma, #smem>, %b: !ttg.memdesc<64x64xf8E5M2, #nvmma, #smem>, %d: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, %p: i1) {
    // expected-error @+1 {{'ttng.tc_gen5_mma' op the operands are of kind f16 ('f16') and f8f6f4 ('f8E5M2'); they must be of one kind}}
    ttng.tc_gen5_mma %a, %b, %d, %p, %p : !ttg.memdesc<128x64xf16, #nvmma, #smem>, !ttg.memdesc<64x64xf8E5M2, #nvmma, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
    tt.return
  }
}

// -----

#nvmma = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
#tmem2 = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 2>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @sum(%a: !ttg.memdesc<128x64xbf16, #nvmma, #smem>, %b: !ttg.memdesc<64x64xbf16, #nvmma, #smem>, %d: !ttg.memdesc<128x64xf16, #tmem2, #ttng.tensor_memory, mutable>, %p: i1) {
    // expected-error @+1 {{'ttng.tc_gen5_mma' op a product of 'bf16' and 'bf16' cannot be summed in 'f16'}}
    ttng.tc_gen5_mma %a, %b, %d, %p, %p : !ttg.memdesc<128x64xbf16, #nvmma, #smem>, !ttg.memdesc<64x64xbf16, #nvmma, #smem>, !ttg.memdesc<128x64xf16, #tmem2, #ttng.tensor_memory, mutable>
    tt.return
  }
}

// -----

#nvmma = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
#nvmma32 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @accumulator(%a: !ttg.memdesc<128x64xf16, #nvmma, #smem>, %b: !ttg.memdesc<64x64xf16, #nvmma, #smem>, %d: !ttg.memdesc<128x64xf32, #nvmma32, #smem, mutable>, %p: i1) {
    // expected-error @+1 {{'ttng.tc_gen5_mma' op the accumulator must be in tensor memory, with a layout #ttng.tensor_memory_encoding}}
    ttng.tc_gen5_mma %a, %b, %d, %p, %p : !ttg.memdesc<128x64xf16, #nvmma, #smem>, !ttg.memdesc<64x64xf16, #nvmma, #smem>, !ttg.memdesc<128x64xf32, #nvmma32, #smem, mutable>
    tt.return
  }
}

// -----

#nvmma = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @accumulator_stride(%a: !ttg.memdesc<128x64xf16, #nvmma, #smem>, %b: !ttg.memdesc<64x64xf16, #nvmma, #smem>, %d: !ttg.memdesc<128x64xf16, #tmem, #ttng.tensor_memory, mutable>, %p: i1) {
    // expected-error @+1 {{'ttng.tc_gen5_mma' op an accumulator of 'f16' must have colStride = 2, but has 1}}
    ttng.tc_gen5_mma %a, %b, %d, %p, %p : !ttg.memdesc<128x64xf16, #nvmma, #smem>, !ttg.memdesc<64x64xf16, #nvmma, #smem>, !ttg.memdesc<128x64xf16, #tmem, #ttng.tensor_memory, mutable>
    tt.return
  }
}

// -----

#tmem2 = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 2>
#nvmma = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @left_stride(%a: !ttg.memdesc<128x64xf16, #tmem2, #ttng.tensor_memory, mutable>, %b: !ttg.memdesc<64x64xf16, #nvmma, #smem>, %d: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, %p: i1) {
    // expected-error @+1 {{'ttng.tc_gen5_mma' op the left operand must have colStride = 1, but has 2}}
    ttng.tc_gen5_mma %a, %b, %d, %p, %p : !ttg.memdesc<128x64xf16, #tmem2, #ttng.tensor_memory, mutable>, !ttg.memdesc<64x64xf16, #nvmma, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
    tt.return
  }
}

// -----

#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
#nvmma = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @left_layout(%a: !ttg.memdesc<128x64xf16, #flat, #smem>, %b: !ttg.memdesc<64x64xf16, #nvmma, #smem>, %d: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, %p: i1) {
    // expected-error @+1 {{'ttng.tc_gen5_mma' op the left operand cannot have a layout of kind `ttg.swizzled_shared`}}
    ttng.tc_gen5_mma %a, %b, %d, %p, %p : !ttg.memdesc<128x64xf16, #flat, #smem>, !ttg.memdesc<64x64xf16, #nvmma, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
    tt.return
  }
}

// -----

#nvmma = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @right_layout(%a: !ttg.memdesc<128x64xf16, #nvmma, #smem>, %b: !ttg.memdesc<64x64xf16, #flat, #smem>, %d: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, %p: i1) {
    // expected-error @+1 {{'ttng.tc_gen5_mma' op the right operand must have a layout #ttg.nvmma_shared or #ttg.shared_linear, not `ttg.swizzled_shared`}}
    ttng.tc_gen5_mma %a, %b, %d, %p, %p : !ttg.memdesc<128x64xf16, #nvmma, #smem>, !ttg.memdesc<64x64xf16, #flat, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
    tt.return
  }
}

// -----

#nvmma = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @shape(%a: !ttg.memdesc<128x64xf16, #nvmma, #smem>, %b: !ttg.memdesc<32x64xf16, #nvmma, #smem>, %d: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, %p: i1) {
    // expected-error @+1 {{'ttng.tc_gen5_mma' op K is 64 in the left operand [128, 64] and 32 in the right one [32, 64]}}
    ttng.tc_gen5_mma %a, %b, %d, %p, %p : !ttg.memdesc<128x64xf16, #nvmma, #smem>, !ttg.memdesc<32x64xf16, #nvmma, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
    tt.return
  }
}

// -----

#nvmma = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @split(%a: !ttg.memdesc<128x64xf16, #nvmma, #smem>, %b: !ttg.memdesc<64x64xf16, #nvmma, #smem>, %d: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, %p: i1) {
    // expected-error @+1 {{'ttng.tc_gen5_mma' op two_ctas needs the left operand split as [2, 1] among the blocks, not as [1, 1]}}
    ttng.tc_gen5_mma %a, %b, %d, %p, %p {two_ctas} : !ttg.memdesc<128x64xf16, #nvmma, #smem>, !ttg.memdesc<64x64xf16, #nvmma, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
    tt.return
  }
}

// -----

#nvC0 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16, CGALayout = [[1, 0]]}>
#smem = #ttg.shared_memory
#nvC1 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16, CGALayout = [[0, 1]]}>
#tmem2split = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1, CTASplitM = 2>
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @split_accumulator(%a: !ttg.memdesc<256x64xf16, #nvC0, #smem>, %b: !ttg.memdesc<64x64xf16, #nvC1, #smem>, %d: !ttg.memdesc<256x64xf32, #tmem2split, #ttng.tensor_memory, mutable>, %p: i1) {
    // expected-error @+1 {{'ttng.tc_gen5_mma' op two_ctas needs an accumulator laid out for two blocks}}
    ttng.tc_gen5_mma %a, %b, %d, %p, %p {two_ctas} : !ttg.memdesc<256x64xf16, #nvC0, #smem>, !ttg.memdesc<64x64xf16, #nvC1, #smem>, !ttg.memdesc<256x64xf32, #tmem2split, #ttng.tensor_memory, mutable>
    tt.return
  }
}

// -----

#tmem2split = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1, CTASplitM = 2>
#nvC1 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16, CGALayout = [[0, 1]]}>
#smem = #ttg.shared_memory
#tmem2cta = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1, CTASplitM = 2, twoCTAs = true>
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @split_left(%a: !ttg.memdesc<256x64xf16, #tmem2split, #ttng.tensor_memory, mutable>, %b: !ttg.memdesc<64x64xf16, #nvC1, #smem>, %d: !ttg.memdesc<256x64xf32, #tmem2cta, #ttng.tensor_memory, mutable>, %p: i1) {
    // expected-error @+1 {{'ttng.tc_gen5_mma' op two_ctas needs a left operand laid out for two blocks}}
    ttng.tc_gen5_mma %a, %b, %d, %p, %p {two_ctas} : !ttg.memdesc<256x64xf16, #tmem2split, #ttng.tensor_memory, mutable>, !ttg.memdesc<64x64xf16, #nvC1, #smem>, !ttg.memdesc<256x64xf32, #tmem2cta, #ttng.tensor_memory, mutable>
    tt.return
  }
}

// -----

#nvmma = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#flat1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @predicates(%a: !ttg.memdesc<128x64xf16, #nvmma, #smem>, %b: !ttg.memdesc<64x64xf16, #nvmma, #smem>, %d: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, %p: i1, %bar: !ttg.memdesc<1xi64, #flat1, #smem, mutable>) {
    // expected-error @+1 {{'ttng.tc_gen5_mma' op has 1 barriers and 0 predicates for them}}
    "ttng.tc_gen5_mma"(%a, %b, %d, %p, %p, %bar) <{is_async, operandSegmentSizes = array<i32: 1, 1, 1, 0, 1, 1, 1, 0>}> : (!ttg.memdesc<128x64xf16, #nvmma, #smem>, !ttg.memdesc<64x64xf16, #nvmma, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, i1, i1, !ttg.memdesc<1xi64, #flat1, #smem, mutable>) -> ()
    tt.return
  }
}
