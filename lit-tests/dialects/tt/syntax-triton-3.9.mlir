// What is printed is what was read, character by character, from text and from bytecode.
// RUN: llopt %s --split-input-file --verify-roundtrip | grep -v '^ *\(//.*\)*$' > %t.printed
// RUN: grep -v '^ *\(//.*\)*$' %s | diff - %t.printed

module {
  // A loop waits for the grid before it and lets the next one start.
  tt.func @dependent_grids() {
    tt.grid_dependency_wait
    tt.grid_dependency_launch_dependents
    tt.return
  }

  // Barriers that name the memories they order.
  tt.func @barriers() {
    ttg.barrier local
    ttg.barrier global_read|global_write
    ttg.barrier all
    ttg.barrier none
    ttg.barrier  {blocks = #ttg.cta_encoding<{block = [[1, 0]], rank = 2}>, note = #tt.cache_policy<cache_modifier = cg, eviction_policy = evict_last>}
    tt.return
  }
}

// -----

#blocked = #ttg.blocked<{sizePerThread = [1, 1, 1], threadsPerWarp = [1, 1, 32], warpsPerCTA = [1, 4, 1], order = [2, 1, 0]}>
#blocked1 = #ttg.blocked<{sizePerThread = [1, 1, 4], threadsPerWarp = [1, 4, 8], warpsPerCTA = [1, 4, 1], order = [2, 1, 0]}>
#blocked2 = #ttg.blocked<{sizePerThread = [2, 2], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
#linear = #ttg.linear<{register = [[1]], lane = [[0], [0], [0], [0], [0]], warp = [[0], [0]], block = []}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  // Every thread has what it repeats, or counts anew, although the result's layout is another.
  tt.func @layouts_that_move_nothing(%arg0: tensor<8x1x1xf32, #blocked>, %arg1: tensor<2xi32, #linear>) {
    %0 = tt.broadcast %arg0 : tensor<8x1x1xf32, #blocked> -> tensor<8x16x1xf32, #blocked1>
    %1 = tt.reshape %arg1 : tensor<2xi32, #linear> -> tensor<1x2xi32, #blocked2>
    tt.return
  }
}
