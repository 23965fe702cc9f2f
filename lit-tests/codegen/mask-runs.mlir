// A mask that does not vary within a vector, because 16 divides its bound, is one comparison for the vector:
// for the access it guards, and for the selection by the same mask.
//
// RUN: llopt compile %s --target cuda:90 | FileCheck %s --check-prefix=NV
// RUN: llopt compile %s --target hip:gfx1200 --emit llvm | FileCheck %s --check-prefix=AMD

#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  // NV-LABEL: .entry divisible
  // NV-COUNT-1: setp
  // NV-NOT: setp
  // NV: ret;

  // AMD-LABEL: define {{.*}} @divisible
  // AMD-COUNT-1: icmp
  // AMD-NOT: icmp
  // AMD: ret void
  tt.func public @divisible(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}) {
    %zero = arith.constant dense<0.0> : tensor<512xf32, #blocked>
    %r = tt.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32, #blocked>
    %bound = tt.splat %n : i32 -> tensor<512xi32, #blocked>
    %inside = arith.cmpi slt, %r, %bound : tensor<512xi32, #blocked>
    %s = tt.splat %p : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #blocked>
    %a = tt.addptr %s, %r : tensor<512x!tt.ptr<f32>, #blocked>, tensor<512xi32, #blocked>
    %x = tt.load %a, %inside : tensor<512x!tt.ptr<f32>, #blocked>
    %e = math.exp2 %x : tensor<512xf32, #blocked>
    %y = arith.select %inside, %e, %zero : tensor<512xi1, #blocked>, tensor<512xf32, #blocked>
    tt.store %a, %y : tensor<512x!tt.ptr<f32>, #blocked>
    tt.return
  }
}
