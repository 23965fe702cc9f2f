// Numbers that only the thread that stores scalars needs are loaded without a condition, and no warp waits for another.
//
// RUN: llopt compile %s --target cuda:90 --num-warps 4 | FileCheck %s --check-prefix=PTX
// RUN: llopt compile %s --target hip:gfx942 --num-warps 4 | FileCheck %s --check-prefix=GCN
module {
  // A running count of as many numbers as the loop has iterations.
  // PTX-LABEL: .entry count(
  // PTX-NOT: bar.sync
  // PTX: {{^[[:space:]]}}ld.global.b32
  // PTX-NOT: bar.sync
  // PTX: @%p{{[0-9]+}} st.global.b32
  // PTX-NOT: bar.sync
  // PTX: ret;
  // GCN-LABEL: count:
  // GCN-NOT: s_barrier
  // GCN: global_load_dword
  // GCN-NOT: s_barrier
  // GCN: s_endpgm
  tt.func public @count(%p: !tt.ptr<i32>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%count = %c0) -> (i32) : i32 {
      %at = tt.addptr %p, %i : !tt.ptr<i32>, i32
      %x = tt.load %at : !tt.ptr<i32>
      %next = arith.addi %count, %x : i32
      tt.store %at, %next : !tt.ptr<i32>
      scf.yield %next : i32
    }
    tt.return
  }
}
