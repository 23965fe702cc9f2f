// Products of matrices, and the formats of their operands.

#ifndef TT_MATRIX
#define TT_MATRIX

include "tt/types.td"
include "tt/attributes.td"

def TT_MatrixOps : OpDocGroup {
  let summary = "Matrix products";
  let description = "";
}

let opDocGroup = TT_MatrixOps in {

def TT_DotOp : TT_Op<"dot", [
    Pure, InferTypeOpInterface,
    TypesMatchWith<"result's type matches accumulator's type", "d", "c", "same">,
    Layouts<"Product">,
    Means<"Product">
]> {
  let summary = "d = a * b + c for matrices or batches of them";
  let description = [{
    `inputPrecision` matters when `a` and `b` are f32: `tf32` rounds them for
    the matrix unit, `tf32x3`, `bf16x3` and `bf16x6` sum several products of
    shorter numbers, `ieee` keeps f32. `maxNumImpreciseAcc` bounds how many
    products of 8-bit floats may be summed inside the matrix unit before they
    are added in f32.
  }];
  let arguments = (ins
    TT_FpIntTensor:$a,
    TT_FpIntTensor:$b,
    TT_FpIntTensor:$c,
    DefaultValuedAttr<TT_InputPrecisionAttr, "ieee">:$inputPrecision,
    DefaultValuedAttr<I32Attr, "0">:$maxNumImpreciseAcc
  );
  let results = (outs TT_FpIntTensor:$d);
  let assemblyFormat = [{
    $a `,` $b `,` $c (`,` `inputPrecision` `=` $inputPrecision^)? attr-dict `:`
    type($a) `*` type($b) `->` type($d)
  }];
  let hasVerifier = 1;
}

def TT_DotScaledOp : TT_Op<"dot_scaled", [
    Pure, AttrSizedOperandSegments,
    TypesMatchWith<"result's type matches accumulator's type", "d", "c", "same">,
    Layouts<"Product">,
    Means<"Product">
]> {
  let summary = "Matrix product of operands with one scale per block";
  let description = [{
    d = scale(a, a_scale) * scale(b, b_scale) + c, where `scale` multiplies
    each group of 16 or 32 elements along K by its power of two. Elements of 4
    bits lie two to a byte: along K, unless `lhs_k_pack` or `rhs_k_pack` is
    false, then along M or N.
  }];
  let arguments = (ins
    TensorWith<[TT_Float, I8]>:$a,
    TensorWith<[TT_Float, I8]>:$b,
    TT_FloatTensor:$c,
    Optional<TensorWith<[TT_Float, I8]>>:$a_scale,
    Optional<TensorWith<[TT_Float, I8]>>:$b_scale,
    TT_ScaleDotElemTypeAttr:$a_elem_type,
    TT_ScaleDotElemTypeAttr:$b_elem_type,
    BoolAttr:$fastMath,
    DefaultValuedAttr<BoolAttr, "true">:$lhs_k_pack,
    DefaultValuedAttr<BoolAttr, "true">:$rhs_k_pack
  );
  let results = (outs TT_FloatTensor:$d);
  let assemblyFormat = [{
    $a (`scale` $a_scale^)? `,` $b (`scale` $b_scale^)? `,` $c
    `lhs` `=` $a_elem_type `rhs` `=` $b_elem_type attr-dict
    `:` type($a) (`,` type($a_scale)^)? `*` type($b) (`,` type($b_scale)^)?
    `->` type($d)
  }];
  let hasVerifier = 1;
}

} // opDocGroup

#endif // TT_MATRIX
