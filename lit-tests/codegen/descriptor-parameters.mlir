// A descriptor that is a parameter is an object in memory where a unit reads it, which the launcher encodes as the metadata
// say. Elsewhere it is the parameters that Triton's launchers pass if the metadata describe none: base, extents, strides
// and padding, before what the frontend has appended. Each access has its own pointers there, and no descriptor is left.
//
// RUN: llopt compile %s --target cuda:90 --emit llvm --metadata %t.json | FileCheck %s --check-prefix=UNIT
// RUN: FileCheck %s --check-prefix=ENCODED < %t.json
// RUN: llopt compile %s --target cuda:80 --emit llvm --metadata %t.json | FileCheck %s --check-prefixes=PARTS,NVIDIA
// RUN: FileCheck %s --check-prefix=NONE < %t.json
// RUN: llopt compile %s --target hip:gfx942 --emit llvm --metadata %t.json | FileCheck %s --check-prefixes=PARTS,AMD
// RUN: FileCheck %s --check-prefix=NONE < %t.json
// RUN: llopt compile %s --target hip:gfx1100 --emit llvm --metadata %t.json | FileCheck %s --check-prefixes=PARTS,AMD
// RUN: FileCheck %s --check-prefix=NONE < %t.json

// UNIT: define ptx_kernel void @kernel(ptr byval([128 x i8]) {{[^,]*}}"nvvm.grid_constant" %0, i32 %1, i32 %2, i64 %3, i64 %4, ptr byval([128 x i8])
// UNIT: cp.async.bulk.tensor.2d
// ENCODED: "tensordesc_meta": [
// ENCODED: "block_size"
// ENCODED: "block_size"

// NVIDIA: define ptx_kernel void @kernel(ptr addrspace(1) %0, i64 %1, i64 %2, i64 %3, i64 %4, i1 %5, i32 %6, i32 %7, i64 %8, i64 %9, ptr addrspace(1) %10, i64 %11, i64 %12, i64 %13, i64 %14, i1 %15, i32 %16,
// AMD: define amdgpu_kernel void @kernel(ptr addrspace(1) inreg %0, i64 inreg %1, i64 inreg %2, i64 inreg %3, i64 inreg %4, i1 inreg %5, i32 inreg %6, i32 inreg %7, i64 inreg %8, i64 inreg %9, ptr addrspace(1) inreg %10, i64 inreg %11, i64 inreg %12, i64 inreg %13, i64 inreg %14, i1 inreg %15, i32 inreg %16,
// Elements outside are NaN if the launcher says so: the flag selects once, for all accesses through the descriptor.
// PARTS: select i1 %5, i16 32256, i16 0
// NONE: "tensordesc_meta": []
tt.func public @kernel(%x: !tt.tensordesc<tensor<32x64xf16>>, %rows: i32, %columns: i32, %pitch: i64, %step: i64, %o: !tt.tensordesc<tensor<32x64xf16>>, %i: i32) {
  %v = tt.descriptor_load %x[%i, %i] : !tt.tensordesc<tensor<32x64xf16>> -> tensor<32x64xf16>
  tt.descriptor_store %o[%i, %i], %v : !tt.tensordesc<tensor<32x64xf16>>, tensor<32x64xf16>
  tt.return
}
