//===- kinds.cpp - attributes and types of ours ----------------------------===//
//
// One storage layout serves all kinds. What makes `#ttg.blocked` another class than
// `#ttg.linear` to MLIR is the TypeID under which the uniquer keeps it, and that is
// the address of the kind's spec.
//
//===----------------------------------------------------------------------===//

#include "model.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/TensorEncoding.h"
#include "llvm/Support/RWMutex.h"

using namespace mlir;
using namespace llopt;

//===------------------------------------------------------ kinds by spec ---===//

namespace {
/// All kinds of the process by spec; entries are never removed.
struct KindTable {
  llvm::sys::RWMutex mutex;
  llvm::DenseMap<const void *, std::unique_ptr<Kind>> kinds;
};
} // namespace

static KindTable &kindTable() {
  static KindTable table;
  return table;
}

const Kind *llopt::findKind(const void *spec) {
  KindTable &table = kindTable();
  llvm::sys::ScopedReader lock(table.mutex);
  auto it = table.kinds.find(spec);
  return it == table.kinds.end() ? nullptr : it->second.get();
}

static const Kind *internKind(StringRef dialect, const LloptKind &kind) {
  KindTable &table = kindTable();
  llvm::sys::ScopedWriter lock(table.mutex);
  std::unique_ptr<Kind> &entry = table.kinds[kind.spec];
  if (!entry) {
    entry = std::make_unique<Kind>();
    entry->spec = kind.spec;
    entry->mnemonic = unwrap(kind.mnemonic).str();
    entry->name = (dialect + "." + unwrap(kind.mnemonic)).str();
    entry->alias = unwrap(kind.alias).str();
    entry->parameterCount = kind.parameterCount;
    entry->verify = kind.verify;
    entry->verifyEncoding = kind.verifyEncoding;
  }
  return entry.get();
}

//===-------------------------------------------------- sub-element walks ---===//

template <typename Storage, typename T> static Storage *storageOf(T object) {
  return static_cast<Storage *>(const_cast<void *>(object.getAsOpaquePointer()));
}

template <typename Storage, typename T>
static void walkParameters(T object, function_ref<void(Attribute)> walkAttribute, function_ref<void(Type)>) {
  for (Attribute parameter : storageOf<Storage>(object)->parameters)
    if (parameter)
      walkAttribute(parameter);
}

/// The parameters with the present ones replaced, in walk order.
template <typename Storage, typename T>
static SmallVector<Attribute> replaceParameters(T object, ArrayRef<Attribute> replacements) {
  SmallVector<Attribute> parameters;
  for (Attribute parameter : storageOf<Storage>(object)->parameters) {
    parameters.push_back(parameter ? replacements.front() : Attribute());
    if (parameter)
      replacements = replacements.drop_front();
  }
  return parameters;
}

static Attribute replaceInAttribute(Attribute attribute, ArrayRef<Attribute> attributes, ArrayRef<Type>) {
  return RustAttribute::make(attribute.getContext(), storageOf<RustAttributeStorage>(attribute)->kind,
                             replaceParameters<RustAttributeStorage>(attribute, attributes));
}
static Type replaceInType(Type type, ArrayRef<Attribute> attributes, ArrayRef<Type>) {
  return RustType::make(type.getContext(), storageOf<RustTypeStorage>(type)->kind,
                        replaceParameters<RustTypeStorage>(type, attributes));
}

//===------------------------------------------------------- construction ---===//

Attribute RustAttribute::make(MLIRContext *context, const Kind *kind, ArrayRef<Attribute> parameters) {
  TypeID id = typeIDOf(kind->spec);
  if (!context->getAttributeUniquer().isParametricStorageInitialized(id))
    return {};
  return mlir::detail::AttributeUniquer::getWithTypeID<RustAttribute>(context, id, kind, parameters);
}

Type RustType::make(MLIRContext *context, const Kind *kind, ArrayRef<Attribute> parameters) {
  TypeID id = typeIDOf(kind->spec);
  if (!context->getTypeUniquer().isParametricStorageInitialized(id))
    return {};
  return mlir::detail::TypeUniquer::getWithTypeID<RustType>(context, id, kind, parameters);
}

namespace {
/// Verifies an attribute as the encoding of a ranked tensor type.
struct EncodingModel : VerifiableTensorEncoding::FallbackModel<EncodingModel> {
  LogicalResult verifyEncoding(Attribute attribute, ArrayRef<int64_t> shape, Type elementType,
                               function_ref<InFlightDiagnostic()> emitError) const {
    const Kind *kind = storageOf<RustAttributeStorage>(attribute)->kind;
    return static_cast<RustDialect &>(attribute.getDialect())
        .verifyEncoding(kind, attribute, shape, elementType, emitError);
  }
};
} // namespace

LogicalResult RustDialect::verifyEncoding(const Kind *kind, Attribute attribute, ArrayRef<int64_t> shape,
                                          Type elementType, function_ref<InFlightDiagnostic()> emitError) {
  // MLIR verifies a tensor type each time it is spelled or built, before it looks whether the
  // type exists. Few shapes share an encoding and an element type.
  constexpr size_t kMaxShapes = 32;
  auto key = std::make_pair(attribute, elementType);
  {
    std::lock_guard<std::mutex> lock(acceptedMutex);
    auto known = accepted.find(key);
    if (known != accepted.end() &&
        llvm::any_of(known->second, [&](ArrayRef<int64_t> other) { return other == shape; }))
      return success();
  }
  if (!hooks->attribute_verify_encoding(kind->spec, wrap(attribute), shape.data(), shape.size(), wrap(elementType),
                                        LloptSink{&emitError}))
    return failure();
  std::lock_guard<std::mutex> lock(acceptedMutex);
  auto &shapes = accepted[key];
  if (shapes.size() < kMaxShapes)
    shapes.emplace_back(shape);
  return success();
}

void llopt_emit_message(LloptSink emit, MlirStringRef message) {
  sink<function_ref<InFlightDiagnostic()>>(emit)() << unwrap(message);
}

//===---------------------------------------------------------- dialect side ---===//

void RustDialect::addAttributeKind(const LloptKind &description) {
  const Kind *kind = internKind(getNamespace(), description);
  TypeID id = typeIDOf(kind->spec);
  mlir::detail::InterfaceMap interfaces;
  if (kind->verifyEncoding)
    interfaces.insertModels<EncodingModel>();
  mlir::detail::AttributeUniquer::registerAttribute<RustAttribute>(getContext(), id);
  addAttribute(id, AbstractAttribute::get(*this, std::move(interfaces), RustAttribute::getHasTraitFn(),
                                          walkParameters<RustAttributeStorage, Attribute>, replaceInAttribute,
                                          id, kind->name));
  attributeKinds[kind->mnemonic] = kind;
}

void RustDialect::addTypeKind(const LloptKind &description) {
  const Kind *kind = internKind(getNamespace(), description);
  TypeID id = typeIDOf(kind->spec);
  mlir::detail::TypeUniquer::registerType<RustType>(getContext(), id);
  addType(id, AbstractType::get(*this, mlir::detail::InterfaceMap(), RustType::getHasTraitFn(),
                                walkParameters<RustTypeStorage, Type>, replaceInType, id, kind->name));
  typeKinds[kind->mnemonic] = kind;
}

Attribute llopt::parseAttributeBody(const Kind *kind, AsmParser &parser, Type type) {
  return unwrap(hooks->attribute_parse(kind->spec, LloptParser{&parser}, wrap(type)));
}

Type llopt::parseTypeBody(const Kind *kind, AsmParser &parser) {
  return unwrap(hooks->type_parse(kind->spec, LloptParser{&parser}));
}

Attribute RustDialect::parseAttribute(DialectAsmParser &parser, Type type) const {
  SMLoc loc = parser.getCurrentLocation();
  StringRef mnemonic;
  if (parser.parseKeyword(&mnemonic))
    return {};
  if (const Kind *kind = findAttributeKind(mnemonic))
    return parseAttributeBody(kind, parser, type);
  parser.emitError(loc) << "unknown attribute `" << mnemonic << "` in dialect `" << getNamespace() << "`";
  return {};
}

Type RustDialect::parseType(DialectAsmParser &parser) const {
  SMLoc loc = parser.getCurrentLocation();
  StringRef mnemonic;
  if (parser.parseKeyword(&mnemonic))
    return {};
  if (const Kind *kind = findTypeKind(mnemonic))
    return parseTypeBody(kind, parser);
  parser.emitError(loc) << "unknown type `" << mnemonic << "` in dialect `" << getNamespace() << "`";
  return {};
}

void RustDialect::printAttribute(Attribute attribute, DialectAsmPrinter &printer) const {
  const Kind *kind = cast<RustAttribute>(attribute).getKind();
  printer << kind->mnemonic;
  hooks->attribute_print(kind->spec, wrap(attribute), LloptPrinter{static_cast<AsmPrinter *>(&printer)});
}

void RustDialect::printType(Type type, DialectAsmPrinter &printer) const {
  const Kind *kind = cast<RustType>(type).getKind();
  printer << kind->mnemonic;
  hooks->type_print(kind->spec, wrap(type), LloptPrinter{static_cast<AsmPrinter *>(&printer)});
}

//===----------------------------------------------------------------- C API ---===//

const void *llopt_attribute_spec(MlirAttribute attribute) {
  auto ours = dyn_cast_or_null<RustAttribute>(unwrap(attribute));
  return ours ? ours.getKind()->spec : nullptr;
}

const void *llopt_type_spec(MlirType type) {
  auto ours = dyn_cast_or_null<RustType>(unwrap(type));
  return ours ? ours.getKind()->spec : nullptr;
}

template <typename T> static void getParameters(T object, const MlirAttribute **parameters, intptr_t *count) {
  ArrayRef<Attribute> found = object ? object.getParameters() : ArrayRef<Attribute>();
  *parameters = wrapArray(found);
  *count = found.size();
}

void llopt_attribute_parameters(MlirAttribute attribute, const MlirAttribute **parameters, intptr_t *count) {
  getParameters(dyn_cast_or_null<RustAttribute>(unwrap(attribute)), parameters, count);
}

void llopt_type_parameters(MlirType type, const MlirAttribute **parameters, intptr_t *count) {
  getParameters(dyn_cast_or_null<RustType>(unwrap(type)), parameters, count);
}

MlirAttribute llopt_attribute_get(MlirContext context, const void *spec, const MlirAttribute *parameters,
                                  intptr_t count) {
  const Kind *kind = findKind(spec);
  return kind ? wrap(RustAttribute::make(unwrap(context), kind, unwrapArray(parameters, count))) : MlirAttribute{};
}

MlirType llopt_type_get(MlirContext context, const void *spec, const MlirAttribute *parameters, intptr_t count) {
  const Kind *kind = findKind(spec);
  return kind ? wrap(RustType::make(unwrap(context), kind, unwrapArray(parameters, count))) : MlirType{};
}

bool llopt_attribute_is_verified(MlirAttribute attribute) {
  return cast<RustAttribute>(unwrap(attribute)).isVerified().load(std::memory_order_relaxed);
}
void llopt_attribute_set_verified(MlirAttribute attribute) {
  cast<RustAttribute>(unwrap(attribute)).isVerified().store(true, std::memory_order_relaxed);
}
uint64_t llopt_attribute_memo(MlirAttribute attribute) {
  auto ours = dyn_cast_or_null<RustAttribute>(unwrap(attribute));
  return ours ? ours.memo().load(std::memory_order_relaxed) : 0;
}
void llopt_attribute_set_memo(MlirAttribute attribute, uint64_t memo) {
  if (auto ours = dyn_cast_or_null<RustAttribute>(unwrap(attribute)))
    ours.memo().store(memo, std::memory_order_relaxed);
}
bool llopt_type_is_verified(MlirType type) {
  return cast<RustType>(unwrap(type)).isVerified().load(std::memory_order_relaxed);
}
void llopt_type_set_verified(MlirType type) {
  cast<RustType>(unwrap(type)).isVerified().store(true, std::memory_order_relaxed);
}
