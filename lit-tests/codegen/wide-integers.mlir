// No conversion between floats and integers of more than 64 bits exists, and LLVM would ask for a library.
// RUN: not llopt compile %s --target cuda:90 --emit ptx 2>&1 | FileCheck %s
// RUN: not llopt compile %s --target hip:gfx942 --emit amdgcn 2>&1 | FileCheck %s

// CHECK: wide-integers.mlir:[[@LINE+2]]:{{[0-9]+}}: error: 'arith.sitofp' is not supported: on {{.*}}, no conversion between integers of 128 bits and floats
tt.func @wide(%x: i128, %o: !tt.ptr<f64>) {
  %v = arith.sitofp %x : i128 to f64
  tt.store %o, %v : !tt.ptr<f64>
  tt.return
}
