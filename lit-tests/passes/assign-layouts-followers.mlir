// RUN: llopt %s --assign-layouts --split-input-file | FileCheck %s
// RUN: llopt %s --assign-layouts="target=hip:gfx942" --split-input-file | FileCheck %s

// Ranges, splats and constants, and what they are expanded and broadcast to, have the layout that their only user has.
// The range that rows and columns share is there twice, once for each of them; nothing is converted.

// CHECK-LABEL: module
module {
  // CHECK-LABEL: @added
  // CHECK-DAG: tt.make_range {{.*}} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #[[B:.+]]}>>
  // CHECK-DAG: tt.make_range {{.*}} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #[[B]]}>>
  // CHECK-DAG: tt.expand_dims {{.*}} -> tensor<64x1xi32, #[[B]]>
  // CHECK-DAG: arith.constant dense<64> : tensor<64x1xi32, #[[B]]>
  // CHECK-DAG: tt.broadcast {{.*}} -> tensor<64x64xi32, #[[B]]>
  // CHECK-DAG: tt.splat {{.*}} -> tensor<64x64x!tt.ptr<i32>, #[[B]]>
  // CHECK-NOT: ttg.convert_layout
  // CHECK: tt.store {{.*}} : tensor<64x64x!tt.ptr<i32>, #[[B]]>
  tt.func public @added(%to: !tt.ptr<i32> {tt.divisibility = 16 : i32}) {
    %width = arith.constant dense<64> : tensor<64x1xi32>
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %row = tt.expand_dims %r {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %column = tt.expand_dims %r {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %start = arith.muli %row, %width : tensor<64x1xi32>
    %starts = tt.broadcast %start : tensor<64x1xi32> -> tensor<64x64xi32>
    %columns = tt.broadcast %column : tensor<1x64xi32> -> tensor<64x64xi32>
    %offset = arith.addi %starts, %columns : tensor<64x64xi32>
    %t = tt.splat %to : !tt.ptr<i32> -> tensor<64x64x!tt.ptr<i32>>
    %p = tt.addptr %t, %offset : tensor<64x64x!tt.ptr<i32>>, tensor<64x64xi32>
    tt.store %p, %columns : tensor<64x64x!tt.ptr<i32>>
    tt.return
  }
}

// -----

// What a loop begins with has the layout that the loop carries: that of the accesses in it.

// CHECK-LABEL: module
module {
  // CHECK-LABEL: @carried
  // CHECK: %[[ZERO:.+]] = arith.constant dense<0.000000e+00> : tensor<512xf32, #[[B:.+]]>
  // CHECK-NOT: ttg.convert_layout
  // CHECK: scf.for {{.*}} iter_args(%{{.+}} = %[[ZERO]]) -> (tensor<512xf32, #[[B]]>)
  // CHECK: tt.load {{.*}} : tensor<512x!tt.ptr<f32>, #[[B]]>
  tt.func public @carried(%from: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
    %zero = arith.constant dense<0.0> : tensor<512xf32>
    %c0 = arith.constant 0 : i32
    %c512 = arith.constant 512 : i32
    %r = tt.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32>
    %sum = scf.for %i = %c0 to %n step %c512 iter_args(%so_far = %zero) -> (tensor<512xf32>) : i32 {
      %begin = tt.splat %i : i32 -> tensor<512xi32>
      %offset = arith.addi %begin, %r : tensor<512xi32>
      %f = tt.splat %from : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>>
      %p = tt.addptr %f, %offset : tensor<512x!tt.ptr<f32>>, tensor<512xi32>
      %x = tt.load %p : tensor<512x!tt.ptr<f32>>
      %next = arith.addf %so_far, %x : tensor<512xf32>
      scf.yield %next : tensor<512xf32>
    }
    %t = tt.splat %to : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>>
    %q = tt.addptr %t, %r : tensor<512x!tt.ptr<f32>>, tensor<512xi32>
    tt.store %q, %sum : tensor<512x!tt.ptr<f32>>
    tt.return
  }
}

// -----

// Nothing proposes a layout here. The range does, for what uses it: one element for each thread.

// CHECK: #[[B:.+]] = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [{{32|64}}], warpsPerCTA = [4], order = [0]}>
module {
  // CHECK-LABEL: @alone
  // CHECK: tt.make_range {{.*}} : tensor<256xi32, #[[B]]>
  // CHECK: tt.reduce
  tt.func public @alone(%to: !tt.ptr<i32>, %n: i32) {
    %r = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
    %s = tt.splat %n : i32 -> tensor<256xi32>
    %x = arith.xori %r, %s : tensor<256xi32>
    %sum = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: i32, %b: i32):
      %both = arith.addi %a, %b : i32
      tt.reduce.return %both : i32
    }) : (tensor<256xi32>) -> i32
    tt.store %to, %sum : !tt.ptr<i32>
    tt.return
  }
}
