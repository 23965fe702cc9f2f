// Loops end where all further iterations do nothing.
//
// RUN: llopt %s --skip-idle-iterations | FileCheck %s

module {
  // A condition on the loop's number masks all that an iteration loads, so sums stay what they are once it fails. Before that
  // it holds, so it is no mask any more.
  // CHECK-LABEL: @by_number
  // CHECK: %[[BELOW:.+]] = arith.cmpi sgt, %[[N:.+]], %c64_i32 : i32
  // CHECK: %[[END:.+]] = arith.select %[[BELOW]], %c64_i32, %[[N]] : i32
  // CHECK: scf.for %{{.+}} = %c0_i32 to %[[END]]
  // CHECK-NOT: arith.cmpi
  // CHECK: tt.load
  tt.func public @by_number(%from: !tt.ptr<f32>, %to: !tt.ptr<f32>, %n: i32, %m: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %c64 = arith.constant 64 : i32
    %zeros = arith.constant dense<0.0> : tensor<8xf32>
    %minus = arith.constant dense<-0.0> : tensor<8xf32>
    %range = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
    %f = tt.splat %from : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
    %t = tt.splat %to : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
    %place = tt.addptr %t, %range : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
    %sum = scf.for %i = %c0 to %c64 step %c1 iter_args(%x = %zeros) -> (tensor<8xf32>) : i32 {
      %first = arith.muli %i, %c8 : i32
      %firsts = tt.splat %first : i32 -> tensor<8xi32>
      %at = arith.addi %firsts, %range : tensor<8xi32>
      %below = arith.cmpi slt, %i, %n : i32
      %mask = tt.splat %below : i1 -> tensor<8xi1>
      %p = tt.addptr %f, %at : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
      %v = tt.load %p, %mask, %zeros : tensor<8x!tt.ptr<f32>>
      %s = arith.addf %x, %v : tensor<8xf32>
      scf.yield %s : tensor<8xf32>
    }
    tt.store %place, %sum : tensor<8x!tt.ptr<f32>>
    tt.return
  }

  // The number of blocks of eight elements that hold one below the bound.
  // CHECK-LABEL: @by_elements
  // CHECK: %[[LAST:.+]] = arith.subi %[[N:.+]], %c1_i32 : i32
  // CHECK: %[[BLOCK:.+]] = arith.divsi %[[LAST]], %c8_i32 : i32
  // CHECK: %[[BLOCKS:.+]] = arith.addi %[[BLOCK]], %c1_i32 : i32
  // CHECK: %[[END:.+]] = arith.select %{{.+}}, %{{.+}}, %[[BLOCKS]] : i32
  // CHECK: scf.for %{{.+}} = %c0_i32 to %[[END]]
  tt.func public @by_elements(%from: !tt.ptr<f32>, %to: !tt.ptr<f32>, %n: i32, %m: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %c64 = arith.constant 64 : i32
    %zeros = arith.constant dense<0.0> : tensor<8xf32>
    %minus = arith.constant dense<-0.0> : tensor<8xf32>
    %range = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
    %f = tt.splat %from : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
    %t = tt.splat %to : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
    %place = tt.addptr %t, %range : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
    %sum = scf.for %i = %c0 to %m step %c1 iter_args(%x = %zeros) -> (tensor<8xf32>) : i32 {
      %first = arith.muli %i, %c8 : i32
      %firsts = tt.splat %first : i32 -> tensor<8xi32>
      %at = arith.addi %firsts, %range : tensor<8xi32>
      %end = tt.splat %n : i32 -> tensor<8xi32>
      %mask = arith.cmpi slt, %at, %end : tensor<8xi32>
      %p = tt.addptr %f, %at : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
      %v = tt.load %p, %mask, %zeros : tensor<8x!tt.ptr<f32>>
      %s = arith.addf %x, %v : tensor<8xf32>
      scf.yield %s : tensor<8xf32>
    }
    tt.store %place, %sum : tensor<8x!tt.ptr<f32>>
    tt.return
  }

  // A loop in the loop is idle with it.
  // CHECK-LABEL: @nested
  // CHECK: %[[END:.+]] = arith.select
  // CHECK: scf.for %{{.+}} = %c0_i32 to %[[END]]
  // CHECK: scf.for %{{.+}} = %c0_i32 to %c8_i32
  tt.func public @nested(%from: !tt.ptr<f32>, %to: !tt.ptr<f32>, %n: i32, %m: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %c64 = arith.constant 64 : i32
    %zeros = arith.constant dense<0.0> : tensor<8xf32>
    %minus = arith.constant dense<-0.0> : tensor<8xf32>
    %range = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
    %f = tt.splat %from : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
    %t = tt.splat %to : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
    %place = tt.addptr %t, %range : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
    %sum = scf.for %i = %c0 to %c64 step %c1 iter_args(%x = %zeros) -> (tensor<8xf32>) : i32 {
      %first = arith.muli %i, %c8 : i32
      %firsts = tt.splat %first : i32 -> tensor<8xi32>
      %at = arith.addi %firsts, %range : tensor<8xi32>
      %below = arith.cmpi slt, %i, %n : i32
      %mask = tt.splat %below : i1 -> tensor<8xi1>
      %p = tt.addptr %f, %at : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
      %v = tt.load %p, %mask, %zeros : tensor<8x!tt.ptr<f32>>
      %s = scf.for %j = %c0 to %c8 step %c1 iter_args(%y = %x) -> (tensor<8xf32>) : i32 {
        %w = arith.addf %y, %v : tensor<8xf32>
        scf.yield %w : tensor<8xf32>
      }
      scf.yield %s : tensor<8xf32>
    }
    tt.store %place, %sum : tensor<8x!tt.ptr<f32>>
    tt.return
  }

  // The sum of -0 and 0 is 0: here an idle iteration may change something.
  // CHECK-LABEL: @begins_with_minus_zero
  // CHECK: scf.for %{{.+}} = %c0_i32 to %c64_i32
  tt.func public @begins_with_minus_zero(%from: !tt.ptr<f32>, %to: !tt.ptr<f32>, %n: i32, %m: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %c64 = arith.constant 64 : i32
    %zeros = arith.constant dense<0.0> : tensor<8xf32>
    %minus = arith.constant dense<-0.0> : tensor<8xf32>
    %range = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
    %f = tt.splat %from : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
    %t = tt.splat %to : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
    %place = tt.addptr %t, %range : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
    %sum = scf.for %i = %c0 to %c64 step %c1 iter_args(%x = %minus) -> (tensor<8xf32>) : i32 {
      %first = arith.muli %i, %c8 : i32
      %firsts = tt.splat %first : i32 -> tensor<8xi32>
      %at = arith.addi %firsts, %range : tensor<8xi32>
      %below = arith.cmpi slt, %i, %n : i32
      %mask = tt.splat %below : i1 -> tensor<8xi1>
      %p = tt.addptr %f, %at : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
      %v = tt.load %p, %mask, %zeros : tensor<8x!tt.ptr<f32>>
      %s = arith.addf %x, %v : tensor<8xf32>
      scf.yield %s : tensor<8xf32>
    }
    tt.store %place, %sum : tensor<8x!tt.ptr<f32>>
    tt.return
  }

  // What is stored shows.
  // CHECK-LABEL: @stores
  // CHECK: scf.for %{{.+}} = %c0_i32 to %c64_i32
  tt.func public @stores(%from: !tt.ptr<f32>, %to: !tt.ptr<f32>, %n: i32, %m: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %c64 = arith.constant 64 : i32
    %zeros = arith.constant dense<0.0> : tensor<8xf32>
    %minus = arith.constant dense<-0.0> : tensor<8xf32>
    %range = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
    %f = tt.splat %from : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
    %t = tt.splat %to : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
    %place = tt.addptr %t, %range : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
    %sum = scf.for %i = %c0 to %c64 step %c1 iter_args(%x = %zeros) -> (tensor<8xf32>) : i32 {
      %first = arith.muli %i, %c8 : i32
      %firsts = tt.splat %first : i32 -> tensor<8xi32>
      %at = arith.addi %firsts, %range : tensor<8xi32>
      %below = arith.cmpi slt, %i, %n : i32
      %mask = tt.splat %below : i1 -> tensor<8xi1>
      %p = tt.addptr %f, %at : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
      %v = tt.load %p, %mask, %zeros : tensor<8x!tt.ptr<f32>>
      %s = arith.addf %x, %v : tensor<8xf32>
      tt.store %place, %s : tensor<8x!tt.ptr<f32>>
      scf.yield %s : tensor<8xf32>
    }
    tt.store %place, %sum : tensor<8x!tt.ptr<f32>>
    tt.return
  }

  // A loop of eight iterations is unrolled.
  // CHECK-LABEL: @is_short
  // CHECK: scf.for %{{.+}} = %c0_i32 to %c8_i32
  tt.func public @is_short(%from: !tt.ptr<f32>, %to: !tt.ptr<f32>, %n: i32, %m: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %c64 = arith.constant 64 : i32
    %zeros = arith.constant dense<0.0> : tensor<8xf32>
    %minus = arith.constant dense<-0.0> : tensor<8xf32>
    %range = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
    %f = tt.splat %from : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
    %t = tt.splat %to : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
    %place = tt.addptr %t, %range : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
    %sum = scf.for %i = %c0 to %c8 step %c1 iter_args(%x = %zeros) -> (tensor<8xf32>) : i32 {
      %first = arith.muli %i, %c8 : i32
      %firsts = tt.splat %first : i32 -> tensor<8xi32>
      %at = arith.addi %firsts, %range : tensor<8xi32>
      %below = arith.cmpi slt, %i, %n : i32
      %mask = tt.splat %below : i1 -> tensor<8xi1>
      %p = tt.addptr %f, %at : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
      %v = tt.load %p, %mask, %zeros : tensor<8x!tt.ptr<f32>>
      %s = arith.addf %x, %v : tensor<8xf32>
      scf.yield %s : tensor<8xf32>
    }
    tt.store %place, %sum : tensor<8x!tt.ptr<f32>>
    tt.return
  }

  // A bound that follows from the mask's ends there anyway.
  // CHECK-LABEL: @ends_there
  // CHECK: %[[BLOCKS:.+]] = arith.ceildivsi
  // CHECK: scf.for %{{.+}} = %c0_i32 to %[[BLOCKS]]
  tt.func public @ends_there(%from: !tt.ptr<f32>, %to: !tt.ptr<f32>, %n: i32, %m: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %c64 = arith.constant 64 : i32
    %zeros = arith.constant dense<0.0> : tensor<8xf32>
    %minus = arith.constant dense<-0.0> : tensor<8xf32>
    %range = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
    %f = tt.splat %from : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
    %t = tt.splat %to : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
    %place = tt.addptr %t, %range : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
    %blocks = arith.ceildivsi %n, %c8 : i32
    %sum = scf.for %i = %c0 to %blocks step %c1 iter_args(%x = %zeros) -> (tensor<8xf32>) : i32 {
      %first = arith.muli %i, %c8 : i32
      %firsts = tt.splat %first : i32 -> tensor<8xi32>
      %at = arith.addi %firsts, %range : tensor<8xi32>
      %end = tt.splat %n : i32 -> tensor<8xi32>
      %mask = arith.cmpi slt, %at, %end : tensor<8xi32>
      %p = tt.addptr %f, %at : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
      %v = tt.load %p, %mask, %zeros : tensor<8x!tt.ptr<f32>>
      %s = arith.addf %x, %v : tensor<8xf32>
      scf.yield %s : tensor<8xf32>
    }
    tt.store %place, %sum : tensor<8x!tt.ptr<f32>>
    tt.return
  }
}
