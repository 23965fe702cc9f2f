//===- printer.cpp - the assembly printer, for hooks that print -------------===//

#include "model.h"
#include "mlir/Interfaces/FunctionImplementation.h"

using namespace mlir;
using namespace llopt;

static AsmPrinter &unwrapPrinter(LloptPrinter printer) { return *static_cast<AsmPrinter *>(printer.ptr); }
static OpAsmPrinter &unwrapPrinter(LloptOpPrinter printer) { return *static_cast<OpAsmPrinter *>(printer.ptr); }
static ArrayRef<Type> unwrapTypes(const MlirType *types, intptr_t count) {
  return {reinterpret_cast<const Type *>(types), static_cast<size_t>(count)};
}
static ArrayRef<Value> unwrapValues(const MlirValue *values, intptr_t count) {
  return {reinterpret_cast<const Value *>(values), static_cast<size_t>(count)};
}

void llopt_printer_text(LloptPrinter printer, MlirStringRef text) { unwrapPrinter(printer).getStream() << unwrap(text); }
void llopt_printer_newline(LloptPrinter printer) { unwrapPrinter(printer).printNewline(); }
void llopt_printer_indent(LloptPrinter printer, bool increase) {
  if (increase)
    unwrapPrinter(printer).increaseIndent();
  else
    unwrapPrinter(printer).decreaseIndent();
}
void llopt_printer_float(LloptPrinter printer, double value) {
  unwrapPrinter(printer).printFloat(llvm::APFloat(value));
}
void llopt_printer_type(LloptPrinter printer, MlirType type) { unwrapPrinter(printer).printType(unwrap(type)); }
void llopt_printer_attribute(LloptPrinter printer, MlirAttribute attribute) {
  unwrapPrinter(printer).printAttribute(unwrap(attribute));
}
void llopt_printer_attribute_without_type(LloptPrinter printer, MlirAttribute attribute) {
  unwrapPrinter(printer).printAttributeWithoutType(unwrap(attribute));
}

void llopt_printer_stripped_attribute(LloptPrinter handle, MlirAttribute attribute) {
  AsmPrinter &printer = unwrapPrinter(handle);
  auto ours = dyn_cast<RustAttribute>(unwrap(attribute));
  if (!ours)
    printer.printAttribute(unwrap(attribute));
  else if (failed(printer.printAlias(Attribute(ours))))
    hooks->attribute_print(ours.getKind()->spec, attribute, handle);
}
void llopt_printer_stripped_type(LloptPrinter handle, MlirType type) {
  AsmPrinter &printer = unwrapPrinter(handle);
  auto ours = dyn_cast<RustType>(unwrap(type));
  if (!ours)
    printer.printType(unwrap(type));
  else if (failed(printer.printAlias(Type(ours))))
    hooks->type_print(ours.getKind()->spec, type, handle);
}
bool llopt_printer_alias(LloptPrinter printer, MlirAttribute attribute) {
  return succeeded(unwrapPrinter(printer).printAlias(unwrap(attribute)));
}
bool llopt_printer_type_alias(LloptPrinter printer, MlirType type) {
  return succeeded(unwrapPrinter(printer).printAlias(unwrap(type)));
}
void llopt_printer_keyword_or_string(LloptPrinter printer, MlirStringRef keyword) {
  unwrapPrinter(printer).printKeywordOrString(unwrap(keyword));
}
void llopt_printer_string(LloptPrinter printer, MlirStringRef string) {
  unwrapPrinter(printer).printString(unwrap(string));
}
void llopt_printer_symbol_name(LloptPrinter printer, MlirStringRef name) {
  unwrapPrinter(printer).printSymbolName(unwrap(name));
}
void llopt_printer_arrow_type_list(LloptPrinter printer, const MlirType *types, intptr_t count) {
  unwrapPrinter(printer).printArrowTypeList(unwrapTypes(types, count));
}
void llopt_printer_functional_type(LloptPrinter printer, const MlirType *inputs, intptr_t inputCount,
                                   const MlirType *results, intptr_t resultCount) {
  unwrapPrinter(printer).printFunctionalType(unwrapTypes(inputs, inputCount), unwrapTypes(results, resultCount));
}
void llopt_printer_dimension_list(LloptPrinter printer, const int64_t *dimensions, intptr_t count) {
  unwrapPrinter(printer).printDimensionList(ArrayRef(dimensions, count));
}

LloptPrinter llopt_op_printer_base(LloptOpPrinter printer) {
  return {static_cast<AsmPrinter *>(static_cast<OpAsmPrinter *>(printer.ptr))};
}
void llopt_op_printer_operand(LloptOpPrinter printer, MlirValue value) {
  unwrapPrinter(printer).printOperand(unwrap(value));
}
void llopt_op_printer_successor(LloptOpPrinter printer, MlirBlock block) {
  unwrapPrinter(printer).printSuccessor(unwrap(block));
}
void llopt_op_printer_successor_and_operands(LloptOpPrinter printer, MlirBlock block, const MlirValue *operands,
                                             intptr_t count) {
  unwrapPrinter(printer).printSuccessorAndUseList(unwrap(block), unwrapValues(operands, count));
}
void llopt_op_printer_attribute_dictionary(LloptOpPrinter printer, MlirOperation op, const MlirStringRef *elided,
                                           intptr_t count, bool withKeyword) {
  SmallVector<StringRef> names;
  for (intptr_t i = 0; i < count; ++i)
    names.push_back(unwrap(elided[i]));
  if (withKeyword)
    unwrapPrinter(printer).printOptionalAttrDictWithKeyword(unwrap(op)->getAttrs(), names);
  else
    unwrapPrinter(printer).printOptionalAttrDict(unwrap(op)->getAttrs(), names);
}
void llopt_op_printer_region(LloptOpPrinter printer, MlirRegion region, bool entryArguments, bool terminators,
                             bool emptyBlock) {
  unwrapPrinter(printer).printRegion(*unwrap(region), entryArguments, terminators, emptyBlock);
}
void llopt_op_printer_region_argument(LloptOpPrinter printer, MlirValue argument, MlirAttribute attributes,
                                      bool omitType) {
  auto dictionary = dyn_cast_or_null<DictionaryAttr>(unwrap(attributes));
  if (auto block = dyn_cast<BlockArgument>(unwrap(argument)))
    unwrapPrinter(printer).printRegionArgument(
        block, dictionary ? dictionary.getValue() : ArrayRef<NamedAttribute>(), omitType);
}
void llopt_op_printer_shadow_region_arguments(LloptOpPrinter printer, MlirRegion region, const MlirValue *names,
                                              intptr_t count) {
  unwrapPrinter(printer).shadowRegionArgs(*unwrap(region), unwrapValues(names, count));
}
void llopt_op_printer_operation(LloptOpPrinter printer, MlirOperation op) {
  unwrapPrinter(printer).printCustomOrGenericOp(unwrap(op));
}
void llopt_op_printer_generic(LloptOpPrinter printer, MlirOperation op, bool withName) {
  unwrapPrinter(printer).printGenericOp(unwrap(op), withName);
}
void llopt_op_printer_location(LloptOpPrinter printer, MlirLocation location) {
  unwrapPrinter(printer).printOptionalLocationSpecifier(unwrap(location));
}
void llopt_op_printer_function(LloptOpPrinter printer, MlirOperation op, bool isVariadic) {
  auto function = dyn_cast<FunctionOpInterface>(unwrap(op));
  if (!function) {
    unwrapPrinter(printer).printGenericOp(unwrap(op), /*printOpName=*/false);
    return;
  }
  MLIRContext *context = function->getContext();
  function_interface_impl::printFunctionOp(unwrapPrinter(printer), function, isVariadic, "function_type",
                                           StringAttr::get(context, "arg_attrs"),
                                           StringAttr::get(context, "res_attrs"));
}
