// What the dialects of this folder add to MLIR's own operation definition
// specification (ODS).
//
// MLIR's generator turns constraints into C++ expressions. Ours reads the
// records and turns them into Rust tables, so a constraint has to keep what it
// was made of in named fields; the classes below do that where MLIR's do not.
// Three strings have a meaning of their own here:
//   * the default of a `DefaultValuedAttr` is written as in the assembly text
//     ("evict_normal", "false", "0", "[]");
//   * the transform of a `TypesMatchWith` names a function of the Rust module
//     `llopt_dialects::relation`;
//   * `hasVerifier`, `hasFolder`, ... promise a Rust function named after the
//     mnemonic in the module of that dialect; a missing one fails to compile.

#ifndef LLOPT_ODS
#define LLOPT_ODS

include "facts.td"

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/CallInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

//===----------------------------------------------------------------------===//
// Type constraints
//===----------------------------------------------------------------------===//

// A ranked tensor whose element type satisfies one of `elements`.
class TensorWith<list<Type> elements> : RankedTensorOf<elements> {
  list<Type> elementTypes = elements;
}

// Either one of `elements` or a ranked tensor of them.
class ScalarOrTensor<list<Type> elements, string description = "">
    : AnyTypeOf<!listconcat(elements, [TensorWith<elements>]), description>;

// A pointer of the tt dialect to one of `pointees`.
class PointerTo<list<Type> pointees>
    : Type<CPred<"">, "pointer to " # AnyTypeOf<pointees>.summary> {
  list<Type> pointeeTypes = pointees;
}

// A pointer or type of LLVM's dialect: only its lowering helpers take them.
def LLVMPointer : Type<CPred<"">, "LLVM pointer">;
def LLVMCompatible : Type<CPred<"">, "LLVM dialect-compatible type">;

//===----------------------------------------------------------------------===//
// Attribute constraints
//===----------------------------------------------------------------------===//

// An integer attribute within [low, high].
class InRange<int low, int high>
    : AttrConstraint<CPred<"">, "within " # low # " and " # high> {
  int minimum = low;
  int maximum = high;
}

//===----------------------------------------------------------------------===//
// Parameters of attributes and types
//===----------------------------------------------------------------------===//

// `kind` tells the Rust side how the value is written, stored and read.
// A parameter that equals its preset is left out, unless it is `always` printed.
class Param<string parameterKind, string meaning, string preset = "",
            bit always = 0> : AttrOrTypeParameter<"", meaning> {
  string kind = parameterKind;
  bit alwaysPrinted = always;
  let defaultValue = preset;
}

class UIntParam<string meaning, string preset = "", bit always = 0>
    : Param<"uint", meaning, preset, always>;
class BoolParam<string meaning, string preset = "", bit always = 0>
    : Param<"bool", meaning, preset, always>;
// One unsigned integer per dimension or per instruction dimension.
class UIntsParam<string meaning, string preset = "">
    : Param<"uints", meaning, preset>;
// Extents of a shape (64 bits each).
class ShapeParam<string meaning> : Param<"shape", meaning>;
// Basis vectors of a linear layout for one input dimension, one per input bit.
class BasesParam<string meaning, string preset = "">
    : Param<"bases", meaning, preset>;
class AttributeParam<string meaning> : Param<"attribute", meaning>;
class TypeParam<string meaning> : Param<"type", meaning>;
// One case of the enum `cases`, written as its keyword.
class EnumParam<EnumInfo cases, string meaning> : Param<"enum", meaning> {
  EnumInfo enumeration = cases;
}
// The distribution over the blocks of a cluster: bases of `block`, absent when
// there is one block.
def CgaParam : BasesParam<"Basis vectors of the block dimension: how the "
                          "blocks of a cluster share the tensor", "[]">;

//===----------------------------------------------------------------------===//
// Traits
//===----------------------------------------------------------------------===//

// Tensor operands and results have a power-of-two number of elements, at most
// 2^20.
def TensorSize : NativeOpTrait<"TensorSize">;
// The layout of every tensor operand and result fits the warps, lanes and
// blocks that the module (or the enclosing partition) runs with.
def VerifyTensorLayouts : NativeOpTrait<"VerifyTensorLayouts">;
def SameOperandsEncoding : NativeOpTrait<"SameOperandsEncoding">;
def SameOperandsAndResultEncoding
    : NativeOpTrait<"SameOperandsAndResultEncoding">;
// As the shape and encoding traits of the same name, but a pointer to a tensor
// counts as the tensor it points to.
def SameLoadStoreOperandsShape : NativeOpTrait<"SameLoadStoreOperandsShape">;
def SameLoadStoreOperandsAndResultShape
    : NativeOpTrait<"SameLoadStoreOperandsAndResultShape">;
def SameLoadStoreOperandsEncoding
    : NativeOpTrait<"SameLoadStoreOperandsEncoding">;
def SameLoadStoreOperandsAndResultEncoding
    : NativeOpTrait<"SameLoadStoreOperandsAndResultEncoding">;
// Regions of the op run on other warps at the same time as its first one.
def AsyncRegions : NativeOpTrait<"AsyncRegions">;
// Results that the verifier compares by layout, not by attribute.
def InferUpToLayoutEquality : NativeOpTrait<"InferUpToLayoutEquality">;

// Memory descriptors among operands and results have one element type.
def SameMemDescElementType : NativeOpTrait<"SameMemDescElementType">;

// The op sits directly inside an op of this name.
class ParentOp<string name> : NativeOpTrait<"ParentOp"> {
  string parent = name;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

def GlobalMemory : Resource<"GlobalMemory">;
def SharedMemory : Resource<"SharedMemory">;
def TensorMemory : Resource<"TensorMemory">;
// Barriers in shared memory that count arrivals and bytes.
def TransactionBarrier : Resource<"TransactionBarrier">;
// Shared memory as a copy unit of its own reads and writes it.
def BulkSharedMemory : Resource<"BulkSharedMemory">;

#endif // LLOPT_ODS
