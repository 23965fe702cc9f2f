// Fences, cluster barriers and memory barriers in shared memory (mbarrier).

#ifndef TTNG_BARRIERS
#define TTNG_BARRIERS

include "ttng/attributes.td"

def TTNG_BarrierOps : OpDocGroup {
  let summary = "Fences and barriers";
  let description = [{
    A barrier is one 64-bit word of shared memory,
    `!ttg.memdesc<1xi64, #shared, #smem, mutable>`. It counts arrivals and
    bytes; when both are complete its phase flips between 0 and 1.
  }];
}

let opDocGroup = TTNG_BarrierOps in {

def TTNG_FenceAsyncSharedOp : TTNG_Op<"fence_async_shared", [
    Synchronizes<"Proxies">,
    Means<"Nothing">
]> {
  let summary = "Orders ordinary shared-memory access before asynchronous units";
  let description = [{
    With `bCluster` for the shared memory of the whole cluster.
  }];
  let arguments = (ins BoolAttr:$bCluster);
  let assemblyFormat = "attr-dict";
}

def TTNG_ClusterArriveOp : TTNG_Op<"cluster_arrive", [Means<"Nothing">]> {
  let summary = "Arrives at the barrier of the cluster";
  let description = "";
  let arguments = (ins I1Attr:$relaxed);
  let assemblyFormat = "attr-dict";
}

def TTNG_ClusterWaitOp : TTNG_Op<"cluster_wait", [Means<"Nothing">]> {
  let summary = "Waits until every block of the cluster has arrived";
  let description = "";
  let assemblyFormat = "attr-dict";
}

def TTNG_InitBarrierOp : TTNG_Op<"init_barrier", [Means<"Descriptor">]> {
  let summary = "Initialises a barrier";
  let description = [{
    `count` arrivals complete a phase.
  }];
  let arguments = (ins
    Arg<TTG_MemDescType, "",
        [MemAlloc<TransactionBarrier>, MemWrite<TransactionBarrier>]>:$alloc,
    I32Attr:$count
  );
  let assemblyFormat = [{
    $alloc `,` $count attr-dict `:` qualified(type($alloc))
  }];
  let hasVerifier = 1;
}

def TTNG_InvalBarrierOp : TTNG_Op<"inval_barrier", [Means<"Descriptor">]> {
  let summary = "Ends the use of a barrier so that its memory can be reused";
  let description = "";
  let arguments = (ins
    Arg<TTG_MemDescType, "",
        [MemFree<TransactionBarrier>, MemWrite<TransactionBarrier>]>:$alloc
  );
  let assemblyFormat = "$alloc attr-dict `:` qualified(type($alloc))";
  let hasVerifier = 1;
}

def TTNG_BarrierExpectOp : TTNG_Op<"barrier_expect", [Means<"Descriptor">]> {
  let summary = "Arrives and announces bytes that copies will bring";
  let description = "";
  let arguments = (ins
    Arg<TTG_MemDescType, "", [MemWrite<TransactionBarrier>]>:$alloc,
    I32Attr:$size,
    I1:$pred
  );
  let assemblyFormat = [{
    $alloc `,` $size attr-dict `,` $pred `:` qualified(type($alloc))
  }];
  let hasVerifier = 1;
}

def TTNG_WaitBarrierOp : TTNG_Op<"wait_barrier", [
    AttrSizedOperandSegments, Asynchronous<"Waits", "Bulk">,
    Means<"Descriptor">
]> {
  let summary = "Waits until a phase of a barrier is complete";
  let description = [{
    `deps` are buffers that may be in use until then.
  }];
  let arguments = (ins
    Arg<TTG_MemDescType, "",
        [MemRead<TransactionBarrier>, MemWrite<TransactionBarrier>]>:$alloc,
    I32:$phase,
    Optional<I1>:$pred,
    Variadic<TTG_MemDescType>:$deps
  );
  let assemblyFormat = [{
    $alloc `,` $phase (`,` $pred^)? (`deps` $deps^)? attr-dict `:`
    qualified(type($alloc)) (`,` type($deps)^)?
  }];
  let hasVerifier = 1;
}

def TTNG_ArriveBarrierOp : TTNG_Op<"arrive_barrier", [
    MemoryEffects<[MemRead<SharedMemory>]>,
    Means<"Descriptor">
]> {
  let summary = "Arrives `count` times at a barrier";
  let description = [{
    One thread arrives for the block, once all its threads have done what comes
    before.
  }];
  let arguments = (ins
    Arg<TTG_MemDescType, "",
        [MemRead<TransactionBarrier>, MemWrite<TransactionBarrier>]>:$alloc,
    I32Attr:$count,
    Optional<I1>:$pred
  );
  let assemblyFormat = [{
    $alloc `,` $count (`,` $pred^)? attr-dict `:` qualified(type($alloc))
  }];
  let hasVerifier = 1;
}

def TTNG_AsyncCopyMbarrierArriveOp : TTNG_Op<"async_copy_mbarrier_arrive", [
    Asynchronous<"Commits", "Copy">,
    Means<"Descriptor">
]> {
  let summary = "Arrives at a barrier when all earlier copies are complete";
  let description = [{
    `noIncrement` keeps the expected count of the barrier as it is.
  }];
  let arguments = (ins
    Arg<TTG_MemDescType, "", [MemWrite<TransactionBarrier>]>:$barrier,
    UnitAttr:$noIncrement
  );
  let assemblyFormat = "$barrier attr-dict `:` qualified(type($barrier))";
  let hasVerifier = 1;
}

} // opDocGroup

#endif // TTNG_BARRIERS
