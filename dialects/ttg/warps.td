// Work split among groups of warps, and the helpers of the loop pipeliner.

#ifndef TTG_WARPS
#define TTG_WARPS

include "ttg/types.td"

def TTG_WarpOps : OpDocGroup {
  let summary = "Groups of warps";
  let description = "";
}

let opDocGroup = TTG_WarpOps in {

def TTG_WarpSpecializeOp : TTG_Op<"warp_specialize", [
    RecursiveMemoryEffects, RecursivelySpeculatable, AsyncRegions,
    RegionBranchOpInterface,
    Control<"Concurrent">, UsesScratch<"Captures">,
    Means<"Control">
]> {
  let summary = "Runs different code on different groups of warps";
  let description = [{
    The default region runs on the warps that reach the op and may use any
    value in scope. Each partition runs at the same time on warps of its own
    and sees only the captured operands, as block arguments. All groups meet
    at the end of the op.

    ```mlir
    %0 = ttg.warp_specialize(%a)
    default {
      ttg.warp_yield %x : i32
    }
    partition0(%arg0: i32) num_warps(4) {
      ttg.warp_return
    } : (i32) -> i32
    ```
  }];
  let arguments = (ins
    Variadic<AnyType>:$explicitCaptures,
    DenseI32ArrayAttr:$partitionNumWarps,
    OptionalAttr<DenseI32ArrayAttr>:$warpGroupStartIds,
    OptionalAttr<DenseI32ArrayAttr>:$requestedRegisters,
    OptionalAttr<DenseI32ArrayAttr>:$actualRegisters
  );
  let results = (outs Variadic<AnyType>:$defaultPassthrough);
  let regions = (region
    MinSizedRegion<1>:$defaultRegion,
    SizedRegion<1>:$partitionOpHolder
  );
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let hasCanonicalizer = 1;
  let hasCustomAssemblyFormat = 1;
}

def TTG_WarpSpecializePartitionsOp : TTG_Op<"warp_specialize.partitions", [
    IsolatedFromAbove, RecursiveMemoryEffects, RecursivelySpeculatable,
    Terminator, ParentOp<"ttg.warp_specialize">,
    Control<"Partitions">,
    Means<"Control">
]> {
  let summary = "Holds the partitions of a warp_specialize";
  let description = [{
    Only a whole op can be isolated from above, so the isolated regions are
    kept in this one. It is not written in the text form.
  }];
  let regions = (region VariadicRegion<MinSizedRegion<1>>:$partitionRegions);
}

def TTG_WarpYieldOp : TTG_Op<"warp_yield", [
    Pure, Terminator, ReturnLike, ParentOp<"ttg.warp_specialize">,
    RegionBranchTerminatorOpInterface,
    Control<"ConcurrentYield">,
    Means<"Control">
]> {
  let summary = "Ends the default region with the results of the op";
  let description = "";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "($values^)? attr-dict (`:` type($values)^)?";
  let hasVerifier = 1;
}

def TTG_WarpReturnOp : TTG_Op<"warp_return", [
    Pure, Terminator, ReturnLike, ParentOp<"ttg.warp_specialize.partitions">,
    Control<"PartitionEnd">,
    Means<"Control">
]> {
  let summary = "Ends a partition";
  let description = "";
  let assemblyFormat = "attr-dict";
}

def TTG_PredicateStageOp : TTG_Op<"predicate_stage", [
    Pure, AllTypesMatch<["iv", "ub", "step"]>
]> {
  let summary = "Whether a stage of a pipelined loop runs in this iteration";
  let description = "";
  let arguments = (ins
    AnySignlessIntegerOrIndex:$iv,
    AnySignlessIntegerOrIndex:$ub,
    AnySignlessIntegerOrIndex:$step,
    I32Attr:$maxStage,
    I32Attr:$stage
  );
  let results = (outs I1:$result);
  let assemblyFormat = [{
    $iv `,` $ub `,` $step `maxStage` $maxStage `stage` $stage attr-dict `:`
    type($iv) `->` type($result)
  }];
}

def TTG_MaskOp : TTG_Op<"mask", [SingleBlock, Control<"Masked">]> {
  let summary = "Runs its region where a predicate holds";
  let description = "";
  let arguments = (ins I1:$pred);
  let results = (outs Variadic<AnyType>:$result);
  let regions = (region SizedRegion<1>:$region);
}

def TTG_MaskReturnOp : TTG_Op<"mask.return", [
    ParentOp<"ttg.mask">, Pure, Terminator, ReturnLike,
    Control<"Result">
]> {
  let summary = "Yields the results of a masked region";
  let description = "";
  let arguments = (ins Variadic<AnyType>:$result);
  let assemblyFormat = "$result attr-dict `:` type($result)";
}

} // opDocGroup

#endif // TTG_WARPS
