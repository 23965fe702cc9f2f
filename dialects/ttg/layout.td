// Changing layouts, and small conversions that belong to a layout.

#ifndef TTG_LAYOUT
#define TTG_LAYOUT

include "ttg/types.td"

def TTG_LayoutOps : OpDocGroup {
  let summary = "Layouts in registers";
  let description = "";
}

let opDocGroup = TTG_LayoutOps in {

def TTG_ConvertLayoutOp : TTG_Op<"convert_layout", [
    SameOperandsAndResultShape, SameOperandsAndResultElementType, Pure,
    UsesScratch<"Conversion">,
    Means<"Shape">, Integers<"Same">
]> {
  let summary = "The same tensor in another layout";
  let description = [{
    Elements move between registers, lanes, warps or blocks as the two layouts
    demand; often none does.
  }];
  let arguments = (ins TT_Tensor:$src);
  let results = (outs TT_Tensor:$result);
  let assemblyFormat = "$src attr-dict `:` type($src) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def TTG_Fp4ToFpOp : TTG_Op<"fp4_to_fp", [
    Pure, Layouts<"Unpack">, Means<"Shape">
]> {
  let summary = "Unpacks 4-bit floats (e2m1) from bytes";
  let description = [{
    The lower half of a byte is the first of two elements that are adjacent
    along `axis`; that extent doubles.
  }];
  let arguments = (ins TensorWith<[I8]>:$src, I32Attr:$axis);
  let results = (outs TT_FloatTensor:$result);
  let assemblyFormat = "$src attr-dict `:` type($src) `->` type($result)";
  let hasVerifier = 1;
}

} // opDocGroup

#endif // TTG_LAYOUT
