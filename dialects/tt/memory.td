// Loads, stores and atomics through pointers.

#ifndef TT_MEMORY
#define TT_MEMORY

include "tt/types.td"
include "tt/attributes.td"

def TT_MemoryOps : OpDocGroup {
  let summary = "Global memory";
  let description = "";
}

let opDocGroup = TT_MemoryOps in {

def TT_LoadOp : TT_Op<"load", [
    SameLoadStoreOperandsAndResultShape,
    SameLoadStoreOperandsAndResultEncoding,
    AttrSizedOperandSegments,
    MemoryEffectsOpInterface,
    InferTypeOpInterface,
    TypesMatchWith<"result matches ptr type", "ptr", "result", "pointee">,
    OptionalTypesMatchWith<"mask type matches ptr type", "ptr", "mask",
                           "bool_like_pointee">,
    OptionalTypesMatchWith<"other matches ptr type", "ptr", "other", "pointee">,
    Anchors<"Load">,
    Means<"Memory">, Integers<"Read">
]> {
  let summary = "Loads through a pointer or a tensor of pointers";
  let description = [{
    Elements whose `mask` is false are not read; they are `other`, or undefined
    without it. Through a pointer to a tensor the block is checked against the
    extents of the tensor in the dimensions of `boundaryCheck`, and `padding`
    says what is read outside.

    ```mlir
    %x = tt.load %p, %m, %zero cacheModifier = cg : tensor<64x!tt.ptr<f32>>
    ```
  }];
  let arguments = (ins
    AnyTypeOf<[TT_PtrLike, TT_TensorPtr]>:$ptr,
    Optional<TT_BoolLike>:$mask,
    Optional<TT_Type>:$other,
    DefaultValuedAttr<DenseI32ArrayAttr, "[]">:$boundaryCheck,
    OptionalAttr<TT_PaddingOptionAttr>:$padding,
    DefaultValuedAttr<TT_CacheModifierAttr, "none">:$cache,
    DefaultValuedAttr<TT_EvictionPolicyAttr, "evict_normal">:$evict,
    DefaultValuedAttr<BoolAttr, "false">:$isVolatile
  );
  let results = (outs TT_Type:$result);
  let assemblyFormat = [{
    $ptr (`,` $mask^)? (`,` $other^)?
    oilist(`cacheModifier` `=` $cache | `evictionPolicy` `=` $evict)
    attr-dict `:` type($ptr)
  }];
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

def TT_StoreOp : TT_Op<"store", [
    SameLoadStoreOperandsShape,
    SameLoadStoreOperandsEncoding,
    TypesMatchWith<"value type matches ptr type", "ptr", "value", "pointee">,
    OptionalTypesMatchWith<"mask type matches ptr type", "ptr", "mask",
                           "bool_like_pointee">,
    Anchors<"Store">,
    Means<"Memory">
]> {
  let summary = "Stores through a pointer or a tensor of pointers";
  let description = [{
    Elements whose `mask` is false are not written.
  }];
  let arguments = (ins
    Arg<AnyTypeOf<[TT_PtrLike, TT_TensorPtr]>, "",
        [MemWrite<GlobalMemory>]>:$ptr,
    TT_Type:$value,
    Optional<TT_BoolLike>:$mask,
    DefaultValuedAttr<DenseI32ArrayAttr, "[]">:$boundaryCheck,
    DefaultValuedAttr<TT_CacheModifierAttr, "none">:$cache,
    DefaultValuedAttr<TT_EvictionPolicyAttr, "evict_normal">:$evict
  );
  let assemblyFormat = [{
    $ptr `,` $value (`,` $mask^)?
    oilist(`cacheModifier` `=` $cache | `evictionPolicy` `=` $evict)
    attr-dict `:` type($ptr)
  }];
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

def TT_AtomicRmwOp : TT_Op<"atomic_rmw", [
    SameOperandsAndResultShape,
    SameOperandsAndResultEncoding,
    TypesMatchWith<"ptr type matches value type", "val", "ptr",
                   "pointer_like">,
    OptionalTypesMatchWith<"mask type matches value type", "val", "mask",
                           "bool_like">,
    Anchors<"Update">, UsesScratch<"Update">,
    Means<"Memory">
]> {
  let summary = "Updates memory atomically and returns what was there";
  let description = [{
    Each element of the result is the value before its update; it is undefined
    where `mask` is false.
  }];
  let arguments = (ins
    TT_AtomicRmwAttr:$atomic_rmw_op,
    Arg<TT_PtrLike, "", [MemRead<GlobalMemory>, MemWrite<GlobalMemory>]>:$ptr,
    TT_Type:$val,
    Optional<TT_BoolLike>:$mask,
    TT_MemSemanticAttr:$sem,
    TT_MemSyncScopeAttr:$scope
  );
  let results = (outs TT_Type:$result);
  let assemblyFormat = [{
    $atomic_rmw_op `,` $sem `,` $scope `,` $ptr `,` $val (`,` $mask^)?
    attr-dict `:` functional-type(operands, $result)
  }];
  let hasVerifier = 1;
}

def TT_AtomicCasOp : TT_Op<"atomic_cas", [
    SameOperandsAndResultShape,
    SameOperandsAndResultEncoding,
    TypesMatchWith<"ptr type matches cmp type", "cmp", "ptr", "pointer_like">,
    TypesMatchWith<"ptr type matches value type", "val", "ptr", "pointer_like">,
    Anchors<"CompareAndSwap">, UsesScratch<"Update">,
    Means<"Memory">
]> {
  let summary = "Replaces memory atomically where it equals `cmp`";
  let description = [{
    Returns what was in memory before.
  }];
  let arguments = (ins
    Arg<TT_PtrLike, "", [MemRead<GlobalMemory>, MemWrite<GlobalMemory>]>:$ptr,
    TT_Type:$cmp,
    TT_Type:$val,
    TT_MemSemanticAttr:$sem,
    TT_MemSyncScopeAttr:$scope
  );
  let results = (outs TT_Type:$result);
  let assemblyFormat = [{
    $sem `,` $scope `,` $ptr `,` $cmp `,` $val attr-dict `:`
    functional-type(operands, $result)
  }];
}

def TT_MakeTensorPtrOp : TT_Op<"make_tensor_ptr", [
    Pure, SameVariadicOperandSize,
    TypesMatchWith<"base points to the element type of the block", "result",
                   "base", "pointer_to_block_element">,
    Means<"Descriptor">
]> {
  let summary = "Makes a pointer to a block of a tensor in global memory";
  let description = [{
    `base`, `shape` and `strides` describe the whole tensor (strides in
    elements), `offsets` the first element of the block and `order` the
    dimensions from the fastest to the slowest.
  }];
  let arguments = (ins
    TT_Ptr:$base,
    Variadic<I64>:$shape,
    Variadic<I64>:$strides,
    Variadic<I32>:$offsets,
    DenseI32ArrayAttr:$order
  );
  let results = (outs TT_TensorPtr:$result);
  let assemblyFormat = [{
    $base `,` `[` $shape `]` `,` `[` $strides `]` `,` `[` $offsets `]`
    attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
}

def TT_AdvanceOp : TT_Op<"advance", [
    Pure,
    TypesMatchWith<"result type matches ptr type", "result", "ptr", "same">,
    Means<"Descriptor">
]> {
  let summary = "Moves a pointer to a block by one offset per dimension";
  let description = "";
  let arguments = (ins TT_TensorPtr:$ptr, Variadic<I32>:$offsets);
  let results = (outs TT_TensorPtr:$result);
  let assemblyFormat = [{
    $ptr `,` `[` $offsets `]` attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

} // opDocGroup

#endif // TT_MEMORY
