// RUN: llopt %s --tritongpu-optimize-accumulator-init | FileCheck %s

#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!a = !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
!sum = tensor<64x64xf32, #mma>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // Zeros under a condition become a product that does not add: from zeros, the first does not either.
  // CHECK-LABEL: @zeros_if_true
  // CHECK: scf.for {{.*}} iter_args(%[[SUM:.*]] = %{{.*}}, %[[COUNTS:.*]] = %false)
  // CHECK: %[[NEXT:.*]] = ttng.warp_group_dot %{{.*}}, %{{.*}}, %[[SUM]], %[[COUNTS]]
  // CHECK-NOT: arith.select
  // CHECK: %[[GOES_ON:.*]] = arith.xori %{{.*}}, %true
  // CHECK: scf.yield %[[NEXT]], %[[GOES_ON]]
  tt.func @zeros_if_true(%a: !a, %n: i32, %every: i32) {
    %zero = arith.constant dense<0.0> : !sum
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %last = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (!sum) : i32 {
      %next = ttng.warp_group_dot %a, %a, %sum {isAsync = true} : !a * !a -> !sum
      %complete = arith.cmpi eq, %i, %every : i32
      %chosen = arith.select %complete, %zero, %next : !sum
      scf.yield %chosen : !sum
    }
    tt.return
  }

  // A sum that begins with something counts; one that goes on under the condition needs no negation; what a wait
  // behind the loop hands on is zeros where the sum does not count.
  // CHECK-LABEL: @zeros_if_false
  // CHECK: %[[LOOP:.*]]:2 = scf.for {{.*}} iter_args(%[[SUM:.*]] = %arg1, %[[COUNTS:.*]] = %true)
  // CHECK: %[[NEXT:.*]] = ttng.warp_group_dot %{{.*}}, %{{.*}}, %[[SUM]], %[[COUNTS]]
  // CHECK: %[[GOES_ON:.*]] = arith.cmpi
  // CHECK-NEXT: scf.yield %[[NEXT]], %[[GOES_ON]]
  // CHECK: %[[DONE:.*]] = ttng.warp_group_dot_wait %[[LOOP]]#0
  // CHECK: %[[RESULT:.*]] = arith.select %[[LOOP]]#1, %[[DONE]], %cst
  // CHECK: tt.return %[[RESULT]]
  tt.func @zeros_if_false(%a: !a, %start: !sum, %n: i32, %every: i32) -> !sum {
    %zero = arith.constant dense<0.0> : !sum
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %last = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %start) -> (!sum) : i32 {
      %next = ttng.warp_group_dot %a, %a, %sum {isAsync = true} : !a * !a -> !sum
      %goes_on = arith.cmpi ne, %i, %every : i32
      %chosen = arith.select %goes_on, %next, %zero : !sum
      scf.yield %chosen : !sum
    }
    %done = ttng.warp_group_dot_wait %last {pendings = 0 : i32} : !sum
    tt.return %done : !sum
  }

  // A product that adds under a condition of its own adds where both hold.
  // CHECK-LABEL: @two_conditions
  // CHECK: iter_args(%[[SUM:.*]] = %{{.*}}, %[[COUNTS:.*]] = %false)
  // CHECK: %[[BOTH:.*]] = arith.andi %arg1, %[[COUNTS]]
  // CHECK: ttng.warp_group_dot %{{.*}}, %{{.*}}, %[[SUM]], %[[BOTH]]
  tt.func @two_conditions(%a: !a, %adds: i1, %n: i32, %every: i32) {
    %zero = arith.constant dense<0.0> : !sum
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %last = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (!sum) : i32 {
      %next = ttng.warp_group_dot %a, %a, %sum, %adds {isAsync = true} : !a * !a -> !sum
      %complete = arith.cmpi eq, %i, %every : i32
      %chosen = arith.select %complete, %zero, %next : !sum
      scf.yield %chosen : !sum
    }
    tt.return
  }

  // Something else reads the sum, which must be zeros where it says so.
  // CHECK-LABEL: @read_inside
  // CHECK: arith.select %{{.*}} : tensor<64x64xf32
  tt.func @read_inside(%a: !a, %n: i32, %every: i32) {
    %zero = arith.constant dense<0.0> : !sum
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %last = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (!sum) : i32 {
      %next = ttng.warp_group_dot %a, %a, %sum : !a * !a -> !sum
      %both = arith.addf %next, %sum : !sum
      %complete = arith.cmpi eq, %i, %every : i32
      %chosen = arith.select %complete, %zero, %both : !sum
      scf.yield %chosen : !sum
    }
    tt.return
  }

  // Each time that the inner loop begins, its first product overwrites the sums of the last tile, which the outer loop carries:
  // nothing writes zeros to their registers. The upper bound shows that there is a first product.
  // CHECK-LABEL: @begun_for_each_tile
  // CHECK: %[[LAST:.*]] = scf.for {{.*}} iter_args(%[[BEFORE:.*]] = %cst)
  // CHECK: scf.for %[[I:.*]] = %c0_i32 to %{{.*}} step %c1_i32 iter_args(%[[SUM:.*]] = %[[BEFORE]])
  // CHECK: %[[ADDS:.*]] = arith.cmpi slt, %c0_i32, %[[I]]
  // CHECK: ttng.warp_group_dot %{{.*}}, %{{.*}}, %[[SUM]], %[[ADDS]]
  // CHECK: %[[DONE:.*]] = ttng.warp_group_dot_wait
  // CHECK: scf.yield %[[DONE]]
  tt.func @begun_for_each_tile(%a: !a, %n: i32, %tiles: i32, %to: !ttg.memdesc<64x64xf32, #shared, #smem, mutable>) {
    %zero = arith.constant dense<0.0> : !sum
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %upper = arith.maxsi %n, %c1 : i32
    scf.for %tile = %c0 to %tiles step %c1 : i32 {
      %last = scf.for %i = %c0 to %upper step %c1 iter_args(%sum = %zero) -> (!sum) : i32 {
        %next = ttng.warp_group_dot %a, %a, %sum {isAsync = true} : !a * !a -> !sum
        scf.yield %next : !sum
      }
      %done = ttng.warp_group_dot_wait %last {pendings = 0 : i32} : !sum
      ttg.local_store %done, %to : !sum -> !ttg.memdesc<64x64xf32, #shared, #smem, mutable>
    }
    tt.return
  }

  // Without an iteration the sums are zeros, so they begin with these where that is possible.
  // CHECK-LABEL: @perhaps_without_products
  // CHECK: ttng.warp_group_dot %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} {isAsync
  tt.func @perhaps_without_products(%a: !a, %n: i32, %tiles: i32, %to: !ttg.memdesc<64x64xf32, #shared, #smem, mutable>) {
    %zero = arith.constant dense<0.0> : !sum
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %tile = %c0 to %tiles step %c1 : i32 {
      %last = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (!sum) : i32 {
        %next = ttng.warp_group_dot %a, %a, %sum {isAsync = true} : !a * !a -> !sum
        scf.yield %next : !sum
      }
      %done = ttng.warp_group_dot_wait %last {pendings = 0 : i32} : !sum
      ttg.local_store %done, %to : !sum -> !ttg.memdesc<64x64xf32, #shared, #smem, mutable>
    }
    tt.return
  }
}
