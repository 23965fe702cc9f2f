// A loop over programs, of which a warp of its own copies the factors.
//
// RUN: llopt compile %s --target cuda:90 --num-warps 8 --emit ttgir -o - | FileCheck %s

// The consumers compute where a tile is stored behind its products, where it does not occupy registers; the producer
// computes where the factors are.
// CHECK-LABEL: @programs
// CHECK: ttg.warp_specialize
// CHECK: default
// CHECK: scf.for %[[TILE:[^ ]*]] =
// CHECK-NOT: arith.divsi
// CHECK: scf.for
// CHECK: ttng.warp_group_dot
// CHECK: scf.yield
// CHECK: }
// CHECK: arith.divsi %[[TILE]]
// CHECK: ttng.warp_group_dot_wait
// CHECK: ttng.async_tma_copy_local_to_global
// CHECK: partition0(
// CHECK: arith.divsi
// CHECK: scf.for
// CHECK: ttng.async_tma_copy_global_to_local
tt.func public @programs(%a: !tt.tensordesc<tensor<128x64xf16>>, %b: !tt.tensordesc<tensor<64x256xf16>>, %c: !tt.tensordesc<tensor<128x256xf16>>, %K: i32, %across: i32, %tiles: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %c256 = arith.constant 256 : i32
  %zero = arith.constant dense<0.0> : tensor<128x256xf32>
  %block = tt.get_program_id x : i32
  %blocks = tt.get_num_programs x : i32
  %steps = arith.divsi %K, %c64 : i32
  %some = arith.maxsi %steps, %c1 : i32
  scf.for %tile = %block to %tiles step %blocks : i32 {
    %y = arith.divsi %tile, %across : i32
    %x = arith.remsi %tile, %across : i32
    %m = arith.muli %y, %c128 : i32
    %n = arith.muli %x, %c256 : i32
    %sum = scf.for %i = %c0 to %some step %c1 iter_args(%acc = %zero) -> (tensor<128x256xf32>) : i32 {
      %k = arith.muli %i, %c64 : i32
      %l = tt.descriptor_load %a[%m, %k] : !tt.tensordesc<tensor<128x64xf16>> -> tensor<128x64xf16>
      %r = tt.descriptor_load %b[%k, %n] : !tt.tensordesc<tensor<64x256xf16>> -> tensor<64x256xf16>
      %next = tt.dot %l, %r, %acc, inputPrecision = tf32 : tensor<128x64xf16> * tensor<64x256xf16> -> tensor<128x256xf32>
      scf.yield %next : tensor<128x256xf32>
    }
    %narrow = arith.truncf %sum : tensor<128x256xf32> to tensor<128x256xf16>
    tt.descriptor_store %c[%m, %n], %narrow : !tt.tensordesc<tensor<128x256xf16>>, tensor<128x256xf16>
  }
  tt.return
}
