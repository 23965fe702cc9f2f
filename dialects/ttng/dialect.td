// The ttng dialect: what only NVIDIA GPUs have.

#ifndef TTNG_DIALECT
#define TTNG_DIALECT

include "ttg/types.td"

def TTNG_Dialect : Dialect {
  let name = "ttng";
  let cppNamespace = "ttng";
  let summary = "Matrix units, barriers, bulk copies and tensor memory of NVIDIA GPUs";
  let description = "";
  let dependentDialects = ["tt", "ttg", "gpu"];
  let usePropertiesForAttributes = 1;
}

class TTNG_Op<string mnemonic, list<Trait> traits = []>
    : Op<TTNG_Dialect, mnemonic, !listconcat(traits, [VerifyTensorLayouts])>;

#endif // TTNG_DIALECT
