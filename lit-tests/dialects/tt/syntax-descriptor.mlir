// What is printed is what was read, character by character, from text and from bytecode.
// RUN: llopt %s --split-input-file --verify-roundtrip | grep -v '^ *\(//.*\)*$' > %t.printed
// RUN: grep -v '^ *\(//.*\)*$' %s | diff - %t.printed

module {
  // Descriptors for each padding, of signed and unsigned elements and of blocks with a layout.
  tt.func @make(%arg0: !tt.ptr<f16>, %arg1: !tt.ptr<i8>, %arg2: i32, %arg3: i64) -> (!tt.tensordesc<tensor<8x64xf16>>, !tt.tensordesc<tensor<64xui8>>) {
    %0 = tt.make_tensor_descriptor %arg0, [%arg2, %arg2], [%arg3, %arg3] : <f16>, <tensor<8x64xf16>>
    %1 = tt.make_tensor_descriptor %arg0, [%arg2, %arg2], [%arg3, %arg3] {padding = 2 : i32} : <f16>, <tensor<8x64xf16>>
    %2 = tt.make_tensor_descriptor %arg1, [%arg2], [%arg3] : <i8>, <tensor<64xui8>>
    %3 = tt.make_tensor_descriptor %arg1, [%arg2], [%arg3] : <i8>, <tensor<64xsi8>>
    tt.return %1, %2 : !tt.tensordesc<tensor<8x64xf16>>, !tt.tensordesc<tensor<64xui8>>
  }

  // Loads and stores of a block, a leading dimension of extent 1 dropped or not.
  tt.func @access(%arg0: !tt.tensordesc<tensor<8x64xf16>>, %arg1: !tt.tensordesc<tensor<1x64xf16>>, %arg2: i32) {
    %0 = tt.descriptor_load %arg0[%arg2, %arg2] : !tt.tensordesc<tensor<8x64xf16>> -> tensor<8x64xf16>
    %1 = tt.descriptor_load %arg0[%arg2, %arg2] cacheModifier = cg evictionPolicy = evict_first : !tt.tensordesc<tensor<8x64xf16>> -> tensor<8x64xf16>
    %2 = tt.descriptor_load %arg1[%arg2, %arg2] : !tt.tensordesc<tensor<1x64xf16>> -> tensor<64xf16>
    tt.descriptor_store %arg0[%arg2, %arg2], %0 : !tt.tensordesc<tensor<8x64xf16>>, tensor<8x64xf16>
    tt.return
  }

  // Every update of a reducing store.
  tt.func @reduce(%arg0: !tt.tensordesc<tensor<64xi32>>, %arg1: tensor<64xi32>, %arg2: i32) {
    tt.descriptor_reduce add, %arg0[%arg2], %arg1 : !tt.tensordesc<tensor<64xi32>>, tensor<64xi32>
    tt.descriptor_reduce min, %arg0[%arg2], %arg1 : !tt.tensordesc<tensor<64xi32>>, tensor<64xi32>
    tt.descriptor_reduce max, %arg0[%arg2], %arg1 : !tt.tensordesc<tensor<64xi32>>, tensor<64xi32>
    tt.descriptor_reduce inc, %arg0[%arg2], %arg1 : !tt.tensordesc<tensor<64xi32>>, tensor<64xi32>
    tt.descriptor_reduce dec, %arg0[%arg2], %arg1 : !tt.tensordesc<tensor<64xi32>>, tensor<64xi32>
    tt.descriptor_reduce and, %arg0[%arg2], %arg1 : !tt.tensordesc<tensor<64xi32>>, tensor<64xi32>
    tt.descriptor_reduce or, %arg0[%arg2], %arg1 : !tt.tensordesc<tensor<64xi32>>, tensor<64xi32>
    tt.descriptor_reduce xor, %arg0[%arg2], %arg1 : !tt.tensordesc<tensor<64xi32>>, tensor<64xi32>
    tt.return
  }

  // Rows picked by index.
  tt.func @rows(%arg0: !tt.tensordesc<tensor<1x64xf16>>, %arg1: tensor<32xi32>, %arg2: i32) {
    %0 = tt.descriptor_gather %arg0[%arg1, %arg2] : (!tt.tensordesc<tensor<1x64xf16>>, tensor<32xi32>, i32) -> tensor<32x64xf16>
    tt.descriptor_scatter %arg0[%arg1, %arg2], %0 : !tt.tensordesc<tensor<1x64xf16>>, tensor<32xi32>, i32, tensor<32x64xf16>
    tt.return
  }
}
