// Enumerations and attributes of the tt dialect.

#ifndef TT_ATTRIBUTES
#define TT_ATTRIBUTES

include "tt/dialect.td"

class TT_Enum<string name, string what, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, what, cases> {
  let cppNamespace = "tt";
}

def TT_CacheModifierAttr : TT_Enum<"CacheModifier",
    "Which caches a global access uses", [
  I32EnumAttrCase<"None", 1, "none">,
  I32EnumAttrCase<"Ca", 2, "ca">,
  I32EnumAttrCase<"Cg", 3, "cg">,
  I32EnumAttrCase<"Wb", 4, "wb">,
  I32EnumAttrCase<"Cs", 5, "cs">,
  I32EnumAttrCase<"Wt", 6, "wt">,
  I32EnumAttrCase<"Cv", 7, "cv">
]>;

def TT_EvictionPolicyAttr : TT_Enum<"EvictionPolicy",
    "How long the cache keeps the accessed line", [
  I32EnumAttrCase<"Normal", 1, "evict_normal">,
  I32EnumAttrCase<"EvictFirst", 2, "evict_first">,
  I32EnumAttrCase<"EvictLast", 3, "evict_last">
]>;

def TT_MemSemanticAttr : TT_Enum<"MemSemantic",
    "Memory ordering of an atomic", [
  I32EnumAttrCase<"Relaxed", 1, "relaxed">,
  I32EnumAttrCase<"Acquire", 2, "acquire">,
  I32EnumAttrCase<"Release", 3, "release">,
  I32EnumAttrCase<"AcquireRelease", 4, "acq_rel">
]>;

def TT_MemSyncScopeAttr : TT_Enum<"MemSyncScope",
    "Threads that an atomic is ordered against", [
  I32EnumAttrCase<"Gpu", 1, "gpu">,
  I32EnumAttrCase<"Cta", 2, "cta">,
  I32EnumAttrCase<"System", 3, "sys">
]>;

def TT_PaddingOptionAttr : TT_Enum<"PaddingOption",
    "What a block access reads outside of the tensor", [
  I32EnumAttrCase<"Zero", 1, "zero">,
  I32EnumAttrCase<"Nan", 2, "nan">
]>;

def TT_AtomicRmwAttr : TT_Enum<"RmwOp", "Update done by an atomic", [
  I32EnumAttrCase<"And", 1, "and">,
  I32EnumAttrCase<"Or", 2, "or">,
  I32EnumAttrCase<"Xor", 3, "xor">,
  I32EnumAttrCase<"Add", 4, "add">,
  I32EnumAttrCase<"Fadd", 5, "fadd">,
  I32EnumAttrCase<"Max", 6, "max">,
  I32EnumAttrCase<"Min", 7, "min">,
  I32EnumAttrCase<"Umax", 8, "umax">,
  I32EnumAttrCase<"Umin", 9, "umin">,
  I32EnumAttrCase<"Exch", 10, "exch">
]>;

def TT_DescriptorReduceKindAttr : TT_Enum<"DescriptorReduceKind",
    "Update done by a reducing block store", [
  I32EnumAttrCase<"Add", 1, "add">,
  I32EnumAttrCase<"Min", 2, "min">,
  I32EnumAttrCase<"Max", 3, "max">,
  I32EnumAttrCase<"Inc", 4, "inc">,
  I32EnumAttrCase<"Dec", 5, "dec">,
  I32EnumAttrCase<"And", 6, "and">,
  I32EnumAttrCase<"Or", 7, "or">,
  I32EnumAttrCase<"Xor", 8, "xor">
]>;

def TT_ProgramDimAttr : TT_Enum<"ProgramDim", "Axis of the grid", [
  I32EnumAttrCase<"X", 0, "x">,
  I32EnumAttrCase<"Y", 1, "y">,
  I32EnumAttrCase<"Z", 2, "z">
]>;

def TT_RoundingModeAttr : TT_Enum<"RoundingMode",
    "Rounding of a float conversion", [
  I32EnumAttrCase<"TowardZero", 0, "rtz">,
  I32EnumAttrCase<"NearestEven", 1, "rtne">
]>;

def TT_PropagateNanAttr : TT_Enum<"PropagateNan",
    "Whether a NaN operand gives a NaN", [
  I32EnumAttrCase<"None", 0, "none">,
  I32EnumAttrCase<"All", 65535, "all">
]>;

def TT_InputPrecisionAttr : TT_Enum<"InputPrecision",
    "How a matrix product of f32 operands uses the matrix unit", [
  I32EnumAttrCase<"Tf32", 0, "tf32">,
  I32EnumAttrCase<"Tf32x3", 1, "tf32x3">,
  I32EnumAttrCase<"Ieee", 2, "ieee">,
  I32EnumAttrCase<"Bf16x3", 3, "bf16x3">,
  I32EnumAttrCase<"Bf16x6", 4, "bf16x6">
]>;

def TT_ScaleDotElemTypeAttr : TT_Enum<"ScaleDotElemType",
    "Element format of an operand of a scaled matrix product", [
  I32EnumAttrCase<"E4m3", 0, "e4m3">,
  I32EnumAttrCase<"E5m2", 1, "e5m2">,
  I32EnumAttrCase<"E2m3", 2, "e2m3">,
  I32EnumAttrCase<"E3m2", 3, "e3m2">,
  I32EnumAttrCase<"E2m1", 4, "e2m1">,
  I32EnumAttrCase<"Bf16", 5, "bf16">,
  I32EnumAttrCase<"Fp16", 6, "fp16">
]>;

def TT_CachePolicyAttr : AttrDef<TT_Dialect, "CachePolicy"> {
  let mnemonic = "cache_policy";
  let summary = "Cache modifier and eviction policy in one attribute";
  let description = [{
    The spelling of Triton 3.9 for what 3.6 writes as `cacheModifier` and
    `evictionPolicy`. It is read on memory ops and turned into those two.
  }];
  let parameters = (ins
    EnumParam<TT_CacheModifierAttr, "Caches used">:$cache_modifier,
    EnumParam<TT_EvictionPolicyAttr, "Time in cache">:$eviction_policy
  );
  let assemblyFormat = "`<` struct(params) `>`";
}

#endif // TT_ATTRIBUTES
