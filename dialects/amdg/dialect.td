// The amdg dialect: what only AMD GPUs have.

#ifndef AMDG_DIALECT
#define AMDG_DIALECT

include "ttg/types.td"

def AMDG_Dialect : Dialect {
  let name = "amdg";
  let cppNamespace = "amdg";
  let summary = "Buffer access, scheduling and conversions of AMD GPUs";
  let description = "";
  let dependentDialects = ["tt", "ttg", "gpu", "rocdl"];
  let usePropertiesForAttributes = 1;
}

class AMDG_Op<string mnemonic, list<Trait> traits = []>
    : Op<AMDG_Dialect, mnemonic, traits>;

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

def AMDG_SchedHintEnum : I32EnumAttr<"SchedHint",
    "Which interleaving of instructions to ask for", [
  I32EnumAttrCase<"None", 0, "none">,
  I32EnumAttrCase<"Attention", 2, "attention">
]> {
  let cppNamespace = "amdg";
  let genSpecializedAttr = 0;
}

def AMDG_SchedHintVariantAttr : AttrDef<AMDG_Dialect, "SchedHintVariant"> {
  let mnemonic = "SchedHintVariant";
  let summary = "A scheduling hint";
  let description = "";
  let parameters = (ins
    EnumParam<AMDG_SchedHintEnum, "The interleaving">:$value
  );
  let assemblyFormat = "`<` params `>`";
}

def AMDG_SetFP8ClampingAttr : AttrDef<AMDG_Dialect, "SetFP8Clamping"> {
  let mnemonic = "amdgcn.set.fp8.clamping";
  let summary = "Asks for conversions to 8-bit floats that saturate";
  let description = "";
}

#endif // AMDG_DIALECT
