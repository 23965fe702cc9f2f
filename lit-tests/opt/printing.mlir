// What MLIR's options say about passes and modules, and where it goes.

// RUN: llopt %s --mlir-print-ir-before=cse --canonicalize --cse -o %t.out 2>&1 | FileCheck %s --check-prefix=BEFORE
// BEFORE-NOT: IR Dump
// BEFORE: IR Dump Before CSE (cse)
// BEFORE-NOT: IR Dump

// RUN: llopt %s --mlir-print-ir-after=cse --canonicalize --cse -o %t.out 2>&1 | FileCheck %s --check-prefix=AFTER
// AFTER-NOT: IR Dump
// AFTER: IR Dump After CSE (cse)
// AFTER-NOT: IR Dump

// RUN: llopt %s --mlir-print-ir-before-all --mlir-print-ir-after-all --canonicalize --cse -o %t.out 2>&1 | FileCheck %s --check-prefix=ALL
// ALL: IR Dump Before Canonicalizer (canonicalize)
// ALL: IR Dump After Canonicalizer (canonicalize)
// ALL: IR Dump Before CSE (cse)
// ALL: IR Dump After CSE (cse)

// Only a pass that changes something is followed by a dump.
// RUN: llopt %s --mlir-print-ir-after-all --mlir-print-ir-after-change --cse --canonicalize -o %t.out 2>&1 | FileCheck %s --check-prefix=CHANGE
// CHANGE-NOT: IR Dump After CSE
// CHANGE: IR Dump After Canonicalizer
// CHANGE: arith.constant dense<2> : tensor<512xi32

// A pass on functions is dumped alone, or with its module; a folder takes one file for each pass.
// RUN: llopt %s --mlir-print-ir-after-all --pass-pipeline='builtin.module(tt.func(cse))' -o %t.out 2>&1 | FileCheck %s --check-prefix=FUNCTION
// FUNCTION: IR Dump After CSE (cse)
// FUNCTION-NEXT: tt.func @f
// RUN: llopt %s --mlir-print-ir-after-all --mlir-print-ir-module-scope --mlir-disable-threading --pass-pipeline='builtin.module(tt.func(cse))' -o %t.out 2>&1 | FileCheck %s --check-prefix=MODULE
// MODULE: IR Dump After CSE (cse) ('tt.func' operation: @f)
// MODULE: module attributes
// RUN: rm -rf %t.tree
// RUN: llopt %s --mlir-print-ir-after-all --mlir-print-ir-tree-dir=%t.tree --cse -o %t.out
// RUN: FileCheck %s --check-prefix=TREE < %t.tree/builtin_module_no-symbol-name/0_cse.mlir
// TREE: tt.splat

// Layouts by name, or spelled out; locations; operations in their generic form; no output at all.
// RUN: llopt %s | FileCheck %s --check-prefix=ALIAS
// ALIAS: #[[LAYOUT:.*]] = #ttg.blocked
// ALIAS: tensor<512xi32, #[[LAYOUT]]>
// RUN: llopt %s --mlir-print-local-scope | FileCheck %s --check-prefix=LOCAL
// LOCAL-NOT: {{^}}#
// LOCAL: tt.splat %{{.*}} : i32 -> tensor<512xi32, #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>
// RUN: llopt %s --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefix=LOCATION
// LOCATION: tt.splat {{.*}} loc("{{.*}}printing.mlir":[[#]]:[[#]])
// RUN: llopt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// GENERIC: "tt.splat"(%{{.*}}) : (i32) -> tensor<512xi32
// RUN: llopt %s --mlir-print-skip-regions | FileCheck %s --check-prefix=SKIP
// SKIP-NOT: tt.splat

// The time of each pass, the pipeline that runs, and the dialects there are.
// RUN: llopt %s --mlir-timing --cse --canonicalize -o %t.out 2>&1 | FileCheck %s --check-prefix=TIMING
// TIMING: Execution time report
// TIMING-DAG: Parser
// TIMING-DAG: CSE
// TIMING-DAG: Canonicalizer
// RUN: llopt %s --mlir-timing --mlir-timing-display=list --cse -o %t.out 2>&1 | FileCheck %s --check-prefix=TIMING-LIST
// TIMING-LIST: CSE
// RUN: llopt %s --dump-pass-pipeline --cse --symbol-dce -o %t.out 2>&1 | FileCheck %s --check-prefix=PIPELINE
// PIPELINE: builtin.module(
// PIPELINE-NEXT: cse,
// PIPELINE-NEXT: symbol-dce
// RUN: llopt --show-dialects | FileCheck %s --check-prefix=DIALECTS
// DIALECTS: Available Dialects: amdg,arith,builtin,cf,gluon,gpu,llvm,math,nvvm,rocdl,scf,tt,ttg,ttng,ub
// RUN: llopt --list-passes | FileCheck %s --check-prefix=PASSES
// PASSES-DAG: canonicalize
// PASSES-DAG: convert-scf-to-cf
// PASSES-DAG: assign-layouts

// Statistics that passes keep: LLVM's packages are built without the counting, but the report is there.
// RUN: llopt %s --mlir-pass-statistics --cse -o %t.out 2>&1 | FileCheck %s --check-prefix=STATISTICS
// STATISTICS: Pass statistics report

// Bytecode goes out and comes in.
// RUN: llopt %s --emit-bytecode -o %t.mlirbc
// RUN: llopt %t.mlirbc | FileCheck %s --check-prefix=ALIAS
// RUN: llopt %t.mlirbc --verify-roundtrip -o %t.out

#layout = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f() -> tensor<512xi32, #layout> {
    %two = arith.constant 2 : i32
    %splat = tt.splat %two : i32 -> tensor<512xi32, #layout>
    tt.return %splat : tensor<512xi32, #layout>
  }
}
