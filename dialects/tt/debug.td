// Printing and checking from the device.

#ifndef TT_DEBUG
#define TT_DEBUG

include "tt/types.td"
include "tt/attributes.td"

def TT_DebugOps : OpDocGroup {
  let summary = "Printing and assertions";
  let description = "";
}

let opDocGroup = TT_DebugOps in {

def TT_PrintOp : TT_Op<"print", [
    SameVariadicOperandSize, MemoryEffects<[MemWrite<GlobalMemory>]>,
    Layouts<"Same">,
    Means<"Nothing">
]> {
  let summary = "Prints values from the device";
  let description = [{
    One line per element, with the program's position and the prefix.
    `isSigned` has one entry per value: 1 prints an integer as signed.
  }];
  let arguments = (ins
    StrAttr:$prefix,
    BoolAttr:$hex,
    Variadic<TT_Type>:$args,
    DenseI32ArrayAttr:$isSigned
  );
  let assemblyFormat = "$prefix attr-dict (`:` $args^ `:` type($args))?";
  let hasVerifier = 1;
}

def TT_AssertOp : TT_Op<"assert", [
    MemoryEffects<[MemWrite<GlobalMemory>]>, Layouts<"Same">,
    Means<"Shape">
]> {
  let summary = "Stops the program where a condition is false";
  let description = [{
    The message is printed by the failing lanes.
  }];
  let arguments = (ins TT_BoolLike:$condition, StrAttr:$message);
  let assemblyFormat = "$condition `,` $message attr-dict `:` type($condition)";
  let hasCanonicalizer = 1;
}

} // opDocGroup

#endif // TT_DEBUG
