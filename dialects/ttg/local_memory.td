// Shared memory: allocation, views, loads, stores and asynchronous copies.

#ifndef TTG_LOCAL_MEMORY
#define TTG_LOCAL_MEMORY

include "ttg/types.td"

def TTG_LocalMemoryOps : OpDocGroup {
  let summary = "Shared memory";
  let description = "";
}

let opDocGroup = TTG_LocalMemoryOps in {

def TTG_LocalAllocOp : TTG_Op<"local_alloc", [
    MemoryEffectsOpInterface, Layouts<"Same">, Anchors<"Buffer">,
    Means<"Memory">
]> {
  let summary = "Allocates a buffer in shared memory";
  let description = [{
    With `src` the buffer is initialised. Without it, it must be mutable. It
    lives until its last use or an explicit `ttg.local_dealloc`.
  }];
  let arguments = (ins
    Optional<TT_Tensor>:$src,
    OptionalAttr<I32Attr>:$alignment
  );
  let results = (outs TTG_MemDescType:$result);
  let assemblyFormat = [{
    ($src^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasFolder = 1;
  let hasVerifier = 1;
}

def TTG_LocalDeallocOp : TTG_Op<"local_dealloc", [Means<"Memory">]> {
  let summary = "Ends the life of a buffer";
  let description = "";
  let arguments = (ins
    Arg<TTG_MemDescType, "", [MemFree<SharedMemory>]>:$src
  );
  let assemblyFormat = "$src attr-dict `:` qualified(type($src))";
}

def TTG_MemDescIndexOp : TTG_Op<"memdesc_index", [Pure, Means<"Memory">]> {
  let summary = "One element of the outermost dimension of a buffer";
  let description = [{
    The view has one dimension less than its source.
  }];
  let arguments = (ins TTG_MemDescType:$src, I32:$index);
  let results = (outs TTG_MemDescType:$result);
  let assemblyFormat = [{
    $src `[` $index `]` attr-dict `:` qualified(type($src)) `->`
    qualified(type($result))
  }];
  let hasVerifier = 1;
}

def TTG_MemDescSubsliceOp : TTG_Op<"memdesc_subslice", [Pure, Means<"Memory">]> {
  let summary = "A rectangular part of a buffer";
  let description = [{
    `offsets` is the first element; the extents are those of the result. The
    part has to consist of whole tiles of the layout.
  }];
  let arguments = (ins TTG_MemDescType:$src, DenseI32ArrayAttr:$offsets);
  let results = (outs TTG_MemDescType:$result);
  let assemblyFormat = [{
    $src `[` custom<Offsets>($offsets) `]` attr-dict `:` qualified(type($src))
    `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def TTG_MemDescTransOp : TTG_Op<"memdesc_trans", [
    Pure, InferTypeOpInterface,
    InferUpToLayoutEquality, SameMemDescElementType,
    Means<"Memory">
]> {
  let summary = "A buffer with permuted dimensions";
  let description = "";
  let arguments = (ins TTG_MemDescType:$src, DenseI32ArrayAttr:$order);
  let results = (outs TTG_MemDescType:$result);
  let assemblyFormat = [{
    $src attr-dict `:` qualified(type($src)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def TTG_MemDescReshapeOp : TTG_Op<"memdesc_reshape", [
    Pure, SameMemDescElementType,
    Means<"Memory">
]> {
  let summary = "A buffer under another shape";
  let description = "";
  let arguments = (ins TTG_MemDescType:$src);
  let results = (outs TTG_MemDescType:$result);
  let assemblyFormat = [{
    $src attr-dict `:` qualified(type($src)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def TTG_MemDescReinterpretOp : TTG_Op<"memdesc_reinterpret", [Pure]> {
  let summary = "The bytes of a buffer as another type and shape";
  let description = [{
    The source has to be contiguous and no smaller than the result.
  }];
  let arguments = (ins TTG_MemDescType:$src);
  let results = (outs TTG_MemDescType:$result);
  let assemblyFormat = [{
    $src attr-dict `:` qualified(type($src)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def TTG_LocalLoadOp : TTG_Op<"local_load", [
    Layouts<"Same">, Anchors<"Buffer">,
    Means<"Memory">
]> {
  let summary = "Reads a buffer into registers";
  let description = [{
    `token` orders the load after the asynchronous copy that wrote the buffer.
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
  let hasFolder = 1;
  let hasVerifier = 1;
}

def TTG_LocalStoreOp : TTG_Op<"local_store", [
    Layouts<"Same">, Anchors<"Buffer">,
    Means<"Memory">
]> {
  let summary = "Writes registers into a buffer";
  let description = "";
  let arguments = (ins
    TT_Tensor:$src,
    Arg<TTG_MemDescType, "", [MemWrite<SharedMemory>]>:$dst
  );
  let assemblyFormat = [{
    $src `,` $dst attr-dict `:` type($src) `->` qualified(type($dst))
  }];
  let hasVerifier = 1;
}

def TTG_LocalBarrierOp : TTG_Op<"local_barrier", [
    Synchronizes<"Block">, Means<"Nothing">
]> {
  let summary = "Waits for all threads of the block and their shared memory";
  let description = [{
    What the threads wrote to shared memory before is visible to all of them
    afterwards. Nothing is said about global memory.
  }];
  let assemblyFormat = "attr-dict";
}

def TTG_BarrierOp : TTG_Op<"barrier", [Synchronizes<"Block">, Means<"Nothing">]> {
  let summary = "Waits for all threads of the block and the named memories";
  let description = [{
    Printed by Triton 3.9 where 3.6 prints `gpu.barrier` or
    `ttg.local_barrier`; `addrSpace` names the memories it orders.
  }];
  let arguments = (ins OptionalAttr<StrAttr>:$addrSpace);
  let assemblyFormat = "custom<AddressSpaces>($addrSpace) attr-dict";
}

def TTG_AsyncCopyGlobalToLocalOp : TTG_Op<"async_copy_global_to_local", [
    AttrSizedOperandSegments,
    OptionalTypesMatchWith<"mask type matches src type", "src", "mask",
                           "bool_like">,
    OptionalTypesMatchWith<"other type matches src type", "src", "other",
                           "pointee">,
    Asynchronous<"Issues", "Copy">,
    Means<"Memory">
]> {
  let summary = "Copies from global to shared memory without waiting";
  let description = [{
    As `tt.load`, but into a buffer. `contiguity` is the number of elements
    that one vector access may move even where the IR does not show the
    alignment.
  }];
  let arguments = (ins
    Arg<TT_PtrTensor, "", [MemRead<GlobalMemory>]>:$src,
    Arg<TTG_MemDescType, "", [MemWrite<SharedMemory>]>:$result,
    Optional<TT_BoolTensor>:$mask,
    Optional<TT_Type>:$other,
    DefaultValuedAttr<TT_CacheModifierAttr, "none">:$cache,
    DefaultValuedAttr<TT_EvictionPolicyAttr, "evict_normal">:$evict,
    DefaultValuedAttr<BoolAttr, "false">:$isVolatile,
    DefaultValuedAttr<I32Attr, "1">:$contiguity
  );
  let results = (outs TTG_AsyncToken:$token);
  let assemblyFormat = [{
    $src `,` $result (`mask` $mask^)? (`other` $other^)?
    oilist(`cacheModifier` `=` $cache | `evictionPolicy` `=` $evict)
    attr-dict `:` type($src) `->` type($result)
  }];
  let hasVerifier = 1;
}

def TTG_AsyncCommitGroupOp : TTG_Op<"async_commit_group", [
    Asynchronous<"Commits", "Copy">,
    Means<"Memory">
]> {
  let summary = "Closes a group of asynchronous copies";
  let description = "";
  let arguments = (ins Variadic<TTG_AsyncToken>:$inputTokens);
  let results = (outs TTG_AsyncToken:$asyncToken);
  let assemblyFormat = "(`tokens` $inputTokens^)? attr-dict";
}

def TTG_AsyncWaitOp : TTG_Op<"async_wait", [
    Asynchronous<"Waits", "Copy">, Means<"Memory">
]> {
  let summary = "Waits until at most `num` groups of copies are pending";
  let description = [{
    On targets whose hardware counts instructions instead of groups (AMD),
    tokens, where there are any, say alone what is waited for: the groups or
    copies that made them. Triton's pipelines for AMD give tokens and a `num`
    of 0. There each wait becomes one for a number of instructions, the
    smallest that follow what is waited for on any way through the function.
  }];
  let arguments = (ins Variadic<TTG_AsyncToken>:$asyncToken, I32Attr:$num);
  let results = (outs TTG_AsyncToken:$retToken);
  let assemblyFormat = "($asyncToken^)? attr-dict";
}

def TTG_GlobalScratchAllocOp : TTG_Op<"global_scratch_alloc", [Means<"Descriptor">]> {
  let summary = "Global memory private to this program";
  let description = [{
    Given out from the scratch buffer that the launcher passes.
  }];
  let arguments = (ins I32Attr:$nbytes, I32Attr:$alignment);
  let results = (outs
    Res<TT_Ptr, "", [MemAlloc<GlobalMemory>]>:$result
  );
  let assemblyFormat = "attr-dict `:` qualified(type($result))";
}

} // opDocGroup

#endif // TTG_LOCAL_MEMORY
