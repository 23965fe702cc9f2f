// A warp stores what it has of a reduction's result, so that no other warp takes part.
//
// RUN: llopt %s --assign-layouts=target=cuda:90 | FileCheck %s
// RUN: llopt %s --assign-layouts=target=hip:gfx942 | FileCheck %s --check-prefix=WIDE

// Each warp has 32 rows that follow each other, and its lanes store one of them each.
// CHECK: #[[IN:.+]] = #ttg.blocked<{sizePerThread = [32, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK: #[[OUT:.+]] = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-LABEL: @rows
// CHECK: tt.load {{.*}} #[[IN]]>
// CHECK: ttg.convert_layout {{.*}} -> tensor<128xf32, #[[OUT]]>
// CHECK: tt.store {{.*}} #[[OUT]]>

// Of 64 lanes, 32 have rows that others have, too: two warps would store all of them without that.
// WIDE: #[[IN:.+]] = #ttg.blocked<{sizePerThread = [16, 4], threadsPerWarp = [2, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
// WIDE: #[[WHOLE:.+]] = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [32, 2], warpsPerCTA = [4, 1], order = [1, 0]}>
// WIDE-LABEL: @rows
// WIDE: tt.load {{.*}} #[[IN]]>
// WIDE: ttg.convert_layout {{.*}} -> tensor<128xf32, #ttg.slice<{dim = 1, parent = #[[WHOLE]]}>>
// WIDE: tt.store {{.*}} #ttg.slice<{dim = 1, parent = #[[WHOLE]]}>>
tt.func public @rows(%from: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %r = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %c = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %row = tt.expand_dims %r {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
  %length = arith.constant dense<128> : tensor<128x1xi32>
  %at = arith.muli %row, %length : tensor<128x1xi32>
  %rows = tt.broadcast %at : tensor<128x1xi32> -> tensor<128x128xi32>
  %column = tt.expand_dims %c {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %columns = tt.broadcast %column : tensor<1x128xi32> -> tensor<128x128xi32>
  %o = arith.addi %rows, %columns : tensor<128x128xi32>
  %f = tt.splat %from : !tt.ptr<f32> -> tensor<128x128x!tt.ptr<f32>>
  %p = tt.addptr %f, %o : tensor<128x128x!tt.ptr<f32>>, tensor<128x128xi32>
  %x = tt.load %p : tensor<128x128x!tt.ptr<f32>>
  %sums = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<128x128xf32>) -> tensor<128xf32>
  %t = tt.splat %to : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
  %q = tt.addptr %t, %r : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  tt.store %q, %sums : tensor<128x!tt.ptr<f32>>
  tt.return
}
