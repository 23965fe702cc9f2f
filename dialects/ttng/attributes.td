// Encodings of tensor memory.

#ifndef TTNG_ATTRIBUTES
#define TTNG_ATTRIBUTES

include "ttng/dialect.td"

class TTNG_Attr<string name, string attrMnemonic, string aliasName = "">
    : AttrDef<TTNG_Dialect, name> {
  let mnemonic = attrMnemonic;
  string alias = aliasName;
}

def TTNG_TensorMemorySpaceAttr
    : TTNG_Attr<"TensorMemorySpace", "tensor_memory"> {
  let summary = "The tensor memory of an SM: 128 rows of 512 columns of 32 bits";
  let description = "";
}

def TTNG_TensorMemoryEncodingAttr
    : TTNG_Attr<"TensorMemoryEncoding", "tensor_memory_encoding", "tmem"> {
  string encodes = "memory";
  let summary = "Blocks of an accumulator or operand in tensor memory";
  let description = [{
    The tensor is cut into blocks of `blockM` x `blockN` elements. Each takes
    all 128 rows; blocks follow one another along the columns, first those
    along M. With `blockM = 64` only 16 of every 32 rows are used per block.
    Neighbours in a row are `colStride` elements apart. With `twoCTAs` the
    block is shared by two blocks of a cluster.
  }];
  let parameters = (ins
    UIntParam<"Rows of a block">:$blockM,
    UIntParam<"Columns of a block">:$blockN,
    UIntParam<"Elements from one column to the next">:$colStride,
    UIntParam<"Blocks of the cluster along M", "1">:$CTASplitM,
    UIntParam<"Blocks of the cluster along N", "1">:$CTASplitN,
    BoolParam<"Whether two blocks of the cluster work on it", "false">:$twoCTAs
  );
  let assemblyFormat = "`<` struct(params) `>`";
}

def TTNG_TensorMemoryScalesEncodingAttr
    : TTNG_Attr<"TensorMemoryScalesEncoding", "tensor_memory_scales_encoding",
                "tmem_scales"> {
  string encodes = "memory";
  let summary = "Scales of a scaled matrix product in tensor memory";
  let description = [{
    Chunks of 32 rows by 16 bytes, each present once for each of the four
    quarters of the 128 rows.
  }];
  let parameters = (ins
    UIntParam<"Blocks of the cluster along M", "1">:$CTASplitM,
    UIntParam<"Blocks of the cluster along N", "1">:$CTASplitN
  );
  let assemblyFormat = "`<` struct(params) `>`";
}

#endif // TTNG_ATTRIBUTES
