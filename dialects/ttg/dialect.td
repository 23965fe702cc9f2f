// The ttg dialect: layouts, shared memory and the warps of a program.

#ifndef TTG_DIALECT
#define TTG_DIALECT

include "tt/types.td"
include "tt/attributes.td"

def TTG_Dialect : Dialect {
  let name = "ttg";
  let cppNamespace = "ttg";
  let summary = "Layouts, shared memory and warps";
  let description = [{
    The attributes of this dialect say where the elements of a tensor live: a
    distributed encoding maps (register, lane, warp, block) to tensor
    coordinates, a shared encoding maps memory offsets to them. The module
    carries what all layouts must agree with: `ttg.num-warps`,
    `ttg.threads-per-warp`, `ttg.num-ctas` and `ttg.target`. With
    `ttg.cluster-split` so many blocks run each program together, each with
    layouts of its own; see `ttng.cluster_sum`.
  }];
  let dependentDialects = ["tt", "gpu"];
  let hasConstantMaterializer = 1;
  let usePropertiesForAttributes = 1;
}

class TTG_Op<string mnemonic, list<Trait> traits = []>
    : Op<TTG_Dialect, mnemonic, !listconcat(traits, [VerifyTensorLayouts])>;

#endif // TTG_DIALECT
