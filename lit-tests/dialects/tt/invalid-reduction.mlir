// RUN: llopt %s --split-input-file --verify-diagnostics

// Each part breaks one rule; the message says which, and what is at fault.

tt.func @results(%x0: tensor<4xf32>) {
  // expected-error @+1 {{'tt.reduce' op has 1 operands and 2 results}}
  %r:2 = "tt.reduce"(%x0) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<4xf32>) -> (f32, f32)
  tt.return
}

// -----

tt.func @elements(%x0: tensor<4xf32>) {
  // expected-error @+1 {{'tt.scan' op operand #0 has elements of type 'f32', result #0 of 'i32'}}
  %r = "tt.scan"(%x0) <{axis = 0 : i32, reverse = false}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.scan.return %s : f32
  }) : (tensor<4xf32>) -> tensor<4xi32>
  tt.return
}

// -----

tt.func @arguments(%x0: tensor<4xf32>) {
  // expected-error @+1 {{'tt.reduce' op the region must take 2 arguments, but takes 1}}
  %r = "tt.reduce"(%x0) <{axis = 0 : i32}> ({
  ^bb0(%a: f32):
    tt.reduce.return %a : f32
  }) : (tensor<4xf32>) -> f32
  tt.return
}

// -----

tt.func @terminator(%x0: tensor<4xf32>) {
  %r = "tt.reduce"(%x0) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    // expected-error @+1 {{'tt.scan.return' op expects parent op 'tt.scan'}}
    tt.scan.return %s : f32
  }) : (tensor<4xf32>) -> f32
  tt.return
}

// -----

tt.func @yields(%x0: tensor<4xf32>) {
  // expected-error @+1 {{'tt.reduce' op the region must yield 1 values, but yields 2}}
  %r = "tt.reduce"(%x0) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s, %s : f32, f32
  }) : (tensor<4xf32>) -> f32
  tt.return
}

// -----

tt.func @yielded_type(%x0: tensor<4xf32>) {
  // expected-error @+1 {{'tt.reduce' op value #0 that the region yields must have type 'f32', but has 'i1'}}
  %r = "tt.reduce"(%x0) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.cmpf olt, %a, %b : f32
    tt.reduce.return %s : i1
  }) : (tensor<4xf32>) -> f32
  tt.return
}

// -----

tt.func @two_blocks(%x0: tensor<4xf32>) {
  // expected-error @+1 {{'tt.reduce' op expects region #0 to have 0 or 1 blocks}}
  %r = "tt.reduce"(%x0) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    cf.br ^bb1
  ^bb1:
    tt.reduce.return %s : f32
  }) : (tensor<4xf32>) -> f32
  tt.return
}

// -----

tt.func @scan_axis(%x0: tensor<4xf32>) {
  // expected-error @+1 {{'tt.scan' op axis 1 is out of range for rank 1}}
  %r = "tt.scan"(%x0) <{axis = 1 : i32, reverse = false}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.scan.return %s : f32
  }) : (tensor<4xf32>) -> tensor<4xf32>
  tt.return
}

// -----

tt.func @result_shape(%x0: tensor<4x8xf32>) {
  // expected-error @+2 {{'tt.reduce' op inferred type(s) 'tensor<8xf32>' are incompatible with return type(s) of operation 'tensor<4xf32>'}}
  // expected-error @+1 {{'tt.reduce' op failed to infer returned types}}
  %r = "tt.reduce"(%x0) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<4x8xf32>) -> tensor<4xf32>
  tt.return
}

// -----

tt.func @shapes(%x0: tensor<4xf32>, %x1: tensor<8xf32>) {
  // expected-error @+1 {{'tt.reduce' op requires the same shape for all operands}}
  %r:2 = "tt.reduce"(%x0, %x1) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32):
    tt.reduce.return %a, %b : f32, f32
  }) : (tensor<4xf32>, tensor<8xf32>) -> (f32, f32)
  tt.return
}

// -----

tt.func @histogram_result(%x: tensor<4xi32>) {
  // expected-error @+1 {{'tt.histogram' op the result must have one dimension, but has shape [4, 4]}}
  %0 = tt.histogram %x : tensor<4xi32> -> tensor<4x4xi32>
  tt.return
}

// -----

tt.func @histogram_mask(%x: tensor<4xi32>, %m: tensor<8xi1>) {
  // expected-error @+2 {{'tt.histogram' op failed to verify that mask type matches src type}}
  // expected-note @+1 {{expected 'tensor<4xi1>', got 'tensor<8xi1>'}}
  %0 = "tt.histogram"(%x, %m) : (tensor<4xi32>, tensor<8xi1>) -> tensor<4xi32>
  tt.return
}

// -----

tt.func @return_alone(%x: f32) {
  // expected-error @+1 {{'tt.reduce.return' op expects parent op 'tt.reduce'}}
  tt.reduce.return %x : f32
}
