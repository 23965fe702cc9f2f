// What is printed is what was read, character by character, from text and from bytecode.
// RUN: llopt %s --split-input-file --verify-roundtrip | grep -v '^ *\(//.*\)*$' > %t.printed
// RUN: grep -v '^ *\(//.*\)*$' %s | diff - %t.printed

module {
  // Loads with every optional operand, every cache modifier and every eviction policy.
  tt.func @loads(%arg0: !tt.ptr<f32>, %arg1: tensor<8x!tt.ptr<f32>>, %arg2: tensor<8xi1>, %arg3: tensor<8xf32>, %arg4: !tt.ptr<tensor<8x8xf32>>) {
    %0 = tt.load %arg0 : !tt.ptr<f32>
    %1 = tt.load %arg1 : tensor<8x!tt.ptr<f32>>
    %2 = tt.load %arg1, %arg2 : tensor<8x!tt.ptr<f32>>
    %3 = tt.load %arg1, %arg2, %arg3 : tensor<8x!tt.ptr<f32>>
    %4 = tt.load %arg1 cacheModifier = ca : tensor<8x!tt.ptr<f32>>
    %5 = tt.load %arg1 cacheModifier = cg evictionPolicy = evict_first : tensor<8x!tt.ptr<f32>>
    %6 = tt.load %arg1 evictionPolicy = evict_last {isVolatile = true} : tensor<8x!tt.ptr<f32>>
    %7 = tt.load %arg1 cacheModifier = cv : tensor<8x!tt.ptr<f32>>
    %8 = tt.load %arg4 {boundaryCheck = array<i32: 0, 1>, padding = 1 : i32} : !tt.ptr<tensor<8x8xf32>>
    %9 = tt.load %arg4 {boundaryCheck = array<i32: 1>, padding = 2 : i32} : !tt.ptr<tensor<8x8xf32>>
    tt.return
  }

  // Stores with every optional operand and the modifiers that only stores have.
  tt.func @stores(%arg0: !tt.ptr<f32>, %arg1: f32, %arg2: tensor<8x!tt.ptr<f32>>, %arg3: tensor<8xi1>, %arg4: tensor<8xf32>, %arg5: !tt.ptr<tensor<8x8xf32>>, %arg6: tensor<8x8xf32>) {
    tt.store %arg0, %arg1 : !tt.ptr<f32>
    tt.store %arg2, %arg4, %arg3 : tensor<8x!tt.ptr<f32>>
    tt.store %arg2, %arg4 cacheModifier = wb : tensor<8x!tt.ptr<f32>>
    tt.store %arg2, %arg4 cacheModifier = cs evictionPolicy = evict_last : tensor<8x!tt.ptr<f32>>
    tt.store %arg2, %arg4 cacheModifier = wt : tensor<8x!tt.ptr<f32>>
    tt.store %arg5, %arg6 {boundaryCheck = array<i32: 0>} : !tt.ptr<tensor<8x8xf32>>
    tt.return
  }

  // Every update, ordering and scope of an atomic.
  tt.func @atomics(%arg0: tensor<8x!tt.ptr<i32>>, %arg1: !tt.ptr<f32>, %arg2: tensor<8xi32>, %arg3: f32, %arg4: tensor<8xi1>, %arg5: i1) {
    %0 = tt.atomic_rmw and, relaxed, gpu, %arg0, %arg2 : (tensor<8x!tt.ptr<i32>>, tensor<8xi32>) -> tensor<8xi32>
    %1 = tt.atomic_rmw or, acquire, cta, %arg0, %arg2, %arg4 : (tensor<8x!tt.ptr<i32>>, tensor<8xi32>, tensor<8xi1>) -> tensor<8xi32>
    %2 = tt.atomic_rmw xor, release, sys, %arg0, %arg2 : (tensor<8x!tt.ptr<i32>>, tensor<8xi32>) -> tensor<8xi32>
    %3 = tt.atomic_rmw add, acq_rel, gpu, %arg0, %arg2 : (tensor<8x!tt.ptr<i32>>, tensor<8xi32>) -> tensor<8xi32>
    %4 = tt.atomic_rmw fadd, acq_rel, gpu, %arg1, %arg3, %arg5 : (!tt.ptr<f32>, f32, i1) -> f32
    %5 = tt.atomic_rmw max, relaxed, gpu, %arg0, %arg2 : (tensor<8x!tt.ptr<i32>>, tensor<8xi32>) -> tensor<8xi32>
    %6 = tt.atomic_rmw min, relaxed, gpu, %arg0, %arg2 : (tensor<8x!tt.ptr<i32>>, tensor<8xi32>) -> tensor<8xi32>
    %7 = tt.atomic_rmw umax, relaxed, gpu, %arg0, %arg2 : (tensor<8x!tt.ptr<i32>>, tensor<8xi32>) -> tensor<8xi32>
    %8 = tt.atomic_rmw umin, relaxed, gpu, %arg0, %arg2 : (tensor<8x!tt.ptr<i32>>, tensor<8xi32>) -> tensor<8xi32>
    %9 = tt.atomic_rmw exch, relaxed, gpu, %arg0, %arg2 : (tensor<8x!tt.ptr<i32>>, tensor<8xi32>) -> tensor<8xi32>
    %10 = tt.atomic_cas acq_rel, sys, %arg0, %arg2, %arg2 : (tensor<8x!tt.ptr<i32>>, tensor<8xi32>, tensor<8xi32>) -> tensor<8xi32>
    tt.return
  }

  // Pointers to blocks.
  tt.func @blocks(%arg0: !tt.ptr<f16>, %arg1: i64, %arg2: i32) -> tensor<8x16xf16> {
    %0 = tt.make_tensor_ptr %arg0, [%arg1, %arg1], [%arg1, %arg1], [%arg2, %arg2] {order = array<i32: 1, 0>} : <tensor<8x16xf16>>
    %1 = tt.advance %0, [%arg2, %arg2] : <tensor<8x16xf16>>
    %2 = tt.load %1 : !tt.ptr<tensor<8x16xf16>>
    tt.return %2 : tensor<8x16xf16>
  }
}
