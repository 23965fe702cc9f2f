//===- dialect.cpp - dialects of ours and their dialect interfaces ---------===//

#include "model.h"
#include "mlir/Bytecode/BytecodeImplementation.h"
#include "mlir/Transforms/InliningUtils.h"

using namespace mlir;
using namespace llopt;

const LloptHooks *llopt::hooks = nullptr;

void llopt_set_hooks(const LloptHooks *table) { hooks = table; }

namespace {

/// Gives attributes and types of ours the aliases that their kinds ask for.
struct AliasModel : OpAsmDialectInterface {
  explicit AliasModel(Dialect *dialect) : OpAsmDialectInterface(dialect) {}

  AliasResult getAlias(Attribute attribute, raw_ostream &os) const override {
    auto ours = dyn_cast<RustAttribute>(attribute);
    return ours && &attribute.getDialect() == getDialect() ? print(ours.getKind(), os) : AliasResult::NoAlias;
  }
  AliasResult getAlias(Type type, raw_ostream &os) const override {
    auto ours = dyn_cast<RustType>(type);
    return ours && &type.getDialect() == getDialect() ? print(ours.getKind(), os) : AliasResult::NoAlias;
  }

  static AliasResult print(const Kind *kind, raw_ostream &os) {
    if (kind->alias.empty())
      return AliasResult::NoAlias;
    os << kind->alias;
    return AliasResult::FinalAlias;
  }
};

/// Bytecode of attributes and types: the mnemonic, the number of parameters, and each of them,
/// possibly absent. Mnemonics rather than numbers, so that tables may grow.
struct BytecodeModel : BytecodeDialectInterface {
  explicit BytecodeModel(Dialect *dialect) : BytecodeDialectInterface(dialect) {}

  const RustDialect *dialect() const { return static_cast<const RustDialect *>(getDialect()); }

  LogicalResult writeAttribute(Attribute attribute, DialectBytecodeWriter &writer) const override {
    auto ours = dyn_cast<RustAttribute>(attribute);
    return ours ? write(ours.getKind(), ours.getParameters(), writer) : failure();
  }
  LogicalResult writeType(Type type, DialectBytecodeWriter &writer) const override {
    auto ours = dyn_cast<RustType>(type);
    return ours ? write(ours.getKind(), ours.getParameters(), writer) : failure();
  }
  static LogicalResult write(const Kind *kind, ArrayRef<Attribute> parameters, DialectBytecodeWriter &writer) {
    writer.writeOwnedString(kind->mnemonic);
    writer.writeVarInt(parameters.size());
    for (Attribute parameter : parameters)
      writer.writeOptionalAttribute(parameter);
    return success();
  }

  Attribute readAttribute(DialectBytecodeReader &reader) const override {
    StringRef mnemonic;
    if (failed(reader.readString(mnemonic)))
      return {};
    const Kind *kind = dialect()->findAttributeKind(mnemonic);
    SmallVector<Attribute> parameters;
    if (failed(readParameters(kind, "attribute", mnemonic, parameters, reader)))
      return {};
    MLIRContext *context = reader.getContext();
    if (kind->verify && !hooks->attribute_verify(kind->spec, wrap(Location(UnknownLoc::get(context))),
                                                 wrapArray(parameters), parameters.size())) {
      reader.emitError() << "invalid parameters of attribute `" << kind->name << "`";
      return {};
    }
    return RustAttribute::make(context, kind, parameters);
  }

  Type readType(DialectBytecodeReader &reader) const override {
    StringRef mnemonic;
    if (failed(reader.readString(mnemonic)))
      return {};
    const Kind *kind = dialect()->findTypeKind(mnemonic);
    SmallVector<Attribute> parameters;
    if (failed(readParameters(kind, "type", mnemonic, parameters, reader)))
      return {};
    MLIRContext *context = reader.getContext();
    if (kind->verify && !hooks->type_verify(kind->spec, wrap(Location(UnknownLoc::get(context))),
                                            wrapArray(parameters), parameters.size())) {
      reader.emitError() << "invalid parameters of type `" << kind->name << "`";
      return {};
    }
    return RustType::make(context, kind, parameters);
  }

  LogicalResult readParameters(const Kind *kind, StringRef what, StringRef mnemonic,
                               SmallVectorImpl<Attribute> &parameters, DialectBytecodeReader &reader) const {
    if (!kind)
      return reader.emitError() << "unknown " << what << " `" << mnemonic << "` in dialect `"
                                << getDialect()->getNamespace() << "`";
    uint64_t count;
    if (failed(reader.readVarInt(count)))
      return failure();
    if (count != kind->parameterCount)
      return reader.emitError() << "`" << kind->name << "` has " << kind->parameterCount
                                << " parameters, the bytecode gives " << count;
    for (uint64_t i = 0; i < count; ++i)
      if (failed(reader.readOptionalAttribute(parameters.emplace_back())))
        return failure();
    return success();
  }
};

/// Asks Rust what may be inlined, and moves the values of terminators.
struct InlinerModel : DialectInlinerInterface {
  explicit InlinerModel(Dialect *dialect) : DialectInlinerInterface(dialect) {}

  const void *spec() const { return static_cast<const RustDialect *>(getDialect())->getSpec(); }

  bool isLegalToInline(Operation *call, Operation *callable, bool wouldBeCloned) const override {
    return hooks->dialect_legal_to_inline_call(spec(), wrap(call), wrap(callable), wouldBeCloned);
  }
  bool isLegalToInline(Region *, Region *, bool, IRMapping &) const override { return true; }
  bool isLegalToInline(Operation *op, Region *, bool wouldBeCloned, IRMapping &) const override {
    return hooks->dialect_legal_to_inline(spec(), wrap(op), wouldBeCloned);
  }

  /// A callee of several blocks: the terminator becomes a branch to the block after the call.
  void handleTerminator(Operation *op, Block *destination) const override {
    Operation *branch = unwrap(hooks->dialect_inlined_branch(spec(), wrap(op), wrap(destination)));
    if (!branch) {
      op->emitOpError("bug in llopt: a callee of several blocks was declared legal to inline, but its dialect "
                      "makes no branch for this terminator");
      return;
    }
    op->getBlock()->getOperations().insert(op->getIterator(), branch);
    op->erase();
  }
  /// A callee of one block: the results of the call are the operands of the terminator.
  void handleTerminator(Operation *op, ValueRange results) const override {
    for (auto [result, operand] : llvm::zip(results, op->getOperands()))
      result.replaceAllUsesWith(operand);
  }
};

} // namespace

RustDialect::RustDialect(MLIRContext *context, StringRef name, const void *spec, uint32_t flags)
    : Dialect(name, context, typeIDOf(spec)), spec(spec), flags(flags) {
  addInterfaces<AliasModel, BytecodeModel>();
  if (flags & LLOPT_DIALECT_INLINER)
    addInterfaces<InlinerModel>();
  hooks->dialect_initialize(spec, LloptDialect{this});
}

void RustDialect::addOperation(const LloptOperation &operation) {
  SmallVector<StringRef> names;
  for (intptr_t i = 0; i < operation.attributeCount; ++i)
    names.push_back(unwrap(operation.attributes[i]));
  RegisteredOperationName::insert(std::make_unique<RustOp>(this, operation), names);
}

Operation *RustDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  if (!(flags & LLOPT_DIALECT_MATERIALIZE_CONSTANT))
    return nullptr;
  Operation *constant = unwrap(hooks->dialect_materialize_constant(spec, wrap(value), wrap(type), wrap(loc)));
  return constant ? builder.insert(constant) : nullptr;
}

LogicalResult RustDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  return success(!(flags & LLOPT_DIALECT_VERIFY_OPERATION_ATTRIBUTE) ||
                 hooks->dialect_verify_operation_attribute(spec, wrap(op), wrap(attribute.getName().getValue()),
                                                           wrap(attribute.getValue())));
}

LogicalResult RustDialect::verifyRegionArgAttribute(Operation *op, unsigned region, unsigned argument,
                                                    NamedAttribute attribute) {
  return success(!(flags & LLOPT_DIALECT_VERIFY_ARGUMENT_ATTRIBUTE) ||
                 hooks->dialect_verify_argument_attribute(spec, wrap(op), region, argument,
                                                          wrap(attribute.getName().getValue()),
                                                          wrap(attribute.getValue())));
}

void RustDialect::getCanonicalizationPatterns(RewritePatternSet &set) const {
  for (const StoredPattern &pattern : patterns)
    llopt::addPattern(set, pattern.view());
}

//===----------------------------------------------------------------- C API ---===//

void llopt_dialect_register(MlirDialectRegistry registry, const void *spec, MlirStringRef name, uint32_t flags) {
  // Registry and dialects keep the name by reference.
  static llvm::StringMap<char> &names = *new llvm::StringMap<char>();
  static std::mutex &mutex = *new std::mutex();
  StringRef kept;
  {
    std::lock_guard<std::mutex> lock(mutex);
    kept = names.try_emplace(unwrap(name)).first->getKey();
  }
  TypeID id = typeIDOf(spec);
  unwrap(registry)->insert(id, kept, [=](MLIRContext *context) -> Dialect * {
    return context->getOrLoadDialect(kept, id,
                                     [=] { return std::make_unique<RustDialect>(context, kept, spec, flags); });
  });
}

static RustDialect &unwrapDialect(LloptDialect dialect) { return *static_cast<RustDialect *>(dialect.ptr); }

void llopt_dialect_add_operation(LloptDialect dialect, const LloptOperation *operation) {
  unwrapDialect(dialect).addOperation(*operation);
}
void llopt_dialect_add_attribute(LloptDialect dialect, const LloptKind *kind) {
  unwrapDialect(dialect).addAttributeKind(*kind);
}
void llopt_dialect_add_type(LloptDialect dialect, const LloptKind *kind) {
  unwrapDialect(dialect).addTypeKind(*kind);
}
void llopt_dialect_add_pattern(LloptDialect dialect, const LloptPattern *pattern) {
  unwrapDialect(dialect).addPattern(*pattern);
}
bool llopt_dialect_depend(LloptDialect dialect, MlirStringRef name) {
  return unwrapDialect(dialect).getContext()->getOrLoadDialect(unwrap(name)) != nullptr;
}
