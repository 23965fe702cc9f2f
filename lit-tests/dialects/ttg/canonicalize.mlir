// RUN: llopt %s --canonicalize --split-input-file | FileCheck %s

#narrow = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#wide = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#other = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: @conversions
  // CHECK-SAME: (%[[X:.*]]: tensor<512xf32, #[[NARROW:.*]]>, %[[S:.*]]: f32)
  tt.func @conversions(%x: tensor<512xf32, #narrow>, %s: f32)
      -> (tensor<512xf32, #wide>, tensor<512xf32, #narrow>, tensor<512xf32, #wide>, tensor<512xi32, #wide>, tensor<512xi32, #wide>) {
    // CHECK-DAG: %[[C:.*]] = arith.constant dense<3> : tensor<512xi32, #[[WIDE:.*]]>
    // CHECK-DAG: %[[A:.*]] = ttg.convert_layout %[[X]] : tensor<512xf32, #[[NARROW]]> -> tensor<512xf32, #[[WIDE]]>
    // CHECK-DAG: %[[B:.*]] = tt.splat %[[S]] : f32 -> tensor<512xf32, #[[WIDE]]>
    // CHECK-DAG: %[[R:.*]] = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #[[WIDE]]>
    // CHECK: tt.return %[[A]], %[[X]], %[[B]], %[[R]], %[[C]]
    %c = arith.constant dense<3> : tensor<512xi32, #narrow>
    %0 = ttg.convert_layout %x : tensor<512xf32, #narrow> -> tensor<512xf32, #other>
    %1 = ttg.convert_layout %0 : tensor<512xf32, #other> -> tensor<512xf32, #wide>
    %2 = ttg.convert_layout %0 : tensor<512xf32, #other> -> tensor<512xf32, #narrow>
    %3 = tt.splat %s : f32 -> tensor<512xf32, #narrow>
    %4 = ttg.convert_layout %3 : tensor<512xf32, #narrow> -> tensor<512xf32, #wide>
    %5 = tt.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32, #narrow>
    %6 = ttg.convert_layout %5 : tensor<512xi32, #narrow> -> tensor<512xi32, #wide>
    %7 = ttg.convert_layout %c : tensor<512xi32, #narrow> -> tensor<512xi32, #wide>
    tt.return %1, %2, %4, %6, %7 : tensor<512xf32, #wide>, tensor<512xf32, #narrow>, tensor<512xf32, #wide>, tensor<512xi32, #wide>, tensor<512xi32, #wide>
  }
}

// -----

#narrow = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#wide = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  // The load must not move past the store.
  // CHECK-LABEL: @buffers
  // CHECK-SAME: (%[[X:.*]]: tensor<512xf32, #[[NARROW:[a-z0-9]+]]>
  tt.func @buffers(%x: tensor<512xf32, #narrow>) -> tensor<512xf32, #wide> {
    // CHECK-NEXT: %[[BUFFER:.*]] = ttg.local_alloc %[[X]]
    // CHECK-NEXT: %[[Y:.*]] = ttg.local_load %[[BUFFER]] : {{.*}} -> tensor<512xf32, #[[WIDE:[a-z0-9]+]]>
    // CHECK-NEXT: ttg.local_store %[[X]], %[[BUFFER]]
    // CHECK-NEXT: tt.return %[[Y]]
    %wide = ttg.convert_layout %x : tensor<512xf32, #narrow> -> tensor<512xf32, #wide>
    %buffer = ttg.local_alloc %wide : (tensor<512xf32, #wide>) -> !ttg.memdesc<512xf32, #shared, #smem, mutable>
    %0 = ttg.local_load %buffer : !ttg.memdesc<512xf32, #shared, #smem, mutable> -> tensor<512xf32, #narrow>
    ttg.local_store %wide, %buffer : tensor<512xf32, #wide> -> !ttg.memdesc<512xf32, #shared, #smem, mutable>
    %1 = ttg.convert_layout %0 : tensor<512xf32, #narrow> -> tensor<512xf32, #wide>
    tt.return %1 : tensor<512xf32, #wide>
  }

  // CHECK-LABEL: @pairs
  // CHECK-SAME: (%[[X:.*]]: tensor<{{.*}}>, %[[B:.*]]: !ttg.memdesc<{{.*}}>)
  tt.func @pairs(%x: tensor<512xf32, #narrow>, %b: !ttg.memdesc<512xf32, #shared, #smem>)
      -> (tensor<512xf32, #narrow>, !ttg.memdesc<512xf32, #shared, #smem>) {
    // CHECK-NEXT: tt.return %[[X]], %[[B]]
    %buffer = ttg.local_alloc %x : (tensor<512xf32, #narrow>) -> !ttg.memdesc<512xf32, #shared, #smem>
    %0 = ttg.local_load %buffer : !ttg.memdesc<512xf32, #shared, #smem> -> tensor<512xf32, #narrow>
    %1 = ttg.local_load %b : !ttg.memdesc<512xf32, #shared, #smem> -> tensor<512xf32, #narrow>
    %2 = ttg.local_alloc %1 : (tensor<512xf32, #narrow>) -> !ttg.memdesc<512xf32, #shared, #smem>
    tt.return %0, %2 : tensor<512xf32, #narrow>, !ttg.memdesc<512xf32, #shared, #smem>
  }
}

// -----

#narrow = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#wide = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: @any_layout
  // CHECK-SAME: (%[[X:.*]]: tensor<512xi32, #[[NARROW:[a-z0-9]+]]>, %[[M:[a-z0-9]+]]:
  tt.func @any_layout(%x: tensor<512xi32, #narrow>, %m: tensor<512xi1, #wide>)
      -> (tensor<512xi32, #narrow>, tensor<512xi32, #wide>, tensor<512xi32, #wide>, tensor<512xi32, #wide>) {
    // CHECK-DAG: %[[MASK:.*]] = ttg.convert_layout %[[M]] : tensor<512xi1, #[[WIDE:[a-z0-9]+]]> -> tensor<512xi1, #[[NARROW]]>
    // CHECK-DAG: %[[H:.*]] = tt.histogram %[[X]], %[[MASK]] : tensor<512xi32, #[[NARROW]]> -> tensor<512xi32, #[[NARROW]]>
    // CHECK-DAG: %[[R:.*]] = tt.reshape %[[X]] allow_reorder : tensor<512xi32, #[[NARROW]]> -> tensor<512xi32, #[[WIDE]]>
    // CHECK-DAG: %[[I:.*]] = tt.make_range {{.*}} : tensor<512xi32, #[[WIDE]]>
    // CHECK-DAG: %[[G:.*]] = tt.gather %[[X]][%[[I]]] {axis = 0 : i32} : (tensor<512xi32, #[[NARROW]]>, tensor<512xi32, #[[WIDE]]>)
    // CHECK: tt.return %[[H]], %[[R]], %[[G]]
    %wide = ttg.convert_layout %x : tensor<512xi32, #narrow> -> tensor<512xi32, #wide>
    %0 = tt.histogram %wide, %m : tensor<512xi32, #wide> -> tensor<512xi32, #wide>
    %1 = ttg.convert_layout %0 : tensor<512xi32, #wide> -> tensor<512xi32, #narrow>
    %2 = tt.reshape %wide allow_reorder : tensor<512xi32, #wide> -> tensor<512xi32, #wide>
    %3 = tt.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32, #wide>
    %4 = tt.gather %wide[%3] {axis = 0 : i32} : (tensor<512xi32, #wide>, tensor<512xi32, #wide>) -> tensor<512xi32, #wide>
    // CHECK-SAME: %[[K:[a-z0-9]+]] :
    // With layouts chosen for it, the gather keeps its source.
    %5 = tt.gather %wide[%3] {axis = 0 : i32, efficient_layout} : (tensor<512xi32, #wide>, tensor<512xi32, #wide>) -> tensor<512xi32, #wide>
    tt.return %1, %2, %4, %5 : tensor<512xi32, #narrow>, tensor<512xi32, #wide>, tensor<512xi32, #wide>, tensor<512xi32, #wide>
  }
}

// -----

module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: @specialized
  // CHECK-SAME: (%[[A:.*]]: i32, %[[B:.*]]: !tt.ptr<i32>)
  tt.func @specialized(%a: i32, %b: !tt.ptr<i32>) -> i32 {
    // CHECK: %[[R:.*]] = ttg.warp_specialize(%[[B]], %[[A]])
    // CHECK: ttg.warp_yield %{{.*}} : i32
    // CHECK: partition0(%[[P:.*]]: !tt.ptr<i32>, %[[V:.*]]: i32) num_warps(4)
    // CHECK: %[[S:.*]] = arith.muli %[[V]], %[[V]]
    // CHECK: tt.store %[[P]], %[[S]]
    // CHECK: (!tt.ptr<i32>, i32) -> i32
    // CHECK: tt.return %[[R]]
    %0:2 = ttg.warp_specialize(%a, %b, %a, %b)
    default {
      %c1 = arith.constant 1 : i32
      %1 = arith.addi %a, %c1 : i32
      ttg.warp_yield %a, %1 : i32, i32
    }
    partition0(%x: i32, %p: !tt.ptr<i32>, %y: i32, %q: !tt.ptr<i32>) num_warps(4) {
      %1 = arith.muli %y, %y : i32
      tt.store %p, %1 : !tt.ptr<i32>
      ttg.warp_return
    } : (i32, !tt.ptr<i32>, i32, !tt.ptr<i32>) -> (i32, i32)
    tt.return %0#1 : i32
  }
}
