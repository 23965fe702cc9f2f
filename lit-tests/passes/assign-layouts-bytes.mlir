// Bytes that are not laid out along k in global memory, for a unit that reads them in shared memory only where they are.
//
// RUN: llopt %s --assign-layouts=target=cuda:90 --canonicalize --cse | FileCheck %s --check-prefix=GROUPS
// RUN: llopt %s --assign-layouts=target=cuda:80 --canonicalize --cse | FileCheck %s --check-prefix=WARPS
// RUN: llopt %s --assign-layouts=target=hip:gfx942 --canonicalize --cse | FileCheck %s --check-prefix=WARPS
// RUN: llopt compile %s --target cuda:90 --emit ttgir | FileCheck %s --check-prefix=RING
// RUN: llopt compile %s --target cuda:90 | FileCheck %s --check-prefix=PTX
// RUN: llopt prove %s --target cuda:90 | FileCheck %s --check-prefix=PROVEN
// RUN: llopt prove %s --target hip:gfx942 | FileCheck %s --check-prefix=PROVEN

// PROVEN: proven: [[N:[0-9]+]] of [[N]]

// A thread has rectangles of both factors: 16 bytes along the other dimension, which it loads at once, and 8 along k,
// which it stores at once. Eight lanes lie beside each other and ask for whole lines of global memory. They would store to
// the same banks, but each stores its rows in an order of its own.

// GROUPS-DAG: #[[A:.+]] = #ttg.blocked<{sizePerThread = [16, 8], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
// GROUPS-DAG: #[[B:.+]] = #ttg.blocked<{sizePerThread = [8, 16], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
// GROUPS-LABEL: @product
// GROUPS: ttg.local_alloc %{{.+}} : (tensor<128x128xi8, #[[A]]>)
// GROUPS: ttg.local_alloc %{{.+}} : (tensor<128x128xi8, #[[B]]>)
// GROUPS: ttng.warp_group_dot
// WARPS: tt.dot

// Registers are stored to rings, so the product runs on into the next iteration.

// RING: scf.for
// RING: tt.load
// RING: tt.load
// RING: ttng.warp_group_dot {{.+}}isAsync = true
// RING: ttng.warp_group_dot_wait {{.+}}pendings = 1
// RING: ttg.local_store
// RING: ttg.local_store

// PTX-NOT: st.shared.{{.*}}b8
// PTX: wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8
// PTX: wgmma.wait_group.sync.aligned 1
// PTX: st.shared.v2.b32
// PTX-NOT: st.shared.{{.*}}b8
module {
  tt.func public @product(%a: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %b: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %c: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %n: i32) {
    %r = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
    %down = tt.expand_dims %r {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
    %across = tt.expand_dims %r {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
    %extent = arith.constant dense<128> : tensor<128x1xi32>
    %extents = arith.constant dense<128> : tensor<1x128xi32>
    %d0 = tt.broadcast %down : tensor<128x1xi32> -> tensor<128x128xi32>
    %d1 = arith.muli %down, %extent : tensor<128x1xi32>
    %d2 = tt.broadcast %d1 : tensor<128x1xi32> -> tensor<128x128xi32>
    %c0 = tt.broadcast %across : tensor<1x128xi32> -> tensor<128x128xi32>
    %c1 = arith.muli %across, %extents : tensor<1x128xi32>
    %c2 = tt.broadcast %c1 : tensor<1x128xi32> -> tensor<128x128xi32>
    %by_columns = arith.addi %d0, %c2 : tensor<128x128xi32>
    %by_rows = arith.addi %d2, %c0 : tensor<128x128xi32>
    %as = tt.splat %a : !tt.ptr<i8> -> tensor<128x128x!tt.ptr<i8>>
    %bs = tt.splat %b : !tt.ptr<i8> -> tensor<128x128x!tt.ptr<i8>>
    %ap = tt.addptr %as, %by_columns : tensor<128x128x!tt.ptr<i8>>, tensor<128x128xi32>
    %bp = tt.addptr %bs, %by_rows : tensor<128x128x!tt.ptr<i8>>, tensor<128x128xi32>
    %step = arith.constant dense<16384> : tensor<128x128xi32>
    %none = arith.constant dense<0> : tensor<128x128xi32>
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %sum:3 = scf.for %i = %zero to %n step %one iter_args(%s = %none, %ai = %ap, %bi = %bp) -> (tensor<128x128xi32>, tensor<128x128x!tt.ptr<i8>>, tensor<128x128x!tt.ptr<i8>>) : i32 {
      %x = tt.load %ai : tensor<128x128x!tt.ptr<i8>>
      %y = tt.load %bi : tensor<128x128x!tt.ptr<i8>>
      %z = tt.dot %x, %y, %s : tensor<128x128xi8> * tensor<128x128xi8> -> tensor<128x128xi32>
      %an = tt.addptr %ai, %step : tensor<128x128x!tt.ptr<i8>>, tensor<128x128xi32>
      %bn = tt.addptr %bi, %step : tensor<128x128x!tt.ptr<i8>>, tensor<128x128xi32>
      scf.yield %z, %an, %bn : tensor<128x128xi32>, tensor<128x128x!tt.ptr<i8>>, tensor<128x128x!tt.ptr<i8>>
    }
    %cs = tt.splat %c : !tt.ptr<i32> -> tensor<128x128x!tt.ptr<i32>>
    %cp = tt.addptr %cs, %by_rows : tensor<128x128x!tt.ptr<i32>>, tensor<128x128xi32>
    tt.store %cp, %sum#0 : tensor<128x128x!tt.ptr<i32>>
    tt.return
  }
}
