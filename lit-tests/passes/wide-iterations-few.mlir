// Wide iterations of loops that load what threads compute with, too, by blocks of two warps.
//
// RUN: llopt %s --wide-iterations="target=cuda:90 num-warps=2" | FileCheck %s

// While one of many wide iterations is computed, the next one's tiles are copied to shared memory.
// CHECK-LABEL: @many
// CHECK: tt.dot {{.*}} : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
tt.func @many(%v: !tt.ptr<f16>, %h: !tt.ptr<f32>, %out: !tt.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %none = arith.constant dense<0.0> : tensor<64xf32>
  %width = arith.constant dense<256> : tensor<64x1xi32>
  %wide = arith.constant dense<256> : tensor<1x64xi32>
  %range = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %short = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %row = tt.expand_dims %range {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %column = tt.expand_dims %range {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %begin = arith.muli %row, %width : tensor<64x1xi32>
  %begins = tt.broadcast %begin : tensor<64x1xi32> -> tensor<64x32xi32>
  %all = tt.broadcast %begin : tensor<64x1xi32> -> tensor<64x64xi32>
  %columns = tt.broadcast %column : tensor<1x64xi32> -> tensor<64x64xi32>
  %places = arith.addi %all, %columns : tensor<64x64xi32>
  %r:3 = scf.for %i = %c0 to %c8 step %c1 iter_args(%q = %zero, %k = %zero, %s = %none) -> (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64xf32>) : i32 {
    %from = arith.muli %i, %c32 : i32
    %froms = tt.splat %from : i32 -> tensor<32xi32>
    %part = arith.addi %froms, %short : tensor<32xi32>
    %along = tt.expand_dims %part {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %down = tt.expand_dims %part {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
    %alongs = tt.broadcast %along : tensor<1x32xi32> -> tensor<64x32xi32>
    %v_places = arith.addi %begins, %alongs : tensor<64x32xi32>
    %v_base = tt.splat %v : !tt.ptr<f16> -> tensor<64x32x!tt.ptr<f16>>
    %v_at = tt.addptr %v_base, %v_places : tensor<64x32x!tt.ptr<f16>>, tensor<64x32xi32>
    %x = tt.load %v_at : tensor<64x32x!tt.ptr<f16>>
    %across = arith.muli %column, %wide : tensor<1x64xi32>
    %starts = tt.broadcast %across : tensor<1x64xi32> -> tensor<32x64xi32>
    %downs = tt.broadcast %down : tensor<32x1xi32> -> tensor<32x64xi32>
    %h_places = arith.addi %starts, %downs : tensor<32x64xi32>
    %h_base = tt.splat %h : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>>
    %h_at = tt.addptr %h_base, %h_places : tensor<32x64x!tt.ptr<f32>>, tensor<32x64xi32>
    %y = tt.load %h_at : tensor<32x64x!tt.ptr<f32>>
    %d_base = tt.splat %out : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>>
    %d_at = tt.addptr %d_base, %h_places : tensor<32x64x!tt.ptr<f32>>, tensor<32x64xi32>
    %z = tt.load %d_at : tensor<32x64x!tt.ptr<f32>>
    %both = arith.mulf %y, %z : tensor<32x64xf32>
    %sum = "tt.reduce"(%both) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<32x64xf32>) -> tensor<64xf32>
    %other = "tt.reduce"(%y) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<32x64xf32>) -> tensor<64xf32>
    %s1 = arith.addf %s, %sum : tensor<64xf32>
    %s2 = arith.addf %s1, %other : tensor<64xf32>
    %y2 = arith.truncf %y : tensor<32x64xf32> to tensor<32x64xf16>
    %z2 = arith.truncf %z : tensor<32x64xf32> to tensor<32x64xf16>
    %q2 = tt.dot %x, %y2, %q : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>
    %k2 = tt.dot %x, %z2, %k : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>
    scf.yield %q2, %k2, %s2 : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64xf32>
  }
  %o_base = tt.splat %out : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
  %o_at = tt.addptr %o_base, %places : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
  %s3 = tt.expand_dims %r#2 {axis = 0 : i32} : tensor<64xf32> -> tensor<1x64xf32>
  %s4 = tt.broadcast %s3 : tensor<1x64xf32> -> tensor<64x64xf32>
  %o = arith.addf %r#0, %r#1 : tensor<64x64xf32>
  %o2 = arith.addf %o, %s4 : tensor<64x64xf32>
  tt.store %o_at, %o2 : tensor<64x64x!tt.ptr<f32>>
  tt.return
}

// A single one would load all tiles to registers, which do not suffice for them.
// CHECK-LABEL: @two
// CHECK: tt.dot {{.*}} : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>
tt.func @two(%v: !tt.ptr<f16>, %h: !tt.ptr<f32>, %out: !tt.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %none = arith.constant dense<0.0> : tensor<64xf32>
  %width = arith.constant dense<256> : tensor<64x1xi32>
  %wide = arith.constant dense<256> : tensor<1x64xi32>
  %range = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %short = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %row = tt.expand_dims %range {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %column = tt.expand_dims %range {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %begin = arith.muli %row, %width : tensor<64x1xi32>
  %begins = tt.broadcast %begin : tensor<64x1xi32> -> tensor<64x32xi32>
  %all = tt.broadcast %begin : tensor<64x1xi32> -> tensor<64x64xi32>
  %columns = tt.broadcast %column : tensor<1x64xi32> -> tensor<64x64xi32>
  %places = arith.addi %all, %columns : tensor<64x64xi32>
  %r:3 = scf.for %i = %c0 to %c2 step %c1 iter_args(%q = %zero, %k = %zero, %s = %none) -> (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64xf32>) : i32 {
    %from = arith.muli %i, %c32 : i32
    %froms = tt.splat %from : i32 -> tensor<32xi32>
    %part = arith.addi %froms, %short : tensor<32xi32>
    %along = tt.expand_dims %part {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %down = tt.expand_dims %part {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
    %alongs = tt.broadcast %along : tensor<1x32xi32> -> tensor<64x32xi32>
    %v_places = arith.addi %begins, %alongs : tensor<64x32xi32>
    %v_base = tt.splat %v : !tt.ptr<f16> -> tensor<64x32x!tt.ptr<f16>>
    %v_at = tt.addptr %v_base, %v_places : tensor<64x32x!tt.ptr<f16>>, tensor<64x32xi32>
    %x = tt.load %v_at : tensor<64x32x!tt.ptr<f16>>
    %across = arith.muli %column, %wide : tensor<1x64xi32>
    %starts = tt.broadcast %across : tensor<1x64xi32> -> tensor<32x64xi32>
    %downs = tt.broadcast %down : tensor<32x1xi32> -> tensor<32x64xi32>
    %h_places = arith.addi %starts, %downs : tensor<32x64xi32>
    %h_base = tt.splat %h : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>>
    %h_at = tt.addptr %h_base, %h_places : tensor<32x64x!tt.ptr<f32>>, tensor<32x64xi32>
    %y = tt.load %h_at : tensor<32x64x!tt.ptr<f32>>
    %d_base = tt.splat %out : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>>
    %d_at = tt.addptr %d_base, %h_places : tensor<32x64x!tt.ptr<f32>>, tensor<32x64xi32>
    %z = tt.load %d_at : tensor<32x64x!tt.ptr<f32>>
    %both = arith.mulf %y, %z : tensor<32x64xf32>
    %sum = "tt.reduce"(%both) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<32x64xf32>) -> tensor<64xf32>
    %other = "tt.reduce"(%y) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<32x64xf32>) -> tensor<64xf32>
    %s1 = arith.addf %s, %sum : tensor<64xf32>
    %s2 = arith.addf %s1, %other : tensor<64xf32>
    %y2 = arith.truncf %y : tensor<32x64xf32> to tensor<32x64xf16>
    %z2 = arith.truncf %z : tensor<32x64xf32> to tensor<32x64xf16>
    %q2 = tt.dot %x, %y2, %q : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>
    %k2 = tt.dot %x, %z2, %k : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>
    scf.yield %q2, %k2, %s2 : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64xf32>
  }
  %o_base = tt.splat %out : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
  %o_at = tt.addptr %o_base, %places : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
  %s3 = tt.expand_dims %r#2 {axis = 0 : i32} : tensor<64xf32> -> tensor<1x64xf32>
  %s4 = tt.broadcast %s3 : tensor<1x64xf32> -> tensor<64x64xf32>
  %o = arith.addf %r#0, %r#1 : tensor<64x64xf32>
  %o2 = arith.addf %o, %s4 : tensor<64x64xf32>
  tt.store %o_at, %o2 : tensor<64x64x!tt.ptr<f32>>
  tt.return
}
