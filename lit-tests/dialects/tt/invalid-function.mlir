// RUN: llopt %s --split-input-file --verify-diagnostics

// Each part breaks one rule; the message says which, and what is at fault.

tt.func @print_signs(%x: i32) {
  // expected-error @+1 {{'tt.print' op has 1 values and 0 entries in isSigned}}
  tt.print "x" {hex = false, isSigned = array<i32>} : %x : i32
  tt.return
}

// -----

tt.func @returned(%x: f32) -> i32 {
  // expected-error @+1 {{'tt.return' op operand #0 has type 'f32', but function 'returned' returns 'i32'}}
  tt.return %x : f32
}

// -----

tt.func private @callee(i32) -> i32

tt.func @operands() {
  // expected-error @+1 {{'tt.call' op has 0 operands, but 'callee' has 1}}
  %0 = tt.call @callee() : () -> i32
  tt.return
}

// -----

tt.func private @callee(i32) -> i32

tt.func @results(%x: i32) {
  // expected-error @+1 {{'tt.call' op has 0 results, but 'callee' has 1}}
  tt.call @callee(%x) : (i32) -> ()
  tt.return
}

// -----

tt.func private @callee(i32) -> i32

tt.func @result_type(%x: i32) {
  // expected-error @+1 {{'tt.call' op result #0 has type 'f32', but 'callee' has 'i32'}}
  %0 = tt.call @callee(%x) : (i32) -> f32
  tt.return
}
