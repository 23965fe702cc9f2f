// Every op of the tt dialect, by family.

#ifndef TT_OPS
#define TT_OPS

include "tt/functions.td"
include "tt/elementwise.td"
include "tt/memory.td"
include "tt/shape.td"
include "tt/reduction.td"
include "tt/matrix.td"
include "tt/descriptor.td"
include "tt/debug.td"

#endif // TT_OPS
