// RUN: llopt %s --split-input-file --verify-diagnostics

// Each part breaks one rule; the message says which, and what is at fault.

#w64 = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [16, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32} {
  tt.func @slice_element(%x: tensor<128x64xf32, #w64>) {
    // expected-error @+1 {{'amdg.extract_slice' op the operand has elements of type 'f32', the result of 'f16'}}
    %0 = amdg.extract_slice %x [0, 0] : tensor<128x64xf32, #w64> to tensor<64x32xf16, #w64>
    tt.return
  }
}

// -----

#w64 = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [16, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32} {
  tt.func @slice_offsets(%x: tensor<128x64xf32, #w64>) {
    // expected-error @+1 {{'amdg.extract_slice' op operand, result and offsets must have one rank, but have 2, 2 and 1}}
    %0 = amdg.extract_slice %x [0] : tensor<128x64xf32, #w64> to tensor<64x32xf32, #w64>
    tt.return
  }
}

// -----

#w64 = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [16, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32} {
  tt.func @slice_beyond(%x: tensor<128x64xf32, #w64>) {
    // expected-error @+1 {{'amdg.extract_slice' op dimension 0: 64 elements from 128 on are not within 128}}
    %0 = amdg.extract_slice %x [128, 0] : tensor<128x64xf32, #w64> to tensor<64x32xf32, #w64>
    tt.return
  }
}

// -----

#w64 = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [16, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32} {
  tt.func @slice_register(%x: tensor<128x64xf32, #w64>) {
    // expected-error @+1 {{'amdg.extract_slice' op no register of the operand holds the element at [32, 0]}}
    %0 = amdg.extract_slice %x [32, 0] : tensor<128x64xf32, #w64> to tensor<64x32xf32, #w64>
    tt.return
  }
}

// -----

#w64 = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [16, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#w64c = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32} {
  tt.func @slice_threads(%x: tensor<64x128xf32, #w64>) {
    // expected-error @+1 {{'amdg.extract_slice' op operand and result must spread a tile over the lanes alike, but have the vectors [[0, 8], [0, 16], [1, 0], [2, 0], [4, 0], [8, 0]] and [[0, 8], [0, 16], [0, 32], [0, 64], [1, 0], [2, 0]]}}
    %0 = amdg.extract_slice %x [0, 0] : tensor<64x128xf32, #w64> to tensor<16x128xf32, #w64c>
    tt.return
  }
}

// -----

#w64 = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [16, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32} {
  tt.func @concat_nothing() {
    // expected-error @+1 {{'amdg.concat' op needs at least one operand}}
    %0 = "amdg.concat"() : () -> tensor<128x64xf32, #w64>
    tt.return
  }
}

// -----

#w64 = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [16, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32} {
  tt.func @concat_types(%x: tensor<64x32xf32, #w64>, %y: tensor<64x64xf32, #w64>) {
    // expected-error @+1 {{'amdg.concat' op operand #1 has type 'tensor<64x64xf32, #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [16, 4], warpsPerCTA = [4, 1], order = [1, 0]}>>', operand #0 'tensor<64x32xf32, #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [16, 4], warpsPerCTA = [4, 1], order = [1, 0]}>>'}}
    %0 = amdg.concat %x, %y : tensor<64x32xf32, #w64>, tensor<64x64xf32, #w64> -> tensor<128x64xf32, #w64>
    tt.return
  }
}

// -----

#w64 = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [16, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32} {
  tt.func @concat_element(%x: tensor<64x64xf16, #w64>) {
    // expected-error @+1 {{'amdg.concat' op the operands have elements of type 'f16', the result of 'f32'}}
    %0 = amdg.concat %x, %x : tensor<64x64xf16, #w64>, tensor<64x64xf16, #w64> -> tensor<128x64xf32, #w64>
    tt.return
  }
}

// -----

#w641 = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
#w64 = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [16, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32} {
  tt.func @concat_rank(%x: tensor<1024xf32, #w641>) {
    // expected-error @+1 {{'amdg.concat' op the operands have rank 1, the result 2}}
    %0 = amdg.concat %x, %x : tensor<1024xf32, #w641>, tensor<1024xf32, #w641> -> tensor<128x64xf32, #w64>
    tt.return
  }
}

// -----

#w64 = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [16, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32} {
  tt.func @concat_extent(%x: tensor<256x32xf32, #w64>) {
    // expected-error @+1 {{'amdg.concat' op dimension 0: the extent 128 of the result is no multiple of 256}}
    %0 = amdg.concat %x, %x : tensor<256x32xf32, #w64>, tensor<256x32xf32, #w64> -> tensor<128x64xf32, #w64>
    tt.return
  }
}

// -----

#w64 = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [16, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32} {
  tt.func @concat_count(%x: tensor<64x32xf32, #w64>) {
    // expected-error @+1 {{'amdg.concat' op the result takes 4 operands, not 2}}
    %0 = amdg.concat %x, %x : tensor<64x32xf32, #w64>, tensor<64x32xf32, #w64> -> tensor<128x64xf32, #w64>
    tt.return
  }
}

// -----

#w64b = #ttg.blocked<{sizePerThread = [2, 4], threadsPerWarp = [16, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#w64 = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [16, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32} {
  tt.func @concat_threads(%x: tensor<64x64xf32, #w64b>) {
    // expected-error @+1 {{'amdg.concat' op no register of an operand holds the element at [0, 4] of the result}}
    %0 = amdg.concat %x, %x : tensor<64x64xf32, #w64b>, tensor<64x64xf32, #w64b> -> tensor<128x64xf32, #w64>
    tt.return
  }
}

// -----

#w64b = #ttg.blocked<{sizePerThread = [2, 4], threadsPerWarp = [16, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32} {
  tt.func @transpose_shape(%x: tensor<128x16xf32, #w64b>) {
    // expected-error @+1 {{'amdg.in_thread_transpose' op operand and result must have one shape and element type, but have 'tensor<128x16xf32, #ttg.blocked<{sizePerThread = [2, 4], threadsPerWarp = [16, 4], warpsPerCTA = [4, 1], order = [1, 0]}>>' and 'tensor<128x32xf32, #ttg.blocked<{sizePerThread = [2, 4], threadsPerWarp = [16, 4], warpsPerCTA = [4, 1], order = [1, 0]}>>'}}
    %0 = amdg.in_thread_transpose %x : tensor<128x16xf32, #w64b> -> tensor<128x32xf32, #w64b>
    tt.return
  }
}

// -----

#w641 = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32} {
  tt.func @transpose_rank(%x: tensor<1024xf32, #w641>) {
    // expected-error @+1 {{'amdg.in_thread_transpose' op works on matrices, not on shape [1024]}}
    %0 = amdg.in_thread_transpose %x : tensor<1024xf32, #w641> -> tensor<1024xf32, #w641>
    tt.return
  }
}

// -----

#mfma = #ttg.amd_mfma<{version = 4, warpsPerCTA = [4, 1], instrShape = [16, 16, 32], isTransposed = true}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32} {
  tt.func @transpose_layout(%x: tensor<128x64xf32, #mfma>) {
    // expected-error @+1 {{'amdg.in_thread_transpose' op the operand must have a layout #ttg.blocked}}
    %0 = amdg.in_thread_transpose %x : tensor<128x64xf32, #mfma> -> tensor<128x64xf32, #mfma>
    tt.return
  }
}

// -----

#w64b = #ttg.blocked<{sizePerThread = [2, 4], threadsPerWarp = [16, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32} {
  tt.func @transpose_registers(%x: tensor<128x16xf32, #w64b>) {
    // expected-error @+1 {{'amdg.in_thread_transpose' op the registers of the result must have the vectors [[1, 0], [0, 1], [0, 2]], but have [[0, 1], [0, 2], [1, 0]]}}
    %0 = amdg.in_thread_transpose %x : tensor<128x16xf32, #w64b> -> tensor<128x16xf32, #w64b>
    tt.return
  }
}

// -----

tt.func @upcast_values(%x: tensor<64x64xf32>, %s: tensor<64x4xi8>) {
  // expected-error @+1 {{'amdg.upcast_mxfp' op values must be of 8-bit float, f16, bf16 or packed in i8, not 'f32'}}
  %0 = amdg.upcast_mxfp %x, %s fp_type = e2m1 {fastMath = false} : tensor<64x64xf32>, tensor<64x4xi8> -> tensor<64x128xbf16>
  tt.return
}

// -----

tt.func @upcast_scales(%x: tensor<64x64xi8>, %s: tensor<64x4xf16>) {
  // expected-error @+1 {{'amdg.upcast_mxfp' op scales must be i8, not 'f16'}}
  %0 = amdg.upcast_mxfp %x, %s fp_type = e2m1 {fastMath = false} : tensor<64x64xi8>, tensor<64x4xf16> -> tensor<64x128xbf16>
  tt.return
}

// -----

tt.func @upcast_format(%x: tensor<64x64xi8>, %s: tensor<64x4xi8>) {
  // expected-error @+1 {{'amdg.upcast_mxfp' op there is no upcast from `bf16`}}
  %0 = amdg.upcast_mxfp %x, %s fp_type = bf16 {fastMath = false} : tensor<64x64xi8>, tensor<64x4xi8> -> tensor<64x128xbf16>
  tt.return
}

// -----

tt.func @upcast_rank(%x: tensor<64xi8>, %s: tensor<4xi8>) {
  // expected-error @+1 {{'amdg.upcast_mxfp' op values and scales must be matrices of one rank, but have shapes [64] and [4]}}
  %0 = amdg.upcast_mxfp %x, %s fp_type = e2m1 {fastMath = false} : tensor<64xi8>, tensor<4xi8> -> tensor<64x128xbf16>
  tt.return
}

// -----

#w64 = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [16, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32} {
  tt.func @upcast_layout(%x: tensor<64x64xi8, #w64>, %s: tensor<64x4xi8, #w64>) {
    // expected-error @+1 {{'amdg.upcast_mxfp' op values must have a layout #ttg.dot_op, not `ttg.blocked`}}
    %0 = amdg.upcast_mxfp %x, %s fp_type = e2m1 {fastMath = false} : tensor<64x64xi8, #w64>, tensor<64x4xi8, #w64> -> tensor<64x128xbf16, #w64>
    tt.return
  }
}

// -----

#mfma = #ttg.amd_mfma<{version = 4, warpsPerCTA = [4, 1], instrShape = [16, 16, 32], isTransposed = true}>
#w64 = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [16, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32} {
  tt.func @upcast_groups(%x: tensor<64x64xi8, #ttg.dot_op<{opIdx = 0, parent = #mfma, kWidth = 8}>>, %s: tensor<64x8xi8, #w64>) {
    // expected-error @+1 {{'amdg.upcast_mxfp' op 8 scales along K do not fit K of 128, 32 elements each}}
    %0 = amdg.upcast_mxfp %x, %s fp_type = e2m1 {fastMath = false} : tensor<64x64xi8, #ttg.dot_op<{opIdx = 0, parent = #mfma, kWidth = 8}>>, tensor<64x8xi8, #w64> -> tensor<64x128xbf16, #ttg.dot_op<{opIdx = 0, parent = #mfma, kWidth = 8}>>
    tt.return
  }
}

// -----

#mfma = #ttg.amd_mfma<{version = 4, warpsPerCTA = [4, 1], instrShape = [16, 16, 32], isTransposed = true}>
#w64 = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [16, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32} {
  tt.func @upcast_rows(%x: tensor<64x64xi8, #ttg.dot_op<{opIdx = 0, parent = #mfma, kWidth = 8}>>, %s: tensor<32x4xi8, #w64>) {
    // expected-error @+1 {{'amdg.upcast_mxfp' op there are 32 rows of scales for 64 rows of values}}
    %0 = amdg.upcast_mxfp %x, %s fp_type = e2m1 {fastMath = false} : tensor<64x64xi8, #ttg.dot_op<{opIdx = 0, parent = #mfma, kWidth = 8}>>, tensor<32x4xi8, #w64> -> tensor<64x128xbf16, #ttg.dot_op<{opIdx = 0, parent = #mfma, kWidth = 8}>>
    tt.return
  }
}

// -----

#w64 = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [16, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32} {
  tt.func @fp4_scale(%x: tensor<64x16xi8, #w64>, %s: tensor<64x16xbf16, #w64>) {
    // expected-error @+1 {{'amdg.scaled_upcast_fp4' op scale and result must have one shape, but have [64, 16] and [64, 32]}}
    %0 = amdg.scaled_upcast_fp4 %x scale %s {axis = 1 : i32} : tensor<64x16xi8, #w64>, tensor<64x16xbf16, #w64> -> tensor<64x32xf16, #w64>
    tt.return
  }
}

// -----

#w64 = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [16, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32} {
  tt.func @fp4_extent(%x: tensor<64x16xi8, #w64>, %s: tensor<64x16xbf16, #w64>) {
    // expected-error @+1 {{'amdg.scaled_upcast_fp4' op dimension 1 of the result must have extent 32, but has 16}}
    %0 = amdg.scaled_upcast_fp4 %x scale %s {axis = 1 : i32} : tensor<64x16xi8, #w64>, tensor<64x16xbf16, #w64> -> tensor<64x16xf16, #w64>
    tt.return
  }
}
