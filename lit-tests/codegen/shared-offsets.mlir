// Offsets in a tile are sums of a row's and a column's, each with a constant of its own. What varies is one
// register for many accesses, and the constants are one, which the access adds as far as it can.
// RUN: llopt compile %s --target cuda:90 --num-warps 1 --emit ptx | FileCheck %s --check-prefix=NVIDIA
// RUN: llopt compile %s --target hip:gfx942 --num-warps 1 --emit amdgcn | FileCheck %s --check-prefix=AMD

// Two rows are 32768 bytes apart, and a thread has several vectors of each: accesses on NVIDIA add whatever it is; on AMD
// they add what columns add, and each row is an offset register, for the store as well.
// NVIDIA-LABEL: .entry rows_and_columns(
// NVIDIA: ld.global.v4.b32 {{.*}}, [[[FROM:%rd[0-9]+]]];
// NVIDIA-COUNT-7: ld.global.v4.b32 {{.*}}, [[[FROM]]+
// NVIDIA: st.global.v4.b32 [[[TO:%rd[0-9]+]]],
// NVIDIA-COUNT-7: st.global.v4.b32 [[[TO]]+
// AMD-LABEL: rows_and_columns:
// AMD-DAG: global_load_dwordx4 {{.*}}, [[FIRST:v[0-9]+]], [[FROM:s\[[0-9:]+\]]]{{$}}
// AMD-DAG: global_load_dwordx4 {{.*}}, [[FIRST]], [[FROM]] offset:1024
// AMD-DAG: v_or_b32_e32 [[SECOND:v[0-9]+]], 0x8000, [[FIRST]]
// AMD-DAG: global_load_dwordx4 {{.*}}, [[SECOND]], [[FROM]]{{$}}
// AMD-DAG: global_load_dwordx4 {{.*}}, [[SECOND]], [[FROM]] offset:1024
// AMD-DAG: global_store_dwordx4 [[SECOND]], {{.*}} offset:1024
tt.func @rows_and_columns(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32},
                          %o: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %rows = tt.make_range {start = 0 : i32, end = 2 : i32} : tensor<2xi32>
  %r = tt.expand_dims %rows {axis = 1 : i32} : tensor<2xi32> -> tensor<2x1xi32>
  %stride = arith.constant dense<8192> : tensor<2x1xi32>
  %s = arith.muli %r, %stride : tensor<2x1xi32>
  %row = tt.broadcast %s : tensor<2x1xi32> -> tensor<2x512xi32>
  %columns = tt.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32>
  %c = tt.expand_dims %columns {axis = 0 : i32} : tensor<512xi32> -> tensor<1x512xi32>
  %column = tt.broadcast %c : tensor<1x512xi32> -> tensor<2x512xi32>
  %offset = arith.addi %row, %column : tensor<2x512xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<2x512x!tt.ptr<f32>>
  %from = tt.addptr %xs, %offset : tensor<2x512x!tt.ptr<f32>>, tensor<2x512xi32>
  %v = tt.load %from : tensor<2x512x!tt.ptr<f32>>
  %os = tt.splat %o : !tt.ptr<f32> -> tensor<2x512x!tt.ptr<f32>>
  %to = tt.addptr %os, %offset : tensor<2x512x!tt.ptr<f32>>, tensor<2x512xi32>
  tt.store %to, %v : tensor<2x512x!tt.ptr<f32>>
  tt.return
}
