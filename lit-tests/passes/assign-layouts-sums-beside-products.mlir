// RUN: llopt %s --assign-layouts="target=cuda:90 num-warps=4" --split-input-file | FileCheck %s --check-prefixes=CHECK,GROUP
// RUN: llopt %s --assign-layouts="target=cuda:90 num-warps=8" --split-input-file | FileCheck %s --check-prefixes=CHECK,AHEAD
// RUN: llopt %s --assign-layouts="target=hip:gfx942 num-warps=4" --split-input-file | FileCheck %s --check-prefixes=CHECK,WARP

// Beside products of groups of warps, which are asynchronous, each thread keeps its part of a row's sum until the loop ends.
// Where each warp multiplies by itself the loop reduces whole rows.

// CHECK-LABEL: @heads_of_64
// GROUP: scf.for {{.*}} -> (tensor<64x64xf32, #{{[a-z0-9]+}}>, tensor<64x4xf32,
// WARP: scf.for {{.*}} -> (tensor<64x64xf32, #{{[a-z0-9]+}}>, tensor<64xf32,
module {
  tt.func public @heads_of_64(%q_in: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %k_in: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %sums_out: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}) {
    %zero = arith.constant 0 : i32
    %step = arith.constant 64 : i32
    %none = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %zeros = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %least = arith.constant dense<0xFF800000> : tensor<64xf32>
    %ones = arith.constant dense<1.000000e+00> : tensor<64xf32>
    %depth = arith.constant dense<64> : tensor<64x1xi32>
    %row = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %rows = tt.expand_dims %row {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %column = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %columns = tt.expand_dims %column {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %begins = arith.muli %rows, %depth : tensor<64x1xi32>
    %all_begins = tt.broadcast %begins : tensor<64x1xi32> -> tensor<64x64xi32>
    %all_columns = tt.broadcast %columns : tensor<1x64xi32> -> tensor<64x64xi32>
    %places = arith.addi %all_begins, %all_columns : tensor<64x64xi32>
    %q_base = tt.splat %q_in : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
    %q_at = tt.addptr %q_base, %places : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
    %q = tt.load %q_at : tensor<64x64x!tt.ptr<f16>>
    %found:3 = scf.for %i = %zero to %n step %step iter_args(%sum = %zeros, %l = %ones, %m = %least) -> (tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>) : i32 {
      %from = arith.muli %i, %step : i32
      %k_of = tt.addptr %k_in, %from : !tt.ptr<f16>, i32
      %k_base = tt.splat %k_of : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
      %k_at = tt.addptr %k_base, %places : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
      %v = tt.load %k_at : tensor<64x64x!tt.ptr<f16>>
      %k = tt.trans %v {order = array<i32: 1, 0>} : tensor<64x64xf16> -> tensor<64x64xf16>
      %s = tt.dot %q, %k, %none : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
      %own = "tt.reduce"(%s) <{axis = 1 : i32}> ({
      ^bb0(%a: f32, %b: f32):
        %c = arith.maxnumf %a, %b : f32
        tt.reduce.return %c : f32
      }) : (tensor<64x64xf32>) -> tensor<64xf32>
      %next = arith.maxnumf %m, %own : tensor<64xf32>
      %next_column = tt.expand_dims %next {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
      %next_all = tt.broadcast %next_column : tensor<64x1xf32> -> tensor<64x64xf32>
      %less = arith.subf %s, %next_all : tensor<64x64xf32>
      %p = math.exp2 %less : tensor<64x64xf32>
      %grown = arith.subf %m, %next : tensor<64xf32>
      %factor = math.exp2 %grown : tensor<64xf32>
      %part = "tt.reduce"(%p) <{axis = 1 : i32}> ({
      ^bb0(%a: f32, %b: f32):
        %c = arith.addf %a, %b : f32
        tt.reduce.return %c : f32
      }) : (tensor<64x64xf32>) -> tensor<64xf32>
      %factor_column = tt.expand_dims %factor {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
      %factor_all = tt.broadcast %factor_column : tensor<64x1xf32> -> tensor<64x64xf32>
      %scaled = arith.mulf %sum, %factor_all : tensor<64x64xf32>
      %weights = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xf16>
      %sum_next = tt.dot %weights, %v, %scaled : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
      %l_scaled = arith.mulf %l, %factor : tensor<64xf32>
      %l_next = arith.addf %l_scaled, %part : tensor<64xf32>
      scf.yield %sum_next, %l_next, %next : tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>
    }
    %out_base = tt.splat %out : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
    %out_at = tt.addptr %out_base, %places : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
    tt.store %out_at, %found#0 : tensor<64x64x!tt.ptr<f32>>
    %sums_base = tt.splat %sums_out : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %sums_at = tt.addptr %sums_base, %row : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    tt.store %sums_at, %found#1 : tensor<64x!tt.ptr<f32>>
    tt.return
  }
}

// -----

// The first of these products runs ahead of the second by eight warps: the loop waits for the second after the sum, so whole rows
// are reduced.

// CHECK-LABEL: @heads_of_128
// AHEAD: scf.for {{.*}} -> (tensor<128x128xf32, #{{[a-z0-9]+}}>, tensor<128xf32,
module {
  tt.func public @heads_of_128(%q_in: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %k_in: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %sums_out: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}) {
    %zero = arith.constant 0 : i32
    %step = arith.constant 128 : i32
    %none = arith.constant dense<0.000000e+00> : tensor<128x128xf32>
    %zeros = arith.constant dense<0.000000e+00> : tensor<128x128xf32>
    %least = arith.constant dense<0xFF800000> : tensor<128xf32>
    %ones = arith.constant dense<1.000000e+00> : tensor<128xf32>
    %depth = arith.constant dense<128> : tensor<128x1xi32>
    %row = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
    %rows = tt.expand_dims %row {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
    %column = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
    %columns = tt.expand_dims %column {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
    %begins = arith.muli %rows, %depth : tensor<128x1xi32>
    %all_begins = tt.broadcast %begins : tensor<128x1xi32> -> tensor<128x128xi32>
    %all_columns = tt.broadcast %columns : tensor<1x128xi32> -> tensor<128x128xi32>
    %places = arith.addi %all_begins, %all_columns : tensor<128x128xi32>
    %q_base = tt.splat %q_in : !tt.ptr<f16> -> tensor<128x128x!tt.ptr<f16>>
    %q_at = tt.addptr %q_base, %places : tensor<128x128x!tt.ptr<f16>>, tensor<128x128xi32>
    %q = tt.load %q_at : tensor<128x128x!tt.ptr<f16>>
    %found:3 = scf.for %i = %zero to %n step %step iter_args(%sum = %zeros, %l = %ones, %m = %least) -> (tensor<128x128xf32>, tensor<128xf32>, tensor<128xf32>) : i32 {
      %from = arith.muli %i, %step : i32
      %k_of = tt.addptr %k_in, %from : !tt.ptr<f16>, i32
      %k_base = tt.splat %k_of : !tt.ptr<f16> -> tensor<128x128x!tt.ptr<f16>>
      %k_at = tt.addptr %k_base, %places : tensor<128x128x!tt.ptr<f16>>, tensor<128x128xi32>
      %v = tt.load %k_at : tensor<128x128x!tt.ptr<f16>>
      %k = tt.trans %v {order = array<i32: 1, 0>} : tensor<128x128xf16> -> tensor<128x128xf16>
      %s = tt.dot %q, %k, %none : tensor<128x128xf16> * tensor<128x128xf16> -> tensor<128x128xf32>
      %own = "tt.reduce"(%s) <{axis = 1 : i32}> ({
      ^bb0(%a: f32, %b: f32):
        %c = arith.maxnumf %a, %b : f32
        tt.reduce.return %c : f32
      }) : (tensor<128x128xf32>) -> tensor<128xf32>
      %next = arith.maxnumf %m, %own : tensor<128xf32>
      %next_column = tt.expand_dims %next {axis = 1 : i32} : tensor<128xf32> -> tensor<128x1xf32>
      %next_all = tt.broadcast %next_column : tensor<128x1xf32> -> tensor<128x128xf32>
      %less = arith.subf %s, %next_all : tensor<128x128xf32>
      %p = math.exp2 %less : tensor<128x128xf32>
      %grown = arith.subf %m, %next : tensor<128xf32>
      %factor = math.exp2 %grown : tensor<128xf32>
      %part = "tt.reduce"(%p) <{axis = 1 : i32}> ({
      ^bb0(%a: f32, %b: f32):
        %c = arith.addf %a, %b : f32
        tt.reduce.return %c : f32
      }) : (tensor<128x128xf32>) -> tensor<128xf32>
      %factor_column = tt.expand_dims %factor {axis = 1 : i32} : tensor<128xf32> -> tensor<128x1xf32>
      %factor_all = tt.broadcast %factor_column : tensor<128x1xf32> -> tensor<128x128xf32>
      %scaled = arith.mulf %sum, %factor_all : tensor<128x128xf32>
      %weights = arith.truncf %p : tensor<128x128xf32> to tensor<128x128xf16>
      %sum_next = tt.dot %weights, %v, %scaled : tensor<128x128xf16> * tensor<128x128xf16> -> tensor<128x128xf32>
      %l_scaled = arith.mulf %l, %factor : tensor<128xf32>
      %l_next = arith.addf %l_scaled, %part : tensor<128xf32>
      scf.yield %sum_next, %l_next, %next : tensor<128x128xf32>, tensor<128xf32>, tensor<128xf32>
    }
    %out_base = tt.splat %out : !tt.ptr<f32> -> tensor<128x128x!tt.ptr<f32>>
    %out_at = tt.addptr %out_base, %places : tensor<128x128x!tt.ptr<f32>>, tensor<128x128xi32>
    tt.store %out_at, %found#0 : tensor<128x128x!tt.ptr<f32>>
    %sums_base = tt.splat %sums_out : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
    %sums_at = tt.addptr %sums_base, %row : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
    tt.store %sums_at, %found#1 : tensor<128x!tt.ptr<f32>>
    tt.return
  }
}
