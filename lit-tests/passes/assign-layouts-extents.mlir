// Extents and strides that are arguments.
//
// RUN: llopt %s --assign-layouts=target=cuda:90 --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,NV
// RUN: llopt %s --assign-layouts=target=hip:gfx942 --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,AMD

// NV: #[[DOWN:.+]] = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1]
// AMD: #[[DOWN:.+]] = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [64, 1]
// NV: #[[ACROSS:.+]] = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4]
// AMD: #[[ACROSS:.+]] = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 64]
module {
  // The row `x / n` and the column `x % n` of pixels that are counted together are those of an image of some tens of
  // columns at least: a warp loads neighbouring pixels of one channel.
  // CHECK-LABEL: @pixels_of_channels
  // CHECK: tt.load %{{.+}} : tensor<64x32x!tt.ptr<f16>, #[[DOWN]]>
  tt.func public @pixels_of_channels(%image: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %width: i32, %of_row: i32, %of_channel: i32) {
    %i = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %j = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
    %widths = tt.splat %width : i32 -> tensor<64xi32>
    %rows = arith.divsi %i, %widths : tensor<64xi32>
    %columns = arith.remsi %i, %widths : tensor<64xi32>
    %of_rows = tt.splat %of_row : i32 -> tensor<64xi32>
    %starts = arith.muli %rows, %of_rows : tensor<64xi32>
    %pixels = arith.addi %starts, %columns : tensor<64xi32>
    %of_channels = tt.splat %of_channel : i32 -> tensor<32xi32>
    %channels = arith.muli %j, %of_channels : tensor<32xi32>
    %p1 = tt.expand_dims %pixels {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %c1 = tt.expand_dims %channels {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %p = tt.broadcast %p1 : tensor<64x1xi32> -> tensor<64x32xi32>
    %c = tt.broadcast %c1 : tensor<1x32xi32> -> tensor<64x32xi32>
    %offsets = arith.addi %p, %c : tensor<64x32xi32>
    %from = tt.splat %image : !tt.ptr<f16> -> tensor<64x32x!tt.ptr<f16>>
    %addresses = tt.addptr %from, %offsets : tensor<64x32x!tt.ptr<f16>>, tensor<64x32xi32>
    %x = tt.load %addresses : tensor<64x32x!tt.ptr<f16>>
    %tos = tt.splat %to : !tt.ptr<f16> -> tensor<64x32x!tt.ptr<f16>>
    %out = tt.addptr %tos, %offsets : tensor<64x32x!tt.ptr<f16>>, tensor<64x32xi32>
    tt.store %out, %x : tensor<64x32x!tt.ptr<f16>>
    tt.return
  }

  // Tokens of one page follow each other: where a table of pages is read at a quotient, neighbours have one page. Channels are
  // four elements apart.
  // CHECK-LABEL: @pages_of_a_table
  // CHECK: tt.load %{{.+}} : tensor<64x32x!tt.ptr<f16>, #[[DOWN]]>
  tt.func public @pages_of_a_table(%cache: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %table: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %page: i32, %of_page: i32 {tt.divisibility = 16 : i32}, %n: i32) {
    %i = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %j = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
    %none = arith.constant dense<0> : tensor<64xi32>
    %ns = tt.splat %n : i32 -> tensor<64xi32>
    %is = arith.cmpi slt, %i, %ns : tensor<64xi32>
    %pages = tt.splat %page : i32 -> tensor<64xi32>
    %which = arith.divsi %i, %pages : tensor<64xi32>
    %slot = arith.remsi %i, %pages : tensor<64xi32>
    %tables = tt.splat %table : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
    %entries = tt.addptr %tables, %which : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
    %found = tt.load %entries, %is, %none : tensor<64x!tt.ptr<i32>>
    %of_pages = tt.splat %of_page : i32 -> tensor<64xi32>
    %starts = arith.muli %found, %of_pages : tensor<64xi32>
    %tokens = arith.addi %starts, %slot : tensor<64xi32>
    %of_channels = arith.constant dense<4> : tensor<32xi32>
    %channels = arith.muli %j, %of_channels : tensor<32xi32>
    %t1 = tt.expand_dims %tokens {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %c1 = tt.expand_dims %channels {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %t = tt.broadcast %t1 : tensor<64x1xi32> -> tensor<64x32xi32>
    %c = tt.broadcast %c1 : tensor<1x32xi32> -> tensor<64x32xi32>
    %offsets = arith.addi %t, %c : tensor<64x32xi32>
    %from = tt.splat %cache : !tt.ptr<f16> -> tensor<64x32x!tt.ptr<f16>>
    %addresses = tt.addptr %from, %offsets : tensor<64x32x!tt.ptr<f16>>, tensor<64x32xi32>
    %x = tt.load %addresses : tensor<64x32x!tt.ptr<f16>>
    %tos = tt.splat %to : !tt.ptr<f16> -> tensor<64x32x!tt.ptr<f16>>
    %out = tt.addptr %tos, %offsets : tensor<64x32x!tt.ptr<f16>>, tensor<64x32xi32>
    tt.store %out, %x : tensor<64x32x!tt.ptr<f16>>
    tt.return
  }

  // Columns that are a multiple of 16 elements apart share no sectors, rows that are an unknown number apart may.
  // CHECK-LABEL: @strides_of_which_one_is_a_multiple
  // CHECK: tt.load %{{.+}} : tensor<64x32x!tt.ptr<f16>, #[[DOWN]]>
  tt.func public @strides_of_which_one_is_a_multiple(%from: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %of_row: i32, %of_column: i32 {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %j = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
    %of_rows = tt.splat %of_row : i32 -> tensor<64xi32>
    %rows = arith.muli %i, %of_rows : tensor<64xi32>
    %of_columns = tt.splat %of_column : i32 -> tensor<32xi32>
    %columns = arith.muli %j, %of_columns : tensor<32xi32>
    %r1 = tt.expand_dims %rows {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %c1 = tt.expand_dims %columns {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %r = tt.broadcast %r1 : tensor<64x1xi32> -> tensor<64x32xi32>
    %c = tt.broadcast %c1 : tensor<1x32xi32> -> tensor<64x32xi32>
    %offsets = arith.addi %r, %c : tensor<64x32xi32>
    %froms = tt.splat %from : !tt.ptr<f16> -> tensor<64x32x!tt.ptr<f16>>
    %addresses = tt.addptr %froms, %offsets : tensor<64x32x!tt.ptr<f16>>, tensor<64x32xi32>
    %x = tt.load %addresses : tensor<64x32x!tt.ptr<f16>>
    %tos = tt.splat %to : !tt.ptr<f16> -> tensor<64x32x!tt.ptr<f16>>
    %out = tt.addptr %tos, %offsets : tensor<64x32x!tt.ptr<f16>>, tensor<64x32xi32>
    tt.store %out, %x : tensor<64x32x!tt.ptr<f16>>
    tt.return
  }

  // Equal elements of a thread are loaded once: the lanes of a warp have columns of their own, whose factors are the same
  // for all rows, instead of 32 rows that load the same.
  // CHECK-LABEL: @factors_of_columns
  // CHECK: tt.load %{{.+}} : tensor<64x128x!tt.ptr<f16>, #[[ACROSS]]>
  tt.func public @factors_of_columns(%factor: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %of_column: i32 {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %j = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
    %c128 = arith.constant dense<128> : tensor<64xi32>
    %groups = arith.divsi %i, %c128 : tensor<64xi32>
    %of_columns = tt.splat %of_column : i32 -> tensor<128xi32>
    %columns = arith.muli %j, %of_columns : tensor<128xi32>
    %g1 = tt.expand_dims %groups {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %c1 = tt.expand_dims %columns {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
    %g = tt.broadcast %g1 : tensor<64x1xi32> -> tensor<64x128xi32>
    %c = tt.broadcast %c1 : tensor<1x128xi32> -> tensor<64x128xi32>
    %offsets = arith.addi %g, %c : tensor<64x128xi32>
    %froms = tt.splat %factor : !tt.ptr<f16> -> tensor<64x128x!tt.ptr<f16>>
    %addresses = tt.addptr %froms, %offsets : tensor<64x128x!tt.ptr<f16>>, tensor<64x128xi32>
    %x = tt.load %addresses : tensor<64x128x!tt.ptr<f16>>
    %y = arith.addf %x, %x : tensor<64x128xf16>
    %r = tt.expand_dims %i {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %c128s = arith.constant dense<128> : tensor<64x1xi32>
    %rs = arith.muli %r, %c128s : tensor<64x1xi32>
    %k = tt.expand_dims %j {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
    %rb = tt.broadcast %rs : tensor<64x1xi32> -> tensor<64x128xi32>
    %kb = tt.broadcast %k : tensor<1x128xi32> -> tensor<64x128xi32>
    %at = arith.addi %rb, %kb : tensor<64x128xi32>
    %tos = tt.splat %to : !tt.ptr<f16> -> tensor<64x128x!tt.ptr<f16>>
    %out = tt.addptr %tos, %at : tensor<64x128x!tt.ptr<f16>>, tensor<64x128xi32>
    tt.store %out, %y : tensor<64x128x!tt.ptr<f16>>
    tt.return
  }
}
