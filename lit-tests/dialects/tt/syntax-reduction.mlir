// What is printed is what was read, character by character, from text and from bytecode.
// RUN: llopt %s --split-input-file --verify-roundtrip | grep -v '^ *\(//.*\)*$' > %t.printed
// RUN: grep -v '^ *\(//.*\)*$' %s | diff - %t.printed

module {
  // Reductions of one tensor to a scalar, and of two at once along a dimension.
  tt.func @reduce(%arg0: tensor<8xf32>, %arg1: tensor<8x4xf32>, %arg2: tensor<8x4xi32>) -> (f32, tensor<8xi32>) {
    %0 = "tt.reduce"(%arg0) <{axis = 0 : i32}> ({
    ^bb0(%arg3: f32, %arg4: f32):
      %2 = arith.addf %arg3, %arg4 : f32
      tt.reduce.return %2 : f32
    }) : (tensor<8xf32>) -> f32
    %1:2 = "tt.reduce"(%arg1, %arg2) <{axis = 1 : i32}> ({
    ^bb0(%arg3: f32, %arg4: i32, %arg5: f32, %arg6: i32):
      %2 = arith.cmpf ogt, %arg3, %arg5 : f32
      %3 = arith.select %2, %arg3, %arg5 : f32
      %4 = arith.select %2, %arg4, %arg6 : i32
      tt.reduce.return %3, %4 : f32, i32
    }) : (tensor<8x4xf32>, tensor<8x4xi32>) -> (tensor<8xf32>, tensor<8xi32>)
    tt.return %0, %1#1 : f32, tensor<8xi32>
  }

  // Running combinations in both directions.
  tt.func @scan(%arg0: tensor<8x4xf32>) -> tensor<8x4xf32> {
    %0 = "tt.scan"(%arg0) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%arg1: f32, %arg2: f32):
      %2 = arith.mulf %arg1, %arg2 : f32
      tt.scan.return %2 : f32
    }) : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %1 = "tt.scan"(%0) <{axis = 1 : i32, reverse = true}> ({
    ^bb0(%arg1: f32, %arg2: f32):
      %2 = arith.mulf %arg1, %arg2 : f32
      tt.scan.return %2 : f32
    }) : (tensor<8x4xf32>) -> tensor<8x4xf32>
    tt.return %1 : tensor<8x4xf32>
  }

  // Counts of small numbers, some of them left out.
  tt.func @histogram(%arg0: tensor<64xi32>, %arg1: tensor<64xi1>) -> tensor<16xi32> {
    %0 = tt.histogram %arg0 : tensor<64xi32> -> tensor<16xi32>
    %1 = tt.histogram %arg0, %arg1 : tensor<64xi32> -> tensor<16xi32>
    tt.return %1 : tensor<16xi32>
  }
}
