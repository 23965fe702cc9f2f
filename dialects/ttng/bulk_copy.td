// Copies of whole blocks by the TMA unit.

#ifndef TTNG_BULK_COPY
#define TTNG_BULK_COPY

include "ttng/attributes.td"

def TTNG_BulkCopyOps : OpDocGroup {
  let summary = "Bulk copies through tensor descriptors";
  let description = "";
}

let opDocGroup = TTNG_BulkCopyOps in {

def TTNG_AsyncTMACopyGlobalToLocalOp
    : TTNG_Op<"async_tma_copy_global_to_local", [
    Asynchronous<"Issues", "Bulk">,
    Means<"Descriptor">
]> {
  let summary = "Copies a block into shared memory without waiting";
  let description = [{
    `coord` is the first element. The bytes are counted by `barrier`.
  }];
  let arguments = (ins
    Arg<TT_TensorDescType, "", [MemRead<GlobalMemory>]>:$desc,
    Variadic<I32>:$coord,
    Arg<TTG_MemDescType, "", [MemWrite<TransactionBarrier>]>:$barrier,
    Arg<TTG_MemDescType, "", [MemWrite<BulkSharedMemory>]>:$result,
    I1:$pred,
    DefaultValuedAttr<TT_CacheModifierAttr, "none">:$cache,
    DefaultValuedAttr<TT_EvictionPolicyAttr, "evict_normal">:$evict,
    DefaultValuedAttr<BoolAttr, "false">:$isVolatile
  );
  let assemblyFormat = [{
    $desc `[` $coord `]` $result `,` $barrier `,` $pred
    oilist(`cacheModifier` `=` $cache | `evictionPolicy` `=` $evict)
    attr-dict `:` qualified(type($desc)) `,` qualified(type($barrier)) `->`
    qualified(type($result))
  }];
  let hasVerifier = 1;
}

def TTNG_AsyncTMAPrefetchOp : TTNG_Op<"async_tma_prefetch", [
    Means<"Nothing">
]> {
  let summary = "Brings a block into the second-level cache";
  let description = [{
    The block that a copy into `buffer`, to which nothing happens, would read. Nobody sees whether it is done, so memory
    may still be written meanwhile: the cache is the one in which all accesses meet. Triton has no such op.
  }];
  let arguments = (ins
    TT_TensorDescType:$desc,
    Variadic<I32>:$coord,
    TTG_MemDescType:$buffer,
    I1:$pred
  );
  let assemblyFormat = [{
    $desc `[` $coord `]` $buffer `,` $pred attr-dict `:` qualified(type($desc)) `,`
    qualified(type($buffer))
  }];
}

def TTNG_AsyncTMACopyLocalToGlobalOp
    : TTNG_Op<"async_tma_copy_local_to_global", [
    Asynchronous<"Issues", "Bulk">,
    Means<"Descriptor">
]> {
  let summary = "Copies a block from shared memory without waiting";
  let description = "";
  let arguments = (ins
    Arg<TT_TensorDescType, "",
        [MemRead<GlobalMemory>, MemWrite<GlobalMemory>]>:$desc,
    Variadic<I32>:$coord,
    Arg<TTG_MemDescType, "", [MemRead<BulkSharedMemory>]>:$src
  );
  let assemblyFormat = [{
    $desc `[` $coord `]` $src attr-dict `:` qualified(type($desc)) `,`
    qualified(type($src))
  }];
  let hasVerifier = 1;
}

def TTNG_AsyncTMAReduceOp : TTNG_Op<"async_tma_reduce", [
    Asynchronous<"Issues", "Bulk">,
    Means<"Descriptor">
]> {
  let summary = "Combines a block from shared memory into global memory";
  let description = "";
  let arguments = (ins
    TT_DescriptorReduceKindAttr:$kind,
    Arg<TT_TensorDescType, "",
        [MemRead<GlobalMemory>, MemWrite<GlobalMemory>]>:$desc,
    Variadic<I32>:$coord,
    Arg<TTG_MemDescType, "", [MemRead<BulkSharedMemory>]>:$src
  );
  let assemblyFormat = [{
    $kind `,` $desc `[` $coord `]` $src attr-dict `:` qualified(type($desc)) `,`
    qualified(type($src))
  }];
  let hasVerifier = 1;
}

def TTNG_AsyncTMAGatherOp : TTNG_Op<"async_tma_gather", [
    Asynchronous<"Issues", "Bulk">,
    Means<"Descriptor">
]> {
  let summary = "Copies rows that are not adjacent into shared memory";
  let description = "";
  let arguments = (ins
    Arg<TT_TensorDescType, "", [MemRead<GlobalMemory>]>:$desc,
    TT_I32Tensor:$x_offsets,
    I32:$y_offset,
    Arg<TTG_MemDescType, "", [MemWrite<TransactionBarrier>]>:$barrier,
    Arg<TTG_MemDescType, "", [MemWrite<BulkSharedMemory>]>:$result,
    I1:$pred
  );
  let assemblyFormat = [{
    $desc `[` $x_offsets `,` $y_offset `]` $result `,` $barrier `,` $pred
    attr-dict `:` type(operands)
  }];
  let hasVerifier = 1;
}

def TTNG_AsyncTMAScatterOp : TTNG_Op<"async_tma_scatter", [
    Asynchronous<"Issues", "Bulk">,
    Means<"Descriptor">
]> {
  let summary = "Copies rows from shared memory to rows that are not adjacent";
  let description = "";
  let arguments = (ins
    Arg<TT_TensorDescType, "",
        [MemRead<GlobalMemory>, MemWrite<GlobalMemory>]>:$desc,
    TT_I32Tensor:$x_offsets,
    I32:$y_offset,
    Arg<TTG_MemDescType, "", [MemRead<BulkSharedMemory>]>:$src
  );
  let assemblyFormat = [{
    $desc `[` $x_offsets `,` $y_offset `]` $src attr-dict `:` type(operands)
  }];
  let hasVerifier = 1;
}

def TTNG_TMAStoreWaitOp : TTNG_Op<"async_tma_store_wait", [
    MemoryEffects<[MemRead<BulkSharedMemory>, MemWrite<GlobalMemory>]>,
    Asynchronous<"Waits", "Bulk">,
    Means<"Nothing">
]> {
  let summary = "Waits until at most `pendings` copies still read shared memory";
  let description = "";
  let arguments = (ins I32Attr:$pendings);
  let assemblyFormat = "attr-dict";
}

def TTNG_ReinterpretTensorDescOp : TTNG_Op<"reinterpret_tensor_descriptor", [
    Pure,
    Means<"Descriptor">
]> {
  let summary = "A descriptor object in memory as a typed descriptor";
  let description = "";
  let arguments = (ins TT_Ptr:$rawDesc);
  let results = (outs TT_TensorDescType:$result);
  let assemblyFormat = [{
    $rawDesc attr-dict `:` qualified(type($rawDesc)) `to`
    qualified(type($result))
  }];
}

def TTNG_TensormapCreateOp : TTNG_Op<"tensormap_create", [
    MemoryEffects<[MemRead<GlobalMemory>, MemWrite<GlobalMemory>]>,
    AttrSizedOperandSegments,
    UsesScratch<"TensorMap">,
    Means<"Descriptor">
]> {
  let summary = "Writes a descriptor object for the TMA unit into memory";
  let description = [{
    Extents and strides are those of the tensor map: innermost dimension first,
    strides in bytes and without the innermost one.
  }];
  let arguments = (ins
    TT_Ptr:$desc_ptr,
    TT_Ptr:$global_address,
    Variadic<I32>:$box_dim,
    Variadic<I32>:$global_dim,
    Variadic<I64>:$global_stride,
    Variadic<I32>:$element_stride,
    ConfinedAttr<I32Attr, [InRange<0, 15>]>:$elem_type,
    ConfinedAttr<I32Attr, [InRange<0, 2>]>:$interleave_layout,
    ConfinedAttr<I32Attr, [InRange<0, 3>]>:$swizzle_mode,
    ConfinedAttr<I32Attr, [InRange<0, 1>]>:$fill_mode
  );
  let assemblyFormat = [{
    $desc_ptr `,` $global_address `,` `[` $box_dim `]` `,` `[` $global_dim `]`
    `,` `[` $global_stride `]` `,` `[` $element_stride `]` attr-dict `:`
    functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def TTNG_TensormapFenceproxyAcquireOp
    : TTNG_Op<"tensormap_fenceproxy_acquire", [
        MemoryEffects<[MemWrite<GlobalMemory>]>,
    Means<"Nothing">]> {
  let summary = "Makes a written descriptor object visible to the TMA unit";
  let description = "";
  let arguments = (ins TT_Ptr:$desc_ptr);
  let assemblyFormat = "$desc_ptr attr-dict `:` qualified(type($desc_ptr))";
}

} // opDocGroup

#endif // TTNG_BULK_COPY
