//===- ir.cpp - access to the IR that the C API leaves out ------------------===//

#include "model.h"
#include "mlir-c/Diagnostics.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Dominance.h"

using namespace mlir;
using namespace llopt;
using llvm::APFloat;
using llvm::APInt;

//===---------------------------------------------------------- operations ---===//

MlirStringRef llopt_operation_name(MlirOperation op) { return wrap(unwrap(op)->getName().getStringRef()); }
bool llopt_operation_is_registered(MlirOperation op) { return unwrap(op)->isRegistered(); }
bool llopt_operation_has_trait(MlirOperation op, int trait) {
  return trait >= 0 && trait < LLOPT_TRAIT_COUNT && unwrap(op)->getName().isRegistered() &&
         unwrap(op)->getName().getRegisteredInfo()->hasTrait(traitModel(trait).id);
}

bool llopt_operation_fold(MlirOperation op, const MlirAttribute *operands, intptr_t count, LloptCollector results) {
  SmallVector<OpFoldResult> folded;
  if (failed(unwrap(op)->fold(unwrapArray(operands, count), folded)))
    return false;
  for (OpFoldResult result : folded) {
    if (auto attribute = dyn_cast<Attribute>(result))
      hooks->collect_fold(results, wrap(attribute), MlirValue{});
    else
      hooks->collect_fold(results, MlirAttribute{}, wrap(cast<Value>(result)));
  }
  return true;
}

bool llopt_operation_walk(MlirOperation op, bool postOrder, LloptWalkCallback callback, void *userData) {
  auto visit = [&](Operation *visited) {
    switch (callback(userData, wrap(visited))) {
    case LLOPT_WALK_SKIP:
      return WalkResult::skip();
    case LLOPT_WALK_INTERRUPT:
      return WalkResult::interrupt();
    default:
      return WalkResult::advance();
    }
  };
  WalkResult result = postOrder ? unwrap(op)->walk<WalkOrder::PostOrder>(visit)
                                : unwrap(op)->walk<WalkOrder::PreOrder>(visit);
  return !result.wasInterrupted();
}

void llopt_operation_erase_operand(MlirOperation op, intptr_t index) {
  if (index >= 0 && index < unwrap(op)->getNumOperands())
    unwrap(op)->eraseOperand(index);
}
void llopt_operation_insert_operand(MlirOperation op, intptr_t index, MlirValue value) {
  if (index >= 0 && index <= unwrap(op)->getNumOperands())
    unwrap(op)->insertOperands(index, unwrap(value));
}
void llopt_operation_drop_uses(MlirOperation op) { unwrap(op)->dropAllUses(); }
bool llopt_operation_is_equivalent(MlirOperation lhs, MlirOperation rhs, bool ignoreLocations) {
  return OperationEquivalence::isEquivalentTo(unwrap(lhs), unwrap(rhs),
                                              ignoreLocations ? OperationEquivalence::IgnoreLocations
                                                              : OperationEquivalence::None);
}

//===------------------------------------------------------------ dominance ---===//

static DominanceInfo &unwrapDominance(void *dominance) { return *static_cast<DominanceInfo *>(dominance); }

void *llopt_dominance_create(MlirOperation op) { return new DominanceInfo(unwrap(op)); }
void llopt_dominance_free(void *dominance) { delete static_cast<DominanceInfo *>(dominance); }
bool llopt_dominance_operation(void *dominance, MlirOperation a, MlirOperation b) {
  return unwrapDominance(dominance).dominates(unwrap(a), unwrap(b));
}
bool llopt_dominance_value(void *dominance, MlirValue value, MlirOperation user) {
  return unwrapDominance(dominance).properlyDominates(unwrap(value), unwrap(user));
}
bool llopt_dominance_block(void *dominance, MlirBlock a, MlirBlock b) {
  return unwrapDominance(dominance).dominates(unwrap(a), unwrap(b));
}

//===---------------------------------------------------- numbers, as bits ---===//

bool llopt_integer_attribute_value(MlirAttribute attribute, int64_t *value) {
  auto integer = dyn_cast_or_null<IntegerAttr>(unwrap(attribute));
  if (!integer)
    return false;
  APInt bits = integer.getValue();
  bool isUnsigned = integer.getType().isUnsignedInteger() || integer.getType().isInteger(1);
  if (isUnsigned ? !bits.isIntN(64) : !bits.isSignedIntN(64))
    return false;
  *value = isUnsigned ? static_cast<int64_t>(bits.getZExtValue()) : bits.getSExtValue();
  return true;
}

bool llopt_attribute_bits(MlirAttribute attribute, uint64_t *bits) {
  APInt value;
  if (auto integer = dyn_cast_or_null<IntegerAttr>(unwrap(attribute)))
    value = integer.getValue();
  else if (auto number = dyn_cast_or_null<FloatAttr>(unwrap(attribute)))
    value = number.getValue().bitcastToAPInt();
  else
    return false;
  if (!value.isIntN(64))
    return false;
  *bits = value.getZExtValue();
  return true;
}

bool llopt_tensor_shape(MlirType type, const int64_t **shape, intptr_t *rank) {
  auto tensor = dyn_cast<RankedTensorType>(unwrap(type));
  if (!tensor)
    return false;
  *shape = tensor.getShape().data();
  *rank = tensor.getShape().size();
  return true;
}

uint32_t llopt_type_bit_width(MlirType type) {
  Type unwrapped = unwrap(type);
  if (isa<IndexType>(unwrapped))
    return IndexType::kInternalStorageBitWidth;
  return unwrapped.isIntOrFloat() ? unwrapped.getIntOrFloatBitWidth() : 0;
}

/// A number of at most 64 bits as MLIR keeps it; none for other types.
static std::optional<APInt> bitsOfType(Type type, uint64_t bits) {
  uint32_t width = llopt_type_bit_width(wrap(type));
  if (width == 0 || width > 64)
    return std::nullopt;
  return APInt(64, bits).trunc(width);
}

MlirAttribute llopt_float_attribute_from_bits(MlirType type, uint64_t bits) {
  auto number = dyn_cast<FloatType>(unwrap(type));
  std::optional<APInt> value = number ? bitsOfType(number, bits) : std::nullopt;
  return value ? wrap(Attribute(FloatAttr::get(number, APFloat(number.getFloatSemantics(), *value)))) : MlirAttribute{};
}

/// The elements of a constant as bits of at most 64; none for other constants.
static std::optional<SmallVector<uint64_t>> elementBits(DenseElementsAttr dense, bool splat) {
  Type element = dense.getElementType();
  uint32_t width = llopt_type_bit_width(wrap(element));
  if (width == 0 || width > 64)
    return std::nullopt;
  SmallVector<uint64_t> bits;
  if (isa<FloatType>(element)) {
    if (splat)
      bits.push_back(dense.getSplatValue<APFloat>().bitcastToAPInt().getZExtValue());
    else
      for (APFloat value : dense.getValues<APFloat>())
        bits.push_back(value.bitcastToAPInt().getZExtValue());
  } else {
    if (splat)
      bits.push_back(dense.getSplatValue<APInt>().getZExtValue());
    else
      for (APInt value : dense.getValues<APInt>())
        bits.push_back(value.getZExtValue());
  }
  return bits;
}

bool llopt_dense_is_splat(MlirAttribute attribute, uint64_t *bits) {
  auto dense = dyn_cast_or_null<DenseElementsAttr>(unwrap(attribute));
  if (!dense || !dense.isSplat())
    return false;
  std::optional<SmallVector<uint64_t>> values = elementBits(dense, /*splat=*/true);
  if (values)
    *bits = values->front();
  return values.has_value();
}

bool llopt_dense_bits(MlirAttribute attribute, uint64_t *bits, intptr_t count) {
  auto dense = dyn_cast_or_null<DenseElementsAttr>(unwrap(attribute));
  if (!dense || dense.getNumElements() != count)
    return false;
  std::optional<SmallVector<uint64_t>> values = elementBits(dense, /*splat=*/false);
  if (values)
    llvm::copy(*values, bits);
  return values.has_value();
}

MlirAttribute llopt_dense_from_bits(MlirType type, const uint64_t *bits, intptr_t count) {
  auto shaped = dyn_cast<ShapedType>(unwrap(type));
  if (!shaped || !shaped.hasStaticShape() || (count != 1 && count != shaped.getNumElements()))
    return {};
  Type element = shaped.getElementType();
  SmallVector<APInt> integers;
  SmallVector<APFloat> floats;
  for (uint64_t value : ArrayRef(bits, count)) {
    std::optional<APInt> number = bitsOfType(element, value);
    if (!number)
      return {};
    if (auto type = dyn_cast<FloatType>(element))
      floats.emplace_back(type.getFloatSemantics(), *number);
    else
      integers.push_back(*number);
  }
  return wrap(Attribute(isa<FloatType>(element) ? DenseElementsAttr::get(shaped, floats)
                                                : DenseElementsAttr::get(shaped, integers)));
}

MlirType llopt_tensor_type_checked(MlirLocation location, const int64_t *shape, intptr_t rank, MlirType element,
                                   MlirAttribute encoding) {
  Location loc = unwrap(location);
  return wrap(Type(RankedTensorType::getChecked([&] { return emitError(loc); }, ArrayRef(shape, rank),
                                                unwrap(element), unwrap(encoding))));
}

//===-------------------------------------------------- locations, diagnostics ---===//

bool llopt_location_file(MlirLocation location, MlirStringRef *file, uint32_t *line, uint32_t *column) {
  auto position = unwrap(location)->findInstanceOf<FileLineColLoc>();
  if (!position)
    return false;
  *file = wrap(position.getFilename().getValue());
  *line = position.getLine();
  *column = position.getColumn();
  return true;
}

static DiagnosticSeverity unwrapSeverity(int severity) {
  switch (severity) {
  case MlirDiagnosticWarning:
    return DiagnosticSeverity::Warning;
  case MlirDiagnosticNote:
    return DiagnosticSeverity::Note;
  case MlirDiagnosticRemark:
    return DiagnosticSeverity::Remark;
  default:
    return DiagnosticSeverity::Error;
  }
}

static void attachNotes(InFlightDiagnostic &diagnostic, const LloptNote *notes, intptr_t count) {
  for (const LloptNote &note : ArrayRef(notes, count))
    diagnostic.attachNote(unwrap(note.location)) << unwrap(note.message);
}

void llopt_emit(int severity, MlirLocation location, MlirStringRef message, const LloptNote *notes, intptr_t count) {
  Location loc = unwrap(location);
  InFlightDiagnostic diagnostic = loc->getContext()->getDiagEngine().emit(loc, unwrapSeverity(severity));
  diagnostic << unwrap(message);
  attachNotes(diagnostic, notes, count);
}

void llopt_emit_op_error(MlirOperation op, MlirStringRef message, const LloptNote *notes, intptr_t count) {
  InFlightDiagnostic diagnostic = unwrap(op)->emitOpError(unwrap(message));
  attachNotes(diagnostic, notes, count);
}

void llopt_context_print_operations(MlirContext context, bool print) {
  unwrap(context)->printOpOnDiagnostic(print);
}
