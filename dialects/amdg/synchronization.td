// Waiting, barriers and hints to the instruction scheduler.

#ifndef AMDG_SYNCHRONIZATION
#define AMDG_SYNCHRONIZATION

include "amdg/dialect.td"

def AMDG_SynchronizationOps : OpDocGroup {
  let summary = "Synchronisation and scheduling";
  let description = "";
}

let opDocGroup = AMDG_SynchronizationOps in {

def AMDG_InstructionSchedHintOp : AMDG_Op<"instruction_sched_hint", [Means<"Nothing">]> {
  let summary = "How the instructions of this block should be interleaved";
  let description = "";
  let arguments = (ins AMDG_SchedHintVariantAttr:$variant);
  let assemblyFormat = "attr-dict";
}

def AMDG_CondBarrierOp : AMDG_Op<"cond_barrier", [Means<"Nothing">]> {
  let summary = "A barrier for the threads whose predicate holds";
  let description = [{
    The others go on; a second one with the opposite predicate brings all
    together again. Memory is not ordered.
  }];
  let arguments = (ins I1:$pred);
  let assemblyFormat = "$pred attr-dict";
}

def AMDG_AsyncTDMWaitOp : AMDG_Op<"async_tdm_wait", [
    Asynchronous<"Waits", "Bulk">
]> {
  let summary = "Waits until at most `num` copies of the data mover are pending";
  let description = "";
  let arguments = (ins Variadic<TTG_AsyncToken>:$asyncToken, I32Attr:$num);
  let results = (outs TTG_AsyncToken:$retToken);
  let assemblyFormat = "$asyncToken attr-dict";
}

def AMDG_AsyncWaitOp : AMDG_Op<"async_wait", [
    Asynchronous<"Waits", "Copy">, Means<"Memory">
]> {
  let summary = "Waits until at most `num_inst` asynchronous instructions are pending";
  let description = [{
    As `ttg.async_wait`, counted in instructions instead of groups: those that
    the copies become here. What tokens name has arrived in any case.
  }];
  let arguments = (ins Variadic<TTG_AsyncToken>:$asyncToken, I32Attr:$num_inst);
  let results = (outs TTG_AsyncToken:$retToken);
  let assemblyFormat = "($asyncToken^)? attr-dict";
}

def AMDG_MemoryCounterWaitOp : AMDG_Op<"memory_counter_wait", [Means<"Nothing">]> {
  let summary = "Waits until hardware counters are at most the given values";
  let description = "";
  let arguments = (ins
    OptionalAttr<I32Attr>:$load,
    OptionalAttr<I32Attr>:$store,
    OptionalAttr<I32Attr>:$ds
  );
  let assemblyFormat = [{
    oilist(`load` `(` $load `)` | `store` `(` $store `)` | `ds` `(` $ds `)`)
    attr-dict
  }];
}

def AMDG_InitBarrierOp : AMDG_Op<"init_barrier"> {
  let summary = "Initialises a barrier in shared memory";
  let description = "";
  let arguments = (ins
    Arg<TTG_MemDescType, "", [MemWrite<SharedMemory>]>:$alloc,
    I32Attr:$count
  );
  let assemblyFormat = [{
    $alloc `,` $count attr-dict `:` qualified(type($alloc))
  }];
  let hasVerifier = 1;
}

def AMDG_WaitBarrierOp : AMDG_Op<"wait_barrier", [
    Asynchronous<"Waits", "Bulk">
]> {
  let summary = "Waits until a phase of a barrier is complete";
  let description = "";
  let arguments = (ins
    Arg<TTG_MemDescType, "",
        [MemRead<SharedMemory>, MemWrite<SharedMemory>]>:$alloc,
    I32:$phase
  );
  let assemblyFormat = [{
    $alloc `,` $phase attr-dict `:` qualified(type($alloc))
  }];
  let hasVerifier = 1;
}

def AMDG_ArriveBarrierOp : AMDG_Op<"arrive_barrier"> {
  let summary = "Arrives `count` times and returns the phase before";
  let description = "";
  let arguments = (ins
    Arg<TTG_MemDescType, "",
        [MemRead<SharedMemory>, MemWrite<SharedMemory>]>:$alloc,
    I32Attr:$count
  );
  let results = (outs I32:$result);
  let assemblyFormat = [{
    $alloc `,` $count attr-dict `:` qualified(type($alloc)) `->` type($result)
  }];
  let hasVerifier = 1;
}

def AMDG_AsyncCopyMbarrierArriveOp : AMDG_Op<"async_copy_mbarrier_arrive", [
    Asynchronous<"Commits", "Copy">
]> {
  let summary = "Arrives at a barrier when all earlier copies are complete";
  let description = "";
  let arguments = (ins
    Arg<TTG_MemDescType, "",
        [MemRead<SharedMemory>, MemWrite<SharedMemory>]>:$barrier
  );
  let assemblyFormat = "$barrier attr-dict `:` qualified(type($barrier))";
  let hasVerifier = 1;
}

} // opDocGroup

#endif // AMDG_SYNCHRONIZATION
