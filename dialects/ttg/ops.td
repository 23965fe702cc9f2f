// Every op of the ttg dialect, by family.

#ifndef TTG_OPS
#define TTG_OPS

include "ttg/layout.td"
include "ttg/local_memory.td"
include "ttg/warps.td"

#endif // TTG_OPS
