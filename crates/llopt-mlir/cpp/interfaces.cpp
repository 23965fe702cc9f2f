//===- interfaces.cpp - the operation interfaces, as fallback models --------===//
//
// MLIR finds an interface of an operation in a map from the interface's TypeID to a
// "concept", a table of functions. A fallback model is a concept whose functions
// get the operation as an argument; so one model per interface serves all
// operations of ours, each finding its RustOp through the operation's name.
//
// `InferTypeOpInterface` is the exception: it is asked before the operation exists,
// and its functions receive no name. So it gets a pool of models, one instantiation
// of a template per slot, and each operation with type inference owns a slot.
//
//===----------------------------------------------------------------------===//

#include "model.h"
#include "mlir/Bytecode/BytecodeImplementation.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferIntRangeInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include <atomic>

using namespace mlir;
using namespace llopt;

static const void *specOf(Operation *op) { return RustOp::of(op)->getSpec(); }

//===------------------------------------------------- effects, speculation ---===//

namespace {
/// A resource that is named from Rust; lives for ever.
struct RustResource : SideEffects::Resource {
  RustResource(const void *spec, StringRef name) : Resource(typeIDOf(spec)), spec(spec), name(name) {}
  StringRef getName() override { return name; }

  const void *spec;
  std::string name;
};

struct EffectsModel : MemoryEffectOpInterface::FallbackModel<EffectsModel> {
  void getEffects(Operation *op, SmallVectorImpl<MemoryEffects::EffectInstance> &effects) const {
    hooks->op_effects(specOf(op), wrap(op), LloptSink{&effects});
  }
};

struct SpeculationModel : ConditionallySpeculatable::FallbackModel<SpeculationModel> {
  Speculation::Speculatability getSpeculatability(Operation *op) const {
    switch (hooks->op_speculation(specOf(op), wrap(op))) {
    case LLOPT_SPECULATION_ALWAYS:
      return Speculation::Speculatable;
    case LLOPT_SPECULATION_RECURSIVE:
      return Speculation::RecursivelySpeculatable;
    default:
      return Speculation::NotSpeculatable;
    }
  }
};
} // namespace

/// Resources of the process by their address in Rust.
struct ResourceTable {
  std::mutex mutex;
  llvm::DenseMap<const void *, std::unique_ptr<RustResource>> resources;
};
static ResourceTable &resourceTable() {
  static ResourceTable table;
  return table;
}

static SideEffects::Resource *findResource(const void *spec, StringRef name) {
  if (!spec)
    return SideEffects::DefaultResource::get();
  ResourceTable &table = resourceTable();
  std::lock_guard<std::mutex> lock(table.mutex);
  std::unique_ptr<RustResource> &resource = table.resources[spec];
  if (!resource)
    resource = std::make_unique<RustResource>(spec, name);
  return resource.get();
}

void llopt_effect_push(LloptSink effects, MlirOperation operation, int effect, int target, intptr_t index,
                       const void *resource, MlirStringRef resourceName) {
  auto &list = sink<SmallVectorImpl<MemoryEffects::EffectInstance>>(effects);
  Operation *op = unwrap(operation);
  MemoryEffects::Effect *kind;
  switch (effect) {
  case LLOPT_EFFECT_READ:
    kind = MemoryEffects::Read::get();
    break;
  case LLOPT_EFFECT_ALLOCATE:
    kind = MemoryEffects::Allocate::get();
    break;
  case LLOPT_EFFECT_FREE:
    kind = MemoryEffects::Free::get();
    break;
  default:
    kind = MemoryEffects::Write::get();
  }
  SideEffects::Resource *where = findResource(resource, unwrap(resourceName));
  if (target == LLOPT_EFFECT_ON_OPERAND && index < op->getNumOperands())
    list.emplace_back(kind, &op->getOpOperand(index), where);
  else if (target == LLOPT_EFFECT_ON_RESULT && index < op->getNumResults())
    list.emplace_back(kind, op->getOpResult(index), where);
  else
    list.emplace_back(kind, where);
}

bool llopt_operation_effects(MlirOperation operation, LloptEffectCallback callback, void *userData) {
  std::optional<SmallVector<MemoryEffects::EffectInstance>> effects = getEffectsRecursively(unwrap(operation));
  if (!effects)
    return false;
  for (const MemoryEffects::EffectInstance &effect : *effects) {
    int kind = isa<MemoryEffects::Read>(effect.getEffect())       ? LLOPT_EFFECT_READ
               : isa<MemoryEffects::Allocate>(effect.getEffect()) ? LLOPT_EFFECT_ALLOCATE
               : isa<MemoryEffects::Free>(effect.getEffect())     ? LLOPT_EFFECT_FREE
                                                                  : LLOPT_EFFECT_WRITE;
    SideEffects::Resource *resource = effect.getResource();
    const void *spec = nullptr;
    {
      // Only the address of a resource of ours is a spec.
      ResourceTable &table = resourceTable();
      std::lock_guard<std::mutex> lock(table.mutex);
      auto it = table.resources.find(resource->getResourceID().getAsOpaquePointer());
      if (it != table.resources.end())
        spec = it->second->spec;
    }
    callback(userData, kind, wrap(effect.getValue()), spec, wrap(resource->getName()));
  }
  return true;
}

bool llopt_operation_is_memory_effect_free(MlirOperation op) { return isMemoryEffectFree(unwrap(op)); }
bool llopt_operation_is_trivially_dead(MlirOperation op) { return isOpTriviallyDead(unwrap(op)); }
bool llopt_operation_is_speculatable(MlirOperation op) { return isSpeculatable(unwrap(op)); }

//===--------------------------------------------------- symbols, functions ---===//

static constexpr StringLiteral kFunctionType = "function_type", kArgAttrs = "arg_attrs", kResAttrs = "res_attrs";

static FunctionType functionTypeOf(Operation *op) {
  auto type = dyn_cast_or_null<TypeAttr>(op->getAttr(kFunctionType));
  auto function = type ? dyn_cast<FunctionType>(type.getValue()) : FunctionType();
  // Asked of unverified functions too, e.g. by the printer.
  return function ? function : FunctionType::get(op->getContext(), {}, {});
}

namespace {
struct SymbolModel : SymbolOpInterface::FallbackModel<SymbolModel> {
  using Visibility = SymbolTable::Visibility;

  StringAttr getNameAttr(Operation *op) const { return SymbolTable::getSymbolName(op); }
  void setName(Operation *op, StringAttr name) const { SymbolTable::setSymbolName(op, name); }
  Visibility getVisibility(Operation *op) const { return SymbolTable::getSymbolVisibility(op); }
  bool isNested(Operation *op) const { return getVisibility(op) == Visibility::Nested; }
  bool isPrivate(Operation *op) const { return getVisibility(op) == Visibility::Private; }
  bool isPublic(Operation *op) const { return getVisibility(op) == Visibility::Public; }
  void setVisibility(Operation *op, Visibility to) const { SymbolTable::setSymbolVisibility(op, to); }
  void setNested(Operation *op) const { setVisibility(op, Visibility::Nested); }
  void setPrivate(Operation *op) const { setVisibility(op, Visibility::Private); }
  void setPublic(Operation *op) const { setVisibility(op, Visibility::Public); }
  std::optional<SymbolTable::UseRange> getSymbolUses(Operation *op, Operation *from) const {
    return SymbolTable::getSymbolUses(op, from);
  }
  bool symbolKnownUseEmpty(Operation *op, Operation *from) const {
    return SymbolTable::symbolKnownUseEmpty(op, from);
  }
  LogicalResult replaceAllSymbolUses(Operation *op, StringAttr name, Operation *from) const {
    return SymbolTable::replaceAllSymbolUses(op, name, from);
  }
  bool isOptionalSymbol(Operation *) const { return false; }
  bool canDiscardOnUseEmpty(Operation *op) const { return !isPublic(op); }
  bool isDeclaration(Operation *op) const {
    return RustOp::of(op)->getFlags() & LLOPT_OP_FUNCTION && op->getRegion(0).empty();
  }
};

struct ArgAndResultAttrsModel : ArgAndResultAttrsOpInterface::FallbackModel<ArgAndResultAttrsModel> {
  static ArrayAttr get(Operation *op, StringRef name) { return dyn_cast_or_null<ArrayAttr>(op->getAttr(name)); }

  ArrayAttr getArgAttrsAttr(Operation *op) const { return get(op, kArgAttrs); }
  ArrayAttr getResAttrsAttr(Operation *op) const { return get(op, kResAttrs); }
  void setArgAttrsAttr(Operation *op, ArrayAttr attrs) const { op->setAttr(kArgAttrs, attrs); }
  void setResAttrsAttr(Operation *op, ArrayAttr attrs) const { op->setAttr(kResAttrs, attrs); }
  Attribute removeArgAttrsAttr(Operation *op) const { return op->removeAttr(kArgAttrs); }
  Attribute removeResAttrsAttr(Operation *op) const { return op->removeAttr(kResAttrs); }
};

struct CallableModel : CallableOpInterface::FallbackModel<CallableModel> {
  Region *getCallableRegion(Operation *op) const {
    return op->getRegion(0).empty() ? nullptr : &op->getRegion(0);
  }
  ArrayRef<Type> getArgumentTypes(Operation *op) const { return functionTypeOf(op).getInputs(); }
  ArrayRef<Type> getResultTypes(Operation *op) const { return functionTypeOf(op).getResults(); }
};

struct FunctionModel : FunctionOpInterface::FallbackModel<FunctionModel> {
  Type getFunctionType(Operation *op) const { return functionTypeOf(op); }
  void setFunctionTypeAttr(Operation *op, TypeAttr type) const { op->setAttr(kFunctionType, type); }
  Type cloneTypeWith(Operation *op, TypeRange inputs, TypeRange results) const {
    return functionTypeOf(op).clone(inputs, results);
  }
  LogicalResult verifyType(Operation *op) const {
    auto type = dyn_cast_or_null<TypeAttr>(op->getAttr(kFunctionType));
    if (!type || !isa<FunctionType>(type.getValue()))
      return op->emitOpError() << "requires '" << kFunctionType << "' attribute of function type";
    return success();
  }
  LogicalResult verifyBody(Operation *op) const {
    Region &body = op->getRegion(0);
    if (body.empty())
      return success();
    ArrayRef<Type> inputs = functionTypeOf(op).getInputs();
    Block &entry = body.front();
    if (entry.getNumArguments() != inputs.size())
      return op->emitOpError("entry block must have ")
             << inputs.size() << " arguments to match function signature, but has " << entry.getNumArguments();
    for (auto [index, input] : llvm::enumerate(inputs)) {
      Type argument = entry.getArgument(index).getType();
      if (argument != input)
        return op->emitOpError("type of entry block argument #")
               << index << '(' << argument << ") must match the type of the corresponding argument in function signature("
               << input << ')';
    }
    return success();
  }
};

struct CallModel : CallOpInterface::FallbackModel<CallModel> {
  static StringRef attributeName(Operation *op) { return RustOp::of(op)->getCallee(); }
  static SymbolRefAttr callee(Operation *op) { return dyn_cast_or_null<SymbolRefAttr>(op->getAttr(attributeName(op))); }

  CallInterfaceCallable getCallableForCallee(Operation *op) const { return callee(op); }
  void setCalleeFromCallable(Operation *op, CallInterfaceCallable callable) const {
    if (auto symbol = dyn_cast<SymbolRefAttr>(callable))
      op->setAttr(attributeName(op), symbol);
  }
  Operation::operand_range getArgOperands(Operation *op) const { return op->getOperands(); }
  MutableOperandRange getArgOperandsMutable(Operation *op) const { return MutableOperandRange(op); }
  Operation *resolveCallableInTable(Operation *op, SymbolTableCollection *table) const {
    return callee(op) ? call_interface_impl::resolveCallable(cast<CallOpInterface>(op), table) : nullptr;
  }
  Operation *resolveCallable(Operation *op) const { return resolveCallableInTable(op, nullptr); }
};

/// A call's callee is a function of the same type.
struct CalleeModel : SymbolUserOpInterface::FallbackModel<CalleeModel> {
  LogicalResult verifySymbolUses(Operation *op, SymbolTableCollection &table) const {
    SymbolRefAttr callee = CallModel::callee(op);
    if (!callee)
      return op->emitOpError() << "requires a '" << CallModel::attributeName(op) << "' symbol reference attribute";
    auto function = dyn_cast_or_null<FunctionOpInterface>(table.lookupNearestSymbolFrom(op, callee));
    if (!function)
      return op->emitOpError() << callee << " does not reference a valid function";
    ArrayRef<Type> inputs = function.getArgumentTypes(), outputs = function.getResultTypes();
    if (op->getNumOperands() != inputs.size())
      return op->emitOpError("incorrect number of operands for callee: expected ")
             << inputs.size() << ", but provided " << op->getNumOperands();
    for (auto [index, type] : llvm::enumerate(inputs))
      if (op->getOperand(index).getType() != type)
        return op->emitOpError("operand type mismatch: expected operand type ")
               << type << ", but provided " << op->getOperand(index).getType() << " for operand number " << index;
    if (op->getNumResults() != outputs.size())
      return op->emitOpError("incorrect number of results for callee: expected ")
             << outputs.size() << ", but provided " << op->getNumResults();
    for (auto [index, type] : llvm::enumerate(outputs))
      if (op->getResult(index).getType() != type)
        return op->emitOpError("result type mismatch at index ")
               << index << ": expected " << type << ", but provided " << op->getResult(index).getType();
    return success();
  }
};
} // namespace

MlirOperation llopt_symbol_lookup_nearest(MlirOperation from, MlirAttribute symbol) {
  auto reference = dyn_cast_or_null<SymbolRefAttr>(unwrap(symbol));
  return wrap(reference ? SymbolTable::lookupNearestSymbolFrom(unwrap(from), reference) : nullptr);
}

//===--------------------------------------------------------- region branches ---===//

namespace {
/// What llopt_successor_push fills.
using Successors = SmallVectorImpl<RegionSuccessor>;

struct RegionBranchModel : RegionBranchOpInterface::FallbackModel<RegionBranchModel> {
  static intptr_t numberOf(Region *region) { return region ? region->getRegionNumber() : intptr_t(LLOPT_PARENT); }

  OperandRange getEntrySuccessorOperands(Operation *op, RegionSuccessor successor) const {
    intptr_t begin = 0, count = 0;
    hooks->op_entry_operands(specOf(op), wrap(op), numberOf(successor.getSuccessor()), &begin, &count);
    intptr_t size = op->getNumOperands();
    begin = std::clamp<intptr_t>(begin, 0, size);
    return op->getOperands().slice(begin, std::clamp<intptr_t>(count, 0, size - begin));
  }
  void getEntrySuccessorRegions(Operation *op, ArrayRef<Attribute>, Successors &successors) const {
    getSuccessorRegions(op, RegionBranchPoint::parent(), successors);
  }
  void getSuccessorRegions(Operation *op, RegionBranchPoint point, Successors &successors) const {
    Operation *terminator = point.getTerminatorPredecessorOrNull();
    collect(op, terminator ? terminator->getParentRegion() : nullptr, successors);
  }
  void getSuccessorRegions_3(Operation *op, Region &region, Successors &successors) const {
    collect(op, &region, successors);
  }
  void getPredecessors(Operation *op, RegionSuccessor successor, SmallVectorImpl<RegionBranchPoint> &points) const {
    SmallVector<RegionSuccessor> found;
    auto reaches = [&](Region *from) {
      found.clear();
      collect(op, from, found);
      return llvm::any_of(found, [&](RegionSuccessor other) { return other.getSuccessor() == successor.getSuccessor(); });
    };
    if (reaches(nullptr))
      points.push_back(RegionBranchPoint::parent());
    for (Region &region : op->getRegions()) {
      if (!reaches(&region))
        continue;
      for (Block &block : region)
        if (!block.empty())
          if (auto terminator = dyn_cast<RegionBranchTerminatorOpInterface>(block.back()))
            points.push_back(RegionBranchPoint(terminator));
    }
  }
  void getPredecessorValues(Operation *op, RegionSuccessor successor, int index,
                            SmallVectorImpl<Value> &values) const {
    auto self = cast<RegionBranchOpInterface>(op);
    SmallVector<RegionBranchPoint> points;
    getPredecessors(op, successor, points);
    for (RegionBranchPoint point : points) {
      OperandRange operands = self.getSuccessorOperands(point, successor);
      if (index >= 0 && static_cast<size_t>(index) < operands.size())
        values.push_back(operands[index]);
    }
  }
  void getRegionInvocationBounds(Operation *op, ArrayRef<Attribute>, SmallVectorImpl<InvocationBounds> &bounds) const {
    bounds.append(op->getNumRegions(), InvocationBounds::getUnknown());
  }
  bool areTypesCompatible(Operation *, Type lhs, Type rhs) const { return lhs == rhs; }

  static void collect(Operation *op, Region *from, Successors &successors) {
    hooks->op_region_successors(specOf(op), wrap(op), numberOf(from), LloptSink{&successors});
  }
};

/// A terminator that passes all its operands on.
struct RegionTerminatorModel : RegionBranchTerminatorOpInterface::FallbackModel<RegionTerminatorModel> {
  MutableOperandRange getMutableSuccessorOperands(Operation *op, RegionSuccessor) const {
    return MutableOperandRange(op);
  }
  void getSuccessorRegions(Operation *op, ArrayRef<Attribute>, Successors &successors) const {
    if (auto parent = dyn_cast_or_null<RegionBranchOpInterface>(op->getParentOp()))
      parent.getSuccessorRegions(RegionBranchPoint(cast<RegionBranchTerminatorOpInterface>(op)), successors);
  }
};
} // namespace

void llopt_successor_push(LloptSink list, MlirOperation operation, intptr_t region) {
  auto &successors = sink<Successors>(list);
  Operation *op = unwrap(operation);
  if (region == LLOPT_PARENT)
    successors.emplace_back(op, op->getResults());
  else if (region >= 0 && region < op->getNumRegions())
    successors.emplace_back(&op->getRegion(region), op->getRegion(region).getArguments());
}

//===--------------------------------------------------------------- asm names ---===//

namespace {
struct AsmModel : OpAsmOpInterface::FallbackModel<AsmModel> {
  void getAsmResultNames(Operation *op, OpAsmSetValueNameFn setName) const {
    if (RustOp::of(op)->getFlags() & LLOPT_OP_RESULT_NAMES)
      hooks->op_result_names(specOf(op), wrap(op), LloptSink{&setName});
  }
  void getAsmBlockArgumentNames(Operation *op, Region &region, OpAsmSetValueNameFn setName) const {
    if (RustOp::of(op)->getFlags() & LLOPT_OP_ARGUMENT_NAMES && !region.empty())
      hooks->op_argument_names(specOf(op), wrap(op), region.getRegionNumber(), LloptSink{&setName});
  }
  void getAsmBlockNames(Operation *, OpAsmSetBlockNameFn) const {}
  static StringRef getDefaultDialect() { return ""; }
};
} // namespace

void llopt_name_value(LloptSink names, MlirValue value, MlirStringRef name) {
  sink<OpAsmSetValueNameFn>(names)(unwrap(value), unwrap(name));
}

//===------------------------------------------------------------ integer ranges ---===//

namespace {
/// What an `op_integer_ranges` hook reads and writes.
struct Ranges {
  ArrayRef<ConstantIntRanges> operands;
  SetIntRangeFn set;
};

struct RangesModel : InferIntRangeInterface::FallbackModel<RangesModel> {
  void inferResultRanges(Operation *op, ArrayRef<ConstantIntRanges> operands, SetIntRangeFn set) const {
    Ranges ranges{operands, set};
    hooks->op_integer_ranges(specOf(op), wrap(op), LloptSink{&ranges});
  }
  void inferResultRangesFromOptional(Operation *op, ArrayRef<IntegerValueRange> operands, SetIntLatticeFn set) const {
    intrange::detail::defaultInferResultRanges(cast<InferIntRangeInterface>(op), operands, set);
  }
};
} // namespace

void llopt_range_set(LloptSink ranges, MlirValue value, int64_t min, int64_t max) {
  unsigned width = ConstantIntRanges::getStorageBitwidth(unwrap(value).getType());
  if (width == 0 || min > max || !llvm::APInt(64, min, true).isSignedIntN(width) ||
      !llvm::APInt(64, max, true).isSignedIntN(width))
    return;
  sink<Ranges>(ranges).set(unwrap(value), ConstantIntRanges::fromSigned(llvm::APInt(width, min, true),
                                                                        llvm::APInt(width, max, true)));
}

bool llopt_range_get(LloptSink ranges, intptr_t operand, int64_t *min, int64_t *max) {
  ArrayRef<ConstantIntRanges> operands = sink<Ranges>(ranges).operands;
  if (operand < 0 || static_cast<size_t>(operand) >= operands.size() || operands[operand].smin().getBitWidth() > 64 ||
      operands[operand].smin().getBitWidth() == 0)
    return false;
  *min = operands[operand].smin().getSExtValue();
  *max = operands[operand].smax().getSExtValue();
  return true;
}

//===------------------------------------------------------------------ bytecode ---===//

namespace {
/// Properties in bytecode: the dictionary of the slots that are set.
struct BytecodeModel : BytecodeOpInterface::FallbackModel<BytecodeModel> {
  static LogicalResult readProperties(DialectBytecodeReader &reader, OperationState &state) {
    if (failed(reader.readOptionalAttribute(state.propertiesAttr)))
      return failure();
    if (state.propertiesAttr && !isa<DictionaryAttr>(state.propertiesAttr))
      return reader.emitError() << "expected a dictionary as the properties of '" << state.name << "'";
    return success();
  }
  void writeProperties(Operation *op, DialectBytecodeWriter &writer) const {
    writer.writeOptionalAttribute(op->getPropertiesAsAttribute());
  }
};
} // namespace

//===-------------------------------------------------------------- type inference ---===//

/// How many operations of the process can have type inference. Each slot costs about a hundred
/// bytes of code; raise the number when registration asks for it.
static constexpr size_t kInferenceSlots = 384;
static std::atomic<const void *> inferenceSlots[kInferenceSlots];

/// The slot of a spec; takes a free one when it has none. kInferenceSlots when exhausted.
static size_t inferenceSlotOf(const void *spec) {
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  size_t slot = 0;
  for (; slot < kInferenceSlots; ++slot) {
    const void *owner = inferenceSlots[slot].load(std::memory_order_relaxed);
    if (owner == spec)
      return slot;
    if (!owner) {
      inferenceSlots[slot].store(spec, std::memory_order_release);
      return slot;
    }
  }
  return slot;
}

bool llopt_reserve_inference(const void *spec) { return inferenceSlotOf(spec) < kInferenceSlots; }
intptr_t llopt_inference_capacity(void) { return kInferenceSlots; }

static LogicalResult inferTypes(const void *spec, MLIRContext *context, std::optional<Location> location,
                                ValueRange operands, DictionaryAttr attributes, OpaqueProperties properties,
                                RegionRange regions, SmallVectorImpl<Type> &types) {
  std::optional<RegisteredOperationName> name = RegisteredOperationName::lookup(typeIDOf(spec), context);
  const RustOp *model = name ? RustOp::of(*name) : nullptr;
  if (!model)
    return emitOptionalError(location, "type inference of an operation whose dialect is not loaded");
  SmallVector<Attribute> slots(model->slotCount());
  if (properties && model->slotCount())
    llvm::copy(model->slots(properties), slots.begin());
  else
    model->readSlots(attributes, slots);
  SmallVector<Value> values(operands);
  SmallVector<Region *> regionList(regions.begin(), regions.end());
  LloptInferInput input{wrap(context),
                        wrap(location.value_or(UnknownLoc::get(context))),
                        reinterpret_cast<const MlirValue *>(values.data()),
                        static_cast<intptr_t>(values.size()),
                        wrapArray(slots),
                        static_cast<intptr_t>(slots.size()),
                        reinterpret_cast<const MlirRegion *>(regionList.data()),
                        static_cast<intptr_t>(regionList.size())};
  return success(hooks->op_infer(spec, &input, LloptSink{&types}));
}

static bool areTypesCompatible(const void *spec, TypeRange inferred, TypeRange given) {
  SmallVector<Type> lhs(inferred), rhs(given);
  return hooks->op_compatible(spec, reinterpret_cast<const MlirType *>(lhs.data()), lhs.size(),
                              reinterpret_cast<const MlirType *>(rhs.data()), rhs.size());
}

namespace {
template <size_t Slot> struct InferTypesModel : InferTypeOpInterface::Concept {
  using Interface = InferTypeOpInterface;

  static const void *spec() { return inferenceSlots[Slot].load(std::memory_order_acquire); }
  static LogicalResult infer(MLIRContext *context, std::optional<Location> location, ValueRange operands,
                             DictionaryAttr attributes, OpaqueProperties properties, RegionRange regions,
                             SmallVectorImpl<Type> &types) {
    return inferTypes(spec(), context, location, operands, attributes, properties, regions, types);
  }
  static LogicalResult refine(MLIRContext *context, std::optional<Location> location, ValueRange operands,
                              DictionaryAttr attributes, OpaqueProperties properties, RegionRange regions,
                              SmallVectorImpl<Type> &types) {
    SmallVector<Type> inferred;
    if (failed(infer(context, location, operands, attributes, properties, regions, inferred)))
      return failure();
    if (areTypesCompatible(spec(), inferred, types))
      return success();
    std::optional<RegisteredOperationName> name = RegisteredOperationName::lookup(typeIDOf(spec()), context);
    return emitOptionalError(location, "'", name ? name->getStringRef() : StringRef(), "' op inferred type(s) ",
                             TypeRange(inferred), " are incompatible with return type(s) of operation ",
                             TypeRange(types));
  }
  static bool isCompatible(TypeRange inferred, TypeRange given) { return areTypesCompatible(spec(), inferred, given); }

  InferTypesModel() : Concept{infer, refine, isCompatible} {}
};
} // namespace

template <size_t... Slots>
static void insertInference(mlir::detail::InterfaceMap &map, size_t slot, std::index_sequence<Slots...>) {
  using Insert = void (*)(mlir::detail::InterfaceMap &);
  static constexpr Insert table[] = {
      +[](mlir::detail::InterfaceMap &map) { map.insertModels<InferTypesModel<Slots>>(); }...};
  table[slot](map);
}

void llopt_types_push(LloptSink types, MlirType type) { sink<SmallVectorImpl<Type>>(types).push_back(unwrap(type)); }

//===----------------------------------------------------------------- the map ---===//

mlir::detail::InterfaceMap llopt::makeInterfaceMap(const LloptOperation &operation) {
  mlir::detail::InterfaceMap map;
  uint32_t flags = operation.flags;
  // Without the bytecode interface the writer has no way to write properties.
  map.insertModels<BytecodeModel>();
  if (flags & LLOPT_OP_EFFECTS)
    map.insertModels<EffectsModel>();
  if (flags & LLOPT_OP_SPECULATION)
    map.insertModels<SpeculationModel>();
  if (flags & (LLOPT_OP_SYMBOL | LLOPT_OP_FUNCTION))
    map.insertModels<SymbolModel>();
  // Interfaces look up those they are built on when they are inserted: bases go first.
  if (flags & (LLOPT_OP_FUNCTION | LLOPT_OP_CALL))
    map.insertModels<ArgAndResultAttrsModel>();
  if (flags & LLOPT_OP_FUNCTION)
    map.insertModels<CallableModel, FunctionModel>();
  if (flags & LLOPT_OP_CALL)
    map.insertModels<CallModel, CalleeModel>();
  if (flags & LLOPT_OP_REGION_BRANCH)
    map.insertModels<RegionBranchModel>();
  if (flags & LLOPT_OP_REGION_TERMINATOR)
    map.insertModels<RegionTerminatorModel>();
  if (flags & (LLOPT_OP_RESULT_NAMES | LLOPT_OP_ARGUMENT_NAMES))
    map.insertModels<AsmModel>();
  if (flags & LLOPT_OP_INTEGER_RANGES)
    map.insertModels<RangesModel>();
  if (flags & LLOPT_OP_INFER) {
    // `llopt_reserve_inference` made sure of a slot before the dialect was registered.
    size_t slot = inferenceSlotOf(operation.spec);
    if (slot < kInferenceSlots)
      insertInference(map, slot, std::make_index_sequence<kInferenceSlots>());
  }
  return map;
}

//===------------------------------------------------------ interface verifiers ---===//

LogicalResult RustOp::verifyInterfaces(Operation *op) const {
  if (flags & (LLOPT_OP_SYMBOL | LLOPT_OP_FUNCTION)) {
    if (failed(mlir::detail::verifySymbol(op)))
      return failure();
    auto symbol = cast<SymbolOpInterface>(op);
    if (symbol.isDeclaration() && symbol.isPublic())
      return op->emitOpError("symbol declaration cannot have public visibility");
    Operation *parent = op->getParentOp();
    if (parent && !parent->hasTrait<OpTrait::SymbolTable>() && parent->isRegistered())
      return op->emitOpError("symbol's parent must have the SymbolTable trait");
  }
  if (flags & LLOPT_OP_FUNCTION)
    return function_interface_impl::verifyTrait(cast<FunctionOpInterface>(op));
  return success();
}

LogicalResult RustOp::verifyInterfacesWithRegions(Operation *op) const {
  if (flags & LLOPT_OP_INFER && failed(mlir::detail::verifyInferredResultTypes(op)))
    return failure();
  if (flags & LLOPT_OP_REGION_BRANCH && failed(mlir::detail::verifyRegionBranchOpInterface(op)))
    return failure();
  return success();
}
