// Global memory through buffer descriptors, and shared memory.

#ifndef AMDG_MEMORY
#define AMDG_MEMORY

include "amdg/dialect.td"

def AMDG_MemoryOps : OpDocGroup {
  let summary = "Buffer access";
  let description = [{
    A buffer access takes one scalar pointer and a tensor of 32-bit offsets in
    elements. Elements outside of the 2 GB window are not accessed. `stride`
    is the distance of adjacent rows in elements; it lets the cache swizzle.
    Triton 3.9 writes the pointer type before the tensor type; both forms are
    read.
  }];
}

let opDocGroup = AMDG_MemoryOps in {

def AMDG_BufferLoadOp : AMDG_Op<"buffer_load", [
    SameLoadStoreOperandsAndResultEncoding, AttrSizedOperandSegments,
    TypesMatchWith<"ptr points to the element type of result", "result", "ptr",
                   "pointer_to_element">,
    TypesMatchWith<"result and offsets have the same shape", "result",
                   "offsets", "i32_like">,
    OptionalTypesMatchWith<"result and mask have the same shape", "result",
                           "mask", "bool_like">,
    OptionalTypesMatchWith<"result and other have the same type", "result",
                           "other", "same">,
    Means<"Memory">
]> {
  let summary = "Loads from a base pointer plus offsets";
  let description = "";
  let arguments = (ins
    Arg<TT_Ptr, "", [MemRead<GlobalMemory>]>:$ptr,
    TT_I32Tensor:$offsets,
    Optional<I32>:$stride,
    DefaultValuedAttr<TT_CacheModifierAttr, "none">:$cache,
    Optional<TT_BoolTensor>:$mask,
    Optional<TT_Tensor>:$other,
    DefaultValuedAttr<I32Attr, "1">:$contiguity
  );
  let results = (outs TT_Tensor:$result);
  let assemblyFormat = [{
    $ptr `[` $offsets `]` (`,` $mask^)? (`,` $other^)?
    oilist(`cacheModifier` `=` $cache) (`stride` `=` $stride^)?
    attr-dict `:` custom<BufferTensorType>(type($result))
  }];
  let hasVerifier = 1;
}

def AMDG_BufferLoadToLocalOp : AMDG_Op<"buffer_load_to_local", [
    AttrSizedOperandSegments,
    TypesMatchWith<"ptr points to the element type of dest", "dest", "ptr",
                   "pointer_to_element">,
    OptionalTypesMatchWith<"mask has the shape of offsets", "offsets", "mask",
                           "bool_like">,
    Asynchronous<"Issues", "Copy">,
    Means<"Memory">
]> {
  let summary = "Copies from a base pointer plus offsets into shared memory";
  let description = "";
  let arguments = (ins
    Arg<TTG_MemDescType, "", [MemWrite<SharedMemory>]>:$dest,
    Arg<TT_Ptr, "", [MemRead<GlobalMemory>]>:$ptr,
    TT_I32Tensor:$offsets,
    Optional<TT_BoolTensor>:$mask,
    Optional<TT_Tensor>:$other,
    Optional<I32>:$stride,
    DefaultValuedAttr<TT_CacheModifierAttr, "none">:$cache,
    DefaultValuedAttr<I32Attr, "1">:$contiguity
  );
  let results = (outs TTG_AsyncToken:$token);
  let assemblyFormat = [{
    $ptr `[` $offsets `]` (`mask` `=` $mask^)? (`other` `=` $other^)?
    (`stride` `=` $stride^)? oilist(`cacheModifier` `=` $cache) `into` $dest
    attr-dict `:` type($ptr) `[` type($offsets) `]` type($other) `->`
    type($dest)
  }];
  let hasVerifier = 1;
}

def AMDG_BufferAtomicRmwOp : AMDG_Op<"buffer_atomic_rmw", [
    AttrSizedOperandSegments, SameLoadStoreOperandsAndResultEncoding,
    TypesMatchWith<"result and value have the same type", "result", "value",
                   "same">,
    TypesMatchWith<"ptr points to the element type of result", "result", "ptr",
                   "pointer_to_element">,
    TypesMatchWith<"result and offsets have the same shape", "result",
                   "offsets", "i32_like">,
    OptionalTypesMatchWith<"result and mask have the same shape", "result",
                           "mask", "bool_like">,
    UsesScratch<"Update">,
    Means<"Memory">
]> {
  let summary = "Updates memory at a base pointer plus offsets atomically";
  let description = "";
  let arguments = (ins
    TT_AtomicRmwAttr:$atomic_rmw_op,
    Arg<TT_Ptr, "", [MemRead<GlobalMemory>, MemWrite<GlobalMemory>]>:$ptr,
    TT_I32Tensor:$offsets,
    TT_Tensor:$value,
    Optional<I32>:$stride,
    TT_MemSemanticAttr:$sem,
    TT_MemSyncScopeAttr:$scope,
    Optional<TT_BoolTensor>:$mask,
    DefaultValuedAttr<I32Attr, "1">:$contiguity
  );
  let results = (outs TT_Tensor:$result);
  let assemblyFormat = [{
    $atomic_rmw_op `,` $sem `,` $scope `,` $value `,` $ptr `[` $offsets `]`
    (`,` $mask^)? (`stride` `=` $stride^)?
    attr-dict `:` custom<BufferTensorType>(type($result))
  }];
  let hasVerifier = 1;
}

def AMDG_BufferAtomicCasOp : AMDG_Op<"buffer_atomic_cas", [
    SameLoadStoreOperandsAndResultEncoding,
    TypesMatchWith<"result and val have the same type", "result", "val",
                   "same">,
    TypesMatchWith<"result and cmp have the same type", "result", "cmp",
                   "same">,
    TypesMatchWith<"ptr points to the element type of result", "result", "ptr",
                   "pointer_to_element">,
    TypesMatchWith<"result and offsets have the same shape", "result",
                   "offsets", "i32_like">,
    UsesScratch<"Update">,
    Means<"Memory">
]> {
  let summary = "Replaces memory at a base pointer plus offsets where it equals `cmp`";
  let description = "";
  let arguments = (ins
    Arg<TT_Ptr, "", [MemRead<GlobalMemory>, MemWrite<GlobalMemory>]>:$ptr,
    TT_I32Tensor:$offsets,
    TT_Tensor:$cmp,
    TT_Tensor:$val,
    Optional<I32>:$stride,
    TT_MemSemanticAttr:$sem,
    TT_MemSyncScopeAttr:$scope,
    DefaultValuedAttr<I32Attr, "1">:$contiguity
  );
  let results = (outs TT_Tensor:$result);
  let assemblyFormat = [{
    $sem `,` $scope `,` $cmp `,` $val `,` $ptr `[` $offsets `]`
    (`stride` `=` $stride^)?
    attr-dict `:` custom<BufferTensorType>(type($result))
  }];
  let hasVerifier = 1;
}

def AMDG_BufferStoreOp : AMDG_Op<"buffer_store", [
    AttrSizedOperandSegments, SameLoadStoreOperandsEncoding,
    TypesMatchWith<"ptr points to the element type of value", "value", "ptr",
                   "pointer_to_element">,
    TypesMatchWith<"value and offsets have the same shape", "value", "offsets",
                   "i32_like">,
    OptionalTypesMatchWith<"value and mask have the same shape", "value",
                           "mask", "bool_like">,
    Means<"Memory">
]> {
  let summary = "Stores to a base pointer plus offsets";
  let description = "";
  let arguments = (ins
    TT_Tensor:$value,
    Arg<TT_Ptr, "", [MemWrite<GlobalMemory>]>:$ptr,
    TT_I32Tensor:$offsets,
    Optional<I32>:$stride,
    DefaultValuedAttr<TT_CacheModifierAttr, "none">:$cache,
    Optional<TT_BoolTensor>:$mask,
    DefaultValuedAttr<I32Attr, "1">:$contiguity
  );
  let assemblyFormat = [{
    $value `,` $ptr `[` $offsets `]` (`,` $mask^)?
    oilist(`cacheModifier` `=` $cache) (`stride` `=` $stride^)?
    attr-dict `:` custom<BufferTensorType>(type($value))
  }];
  let hasVerifier = 1;
}

def AMDG_LocalLoadPackedTransposedOp
    : AMDG_Op<"local_load_packed_tranposed", [Means<"Memory">]> {
  let summary = "Reads packed 4-bit elements from shared memory, transposed";
  let description = [{
    The buffer is packed and contiguous along M or N, the result along K: its
    extent along M or N doubles, that along K halves. The spelling of the name
    is Triton's.
  }];
  let arguments = (ins
    Arg<TTG_MemDescType, "", [MemRead<SharedMemory>]>:$src,
    Optional<TTG_AsyncToken>:$token
  );
  let results = (outs TT_Tensor:$result);
  let assemblyFormat = [{
    $src (`token` $token^)? attr-dict `:` qualified(type($src)) `->`
    type($result)
  }];
  let hasVerifier = 1;
}

def AMDG_MaskedLoadOp : AMDG_Op<"masked_load"> {
  let summary = "Loads an LLVM value where a predicate holds";
  let description = [{
    A step of Triton's own lowering, on types of LLVM's dialect.
    `multicastMask` names the blocks of the cluster that want the same data.
  }];
  let arguments = (ins
    LLVMPointer:$ptr,
    I1:$mask,
    LLVMCompatible:$falseVal,
    Optional<I16>:$multicastMask,
    DefaultValuedAttr<TT_CacheModifierAttr, "none">:$cache,
    DefaultValuedAttr<BoolAttr, "false">:$forceNoAlias
  );
  let results = (outs LLVMCompatible:$result);
  let assemblyFormat = [{
    $ptr `,` $mask `,` $falseVal (`,` $multicastMask^)?
    oilist(`cacheModifier` `=` $cache) (`forceNoAlias` $forceNoAlias^)?
    attr-dict `:` functional-type(operands, results)
  }];
}

def AMDG_MaskedStoreOp : AMDG_Op<"masked_store"> {
  let summary = "Stores an LLVM value where a predicate holds";
  let description = [{
    A step of Triton's own lowering, on types of LLVM's dialect.
  }];
  let arguments = (ins
    LLVMPointer:$ptr,
    LLVMCompatible:$value,
    I1:$mask,
    DefaultValuedAttr<TT_CacheModifierAttr, "none">:$cache,
    DefaultValuedAttr<BoolAttr, "false">:$forceNoAlias
  );
  let assemblyFormat = [{
    $ptr `,` $value `,` $mask oilist(`cacheModifier` `=` $cache)
    (`forceNoAlias` $forceNoAlias^)? attr-dict `:` type(operands)
  }];
}

def AMDG_AsyncTDMCopyGlobalToLocalOp
    : AMDG_Op<"async_tdm_copy_global_to_local", [
    AttrSizedOperandSegments, Asynchronous<"Issues", "Bulk">
]> {
  let summary = "Copies a block into shared memory without waiting";
  let description = [{
    Done by the tensor data mover. `barrier` is arrived at on completion.
  }];
  let arguments = (ins
    Arg<TT_TensorDescType, "", [MemRead<GlobalMemory>]>:$desc,
    Variadic<I32>:$indices,
    Arg<TTG_MemDescType, "", [MemWrite<SharedMemory>]>:$result,
    I1:$pred,
    Optional<TTG_MemDescType>:$barrier
  );
  let results = (outs TTG_AsyncToken:$token);
  let assemblyFormat = [{
    $desc `[` $indices `]` `into` $result `,` $pred
    (`,` `barrier` `=` $barrier^)? attr-dict `:` qualified(type($desc))
    (`,` qualified(type($barrier))^)? `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def AMDG_AsyncTDMCopyLocalToGlobalOp
    : AMDG_Op<"async_tdm_copy_local_to_global", [
    Asynchronous<"Issues", "Bulk">
]> {
  let summary = "Copies a block from shared memory without waiting";
  let description = "";
  let arguments = (ins
    Arg<TT_TensorDescType, "", [MemWrite<GlobalMemory>]>:$desc,
    Variadic<I32>:$indices,
    Arg<TTG_MemDescType, "", [MemRead<SharedMemory>]>:$src
  );
  let assemblyFormat = [{
    $desc `[` $indices `]` `from` $src attr-dict `:` qualified(type($src)) `->`
    qualified(type($desc))
  }];
  let hasVerifier = 1;
}

} // opDocGroup

#endif // AMDG_MEMORY
