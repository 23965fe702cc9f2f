// Encodings: where the elements of a tensor live.
//
// Parameters are listed in the order in which they are printed. A parameter with
// a default is left out when it equals it.

#ifndef TTG_ATTRIBUTES
#define TTG_ATTRIBUTES

include "ttg/dialect.td"

// `alias` is the name under which a module defines the attribute, "" for none.
// `encodes` says of an encoding whether it deals a tensor out to threads or lays
// it out in a memory; other attributes have no such field. The Rust type of an
// encoding is named as the record, less what all records of encodings share.
class TTG_Attr<string name, string attrMnemonic, string aliasName = "">
    : AttrDef<TTG_Dialect, name> {
  let mnemonic = attrMnemonic;
  string alias = aliasName;
}

// An encoding of registers: maps (register, lane, warp, block) to coordinates.
class TTG_DistributedEncoding<string name, string attrMnemonic,
                              string aliasName = "">
    : TTG_Attr<name # "Encoding", attrMnemonic, aliasName> {
  string encodes = "threads";
  let assemblyFormat = "`<` `{` struct(params) `}` `>`";
}

// An encoding of shared memory: maps (offset, block) to coordinates.
class TTG_SharedEncoding<string name, string attrMnemonic>
    : TTG_Attr<name # "Encoding", attrMnemonic, "shared"> {
  string encodes = "memory";
  let assemblyFormat = "`<` `{` struct(params) `}` `>`";
}

//===----------------------------------------------------------------------===//
// Distributed encodings
//===----------------------------------------------------------------------===//

def TTG_BlockedEncodingAttr
    : TTG_DistributedEncoding<"Blocked", "blocked", "blocked"> {
  let summary = "A tile per thread, a grid of threads per warp, a grid of warps";
  let description = [{
    Each thread holds `sizePerThread` adjacent elements, the threads of a warp
    tile a block of `threadsPerWarp` such pieces and the warps a block of
    `warpsPerCTA` of those. `order` lists the dimensions from the fastest one.
    A tensor larger than the tile wraps around into further registers; where it
    is smaller, several threads hold the same element.
  }];
  let parameters = (ins
    UIntsParam<"Elements per thread and dimension">:$sizePerThread,
    UIntsParam<"Threads of a warp per dimension">:$threadsPerWarp,
    UIntsParam<"Warps per dimension">:$warpsPerCTA,
    UIntsParam<"Dimensions, fastest first">:$order,
    CgaParam:$CGALayout
  );
}

def TTG_LinearEncodingAttr
    : TTG_DistributedEncoding<"Linear", "linear", "linear"> {
  let summary = "A linear layout, given by its basis vectors";
  let description = [{
    Bit `i` of the register, lane, warp or block number adds (exclusive or) its
    vector to the coordinates.
  }];
  let parameters = (ins
    BasesParam<"Vectors of the register bits">:$register,
    BasesParam<"Vectors of the lane bits">:$lane,
    BasesParam<"Vectors of the warp bits">:$warp,
    BasesParam<"Vectors of the block bits">:$block
  );
}

def TTG_SliceEncodingAttr : TTG_DistributedEncoding<"Slice", "slice"> {
  let summary = "Another encoding without one of its dimensions";
  let description = [{
    Threads that differ only in the dropped dimension hold the same element.
  }];
  let parameters = (ins
    UIntParam<"Dimension of the parent that is dropped">:$dim,
    AttributeParam<"Distributed encoding of one more dimension">:$parent
  );
}

def TTG_DotOperandEncodingAttr
    : TTG_DistributedEncoding<"DotOperand", "dot_op"> {
  let summary = "What a matrix instruction expects of its operands";
  let description = [{
    `parent` is the encoding of the product. With a matrix encoding `kWidth` is
    the number of adjacent elements along K that a thread holds.
  }];
  let parameters = (ins
    UIntParam<"0 for the left operand, 1 for the right one">:$opIdx,
    AttributeParam<"Encoding of the product">:$parent,
    UIntParam<"Adjacent elements along K per thread", "0">:$kWidth
  );
}

def TTG_NvidiaMmaEncodingAttr
    : TTG_DistributedEncoding<"NvidiaMma", "nvidia_mma", "mma"> {
  let summary = "The product of mma.sync (version 2) or wgmma (version 3)";
  let description = "";
  let parameters = (ins
    UIntParam<"2 for mma.sync, 3 for wgmma">:$versionMajor,
    UIntParam<"Refinement of the version", "0", 1>:$versionMinor,
    UIntsParam<"Warps per dimension">:$warpsPerCTA,
    CgaParam:$CGALayout,
    UIntsParam<"Shape of one instruction: M, N and for version 3 K">:$instrShape
  );
}

def TTG_AMDMfmaEncodingAttr
    : TTG_DistributedEncoding<"AMDMfma", "amd_mfma", "mma"> {
  let summary = "The product of the matrix instructions of CDNA";
  let description = "";
  let parameters = (ins
    UIntParam<"Generation of the instructions: 1 to 4">:$version,
    UIntsParam<"Warps per dimension">:$warpsPerCTA,
    UIntsParam<"Shape of one instruction: M, N, K">:$instrShape,
    BoolParam<"Whether the product is held transposed">:$isTransposed,
    CgaParam:$CGALayout,
    UIntsParam<"Adjacent instruction tiles per warp", "ones">:$tilesPerWarp,
    UIntParam<"Bits of an element of the product", "32">:$elementBitWidth
  );
}

def TTG_AMDWmmaEncodingAttr
    : TTG_DistributedEncoding<"AMDWmma", "amd_wmma", "mma"> {
  let summary = "The product of the matrix instructions of RDNA and gfx1250";
  let description = "";
  let parameters = (ins
    UIntParam<"1 for gfx11, 2 for gfx12, 3 for gfx1250">:$version,
    BoolParam<"Whether the product is held transposed", "false", 1>:$isTranspose,
    UIntsParam<"Warps per dimension">:$warpsPerCTA,
    CgaParam:$CGALayout,
    UIntsParam<"Adjacent instruction tiles per warp", "ones">:$tilesPerWarp,
    UIntsParam<"Shape of one instruction: M, N, K", "[16, 16, 16]">:$instrShape
  );
}

//===----------------------------------------------------------------------===//
// Shared encodings
//===----------------------------------------------------------------------===//

def TTG_SwizzledSharedEncodingAttr
    : TTG_SharedEncoding<"SwizzledShared", "swizzled_shared"> {
  let summary = "Rows whose vectors are permuted by exclusive or with the row";
  let description = [{
    In row r the group of `vec` elements at position c lies at position
    c xor ((r / perPhase) mod maxPhase).
  }];
  let parameters = (ins
    UIntParam<"Elements that stay together">:$vec,
    UIntParam<"Rows that share a permutation">:$perPhase,
    UIntParam<"Number of permutations">:$maxPhase,
    UIntsParam<"Dimensions, fastest first">:$order,
    CgaParam:$CGALayout
  );
}

def TTG_AMDRotatingSharedEncodingAttr
    : TTG_SharedEncoding<"AMDRotatingShared", "amd_rotating_shared"> {
  let summary = "A swizzle whose permutation also depends on the block of rows";
  let description = [{
    As `swizzled_shared`, with the phase
    ((r / perPhase) mod maxPhase) xor ((r / perPhase / maxPhase) mod maxPhase).
  }];
  let parameters = (ins
    UIntParam<"Elements that stay together">:$vec,
    UIntParam<"Rows that share a permutation">:$perPhase,
    UIntParam<"Number of permutations">:$maxPhase,
    UIntsParam<"Dimensions, fastest first">:$order,
    CgaParam:$CGALayout
  );
}

def TTG_PaddedSharedEncodingAttr
    : TTG_SharedEncoding<"PaddedShared", "padded_shared"> {
  let summary = "Elements in a linear order with gaps at regular intervals";
  let description = [{
    After every `intervals[i]` elements `paddings[i]` elements are left unused:
    `[64:+4]`. The order of the elements is given by basis vectors, or by
    `order` and `shape` when it is the plain one.

    ```mlir
    #a = #ttg.padded_shared<[64:+4] {order = [1, 0], shape = [16, 64]}>
    #b = #ttg.padded_shared<[4:+1] {offset = [[2], [1], [4]], block = []}>
    ```
  }];
  let parameters = (ins
    UIntsParam<"Elements between two gaps">:$intervals,
    UIntsParam<"Elements per gap">:$paddings,
    BasesParam<"Vectors of the offset bits">:$offset,
    BasesParam<"Vectors of the block bits">:$block,
    UIntsParam<"Extents of the tensor that the vectors span">:$shape
  );
  let assemblyFormat = ?;
  let hasCustomAssemblyFormat = 1;
}

def TTG_SharedLinearEncodingAttr
    : TTG_SharedEncoding<"SharedLinear", "shared_linear"> {
  let summary = "A linear layout of shared memory, given by its basis vectors";
  let description = [{
    ```mlir
    #a = #ttg.shared_linear<{offset = [[0, 1], [1, 0]]}, alignment = 16>
    ```
  }];
  let parameters = (ins
    BasesParam<"Vectors of the offset bits">:$offset,
    BasesParam<"Vectors of the block bits">:$block,
    UIntParam<"Alignment in bytes">:$alignment
  );
  let assemblyFormat = ?;
  let hasCustomAssemblyFormat = 1;
}

def TTG_PartitionedSharedEncodingAttr
    : TTG_SharedEncoding<"PartitionedShared", "partitioned_shared"> {
  let summary = "Pieces of a tensor, dealt to partitions of the memory in turn";
  let description = [{
    The tensor is cut along `partitionDim` into `numPartitions` times
    `numGroups` pieces, each with the layout `partitionLayout`. Piece `i` is in
    partition `i mod numPartitions`. Triton 3.6 has no such encoding, later
    versions have.
  }];
  let parameters = (ins
    UIntParam<"Partitions of the memory">:$numPartitions,
    UIntParam<"Pieces in each partition">:$numGroups,
    UIntParam<"Dimension that is cut">:$partitionDim,
    AttributeParam<"Encoding of a piece">:$partitionLayout
  );
}

def TTG_NVMMASharedEncodingAttr
    : TTG_SharedEncoding<"NVMMAShared", "nvmma_shared"> {
  let summary = "What wgmma, tcgen05 and the TMA unit expect in shared memory";
  let description = [{
    Tiles of 8 rows of `swizzlingByteWidth` bytes, 16-byte vectors permuted
    within each. `rank` is written when it is not 2 and there is no CGALayout.
  }];
  let parameters = (ins
    UIntParam<"Bytes of a row of a tile: 0, 32, 64 or 128">:$swizzlingByteWidth,
    BoolParam<"Whether the outer dimension is the contiguous one",
              "false">:$transposed,
    UIntParam<"Bits of an element">:$elementBitWidth,
    BoolParam<"Whether 4-bit elements are padded to bytes", "false">:$fp4Padded,
    CgaParam:$CGALayout,
    UIntParam<"Number of dimensions", "2">:$rank
  );
  let assemblyFormat = ?;
  let hasCustomAssemblyFormat = 1;
}

//===----------------------------------------------------------------------===//
// Others
//===----------------------------------------------------------------------===//

def TTG_CTAEncodingAttr : TTG_Attr<"CTAEncoding", "cta_encoding"> {
  let summary = "How the blocks of a cluster share a tensor";
  let description = [{
    The `CGALayout` of an encoding as an attribute of its own.
  }];
  let parameters = (ins
    BasesParam<"Vectors of the block bits">:$block,
    UIntParam<"Number of dimensions">:$rank
  );
  let assemblyFormat = "`<` `{` struct(params) `}` `>`";
}

def TTG_SharedMemorySpaceAttr
    : TTG_Attr<"SharedMemorySpace", "shared_memory", "smem"> {
  let summary = "The shared memory of a block";
  let description = "";
}

#endif // TTG_ATTRIBUTES
