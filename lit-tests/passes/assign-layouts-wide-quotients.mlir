// RUN: llopt compile %s --target hip:gfx942 --num-warps 4 --emit ttgir -o - | FileCheck %s

// Where a token is within its page, by a number of tokens that is not known. No GPU divides integers of 64 bits, so a thread
// divides for one token, and the remainders go to the threads that load the tokens' elements, each of several tokens.
// CHECK: #[[ONE:.*]] = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 64], warpsPerCTA = [1, 4]
// CHECK-LABEL: @tokens_of_pages(
// CHECK: arith.remsi {{.*}} : tensor<1x256xi64, #[[ONE]]>
// CHECK: ttg.convert_layout {{.*}} : tensor<1x256xi64, #[[ONE]]> -> tensor<1x256xi64,
tt.func public @tokens_of_pages(%keys: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %tokens: i64, %first: i64) {
  %i = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
  %k = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %i1 = tt.expand_dims %i {axis = 0 : i32} : tensor<256xi32> -> tensor<1x256xi32>
  %wide = arith.extsi %i1 : tensor<1x256xi32> to tensor<1x256xi64>
  %firsts = tt.splat %first : i64 -> tensor<1x256xi64>
  %token = arith.addi %firsts, %wide : tensor<1x256xi64>
  %sizes = tt.splat %tokens : i64 -> tensor<1x256xi64>
  %within = arith.remsi %token, %sizes : tensor<1x256xi64>
  %stride = arith.constant dense<64> : tensor<1x256xi64>
  %column = arith.muli %within, %stride : tensor<1x256xi64>
  %columns = tt.broadcast %column : tensor<1x256xi64> -> tensor<64x256xi64>
  %k1 = tt.expand_dims %k {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %row64 = arith.extsi %k1 : tensor<64x1xi32> to tensor<64x1xi64>
  %rows = tt.broadcast %row64 : tensor<64x1xi64> -> tensor<64x256xi64>
  %offsets = arith.addi %rows, %columns : tensor<64x256xi64>
  %from = tt.splat %keys : !tt.ptr<f16> -> tensor<64x256x!tt.ptr<f16>>
  %p = tt.addptr %from, %offsets : tensor<64x256x!tt.ptr<f16>>, tensor<64x256xi64>
  %x = tt.load %p : tensor<64x256x!tt.ptr<f16>>
  %stride32 = arith.constant dense<64> : tensor<1x256xi32>
  %column32 = arith.muli %i1, %stride32 : tensor<1x256xi32>
  %columns32 = tt.broadcast %column32 : tensor<1x256xi32> -> tensor<64x256xi32>
  %row32 = tt.broadcast %k1 : tensor<64x1xi32> -> tensor<64x256xi32>
  %out = arith.addi %row32, %columns32 : tensor<64x256xi32>
  %tos = tt.splat %to : !tt.ptr<f16> -> tensor<64x256x!tt.ptr<f16>>
  %q = tt.addptr %tos, %out : tensor<64x256x!tt.ptr<f16>>, tensor<64x256xi32>
  tt.store %q, %x : tensor<64x256x!tt.ptr<f16>>
  tt.return
}
