// RUN: llopt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{`warpsPerCTA` has 2 entries; the encoding has rank 1}}
#layout = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4, 1], order = [0]}>

// -----

// expected-error @+1 {{`sizePerThread` of dim0 is 3, which is not a power of two}}
#layout = #ttg.blocked<{sizePerThread = [3], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>

// -----

// expected-error @+1 {{`ttg.blocked` lacks parameter `warpsPerCTA`}}
#layout = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], order = [0]}>

// -----

// expected-error @+1 {{`ttg.blocked` has no parameter `size`; it has: sizePerThread, threadsPerWarp, warpsPerCTA, order, CGALayout}}
#layout = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0], size = 1}>

// -----

// expected-error @+1 {{`order` is [0, 0], which does not name each of 0 to 1 once}}
#layout = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 0]}>

// -----

#layout = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-warps" = 8 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @warps(%x: tensor<128xf32, #layout>) {
    // expected-error @+1 {{'tt.bitcast' op operand #0 has a layout for 4 warps per block (#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>); here are 8}}
    %0 = tt.bitcast %x : tensor<128xf32, #layout> -> tensor<128xi32, #layout>
    tt.return
  }
}

// -----

#layout = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @convert(%x: tensor<128xf32, #layout>) {
    // expected-error @+1 {{'ttg.convert_layout' op requires the same shape for all operands and results}}
    %0 = ttg.convert_layout %x : tensor<128xf32, #layout> -> tensor<256xf32, #layout>
    tt.return
  }
}

// -----

#layout = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @expand(%x: tensor<128xf32, #layout>) {
    // expected-error @+1 {{the layout #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}> has rank 1, the tensor 2}}
    %0 = tt.expand_dims %x {axis = 0 : i32} : tensor<128xf32, #layout> -> tensor<1x128xf32, #layout>
    tt.return
  }
}

// -----

#layout = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @store(%x: tensor<128xf32, #layout>, %b: !ttg.memdesc<128xf32, #shared, #smem>) {
    // expected-error @+1 {{'ttg.local_store' op cannot store into an immutable buffer}}
    ttg.local_store %x, %b : tensor<128xf32, #layout> -> !ttg.memdesc<128xf32, #shared, #smem>
    tt.return
  }
}

// -----

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
tt.func @uninitialised() {
  // expected-error @+1 {{'ttg.local_alloc' op a buffer without an initial value must be mutable}}
  %0 = ttg.local_alloc : () -> !ttg.memdesc<8x8xf32, #shared, #smem>
  tt.return
}

// -----

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
tt.func @slice(%b: !ttg.memdesc<8x8xf32, #shared, #smem, mutable>) {
  // expected-error @+1 {{'ttg.memdesc_subslice' op dimension 0: offset 2 is no multiple of the extent 4}}
  %0 = ttg.memdesc_subslice %b [2, 0] : !ttg.memdesc<8x8xf32, #shared, #smem, mutable> -> !ttg.memdesc<4x8xf32, #shared, #smem, mutable, 8x8>
  tt.return
}

// -----

// expected-error @+1 {{`3 : i32` is no encoding}}
tt.func @slice_of_nothing(%x: tensor<4xf32, #ttg.slice<{dim = 1, parent = 3 : i32}>>) {
  tt.return
}

// -----

tt.func @specialize(%x: i32) {
  // expected-error @+1 {{'ttg.warp_specialize' op partition #0 has 3 warps, which is no power of two}}
  ttg.warp_specialize(%x)
  default {
    ttg.warp_yield
  }
  partition0(%y: i32) num_warps(3) {
    ttg.warp_return
  } : (i32) -> ()
  tt.return
}
