// Factors whose elements are too far apart for asynchronous copies come through registers, and are stored once: for warp
// groups, which read them in memory, as for warps, which read them into registers again.
//
// RUN: llopt %s --assign-layouts=target=cuda:90 | FileCheck %s --check-prefix=NV
// RUN: llopt %s --assign-layouts=target=hip:gfx942 | FileCheck %s --check-prefix=AMD

// NV-DAG: #[[SUMS:.+]] = #ttg.nvidia_mma<{versionMajor = 3
// NV-DAG: #[[DOWN:.+]] = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true
// AMD: #[[SUMS:.+]] = #ttg.amd_mfma
module {
  // Lanes load neighbouring rows of the first factor, which is stored by columns.
  // NV-LABEL: @product_of_strided_factors
  // NV: scf.for
  // NV: ttg.local_alloc %{{.+}} : {{.+}} -> !ttg.memdesc<64x32xf16, #[[DOWN]]
  // NV: ttng.warp_group_dot {{.+}} -> tensor<64x64xf32, #[[SUMS]]>
  // AMD-LABEL: @product_of_strided_factors
  // AMD: tt.dot {{.+}} -> tensor<64x64xf32, #[[SUMS]]>
  tt.func public @product_of_strided_factors(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %to: !tt.ptr<f32>, %n: i32, %of_a: i32, %of_b: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c32 = arith.constant 32 : i32
    %zeros = arith.constant dense<0.0> : tensor<64x64xf32>
    %c64 = arith.constant dense<64> : tensor<64x1xi32>
    %i = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %k = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
    %row = tt.expand_dims %i {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %column = tt.expand_dims %i {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %strides_a = tt.splat %of_a : i32 -> tensor<1x32xi32>
    %strides_b = tt.splat %of_b : i32 -> tensor<1x64xi32>
    %columns_b = arith.muli %column, %strides_b : tensor<1x64xi32>
    %as = tt.splat %a : !tt.ptr<f16> -> tensor<64x32x!tt.ptr<f16>>
    %bs = tt.splat %b : !tt.ptr<f16> -> tensor<32x64x!tt.ptr<f16>>
    %sum = scf.for %j = %c0 to %n step %c1 iter_args(%s = %zeros) -> (tensor<64x64xf32>) : i32 {
      %first = arith.muli %j, %c32 : i32
      %firsts = tt.splat %first : i32 -> tensor<32xi32>
      %at = arith.addi %firsts, %k : tensor<32xi32>
      %across = tt.expand_dims %at {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
      %down = tt.expand_dims %at {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
      %columns = arith.muli %across, %strides_a : tensor<1x32xi32>
      %r = tt.broadcast %row : tensor<64x1xi32> -> tensor<64x32xi32>
      %c = tt.broadcast %columns : tensor<1x32xi32> -> tensor<64x32xi32>
      %oa = arith.addi %r, %c : tensor<64x32xi32>
      %d = tt.broadcast %down : tensor<32x1xi32> -> tensor<32x64xi32>
      %cb = tt.broadcast %columns_b : tensor<1x64xi32> -> tensor<32x64xi32>
      %ob = arith.addi %d, %cb : tensor<32x64xi32>
      %pa = tt.addptr %as, %oa : tensor<64x32x!tt.ptr<f16>>, tensor<64x32xi32>
      %pb = tt.addptr %bs, %ob : tensor<32x64x!tt.ptr<f16>>, tensor<32x64xi32>
      %x = tt.load %pa : tensor<64x32x!tt.ptr<f16>>
      %y = tt.load %pb : tensor<32x64x!tt.ptr<f16>>
      %next = tt.dot %x, %y, %s : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>
      scf.yield %next : tensor<64x64xf32>
    }
    %rows = arith.muli %row, %c64 : tensor<64x1xi32>
    %rt = tt.broadcast %rows : tensor<64x1xi32> -> tensor<64x64xi32>
    %ct = tt.broadcast %column : tensor<1x64xi32> -> tensor<64x64xi32>
    %ot = arith.addi %rt, %ct : tensor<64x64xi32>
    %ts = tt.splat %to : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
    %pt = tt.addptr %ts, %ot : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
    tt.store %pt, %sum : tensor<64x64x!tt.ptr<f32>>
    tt.return
  }
}
