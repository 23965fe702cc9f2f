// Lanes store in different orders so that banks do not conflict. What changes places are the words that were loaded, not
// the twice as many that they are widened to.
//
// RUN: llopt compile %s --target hip:gfx942 --emit llvm | FileCheck %s

#l = #ttg.blocked<{sizePerThread = [16, 1], threadsPerWarp = [8, 8], warpsPerCTA = [1, 4], order = [0, 1]}>
#mma = #ttg.amd_mfma<{version = 3, warpsPerCTA = [1, 4], instrShape = [32, 32, 8], isTransposed = true}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>
#shared = #ttg.swizzled_shared<{vec = 4, perPhase = 1, maxPhase = 16, order = [0, 1]}>
#smem = #ttg.shared_memory

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {

// Of each of four columns a thread loads four words of four bytes, and stores eight words of two halves.
// CHECK-LABEL: define{{.*}} @widened
// CHECK-COUNT-16: select i1
// CHECK-NOT: select i1
// CHECK: store <2 x i32>
tt.func public @widened(%p: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %n: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %stride = arith.constant dense<128> : tensor<1x128xi32, #l>
  %i = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #ttg.slice<{dim = 1, parent = #l}>>
  %rows = tt.expand_dims %i {axis = 1 : i32} : tensor<128xi32, #ttg.slice<{dim = 1, parent = #l}>> -> tensor<128x1xi32, #l>
  %j = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #ttg.slice<{dim = 0, parent = #l}>>
  %columns = tt.expand_dims %j {axis = 0 : i32} : tensor<128xi32, #ttg.slice<{dim = 0, parent = #l}>> -> tensor<1x128xi32, #l>
  %begins = arith.muli %columns, %stride : tensor<1x128xi32, #l>
  %all = tt.broadcast %rows : tensor<128x1xi32, #l> -> tensor<128x128xi32, #l>
  %of = tt.broadcast %begins : tensor<1x128xi32, #l> -> tensor<128x128xi32, #l>
  %at = arith.addi %all, %of : tensor<128x128xi32, #l>
  scf.for %k = %zero to %n step %one : i32 {
  %bytes = amdg.buffer_load %p[%at] : tensor<128x128xi8, #l>
  %halves = arith.uitofp %bytes : tensor<128x128xi8, #l> to tensor<128x128xf16, #l>
  %buffer = ttg.local_alloc %halves : (tensor<128x128xf16, #l>) -> !ttg.memdesc<128x128xf16, #shared, #smem>
  %read = ttg.local_load %buffer : !ttg.memdesc<128x128xf16, #shared, #smem> -> tensor<128x128xf16, #b>
  %to = tt.splat %out : !tt.ptr<f16> -> tensor<128x128x!tt.ptr<f16>, #b>
  tt.store %to, %read : tensor<128x128x!tt.ptr<f16>, #b>
  }
  tt.return
}

}
