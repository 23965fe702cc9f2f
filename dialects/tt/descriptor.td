// Access to global memory by block, through tensor descriptors.

#ifndef TT_DESCRIPTOR
#define TT_DESCRIPTOR

include "tt/types.td"
include "tt/attributes.td"

def TT_DescriptorOps : OpDocGroup {
  let summary = "Tensor descriptors";
  let description = "";
}

let opDocGroup = TT_DescriptorOps in {

def TT_MakeTensorDescOp : TT_Op<"make_tensor_descriptor", [
    Pure, SameVariadicOperandSize,
    Means<"Descriptor">
]> {
  let summary = "Describes a tensor in global memory";
  let description = [{
    `shape` and `strides` (in elements) are those of the whole tensor, the
    result type gives the block. `padding` is what an access reads outside.
  }];
  let arguments = (ins
    TT_Ptr:$base,
    Variadic<I32>:$shape,
    Variadic<I64>:$strides,
    DefaultValuedAttr<TT_PaddingOptionAttr, "zero">:$padding
  );
  let results = (outs TT_TensorDescType:$result);
  let assemblyFormat = [{
    $base `,` `[` $shape `]` `,` `[` $strides `]` attr-dict `:` type($base) `,`
    type($result)
  }];
  let hasVerifier = 1;
}

def TT_DescriptorLoadOp : TT_Op<"descriptor_load", [Means<"Descriptor">]> {
  let summary = "Loads one block";
  let description = [{
    `indices` is the first element of the block. The result has the shape and
    element type of the block, where leading extents of 1 may be dropped. A
    result that is longer than the block along some dimensions consists of the
    consecutive blocks there.
  }];
  let arguments = (ins
    Arg<TT_TensorDescType, "", [MemRead<GlobalMemory>]>:$desc,
    Variadic<I32>:$indices,
    DefaultValuedAttr<TT_CacheModifierAttr, "none">:$cache,
    DefaultValuedAttr<TT_EvictionPolicyAttr, "evict_normal">:$evict
  );
  let results = (outs TT_Tensor:$result);
  let assemblyFormat = [{
    $desc `[` $indices `]`
    oilist(`cacheModifier` `=` $cache | `evictionPolicy` `=` $evict)
    attr-dict `:` qualified(type($desc)) `->` type($result)
  }];
  let hasVerifier = 1;
}

def TT_DescriptorStoreOp : TT_Op<"descriptor_store", [Means<"Descriptor">]> {
  let summary = "Stores one block";
  let description = [{
    `indices` is the first element of the block. A source that is longer than
    the block along some dimensions consists of the consecutive blocks there.
  }];
  let arguments = (ins
    Arg<TT_TensorDescType, "",
        [MemRead<GlobalMemory>, MemWrite<GlobalMemory>]>:$desc,
    TT_Tensor:$src,
    Variadic<I32>:$indices
  );
  let assemblyFormat = [{
    $desc `[` $indices `]` `,` $src attr-dict `:` qualified(type($desc)) `,`
    type($src)
  }];
  let hasVerifier = 1;
}

def TT_DescriptorReduceOp : TT_Op<"descriptor_reduce", [Means<"Descriptor">]> {
  let summary = "Combines one block into memory, element by element";
  let description = [{
    Each element is updated atomically with `kind`.
  }];
  let arguments = (ins
    TT_DescriptorReduceKindAttr:$kind,
    Arg<TT_TensorDescType, "",
        [MemRead<GlobalMemory>, MemWrite<GlobalMemory>]>:$desc,
    TT_Tensor:$src,
    Variadic<I32>:$indices
  );
  let assemblyFormat = [{
    $kind `,` $desc `[` $indices `]` `,` $src attr-dict `:`
    qualified(type($desc)) `,` type($src)
  }];
  let hasVerifier = 1;
}

def TT_DescriptorGatherOp : TT_Op<"descriptor_gather", [Means<"Descriptor">]> {
  let summary = "Loads rows that are not adjacent";
  let description = [{
    The block of the descriptor is one row. Row `i` of the result is row
    `x_offsets[i]` of the tensor, from column `y_offset` on.
  }];
  let arguments = (ins
    Arg<TT_TensorDescType, "", [MemRead<GlobalMemory>]>:$desc,
    TT_I32Tensor:$x_offsets,
    I32:$y_offset
  );
  let results = (outs TT_Tensor:$result);
  let assemblyFormat = [{
    $desc `[` $x_offsets `,` $y_offset `]` attr-dict `:`
    functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def TT_DescriptorScatterOp : TT_Op<"descriptor_scatter", [Means<"Descriptor">]> {
  let summary = "Stores rows that are not adjacent";
  let description = [{
    The counterpart of `tt.descriptor_gather`.
  }];
  let arguments = (ins
    Arg<TT_TensorDescType, "",
        [MemRead<GlobalMemory>, MemWrite<GlobalMemory>]>:$desc,
    TT_I32Tensor:$x_offsets,
    I32:$y_offset,
    TT_Tensor:$src
  );
  let assemblyFormat = [{
    $desc `[` $x_offsets `,` $y_offset `]` `,` $src attr-dict `:`
    type(operands)
  }];
  let hasVerifier = 1;
}

} // opDocGroup

#endif // TT_DESCRIPTOR
