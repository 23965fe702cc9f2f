// A product of a tensor with another one is the same along a dimension only if both are: rows that are a number apart, which
// nothing is known of, are different rows whichever factor the number is.
//
// RUN: llopt %s --assign-layouts=target=cuda:90 --canonicalize --cse | FileCheck %s --check-prefix=NV
// RUN: llopt %s --assign-layouts=target=hip:gfx942 --canonicalize --cse | FileCheck %s --check-prefix=AMD

// Eight lanes load 128 bytes of a row together, instead of each a row of its own.
// NV: #[[ROWS:.+]] = #ttg.blocked<{sizePerThread = [8, 16], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
// AMD: #[[ROWS:.+]] = #ttg.blocked<{sizePerThread = [4, 16], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
// NV: tt.load %{{.+}} : tensor<128x128x!tt.ptr<i8>, #[[ROWS]]>
// AMD: tt.load %{{.+}} : tensor<128x128x!tt.ptr<i8>, #[[ROWS]]>
module {
  tt.func public @largest_of_rows(%a: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %b: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %stride: i32 {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
    %row = tt.expand_dims %i {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
    %column = tt.expand_dims %i {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
    %strides = tt.splat %stride : i32 -> tensor<128x1xi32>
    %rows = arith.muli %strides, %row : tensor<128x1xi32>
    %rs = tt.broadcast %rows : tensor<128x1xi32> -> tensor<128x128xi32>
    %cs = tt.broadcast %column : tensor<1x128xi32> -> tensor<128x128xi32>
    %offsets = arith.addi %rs, %cs : tensor<128x128xi32>
    %as = tt.splat %a : !tt.ptr<i8> -> tensor<128x128x!tt.ptr<i8>>
    %ap = tt.addptr %as, %offsets : tensor<128x128x!tt.ptr<i8>>, tensor<128x128xi32>
    %x = tt.load %ap : tensor<128x128x!tt.ptr<i8>>
    %sum = "tt.reduce"(%x) <{axis = 1 : i32}> ({
    ^bb0(%l: i8, %r: i8):
      %m = arith.maxsi %l, %r : i8
      tt.reduce.return %m : i8
    }) : (tensor<128x128xi8>) -> tensor<128xi8>
    %bs = tt.splat %b : !tt.ptr<i8> -> tensor<128x!tt.ptr<i8>>
    %bp = tt.addptr %bs, %i : tensor<128x!tt.ptr<i8>>, tensor<128xi32>
    tt.store %bp, %sum : tensor<128x!tt.ptr<i8>>
    tt.return
  }
}
