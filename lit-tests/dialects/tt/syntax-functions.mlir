// What is printed is what was read, character by character, from text and from bytecode.
// RUN: llopt %s --split-input-file --verify-roundtrip | grep -v '^ *\(//.*\)*$' > %t.printed
// RUN: grep -v '^ *\(//.*\)*$' %s | diff - %t.printed

module {
  // A private declaration, a device function, attributes of arguments and results, and calls.
  tt.func private @declared(f32, !tt.ptr<i8>) -> f32
  tt.func private @helper(%arg0: f32, %arg1: !tt.ptr<f16, 3>) -> (f32 {tt.note = 1 : i32}, i32) attributes {noinline = true} {
    %c1_i32 = arith.constant 1 : i32
    tt.return %arg0, %c1_i32 : f32, i32
  }

  // Attributes that a kernel's arguments carry.
  tt.func public @kernel(%arg0: !tt.ptr<f32> {tt.divisibility = 16 : i32, tt.pointer_range = 32 : i32}, %arg1: i32 {tt.divisibility = 16 : i32}, %arg2: !tt.ptr<f16, 3>) attributes {noinline = false} {
    %cst = arith.constant 1.000000e+00 : f32
    %0:2 = tt.call @helper(%cst, %arg2) : (f32, !tt.ptr<f16, 3>) -> (f32, i32)
    tt.call @nothing() {tt.pin = 1 : i32} : () -> ()
    %1:2 = tt.call @helper(%cst, %arg2) {arg_attrs = [{}, {tt.divisibility = 16 : i32}], res_attrs = [{}, {tt.note = 1 : i32}]} : (f32, !tt.ptr<f16, 3>) -> (f32, i32)
    tt.return
  }
  tt.func @nothing() {
    tt.return
  }

  // The position in the grid on each axis, and its extent.
  tt.func @grid() -> (i32, i32, i32, i32, i32, i32) {
    %0 = tt.get_program_id x : i32
    %1 = tt.get_program_id y : i32
    %2 = tt.get_program_id z : i32
    %3 = tt.get_num_programs x : i32
    %4 = tt.get_num_programs y : i32
    %5 = tt.get_num_programs z : i32
    tt.return %0, %1, %2, %3, %4, %5 : i32, i32, i32, i32, i32, i32
  }

  // Branches between the blocks of a function.
  tt.func @blocks(%arg0: i1, %arg1: i32) -> i32 {
    cf.cond_br %arg0, ^bb1(%arg1 : i32), ^bb2
  ^bb1(%0: i32):  // 2 preds: ^bb0, ^bb2
    tt.return %0 : i32
  ^bb2:  // pred: ^bb0
    cf.br ^bb1(%arg1 : i32)
  }
}
