// Rearranging and converting tensors in registers.

#ifndef AMDG_REGISTERS
#define AMDG_REGISTERS

include "amdg/dialect.td"

def AMDG_RegisterOps : OpDocGroup {
  let summary = "Tensors in registers";
  let description = "";
}

let opDocGroup = AMDG_RegisterOps in {

def AMDG_ExtractSliceOp : AMDG_Op<"extract_slice", [Pure, Means<"Shape">]> {
  let summary = "A part of a tensor that needs no data movement";
  let description = [{
    `static_offsets` is the first element. Offsets and extents are multiples of
    the tile that all threads hold together, so that every thread only selects
    some of its registers.
  }];
  let arguments = (ins
    TensorWith<[AnyType]>:$source,
    DenseI64ArrayAttr:$static_offsets
  );
  let results = (outs TensorWith<[AnyType]>:$result);
  let assemblyFormat = [{
    $source $static_offsets attr-dict `:` type($source) `to` type($result)
  }];
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

def AMDG_ConcatOp : AMDG_Op<"concat", [Pure, Means<"Shape">]> {
  let summary = "Tensors of one type put together without data movement";
  let description = [{
    The operands fill the result in row-major order. All layouts agree on the
    tile that the threads hold together.
  }];
  let arguments = (ins Variadic<TT_Tensor>:$sources);
  let results = (outs TensorWith<[AnyType]>:$result);
  let assemblyFormat = [{
    $sources attr-dict `:` type($sources) `->` type($result)
  }];
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

def AMDG_InThreadTransposeOp : AMDG_Op<"in_thread_transpose", [
    Pure, Means<"Shape">
]> {
  let summary = "Transposes what each thread holds in its registers";
  let description = [{
    A `ttg.convert_layout` from a blocked layout to the one whose registers
    run along the other of the two innermost dimensions. It is kept apart so
    that it is not optimised away.
  }];
  let arguments = (ins TT_Tensor:$src);
  let results = (outs TT_Tensor:$result);
  let assemblyFormat = "$src attr-dict `:` type($src) `->` type($result)";
  let hasVerifier = 1;
}

def AMDG_UpcastMXFPOp : AMDG_Op<"upcast_mxfp", [
    Pure, UsesScratch<"Scales">, Means<"Product">
]> {
  let summary = "Microscaled floats to f16 or bf16, scale applied";
  let description = "";
  let arguments = (ins
    TT_Tensor:$src,
    TT_Tensor:$scale,
    TT_ScaleDotElemTypeAttr:$fp_type,
    BoolAttr:$fastMath
  );
  let results = (outs TT_Tensor:$result);
  let assemblyFormat = [{
    $src `,` $scale `fp_type` `=` $fp_type attr-dict `:` type($src) `,`
    type($scale) `->` type($result)
  }];
  let hasVerifier = 1;
}

def AMDG_ScaledUpcastFp4Op : AMDG_Op<"scaled_upcast_fp4", [
    Pure, Means<"Product">
]> {
  let summary = "4-bit floats, two to a byte along `axis`, times their scale";
  let description = [{
    The scale is a power of two written as bf16.
  }];
  let arguments = (ins
    TensorWith<[I8]>:$input,
    TensorWith<[BF16]>:$scale,
    I32Attr:$axis
  );
  let results = (outs TensorWith<[F16, BF16, F32]>:$output);
  let assemblyFormat = [{
    $input `scale` $scale attr-dict `:` type($input) `,` type($scale) `->`
    type($output)
  }];
  let hasVerifier = 1;
}

def AMDG_ScaledUpcastFp8Op : AMDG_Op<"scaled_upcast_fp8", [
    Pure, Elementwise, SameOperandsAndResultShape,
    SameOperandsAndResultEncoding,
    Means<"Product">
]> {
  let summary = "8-bit floats times their scale";
  let description = [{
    The scale is a power of two written as bf16.
  }];
  let arguments = (ins
    TensorWith<[F8E4M3FN, F8E5M2]>:$input,
    TensorWith<[BF16]>:$scale
  );
  let results = (outs TensorWith<[F16, BF16, F32]>:$output);
  let assemblyFormat = [{
    $input `scale` $scale attr-dict `:` type($input) `,` type($scale) `->`
    type($output)
  }];
}

} // opDocGroup

#endif // AMDG_REGISTERS
