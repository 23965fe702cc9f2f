// Types of the ttg dialect and the constraints made of them.

#ifndef TTG_TYPES
#define TTG_TYPES

include "ttg/attributes.td"

class TTG_TypeDef<string name, string typeMnemonic>
    : TypeDef<TTG_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def TTG_AsyncToken : TTG_TypeDef<"AsyncToken", "async.token"> {
  let summary = "Stands for the completion of asynchronous work";
  let description = "";
}

def TTG_MemDescType : TTG_TypeDef<"MemDesc", "memdesc"> {
  let summary = "A view of a buffer in shared or tensor memory";
  let description = [{
    `!ttg.memdesc<2x64x64xf16, #shared, #smem, mutable, 3x128x64>`: extents and
    element type, encoding, memory space, whether it may be written after its
    initialisation, and the extents of the whole buffer when this is a part of
    it. A dimension more than the encoding has is a number of buffers of the
    same kind.
  }];
  let parameters = (ins
    ShapeParam<"Extents of the view">:$shape,
    TypeParam<"Element type">:$elementType,
    AttributeParam<"Shared or tensor memory encoding">:$encoding,
    AttributeParam<"Memory space">:$memorySpace,
    BoolParam<"Whether it may be written", "false">:$mutableMemory,
    ShapeParam<"Extents of the buffer">:$allocShape
  );
  let hasCustomAssemblyFormat = 1;
}

def TTG_TensorOrMemDesc : AnyTypeOf<[TT_Tensor, TTG_MemDescType]>;

#endif // TTG_TYPES
