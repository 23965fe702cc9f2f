// Types of the tt dialect and the constraints made of them.

#ifndef TT_TYPES
#define TT_TYPES

include "tt/dialect.td"

class TT_TypeDef<string name, string typeMnemonic> : TypeDef<TT_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def TT_PointerType : TT_TypeDef<"Pointer", "ptr"> {
  let summary = "Pointer to a scalar or to a block of a tensor";
  let description = [{
    Written `!tt.ptr<f32>`, or `!tt.ptr<f32, 3>` when the address space is not
    1, the global memory.
  }];
  let parameters = (ins
    TypeParam<"What is pointed to">:$pointeeType,
    UIntParam<"LLVM address space", "1">:$addressSpace
  );
  let hasCustomAssemblyFormat = 1;
}

def TT_TensorDescType : TT_TypeDef<"TensorDesc", "tensordesc"> {
  let summary = "Descriptor of a tensor in global memory, read and written by block";
  let description = [{
    Holds the base address, extents and strides of a tensor in global memory.
    The block type is the tensor that one access moves; its encoding, if any,
    is the layout the block has in shared memory. A signed or unsigned element
    type (`si8`, `ui8`) tells the hardware how to reduce. Both
    `!tt.tensordesc<tensor<64x64xf16>>` and `!tt.tensordesc<64x64xf16>` are
    read; the first is printed.

    A parameter of a kernel is an object in memory on targets with a unit that
    reads it (`cp.async.bulk.tensor`), which the launcher encodes as the
    metadata say. On others it is several parameters in its place, as Triton's
    launchers pass them then: base address, extents (`i64`), strides (`i64`),
    and whether elements outside are NaN (`i1`). The address and the strides
    are multiples of 16 bytes, the last stride is one element.
  }];
  let parameters = (ins
    TypeParam<"Tensor moved by one access">:$blockType
  );
  let hasCustomAssemblyFormat = 1;
}

//===----------------------------------------------------------------------===//
// Constraints
//===----------------------------------------------------------------------===//

defvar TT_FloatElements = [
  F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F16, BF16, F32, F64
];
def I4 : I<4>;
defvar TT_IntElements = [I1, I4, I8, I16, I32, I64];

def TT_Float : AnyTypeOf<TT_FloatElements, "floating-point">;
def TT_FloatTensor : TensorWith<[TT_Float]>;
def TT_FloatLike : AnyTypeOf<[TT_Float, TT_FloatTensor]>;

def TT_Int : AnyTypeOf<TT_IntElements, "integer">;
def TT_IntTensor : TensorWith<[TT_Int]>;
def TT_IntLike : AnyTypeOf<[TT_Int, TT_IntTensor]>;

def TT_BoolTensor : TensorWith<[I1]>;
def TT_BoolLike : AnyTypeOf<[I1, TT_BoolTensor]>;
def TT_I32Tensor : TensorWith<[I32]>;
def TT_I64Like : ScalarOrTensor<[I64]>;

def TT_Ptr : PointerTo<[AnyType]>;
def TT_PtrTensor : TensorWith<[TT_Ptr]>;
def TT_PtrLike : AnyTypeOf<[TT_Ptr, TT_PtrTensor]>;

def TT_FpIntTensor : TensorWith<[TT_Float, TT_Int]>;
def TT_Tensor : TensorWith<[TT_Float, TT_Int, TT_Ptr]>;
def TT_TensorPtr : PointerTo<[TT_Tensor]>;
def TT_Type : AnyTypeOf<[TT_FloatLike, TT_IntLike, TT_PtrLike, TT_TensorPtr]>;

#endif // TT_TYPES
