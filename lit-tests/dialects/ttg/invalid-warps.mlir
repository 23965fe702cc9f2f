// RUN: llopt %s --split-input-file --verify-diagnostics

// Each part breaks one rule; the message says which, and what is at fault.

tt.func @captured_type(%x: i32) {
  // expected-error @+1 {{'ttg.warp_specialize' op argument #0 of partition #0 has type 'f32', the captured value 'i32'}}
  ttg.warp_specialize(%x)
  default {
    ttg.warp_yield
  }
  partition0(%y: f32) num_warps(4) {
    ttg.warp_return
  } : (i32) -> ()
  tt.return
}

// -----

tt.func @captured_count(%x: i32) {
  // expected-error @+1 {{'ttg.warp_specialize' op partition #0 takes 0 arguments, 1 values are captured}}
  ttg.warp_specialize(%x)
  default {
    ttg.warp_yield
  }
  partition0() num_warps(4) {
    ttg.warp_return
  } : (i32) -> ()
  tt.return
}

// -----

tt.func @start_ids(%x: i32) {
  // expected-error @+1 {{'ttg.warp_specialize' op `warpGroupStartIds` has 2 entries for 1 partitions}}
  ttg.warp_specialize(%x) attributes {warpGroupStartIds = array<i32: 4, 8>}
  default {
    ttg.warp_yield
  }
  partition0(%y: i32) num_warps(4) {
    ttg.warp_return
  } : (i32) -> ()
  tt.return
}

// -----

tt.func @registers(%x: i32) {
  // expected-error @+1 {{'ttg.warp_specialize' op `requestedRegisters` has 0 entries for 1 partitions}}
  ttg.warp_specialize(%x) attributes {requestedRegisters = array<i32>}
  default {
    ttg.warp_yield
  }
  partition0(%y: i32) num_warps(4) {
    ttg.warp_return
  } : (i32) -> ()
  tt.return
}

// -----

tt.func @nested(%x: i32) {
  ttg.warp_specialize()
  default {
    // expected-error @+1 {{'ttg.warp_specialize' op cannot be inside of another ttg.warp_specialize}}
    ttg.warp_specialize()
    default {
      ttg.warp_yield
    } : () -> ()
    ttg.warp_yield
  } : () -> ()
  tt.return
}

// -----

tt.func @yields(%x: i32) {
  %0 = ttg.warp_specialize()
  default {
    // expected-error @+1 {{'ttg.warp_yield' op has 0 operands, the enclosing operation 1 results}}
    ttg.warp_yield
  } : () -> i32
  tt.return
}

// -----

tt.func @yielded_type(%x: f32) {
  %0 = ttg.warp_specialize()
  default {
    // expected-error @+1 {{'ttg.warp_yield' op operand #0 has type 'f32', result #0 of the enclosing operation 'i32'}}
    ttg.warp_yield %x : f32
  } : () -> i32
  tt.return
}

// -----

module attributes {"ttg.num-warps" = 2 : i32} {
  tt.func @groups() {
    // expected-error @+1 {{'ttg.warp_specialize' op needs whole groups of four warps, but the module has 2 warps}}
    ttg.warp_specialize()
    default {
      ttg.warp_yield
    } : () -> ()
    tt.return
  }
}

// -----

tt.func @holder() {
  // expected-error @+1 {{'ttg.warp_specialize' op the second region must hold a ttg.warp_specialize.partitions and nothing else}}
  "ttg.warp_specialize"() <{partitionNumWarps = array<i32>}> ({
    ttg.warp_yield
  }, {
    ub.unreachable
  }) : () -> ()
  tt.return
}

// -----

tt.func @partition_count() {
  // expected-error @+1 {{'ttg.warp_specialize' op has 0 partitions, but partitionNumWarps has 1 entries}}
  "ttg.warp_specialize"() <{partitionNumWarps = array<i32: 4>}> ({
    ttg.warp_yield
  }, {
    "ttg.warp_specialize.partitions"() : () -> ()
  }) : () -> ()
  tt.return
}

// -----

tt.func @masked(%p: i1) {
  // expected-error @+1 {{'ttg.mask' op requires one region}}
  "ttg.mask"(%p) ({
    "ttg.mask.return"() : () -> ()
  }, {
  }) : (i1) -> ()
  tt.return
}

// -----

tt.func @return_outside() {
  // expected-error @+1 {{'ttg.warp_return' op expects parent op 'ttg.warp_specialize.partitions'}}
  ttg.warp_return
  tt.return
}

// -----

tt.func @stage(%i: i32, %n: i64) {
  // expected-error @+2 {{'ttg.predicate_stage' op failed to verify that iv and ub have one type}}
  // expected-note @+1 {{expected 'i32', got 'i64'}}
  %0 = "ttg.predicate_stage"(%i, %n, %i) <{maxStage = 2 : i32, stage = 0 : i32}> : (i32, i64, i32) -> i1
  tt.return
}
