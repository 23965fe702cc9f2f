// RUN: llopt %s --inline | FileCheck %s --check-prefix=INLINE
// RUN: llopt %s --inline --loop-invariant-code-motion | FileCheck %s --check-prefix=LICM
// RUN: llopt %s --symbol-dce | FileCheck %s --check-prefix=DCE
// RUN: llopt %s --sccp | FileCheck %s --check-prefix=SCCP
// RUN: llopt %s --cse | FileCheck %s --check-prefix=CSE
// RUN: llopt %s --canonicalize | FileCheck %s --check-prefix=CANONICAL
// RUN: llopt %s --convert-scf-to-cf | FileCheck %s --check-prefix=CF

// MLIR's own passes on functions, loops and tensors with layouts.

#layout = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // A private function that nobody calls is dropped, a public one stays.
  // DCE-NOT: @unused
  tt.func private @unused(%x: f32) -> f32 {
    tt.return %x : f32
  }

  // One that is inlined everywhere goes, too.
  // DCE: tt.func private @twice
  // INLINE-NOT: @twice
  tt.func private @twice(%x: tensor<512xf32, #layout>) -> tensor<512xf32, #layout> {
    %0 = arith.addf %x, %x : tensor<512xf32, #layout>
    tt.return %0 : tensor<512xf32, #layout>
  }

  // Without inlining a call stays a call.
  // INLINE: tt.func private @kept
  tt.func private @kept(%x: tensor<512xf32, #layout>) -> tensor<512xf32, #layout> attributes {noinline = true} {
    tt.return %x : tensor<512xf32, #layout>
  }

  // The body of a function in place of its call; what it computes of values from outside moves out of
  // the loop; the loop becomes branches with tensors as arguments of blocks.
  // INLINE-LABEL: @loop
  // LICM-LABEL: @loop
  // CF-LABEL: @loop
  tt.func public @loop(%x: tensor<512xf32, #layout>, %n: i32, %y: f32) -> tensor<512xf32, #layout> {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    // INLINE: scf.for
    // LICM: tt.splat
    // LICM: arith.addf
    // LICM: scf.for
    // CF: cf.br ^[[HEAD:.*]](%{{.*}}, %{{.*}} : i32, tensor<512xf32, #{{.*}}>)
    // CF: ^[[HEAD]](%{{.*}}: i32, %[[SUM:.*]]: tensor<512xf32, #{{.*}}>):
    // CF: cf.cond_br
    %sum = scf.for %i = %zero to %n step %one iter_args(%partial = %x) -> (tensor<512xf32, #layout>) : i32 {
      %splat = tt.splat %y : f32 -> tensor<512xf32, #layout>
      // INLINE: arith.addf
      // INLINE: tt.call @kept
      %double = tt.call @twice(%splat) : (tensor<512xf32, #layout>) -> tensor<512xf32, #layout>
      %same = tt.call @kept(%double) : (tensor<512xf32, #layout>) -> tensor<512xf32, #layout>
      %next = arith.addf %partial, %same : tensor<512xf32, #layout>
      scf.yield %next : tensor<512xf32, #layout>
    }
    // CF: tt.return %[[SUM]]
    tt.return %sum : tensor<512xf32, #layout>
  }

  // Memory operations stay in their loop, and are not taken for one another.
  // LICM-LABEL: @memory
  // CSE-LABEL: @memory
  tt.func public @memory(%p: tensor<512x!tt.ptr<f32>, #layout>, %n: i32) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    // LICM: scf.for
    // LICM-NEXT: tt.load
    // CSE: scf.for
    // CSE-NEXT: tt.load
    // CSE-NEXT: tt.store
    // CSE-NEXT: tt.load
    scf.for %i = %zero to %n step %one : i32 {
      %a = tt.load %p : tensor<512x!tt.ptr<f32>, #layout>
      tt.store %p, %a : tensor<512x!tt.ptr<f32>, #layout>
      %b = tt.load %p : tensor<512x!tt.ptr<f32>, #layout>
      tt.store %p, %b : tensor<512x!tt.ptr<f32>, #layout>
    }
    tt.return
  }

  // A constant goes through a loop that does not change it, and through operations of the dialects.
  // SCCP-LABEL: @constant
  // SCCP: %[[SEVEN:.*]] = arith.constant dense<7> : tensor<512xi32
  // SCCP: tt.return %[[SEVEN]]
  // CANONICAL-LABEL: @constant
  // CANONICAL-NEXT: %[[SEVEN:.*]] = arith.constant dense<7> : tensor<512xi32
  // CANONICAL-NEXT: tt.return %[[SEVEN]]
  tt.func public @constant(%n: i32) -> tensor<512xi32, #layout> {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %seven = arith.constant 7 : i32
    %same = scf.for %i = %zero to %n step %one iter_args(%held = %seven) -> i32 : i32 {
      scf.yield %held : i32
    }
    %splat = tt.splat %same : i32 -> tensor<512xi32, #layout>
    tt.return %splat : tensor<512xi32, #layout>
  }

  // Equal operations without effects become one.
  // CSE-LABEL: @equal
  // CSE-COUNT-1: tt.splat
  // CSE-NOT: tt.splat
  // CSE: tt.return
  tt.func public @equal(%y: f32) -> (tensor<512xf32, #layout>, tensor<512xf32, #layout>) {
    %0 = tt.splat %y : f32 -> tensor<512xf32, #layout>
    %1 = tt.splat %y : f32 -> tensor<512xf32, #layout>
    tt.return %0, %1 : tensor<512xf32, #layout>, tensor<512xf32, #layout>
  }
}
