// A factor from outside a loop stays in registers beside what the loop loads for its products, where loads go through
// registers. Queries that all eight warps hold whole take 128 registers of 256: with keys, values, scores and sums that is too
// many, so warps share the rows of the first product.
//
// RUN: llopt compile %s --target hip:gfx942 --num-warps 8 --num-stages 1 --emit ttgir | FileCheck %s --check-prefix=LAYOUTS
// RUN: llopt compile %s --target hip:gfx942 --num-warps 8 --num-stages 1 | FileCheck %s --check-prefix=AMD
// RUN: llopt compile %s --target cuda:80 --num-warps 8 --num-stages 1 --emit ttgir | FileCheck %s --check-prefix=NVIDIA

// LAYOUTS: #[[PRODUCT:mma[0-9]*]] = #ttg.amd_mfma<{{.*}}warpsPerCTA = [2, 4]
// LAYOUTS: tt.dot {{.*}} -> tensor<128x128xf32, #[[PRODUCT]]>

// AMD: .private_segment_fixed_size: 0

// NVIDIA: #{{mma[0-9]*}} = #ttg.nvidia_mma<{{.*}}warpsPerCTA = [2, 4]
// NVIDIA: tt.dot
module {
  tt.func public @masked_attention(%q: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %k: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %v: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %o: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}) {
    %c0 = arith.constant 0 : i32
    %c128 = arith.constant 128 : i32
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %none = arith.constant dense<0.0> : tensor<128x128xbf16>
    %least = arith.constant dense<0xFF800000> : tensor<128xf32>
    %no = arith.constant dense<0.0> : tensor<128xf32>
    %stride = arith.constant dense<128> : tensor<128x1xi32>
    %scores = arith.constant dense<0.125> : tensor<128x128xf32>
    %far = arith.constant dense<-1.0e7> : tensor<128x128xf32>
    %i = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
    %rows = tt.expand_dims %i {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
    %columns = tt.expand_dims %i {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
    %below = arith.muli %rows, %stride : tensor<128x1xi32>
    %below_all = tt.broadcast %below : tensor<128x1xi32> -> tensor<128x128xi32>
    %columns_all = tt.broadcast %columns : tensor<1x128xi32> -> tensor<128x128xi32>
    %at = arith.addi %below_all, %columns_all : tensor<128x128xi32>
    %q_all = tt.splat %q : !tt.ptr<bf16> -> tensor<128x128x!tt.ptr<bf16>>
    %q_at = tt.addptr %q_all, %at : tensor<128x128x!tt.ptr<bf16>>, tensor<128x128xi32>
    %queries = tt.load %q_at : tensor<128x128x!tt.ptr<bf16>>
    %stride_row = arith.constant dense<128> : tensor<1x128xi32>
    %k_columns = arith.muli %columns, %stride_row : tensor<1x128xi32>
    %k_columns_all = tt.broadcast %k_columns : tensor<1x128xi32> -> tensor<128x128xi32>
    %rows_all = tt.broadcast %rows : tensor<128x1xi32> -> tensor<128x128xi32>
    %k_at = arith.addi %k_columns_all, %rows_all : tensor<128x128xi32>
    %end_row = tt.splat %n : i32 -> tensor<1x128xi32>
    %end_column = tt.splat %n : i32 -> tensor<128x1xi32>
    %k_all = tt.splat %k : !tt.ptr<bf16> -> tensor<128x128x!tt.ptr<bf16>>
    %v_all = tt.splat %v : !tt.ptr<bf16> -> tensor<128x128x!tt.ptr<bf16>>
    %done:3 = scf.for %j = %c0 to %n step %c128 iter_args(%m = %least, %l = %no, %acc = %zero) -> (tensor<128xf32>, tensor<128xf32>, tensor<128x128xf32>) : i32 {
      %off = arith.muli %j, %c128 : i32
      %off_all = tt.splat %off : i32 -> tensor<128x128xi32>
      %j_row = tt.splat %j : i32 -> tensor<1x128xi32>
      %j_column = tt.splat %j : i32 -> tensor<128x1xi32>
      %key_number = arith.addi %j_row, %columns : tensor<1x128xi32>
      %is_key = arith.cmpi slt, %key_number, %end_row : tensor<1x128xi32>
      %is_key_all = tt.broadcast %is_key : tensor<1x128xi1> -> tensor<128x128xi1>
      %value_number = arith.addi %j_column, %rows : tensor<128x1xi32>
      %is_value = arith.cmpi slt, %value_number, %end_column : tensor<128x1xi32>
      %is_value_all = tt.broadcast %is_value : tensor<128x1xi1> -> tensor<128x128xi1>
      %k_here = arith.addi %off_all, %k_at : tensor<128x128xi32>
      %k_from = tt.addptr %k_all, %k_here : tensor<128x128x!tt.ptr<bf16>>, tensor<128x128xi32>
      %keys = tt.load %k_from, %is_key_all, %none : tensor<128x128x!tt.ptr<bf16>>
      %s = tt.dot %queries, %keys, %zero : tensor<128x128xbf16> * tensor<128x128xbf16> -> tensor<128x128xf32>
      %row_all = tt.broadcast %rows : tensor<128x1xi32> -> tensor<128x128xi32>
      %key_all = tt.broadcast %key_number : tensor<1x128xi32> -> tensor<128x128xi32>
      %sees = arith.cmpi sge, %row_all, %key_all : tensor<128x128xi32>
      %sx = arith.mulf %s, %scores : tensor<128x128xf32>
      %sz = arith.select %sees, %sx, %far : tensor<128x128xi1>, tensor<128x128xf32>
      %sm = "tt.reduce"(%sz) <{axis = 1 : i32}> ({
      ^bb0(%x: f32, %y: f32):
        %r = arith.maxnumf %x, %y : f32
        tt.reduce.return %r : f32
      }) : (tensor<128x128xf32>) -> tensor<128xf32>
      %mn = arith.maxnumf %m, %sm : tensor<128xf32>
      %mc = tt.expand_dims %mn {axis = 1 : i32} : tensor<128xf32> -> tensor<128x1xf32>
      %ma = tt.broadcast %mc : tensor<128x1xf32> -> tensor<128x128xf32>
      %d = arith.subf %sz, %ma : tensor<128x128xf32>
      %p = math.exp2 %d : tensor<128x128xf32>
      %ps = "tt.reduce"(%p) <{axis = 1 : i32}> ({
      ^bb0(%x: f32, %y: f32):
        %r = arith.addf %x, %y : f32
        tt.reduce.return %r : f32
      }) : (tensor<128x128xf32>) -> tensor<128xf32>
      %md = arith.subf %m, %mn : tensor<128xf32>
      %scale = math.exp2 %md : tensor<128xf32>
      %ls = arith.mulf %l, %scale : tensor<128xf32>
      %ln = arith.addf %ls, %ps : tensor<128xf32>
      %sc = tt.expand_dims %scale {axis = 1 : i32} : tensor<128xf32> -> tensor<128x1xf32>
      %sa = tt.broadcast %sc : tensor<128x1xf32> -> tensor<128x128xf32>
      %scaled = arith.mulf %acc, %sa : tensor<128x128xf32>
      %v_here = arith.addi %off_all, %at : tensor<128x128xi32>
      %v_from = tt.addptr %v_all, %v_here : tensor<128x128x!tt.ptr<bf16>>, tensor<128x128xi32>
      %values = tt.load %v_from, %is_value_all, %none : tensor<128x128x!tt.ptr<bf16>>
      %pb = arith.truncf %p : tensor<128x128xf32> to tensor<128x128xbf16>
      %sum = tt.dot %pb, %values, %scaled : tensor<128x128xbf16> * tensor<128x128xbf16> -> tensor<128x128xf32>
      scf.yield %mn, %ln, %sum : tensor<128xf32>, tensor<128xf32>, tensor<128x128xf32>
    }
    %result = arith.truncf %done#2 : tensor<128x128xf32> to tensor<128x128xbf16>
    %o_all = tt.splat %o : !tt.ptr<bf16> -> tensor<128x128x!tt.ptr<bf16>>
    %o_at = tt.addptr %o_all, %at : tensor<128x128x!tt.ptr<bf16>>, tensor<128x128xi32>
    tt.store %o_at, %result : tensor<128x128x!tt.ptr<bf16>>
    tt.return
  }
}
