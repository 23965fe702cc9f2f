// Ops that compute each element of their result from the same element of their
// operands.

#ifndef TT_ELEMENTWISE
#define TT_ELEMENTWISE

include "tt/types.td"
include "tt/attributes.td"

def TT_ElementwiseOps : OpDocGroup {
  let summary = "Elementwise computation";
  let description = "";
}

let opDocGroup = TT_ElementwiseOps in {

class TT_CastOp<string mnemonic, list<Trait> traits = []>
    : TT_Op<mnemonic, !listconcat(traits, [
        Elementwise, SameOperandsAndResultShape, SameOperandsAndResultEncoding,
        Pure])>;

class TT_FloatMathOp<string mnemonic, list<Trait> traits = []>
    : TT_Op<mnemonic, !listconcat(traits, [
        Elementwise, SameOperandsAndResultType, Pure])>;

def TT_IntToPtrOp : TT_CastOp<"int_to_ptr", [MeansOfElements<"Bits">, Integers<"Bits">]> {
  let summary = "Makes pointers of 64-bit integers";
  let description = "";
  let arguments = (ins TT_I64Like:$src);
  let results = (outs TT_PtrLike:$result);
  let assemblyFormat = "$src attr-dict `:` type($src) `->` type($result)";
}

def TT_PtrToIntOp : TT_CastOp<"ptr_to_int", [MeansOfElements<"Bits">, Integers<"Bits">]> {
  let summary = "Makes 64-bit integers of pointers";
  let description = "";
  let arguments = (ins TT_PtrLike:$src);
  let results = (outs TT_I64Like:$result);
  let assemblyFormat = "$src attr-dict `:` type($src) `->` type($result)";
}

def TT_BitcastOp : TT_CastOp<"bitcast", [MeansOfElements<"Bits">, Integers<"Bits">]> {
  let summary = "Reads the same bits as another type of equal width";
  let description = "";
  let arguments = (ins TT_Type:$src);
  let results = (outs TT_Type:$result);
  let assemblyFormat = "$src attr-dict `:` type($src) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def TT_FpToFpOp : TT_CastOp<"fp_to_fp", [MeansOfElements<"Conversion">, Integers<"Elementwise">]> {
  let summary = "Converts between float formats that arith cannot convert";
  let description = [{
    At least one side is an 8-bit format, or a rounding mode other than the
    default is asked for. A conversion to fewer bits needs `rounding`; one to
    more bits is exact and takes none.

    ```mlir
    %y = tt.fp_to_fp %x, rounding = rtne : tensor<64xf32> -> tensor<64xf8E5M2>
    ```
  }];
  let arguments = (ins
    TT_FloatLike:$src,
    OptionalAttr<TT_RoundingModeAttr>:$rounding
  );
  let results = (outs TT_FloatLike:$result);
  let assemblyFormat = [{
    $src attr-dict (`,` `rounding` `=` $rounding^)? `:` type($src) `->`
    type($result)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def TT_ClampFOp : TT_FloatMathOp<"clampf", [MeansOfElements<"Clamp">, Integers<"Elementwise">]> {
  let summary = "Limits a float to the range from `min` to `max`";
  let description = [{
    With `propagateNan = all` a NaN in `x` gives a NaN, otherwise it gives one
    of the bounds.
  }];
  let arguments = (ins
    TT_FloatLike:$x,
    TT_FloatLike:$min,
    TT_FloatLike:$max,
    TT_PropagateNanAttr:$propagateNan
  );
  let results = (outs TT_FloatLike:$result);
  let assemblyFormat = [{
    $x `,` $min `,` $max `,` `propagateNan` `=` $propagateNan attr-dict `:`
    type($result)
  }];
}

def TT_PreciseSqrtOp : TT_FloatMathOp<"precise_sqrt", [MeansOfElements<"Root">, Integers<"Elementwise">]> {
  let summary = "Square root, rounded to nearest even";
  let description = "";
  let arguments = (ins TT_FloatLike:$x);
  let results = (outs TT_FloatLike:$result);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}

def TT_PreciseDivFOp : TT_FloatMathOp<"precise_divf", [MeansOfElements<"Quotient">, Integers<"Elementwise">]> {
  let summary = "Quotient, rounded to nearest even";
  let description = "";
  let arguments = (ins TT_FloatLike:$x, TT_FloatLike:$y);
  let results = (outs TT_FloatLike:$result);
  let assemblyFormat = "$x `,` $y attr-dict `:` type($x)";
}

def TT_MulhiUIOp : TT_Op<"mulhiui", [
    Elementwise, SameOperandsAndResultType, Pure,
    MeansOfElements<"HighHalf">, Integers<"Elementwise">
]> {
  let summary = "Upper half of an unsigned product of twice the width";
  let description = "";
  let arguments = (ins TT_IntLike:$x, TT_IntLike:$y);
  let results = (outs TT_IntLike:$result);
  let assemblyFormat = "$x `,` $y attr-dict `:` type($x)";
  let hasFolder = 1;
}

def TT_AddPtrOp : TT_Op<"addptr", [
    Pure, Elementwise, SameOperandsAndResultShape,
    SameOperandsAndResultEncoding,
    TypesMatchWith<"result type matches ptr type", "result", "ptr", "same">,
    MeansOfElements<"Offset">, Integers<"Address">
]> {
  let summary = "Advances pointers by a number of elements";
  let description = [{
    The offset is signed and counts elements of the pointee type.
  }];
  let arguments = (ins TT_PtrLike:$ptr, TT_IntLike:$offset);
  let results = (outs TT_PtrLike:$result);
  let assemblyFormat = [{
    $ptr `,` $offset attr-dict `:` type($result) `,` type($offset)
  }];
  let hasFolder = 1;
}

def TT_ExternElementwiseOp : TT_Op<"extern_elementwise", [
    Elementwise, SameOperandsAndResultEncoding, SameVariadicOperandSize,
    MemoryEffectsOpInterface, ConditionallySpeculatable,
    MeansOfElements<"Library">, Integers<"IfPure">
]> {
  let summary = "Calls a function of a bitcode library for each element";
  let description = [{
    `symbol` is looked up in the library `libname` at `libpath`. A call that is
    not `pure` may read and write any memory and stays where it is.
  }];
  let arguments = (ins
    Variadic<TT_Type>:$srcs,
    StrAttr:$libname,
    StrAttr:$libpath,
    StrAttr:$symbol,
    BoolAttr:$pure
  );
  let results = (outs TT_Type:$result);
  let assemblyFormat = [{
    operands attr-dict `:` functional-type(operands, $result)
  }];
}

def TT_ElementwiseInlineAsmOp : TT_Op<"elementwise_inline_asm", [
    Elementwise, SameOperandsAndResultEncoding, MemoryEffectsOpInterface,
    ConditionallySpeculatable,
    Means<"Assembly">
]> {
  let summary = "Runs target assembly on groups of elements";
  let description = [{
    The text sees `packed_element` elements of each operand at a time, packed
    into registers of 32 bits where they are narrower. Which elements form a
    group is not specified.
  }];
  let arguments = (ins
    StrAttr:$asm_string,
    StrAttr:$constraints,
    BoolAttr:$pure,
    I32Attr:$packed_element,
    Variadic<TT_Type>:$args
  );
  let results = (outs Variadic<TT_Type>:$result);
  let assemblyFormat = [{
    $asm_string attr-dict ($args^ `:` type($args))? `->` type($result)
  }];
  let hasVerifier = 1;
}

def TT_MapElementwiseOp : TT_Op<"map_elementwise", [
    SameOperandsAndResultEncoding, SameOperandsAndResultShape,
    RecursiveMemoryEffects,
    Means<"Control">
]> {
  let summary = "Runs a region of scalar code for each element";
  let description = [{
    The region takes `pack` elements of each operand and yields `pack` elements
    of each result. It may branch.
  }];
  let arguments = (ins Variadic<TT_Tensor>:$srcs, I32Attr:$pack);
  let results = (outs Variadic<TT_Tensor>:$result);
  let regions = (region AnyRegion:$scalarOp);
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def TT_MapElementwiseReturnOp : TT_Op<"map_elementwise.return", [
    ParentOp<"tt.map_elementwise">, Pure, Terminator, ReturnLike,
    Control<"Result">,
    Means<"Control">
]> {
  let summary = "Yields the elements that a mapped region computed";
  let description = "";
  let arguments = (ins Variadic<AnyType>:$result);
  let assemblyFormat = "attr-dict ($result^ `:` type($result))?";
}

} // opDocGroup

#endif // TT_ELEMENTWISE
