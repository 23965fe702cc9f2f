//===- operation.cpp - the OperationName::Impl of operations of ours --------===//

#include "model.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace llopt;

//===------------------------------------------------------------- traits ---===//

static LogicalResult verifySingleBlock(Operation *op) {
  for (Region &region : op->getRegions()) {
    if (region.empty())
      continue;
    if (!llvm::hasSingleElement(region))
      return op->emitOpError() << "expects region #" << region.getRegionNumber() << " to have 0 or 1 blocks";
    Block &block = region.front();
    if (block.empty() && !op->hasTrait<OpTrait::NoTerminator>())
      return op->emitOpError() << "expects a non-empty block";
  }
  return success();
}
static LogicalResult verifyOperandSegments(Operation *op) {
  return OpTrait::impl::verifyOperandSizeAttr(op, "operandSegmentSizes");
}
static LogicalResult verifyResultSegments(Operation *op) {
  return OpTrait::impl::verifyResultSizeAttr(op, "resultSegmentSizes");
}

using Verifier = LogicalResult (*)(Operation *);
template <template <typename> class Trait>
static TraitModel makeTrait(Verifier verify = nullptr, Verifier verifyRegions = nullptr) {
  return {TypeID::get<Trait>(), verify, verifyRegions};
}

const TraitModel &llopt::traitModel(unsigned trait) {
  using namespace OpTrait;
  // In the order of LloptTrait.
  static const TraitModel table[] = {
      makeTrait<IsTerminator>(OpTrait::impl::verifyIsTerminator),
      makeTrait<IsIsolatedFromAbove>(nullptr, OpTrait::impl::verifyIsIsolatedFromAbove),
      makeTrait<IsCommutative>(),
      makeTrait<IsIdempotent>(OpTrait::impl::verifyIsIdempotent),
      makeTrait<IsInvolution>(OpTrait::impl::verifyIsInvolution),
      makeTrait<ReturnLike>(),
      makeTrait<ConstantLike>(),
      makeTrait<HasRecursiveMemoryEffects>(),
      makeTrait<OpTrait::SymbolTable>(OpTrait::impl::verifyOneRegion, mlir::detail::verifySymbolTable),
      makeTrait<AffineScope>(),
      makeTrait<AutomaticAllocationScope>(),
      makeTrait<SingleBlock>(verifySingleBlock),
      makeTrait<NoTerminator>(),
      makeTrait<NoRegionArguments>(OpTrait::impl::verifyNoRegionArguments),
      makeTrait<Elementwise>(OpTrait::impl::verifyElementwise),
      makeTrait<Scalarizable>(),
      makeTrait<Vectorizable>(),
      makeTrait<Tensorizable>(),
      makeTrait<SameTypeOperands>(OpTrait::impl::verifySameTypeOperands),
      makeTrait<SameOperandsAndResultType>(OpTrait::impl::verifySameOperandsAndResultType),
      makeTrait<SameOperandsShape>(OpTrait::impl::verifySameOperandsShape),
      makeTrait<SameOperandsAndResultShape>(OpTrait::impl::verifySameOperandsAndResultShape),
      makeTrait<SameOperandsElementType>(OpTrait::impl::verifySameOperandsElementType),
      makeTrait<SameOperandsAndResultElementType>(OpTrait::impl::verifySameOperandsAndResultElementType),
      makeTrait<SameOperandsAndResultRank>(OpTrait::impl::verifySameOperandsAndResultRank),
      makeTrait<AttrSizedOperandSegments>(verifyOperandSegments),
      makeTrait<AttrSizedResultSegments>(verifyResultSegments),
  };
  static_assert(std::size(table) == LLOPT_TRAIT_COUNT, "the table follows LloptTrait");
  return table[trait];
}

//===--------------------------------------------------------- construction ---===//

RustOp::RustOp(RustDialect *dialect, const LloptOperation &operation)
    : Impl(unwrap(operation.name), dialect, typeIDOf(operation.spec), makeInterfaceMap(operation)),
      spec(operation.spec), flags(operation.flags), operands(operation.operands), results(operation.results),
      regions(operation.regions), successors(operation.successors), callee(unwrap(operation.callee)) {
  for (unsigned trait = 0; trait < LLOPT_TRAIT_COUNT; ++trait)
    if (operation.traits >> trait & 1)
      traits.push_back(&traitModel(trait));
  for (intptr_t i = 0; i < operation.attributeCount; ++i)
    slotNames.push_back(StringAttr::get(dialect->getContext(), unwrap(operation.attributes[i])));
  for (intptr_t i = 0; i < operation.parentCount; ++i)
    parents.push_back(unwrap(operation.parents[i]).str());
  for (intptr_t i = 0; i < operation.canonicalizationCount; ++i)
    canonicalization.emplace_back(operation.canonicalization[i]);
}

const RustOp *RustOp::of(OperationName name) {
  if (!name.isRegistered() || !name.hasTrait<IsRustOp>())
    return nullptr;
  return static_cast<const RustOp *>(static_cast<OperationName::Impl *>(name.getAsOpaquePointer()));
}

bool RustOp::hasTrait(TypeID id) {
  if (id == TypeID::get<IsRustOp>())
    return true;
  for (const TraitModel *trait : traits)
    if (trait->id == id)
      return true;
  // Arities are traits to MLIR.
  auto exactly = [](LloptArity arity, int32_t count) { return arity.min == count && arity.max == count; };
  if (id == TypeID::get<OpTrait::ZeroOperands>())
    return exactly(operands, 0);
  if (id == TypeID::get<OpTrait::OneOperand>())
    return exactly(operands, 1);
  if (id == TypeID::get<OpTrait::ZeroResults>())
    return exactly(results, 0);
  if (id == TypeID::get<OpTrait::OneResult>())
    return exactly(results, 1);
  if (id == TypeID::get<OpTrait::ZeroRegions>())
    return exactly(regions, 0);
  if (id == TypeID::get<OpTrait::OneRegion>())
    return exactly(regions, 1);
  if (id == TypeID::get<OpTrait::ZeroSuccessors>())
    return exactly(successors, 0);
  return false;
}

//===-------------------------------------------------- parsing and printing ---===//

OperationName::ParseAssemblyFn RustOp::getParseAssemblyFn() {
  if (!(flags & LLOPT_OP_PARSE))
    return [this](OpAsmParser &parser, OperationState &) -> ParseResult {
      return parser.emitError(parser.getNameLoc()) << "'" << name.getValue() << "' op has no custom assembly form";
    };
  return [this](OpAsmParser &parser, OperationState &state) -> ParseResult {
    return success(hooks->op_parse(spec, LloptOpParser{&parser}, LloptOpState{&state}));
  };
}

void RustOp::printAssembly(Operation *op, OpAsmPrinter &printer, StringRef defaultDialect) {
  if (!(flags & LLOPT_OP_PRINT)) {
    printer.printGenericOp(op);
    return;
  }
  // As OpState::printOpName: the prefix of the default dialect is left out when the rest is not
  // ambiguous.
  StringRef text = name.getValue();
  if (text.starts_with((defaultDialect + ".").str()) && text.count('.') == 1)
    text = text.drop_front(defaultDialect.size() + 1);
  printer.getStream() << text;
  hooks->op_print(spec, wrap(op), LloptOpPrinter{&printer});
}

//===------------------------------------------------------------- verifying ---===//

namespace {
/// MLIR's verifiers of a count of operands, results, regions or successors, for their wording.
struct CountVerifiers {
  StringRef what;
  Verifier zero, one;
  LogicalResult (*exactly)(Operation *, unsigned);
  LogicalResult (*atLeast)(Operation *, unsigned);
};
} // namespace

static LogicalResult verifyArity(Operation *op, LloptArity arity, int64_t count, const CountVerifiers &verifiers) {
  if (count >= arity.min && (arity.max < 0 || count <= arity.max))
    return success();
  if (arity.max < 0)
    return verifiers.atLeast(op, arity.min);
  if (arity.min != arity.max)
    return op->emitOpError() << "expected " << arity.min << " to " << arity.max << " " << verifiers.what
                             << ", but found " << count;
  if (arity.min == 0)
    return verifiers.zero(op);
  return arity.min == 1 ? verifiers.one(op) : verifiers.exactly(op, arity.min);
}

LogicalResult RustOp::verifyInvariants(Operation *op) {
  namespace impl = OpTrait::impl;
  static const CountVerifiers operandVerifiers{"operands", impl::verifyZeroOperands, impl::verifyOneOperand,
                                               impl::verifyNOperands, impl::verifyAtLeastNOperands};
  static const CountVerifiers resultVerifiers{"results", impl::verifyZeroResults, impl::verifyOneResult,
                                              impl::verifyNResults, impl::verifyAtLeastNResults};
  static const CountVerifiers regionVerifiers{"regions", impl::verifyZeroRegions, impl::verifyOneRegion,
                                              impl::verifyNRegions, impl::verifyAtLeastNRegions};
  static const CountVerifiers successorVerifiers{"successors", impl::verifyZeroSuccessors, impl::verifyOneSuccessor,
                                                 impl::verifyNSuccessors, impl::verifyAtLeastNSuccessors};
  if (failed(verifyArity(op, operands, op->getNumOperands(), operandVerifiers)) ||
      failed(verifyArity(op, results, op->getNumResults(), resultVerifiers)) ||
      failed(verifyArity(op, regions, op->getNumRegions(), regionVerifiers)) ||
      failed(verifyArity(op, successors, op->getNumSuccessors(), successorVerifiers)))
    return failure();
  if (!parents.empty()) {
    Operation *parent = op->getParentOp();
    if (!parent || !llvm::is_contained(parents, parent->getName().getStringRef())) {
      InFlightDiagnostic diagnostic = op->emitOpError() << "expects parent op ";
      if (parents.size() > 1)
        diagnostic << "to be one of '";
      else
        diagnostic << "'";
      llvm::interleave(parents, diagnostic, "', '");
      return diagnostic << "'";
    }
  }
  for (const TraitModel *trait : traits)
    if (trait->verify && failed(trait->verify(op)))
      return failure();
  if (failed(verifyInterfaces(op)))
    return failure();
  return success(!(flags & LLOPT_OP_VERIFY) || hooks->op_verify(spec, wrap(op)));
}

LogicalResult RustOp::verifyRegionInvariants(Operation *op) {
  for (const TraitModel *trait : traits)
    if (trait->verifyRegions && failed(trait->verifyRegions(op)))
      return failure();
  if (failed(verifyInterfacesWithRegions(op)))
    return failure();
  return success(!(flags & LLOPT_OP_VERIFY_REGIONS) || hooks->op_verify_regions(spec, wrap(op)));
}

//===----------------------------------------------- folding, canonicalizing ---===//

LogicalResult RustOp::foldHook(Operation *op, ArrayRef<Attribute> constants, SmallVectorImpl<OpFoldResult> &folded) {
  bool changed = flags & LLOPT_OP_FOLD &&
                 hooks->op_fold(spec, wrap(op), wrapArray(constants), constants.size(), LloptSink{&folded});
  if (changed && !folded.empty())
    return success();
  // As for operations that C++ knows: traits fold when the operation itself does not.
  if (hasTrait(TypeID::get<OpTrait::IsCommutative>()) &&
      succeeded(OpTrait::impl::foldCommutative(op, constants, folded)))
    return success();
  if (op->getNumOperands() > 0 && op->getNumResults() == 1) {
    OpFoldResult result;
    if (hasTrait(TypeID::get<OpTrait::IsIdempotent>()))
      result = OpTrait::impl::foldIdempotent(op);
    if (!result && hasTrait(TypeID::get<OpTrait::IsInvolution>()))
      result = OpTrait::impl::foldInvolution(op);
    if (result) {
      folded.push_back(result);
      return success();
    }
  }
  return success(changed);
}

void llopt_fold_attribute(LloptSink results, MlirAttribute attribute) {
  sink<SmallVectorImpl<OpFoldResult>>(results).push_back(unwrap(attribute));
}
void llopt_fold_value(LloptSink results, MlirValue value) {
  sink<SmallVectorImpl<OpFoldResult>>(results).push_back(unwrap(value));
}

void RustOp::getCanonicalizationPatterns(RewritePatternSet &set, MLIRContext *) {
  for (const StoredPattern &pattern : canonicalization)
    addPattern(set, pattern.view());
}

//===-------------------------------------------------------------- properties ---===//

std::optional<size_t> RustOp::slotOf(StringRef name) const {
  for (auto [index, known] : llvm::enumerate(slotNames))
    if (known.getValue() == name)
      return index;
  return std::nullopt;
}

void RustOp::readSlots(DictionaryAttr dictionary, MutableArrayRef<Attribute> slots) const {
  for (auto [slot, name] : llvm::zip_equal(slots, slotNames))
    slot = dictionary ? dictionary.get(name) : Attribute();
}

DictionaryAttr RustOp::writeSlots(ArrayRef<Attribute> slots) const {
  SmallVector<NamedAttribute> attributes;
  for (auto [slot, name] : llvm::zip_equal(slots, slotNames))
    if (slot)
      attributes.emplace_back(name, slot);
  return attributes.empty() ? DictionaryAttr() : DictionaryAttr::get(slotNames.front().getContext(), attributes);
}

std::optional<Attribute> RustOp::getInherentAttr(Operation *op, StringRef name) {
  std::optional<size_t> index = slotOf(name);
  return index ? std::optional<Attribute>(slots(op)[*index]) : std::nullopt;
}

void RustOp::setInherentAttr(Operation *op, StringAttr name, Attribute value) {
  if (std::optional<size_t> index = slotOf(name))
    slots(op)[*index] = value;
}

void RustOp::populateInherentAttrs(Operation *op, NamedAttrList &attributes) {
  for (auto [slot, name] : llvm::zip_equal(slots(op), slotNames))
    if (slot)
      attributes.append(name, slot);
}

void RustOp::initProperties(OperationName, OpaqueProperties storage, OpaqueProperties init) {
  // The storage is raw memory.
  for (size_t i = 0; i < slotNames.size(); ++i)
    new (storage.as<Attribute *>() + i) Attribute(init ? slots(init)[i] : Attribute());
}

LogicalResult RustOp::setPropertiesFromAttr(OperationName, OpaqueProperties properties, Attribute attribute,
                                            function_ref<InFlightDiagnostic()> emitError) {
  auto dictionary = dyn_cast_or_null<DictionaryAttr>(attribute);
  if (attribute && !dictionary) {
    if (emitError)
      emitError() << "expected DictionaryAttr to set properties";
    return failure();
  }
  if (!slotNames.empty())
    readSlots(dictionary, slots(properties));
  return success();
}

void RustOp::copyProperties(OpaqueProperties to, OpaqueProperties from) {
  if (!slotNames.empty())
    llvm::copy(slots(from), slots(to).begin());
}

bool RustOp::compareProperties(OpaqueProperties lhs, OpaqueProperties rhs) {
  return slotNames.empty() || llvm::equal(slots(lhs), slots(rhs));
}

llvm::hash_code RustOp::hashProperties(OpaqueProperties properties) {
  return slotNames.empty() ? llvm::hash_code(0) : llvm::hash_combine_range(slots(properties));
}

//===-------------------------------------------------------------------- C API ---===//

const void *llopt_operation_spec(MlirOperation op) {
  const RustOp *model = RustOp::of(unwrap(op));
  return model ? model->getSpec() : nullptr;
}

const void *llopt_operation_type_id(MlirOperation op) {
  OperationName name = unwrap(op)->getName();
  return name.isRegistered() ? name.getTypeID().getAsOpaquePointer() : nullptr;
}

MlirAttribute llopt_operation_slot(MlirOperation op, intptr_t index) {
  const RustOp *model = RustOp::of(unwrap(op));
  if (!model || index < 0 || static_cast<size_t>(index) >= model->slotCount())
    return {};
  return wrap(model->slots(unwrap(op))[index]);
}

void llopt_operation_set_slot(MlirOperation op, intptr_t index, MlirAttribute attribute) {
  const RustOp *model = RustOp::of(unwrap(op));
  if (model && index >= 0 && static_cast<size_t>(index) < model->slotCount())
    model->slots(unwrap(op))[index] = unwrap(attribute);
}
