// Every op of the amdg dialect, by family.

#ifndef AMDG_OPS
#define AMDG_OPS

include "amdg/registers.td"
include "amdg/memory.td"
include "amdg/synchronization.td"

#endif // AMDG_OPS
