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
