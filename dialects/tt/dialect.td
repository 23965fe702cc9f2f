// The tt dialect: tile programs as a frontend writes them.

#ifndef TT_DIALECT
#define TT_DIALECT

include "ods.td"

def TT_Dialect : Dialect {
  let name = "tt";
  let cppNamespace = "tt";
  let summary = "Tile programs: tensors of values and pointers, one program per tile";
  let description = [{
    A function of this dialect is the program of one tile. It works on scalars
    and on ranked tensors whose extents are powers of two. Without an encoding
    a tensor says only what is computed; with one (an attribute of `ttg`) it
    also says which register of which lane of which warp holds each element.
  }];
  let dependentDialects = ["arith", "math", "scf", "cf", "ub"];
  let hasConstantMaterializer = 1;
  let usePropertiesForAttributes = 1;
}

// Base of every op of the dialect.
class TT_Op<string mnemonic, list<Trait> traits = []>
    : Op<TT_Dialect, mnemonic,
         !listconcat(traits, [TensorSize, VerifyTensorLayouts])>;

#endif // TT_DIALECT
