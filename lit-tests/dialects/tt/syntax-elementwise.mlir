// What is printed is what was read, character by character, from text and from bytecode.
// RUN: llopt %s --split-input-file --verify-roundtrip | grep -v '^ *\(//.*\)*$' > %t.printed
// RUN: grep -v '^ *\(//.*\)*$' %s | diff - %t.printed

module {
  // Scalars and tensors become pointers, integers and other types of the same width.
  tt.func @casts(%arg0: i64, %arg1: tensor<8xi64>, %arg2: !tt.ptr<f32>) -> (tensor<8xi64>, i64, tensor<8xf64>, !tt.ptr<i8>) {
    %0 = tt.int_to_ptr %arg0 : i64 -> !tt.ptr<f32>
    %1 = tt.int_to_ptr %arg1 : tensor<8xi64> -> tensor<8x!tt.ptr<f32>>
    %2 = tt.ptr_to_int %1 : tensor<8x!tt.ptr<f32>> -> tensor<8xi64>
    %3 = tt.ptr_to_int %0 : !tt.ptr<f32> -> i64
    %4 = tt.bitcast %arg1 : tensor<8xi64> -> tensor<8xf64>
    %5 = tt.bitcast %arg2 : !tt.ptr<f32> -> !tt.ptr<i8>
    tt.return %2, %3, %4, %5 : tensor<8xi64>, i64, tensor<8xf64>, !tt.ptr<i8>
  }

  // Conversions between all float formats, with and without rounding.
  tt.func @floats(%arg0: tensor<8xf32>, %arg1: f16) -> (tensor<8xf32>, f64) {
    %0 = tt.fp_to_fp %arg0, rounding = rtne : tensor<8xf32> -> tensor<8xf8E5M2>
    %1 = tt.fp_to_fp %arg0, rounding = rtz : tensor<8xf32> -> tensor<8xf16>
    %2 = tt.fp_to_fp %0 : tensor<8xf8E5M2> -> tensor<8xf32>
    %3 = tt.fp_to_fp %arg0, rounding = rtne : tensor<8xf32> -> tensor<8xf8E4M3FN>
    %4 = tt.fp_to_fp %arg0, rounding = rtne : tensor<8xf32> -> tensor<8xf8E4M3FNUZ>
    %5 = tt.fp_to_fp %arg0, rounding = rtne : tensor<8xf32> -> tensor<8xf8E5M2FNUZ>
    %6 = tt.fp_to_fp %arg0, rounding = rtne : tensor<8xf32> -> tensor<8xbf16>
    %7 = tt.fp_to_fp %arg1 : f16 -> f64
    tt.return %2, %7 : tensor<8xf32>, f64
  }

  // Arithmetic that arith and math lack.
  tt.func @arithmetic(%arg0: tensor<8xf32>, %arg1: f32, %arg2: tensor<8xi32>, %arg3: i64) -> (tensor<8xf32>, f32) {
    %0 = tt.clampf %arg0, %arg0, %arg0, propagateNan = none : tensor<8xf32>
    %1 = tt.clampf %arg1, %arg1, %arg1, propagateNan = all : f32
    %2 = tt.precise_sqrt %0 : tensor<8xf32>
    %3 = tt.precise_divf %2, %arg0 : tensor<8xf32>
    %4 = tt.precise_divf %1, %arg1 : f32
    %5 = tt.mulhiui %arg2, %arg2 : tensor<8xi32>
    %6 = tt.mulhiui %arg3, %arg3 : i64
    tt.return %3, %4 : tensor<8xf32>, f32
  }

  // Offsets of 32 and 64 bits, for one pointer and for many.
  tt.func @pointers(%arg0: !tt.ptr<f32>, %arg1: i32, %arg2: tensor<8x!tt.ptr<f32>>, %arg3: tensor<8xi64>) -> tensor<8x!tt.ptr<f32>> {
    %0 = tt.addptr %arg0, %arg1 : !tt.ptr<f32>, i32
    %1 = tt.addptr %arg2, %arg3 {tt.contiguity = dense<4> : tensor<1xi32>} : tensor<8x!tt.ptr<f32>>, tensor<8xi64>
    tt.return %1 : tensor<8x!tt.ptr<f32>>
  }

  // Code that is not of these dialects: a library's function, and assembly with several results or none.
  tt.func @foreign(%arg0: tensor<8xf32>, %arg1: i32) -> (tensor<8xf32>, tensor<8xi32>) {
    %0 = tt.extern_elementwise %arg0, %arg0 {libname = "libdevice", libpath = "", pure = true, symbol = "__nv_powf"} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %1 = tt.extern_elementwise %arg1 {libname = "", libpath = "", pure = false, symbol = "poll"} : (i32) -> i32
    %2:2 = tt.elementwise_inline_asm "mov.b32 $0, $2; mov.b32 $1, $2;" {constraints = "=r,=r,r", packed_element = 1 : i32, pure = true} %arg0 : tensor<8xf32> -> tensor<8xf32>, tensor<8xi32>
    %3 = tt.elementwise_inline_asm "mov.u32 $0, %clock;" {constraints = "=r", packed_element = 1 : i32, pure = false} -> i32
    tt.return %0, %2#1 : tensor<8xf32>, tensor<8xi32>
  }

  // A region of scalar code, with branches, for two elements at a time.
  tt.func @map(%arg0: tensor<8xf32>, %arg1: tensor<8xi32>) -> (tensor<8xf32>, tensor<8xi32>) {
    %0:2 = "tt.map_elementwise"(%arg0, %arg1) <{pack = 2 : i32}> ({
    ^bb0(%arg2: f32, %arg3: f32, %arg4: i32, %arg5: i32):
      %1 = arith.cmpf olt, %arg2, %arg3 : f32
      cf.cond_br %1, ^bb1, ^bb2
    ^bb1:  // pred: ^bb0
      tt.map_elementwise.return %arg2, %arg3, %arg4, %arg5 : f32, f32, i32, i32
    ^bb2:  // pred: ^bb0
      tt.map_elementwise.return %arg3, %arg2, %arg5, %arg4 : f32, f32, i32, i32
    }) : (tensor<8xf32>, tensor<8xi32>) -> (tensor<8xf32>, tensor<8xi32>)
    tt.return %0#0, %0#1 : tensor<8xf32>, tensor<8xi32>
  }
}
