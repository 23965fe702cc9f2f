// What is printed is what was read, character by character, from text and from bytecode.
// RUN: llopt %s --split-input-file --verify-roundtrip | grep -v '^ *\(//.*\)*$' > %t.printed
// RUN: grep -v '^ *\(//.*\)*$' %s | diff - %t.printed

module {
  // Printing with values and without, and a check.
  tt.func @debug(%arg0: tensor<8xi32>, %arg1: f32, %arg2: tensor<8xi1>, %arg3: i1) {
    tt.print " x: " {hex = false, isSigned = array<i32: 1, 0>} : %arg0, %arg1 : tensor<8xi32>, f32
    tt.print "here" {hex = true, isSigned = array<i32>}
    tt.assert %arg2, "x is small" : tensor<8xi1>
    tt.assert %arg3, "always" : i1
    tt.return
  }
}
