// Ops that create tensors or rearrange their elements.

#ifndef TT_SHAPE
#define TT_SHAPE

include "tt/types.td"
include "tt/attributes.td"

def TT_ShapeOps : OpDocGroup {
  let summary = "Creating and reshaping tensors";
  let description = "";
}

let opDocGroup = TT_ShapeOps in {

def TT_MakeRangeOp : TT_Op<"make_range", [
    Pure, Layouts<"Same">, Means<"Shape">, Integers<"Range">
]> {
  let summary = "The integers from `start` up to but without `end`";
  let description = [{
    A tensor of one dimension with `end - start` elements of 32 bits.
  }];
  let arguments = (ins I32Attr:$start, I32Attr:$end);
  let results = (outs TT_IntTensor:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let hasFolder = 1;
  let hasVerifier = 1;
}

def TT_SplatOp : TT_Op<"splat", [
    Pure, SameOperandsAndResultElementType, SameOperandsAndResultEncoding,
    Layouts<"Same">,
    Means<"Shape">, Integers<"Splat">
]> {
  let summary = "A tensor whose elements are all the same scalar";
  let description = "";
  let arguments = (ins TT_Type:$src);
  let results = (outs TT_Tensor:$result);
  let assemblyFormat = "$src attr-dict `:` type($src) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def TT_UnsplatOp : TT_Op<"unsplat", [
    Pure, InferTypeOpInterface, Layouts<"Same">,
    Means<"Shape">, Integers<"Element">
]> {
  let summary = "The only element of a tensor";
  let description = "";
  let arguments = (ins TT_Tensor:$src);
  let results = (outs TT_Type:$result);
  let assemblyFormat = "$src attr-dict `:` type($src)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def TT_ExpandDimsOp : TT_Op<"expand_dims", [
    Pure, InferTypeOpInterface, SameOperandsAndResultElementType,
    InferUpToLayoutEquality,
    Layouts<"ExpandDims">, UsesScratch<"Regrouping">,
    Means<"Shape">, Integers<"ExpandDims">
]> {
  let summary = "Inserts a dimension of extent 1 at `axis`";
  let description = [{
    The layout of the operand is the slice of the result's layout along
    `axis`.
  }];
  let arguments = (ins TT_Tensor:$src, I32Attr:$axis);
  let results = (outs TT_Tensor:$result);
  let assemblyFormat = "$src attr-dict `:` type($src) `->` type($result)";
  let hasCanonicalizer = 1;
  let hasFolder = 1;
}

def TT_ReshapeOp : TT_Op<"reshape", [
    Pure, SameOperandsAndResultElementType, Layouts<"Reshape">, UsesScratch<"Regrouping">,
    Means<"Shape">, Integers<"Reshape">
]> {
  let summary = "The same elements under another shape";
  let description = [{
    Elements keep their row-major order, unless `allow_reorder` leaves the
    order open. `efficient_layout` asks later passes to keep the layout of the
    result.
  }];
  let arguments = (ins
    TT_Tensor:$src,
    UnitAttr:$allow_reorder,
    UnitAttr:$efficient_layout
  );
  let results = (outs TT_Tensor:$result);
  let assemblyFormat = [{
    $src (`allow_reorder` $allow_reorder^)?
    (`efficient_layout` $efficient_layout^)?
    attr-dict `:` type($src) `->` type($result)
  }];
  let hasCanonicalizer = 1;
  let hasFolder = 1;
  let hasVerifier = 1;
}

def TT_BroadcastOp : TT_Op<"broadcast", [
    Pure, SameOperandsAndResultElementType, Layouts<"Same">,
    Means<"Shape">, Integers<"Broadcast">
]> {
  let summary = "Repeats a tensor along its dimensions of extent 1";
  let description = "";
  let arguments = (ins TT_Tensor:$src);
  let results = (outs TT_Tensor:$result);
  let assemblyFormat = "$src attr-dict `:` type($src) `->` type($result)";
  let hasCanonicalizer = 1;
  let hasFolder = 1;
  let hasVerifier = 1;
}

def TT_CatOp : TT_Op<"cat", [
    NoMemoryEffect, SameTypeOperands, SameOperandsAndResultElementType,
    Layouts<"Same">, UsesScratch<"Regrouping">,
    Means<"Shape">, Integers<"Concatenate">
]> {
  let summary = "Elements of two tensors in one";
  let description = [{
    The order of the elements in the result is not specified.
  }];
  let arguments = (ins TT_Tensor:$lhs, TT_Tensor:$rhs);
  let results = (outs TT_Tensor:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)
  }];
  let hasVerifier = 1;
}

def TT_JoinOp : TT_Op<"join", [
    Pure, SameTypeOperands, Layouts<"Join">, UsesScratch<"Regrouping">, Means<"Shape">, Integers<"Join">
]> {
  let summary = "Two tensors side by side in a new innermost dimension";
  let description = "";
  let arguments = (ins TT_Tensor:$lhs, TT_Tensor:$rhs);
  let results = (outs TT_Tensor:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)
  }];
  let hasVerifier = 1;
}

def TT_SplitOp : TT_Op<"split", [
    Pure, InferTypeOpInterface, InferUpToLayoutEquality,
    TypesMatchWith<"outLHS and outRHS types match", "outLHS", "outRHS", "same">,
    Layouts<"Split">, UsesScratch<"Regrouping">,
    Means<"Shape">, Integers<"Split">
]> {
  let summary = "The two halves of the innermost dimension";
  let description = [{
    The innermost dimension has extent 2 and is dropped.
  }];
  let arguments = (ins TT_Tensor:$src);
  let results = (outs TT_Tensor:$outLHS, TT_Tensor:$outRHS);
  let assemblyFormat = "$src attr-dict `:` type($src) `->` type($outLHS)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def TT_TransOp : TT_Op<"trans", [
    Pure, InferTypeOpInterface, InferUpToLayoutEquality,
    SameOperandsAndResultElementType,
    Layouts<"Transpose">, UsesScratch<"Regrouping">,
    Means<"Shape">, Integers<"Transpose">
]> {
  let summary = "Permutes the dimensions";
  let description = [{
    Dimension `i` of the result is dimension `order[i]` of the operand. The
    layout of the result is chosen so that no element moves.
  }];
  let arguments = (ins TT_Tensor:$src, DenseI32ArrayAttr:$order);
  let results = (outs TT_Tensor:$result);
  let assemblyFormat = "$src attr-dict `:` type($src) `->` type($result)";
  let hasFolder = 1;
  let hasVerifier = 1;
}

def TT_GatherOp : TT_Op<"gather", [
    Pure, InferTypeOpInterface, Layouts<"Gather">, UsesScratch<"Gather">,
    Means<"Shape">
]> {
  let summary = "Picks elements along one dimension by index";
  let description = [{
    The result has the shape of `indices`; its element is the element of `src`
    at the same position, except that the position on `axis` is the index.
    `efficient_layout` says that the layouts were chosen for this op and are to
    stay.
  }];
  let arguments = (ins
    TT_Tensor:$src,
    TT_IntTensor:$indices,
    I32Attr:$axis,
    UnitAttr:$efficient_layout
  );
  let results = (outs TT_Tensor:$result);
  let assemblyFormat = [{
    $src `[` $indices `]` attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

} // opDocGroup

#endif // TT_SHAPE
