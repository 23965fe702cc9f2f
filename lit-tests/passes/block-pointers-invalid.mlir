// RUN: llopt %s --triton-rewrite-tensor-pointer --split-input-file --verify-diagnostics

// A branch that chooses a pointer is not followed.
tt.func public @chosen(%p: !tt.ptr<f32>, %n: i64, %c: i1) -> tensor<32xf32> {
  %zero = arith.constant 0 : i32
  %stride = arith.constant 1 : i64
  %t = tt.make_tensor_ptr %p, [%n], [%stride], [%zero] {order = array<i32: 0>} : <tensor<32xf32>>
  %u = tt.make_tensor_ptr %p, [%stride], [%stride], [%zero] {order = array<i32: 0>} : <tensor<32xf32>>
  %x = scf.if %c -> (!tt.ptr<tensor<32xf32>>) {
    scf.yield %t : !tt.ptr<tensor<32xf32>>
  } else {
    scf.yield %u : !tt.ptr<tensor<32xf32>>
  }
  // expected-error @+1 {{is through a pointer to a tile that is chosen by more than a loop}}
  %v = tt.load %x : !tt.ptr<tensor<32xf32>>
  tt.return %v : tensor<32xf32>
}

// -----

// A loop that goes on in another tensor is not followed either.
tt.func public @other(%p: !tt.ptr<f32>, %n: i64) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %stride = arith.constant 1 : i64
  %t = tt.make_tensor_ptr %p, [%n], [%stride], [%zero] {order = array<i32: 0>} : <tensor<32xf32>>
  %u = tt.make_tensor_ptr %p, [%stride], [%stride], [%zero] {order = array<i32: 0>} : <tensor<32xf32>>
  %end = scf.for %k = %zero to %one step %one iter_args(%at = %t) -> (!tt.ptr<tensor<32xf32>>) : i32 {
    // expected-error @+1 {{goes on with a pointer to a tile of another tensor}}
    scf.yield %u : !tt.ptr<tensor<32xf32>>
  }
  tt.return
}
