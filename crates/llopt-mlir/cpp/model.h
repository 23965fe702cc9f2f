//===- model.h - the C++ classes behind specs ------------------------------===//
//
// How a dialect that the C++ compiler never saw is made of MLIR's parts:
//
//   RustDialect    one object per context and dialect spec; owns nothing but tables.
//   RustOp         the `OperationName::Impl` of an operation: MLIR asks it for
//                  traits, parsing, printing, verification, folding, properties.
//   Kind           an attribute or type kind of the process; its attributes and
//                  types are stored as (kind, parameters) under the kind's TypeID.
//   *Model         one fallback model per interface, shared by all operations:
//                  it finds the RustOp through the operation and asks Rust.
//
// Inherent attributes are properties: an array of `Attribute`, one slot per name.
//
//===----------------------------------------------------------------------===//
#ifndef LLOPT_MODEL_H
#define LLOPT_MODEL_H

#include "bridge.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Rewrite.h"
#include "mlir/CAPI/Support.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include <atomic>
#include <mutex>

namespace llopt {

/// The hooks of the Rust side; set before any dialect is registered.
extern const LloptHooks *hooks;

/// A spec's address as a TypeID. Specs hold pointers, so they are aligned as TypeIDs need.
inline mlir::TypeID typeIDOf(const void *spec) { return mlir::TypeID::getFromOpaquePointer(spec); }

// MLIR's handles and the C API's are single pointers, so arrays of one are arrays of the other.
static_assert(sizeof(mlir::Attribute) == sizeof(MlirAttribute));
static_assert(sizeof(mlir::Type) == sizeof(MlirType));
static_assert(sizeof(mlir::Value) == sizeof(MlirValue));

inline const MlirAttribute *wrapArray(llvm::ArrayRef<mlir::Attribute> attributes) {
  return reinterpret_cast<const MlirAttribute *>(attributes.data());
}
inline llvm::ArrayRef<mlir::Attribute> unwrapArray(const MlirAttribute *attributes, intptr_t count) {
  return {reinterpret_cast<const mlir::Attribute *>(attributes), static_cast<size_t>(count)};
}

template <typename T> T &sink(LloptSink sink) { return *static_cast<T *>(sink.ptr); }

//===------------------------------------------------ attributes and types -===//

/// An attribute kind or a type kind; lives for ever.
struct Kind {
  const void *spec;
  std::string mnemonic;
  std::string name; // with the namespace
  std::string alias;
  size_t parameterCount;
  bool verify;
  bool verifyEncoding;
};

template <typename ConcreteType>
struct IsRustAttribute : mlir::AttributeTrait::TraitBase<ConcreteType, IsRustAttribute> {};
template <typename ConcreteType>
struct IsRustType : mlir::TypeTrait::TraitBase<ConcreteType, IsRustType> {};

/// The storage of attributes (Base = AttributeStorage) and types (Base = TypeStorage).
template <typename Base, typename Allocator> struct ParametricStorage : Base {
  using KeyTy = std::pair<const Kind *, llvm::ArrayRef<mlir::Attribute>>;

  ParametricStorage(const Kind *kind, llvm::ArrayRef<mlir::Attribute> parameters)
      : kind(kind), parameters(parameters) {}

  bool operator==(const KeyTy &key) const { return kind == key.first && parameters == key.second; }
  static llvm::hash_code hashKey(const KeyTy &key) {
    return llvm::hash_combine(key.first, llvm::hash_combine_range(key.second));
  }
  static ParametricStorage *construct(Allocator &allocator, const KeyTy &key) {
    return new (allocator.template allocate<ParametricStorage>())
        ParametricStorage(key.first, allocator.copyInto(key.second));
  }

  const Kind *kind;
  llvm::ArrayRef<mlir::Attribute> parameters; // null where absent
  /// Whether the kind's verifier has accepted the parameters. They never change, so once is
  /// enough; a module spells the same attribute hundreds of times.
  mutable std::atomic<bool> verified{false};
  /// What the kind's code has worked out from the parameters and wants to find again; zero at
  /// first.
  mutable std::atomic<uint64_t> memo{0};
};
using RustAttributeStorage = ParametricStorage<mlir::AttributeStorage, mlir::AttributeStorageAllocator>;
using RustTypeStorage = ParametricStorage<mlir::TypeStorage, mlir::TypeStorageAllocator>;

/// An attribute of a kind of ours.
struct RustAttribute
    : mlir::Attribute::AttrBase<RustAttribute, mlir::Attribute, RustAttributeStorage, IsRustAttribute> {
  using Base::Base;
  static constexpr llvm::StringLiteral name = "llopt.attribute";
  static bool classof(mlir::Attribute attribute) { return attribute.hasTrait<IsRustAttribute>(); }

  const Kind *getKind() const { return getImpl()->kind; }
  llvm::ArrayRef<mlir::Attribute> getParameters() const { return getImpl()->parameters; }
  std::atomic<bool> &isVerified() const { return getImpl()->verified; }
  std::atomic<uint64_t> &memo() const { return getImpl()->memo; }
  /// Null when the kind's dialect is not loaded.
  static mlir::Attribute make(mlir::MLIRContext *context, const Kind *kind,
                              llvm::ArrayRef<mlir::Attribute> parameters);
};

/// A type of a kind of ours.
struct RustType : mlir::Type::TypeBase<RustType, mlir::Type, RustTypeStorage, IsRustType> {
  using Base::Base;
  static constexpr llvm::StringLiteral name = "llopt.type";
  static bool classof(mlir::Type type) { return type.hasTrait<IsRustType>(); }

  const Kind *getKind() const { return getImpl()->kind; }
  llvm::ArrayRef<mlir::Attribute> getParameters() const { return getImpl()->parameters; }
  std::atomic<bool> &isVerified() const { return getImpl()->verified; }
  static mlir::Type make(mlir::MLIRContext *context, const Kind *kind,
                         llvm::ArrayRef<mlir::Attribute> parameters);
};

/// The kind of a spec, null before its dialect was loaded anywhere.
const Kind *findKind(const void *spec);

/// Parses what follows the mnemonic of a kind and checks that something came of it.
mlir::Attribute parseAttributeBody(const Kind *kind, mlir::AsmParser &parser, mlir::Type type);
mlir::Type parseTypeBody(const Kind *kind, mlir::AsmParser &parser);

//===------------------------------------------------------------- patterns -===//

/// A pattern of ours. Copies what it needs.
void addPattern(mlir::RewritePatternSet &set, const LloptPattern &pattern);

/// A pattern kept until a dialect or operation is asked for its canonicalization.
struct StoredPattern {
  const void *spec;
  std::string name, root;
  uint16_t benefit;

  explicit StoredPattern(const LloptPattern &pattern)
      : spec(pattern.spec), name(unwrap(pattern.name)), root(unwrap(pattern.root)), benefit(pattern.benefit) {}
  LloptPattern view() const {
    return {spec, wrap(llvm::StringRef(name)), wrap(llvm::StringRef(root)), benefit};
  }
};

//===--------------------------------------------------------------- dialect -===//

class RustDialect : public mlir::Dialect {
public:
  RustDialect(mlir::MLIRContext *context, llvm::StringRef name, const void *spec, uint32_t flags);

  mlir::Attribute parseAttribute(mlir::DialectAsmParser &parser, mlir::Type type) const override;
  void printAttribute(mlir::Attribute attribute, mlir::DialectAsmPrinter &printer) const override;
  mlir::Type parseType(mlir::DialectAsmParser &parser) const override;
  void printType(mlir::Type type, mlir::DialectAsmPrinter &printer) const override;
  mlir::Operation *materializeConstant(mlir::OpBuilder &builder, mlir::Attribute value, mlir::Type type,
                                       mlir::Location loc) override;
  mlir::LogicalResult verifyOperationAttribute(mlir::Operation *op, mlir::NamedAttribute attribute) override;
  mlir::LogicalResult verifyRegionArgAttribute(mlir::Operation *op, unsigned region, unsigned argument,
                                               mlir::NamedAttribute attribute) override;
  void getCanonicalizationPatterns(mlir::RewritePatternSet &patterns) const override;

  void addOperation(const LloptOperation &operation);
  void addAttributeKind(const LloptKind &kind);
  void addTypeKind(const LloptKind &kind);
  void addPattern(const LloptPattern &pattern) { patterns.emplace_back(pattern); }

  const void *getSpec() const { return spec; }
  const Kind *findAttributeKind(llvm::StringRef mnemonic) const { return attributeKinds.lookup(mnemonic); }
  const Kind *findTypeKind(llvm::StringRef mnemonic) const { return typeKinds.lookup(mnemonic); }

  /// Verifies an attribute of this dialect as the encoding of a tensor, once for each tensor type.
  mlir::LogicalResult verifyEncoding(const Kind *kind, mlir::Attribute attribute, llvm::ArrayRef<int64_t> shape,
                                     mlir::Type elementType,
                                     llvm::function_ref<mlir::InFlightDiagnostic()> emitError);

private:
  const void *spec;
  uint32_t flags;
  llvm::StringMap<const Kind *> attributeKinds, typeKinds;
  std::vector<StoredPattern> patterns;

  /// The shapes that an encoding was accepted for, by encoding and element type.
  std::mutex acceptedMutex;
  llvm::DenseMap<std::pair<mlir::Attribute, mlir::Type>, llvm::SmallVector<llvm::SmallVector<int64_t, 4>, 1>> accepted;
};

//===------------------------------------------------------------ operations -===//

/// What all operations of ours have and others do not.
template <typename ConcreteType>
class IsRustOp : public mlir::OpTrait::TraitBase<ConcreteType, IsRustOp> {};

/// A trait without parameters, with its verifiers.
struct TraitModel {
  mlir::TypeID id;
  mlir::LogicalResult (*verify)(mlir::Operation *);
  mlir::LogicalResult (*verifyRegions)(mlir::Operation *);
};

class RustOp final : public mlir::OperationName::Impl {
public:
  RustOp(RustDialect *dialect, const LloptOperation &operation);

  /// The model of an operation, null when it is none of ours.
  static const RustOp *of(mlir::OperationName name);
  static const RustOp *of(mlir::Operation *op) { return of(op->getName()); }

  const void *getSpec() const { return spec; }
  uint32_t getFlags() const { return flags; }
  llvm::StringRef getCallee() const { return callee; }
  size_t slotCount() const { return slotNames.size(); }
  std::optional<size_t> slotOf(llvm::StringRef name) const;
  /// The slots behind properties of this operation.
  llvm::MutableArrayRef<mlir::Attribute> slots(mlir::OpaqueProperties properties) const {
    return {properties.as<mlir::Attribute *>(), slotNames.size()};
  }
  llvm::MutableArrayRef<mlir::Attribute> slots(mlir::Operation *op) const {
    if (slotNames.empty())
      return {};
    return slots(op->getPropertiesStorage());
  }
  /// Reads slots from a dictionary; other names are left out.
  void readSlots(mlir::DictionaryAttr dictionary, llvm::MutableArrayRef<mlir::Attribute> slots) const;
  /// The slots that are set, as a dictionary; null when none is.
  mlir::DictionaryAttr writeSlots(llvm::ArrayRef<mlir::Attribute> slots) const;
  /// The verifiers of the interfaces that this operation answers.
  mlir::LogicalResult verifyInterfaces(mlir::Operation *op) const;
  mlir::LogicalResult verifyInterfacesWithRegions(mlir::Operation *op) const;

  // OperationName::Impl
  mlir::LogicalResult foldHook(mlir::Operation *op, llvm::ArrayRef<mlir::Attribute> operands,
                               llvm::SmallVectorImpl<mlir::OpFoldResult> &results) final;
  void getCanonicalizationPatterns(mlir::RewritePatternSet &set, mlir::MLIRContext *context) final;
  bool hasTrait(mlir::TypeID id) final;
  mlir::OperationName::ParseAssemblyFn getParseAssemblyFn() final;
  void populateDefaultAttrs(const mlir::OperationName &, mlir::NamedAttrList &) final {}
  void printAssembly(mlir::Operation *op, mlir::OpAsmPrinter &printer, llvm::StringRef defaultDialect) final;
  mlir::LogicalResult verifyInvariants(mlir::Operation *op) final;
  mlir::LogicalResult verifyRegionInvariants(mlir::Operation *op) final;
  std::optional<mlir::Attribute> getInherentAttr(mlir::Operation *op, llvm::StringRef name) final;
  void setInherentAttr(mlir::Operation *op, mlir::StringAttr name, mlir::Attribute value) final;
  void populateInherentAttrs(mlir::Operation *op, mlir::NamedAttrList &attributes) final;
  mlir::LogicalResult verifyInherentAttrs(mlir::OperationName, mlir::NamedAttrList &,
                                          llvm::function_ref<mlir::InFlightDiagnostic()>) final {
    return mlir::success();
  }
  int getOpPropertyByteSize() final { return static_cast<int>(slotNames.size() * sizeof(mlir::Attribute)); }
  void initProperties(mlir::OperationName, mlir::OpaqueProperties storage, mlir::OpaqueProperties init) final;
  void deleteProperties(mlir::OpaqueProperties) final {}
  void populateDefaultProperties(mlir::OperationName, mlir::OpaqueProperties) final {}
  mlir::LogicalResult setPropertiesFromAttr(mlir::OperationName, mlir::OpaqueProperties properties,
                                            mlir::Attribute attribute,
                                            llvm::function_ref<mlir::InFlightDiagnostic()> emitError) final;
  mlir::Attribute getPropertiesAsAttr(mlir::Operation *op) final { return writeSlots(slots(op)); }
  void copyProperties(mlir::OpaqueProperties to, mlir::OpaqueProperties from) final;
  bool compareProperties(mlir::OpaqueProperties lhs, mlir::OpaqueProperties rhs) final;
  llvm::hash_code hashProperties(mlir::OpaqueProperties properties) final;

private:
  const void *spec;
  uint32_t flags;
  LloptArity operands, results, regions, successors;
  llvm::SmallVector<const TraitModel *, 4> traits;
  llvm::SmallVector<mlir::StringAttr, 4> slotNames;
  std::vector<std::string> parents;
  std::string callee;
  std::vector<StoredPattern> canonicalization;
};

/// The interfaces of an operation, as fallback models.
mlir::detail::InterfaceMap makeInterfaceMap(const LloptOperation &operation);

/// The trait table, in the order of LloptTrait.
const TraitModel &traitModel(unsigned trait);

} // namespace llopt

#endif // LLOPT_MODEL_H
