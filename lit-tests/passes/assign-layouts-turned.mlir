// Bytes that become halves for the second factor, in tiles of as many rows as the instructions of groups of warps have.
//
// RUN: llopt %s --assign-layouts=target=cuda:90 --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,TURNED
// RUN: llopt %s --assign-layouts=target=cuda:80 --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,WORDS
// RUN: llopt %s --assign-layouts=target=hip:gfx942 --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,SAME
// RUN: llopt compile %s --target cuda:90 --emit ttgir | FileCheck %s --check-prefix=LOOP
// RUN: llopt compile %s --target cuda:90 | FileCheck %s --check-prefix=PTX
// RUN: llopt prove %s --target cuda:90 | FileCheck %s --check-prefix=PROVEN

// PROVEN: proven: [[N:[0-9]+]] of [[N]]

// The transposed product takes the bytes from registers, and the other factor from a buffer with another name. Where
// instructions take both from registers, the other factor is the second one, whose words are neighbours along k. Where words
// of both are, nothing changes.

// CHECK-LABEL: @product
// TURNED-DAG: %[[A:.+]] = tt.trans {{.*}} -> tensor<128x64xbf16, #ttg.dot_op<{opIdx = 0
// TURNED-DAG: %[[B:.+]] = ttg.memdesc_trans
// TURNED: %[[SUM:.+]] = ttng.warp_group_dot %[[A]], %[[B]], {{.*}} -> tensor<128x64xf32
// TURNED: }
// TURNED: tt.trans {{.*}} tensor<128x64xf32, {{.*}} -> tensor<64x128xf32
// WORDS: tt.dot {{.*}} tensor<128x64xbf16, #ttg.dot_op<{opIdx = 0, {{.*}}kWidth = 4}>> * tensor<64x64xbf16, #ttg.dot_op<{opIdx = 1, {{.*}}kWidth = 4}>> -> tensor<128x64xf32
// SAME-NOT: tensor<128x64xf32
// SAME: tt.dot {{.*}} -> tensor<64x128xf32
// SAME-NOT: tensor<128x64xf32

// The product runs on while the next bytes are read, and is complete before they are computed with.

// LOOP: scf.for
// LOOP: ttg.async_wait
// LOOP: ttg.local_load
// LOOP-NOT: arith.sitofp
// LOOP: %[[DONE:.+]] = ttng.warp_group_dot_wait %{{.+}} {pendings = 0 : i32}
// LOOP: arith.sitofp
// LOOP: ttng.warp_group_dot %{{.+}}, %{{.+}}, %[[DONE]] {{.*}}isAsync = true
// LOOP-NOT: ttng.warp_group_dot_wait
// LOOP: ttg.async_copy_global_to_local
// LOOP: scf.yield

// Each step along k has a fence of its own, so that what it takes may be computed beside the step before.

// PTX: wgmma.wait_group.sync.aligned 0
// PTX-COUNT-4: wgmma.fence
// PTX-NOT: wgmma.wait_group
// PTX: cp.async
module {
  tt.func public @product(%a: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %b: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %c: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
    %m = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %k = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %j = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
    %md = tt.expand_dims %m {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %ka = tt.expand_dims %k {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %kd = tt.expand_dims %k {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %ja = tt.expand_dims %j {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
    %s0 = arith.constant dense<64> : tensor<64x1xi32>
    %s1 = arith.constant dense<64> : tensor<1x128xi32>
    %s2 = arith.constant dense<128> : tensor<64x1xi32>
    %ar = arith.muli %md, %s0 : tensor<64x1xi32>
    %arb = tt.broadcast %ar : tensor<64x1xi32> -> tensor<64x64xi32>
    %acb = tt.broadcast %ka : tensor<1x64xi32> -> tensor<64x64xi32>
    %ao = arith.addi %arb, %acb : tensor<64x64xi32>
    %bc = arith.muli %ja, %s1 : tensor<1x128xi32>
    %bcb = tt.broadcast %bc : tensor<1x128xi32> -> tensor<64x128xi32>
    %brb = tt.broadcast %kd : tensor<64x1xi32> -> tensor<64x128xi32>
    %bo = arith.addi %bcb, %brb : tensor<64x128xi32>
    %cr = arith.muli %md, %s2 : tensor<64x1xi32>
    %crb = tt.broadcast %cr : tensor<64x1xi32> -> tensor<64x128xi32>
    %ccb = tt.broadcast %ja : tensor<1x128xi32> -> tensor<64x128xi32>
    %co = arith.addi %crb, %ccb : tensor<64x128xi32>
    %as = tt.splat %a : !tt.ptr<bf16> -> tensor<64x64x!tt.ptr<bf16>>
    %ap = tt.addptr %as, %ao : tensor<64x64x!tt.ptr<bf16>>, tensor<64x64xi32>
    %bs = tt.splat %b : !tt.ptr<i8> -> tensor<64x128x!tt.ptr<i8>>
    %bp = tt.addptr %bs, %bo : tensor<64x128x!tt.ptr<i8>>, tensor<64x128xi32>
    %ai = arith.constant dense<1024> : tensor<64x64xi32>
    %bi = arith.constant dense<8192> : tensor<64x128xi32>
    %none = arith.constant dense<0.0> : tensor<64x128xf32>
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %r:3 = scf.for %i = %zero to %n step %one iter_args(%s = %none, %at = %ap, %bt = %bp) -> (tensor<64x128xf32>, tensor<64x64x!tt.ptr<bf16>>, tensor<64x128x!tt.ptr<i8>>) : i32 {
      %x = tt.load %at : tensor<64x64x!tt.ptr<bf16>>
      %y = tt.load %bt : tensor<64x128x!tt.ptr<i8>>
      %w = arith.sitofp %y : tensor<64x128xi8> to tensor<64x128xbf16>
      %z = tt.dot %x, %w, %s : tensor<64x64xbf16> * tensor<64x128xbf16> -> tensor<64x128xf32>
      %an = tt.addptr %at, %ai : tensor<64x64x!tt.ptr<bf16>>, tensor<64x64xi32>
      %bn = tt.addptr %bt, %bi : tensor<64x128x!tt.ptr<i8>>, tensor<64x128xi32>
      scf.yield %z, %an, %bn : tensor<64x128xf32>, tensor<64x64x!tt.ptr<bf16>>, tensor<64x128x!tt.ptr<i8>>
    }
    %cs = tt.splat %c : !tt.ptr<f32> -> tensor<64x128x!tt.ptr<f32>>
    %cp = tt.addptr %cs, %co : tensor<64x128x!tt.ptr<f32>>, tensor<64x128xi32>
    tt.store %cp, %r#0 : tensor<64x128x!tt.ptr<f32>>
    tt.return
  }
}
