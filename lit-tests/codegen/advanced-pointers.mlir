// Pointers that a loop advances: what each is before the loop is hidden from LLVM, which would advance rows and add the
// column to each in every iteration.
//
// RUN: llopt compile %s --target cuda:90 --emit llvm -o - | FileCheck %s
// RUN: llopt compile %s --target cuda:90 -o - | FileCheck %s --check-prefix=PTX

#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // Two rows of a thread, of which nothing but a stride is known between them.
  // CHECK-LABEL: @rows
  // CHECK: %[[ONE:.*]] = call ptr addrspace(1) @llvm.launder.invariant.group.p1(
  // CHECK: %[[OTHER:.*]] = call ptr addrspace(1) @llvm.launder.invariant.group.p1(
  // CHECK-DAG: phi ptr addrspace(1) [ %[[ONE]],
  // CHECK-DAG: phi ptr addrspace(1) [ %[[OTHER]],
  // Each is advanced by one addition, and read as it is.
  // PTX-LABEL: rows(
  // PTX: $L__BB0_[[LOOP:[0-9]+]]:
  // PTX-COUNT-2: ld.global
  // PTX-NOT: add.s64 {{.*}}, %rd{{[0-9]+}};
  // PTX: bra $L__BB0_[[LOOP]]
  tt.func public @rows(%data: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %stride: i32 {tt.divisibility = 16 : i32}, %n: i32) {
    %zero = arith.constant dense<0.0> : tensor<64x16xf32, #blocked>
    %step = arith.constant dense<16> : tensor<64x16xi32, #blocked>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
    %c = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
    %rows = tt.expand_dims %r {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked}>> -> tensor<64x1xi32, #blocked>
    %columns = tt.expand_dims %c {axis = 0 : i32} : tensor<16xi32, #ttg.slice<{dim = 0, parent = #blocked}>> -> tensor<1x16xi32, #blocked>
    %strides = tt.splat %stride : i32 -> tensor<64x1xi32, #blocked>
    %begins = arith.muli %rows, %strides : tensor<64x1xi32, #blocked>
    %base = tt.splat %data : !tt.ptr<f32> -> tensor<64x1x!tt.ptr<f32>, #blocked>
    %starts = tt.addptr %base, %begins : tensor<64x1x!tt.ptr<f32>, #blocked>, tensor<64x1xi32, #blocked>
    %wide = tt.broadcast %starts : tensor<64x1x!tt.ptr<f32>, #blocked> -> tensor<64x16x!tt.ptr<f32>, #blocked>
    %across = tt.broadcast %columns : tensor<1x16xi32, #blocked> -> tensor<64x16xi32, #blocked>
    %first = tt.addptr %wide, %across : tensor<64x16x!tt.ptr<f32>, #blocked>, tensor<64x16xi32, #blocked>
    %sum:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %p = %first) -> (tensor<64x16xf32, #blocked>, tensor<64x16x!tt.ptr<f32>, #blocked>) : i32 {
      %x = tt.load %p : tensor<64x16x!tt.ptr<f32>, #blocked>
      %more = arith.addf %acc, %x : tensor<64x16xf32, #blocked>
      %next = tt.addptr %p, %step : tensor<64x16x!tt.ptr<f32>, #blocked>, tensor<64x16xi32, #blocked>
      scf.yield %more, %next : tensor<64x16xf32, #blocked>, tensor<64x16x!tt.ptr<f32>, #blocked>
    }
    %to = tt.splat %out : !tt.ptr<f32> -> tensor<64x16x!tt.ptr<f32>, #blocked>
    %sixteen = arith.constant dense<16> : tensor<64x1xi32, #blocked>
    %packed = arith.muli %rows, %sixteen : tensor<64x1xi32, #blocked>
    %down = tt.broadcast %packed : tensor<64x1xi32, #blocked> -> tensor<64x16xi32, #blocked>
    %all = arith.addi %down, %across : tensor<64x16xi32, #blocked>
    %place = tt.addptr %to, %all : tensor<64x16x!tt.ptr<f32>, #blocked>, tensor<64x16xi32, #blocked>
    tt.store %place, %sum#0 : tensor<64x16x!tt.ptr<f32>, #blocked>
    tt.return
  }
}
