//===- parser.cpp - the assembly parser, for hooks that parse ---------------===//

#include "model.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/Interfaces/FunctionImplementation.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"

using namespace mlir;
using namespace llopt;

static AsmParser &unwrapParser(LloptParser parser) { return *static_cast<AsmParser *>(parser.ptr); }
static OpAsmParser &unwrapParser(LloptOpParser parser) { return *static_cast<OpAsmParser *>(parser.ptr); }
static OperationState &unwrapState(LloptOpState state) { return *static_cast<OperationState *>(state.ptr); }
static SMLoc unwrapLocation(const char *location) { return SMLoc::getFromPointer(location); }

/// Absent, present or failed.
static int answer(OptionalParseResult result) {
  if (!result.has_value())
    return LLOPT_ABSENT;
  return succeeded(*result) ? LLOPT_PRESENT : LLOPT_FAILED;
}
static void append(LloptCollector collector, StringRef text) { hooks->collect_text(collector, wrap(text)); }

//===----------------------------------------------------------- locations ---===//

MlirContext llopt_parser_context(LloptParser parser) { return wrap(unwrapParser(parser).getContext()); }
const char *llopt_parser_location(LloptParser parser) {
  return unwrapParser(parser).getCurrentLocation().getPointer();
}
const char *llopt_parser_name_location(LloptParser parser) { return unwrapParser(parser).getNameLoc().getPointer(); }
MlirLocation llopt_parser_encode_location(LloptParser parser, const char *location) {
  return wrap(unwrapParser(parser).getEncodedSourceLoc(unwrapLocation(location)));
}
void llopt_parser_error(LloptParser parser, const char *location, MlirStringRef message) {
  unwrapParser(parser).emitError(unwrapLocation(location)) << unwrap(message);
}

//===-------------------------------------------------- tokens, keywords ---===//

bool llopt_parser_token(LloptParser handle, int token) {
  AsmParser &parser = unwrapParser(handle);
  auto parse = [&]() -> ParseResult {
    switch (token) {
    case LLOPT_TOKEN_ARROW: return parser.parseArrow();
    case LLOPT_TOKEN_L_BRACE: return parser.parseLBrace();
    case LLOPT_TOKEN_R_BRACE: return parser.parseRBrace();
    case LLOPT_TOKEN_COLON: return parser.parseColon();
    case LLOPT_TOKEN_COMMA: return parser.parseComma();
    case LLOPT_TOKEN_EQUAL: return parser.parseEqual();
    case LLOPT_TOKEN_LESS: return parser.parseLess();
    case LLOPT_TOKEN_GREATER: return parser.parseGreater();
    case LLOPT_TOKEN_QUESTION: return parser.parseQuestion();
    case LLOPT_TOKEN_PLUS: return parser.parsePlus();
    case LLOPT_TOKEN_SLASH: return parser.parseSlash();
    case LLOPT_TOKEN_MINUS: return parser.parseMinus();
    case LLOPT_TOKEN_STAR: return parser.parseStar();
    case LLOPT_TOKEN_VERTICAL_BAR: return parser.parseVerticalBar();
    case LLOPT_TOKEN_L_PAREN: return parser.parseLParen();
    case LLOPT_TOKEN_R_PAREN: return parser.parseRParen();
    case LLOPT_TOKEN_L_SQUARE: return parser.parseLSquare();
    case LLOPT_TOKEN_R_SQUARE: return parser.parseRSquare();
    case LLOPT_TOKEN_ELLIPSIS: return parser.parseEllipsis();
    }
    return failure();
  };
  return succeeded(parse());
}

bool llopt_parser_optional_token(LloptParser handle, int token) {
  AsmParser &parser = unwrapParser(handle);
  auto parse = [&]() -> ParseResult {
    switch (token) {
    case LLOPT_TOKEN_ARROW: return parser.parseOptionalArrow();
    case LLOPT_TOKEN_L_BRACE: return parser.parseOptionalLBrace();
    case LLOPT_TOKEN_R_BRACE: return parser.parseOptionalRBrace();
    case LLOPT_TOKEN_COLON: return parser.parseOptionalColon();
    case LLOPT_TOKEN_COMMA: return parser.parseOptionalComma();
    case LLOPT_TOKEN_EQUAL: return parser.parseOptionalEqual();
    case LLOPT_TOKEN_LESS: return parser.parseOptionalLess();
    case LLOPT_TOKEN_GREATER: return parser.parseOptionalGreater();
    case LLOPT_TOKEN_QUESTION: return parser.parseOptionalQuestion();
    case LLOPT_TOKEN_PLUS: return parser.parseOptionalPlus();
    case LLOPT_TOKEN_SLASH: return parser.parseOptionalSlash();
    case LLOPT_TOKEN_MINUS: return parser.parseOptionalMinus();
    case LLOPT_TOKEN_STAR: return parser.parseOptionalStar();
    case LLOPT_TOKEN_VERTICAL_BAR: return parser.parseOptionalVerticalBar();
    case LLOPT_TOKEN_L_PAREN: return parser.parseOptionalLParen();
    case LLOPT_TOKEN_R_PAREN: return parser.parseOptionalRParen();
    case LLOPT_TOKEN_L_SQUARE: return parser.parseOptionalLSquare();
    case LLOPT_TOKEN_R_SQUARE: return parser.parseOptionalRSquare();
    case LLOPT_TOKEN_ELLIPSIS: return parser.parseOptionalEllipsis();
    }
    return failure();
  };
  return succeeded(parse());
}

bool llopt_parser_keyword(LloptParser parser, MlirStringRef keyword) {
  return succeeded(unwrapParser(parser).parseKeyword(unwrap(keyword)));
}
bool llopt_parser_optional_keyword(LloptParser parser, MlirStringRef keyword) {
  return succeeded(unwrapParser(parser).parseOptionalKeyword(unwrap(keyword)));
}
bool llopt_parser_any_keyword(LloptParser parser, MlirStringRef *keyword) {
  StringRef text;
  if (unwrapParser(parser).parseKeyword(&text))
    return false;
  *keyword = wrap(text);
  return true;
}
bool llopt_parser_optional_any_keyword(LloptParser parser, MlirStringRef *keyword) {
  StringRef text;
  if (unwrapParser(parser).parseOptionalKeyword(&text))
    return false;
  *keyword = wrap(text);
  return true;
}
bool llopt_parser_keyword_or_string(LloptParser parser, LloptCollector string) {
  std::string text;
  if (unwrapParser(parser).parseKeywordOrString(&text))
    return false;
  append(string, text);
  return true;
}
int llopt_parser_optional_string(LloptParser parser, LloptCollector string) {
  std::string text;
  if (unwrapParser(parser).parseOptionalString(&text))
    return LLOPT_ABSENT;
  append(string, text);
  return LLOPT_PRESENT;
}

//===------------------------------------------------------------ numbers ---===//

int llopt_parser_optional_integer(LloptParser parser, int64_t *value) {
  return answer(unwrapParser(parser).parseOptionalInteger(*value));
}
int llopt_parser_optional_decimal_integer(LloptParser parser, int64_t *value) {
  return answer(unwrapParser(parser).parseOptionalDecimalInteger(*value));
}
bool llopt_parser_float(LloptParser parser, double *value) { return succeeded(unwrapParser(parser).parseFloat(*value)); }

bool llopt_parser_dimension_list(LloptParser parser, bool allowDynamic, bool withTrailingX, LloptCollector dimensions) {
  SmallVector<int64_t> shape;
  if (unwrapParser(parser).parseDimensionList(shape, allowDynamic, withTrailingX))
    return false;
  for (int64_t dimension : shape)
    hooks->collect_integer(dimensions, dimension);
  return true;
}
bool llopt_parser_x_in_dimension_list(LloptParser parser) {
  return succeeded(unwrapParser(parser).parseXInDimensionList());
}

//===--------------------------------------------------- types, attributes ---===//

bool llopt_parser_type(LloptParser parser, MlirType *type) {
  Type parsed;
  if (unwrapParser(parser).parseType(parsed))
    return false;
  *type = wrap(parsed);
  return true;
}
int llopt_parser_optional_type(LloptParser parser, MlirType *type) {
  Type parsed;
  OptionalParseResult result = unwrapParser(parser).parseOptionalType(parsed);
  *type = wrap(parsed);
  return answer(result);
}

template <typename Parse> static bool collectTypes(LloptCollector collector, Parse parse) {
  SmallVector<Type> types;
  if (parse(types))
    return false;
  for (Type type : types)
    hooks->collect_type(collector, wrap(type));
  return true;
}
bool llopt_parser_type_list(LloptParser parser, LloptCollector types) {
  return collectTypes(types, [&](auto &list) { return unwrapParser(parser).parseTypeList(list); });
}
bool llopt_parser_arrow_type_list(LloptParser parser, LloptCollector types) {
  return collectTypes(types, [&](auto &list) { return unwrapParser(parser).parseArrowTypeList(list); });
}
bool llopt_parser_optional_arrow_type_list(LloptParser parser, LloptCollector types) {
  return collectTypes(types, [&](auto &list) { return unwrapParser(parser).parseOptionalArrowTypeList(list); });
}

bool llopt_parser_attribute(LloptParser parser, MlirType type, MlirAttribute *attribute) {
  Attribute parsed;
  if (unwrapParser(parser).parseAttribute(parsed, unwrap(type)))
    return false;
  *attribute = wrap(parsed);
  return true;
}
int llopt_parser_optional_attribute(LloptParser parser, MlirType type, MlirAttribute *attribute) {
  Attribute parsed;
  OptionalParseResult result = unwrapParser(parser).parseOptionalAttribute(parsed, unwrap(type));
  *attribute = wrap(parsed);
  return answer(result);
}

/// The kind of a spec, or null after an error: a dialect that names a kind of another must depend
/// on that dialect.
static const Kind *findLoadedKind(AsmParser &parser, const void *spec) {
  const Kind *kind = findKind(spec);
  if (!kind)
    parser.emitError(parser.getCurrentLocation(), "bug in llopt: a kind is used before its dialect is loaded");
  return kind;
}

bool llopt_parser_attribute_of(LloptParser handle, const void *spec, MlirType type, MlirAttribute *attribute) {
  AsmParser &parser = unwrapParser(handle);
  SMLoc loc = parser.getCurrentLocation();
  const Kind *kind = findLoadedKind(parser, spec);
  Attribute parsed;
  if (!kind || parser.parseCustomAttributeWithFallback(parsed, unwrap(type), [&](Attribute &result, Type type) {
        result = parseAttributeBody(kind, parser, type);
        return success(static_cast<bool>(result));
      }))
    return false;
  auto ours = dyn_cast<RustAttribute>(parsed);
  if (!ours || ours.getKind() != kind) {
    parser.emitError(loc) << "expected an attribute `#" << kind->name << "`, but got " << parsed;
    return false;
  }
  *attribute = wrap(parsed);
  return true;
}

bool llopt_parser_type_of(LloptParser handle, const void *spec, MlirType *type) {
  AsmParser &parser = unwrapParser(handle);
  SMLoc loc = parser.getCurrentLocation();
  const Kind *kind = findLoadedKind(parser, spec);
  Type parsed;
  if (!kind || parser.parseCustomTypeWithFallback(parsed, [&](Type &result) {
        result = parseTypeBody(kind, parser);
        return success(static_cast<bool>(result));
      }))
    return false;
  auto ours = dyn_cast<RustType>(parsed);
  if (!ours || ours.getKind() != kind) {
    parser.emitError(loc) << "expected a type `!" << kind->name << "`, but got " << parsed;
    return false;
  }
  *type = wrap(parsed);
  return true;
}

bool llopt_parser_attribute_dictionary(LloptParser handle, bool withKeyword, MlirAttribute *dictionary) {
  AsmParser &parser = unwrapParser(handle);
  NamedAttrList attributes;
  if (withKeyword ? parser.parseOptionalAttrDictWithKeyword(attributes) : parser.parseOptionalAttrDict(attributes))
    return false;
  *dictionary = wrap(attributes.getDictionary(parser.getContext()));
  return true;
}

bool llopt_parser_symbol_name(LloptParser parser, MlirAttribute *name) {
  StringAttr parsed;
  if (unwrapParser(parser).parseSymbolName(parsed))
    return false;
  *name = wrap(Attribute(parsed));
  return true;
}
int llopt_parser_optional_symbol_name(LloptParser parser, MlirAttribute *name) {
  StringAttr parsed;
  if (unwrapParser(parser).parseOptionalSymbolName(parsed))
    return LLOPT_ABSENT;
  *name = wrap(Attribute(parsed));
  return LLOPT_PRESENT;
}

//===-------------------------------------------------- operands, arguments ---===//

static LloptUnresolvedOperand wrapOperand(const OpAsmParser::UnresolvedOperand &operand) {
  return {operand.location.getPointer(), wrap(operand.name), operand.number};
}
static OpAsmParser::UnresolvedOperand unwrapOperand(const LloptUnresolvedOperand &operand) {
  return {unwrapLocation(operand.location), unwrap(operand.name), operand.number};
}
static LloptArgument wrapArgument(const OpAsmParser::Argument &argument) {
  return {wrapOperand(argument.ssaName), wrap(argument.type), wrap(Attribute(argument.attrs)),
          argument.sourceLoc ? wrap(*argument.sourceLoc) : MlirLocation{}};
}
static SmallVector<OpAsmParser::Argument> unwrapArguments(const LloptArgument *arguments, intptr_t count) {
  SmallVector<OpAsmParser::Argument> result;
  for (const LloptArgument &argument : ArrayRef(arguments, count)) {
    OpAsmParser::Argument &copy = result.emplace_back();
    copy.ssaName = unwrapOperand(argument.name);
    copy.type = unwrap(argument.type);
    copy.attrs = dyn_cast_or_null<DictionaryAttr>(unwrap(argument.attributes));
    if (argument.location.ptr)
      copy.sourceLoc = unwrap(argument.location);
  }
  return result;
}

LloptParser llopt_op_parser_base(LloptOpParser parser) {
  return {static_cast<AsmParser *>(static_cast<OpAsmParser *>(parser.ptr))};
}
bool llopt_op_parser_operand(LloptOpParser parser, bool allowResultNumber, LloptUnresolvedOperand *operand) {
  OpAsmParser::UnresolvedOperand parsed;
  if (unwrapParser(parser).parseOperand(parsed, allowResultNumber))
    return false;
  *operand = wrapOperand(parsed);
  return true;
}
int llopt_op_parser_optional_operand(LloptOpParser parser, bool allowResultNumber, LloptUnresolvedOperand *operand) {
  OpAsmParser::UnresolvedOperand parsed;
  OptionalParseResult result = unwrapParser(parser).parseOptionalOperand(parsed, allowResultNumber);
  if (answer(result) == LLOPT_PRESENT)
    *operand = wrapOperand(parsed);
  return answer(result);
}
bool llopt_op_parser_resolve(LloptOpParser parser, LloptOpState state, const LloptUnresolvedOperand *operand,
                             MlirType type) {
  return succeeded(
      unwrapParser(parser).resolveOperand(unwrapOperand(*operand), unwrap(type), unwrapState(state).operands));
}
bool llopt_op_parser_argument(LloptOpParser parser, bool allowType, bool allowAttributes, LloptArgument *argument) {
  OpAsmParser::Argument parsed;
  if (unwrapParser(parser).parseArgument(parsed, allowType, allowAttributes))
    return false;
  *argument = wrapArgument(parsed);
  return true;
}
int llopt_op_parser_optional_argument(LloptOpParser parser, bool allowType, bool allowAttributes,
                                      LloptArgument *argument) {
  OpAsmParser::Argument parsed;
  OptionalParseResult result = unwrapParser(parser).parseOptionalArgument(parsed, allowType, allowAttributes);
  if (answer(result) == LLOPT_PRESENT)
    *argument = wrapArgument(parsed);
  return answer(result);
}

//===--------------------------------------------------- regions, successors ---===//

bool llopt_op_parser_region(LloptOpParser parser, MlirRegion region, const LloptArgument *arguments, intptr_t count,
                            bool nameShadowing) {
  return succeeded(unwrapParser(parser).parseRegion(*unwrap(region), unwrapArguments(arguments, count), nameShadowing));
}
int llopt_op_parser_optional_region(LloptOpParser parser, MlirRegion region, const LloptArgument *arguments,
                                    intptr_t count, bool nameShadowing) {
  return answer(
      unwrapParser(parser).parseOptionalRegion(*unwrap(region), unwrapArguments(arguments, count), nameShadowing));
}
bool llopt_op_parser_successor(LloptOpParser parser, MlirBlock *successor) {
  Block *block = nullptr;
  if (unwrapParser(parser).parseSuccessor(block))
    return false;
  *successor = wrap(block);
  return true;
}
int llopt_op_parser_optional_successor(LloptOpParser parser, MlirBlock *successor) {
  Block *block = nullptr;
  OptionalParseResult result = unwrapParser(parser).parseOptionalSuccessor(block);
  *successor = wrap(block);
  return answer(result);
}

//===---------------------------------------------------------- whole forms ---===//

bool llopt_op_parser_optional_location(LloptOpParser parser, MlirLocation *location) {
  std::optional<Location> parsed;
  if (unwrapParser(parser).parseOptionalLocationSpecifier(parsed))
    return false;
  *location = parsed ? wrap(*parsed) : MlirLocation{};
  return true;
}
bool llopt_op_parser_generic(LloptOpParser parser, LloptOpState state) {
  return succeeded(unwrapParser(parser).parseGenericOperationAfterOpName(unwrapState(state)));
}
bool llopt_op_parser_attributes(LloptOpParser handle, LloptOpState state, bool withKeyword) {
  OpAsmParser &parser = unwrapParser(handle);
  NamedAttrList &attributes = unwrapState(state).attributes;
  return succeeded(withKeyword ? parser.parseOptionalAttrDictWithKeyword(attributes)
                               : parser.parseOptionalAttrDict(attributes));
}
bool llopt_op_parser_function(LloptOpParser handle, LloptOpState state, bool allowVariadic) {
  OpAsmParser &parser = unwrapParser(handle);
  Builder &builder = parser.getBuilder();
  auto makeType = [](Builder &builder, ArrayRef<Type> inputs, ArrayRef<Type> results,
                     function_interface_impl::VariadicFlag, std::string &) -> Type {
    return builder.getFunctionType(inputs, results);
  };
  return succeeded(function_interface_impl::parseFunctionOp(
      parser, unwrapState(state), allowVariadic, builder.getStringAttr("function_type"), makeType,
      builder.getStringAttr("arg_attrs"), builder.getStringAttr("res_attrs")));
}
intptr_t llopt_op_parser_result_count(LloptOpParser parser) { return unwrapParser(parser).getNumResults(); }
MlirStringRef llopt_op_parser_result_name(LloptOpParser parser, intptr_t index, uint32_t *number) {
  auto [name, subnumber] = unwrapParser(parser).getResultName(index);
  *number = subnumber;
  return wrap(name);
}

//===------------------------------------------ the operation being parsed ---===//

MlirLocation llopt_state_location(LloptOpState state) { return wrap(unwrapState(state).location); }
void llopt_state_set_location(LloptOpState state, MlirLocation location) {
  unwrapState(state).location = unwrap(location);
}
void llopt_state_add_type(LloptOpState state, MlirType type) { unwrapState(state).addTypes(unwrap(type)); }
void llopt_state_add_attribute(LloptOpState state, MlirStringRef name, MlirAttribute attribute) {
  unwrapState(state).attributes.set(unwrap(name), unwrap(attribute));
}
void llopt_state_add_dictionary(LloptOpState state, MlirAttribute dictionary) {
  if (auto attributes = dyn_cast_or_null<DictionaryAttr>(unwrap(dictionary)))
    for (NamedAttribute attribute : attributes)
      unwrapState(state).attributes.set(attribute.getName(), attribute.getValue());
}
MlirAttribute llopt_state_attribute(LloptOpState state, MlirStringRef name) {
  return wrap(unwrapState(state).attributes.get(unwrap(name)));
}
void llopt_state_remove_attribute(LloptOpState state, MlirStringRef name) {
  unwrapState(state).attributes.erase(unwrap(name));
}
void llopt_state_add_region(LloptOpState state, MlirRegion region) {
  unwrapState(state).addRegion(std::unique_ptr<Region>(unwrap(region)));
}
void llopt_state_add_successor(LloptOpState state, MlirBlock successor) {
  unwrapState(state).addSuccessors(unwrap(successor));
}
intptr_t llopt_state_operand_count(LloptOpState state) { return unwrapState(state).operands.size(); }
MlirValue llopt_state_operand(LloptOpState state, intptr_t index) { return wrap(unwrapState(state).operands[index]); }
intptr_t llopt_state_type_count(LloptOpState state) { return unwrapState(state).types.size(); }

bool llopt_state_infer_types(LloptOpParser handle, LloptOpState handleState) {
  OpAsmParser &parser = unwrapParser(handle);
  OperationState &state = unwrapState(handleState);
  auto *inference = state.name.getInterface<InferTypeOpInterface>();
  if (!inference) {
    parser.emitError(parser.getNameLoc()) << "'" << state.name << "' op has no type inference";
    return false;
  }
  SmallVector<Type> types;
  if (failed(inference->inferReturnTypes(parser.getContext(), state.location, state.operands,
                                         state.attributes.getDictionary(parser.getContext()),
                                         state.getRawProperties(), state.regions, types)))
    return false;
  state.addTypes(types);
  return true;
}

bool llopt_state_ensure_terminator(LloptOpParser handle, LloptOpState handleState, intptr_t region,
                                   MlirStringRef terminator) {
  OperationState &state = unwrapState(handleState);
  if (region < 0 || static_cast<size_t>(region) >= state.regions.size())
    return false;
  mlir::impl::ensureRegionTerminator(*state.regions[region], unwrapParser(handle).getBuilder(), state.location,
                                     [&](OpBuilder &, Location loc) {
                                       return Operation::create(OperationState(loc, unwrap(terminator)));
                                     });
  return true;
}
