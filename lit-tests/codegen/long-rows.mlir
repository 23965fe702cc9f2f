// A norm of a row that does not fit into the registers of a block: 512 elements of a thread.
//
// RUN: llopt compile %s --target cuda:90 --num-warps 4 --emit ptx | FileCheck %s --check-prefix=PTX
// RUN: llopt compile %s --target cuda:90 --num-warps 4 --emit cubin -o %t --metadata - | FileCheck %s

// Behind the barrier of the sum, elements are scaled as soon as their weights are there: the products take the registers
// of both.
// PTX: bar.sync
// PTX: ld.global.v4.b32
// PTX-NOT: ld.global
// PTX: mul.f32
// PTX: ld.global.v4.b32
// PTX-NOT: ld.global
// PTX: mul.f32

// The assembler takes 32 registers by itself, and spills more than four kilobytes; told that one block is enough, it takes all.
// CHECK: "registers": 255,
// CHECK: "scratch": {{1[0-9][0-9][0-9]}}{{$}}
module {
  tt.func public @norm(%to: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %from: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %weights: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}) {
    %zeros = arith.constant dense<0.0> : tensor<65536xf32>
    %x = tt.get_program_id x : i32
    %i = tt.make_range {start = 0 : i32, end = 65536 : i32} : tensor<65536xi32>
    %ns = tt.splat %n : i32 -> tensor<65536xi32>
    %is_inside = arith.cmpi slt, %i, %ns : tensor<65536xi32>
    %row = arith.muli %x, %n : i32
    %row_from = tt.addptr %from, %row : !tt.ptr<f32>, i32
    %froms = tt.splat %row_from : !tt.ptr<f32> -> tensor<65536x!tt.ptr<f32>>
    %fp = tt.addptr %froms, %i : tensor<65536x!tt.ptr<f32>>, tensor<65536xi32>
    %v = tt.load %fp, %is_inside, %zeros : tensor<65536x!tt.ptr<f32>>
    %squares = arith.mulf %v, %v : tensor<65536xf32>
    %sum = "tt.reduce"(%squares) <{axis = 0 : i32}> ({
    ^bb0(%l: f32, %r: f32):
      %s = arith.addf %l, %r : f32
      tt.reduce.return %s : f32
    }) : (tensor<65536xf32>) -> f32
    %scale = math.rsqrt %sum : f32
    %ws = tt.splat %weights : !tt.ptr<f32> -> tensor<65536x!tt.ptr<f32>>
    %wp = tt.addptr %ws, %i : tensor<65536x!tt.ptr<f32>>, tensor<65536xi32>
    %w = tt.load %wp, %is_inside : tensor<65536x!tt.ptr<f32>>
    %scales = tt.splat %scale : f32 -> tensor<65536xf32>
    %scaled = arith.mulf %v, %scales : tensor<65536xf32>
    %weighted = arith.mulf %scaled, %w : tensor<65536xf32>
    %row_to = tt.addptr %to, %row : !tt.ptr<f32>, i32
    %tos = tt.splat %row_to : !tt.ptr<f32> -> tensor<65536x!tt.ptr<f32>>
    %tp = tt.addptr %tos, %i : tensor<65536x!tt.ptr<f32>>, tensor<65536xi32>
    tt.store %tp, %weighted, %is_inside : tensor<65536x!tt.ptr<f32>>
    tt.return
  }
}
