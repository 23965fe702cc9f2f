// RUN: llopt %s --issue-loads --split-input-file | FileCheck %s

#sums = #ttg.amd_mfma<{version = 4, warpsPerCTA = [2, 2], instrShape = [32, 32, 16], isTransposed = true}>
#a = #ttg.dot_op<{opIdx = 0, parent = #sums, kWidth = 8}>
#b = #ttg.dot_op<{opIdx = 1, parent = #sums, kWidth = 8}>
#l = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 2, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32, ttg.target = "hip:gfx950"} {

// Loads for a later iteration go before the reads that the product waits for, with what computes their addresses, in
// the order that they had.
// CHECK-LABEL: @before_reads
// CHECK: arith.addi
// CHECK-NEXT: amdg.buffer_load %arg0
// CHECK-NEXT: amdg.buffer_load %arg1
// CHECK-NEXT: ttg.local_load
// CHECK-NEXT: ttg.local_load
// CHECK-NEXT: tt.dot
tt.func @before_reads(%p: !tt.ptr<f16>, %q: !tt.ptr<f16>, %ma: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %mb: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %c: tensor<64x64xf32, #sums>, %at: tensor<64x64xi32, #l>) -> tensor<64x64xf32, #sums> {
  %0 = ttg.local_load %ma : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf16, #a>
  %1 = arith.addi %at, %at : tensor<64x64xi32, #l>
  %2 = amdg.buffer_load %p[%1] : tensor<64x64xf16, #l>
  %3 = ttg.local_load %mb : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf16, #b>
  %4 = amdg.buffer_load %q[%1] : tensor<64x64xf16, #l>
  %5 = tt.dot %0, %3, %c : tensor<64x64xf16, #a> * tensor<64x64xf16, #b> -> tensor<64x64xf32, #sums>
  ttg.local_store %2, %ma : tensor<64x64xf16, #l> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  ttg.local_store %4, %mb : tensor<64x64xf16, #l> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  tt.return %5 : tensor<64x64xf32, #sums>
}

// What is used before the product is loaded before what is stored behind it.
// CHECK-LABEL: @used_first
// CHECK: amdg.buffer_load %arg1
// CHECK-NEXT: amdg.buffer_load %arg0
// CHECK-NEXT: ttg.local_load
// CHECK: tt.dot
tt.func @used_first(%p: !tt.ptr<f16>, %q: !tt.ptr<f16>, %ma: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %mb: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %c: tensor<64x64xf32, #sums>, %at: tensor<64x64xi32, #l>) -> (tensor<64x64xf32, #sums>, tensor<64x64xf16, #l>) {
  %0 = ttg.local_load %ma : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf16, #a>
  %1 = amdg.buffer_load %p[%at] : tensor<64x64xf16, #l>
  %2 = ttg.local_load %mb : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf16, #b>
  %3 = amdg.buffer_load %q[%at] : tensor<64x64xf16, #l>
  %4 = arith.addf %3, %3 : tensor<64x64xf16, #l>
  %5 = tt.dot %0, %2, %c : tensor<64x64xf16, #a> * tensor<64x64xf16, #b> -> tensor<64x64xf32, #sums>
  ttg.local_store %1, %ma : tensor<64x64xf16, #l> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  tt.return %5, %4 : tensor<64x64xf32, #sums>, tensor<64x64xf16, #l>
}

// Neither before what writes to memory, nor if the address comes from shared memory.
// CHECK-LABEL: @stays
// CHECK: ttg.local_load %arg1
// CHECK: tt.store
// CHECK: ttg.local_load %arg3
// CHECK: amdg.buffer_load %arg0
// CHECK: amdg.buffer_load %arg0
// CHECK: tt.dot
tt.func @stays(%p: !tt.ptr<f16>, %ma: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %mb: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %mi: !ttg.memdesc<64x64xi32, #shared, #smem, mutable>, %c: tensor<64x64xf32, #sums>, %at: tensor<64x64xi32, #l>, %x: f16) -> (tensor<64x64xf32, #sums>, tensor<64x64xf16, #l>, tensor<64x64xf16, #l>) {
  %0 = ttg.local_load %ma : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf16, #a>
  %1 = ttg.local_load %mb : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf16, #b>
  tt.store %p, %x : !tt.ptr<f16>
  %2 = ttg.local_load %mi : !ttg.memdesc<64x64xi32, #shared, #smem, mutable> -> tensor<64x64xi32, #l>
  %3 = amdg.buffer_load %p[%2] : tensor<64x64xf16, #l>
  %4 = arith.addi %at, %2 : tensor<64x64xi32, #l>
  %5 = amdg.buffer_load %p[%4] : tensor<64x64xf16, #l>
  %6 = tt.dot %0, %1, %c : tensor<64x64xf16, #a> * tensor<64x64xf16, #b> -> tensor<64x64xf32, #sums>
  tt.return %6, %3, %5 : tensor<64x64xf32, #sums>, tensor<64x64xf16, #l>, tensor<64x64xf16, #l>
}

// A loop that only reads has the effects of a load, but needs more than its operands, and stays.
// CHECK-LABEL: @loop
// CHECK: ttg.local_load
// CHECK: scf.for
// CHECK: tt.dot
tt.func @loop(%p: !tt.ptr<f16>, %ma: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %mb: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %c: tensor<64x64xf32, #sums>, %at: tensor<64x64xi32, #l>, %n: i32) -> (tensor<64x64xf32, #sums>, tensor<64x64xf16, #l>) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %0 = ttg.local_load %ma : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf16, #a>
  %1 = ttg.local_load %mb : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf16, #b>
  %start = arith.constant dense<0.0> : tensor<64x64xf16, #l>
  %2 = scf.for %i = %zero to %n step %one iter_args(%sum = %start) -> (tensor<64x64xf16, #l>) : i32 {
    %3 = amdg.buffer_load %p[%at] : tensor<64x64xf16, #l>
    %4 = ttg.convert_layout %0 : tensor<64x64xf16, #a> -> tensor<64x64xf16, #l>
    %5 = arith.addf %3, %4 : tensor<64x64xf16, #l>
    %6 = arith.addf %sum, %5 : tensor<64x64xf16, #l>
    scf.yield %6 : tensor<64x64xf16, #l>
  }
  %7 = tt.dot %0, %1, %c : tensor<64x64xf16, #a> * tensor<64x64xf16, #b> -> tensor<64x64xf32, #sums>
  tt.return %7, %2 : tensor<64x64xf32, #sums>, tensor<64x64xf16, #l>
}
}

// -----

#sums = #ttg.amd_wmma<{version = 1, isTranspose = true, warpsPerCTA = [2, 2]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #sums, kWidth = 16}>
#b = #ttg.dot_op<{opIdx = 1, parent = #sums, kWidth = 16}>
#l = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "hip:gfx1100"} {

// Not where what is loaded does not fit into registers together with operands and sums.
// CHECK-LABEL: @scarce
// CHECK: ttg.local_load
// CHECK-NEXT: ttg.local_load
// CHECK-NEXT: amdg.buffer_load
tt.func @scarce(%p: !tt.ptr<f16>, %ma: !ttg.memdesc<128x64xf16, #shared, #smem>, %mb: !ttg.memdesc<64x128xf16, #shared, #smem>, %c: tensor<128x128xf32, #sums>, %at: tensor<128x64xi32, #l>) -> (tensor<128x128xf32, #sums>, tensor<128x64xf16, #l>) {
  %0 = ttg.local_load %ma : !ttg.memdesc<128x64xf16, #shared, #smem> -> tensor<128x64xf16, #a>
  %1 = ttg.local_load %mb : !ttg.memdesc<64x128xf16, #shared, #smem> -> tensor<64x128xf16, #b>
  %2 = amdg.buffer_load %p[%at] : tensor<128x64xf16, #l>
  %3 = tt.dot %0, %1, %c : tensor<128x64xf16, #a> * tensor<64x128xf16, #b> -> tensor<128x128xf32, #sums>
  tt.return %3, %2 : tensor<128x128xf32, #sums>, tensor<128x64xf16, #l>
}
}

// -----

// Where an assembler orders instructions and no copies go ahead, what the second product of an iteration takes is loaded behind what the
// first one takes: nothing moves over the wait for a product later. Its address depends on no result of the first product.

#wide = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [2, 16], warpsPerCTA = [8, 1], order = [1, 0]}>
#wgmma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [8, 1], instrShape = [16, 128, 16]}>
#factor = #ttg.dot_op<{opIdx = 0, parent = #wgmma, kWidth = 2}>
#rows = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!tile = tensor<128x128x!tt.ptr<bf16>, #wide>
!sums = tensor<128x128xf32, #wgmma>

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {

// CHECK-LABEL: @past_a_product
// CHECK: scf.for
// CHECK: tt.load %{{.*}} : tensor<128x128x!tt.ptr<bf16>
// CHECK-NEXT: %[[AT:.*]] = tt.addptr %arg2
// CHECK-NEXT: %[[SECOND:.*]] = tt.load %[[AT]]
// CHECK-NEXT: ttg.local_alloc
// CHECK-NEXT: ttng.warp_group_dot
// CHECK: ttg.local_alloc %[[SECOND]]
// CHECK: ttng.warp_group_dot
tt.func @past_a_product(%q: !ttg.memdesc<128x128xbf16, #rows, #smem>, %k: !tile, %v: !tile, %n: i32) -> !sums {
  %zero = arith.constant dense<0.0> : !sums
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (!sums) : i32 {
    %by = tt.splat %i : i32 -> tensor<128x128xi32, #wide>
    %k_at = tt.addptr %k, %by : !tile, tensor<128x128xi32, #wide>
    %k_tile = tt.load %k_at : !tile
    %k_buffer = ttg.local_alloc %k_tile : (tensor<128x128xbf16, #wide>) -> !ttg.memdesc<128x128xbf16, #rows, #smem>
    %scores = ttng.warp_group_dot %q, %k_buffer, %zero {inputPrecision = 0 : i32} : !ttg.memdesc<128x128xbf16, #rows, #smem> * !ttg.memdesc<128x128xbf16, #rows, #smem> -> !sums
    %p = math.exp2 %scores : !sums
    %p_narrow = arith.truncf %p : !sums to tensor<128x128xbf16, #wgmma>
    %p_factor = ttg.convert_layout %p_narrow : tensor<128x128xbf16, #wgmma> -> tensor<128x128xbf16, #factor>
    %v_at = tt.addptr %v, %by : !tile, tensor<128x128xi32, #wide>
    %v_tile = tt.load %v_at : !tile
    %v_buffer = ttg.local_alloc %v_tile : (tensor<128x128xbf16, #wide>) -> !ttg.memdesc<128x128xbf16, #rows, #smem>
    %next = ttng.warp_group_dot %p_factor, %v_buffer, %sum {inputPrecision = 0 : i32} : tensor<128x128xbf16, #factor> * !ttg.memdesc<128x128xbf16, #rows, #smem> -> !sums
    scf.yield %next : !sums
  }
  tt.return %r : !sums
}

}

// -----

// LLVM's scheduler moves no load over a barrier either. What scales a product comes right behind its factor, unless the loop loads
// for a later iteration.

#sums = #ttg.amd_mfma<{version = 3, warpsPerCTA = [4, 1], instrShape = [16, 16, 16], isTransposed = true}>
#a = #ttg.dot_op<{opIdx = 0, parent = #sums, kWidth = 4}>
#b = #ttg.dot_op<{opIdx = 1, parent = #sums, kWidth = 4}>
#l = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32, ttg.target = "hip:gfx942"} {

// CHECK-LABEL: @scales
// CHECK: amdg.buffer_load %arg0
// CHECK-NEXT: amdg.buffer_load %arg1
// CHECK: tt.dot
tt.func @scales(%p: !tt.ptr<f16>, %q: !tt.ptr<f32>, %o: !tt.ptr<f32>, %x: tensor<64x64xf16, #a>, %at: tensor<64x64xi32, #l>, %of: tensor<64x64xi32, #sums>, %n: i32) {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #sums>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %t = amdg.buffer_load %p[%at] : tensor<64x64xf16, #l>
    %y = ttg.convert_layout %t : tensor<64x64xf16, #l> -> tensor<64x64xf16, #b>
    %z = tt.dot %x, %y, %zero : tensor<64x64xf16, #a> * tensor<64x64xf16, #b> -> tensor<64x64xf32, #sums>
    %s = amdg.buffer_load %q[%of] : tensor<64x64xf32, #sums>
    %u = arith.mulf %z, %s : tensor<64x64xf32, #sums>
    amdg.buffer_store %u, %o[%of] : tensor<64x64xf32, #sums>
  }
  tt.return
}

// CHECK-LABEL: @ahead
// CHECK: tt.dot
// CHECK: amdg.buffer_load %arg1
tt.func @ahead(%p: !tt.ptr<f16>, %q: !tt.ptr<f32>, %o: !tt.ptr<f32>, %x: tensor<64x64xf16, #a>, %at: tensor<64x64xi32, #l>, %of: tensor<64x64xi32, #sums>, %n: i32, %first: tensor<64x64xf16, #l>) {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #sums>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%now = %first) -> (tensor<64x64xf16, #l>) : i32 {
    %t = amdg.buffer_load %p[%at] : tensor<64x64xf16, #l>
    %y = ttg.convert_layout %now : tensor<64x64xf16, #l> -> tensor<64x64xf16, #b>
    %z = tt.dot %x, %y, %zero : tensor<64x64xf16, #a> * tensor<64x64xf16, #b> -> tensor<64x64xf32, #sums>
    %s = amdg.buffer_load %q[%of] : tensor<64x64xf32, #sums>
    %u = arith.mulf %z, %s : tensor<64x64xf32, #sums>
    amdg.buffer_store %u, %o[%of] : tensor<64x64xf32, #sums>
    scf.yield %t : tensor<64x64xf16, #l>
  }
  tt.return
}
}

// -----

// A thread of these 256 has 32 registers of sums and 48 of factors, so that two blocks may be resident. Of the factors of the second
// product, which would be beside those of the first one until these are stored, two blocks have room for one.

#sums = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [8, 1], instrShape = [16, 64, 16]}>
#wide = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [2, 16], warpsPerCTA = [8, 1], order = [1, 0]}>
#narrow = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [8, 1], order = [1, 0]}>
#rows = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {

// CHECK-LABEL: @few_blocks
// CHECK-COUNT-3: tt.load
// CHECK-NOT: tt.load
// CHECK: ttng.warp_group_dot
// CHECK: tt.load
// CHECK: ttng.warp_group_dot
tt.func @few_blocks(%a: tensor<128x128x!tt.ptr<f16>, #wide>, %b: tensor<128x64x!tt.ptr<f16>, #narrow>, %c: tensor<128x128x!tt.ptr<f16>, #wide>, %d: tensor<128x64x!tt.ptr<f16>, #narrow>, %n: i32) -> tensor<128x64xf32, #sums> {
  %zero = arith.constant dense<0.0> : tensor<128x64xf32, #sums>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<128x64xf32, #sums>) : i32 {
    %a0 = tt.load %a : tensor<128x128x!tt.ptr<f16>, #wide>
    %b0 = tt.load %b : tensor<128x64x!tt.ptr<f16>, #narrow>
    %x0 = ttg.local_alloc %a0 : (tensor<128x128xf16, #wide>) -> !ttg.memdesc<128x128xf16, #rows, #smem>
    %y0 = ttg.local_alloc %b0 : (tensor<128x64xf16, #narrow>) -> !ttg.memdesc<128x64xf16, #rows, #smem>
    %s0 = ttng.warp_group_dot %x0, %y0, %sum {inputPrecision = 0 : i32} : !ttg.memdesc<128x128xf16, #rows, #smem> * !ttg.memdesc<128x64xf16, #rows, #smem> -> tensor<128x64xf32, #sums>
    %a1 = tt.load %c : tensor<128x128x!tt.ptr<f16>, #wide>
    %b1 = tt.load %d : tensor<128x64x!tt.ptr<f16>, #narrow>
    %x1 = ttg.local_alloc %a1 : (tensor<128x128xf16, #wide>) -> !ttg.memdesc<128x128xf16, #rows, #smem>
    %y1 = ttg.local_alloc %b1 : (tensor<128x64xf16, #narrow>) -> !ttg.memdesc<128x64xf16, #rows, #smem>
    %s1 = ttng.warp_group_dot %x1, %y1, %s0 {inputPrecision = 0 : i32} : !ttg.memdesc<128x128xf16, #rows, #smem> * !ttg.memdesc<128x64xf16, #rows, #smem> -> tensor<128x64xf32, #sums>
    scf.yield %s1 : tensor<128x64xf32, #sums>
  }
  tt.return %r : tensor<128x64xf32, #sums>
}
}
