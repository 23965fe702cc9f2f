// Lanes that hold stretches of 16 columns store different ones at a time: the same ones would be in the same banks. Bytes
// are packed by permutations, so what a lane stores is for two of three bits a choice of selectors, outside of any loop.
//
// RUN: llopt compile %s --target cuda:90 | FileCheck %s

#rows = #ttg.blocked<{sizePerThread = [8, 16], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 8}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: .entry stretches
  // CHECK-COUNT-4: selp.b32 %r{{[0-9]+}}, {{[0-9]+}}, {{[0-9]+}}, %p
  // CHECK: prmt.b32 %r{{[0-9]+}}, %r{{[0-9]+}}, %r{{[0-9]+}}, %r
  // CHECK-COUNT-32: selp.b32 %r{{[0-9]+}}, %r
  // CHECK-NOT: selp
  tt.func public @stretches(%p: !tt.ptr<i8> {tt.divisibility = 16 : i32}) {
    %m = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #ttg.slice<{dim = 1, parent = #rows}>>
    %n = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #ttg.slice<{dim = 0, parent = #rows}>>
    %rows = tt.expand_dims %m {axis = 1 : i32} : tensor<128xi32, #ttg.slice<{dim = 1, parent = #rows}>> -> tensor<128x1xi32, #rows>
    %columns = tt.expand_dims %n {axis = 0 : i32} : tensor<128xi32, #ttg.slice<{dim = 0, parent = #rows}>> -> tensor<1x128xi32, #rows>
    %width = arith.constant dense<128> : tensor<128x1xi32, #rows>
    %down = arith.muli %rows, %width : tensor<128x1xi32, #rows>
    %r = tt.broadcast %down : tensor<128x1xi32, #rows> -> tensor<128x128xi32, #rows>
    %c = tt.broadcast %columns : tensor<1x128xi32, #rows> -> tensor<128x128xi32, #rows>
    %o = arith.addi %r, %c : tensor<128x128xi32, #rows>
    %base = tt.splat %p : !tt.ptr<i8> -> tensor<128x128x!tt.ptr<i8>, #rows>
    %at = tt.addptr %base, %o : tensor<128x128x!tt.ptr<i8>, #rows>, tensor<128x128xi32, #rows>
    %v = tt.load %at : tensor<128x128x!tt.ptr<i8>, #rows>
    %buffer = ttg.local_alloc %v : (tensor<128x128xi8, #rows>) -> !ttg.memdesc<128x128xi8, #shared, #smem>
    tt.return
  }
}
