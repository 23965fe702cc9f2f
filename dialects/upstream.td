// What tile IR takes from MLIR's own dialects, and the facts about it.
//
// The definitions are MLIR's. The generator makes a wrapper for each op that is
// taken, and an enumeration for each dialect; an op that is not taken is
// unknown to every pass and refused by emission and interpreter.

#ifndef LLOPT_UPSTREAM
#define LLOPT_UPSTREAM

include "facts.td"
include "mlir/IR/BuiltinOps.td"
include "mlir/Dialect/Arith/IR/ArithOps.td"
include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.td"
include "mlir/Dialect/GPU/IR/GPUOps.td"
include "mlir/Dialect/LLVMIR/LLVMIntrinsicOps.td"
include "mlir/Dialect/LLVMIR/ROCDLOps.td"
include "mlir/Dialect/Math/IR/MathOps.td"
include "mlir/Dialect/SCF/IR/SCFOps.td"
include "mlir/Dialect/UB/IR/UBOps.td"

// All ops of a dialect.
class TakesAll<Dialect whole> {
  Dialect dialect = whole;
}

// One op, or what is declared of one.
class Takes<Op op, list<Fact> declared = []> {
  Op operation = op;
  list<Fact> facts = declared;
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

def : TakesAll<Arith_Dialect>;
def : TakesAll<Math_Dialect>;
def : Takes<Arith_ConstantOp, [Layouts<"Same">]>;
def : Takes<PoisonOp, [Layouts<"Same">]>;

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

def : Takes<ForOp, [Control<"For">]>;
def : Takes<WhileOp, [Control<"While">]>;
def : Takes<ConditionOp, [Control<"Condition">]>;
def : Takes<IfOp, [Control<"Choice">]>;
def : Takes<IndexSwitchOp, [Control<"Choice">]>;
def : Takes<ExecuteRegionOp, [Control<"Choice">]>;
def : Takes<YieldOp, [Control<"Yield">]>;
def : Takes<BranchOp, [Control<"Branch">]>;
def : Takes<CondBranchOp, [Control<"ConditionalBranch">]>;
def : Takes<SwitchOp>;
def : Takes<AssertOp>;

//===----------------------------------------------------------------------===//
// Of the machine
//===----------------------------------------------------------------------===//

def : Takes<GPU_BarrierOp, [Synchronizes<"Block">]>;
def : Takes<LLVM_AssumeOp>;
def : Takes<ROCDL_SchedBarrier>;
def : Takes<ROCDL_SchedGroupBarrier>;
def : Takes<ROCDL_SetPrioOp>;
def : Takes<ROCDL_ThreadIdXOp>;
def : Takes<ROCDL_SBarrierOp>;

//===----------------------------------------------------------------------===//
// Of MLIR itself
//===----------------------------------------------------------------------===//

def : Takes<ModuleOp>;
def : Takes<UnrealizedConversionCastOp>;

#endif // LLOPT_UPSTREAM
