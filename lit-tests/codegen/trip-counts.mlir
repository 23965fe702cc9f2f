// Loops whose numbers of iterations are known compare whole registers, so that ptxas can tell how often they run.
//
// RUN: llopt compile %s --target cuda:90 --emit llvm -o - | FileCheck %s
// RUN: llopt compile %s --target cuda:90 -o - | FileCheck %s --check-prefix=PTX

module {
  // An address advances with the counter, and replaces it: the loop would compare the lower half of it.
  // CHECK-LABEL: @conditional_parts
  // CHECK: %[[COUNTER:.*]] = phi i64 [ 0, %{{.*}} ], [ %[[NEXT:.*]], %{{.*}} ]
  // CHECK: %[[NEXT]] = add nsw i64 %[[COUNTER]], 1
  // CHECK: icmp eq i64 %[[NEXT]], 256
  // PTX-LABEL: conditional_parts(
  // PTX: setp.{{eq|ne}}.b64 [[DONE:%p[0-9]+]], %rd{{[0-9]+}}, {{[0-9]+}};
  // PTX: @[[DONE]] bra
  tt.func public @conditional_parts(%parts: !tt.ptr<f32>, %limits: !tt.ptr<i32>, %out: !tt.ptr<f32>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c256 = arith.constant 256 : i32
    %zero = arith.constant 0.0 : f32
    %program = tt.get_program_id x : i32
    %at = tt.addptr %limits, %program : !tt.ptr<i32>, i32
    %limit = tt.load %at : !tt.ptr<i32>
    %first = arith.muli %program, %c256 : i32
    %sum = scf.for %i = %c0 to %c256 step %c1 iter_args(%acc = %zero) -> (f32) : i32 {
      %square = arith.muli %i, %limit : i32
      %there = arith.cmpi slt, %square, %program : i32
      %more = scf.if %there -> (f32) {
        %index = arith.addi %first, %i : i32
        %place = tt.addptr %parts, %index : !tt.ptr<f32>, i32
        %part = tt.load %place : !tt.ptr<f32>
        %both = arith.mulf %acc, %part : f32
        %added = arith.addf %both, %part : f32
        scf.yield %added : f32
      } else {
        scf.yield %acc : f32
      }
      scf.yield %more : f32
    }
    // Nothing that advances with this counter is widened, so it stays as narrow as it is.
    // CHECK-NOT: phi i64
    // CHECK: icmp eq i32 %{{.*}}, 1000
    // CHECK: ret void
    %c1000 = arith.constant 1000 : i32
    %mixture = scf.for %i = %c0 to %c1000 step %c1 iter_args(%acc = %limit) -> (i32) : i32 {
      %mixed = arith.xori %acc, %i : i32
      %next = arith.muli %mixed, %mixed : i32
      scf.yield %next : i32
    }
    %number = arith.sitofp %mixture : i32 to f32
    %result = arith.addf %sum, %number : f32
    %to = tt.addptr %out, %program : !tt.ptr<f32>, i32
    tt.store %to, %result : !tt.ptr<f32>
    tt.return
  }
}
