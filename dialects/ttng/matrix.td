// Matrix products by groups of warps (wgmma) and by tcgen05.

#ifndef TTNG_MATRIX
#define TTNG_MATRIX

include "ttng/attributes.td"

def TTNG_MatrixOps : OpDocGroup {
  let summary = "Matrix products";
  let description = "";
}

let opDocGroup = TTNG_MatrixOps in {

def TTNG_WarpGroupDotOp : TTNG_Op<"warp_group_dot", [
    InferTypeOpInterface, MemoryEffectsOpInterface, TypesMatchWith<"result's type matches accumulator's type", "d", "c", "same">,
    Asynchronous<"Issues", "Product">,
    Means<"Product">
]> {
  let summary = "d = a * b + c by a group of four warps";
  let description = [{
    `a` is in registers or shared memory, `b` in shared memory. With `isAsync`
    the result is there only after `ttng.warp_group_dot_wait`. `useC` false
    leaves `c` out.
  }];
  let arguments = (ins
    TTG_TensorOrMemDesc:$a,
    TTG_MemDescType:$b,
    TT_FpIntTensor:$c,
    Optional<I1>:$useC,
    DefaultValuedAttr<TT_InputPrecisionAttr, "ieee">:$inputPrecision,
    DefaultValuedAttr<I32Attr, "0">:$maxNumImpreciseAcc,
    DefaultValuedAttr<BoolAttr, "false">:$isAsync
  );
  let results = (outs TT_FpIntTensor:$d);
  let assemblyFormat = [{
    $a `,` $b `,` $c (`,` $useC^)? attr-dict `:` type($a) `*`
    qualified(type($b)) `->` type($d)
  }];
  let hasVerifier = 1;
}

def TTNG_WarpGroupDotWaitOp : TTNG_Op<"warp_group_dot_wait", [
    InferTypeOpInterface, AllTypesMatch<["inputs", "outputs"]>,
    Asynchronous<"Waits", "Product">,
    Means<"Shape">
]> {
  let summary = "Waits until at most `pendings` products are running";
  let description = [{
    The operands are the results waited for, and buffers that must stay alive
    until then; they are passed on.
  }];
  let arguments = (ins Variadic<TTG_TensorOrMemDesc>:$inputs, I32Attr:$pendings);
  let results = (outs Variadic<TTG_TensorOrMemDesc>:$outputs);
  let assemblyFormat = "$inputs attr-dict `:` type($inputs)";
  let hasVerifier = 1;
}

def TTNG_TCGen5MMAOp : TTNG_Op<"tc_gen5_mma", [
    MemoryEffectsOpInterface, AttrSizedOperandSegments,
    Asynchronous<"Issues", "Product">
]> {
  let summary = "d = a * b + d in tensor memory";
  let description = [{
    `useD` false overwrites `d`; where `pred` is false nothing happens. With
    `is_async` the barriers are arrived at when the product is complete.
    `two_ctas` makes two blocks of the cluster work on one product. The tokens
    order accesses to the accumulator.
  }];
  let arguments = (ins
    TTG_MemDescType:$a,
    TTG_MemDescType:$b,
    TTG_MemDescType:$d,
    Optional<TTG_AsyncToken>:$acc_dep,
    I1:$useD,
    I1:$pred,
    Variadic<TTG_MemDescType>:$barriers,
    Variadic<I1>:$barrier_preds,
    UnitAttr:$is_async,
    UnitAttr:$two_ctas
  );
  let results = (outs Optional<TTG_AsyncToken>:$token);
  let assemblyFormat = [{
    $a `,` $b `,` $d `` custom<Token>($acc_dep, type($token)) `,` $useD `,`
    $pred `` custom<BarriersAndPreds>($barriers, $barrier_preds)
    attr-dict `:` qualified(type($a)) `,` qualified(type($b)) `,`
    qualified(type($d)) (`,` qualified(type($barriers))^)?
  }];
  let hasVerifier = 1;
}

def TTNG_TCGen5MMAScaledOp : TTNG_Op<"tc_gen5_mma_scaled", [
    MemoryEffectsOpInterface, AttrSizedOperandSegments,
    Asynchronous<"Issues", "Product">
]> {
  let summary = "As tc_gen5_mma, with one scale per block of each operand";
  let description = "";
  let arguments = (ins
    TTG_MemDescType:$a,
    TTG_MemDescType:$b,
    TTG_MemDescType:$d,
    Optional<TTG_AsyncToken>:$acc_dep,
    TTG_MemDescType:$a_scale,
    TTG_MemDescType:$b_scale,
    TT_ScaleDotElemTypeAttr:$a_type,
    TT_ScaleDotElemTypeAttr:$b_type,
    I1:$useD,
    I1:$pred,
    Variadic<TTG_MemDescType>:$barriers,
    Variadic<I1>:$barrier_preds,
    UnitAttr:$is_async
  );
  let results = (outs Optional<TTG_AsyncToken>:$token);
  let assemblyFormat = [{
    $a `,` $b `,` $d `` custom<Token>($acc_dep, type($token)) `,` $a_scale `,`
    $b_scale `,` $useD `,` $pred `lhs` `=` $a_type `rhs` `=` $b_type
    `` custom<BarriersAndPreds>($barriers, $barrier_preds)
    attr-dict `:` qualified(type($a)) `,` qualified(type($b)) `,`
    qualified(type($d)) `,` qualified(type($a_scale)) `,`
    qualified(type($b_scale)) (`,` qualified(type($barriers))^)?
  }];
  let hasVerifier = 1;
}

def TTNG_TCGen5CommitOp : TTNG_Op<"tc_gen5_commit", [
    Asynchronous<"Commits", "Product">
]> {
  let summary = "Arrives at a barrier when all earlier tcgen5 work is complete";
  let description = [{
    Commits complete in the order in which they were issued.
  }];
  let arguments = (ins
    Arg<TTG_MemDescType, "", [MemWrite<SharedMemory>]>:$barrier,
    Optional<I1>:$pred,
    UnitAttr:$two_ctas
  );
  let assemblyFormat = [{
    $barrier (`,` $pred^)? attr-dict `:` qualified(type($barrier))
  }];
  let hasVerifier = 1;
}

} // opDocGroup

#endif // TTNG_MATRIX
