// A loop over the iterations of several programs, as its author flattened it: the first iteration of a program computes where its tile
// is, the last one stores it and sets the sums to zero.
//
// RUN: llopt compile %s --target cuda:90 --num-warps 8 --num-stages 3 --emit ttgir -o - | FileCheck %s
// RUN: llopt compile %s --target hip:gfx942 --num-warps 8 --num-stages 2 --emit ttgir -o - | FileCheck %s --check-prefix=AMD
// RUN: llopt prove %s --target cuda:90 --num-warps 8 --num-stages 3 --order | FileCheck %s --check-prefix=ORDER
// RUN: llopt prove %s --target hip:gfx942 --num-warps 8 --num-stages 2 --order | FileCheck %s --check-prefix=ORDER

// The number of the present iteration of a program counts until it is equal to an unknown number.
// ORDER: ordered in all executions: [[N:[0-9]+]] of [[N]]

// The place of a tile is computed ahead with the copies of its first iteration, in a conditional, where a division by zero, in an
// iteration that does not exist, divides by one. The sums are carried as they are, and a flag says whether the product adds to them, so
// that it runs on into the next iteration; the branch that stores waits until it is complete.
// CHECK-LABEL: @programs
// CHECK: scf.for
// CHECK: ttg.async_wait {{.*}} {num = 2 : i32}
// CHECK: %[[SUM:.*]] = ttng.warp_group_dot %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {isAsync = true}
// CHECK-NEXT: %[[OTHERS:.*]]:3 = ttng.warp_group_dot_wait %[[SUM]], {{.*}} {pendings = 1 : i32}
// CHECK: scf.if
// CHECK-NEXT: ttng.warp_group_dot_wait %[[OTHERS]]#0 {pendings = 0 : i32}
// CHECK: tt.store
// CHECK: scf.if
// CHECK: %[[BY:.*]] = arith.select %{{.*}}, %c1_i32{{.*}}, %{{.*}} : i32
// CHECK: arith.divsi %{{.*}}, %[[BY]]
// CHECK: } else {
// CHECK: ttg.async_copy_global_to_local
// CHECK: ttg.async_copy_global_to_local
// CHECK: scf.yield %[[OTHERS]]#0

// Where registers hold what comes ahead, the loads of the next iteration are issued before the product.
// AMD-LABEL: @programs
// AMD: scf.for
// AMD: scf.if
// AMD: arith.divsi
// AMD: tt.load
// AMD: tt.load
// AMD: tt.dot
// AMD: scf.if
// AMD: tt.store
// AMD: ttg.local_store
tt.func public @programs(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %c: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %across: i32, %steps: i32, %programs: i32) {
  %zeros = arith.constant dense<0.0> : tensor<128x128xf32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %none = arith.constant -1 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %width = arith.constant dense<4096> : tensor<128x1xi32>
  %k_width = arith.constant dense<4096> : tensor<64x1xi32>
  %rows = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %inner = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %total = arith.muli %steps, %programs : i32
  %last = arith.subi %steps, %c1 : i32
  %a_all = tt.splat %a : !tt.ptr<f16> -> tensor<128x64x!tt.ptr<f16>>
  %b_all = tt.splat %b : !tt.ptr<f16> -> tensor<64x128x!tt.ptr<f16>>
  %c_all = tt.splat %c : !tt.ptr<f16> -> tensor<128x128x!tt.ptr<f16>>
  %r:5 = scf.for %i = %c0 to %total step %c1 iter_args(%tile = %none, %k = %none, %m = %c0, %n = %c0, %sum = %zeros) -> (i32, i32, i32, i32, tensor<128x128xf32>) : i32 {
    %was_last = arith.cmpi eq, %k, %last : i32
    %k_plus = arith.addi %k, %c1 : i32
    %k_next = arith.select %was_last, %c0, %k_plus : i32
    %is_first = arith.cmpi eq, %k_next, %c0 : i32
    %place:3 = scf.if %is_first -> (i32, i32, i32) {
      %next = arith.addi %tile, %c1 : i32
      %row = arith.divsi %next, %across : i32
      %column = arith.remsi %next, %across : i32
      %m_next = arith.muli %row, %c128 : i32
      %n_next = arith.muli %column, %c128 : i32
      scf.yield %next, %m_next, %n_next : i32, i32, i32
    } else {
      scf.yield %tile, %m, %n : i32, i32, i32
    }
    %m_start = tt.splat %place#1 : i32 -> tensor<128xi32>
    %m_all = arith.addi %m_start, %rows : tensor<128xi32>
    %n_start = tt.splat %place#2 : i32 -> tensor<128xi32>
    %n_all = arith.addi %n_start, %rows : tensor<128xi32>
    %k_start = arith.muli %k_next, %c64 : i32
    %k_starts = tt.splat %k_start : i32 -> tensor<64xi32>
    %k_all = arith.addi %k_starts, %inner : tensor<64xi32>
    %m_column = tt.expand_dims %m_all {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
    %m_rows = arith.muli %m_column, %width : tensor<128x1xi32>
    %k_row = tt.expand_dims %k_all {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %a_rows = tt.broadcast %m_rows : tensor<128x1xi32> -> tensor<128x64xi32>
    %a_columns = tt.broadcast %k_row : tensor<1x64xi32> -> tensor<128x64xi32>
    %a_offsets = arith.addi %a_rows, %a_columns : tensor<128x64xi32>
    %a_pointers = tt.addptr %a_all, %a_offsets : tensor<128x64x!tt.ptr<f16>>, tensor<128x64xi32>
    %x = tt.load %a_pointers : tensor<128x64x!tt.ptr<f16>>
    %k_column = tt.expand_dims %k_all {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %k_rows = arith.muli %k_column, %k_width : tensor<64x1xi32>
    %n_row = tt.expand_dims %n_all {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
    %b_rows = tt.broadcast %k_rows : tensor<64x1xi32> -> tensor<64x128xi32>
    %b_columns = tt.broadcast %n_row : tensor<1x128xi32> -> tensor<64x128xi32>
    %b_offsets = arith.addi %b_rows, %b_columns : tensor<64x128xi32>
    %b_pointers = tt.addptr %b_all, %b_offsets : tensor<64x128x!tt.ptr<f16>>, tensor<64x128xi32>
    %y = tt.load %b_pointers : tensor<64x128x!tt.ptr<f16>>
    %d = tt.dot %x, %y, %sum : tensor<128x64xf16> * tensor<64x128xf16> -> tensor<128x128xf32>
    %is_last = arith.cmpi eq, %k_next, %last : i32
    %sum_next = arith.select %is_last, %zeros, %d : tensor<128x128xf32>
    scf.if %is_last {
      %c_rows = tt.broadcast %m_rows : tensor<128x1xi32> -> tensor<128x128xi32>
      %c_columns = tt.broadcast %n_row : tensor<1x128xi32> -> tensor<128x128xi32>
      %c_offsets = arith.addi %c_rows, %c_columns : tensor<128x128xi32>
      %c_pointers = tt.addptr %c_all, %c_offsets : tensor<128x128x!tt.ptr<f16>>, tensor<128x128xi32>
      %stored = arith.truncf %d : tensor<128x128xf32> to tensor<128x128xf16>
      tt.store %c_pointers, %stored : tensor<128x128x!tt.ptr<f16>>
    }
    scf.yield %place#0, %k_next, %place#1, %place#2, %sum_next : i32, i32, i32, i32, tensor<128x128xf32>
  }
  tt.return
}
