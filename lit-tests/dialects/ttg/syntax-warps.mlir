// What is printed is what was read, character by character, from text and from bytecode.
// RUN: llopt %s --split-input-file --verify-roundtrip | grep -v '^ *\(//.*\)*$' > %t.printed
// RUN: grep -v '^ *\(//.*\)*$' %s | diff - %t.printed

// Partitions with captures, results and register counts; nothing at all in the second one.
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @partitions(%arg0: i32, %arg1: !tt.ptr<f32>) -> i32 {
    %0 = ttg.warp_specialize(%arg0, %arg1) attributes {actualRegisters = array<i32: 208, 40, 24>, requestedRegisters = array<i32: 40, 24>, warpGroupStartIds = array<i32: 4, 8>}
    default {
      ttg.warp_yield %arg0 : i32
    }
    partition0(%arg2: i32, %arg3: !tt.ptr<f32>) num_warps(4) {
      ttg.warp_return
    }
    partition1(%arg2: i32, %arg3: !tt.ptr<f32>) num_warps(1) {
      ttg.warp_return
    } : (i32, !tt.ptr<f32>) -> i32
    ttg.warp_specialize()
    default {
      ttg.warp_yield
    } : () -> ()
    tt.return %0 : i32
  }

  // A region under a predicate, and the predicate of a stage of a pipelined loop.
  tt.func @pipeline(%arg0: i32, %arg1: i32, %arg2: i32) -> i32 {
    %0 = ttg.predicate_stage %arg0, %arg1, %arg2 maxStage 2 stage 1 : i32 -> i1
    %1 = "ttg.mask"(%0) ({
      %2 = arith.addi %arg0, %arg2 : i32
      ttg.mask.return %2 : i32
    }) : (i1) -> i32
    tt.return %1 : i32
  }
}
