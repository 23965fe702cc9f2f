// Products by groups of warps: factors in shared memory are labels beside those in registers.
//
// RUN: llopt %s --assign-layouts=target=cuda:90 --canonicalize --cse --split-input-file | FileCheck %s --check-prefixes=CHECK,GROUPS
// RUN: llopt %s --assign-layouts=target=cuda:80 --canonicalize --cse --split-input-file | FileCheck %s --check-prefixes=CHECK,WARPS
// RUN: llopt %s --assign-layouts=target=hip:gfx942 --canonicalize --cse --split-input-file | FileCheck %s --check-prefixes=CHECK,WARPS

// Both factors go from the registers that loads fill to buffers, and the transposition is another name of one.

// GROUPS: #[[P:.+]] = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
module {
  // CHECK-LABEL: @transposed
  // GROUPS: %[[M:.+]] = ttg.local_alloc %{{.+}} : (tensor<64x64xf16, #{{.+}}>) -> !ttg.memdesc<64x64xf16, #{{.+}}, #smem>
  // GROUPS: %[[B:.+]] = ttg.memdesc_trans %[[M]] {order = array<i32: 1, 0>} : !ttg.memdesc<64x64xf16, #{{.+}}, #smem> -> !ttg.memdesc<64x64xf16, #{{.+}}, #smem>
  // GROUPS: %[[A:.+]] = ttg.local_alloc %{{.+}} : (tensor<64x64xf16, #{{.+}}>) -> !ttg.memdesc<64x64xf16, #{{.+}}, #smem>
  // GROUPS: ttng.warp_group_dot %[[A]], %[[B]], %{{.+}} : !ttg.memdesc<64x64xf16, #{{.+}}, #smem> * !ttg.memdesc<64x64xf16, #{{.+}}, #smem> -> tensor<64x64xf32, #[[P]]>
  // WARPS-NOT: local_alloc
  // WARPS: tt.dot
  tt.func public @transposed(%from: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %other: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %row = tt.expand_dims %r {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %column = tt.expand_dims %r {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %extent = arith.constant dense<64> : tensor<64x1xi32>
    %start = arith.muli %row, %extent : tensor<64x1xi32>
    %a = tt.broadcast %start : tensor<64x1xi32> -> tensor<64x64xi32>
    %b = tt.broadcast %column : tensor<1x64xi32> -> tensor<64x64xi32>
    %offset = arith.addi %a, %b : tensor<64x64xi32>
    %f = tt.splat %from : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
    %p = tt.addptr %f, %offset : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
    %x = tt.load %p : tensor<64x64x!tt.ptr<f16>>
    %o = tt.splat %other : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
    %s = tt.addptr %o, %offset : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
    %y = tt.load %s : tensor<64x64x!tt.ptr<f16>>
    %t = tt.trans %y {order = array<i32: 1, 0>} : tensor<64x64xf16> -> tensor<64x64xf16>
    %none = arith.constant dense<0.0> : tensor<64x64xf32>
    %z = tt.dot %x, %t, %none : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    %u = tt.splat %to : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
    %q = tt.addptr %u, %offset : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
    tt.store %q, %z : tensor<64x64x!tt.ptr<f32>>
    tt.return
  }
}

// -----

// What is in a buffer already is read there: nothing is loaded. The first factor of the second product is the first
// product's result, which lies in registers as the instruction takes it, so it stays there.

// CHECK-LABEL: module
module {
  // CHECK-LABEL: @chained
  // GROUPS: %[[B:.+]] = ttg.local_alloc %{{.+}} : (tensor<64x64xf16, #{{.+}}>) -> !ttg.memdesc<64x64xf16, #{{.+}}, #smem, mutable>
  // GROUPS-NOT: ttg.local_load
  // GROUPS: %[[D:.+]] = ttng.warp_group_dot %[[B]], %[[B]], %{{.+}}
  // GROUPS: %[[H:.+]] = arith.truncf %[[D]]
  // GROUPS: %[[A:.+]] = ttg.convert_layout %[[H]] : tensor<64x64xf16, #{{.+}}> -> tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #{{.+}}, kWidth = 2}>>
  // GROUPS: ttng.warp_group_dot %[[A]], %[[B]], %{{.+}}
  // WARPS: ttg.local_load
  tt.func public @chained(%from: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %row = tt.expand_dims %r {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %column = tt.expand_dims %r {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %extent = arith.constant dense<64> : tensor<64x1xi32>
    %start = arith.muli %row, %extent : tensor<64x1xi32>
    %a = tt.broadcast %start : tensor<64x1xi32> -> tensor<64x64xi32>
    %b = tt.broadcast %column : tensor<1x64xi32> -> tensor<64x64xi32>
    %offset = arith.addi %a, %b : tensor<64x64xi32>
    %f = tt.splat %from : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
    %p = tt.addptr %f, %offset : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
    %x = tt.load %p : tensor<64x64x!tt.ptr<f16>>
    %m = ttg.local_alloc %x : (tensor<64x64xf16>) -> !ttg.memdesc<64x64xf16, #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>, #ttg.shared_memory, mutable>
    %l = ttg.local_load %m : !ttg.memdesc<64x64xf16, #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>, #ttg.shared_memory, mutable> -> tensor<64x64xf16>
    %none = arith.constant dense<0.0> : tensor<64x64xf32>
    %d = tt.dot %l, %l, %none : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    %h = arith.truncf %d : tensor<64x64xf32> to tensor<64x64xf16>
    %e = tt.dot %h, %l, %none : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    %u = tt.splat %to : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
    %q = tt.addptr %u, %offset : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
    tt.store %q, %e : tensor<64x64x!tt.ptr<f32>>
    tt.return
  }
}

// -----

// A buffer that is written again is not handed on, and 16 rows are no work for a group of warps.

// CHECK-LABEL: module
module {
  // CHECK-LABEL: @written_again
  // CHECK: %[[L:.+]] = ttg.local_load
  // GROUPS: ttg.local_store
  // GROUPS: ttng.warp_group_dot
  tt.func public @written_again(%x: tensor<64x64xf16>, %to: tensor<64x64x!tt.ptr<f32>>) {
    %m = ttg.local_alloc %x : (tensor<64x64xf16>) -> !ttg.memdesc<64x64xf16, #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>, #ttg.shared_memory, mutable>
    %l = ttg.local_load %m : !ttg.memdesc<64x64xf16, #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>, #ttg.shared_memory, mutable> -> tensor<64x64xf16>
    ttg.local_store %x, %m : tensor<64x64xf16> -> !ttg.memdesc<64x64xf16, #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>, #ttg.shared_memory, mutable>
    %none = arith.constant dense<0.0> : tensor<64x64xf32>
    %d = tt.dot %l, %l, %none : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    tt.store %to, %d : tensor<64x64x!tt.ptr<f32>>
    tt.return
  }

  // CHECK-LABEL: @few_rows
  // CHECK-NOT: warp_group_dot
  // CHECK: tt.dot
  tt.func public @few_rows(%a: tensor<16x64xf16>, %b: tensor<64x64xf16>, %to: tensor<16x64x!tt.ptr<f32>>) {
    %none = arith.constant dense<0.0> : tensor<16x64xf32>
    %d = tt.dot %a, %b, %none : tensor<16x64xf16> * tensor<64x64xf16> -> tensor<16x64xf32>
    tt.store %to, %d : tensor<16x64x!tt.ptr<f32>>
    tt.return
  }
}
