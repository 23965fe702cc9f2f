// Every op of the ttng dialect, by family.

#ifndef TTNG_OPS
#define TTNG_OPS

include "ttng/barriers.td"
include "ttng/bulk_copy.td"
include "ttng/clusters.td"
include "ttng/matrix.td"
include "ttng/tensor_memory.td"

#endif // TTNG_OPS
