// Every dialect of this folder, for the generator.

include "tt/ops.td"
include "ttg/ops.td"
include "ttng/ops.td"
include "amdg/ops.td"
include "gluon/ops.td"
