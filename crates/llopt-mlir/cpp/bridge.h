//===- bridge.h - the ABI between the Rust crate and MLIR's C++ ------------===//
//
// The only statement of the ABI: the C++ files implement it, bindgen derives the
// Rust declarations from it. Plain C, no domain content.
//
// Identity. A dialect, operation, attribute kind, type kind, pattern, pass and
// resource is described by a Rust `static`; its address (`spec`) is its identity
// in every context of the process. For kinds and operations the same address is
// also the MLIR TypeID, so that lookup needs no table.
//
// Ownership. Unless a comment says otherwise the callee copies what it keeps;
// strings and arrays need to live for the call only. `spec` pointers live for
// ever.
//
// Hooks. C++ calls Rust through one `LloptHooks` table. A hook never unwinds.
//
//===----------------------------------------------------------------------===//
#ifndef LLOPT_BRIDGE_H
#define LLOPT_BRIDGE_H

#include "mlir-c/IR.h"
#include "mlir-c/Pass.h"
#include "mlir-c/Rewrite.h"
#include "mlir-c/Support.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Handles of C++ objects that live only for the duration of a hook.
typedef struct LloptParser { void *ptr; } LloptParser;       // mlir::AsmParser
typedef struct LloptOpParser { void *ptr; } LloptOpParser;   // mlir::OpAsmParser
typedef struct LloptOpState { void *ptr; } LloptOpState;     // mlir::OperationState
typedef struct LloptPrinter { void *ptr; } LloptPrinter;     // mlir::AsmPrinter
typedef struct LloptOpPrinter { void *ptr; } LloptOpPrinter; // mlir::OpAsmPrinter
typedef struct LloptSink { void *ptr; } LloptSink;           // a C++ list that Rust fills
typedef struct LloptCollector { void *ptr; } LloptCollector; // a Rust `Vec` that C++ fills
typedef struct LloptDialect { void *ptr; } LloptDialect;     // llopt::RustDialect

//===------------------------------------------------------------- hooks ---===//

// What an `infer` hook sees of an operation that does not exist yet.
typedef struct LloptInferInput {
  MlirContext context;
  MlirLocation location;
  const MlirValue *operands;
  intptr_t operandCount;
  // Inherent attributes in the order of the operation's attribute names, null
  // where absent. `attributeCount` is the number of names.
  const MlirAttribute *attributes;
  intptr_t attributeCount;
  const MlirRegion *regions;
  intptr_t regionCount;
} LloptInferInput;

// Where a region branch comes from or goes to: a region number, or the operation itself.
enum { LLOPT_PARENT = -1 };

typedef struct LloptHooks {
  // Append to the `Vec` behind a collector.
  void (*collect_type)(LloptCollector types, MlirType type);
  void (*collect_integer)(LloptCollector integers, int64_t value);
  void (*collect_text)(LloptCollector bytes, MlirStringRef text);
  void (*collect_fold)(LloptCollector results, MlirAttribute attribute, MlirValue value);

  bool (*op_parse)(const void *spec, LloptOpParser parser, LloptOpState state);
  void (*op_print)(const void *spec, MlirOperation op, LloptOpPrinter printer);
  bool (*op_verify)(const void *spec, MlirOperation op);
  bool (*op_verify_regions)(const void *spec, MlirOperation op);
  // The sink collects fold results (llopt_fold_*).
  bool (*op_fold)(const void *spec, MlirOperation op, const MlirAttribute *operands,
                  intptr_t operandCount, LloptSink results);
  void (*op_effects)(const void *spec, MlirOperation op, LloptSink effects);
  // Returns an LLOPT_SPECULATION value.
  int (*op_speculation)(const void *spec, MlirOperation op);
  // The sink collects types (llopt_types_push).
  bool (*op_infer)(const void *spec, const LloptInferInput *input, LloptSink types);
  bool (*op_compatible)(const void *spec, const MlirType *lhs, intptr_t lhsCount,
                        const MlirType *rhs, intptr_t rhsCount);
  void (*op_result_names)(const void *spec, MlirOperation op, LloptSink names);
  void (*op_argument_names)(const void *spec, MlirOperation op, intptr_t region, LloptSink names);
  // The sink collects successors (llopt_successor_push).
  void (*op_region_successors)(const void *spec, MlirOperation op, intptr_t from, LloptSink successors);
  // The operands [begin, begin + count) that enter region `region` (or the parent).
  void (*op_entry_operands)(const void *spec, MlirOperation op, intptr_t region, intptr_t *begin,
                            intptr_t *count);
  // The sink takes integer ranges (llopt_range_set).
  void (*op_integer_ranges)(const void *spec, MlirOperation op, LloptSink ranges);

  MlirAttribute (*attribute_parse)(const void *spec, LloptParser parser, MlirType type);
  void (*attribute_print)(const void *spec, MlirAttribute attribute, LloptPrinter printer);
  MlirType (*type_parse)(const void *spec, LloptParser parser);
  void (*type_print)(const void *spec, MlirType type, LloptPrinter printer);
  // Checks parameters before an attribute or type is made; the hook reports at `location`.
  bool (*attribute_verify)(const void *spec, MlirLocation location, const MlirAttribute *parameters,
                           intptr_t parameterCount);
  bool (*type_verify)(const void *spec, MlirLocation location, const MlirAttribute *parameters,
                      intptr_t parameterCount);
  // Checks an attribute as the encoding of a tensor type. `emit` takes one message
  // (llopt_emit_message).
  bool (*attribute_verify_encoding)(const void *spec, MlirAttribute attribute, const int64_t *shape,
                                    intptr_t rank, MlirType elementType, LloptSink emit);

  // Fills the dialect with llopt_dialect_add_*.
  void (*dialect_initialize)(const void *spec, LloptDialect dialect);
  // Returns a detached operation, or null.
  MlirOperation (*dialect_materialize_constant)(const void *spec, MlirAttribute value, MlirType type,
                                                MlirLocation location);
  bool (*dialect_verify_operation_attribute)(const void *spec, MlirOperation op, MlirStringRef name,
                                             MlirAttribute value);
  bool (*dialect_verify_argument_attribute)(const void *spec, MlirOperation op, intptr_t region,
                                            intptr_t argument, MlirStringRef name, MlirAttribute value);
  bool (*dialect_legal_to_inline_call)(const void *spec, MlirOperation call, MlirOperation callable,
                                       bool wouldBeCloned);
  bool (*dialect_legal_to_inline)(const void *spec, MlirOperation op, bool wouldBeCloned);
  // Returns a detached branch operation, or null.
  MlirOperation (*dialect_inlined_branch)(const void *spec, MlirOperation terminator, MlirBlock destination);

  bool (*pattern_rewrite)(const void *spec, MlirOperation op, MlirRewriterBase rewriter);

  // Whether the text is a value of the option; on failure `error` holds the reason
  // (llopt_string_append).
  bool (*pass_check_option)(const void *spec, intptr_t option, MlirStringRef value, LloptSink error);
  bool (*pass_run)(const void *spec, MlirOperation op, LloptSink pass);
} LloptHooks;

// Installs the table; called once before anything else. The table lives for ever.
void llopt_set_hooks(const LloptHooks *hooks);

//===------------------------------------------------- defining dialects ---===//

// Traits without parameters. The C++ table in operation.cpp follows this order.
enum LloptTrait {
  LLOPT_TRAIT_IS_TERMINATOR,
  LLOPT_TRAIT_ISOLATED_FROM_ABOVE,
  LLOPT_TRAIT_COMMUTATIVE,
  LLOPT_TRAIT_IDEMPOTENT,
  LLOPT_TRAIT_INVOLUTION,
  LLOPT_TRAIT_RETURN_LIKE,
  LLOPT_TRAIT_CONSTANT_LIKE,
  LLOPT_TRAIT_RECURSIVE_MEMORY_EFFECTS,
  LLOPT_TRAIT_SYMBOL_TABLE,
  LLOPT_TRAIT_AFFINE_SCOPE,
  LLOPT_TRAIT_AUTOMATIC_ALLOCATION_SCOPE,
  LLOPT_TRAIT_SINGLE_BLOCK,
  LLOPT_TRAIT_NO_TERMINATOR,
  LLOPT_TRAIT_NO_REGION_ARGUMENTS,
  LLOPT_TRAIT_ELEMENTWISE,
  LLOPT_TRAIT_SCALARIZABLE,
  LLOPT_TRAIT_VECTORIZABLE,
  LLOPT_TRAIT_TENSORIZABLE,
  LLOPT_TRAIT_SAME_TYPE_OPERANDS,
  LLOPT_TRAIT_SAME_OPERANDS_AND_RESULT_TYPE,
  LLOPT_TRAIT_SAME_OPERANDS_SHAPE,
  LLOPT_TRAIT_SAME_OPERANDS_AND_RESULT_SHAPE,
  LLOPT_TRAIT_SAME_OPERANDS_ELEMENT_TYPE,
  LLOPT_TRAIT_SAME_OPERANDS_AND_RESULT_ELEMENT_TYPE,
  LLOPT_TRAIT_SAME_OPERANDS_AND_RESULT_RANK,
  LLOPT_TRAIT_ATTR_SIZED_OPERAND_SEGMENTS,
  LLOPT_TRAIT_ATTR_SIZED_RESULT_SEGMENTS,
  LLOPT_TRAIT_COUNT
};

// Which hooks of an operation exist, and which interfaces it answers.
enum LloptOpFlag {
  LLOPT_OP_PARSE = 1 << 0,
  LLOPT_OP_PRINT = 1 << 1,
  LLOPT_OP_VERIFY = 1 << 2,
  LLOPT_OP_VERIFY_REGIONS = 1 << 3,
  LLOPT_OP_FOLD = 1 << 4,
  LLOPT_OP_EFFECTS = 1 << 5,
  LLOPT_OP_SPECULATION = 1 << 6,
  LLOPT_OP_INFER = 1 << 7,
  LLOPT_OP_COMPATIBLE = 1 << 8,
  LLOPT_OP_RESULT_NAMES = 1 << 9,
  LLOPT_OP_ARGUMENT_NAMES = 1 << 10,
  LLOPT_OP_REGION_BRANCH = 1 << 12,
  LLOPT_OP_REGION_TERMINATOR = 1 << 13,
  LLOPT_OP_SYMBOL = 1 << 14,
  LLOPT_OP_FUNCTION = 1 << 15,
  LLOPT_OP_CALL = 1 << 16,
  LLOPT_OP_INTEGER_RANGES = 1 << 17,
};

enum { LLOPT_SPECULATION_NEVER, LLOPT_SPECULATION_ALWAYS, LLOPT_SPECULATION_RECURSIVE };

// A count of operands, results, regions or successors; `max` < 0 is unbounded.
typedef struct LloptArity { int32_t min, max; } LloptArity;

typedef struct LloptPattern {
  const void *spec;
  MlirStringRef name;
  MlirStringRef root; // operation name, or empty for any operation
  uint16_t benefit;
} LloptPattern;

typedef struct LloptOperation {
  const void *spec;
  MlirStringRef name; // with the namespace
  const MlirStringRef *attributes; // inherent attribute names
  intptr_t attributeCount;
  uint64_t traits; // bit set over LloptTrait
  uint32_t flags;  // bit set over LloptOpFlag
  LloptArity operands, results, regions, successors;
  const MlirStringRef *parents; // HasParent, empty for any
  intptr_t parentCount;
  MlirStringRef callee; // the attribute that names the callee (LLOPT_OP_CALL)
  const LloptPattern *canonicalization;
  intptr_t canonicalizationCount;
} LloptOperation;

typedef struct LloptKind {
  const void *spec;
  MlirStringRef mnemonic;
  MlirStringRef alias; // empty for none
  intptr_t parameterCount; // checked when reading bytecode
  bool verify;         // has a parameter verifier
  bool verifyEncoding; // attributes only
} LloptKind;

enum LloptDialectFlag {
  LLOPT_DIALECT_MATERIALIZE_CONSTANT = 1 << 0,
  LLOPT_DIALECT_VERIFY_OPERATION_ATTRIBUTE = 1 << 1,
  LLOPT_DIALECT_VERIFY_ARGUMENT_ATTRIBUTE = 1 << 2,
  LLOPT_DIALECT_INLINER = 1 << 3,
};

// Registers a dialect; `dialect_initialize` runs whenever a context loads it.
void llopt_dialect_register(MlirDialectRegistry registry, const void *spec, MlirStringRef name, uint32_t flags);
// Takes a slot for the type inference of an operation; false when the pool is exhausted.
bool llopt_reserve_inference(const void *spec);
// The size of that pool.
intptr_t llopt_inference_capacity(void);

// Inside `dialect_initialize`:
void llopt_dialect_add_operation(LloptDialect dialect, const LloptOperation *operation);
void llopt_dialect_add_attribute(LloptDialect dialect, const LloptKind *kind);
void llopt_dialect_add_type(LloptDialect dialect, const LloptKind *kind);
void llopt_dialect_add_pattern(LloptDialect dialect, const LloptPattern *pattern);
// Loads a dialect this one depends on; false when the registry does not know it.
bool llopt_dialect_depend(LloptDialect dialect, MlirStringRef name);

// Sinks of the hooks.
void llopt_fold_attribute(LloptSink results, MlirAttribute attribute);
void llopt_fold_value(LloptSink results, MlirValue value);
void llopt_types_push(LloptSink types, MlirType type);
enum { LLOPT_EFFECT_READ, LLOPT_EFFECT_WRITE, LLOPT_EFFECT_ALLOCATE, LLOPT_EFFECT_FREE };
enum { LLOPT_EFFECT_ON_NOTHING, LLOPT_EFFECT_ON_OPERAND, LLOPT_EFFECT_ON_RESULT };
// `resource` is the address of a Rust `static` or null for MLIR's default resource.
void llopt_effect_push(LloptSink effects, MlirOperation op, int effect, int target, intptr_t index,
                       const void *resource, MlirStringRef resourceName);
void llopt_name_value(LloptSink names, MlirValue value, MlirStringRef name);
void llopt_successor_push(LloptSink successors, MlirOperation op, intptr_t region);
void llopt_range_set(LloptSink ranges, MlirValue value, int64_t min, int64_t max);
// The range known for an operand, as signed 64-bit bounds; false when unknown or wider.
bool llopt_range_get(LloptSink ranges, intptr_t operand, int64_t *min, int64_t *max);
void llopt_emit_message(LloptSink emit, MlirStringRef message);
void llopt_string_append(LloptSink string, MlirStringRef text);

//===------------------------------------- attributes and types of ours ---===//

// The spec of an attribute or type of ours, else null.
const void *llopt_attribute_spec(MlirAttribute attribute);
const void *llopt_type_spec(MlirType type);
// The parameters, null where absent.
void llopt_attribute_parameters(MlirAttribute attribute, const MlirAttribute **parameters, intptr_t *count);
void llopt_type_parameters(MlirType type, const MlirAttribute **parameters, intptr_t *count);
// Whether the parameters of an attribute or type of ours have been verified already.
bool llopt_attribute_is_verified(MlirAttribute attribute);
void llopt_attribute_set_verified(MlirAttribute attribute);
bool llopt_type_is_verified(MlirType type);
void llopt_type_set_verified(MlirType type);
// A number that the kind's code keeps with an attribute of ours; zero at first and for others.
uint64_t llopt_attribute_memo(MlirAttribute attribute);
void llopt_attribute_set_memo(MlirAttribute attribute, uint64_t memo);
// Null when the dialect is not loaded in the context.
MlirAttribute llopt_attribute_get(MlirContext context, const void *spec, const MlirAttribute *parameters, intptr_t count);
MlirType llopt_type_get(MlirContext context, const void *spec, const MlirAttribute *parameters, intptr_t count);

//===------------------------------------------------------- asm parser ---===//

enum LloptToken {
  LLOPT_TOKEN_ARROW, LLOPT_TOKEN_L_BRACE, LLOPT_TOKEN_R_BRACE, LLOPT_TOKEN_COLON, LLOPT_TOKEN_COMMA,
  LLOPT_TOKEN_EQUAL, LLOPT_TOKEN_LESS, LLOPT_TOKEN_GREATER, LLOPT_TOKEN_QUESTION, LLOPT_TOKEN_PLUS,
  LLOPT_TOKEN_SLASH, LLOPT_TOKEN_MINUS, LLOPT_TOKEN_STAR, LLOPT_TOKEN_VERTICAL_BAR, LLOPT_TOKEN_L_PAREN,
  LLOPT_TOKEN_R_PAREN, LLOPT_TOKEN_L_SQUARE, LLOPT_TOKEN_R_SQUARE, LLOPT_TOKEN_ELLIPSIS,
};

// An SSA name as written; mirrors OpAsmParser::UnresolvedOperand (static_assert in parser.cpp).
typedef struct LloptUnresolvedOperand {
  const char *location;
  MlirStringRef name;
  uint32_t number;
} LloptUnresolvedOperand;

// A region argument as written. Null type, attributes and location where absent.
typedef struct LloptArgument {
  LloptUnresolvedOperand name;
  MlirType type;
  MlirAttribute attributes;
  MlirLocation location;
} LloptArgument;

// The answer of an optional production.
enum LloptOptional { LLOPT_ABSENT, LLOPT_PRESENT, LLOPT_FAILED };

MlirContext llopt_parser_context(LloptParser parser);
const char *llopt_parser_location(LloptParser parser);
const char *llopt_parser_name_location(LloptParser parser);
MlirLocation llopt_parser_encode_location(LloptParser parser, const char *location);
void llopt_parser_error(LloptParser parser, const char *location, MlirStringRef message);
bool llopt_parser_token(LloptParser parser, int token);
bool llopt_parser_optional_token(LloptParser parser, int token);
bool llopt_parser_keyword(LloptParser parser, MlirStringRef keyword);
bool llopt_parser_optional_keyword(LloptParser parser, MlirStringRef keyword);
bool llopt_parser_any_keyword(LloptParser parser, MlirStringRef *keyword);
bool llopt_parser_optional_any_keyword(LloptParser parser, MlirStringRef *keyword);
bool llopt_parser_keyword_or_string(LloptParser parser, LloptCollector string);
int llopt_parser_optional_string(LloptParser parser, LloptCollector string);
// Arbitrary precision is refused: a value outside of i64 (u64 for `wide`) is a located error.
int llopt_parser_optional_integer(LloptParser parser, int64_t *value);
int llopt_parser_optional_decimal_integer(LloptParser parser, int64_t *value);
bool llopt_parser_float(LloptParser parser, double *value);
bool llopt_parser_type(LloptParser parser, MlirType *type);
int llopt_parser_optional_type(LloptParser parser, MlirType *type);
bool llopt_parser_type_list(LloptParser parser, LloptCollector types);
bool llopt_parser_arrow_type_list(LloptParser parser, LloptCollector types);
bool llopt_parser_optional_arrow_type_list(LloptParser parser, LloptCollector types);
bool llopt_parser_attribute(LloptParser parser, MlirType type, MlirAttribute *attribute);
int llopt_parser_optional_attribute(LloptParser parser, MlirType type, MlirAttribute *attribute);
// `#dialect.mnemonic…` or, for one kind, the bare body after the mnemonic.
bool llopt_parser_attribute_of(LloptParser parser, const void *spec, MlirType type, MlirAttribute *attribute);
bool llopt_parser_type_of(LloptParser parser, const void *spec, MlirType *type);
// A dictionary `{…}`; empty dictionary when absent.
bool llopt_parser_attribute_dictionary(LloptParser parser, bool withKeyword, MlirAttribute *dictionary);
bool llopt_parser_symbol_name(LloptParser parser, MlirAttribute *name);
int llopt_parser_optional_symbol_name(LloptParser parser, MlirAttribute *name);
// Dimensions, `?` as INT64_MIN, e.g. `4x?x` with a trailing x.
bool llopt_parser_dimension_list(LloptParser parser, bool allowDynamic, bool withTrailingX, LloptCollector dimensions);
bool llopt_parser_x_in_dimension_list(LloptParser parser);

LloptParser llopt_op_parser_base(LloptOpParser parser);
bool llopt_op_parser_operand(LloptOpParser parser, bool allowResultNumber, LloptUnresolvedOperand *operand);
int llopt_op_parser_optional_operand(LloptOpParser parser, bool allowResultNumber, LloptUnresolvedOperand *operand);
// Appends the value to the state's operands.
bool llopt_op_parser_resolve(LloptOpParser parser, LloptOpState state, const LloptUnresolvedOperand *operand, MlirType type);
bool llopt_op_parser_argument(LloptOpParser parser, bool allowType, bool allowAttributes, LloptArgument *argument);
int llopt_op_parser_optional_argument(LloptOpParser parser, bool allowType, bool allowAttributes, LloptArgument *argument);
bool llopt_op_parser_region(LloptOpParser parser, MlirRegion region, const LloptArgument *arguments, intptr_t count,
                            bool nameShadowing);
int llopt_op_parser_optional_region(LloptOpParser parser, MlirRegion region, const LloptArgument *arguments,
                                    intptr_t count, bool nameShadowing);
bool llopt_op_parser_successor(LloptOpParser parser, MlirBlock *successor);
int llopt_op_parser_optional_successor(LloptOpParser parser, MlirBlock *successor);
bool llopt_op_parser_optional_location(LloptOpParser parser, MlirLocation *location);
bool llopt_op_parser_generic(LloptOpParser parser, LloptOpState state);
// `{…}` or `attributes {…}` straight into the state.
bool llopt_op_parser_attributes(LloptOpParser parser, LloptOpState state, bool withKeyword);
// Function syntax of function_interface_impl, without a visibility keyword of its own.
bool llopt_op_parser_function(LloptOpParser parser, LloptOpState state, bool allowVariadic);
intptr_t llopt_op_parser_result_count(LloptOpParser parser);
MlirStringRef llopt_op_parser_result_name(LloptOpParser parser, intptr_t index, uint32_t *number);

MlirLocation llopt_state_location(LloptOpState state);
void llopt_state_set_location(LloptOpState state, MlirLocation location);
void llopt_state_add_type(LloptOpState state, MlirType type);
void llopt_state_add_attribute(LloptOpState state, MlirStringRef name, MlirAttribute attribute);
void llopt_state_add_dictionary(LloptOpState state, MlirAttribute dictionary);
MlirAttribute llopt_state_attribute(LloptOpState state, MlirStringRef name);
void llopt_state_remove_attribute(LloptOpState state, MlirStringRef name);
// Takes ownership of the region.
void llopt_state_add_region(LloptOpState state, MlirRegion region);
void llopt_state_add_successor(LloptOpState state, MlirBlock successor);
intptr_t llopt_state_operand_count(LloptOpState state);
MlirValue llopt_state_operand(LloptOpState state, intptr_t index);
intptr_t llopt_state_type_count(LloptOpState state);
// Runs the operation's type inference on what the state holds and adds the result types.
bool llopt_state_infer_types(LloptOpParser parser, LloptOpState state);
// Adds an implicit terminator without operands where a region of the state lacks one; false when
// there is no such region.
bool llopt_state_ensure_terminator(LloptOpParser parser, LloptOpState state, intptr_t region,
                                   MlirStringRef terminator);

//===------------------------------------------------------ asm printer ---===//

void llopt_printer_text(LloptPrinter printer, MlirStringRef text);
void llopt_printer_newline(LloptPrinter printer);
void llopt_printer_indent(LloptPrinter printer, bool increase);
void llopt_printer_float(LloptPrinter printer, double value);
void llopt_printer_type(LloptPrinter printer, MlirType type);
void llopt_printer_attribute(LloptPrinter printer, MlirAttribute attribute);
void llopt_printer_attribute_without_type(LloptPrinter printer, MlirAttribute attribute);
// Without `#dialect.mnemonic` where the kind is known from the context.
void llopt_printer_stripped_attribute(LloptPrinter printer, MlirAttribute attribute);
void llopt_printer_stripped_type(LloptPrinter printer, MlirType type);
bool llopt_printer_alias(LloptPrinter printer, MlirAttribute attribute);
bool llopt_printer_type_alias(LloptPrinter printer, MlirType type);
void llopt_printer_keyword_or_string(LloptPrinter printer, MlirStringRef keyword);
void llopt_printer_string(LloptPrinter printer, MlirStringRef string);
void llopt_printer_symbol_name(LloptPrinter printer, MlirStringRef name);
void llopt_printer_arrow_type_list(LloptPrinter printer, const MlirType *types, intptr_t count);
void llopt_printer_functional_type(LloptPrinter printer, const MlirType *inputs, intptr_t inputCount,
                                   const MlirType *results, intptr_t resultCount);
void llopt_printer_dimension_list(LloptPrinter printer, const int64_t *dimensions, intptr_t count);

LloptPrinter llopt_op_printer_base(LloptOpPrinter printer);
void llopt_op_printer_operand(LloptOpPrinter printer, MlirValue value);
void llopt_op_printer_successor(LloptOpPrinter printer, MlirBlock block);
void llopt_op_printer_successor_and_operands(LloptOpPrinter printer, MlirBlock block, const MlirValue *operands, intptr_t count);
void llopt_op_printer_attribute_dictionary(LloptOpPrinter printer, MlirOperation op, const MlirStringRef *elided,
                                           intptr_t count, bool withKeyword);
void llopt_op_printer_region(LloptOpPrinter printer, MlirRegion region, bool entryArguments, bool terminators, bool emptyBlock);
void llopt_op_printer_region_argument(LloptOpPrinter printer, MlirValue argument, MlirAttribute attributes, bool omitType);
void llopt_op_printer_shadow_region_arguments(LloptOpPrinter printer, MlirRegion region, const MlirValue *names, intptr_t count);
void llopt_op_printer_operation(LloptOpPrinter printer, MlirOperation op);
void llopt_op_printer_generic(LloptOpPrinter printer, MlirOperation op, bool withName);
void llopt_op_printer_location(LloptOpPrinter printer, MlirLocation location);
void llopt_op_printer_function(LloptOpPrinter printer, MlirOperation op, bool isVariadic);

//===-------------------------------------------------------- IR access ---===//

// The spec of an operation of ours, else null.
const void *llopt_operation_spec(MlirOperation op);
// The address that MLIR knows the operation's kind by, for as long as the process runs: of operations of ours that of the spec.
// Null for an operation that is not registered.
const void *llopt_operation_type_id(MlirOperation op);
// An inherent attribute of an operation of ours by its position in the spec; null when absent.
MlirAttribute llopt_operation_slot(MlirOperation op, intptr_t index);
void llopt_operation_set_slot(MlirOperation op, intptr_t index, MlirAttribute attribute);
MlirStringRef llopt_operation_name(MlirOperation op);
bool llopt_operation_is_registered(MlirOperation op);
bool llopt_operation_has_trait(MlirOperation op, int trait);
// True when removing the operation loses nothing but its results.
bool llopt_operation_is_memory_effect_free(MlirOperation op);
bool llopt_operation_is_trivially_dead(MlirOperation op);
bool llopt_operation_is_speculatable(MlirOperation op);
// The effects of an operation, recursively; -1 for an operation that does not say.
// Each is reported as (effect, target value or null, resource spec or null, resource name).
typedef void (*LloptEffectCallback)(void *userData, int effect, MlirValue value, const void *resource,
                                    MlirStringRef resourceName);
bool llopt_operation_effects(MlirOperation op, LloptEffectCallback callback, void *userData);
// Folds; false when nothing folds. The operation may be changed in place, and then no result is
// collected.
bool llopt_operation_fold(MlirOperation op, const MlirAttribute *operands, intptr_t count, LloptCollector results);
enum { LLOPT_WALK_ADVANCE, LLOPT_WALK_SKIP, LLOPT_WALK_INTERRUPT };
typedef int (*LloptWalkCallback)(void *userData, MlirOperation op);
bool llopt_operation_walk(MlirOperation op, bool postOrder, LloptWalkCallback callback, void *userData);
void llopt_operation_erase_operand(MlirOperation op, intptr_t index);
void llopt_operation_insert_operand(MlirOperation op, intptr_t index, MlirValue value);
void llopt_operation_drop_uses(MlirOperation op);
bool llopt_operation_is_equivalent(MlirOperation lhs, MlirOperation rhs, bool ignoreLocations);

// Symbols.
MlirOperation llopt_symbol_lookup_nearest(MlirOperation from, MlirAttribute symbol);

// Dominance of a whole operation, to be freed with llopt_dominance_free.
void *llopt_dominance_create(MlirOperation op);
void llopt_dominance_free(void *dominance);
bool llopt_dominance_operation(void *dominance, MlirOperation a, MlirOperation b);
bool llopt_dominance_value(void *dominance, MlirValue value, MlirOperation user);
bool llopt_dominance_block(void *dominance, MlirBlock a, MlirBlock b);

// Attributes and types that the C API leaves out.
// The integer as 64 bits, sign or zero extended as the type says; false beyond 64 bits.
bool llopt_integer_attribute_value(MlirAttribute attribute, int64_t *value);
// The bits of an integer or float attribute of at most 64 bits.
bool llopt_attribute_bits(MlirAttribute attribute, uint64_t *bits);
MlirAttribute llopt_float_attribute_from_bits(MlirType type, uint64_t bits);
// Dense elements: splat or element bits, zero extended. Elements of up to 64 bits.
bool llopt_dense_is_splat(MlirAttribute dense, uint64_t *bits);
bool llopt_dense_bits(MlirAttribute dense, uint64_t *bits, intptr_t count);
MlirAttribute llopt_dense_from_bits(MlirType type, const uint64_t *bits, intptr_t count);
// The extents of a ranked tensor type, which live as long as the context; false for other types.
bool llopt_tensor_shape(MlirType type, const int64_t **shape, intptr_t *rank);
// Bit width of an integer, index (64) or float type, 0 for others.
uint32_t llopt_type_bit_width(MlirType type);
// A ranked tensor type that is verified first; null after a diagnostic at `location`.
MlirType llopt_tensor_type_checked(MlirLocation location, const int64_t *shape, intptr_t rank, MlirType element,
                                   MlirAttribute encoding);
// The first file position within a location; false when there is none.
bool llopt_location_file(MlirLocation location, MlirStringRef *file, uint32_t *line, uint32_t *column);

//===------------------------------------------------------ diagnostics ---===//

typedef struct LloptNote { MlirLocation location; MlirStringRef message; } LloptNote;
// Severity is MlirDiagnosticSeverity.
void llopt_emit(int severity, MlirLocation location, MlirStringRef message, const LloptNote *notes, intptr_t count);
// As `Operation::emitOpError`, with the operation's name in front.
void llopt_emit_op_error(MlirOperation op, MlirStringRef message, const LloptNote *notes, intptr_t count);

// Whether diagnostics on operations carry a note that prints the operation (on by default).
void llopt_context_print_operations(MlirContext context, bool print);

//===--------------------------------------------------------- rewriting ---===//

void llopt_patterns_add(MlirRewritePatternSet set, const LloptPattern *pattern);
// Adds the canonicalization patterns of every loaded dialect and registered operation.
void llopt_patterns_add_canonicalization(MlirRewritePatternSet set);
typedef struct LloptGreedyConfig {
  int64_t maxIterations; // < 0 for no limit
  bool topDown;
  bool fold;
  bool simplifyRegions;
} LloptGreedyConfig;
// Applies patterns below an operation; false when the driver did not converge.
bool llopt_apply_greedily(MlirOperation op, MlirFrozenRewritePatternSet patterns, const LloptGreedyConfig *config,
                          bool *changed);

//===---------------------------------------------------- passes, tools ---===//

// An option or a statistic.
typedef struct LloptPassMember {
  MlirStringRef name, description, defaultValue;
} LloptPassMember;
typedef struct LloptPass {
  const void *spec;
  MlirStringRef argument, description;
  MlirStringRef operation; // the operation to run on, empty for any
  const MlirStringRef *dependentDialects;
  intptr_t dependentDialectCount;
  const LloptPassMember *options;
  intptr_t optionCount;
  const LloptPassMember *statistics;
  intptr_t statisticCount;
} LloptPass;
// Registers a pass with MLIR's global registry; a second time is ignored.
void llopt_pass_register(const LloptPass *pass);
// The upstream passes that are of use here.
void llopt_register_upstream_passes(void);
void llopt_pass_preserve_all(LloptSink pass);
void llopt_pass_add_statistic(LloptSink pass, intptr_t index, uint64_t amount);
MlirStringRef llopt_pass_option(LloptSink pass, intptr_t index);
// Runs a textual pipeline on an operation; `error` takes what is wrong with the text.
bool llopt_run_pipeline(MlirOperation op, MlirStringRef pipeline, bool verify, LloptCollector error);

// Adds the upstream dialects this project uses to a registry.
void llopt_register_upstream_dialects(MlirDialectRegistry registry);
// MLIR's opt driver and language server. `arguments[0]` is the program's name.
int llopt_opt_main(int count, const char *const *arguments, MlirDialectRegistry registry, MlirStringRef toolName);
int llopt_lsp_main(int count, const char *const *arguments, MlirDialectRegistry registry);
// Parses text or bytecode; a null operation after diagnostics. `name` is the file's name.
MlirOperation llopt_parse(MlirContext context, MlirStringRef source, MlirStringRef name, bool verify);

#ifdef __cplusplus
}
#endif

#endif // LLOPT_BRIDGE_H
