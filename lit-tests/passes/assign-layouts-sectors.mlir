// Loads of more neighbours than one instruction moves, where they are combined with one another.
//
// RUN: llopt %s --assign-layouts=target=cuda:90 --canonicalize --cse | FileCheck %s
// RUN: llopt %s --assign-layouts=target=hip:gfx942 --canonicalize --cse | FileCheck %s
// RUN: llopt prove %s --target cuda:90 | FileCheck %s --check-prefix=PROVEN
// RUN: llopt prove %s --target hip:gfx942 | FileCheck %s --check-prefix=PROVEN

// PROVEN: proven: [[N:[0-9]+]] of [[N]]

// Four reductions of eight neighbours each stay within a thread that has all of them: no lane has half of a group.

// CHECK-DAG: #[[EIGHT:.+]] = #ttg.blocked<{sizePerThread = [8]
// CHECK-DAG: #[[FOUR:.+]] = #ttg.blocked<{sizePerThread = [4]
// CHECK-DAG: #[[GROUPS:.+]] = #ttg.blocked<{sizePerThread = [1, 8]
// CHECK-LABEL: @groups
// CHECK: tt.load %{{.+}} : tensor<4096x!tt.ptr<f32>, #[[EIGHT]]>
// CHECK: tensor<4096xf32, #[[EIGHT]]> -> tensor<512x8xf32, #[[GROUPS]]>

// Where nothing combines neighbours, each lane loads 16 bytes.

// CHECK-LABEL: @doubled
// CHECK: tt.load %{{.+}} : tensor<4096x!tt.ptr<f32>, #[[FOUR]]>
module {
  tt.func public @groups(%a: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {start = 0 : i32, end = 4096 : i32} : tensor<4096xi32>
    %j = tt.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32>
    %as = tt.splat %a : !tt.ptr<f32> -> tensor<4096x!tt.ptr<f32>>
    %ap = tt.addptr %as, %i : tensor<4096x!tt.ptr<f32>>, tensor<4096xi32>
    %x = tt.load %ap : tensor<4096x!tt.ptr<f32>>
    %groups = tt.reshape %x : tensor<4096xf32> -> tensor<512x8xf32>
    %most = "tt.reduce"(%groups) <{axis = 1 : i32}> ({
    ^bb0(%l: f32, %r: f32):
      %m = arith.maxnumf %l, %r : f32
      tt.reduce.return %m : f32
    }) : (tensor<512x8xf32>) -> tensor<512xf32>
    %least = "tt.reduce"(%groups) <{axis = 1 : i32}> ({
    ^bb0(%l: f32, %r: f32):
      %m = arith.minnumf %l, %r : f32
      tt.reduce.return %m : f32
    }) : (tensor<512x8xf32>) -> tensor<512xf32>
    %sum = "tt.reduce"(%groups) <{axis = 1 : i32}> ({
    ^bb0(%l: f32, %r: f32):
      %m = arith.addf %l, %r : f32
      tt.reduce.return %m : f32
    }) : (tensor<512x8xf32>) -> tensor<512xf32>
    %product = "tt.reduce"(%groups) <{axis = 1 : i32}> ({
    ^bb0(%l: f32, %r: f32):
      %m = arith.mulf %l, %r : f32
      tt.reduce.return %m : f32
    }) : (tensor<512x8xf32>) -> tensor<512xf32>
    %range = arith.subf %most, %least : tensor<512xf32>
    %ratio = arith.divf %product, %sum : tensor<512xf32>
    %both = arith.mulf %range, %ratio : tensor<512xf32>
    %bs = tt.splat %b : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>>
    %bp = tt.addptr %bs, %j : tensor<512x!tt.ptr<f32>>, tensor<512xi32>
    tt.store %bp, %both : tensor<512x!tt.ptr<f32>>
    tt.return
  }
  tt.func public @doubled(%a: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {start = 0 : i32, end = 4096 : i32} : tensor<4096xi32>
    %as = tt.splat %a : !tt.ptr<f32> -> tensor<4096x!tt.ptr<f32>>
    %ap = tt.addptr %as, %i : tensor<4096x!tt.ptr<f32>>, tensor<4096xi32>
    %x = tt.load %ap : tensor<4096x!tt.ptr<f32>>
    %y = arith.addf %x, %x : tensor<4096xf32>
    %bs = tt.splat %b : !tt.ptr<f32> -> tensor<4096x!tt.ptr<f32>>
    %bp = tt.addptr %bs, %i : tensor<4096x!tt.ptr<f32>>, tensor<4096xi32>
    tt.store %bp, %y : tensor<4096x!tt.ptr<f32>>
    tt.return
  }
}
