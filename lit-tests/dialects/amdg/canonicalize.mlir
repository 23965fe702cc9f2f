// RUN: llopt %s --canonicalize | FileCheck %s

#piece = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32, ttg.target = "hip:gfx942"} {
  // CHECK-LABEL: @pieces
  // CHECK-SAME: (%{{.*}}: tensor<32x64xf16, #{{.*}}>, %{{.*}}: tensor<32x64xf16, #{{.*}}>, %[[C:.*]]: tensor<32x64xf16, #{{.*}}>, %{{.*}}: tensor<32x64xf16, #{{.*}}>)
  tt.func @pieces(%a: tensor<32x64xf16, #piece>, %b: tensor<32x64xf16, #piece>, %c: tensor<32x64xf16, #piece>, %d: tensor<32x64xf16, #piece>) -> tensor<32x64xf16, #piece> {
    // CHECK-NEXT: tt.return %[[C]]
    %0 = amdg.concat %a, %b, %c, %d : tensor<32x64xf16, #piece>, tensor<32x64xf16, #piece>, tensor<32x64xf16, #piece>, tensor<32x64xf16, #piece> -> tensor<64x128xf16, #piece>
    %1 = amdg.extract_slice %0 [32, 0] : tensor<64x128xf16, #piece> to tensor<32x64xf16, #piece>
    %2 = amdg.concat %1 : tensor<32x64xf16, #piece> -> tensor<32x64xf16, #piece>
    tt.return %2 : tensor<32x64xf16, #piece>
  }
}
