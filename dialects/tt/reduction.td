// Reductions, scans and histograms.

#ifndef TT_REDUCTION
#define TT_REDUCTION

include "tt/types.td"
include "tt/attributes.td"

def TT_ReductionOps : OpDocGroup {
  let summary = "Reductions and scans";
  let description = "";
}

let opDocGroup = TT_ReductionOps in {

def TT_ReduceOp : TT_Op<"reduce", [
    Pure, SameOperandsShape, SameOperandsEncoding, SingleBlock,
    InferTypeOpInterface,
    Layouts<"Reduce">, UsesScratch<"Reduction">,
    Means<"Control">
]> {
  let summary = "Combines all elements along one dimension";
  let description = [{
    The region combines two elements of every operand (arguments: all left
    ones, then all right ones) and is taken to be associative and commutative.
    The dimension `axis` is dropped; a tensor of one dimension becomes a
    scalar.
  }];
  let arguments = (ins Variadic<TT_Tensor>:$srcs, I32Attr:$axis);
  let results = (outs Variadic<TT_Type>:$result);
  let regions = (region SizedRegion<1>:$combineOp);
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def TT_ReduceReturnOp : TT_Op<"reduce.return", [
    ParentOp<"tt.reduce">, Pure, Terminator, ReturnLike,
    Control<"Result">,
    Means<"Control">
]> {
  let summary = "Yields the combined elements";
  let description = "";
  let arguments = (ins Variadic<AnyType>:$result);
  let assemblyFormat = "$result attr-dict `:` type($result)";
}

def TT_ScanOp : TT_Op<"scan", [
    Pure, SameOperandsAndResultEncoding, SameOperandsAndResultShape,
    SingleBlock, InferTypeOpInterface,
    UsesScratch<"Scan">,
    Means<"Control">
]> {
  let summary = "Running combination along one dimension";
  let description = [{
    Element `i` of the result combines elements 0 to `i` along `axis`, or with
    `reverse` the elements from `i` to the last. The region is taken to be
    associative.
  }];
  let arguments = (ins
    Variadic<TT_Tensor>:$srcs,
    I32Attr:$axis,
    BoolAttr:$reverse
  );
  let results = (outs Variadic<TT_Tensor>:$result);
  let regions = (region SizedRegion<1>:$combineOp);
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def TT_ScanReturnOp : TT_Op<"scan.return", [
    ParentOp<"tt.scan">, Pure, Terminator, ReturnLike,
    Control<"Result">,
    Means<"Control">
]> {
  let summary = "Yields the combined elements";
  let description = "";
  let arguments = (ins Variadic<AnyType>:$result);
  let assemblyFormat = "$result attr-dict `:` type($result)";
}

def TT_HistogramOp : TT_Op<"histogram", [
    Pure,
    OptionalTypesMatchWith<"mask type matches src type", "src", "mask",
                           "bool_like">,
    Layouts<"Histogram">, UsesScratch<"Histogram">,
    Means<"Shape">
]> {
  let summary = "Counts how often each small integer occurs";
  let description = [{
    Element `i` of the result is the number of elements of `src` that equal
    `i`. Elements whose `mask` is false are not counted.
  }];
  let arguments = (ins TT_IntTensor:$src, Optional<TT_BoolLike>:$mask);
  let results = (outs TT_IntTensor:$result);
  let assemblyFormat = [{
    $src (`,` $mask^)? attr-dict `:` type($src) `->` type($result)
  }];
  let hasVerifier = 1;
}

} // opDocGroup

#endif // TT_REDUCTION
