// A tile that the blocks of a cluster compute together, each a part of a sum.

#ifndef TTNG_CLUSTERS
#define TTNG_CLUSTERS

include "ttng/dialect.td"

def TTNG_ClusterOps : OpDocGroup {
  let summary = "Sums that the blocks of a cluster share";
  let description = [{
    In a module with `ttg.cluster-split = S`, a cluster of `S` blocks runs each
    program. All layouts are those of one block. A value is the same in all
    blocks unless it depends on the block's rank.
  }];
}

let opDocGroup = TTNG_ClusterOps in {

def TTNG_ClusterRankOp : TTNG_Op<"cluster_rank", [Pure, Integers<"Program">]> {
  let summary = "Position of this block among those that run the program";
  let description = "";
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def TTNG_ClusterSumOp : TTNG_Op<"cluster_sum", [
    Pure, Layouts<"Histogram">, UsesScratch<"ClusterSum">
]> {
  let summary = "Adds the tensors of all blocks that run the program";
  let description = [{
    Each block adds the others' tensors to its own, in the order of the numbers
    by which their ranks differ from its own (exclusive or). A result of the
    operand's shape is the whole sum. If one extent of the result is that of
    the operand divided by the number of blocks, each block has the part of the
    sum at its rank.
  }];
  let arguments = (ins
    TensorWith<[F16, BF16, F32, F64, I32, I64]>:$src
  );
  let results = (outs TT_Tensor:$result);
  let assemblyFormat = "$src attr-dict `:` type($src) `->` type($result)";
  let hasVerifier = 1;
}

} // opDocGroup

#endif // TTNG_CLUSTERS
