// Tensor memory: allocation, loads, stores, views and copies.

#ifndef TTNG_TENSOR_MEMORY
#define TTNG_TENSOR_MEMORY

include "ttng/attributes.td"

def TTNG_TensorMemoryOps : OpDocGroup {
  let summary = "Tensor memory";
  let description = "";
}

let opDocGroup = TTNG_TensorMemoryOps in {

def TTNG_TMEMAllocOp : TTNG_Op<"tmem_alloc", [MemoryEffectsOpInterface]> {
  let summary = "Allocates a buffer in tensor memory";
  let description = "";
  let arguments = (ins Optional<TT_Tensor>:$src);
  let results = (outs
    TTG_MemDescType:$result,
    Optional<TTG_AsyncToken>:$token
  );
  let assemblyFormat = [{
    ($src^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def TTNG_TMEMLoadOp : TTNG_Op<"tmem_load"> {
  let summary = "Reads tensor memory into registers";
  let description = [{
    Only layouts that the load instructions produce are possible.
  }];
  let arguments = (ins
    Arg<TTG_MemDescType, "", [MemRead<TensorMemory>]>:$src,
    Optional<TTG_AsyncToken>:$dep
  );
  let results = (outs
    TT_Tensor:$result,
    Optional<TTG_AsyncToken>:$token
  );
  let assemblyFormat = [{
    $src `` custom<Token>($dep, type($token)) attr-dict `:`
    qualified(type($src)) `->` type($result)
  }];
  let hasVerifier = 1;
}

def TTNG_TMEMStoreOp : TTNG_Op<"tmem_store"> {
  let summary = "Writes registers into tensor memory";
  let description = "";
  let arguments = (ins
    Arg<TTG_MemDescType, "", [MemWrite<TensorMemory>]>:$dst,
    Optional<TTG_AsyncToken>:$dep,
    TT_Tensor:$src,
    I1:$pred
  );
  let results = (outs Optional<TTG_AsyncToken>:$token);
  let assemblyFormat = [{
    $src `,` $dst `` custom<Token>($dep, type($token)) `,` $pred attr-dict `:`
    type($src) `->` qualified(type($dst))
  }];
  let hasVerifier = 1;
}

def TTNG_TMEMSubSliceOp : TTNG_Op<"tmem_subslice", [Pure]> {
  let summary = "A range of columns of a buffer in tensor memory";
  let description = [{
    `N` is the first column.
  }];
  let arguments = (ins TTG_MemDescType:$src, I32Attr:$N);
  let results = (outs TTG_MemDescType:$result);
  let assemblyFormat = [{
    $src attr-dict `:` qualified(type($src)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def TTNG_TMEMCopyOp : TTNG_Op<"tmem_copy", [
    Asynchronous<"Issues", "Product">
]> {
  let summary = "Copies from shared to tensor memory without waiting";
  let description = [{
    Into an accumulator layout elements keep their coordinates. Into the layout
    of scales the source is a series of blocks of 32 rows by 16 bytes, the form
    in which scales of a matrix product are stored.
  }];
  let arguments = (ins
    Arg<TTG_MemDescType, "", [MemRead<SharedMemory>]>:$src,
    Arg<TTG_MemDescType, "", [MemWrite<TensorMemory>]>:$dst,
    Optional<TTG_MemDescType>:$barrier
  );
  let assemblyFormat = [{
    $src `,` $dst (`,` $barrier^)? attr-dict `:` qualified(type(operands))
  }];
  let hasVerifier = 1;
}

} // opDocGroup

#endif // TTNG_TENSOR_MEMORY
