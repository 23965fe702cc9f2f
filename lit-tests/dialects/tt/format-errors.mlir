// RUN: not llopt %s --split-input-file 2>&1 | FileCheck %s

// What the reader of the declarative formats says, and where.

tt.func @keyword(%p: !tt.ptr<f32>, %x: f32) {
  // CHECK: :[[@LINE+1]]:22: error: custom op 'tt.atomic_rmw' expected attribute `atomic_rmw_op` to be one of: and, or, xor, add, fadd, max, min, umax, umin, exch
  %0 = tt.atomic_rmw nand, acq_rel, gpu, %p, %x : (!tt.ptr<f32>, f32) -> f32
  tt.return
}

// -----

tt.func @twice(%p: !tt.ptr<f32>) {
  // CHECK: :[[@LINE+1]]:38: error: custom op 'tt.load' `cacheModifier` is written twice
  %0 = tt.load %p cacheModifier = ca cacheModifier = cg : !tt.ptr<f32>
  tt.return
}

// -----

tt.func @operand(%p: !tt.ptr<f32>) {
  // CHECK: :[[@LINE+1]]:15: error: expected SSA operand
  %0 = tt.load : !tt.ptr<f32>
  tt.return
}

// -----

tt.func @derived(%x: f32) {
  // CHECK: :[[@LINE+1]]:8: error: custom op 'tt.load' the type of `result` does not follow from f32: result matches ptr type
  %0 = tt.load %x : f32
  tt.return
}

// -----

tt.func @symbol() {
  // CHECK: :[[@LINE+1]]:11: error: custom op 'tt.call' expected a symbol reference `@name` for attribute `callee`
  tt.call "callee"() : () -> ()
  tt.return
}

// -----

// CHECK: :[[@LINE+1]]:26: error: `ttg.blocked` has no parameter `perThread`; it has: sizePerThread, threadsPerWarp, warpsPerCTA, order, CGALayout
#unknown = #ttg.blocked<{perThread = [1]}>

// -----

// CHECK: :[[@LINE+1]]:40: error: parameter `order` is given twice
#repeated = #ttg.blocked<{order = [0], order = [0]}>

// -----

// CHECK: :[[@LINE+1]]:26: error: `ttg.blocked` lacks parameter `sizePerThread`
#missing = #ttg.blocked<{order = [0]}>

// -----

// CHECK: :[[@LINE+1]]:36: error: elements of `order` must be between 0 and 2^31 - 1, not -1
#negative = #ttg.blocked<{order = [-1]}>

// -----

// CHECK: :[[@LINE+1]]:38: error: `vec` must be between 0 and 2^31 - 1, not 2147483648
#large = #ttg.swizzled_shared<{vec = 2147483648, perPhase = 1, maxPhase = 1, order = [0]}>
