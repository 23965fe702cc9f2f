// A block of eight waves whose large tiles leave no room for a second block: its halves take turns where the model
// predicts a gain, and the code keeps products and accesses apart.
//
// RUN: llopt explain %s --target hip:gfx942 --num-warps 8 | FileCheck %s
// RUN: llopt explain %s --target hip:gfx942 --num-warps 8 --json | FileCheck %s --check-prefix=JSON
// RUN: llopt explain %s --target hip:gfx942 --num-warps 4 | FileCheck %s --check-prefix=FOUR
// RUN: llopt explain %s --target hip:gfx942 --num-warps 8 --block-pingpong off | FileCheck %s --check-prefix=OFF
// RUN: llopt explain %s --target cuda:90 --num-warps 8 --block-pingpong on | FileCheck %s --check-prefix=OFF
// RUN: llopt compile %s --target hip:gfx942 --num-warps 8 | FileCheck %s --check-prefix=CODE

// CHECK: Loop ({{.*}}) is pipelined in 2 stages
// CHECK: turns one half of the warps multiplies while the other accesses memory, in 4 parts: about {{[0-9]+}} cycles for {{[0-9]+}} in step (-{{[0-9]+}} %)
// JSON: "turns": {
// JSON-NEXT: "parts": 4
// JSON-NEXT: "interval": {{[0-9]+}}
// JSON-NEXT: "in_step": {{[0-9]+}}
// JSON: "not_in_turns": null
// FOUR: turns none: its 4 warps are not two halves for each of 4 units
// OFF-NOT: {{^}}  turns

// Lanes that do not take part skip the barrier before the loop. Reads have arrived before the other half goes on, and
// no product is outside of its cluster.
// CODE: s_cbranch_execz
// CODE-NEXT: s_barrier
// CODE: ds_read
// CODE: s_waitcnt lgkmcnt(0)
// CODE-NEXT: s_barrier
// CODE-NEXT: s_setprio 1
// CODE-COUNT-32: v_mfma
// CODE-NEXT: s_setprio 0
// CODE-NEXT: s_barrier
module {
  tt.func public @large(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %c: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %n: i32) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %none = arith.constant dense<0.0> : tensor<256x256xf32>
    %range = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
    %deep = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %rows = tt.expand_dims %range {axis = 1 : i32} : tensor<256xi32> -> tensor<256x1xi32>
    %cols = tt.expand_dims %range {axis = 0 : i32} : tensor<256xi32> -> tensor<1x256xi32>
    %kr = tt.expand_dims %deep {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %kc = tt.expand_dims %deep {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %of_a = arith.constant dense<64> : tensor<256x1xi32>
    %of_b = arith.constant dense<256> : tensor<64x1xi32>
    %of_c = arith.constant dense<256> : tensor<256x1xi32>
    %next_a = arith.constant dense<16384> : tensor<256x64xi32>
    %next_b = arith.constant dense<16384> : tensor<64x256xi32>
    %a0 = arith.muli %rows, %of_a : tensor<256x1xi32>
    %a1 = tt.broadcast %a0 : tensor<256x1xi32> -> tensor<256x64xi32>
    %a2 = tt.broadcast %kc : tensor<1x64xi32> -> tensor<256x64xi32>
    %ao = arith.addi %a1, %a2 : tensor<256x64xi32>
    %as = tt.splat %a : !tt.ptr<f16> -> tensor<256x64x!tt.ptr<f16>>
    %ap = tt.addptr %as, %ao : tensor<256x64x!tt.ptr<f16>>, tensor<256x64xi32>
    %b0 = arith.muli %kr, %of_b : tensor<64x1xi32>
    %b1 = tt.broadcast %b0 : tensor<64x1xi32> -> tensor<64x256xi32>
    %b2 = tt.broadcast %cols : tensor<1x256xi32> -> tensor<64x256xi32>
    %bo = arith.addi %b1, %b2 : tensor<64x256xi32>
    %bs = tt.splat %b : !tt.ptr<f16> -> tensor<64x256x!tt.ptr<f16>>
    %bp = tt.addptr %bs, %bo : tensor<64x256x!tt.ptr<f16>>, tensor<64x256xi32>
    %c0 = arith.muli %rows, %of_c : tensor<256x1xi32>
    %c1 = tt.broadcast %c0 : tensor<256x1xi32> -> tensor<256x256xi32>
    %c2 = tt.broadcast %cols : tensor<1x256xi32> -> tensor<256x256xi32>
    %co = arith.addi %c1, %c2 : tensor<256x256xi32>
    %cs = tt.splat %c : !tt.ptr<f16> -> tensor<256x256x!tt.ptr<f16>>
    %cp = tt.addptr %cs, %co : tensor<256x256x!tt.ptr<f16>>, tensor<256x256xi32>
    %r:3 = scf.for %i = %zero to %n step %one iter_args(%p = %ap, %q = %bp, %sum = %none) -> (tensor<256x64x!tt.ptr<f16>>, tensor<64x256x!tt.ptr<f16>>, tensor<256x256xf32>) : i32 {
      %x = tt.load %p : tensor<256x64x!tt.ptr<f16>>
      %y = tt.load %q : tensor<64x256x!tt.ptr<f16>>
      %d = tt.dot %x, %y, %sum : tensor<256x64xf16> * tensor<64x256xf16> -> tensor<256x256xf32>
      %s = tt.addptr %p, %next_a : tensor<256x64x!tt.ptr<f16>>, tensor<256x64xi32>
      %t = tt.addptr %q, %next_b : tensor<64x256x!tt.ptr<f16>>, tensor<64x256xi32>
      scf.yield %s, %t, %d : tensor<256x64x!tt.ptr<f16>>, tensor<64x256x!tt.ptr<f16>>, tensor<256x256xf32>
    }
    %short = arith.truncf %r#2 : tensor<256x256xf32> to tensor<256x256xf16>
    tt.store %cp, %short : tensor<256x256x!tt.ptr<f16>>
    tt.return
  }
}
