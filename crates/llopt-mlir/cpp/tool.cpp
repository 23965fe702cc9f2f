//===- tool.cpp - passes, pipelines, and MLIR's tools -----------------------===//

#include "source.h"
#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/Conversion/ControlFlowToSCF/ControlFlowToSCF.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/Dialect/LLVMIR/Transforms/InlinerInterfaceImpl.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Support/ToolUtilities.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/ToolOutputFile.h"
#include <shared_mutex>

using namespace mlir;
using namespace llopt;

//===---------------------------------------------------------------- passes ---===//

namespace {
/// A pass as Rust describes it; lives for ever.
struct PassRecord {
  struct Member {
    std::string name, description, defaultValue;
    explicit Member(const LloptPassMember &member)
        : name(unwrap(member.name)), description(unwrap(member.description)),
          defaultValue(unwrap(member.defaultValue)) {}
  };

  explicit PassRecord(const LloptPass &pass)
      : spec(pass.spec), argument(unwrap(pass.argument)), description(unwrap(pass.description)),
        operation(unwrap(pass.operation)) {
    for (intptr_t i = 0; i < pass.dependentDialectCount; ++i)
      dependentDialects.push_back(unwrap(pass.dependentDialects[i]).str());
    for (intptr_t i = 0; i < pass.optionCount; ++i)
      options.emplace_back(pass.options[i]);
    for (intptr_t i = 0; i < pass.statisticCount; ++i)
      statistics.emplace_back(pass.statistics[i]);
  }

  const void *spec;
  std::string argument, description, operation;
  std::vector<std::string> dependentDialects;
  std::vector<Member> options, statistics;
};

/// A pass whose work is a Rust function. Options are kept as text and checked by Rust.
class RustPass : public Pass {
public:
  explicit RustPass(const PassRecord &record)
      : Pass(typeIDOf(record.spec),
             record.operation.empty() ? std::nullopt : std::optional<StringRef>(record.operation)),
        record(record) {
    for (const PassRecord::Member &option : record.options)
      options.push_back(std::make_unique<Option<std::string>>(*this, option.name,
                                                              llvm::cl::desc(option.description),
                                                              llvm::cl::ValueOptional, // a bare flag is true
                                                              llvm::cl::init(option.defaultValue)));
    for (const PassRecord::Member &statistic : record.statistics)
      statistics.push_back(
          std::make_unique<Statistic>(this, statistic.name.c_str(), statistic.description.c_str()));
  }

  StringRef getName() const override { return record.argument; }
  StringRef getArgument() const override { return record.argument; }
  StringRef getDescription() const override { return record.description; }
  bool canScheduleOn(RegisteredOperationName name) const override {
    return record.operation.empty() || name.getStringRef() == record.operation;
  }
  std::unique_ptr<Pass> clonePass() const override { return std::make_unique<RustPass>(record); }

  LogicalResult initialize(MLIRContext *context) override {
    for (const std::string &name : record.dependentDialects)
      if (!context->getOrLoadDialect(name))
        return emitError(UnknownLoc::get(context))
               << "pass '" << record.argument << "' needs dialect '" << name << "', which is not registered";
    return success();
  }

  LogicalResult initializeOptions(StringRef text,
                                  function_ref<LogicalResult(const Twine &)> errorHandler) override {
    if (failed(Pass::initializeOptions(text, errorHandler)))
      return failure();
    for (auto [index, option] : llvm::enumerate(options)) {
      std::string error;
      if (!hooks->pass_check_option(record.spec, index, wrap(StringRef(option->getValue())), LloptSink{&error}))
        return errorHandler(error);
    }
    return success();
  }

  void runOnOperation() override {
    if (!hooks->pass_run(record.spec, wrap(getOperation()), LloptSink{this}))
      signalPassFailure();
  }

  void preserveAll() { markAllAnalysesPreserved(); }
  StringRef getOption(intptr_t index) const { return options[index]->getValue(); }
  void addStatistic(intptr_t index, uint64_t amount) {
    if (index >= 0 && static_cast<size_t>(index) < statistics.size())
      *statistics[index] += amount;
  }

private:
  const PassRecord &record;
  std::vector<std::unique_ptr<Option<std::string>>> options;
  std::vector<std::unique_ptr<Statistic>> statistics;
};
} // namespace

/// MLIR's registry of passes is a plain map: who adds to it must be alone, and a pipeline that is
/// being parsed reads it.
static std::shared_mutex &registryLock() {
  static std::shared_mutex &lock = *new std::shared_mutex();
  return lock;
}

void llopt_pass_register(const LloptPass *pass) {
  static auto &records = *new llvm::DenseMap<const void *, std::unique_ptr<PassRecord>>();
  std::unique_lock lock(registryLock());
  std::unique_ptr<PassRecord> &record = records[pass->spec];
  if (record)
    return;
  record = std::make_unique<PassRecord>(*pass);
  registerPass([record = record.get()]() -> std::unique_ptr<Pass> { return std::make_unique<RustPass>(*record); });
}

void llopt_pass_preserve_all(LloptSink pass) { sink<RustPass>(pass).preserveAll(); }
void llopt_pass_add_statistic(LloptSink pass, intptr_t index, uint64_t amount) {
  sink<RustPass>(pass).addStatistic(index, amount);
}
MlirStringRef llopt_pass_option(LloptSink pass, intptr_t index) { return wrap(sink<RustPass>(pass).getOption(index)); }
void llopt_string_append(LloptSink string, MlirStringRef text) { sink<std::string>(string).append(unwrap(text)); }

void llopt_register_upstream_passes(void) {
  static std::once_flag once;
  std::call_once(once, [] {
    std::unique_lock lock(registryLock());
    registerCanonicalizerPass();
    registerCSEPass();
    registerCompositeFixedPointPass();
    registerControlFlowSinkPass();
    registerInlinerPass();
    registerLocationSnapshotPass();
    registerLoopInvariantCodeMotionPass();
    registerPrintIRPass();
    registerPrintOpStatsPass();
    registerRemoveDeadValuesPass();
    registerSCCPPass();
    registerStripDebugInfoPass();
    registerSymbolDCEPass();
    registerSymbolPrivatizePass();
    registerTopologicalSortPass();
    registerViewOpGraphPass();
    registerPass([] { return createSCFToControlFlowPass(); });
    registerPass([] { return createLiftControlFlowToSCFPass(); });
    registerPass([] { return arith::createArithExpandOpsPass(); });
    registerPass([] { return arith::createIntRangeOptimizationsPass(); });
  });
}

bool llopt_run_pipeline(MlirOperation handle, MlirStringRef text, bool verify, LloptCollector error) {
  Operation *op = unwrap(handle);
  StringRef pipeline = unwrap(text).trim();
  // `name(…)` around the whole text names the operation itself.
  std::string anchor = (op->getName().getStringRef() + "(").str();
  if (pipeline.starts_with(anchor) && pipeline.ends_with(")"))
    pipeline = pipeline.drop_front(anchor.size()).drop_back();
  PassManager manager(op->getName(), PassManager::Nesting::Implicit);
  manager.enableVerifier(verify);
  std::string message;
  llvm::raw_string_ostream stream(message);
  std::shared_lock lock(registryLock());
  LogicalResult parsed = parsePassPipeline(pipeline, manager, stream);
  lock.unlock();
  if (failed(parsed)) {
    hooks->collect_text(error, wrap(StringRef(message.empty() ? "syntax error" : message)));
    return false;
  }
  return succeeded(manager.run(op));
}

//===------------------------------------------------------- dialects, tools ---===//

void llopt_register_upstream_dialects(MlirDialectRegistry handle) {
  DialectRegistry &registry = *unwrap(handle);
  registry.insert<arith::ArithDialect, cf::ControlFlowDialect, gpu::GPUDialect, LLVM::LLVMDialect, math::MathDialect,
                  NVVM::NVVMDialect, ROCDL::ROCDLDialect, scf::SCFDialect, ub::UBDialect>();
  LLVM::registerInlinerInterface(registry);
}

/// Keeps LLVM's own options, of which back ends bring hundreds, out of the help text; they are still
/// understood, and listed by --help-hidden. Called before MLIR registers its options.
static void hideOptionsOfLLVM() {
  for (auto &entry : llvm::cl::getRegisteredOptions()) {
    llvm::cl::Option *option = entry.second;
    if (llvm::is_contained(option->Categories, &llvm::cl::getGeneralCategory()))
      option->setHiddenFlag(llvm::cl::Hidden);
  }
}

int llopt_opt_main(int count, const char *const *arguments, MlirDialectRegistry registryHandle,
                   MlirStringRef toolName) {
  auto **argv = const_cast<char **>(arguments);
  DialectRegistry &registry = *unwrap(registryHandle);
  hideOptionsOfLLVM();
  auto [input, output] = registerAndParseCLIOptions(count, argv, unwrap(toolName), registry);
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses())
    return asMainReturnCode(MlirOptMain(count, argv, input, output, registry));

  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> source = openInputFile(input, &error);
  if (!source) {
    llvm::errs() << error << "\n";
    return EXIT_FAILURE;
  }
  std::string name = source->getBufferIdentifier().str();
  bool guard = false;
  if (isBytecode(*source)) {
    BytecodeText bytecode = readBytecode(*source, registry);
    for (auto &[severity, text] : bytecode.said)
      llvm::errs() << name << (severity == DiagnosticSeverity::Error ? ": error: " : ": note: ") << text << "\n";
    switch (bytecode.state) {
    case BytecodeText::Malformed:
      if (!bytecode.saidError())
        llvm::errs() << name << ": error: malformed bytecode\n";
      return EXIT_FAILURE;
    case BytecodeText::Read:
      source = llvm::MemoryBuffer::getMemBufferCopy(bytecode.text, name + kAsText);
      break;
    case BytecodeText::Unknown:
      guard = true;
      break;
    }
  }
  if (!checkSource(*source, [&](unsigned line, unsigned column, const Twine &message) {
        llvm::errs() << source->getBufferIdentifier() << ":" << line << ":" << column << ": error: " << message << "\n";
      }))
    return EXIT_FAILURE;
  std::unique_ptr<llvm::ToolOutputFile> file = openOutputFile(output, &error);
  if (!file) {
    llvm::errs() << error << "\n";
    return EXIT_FAILURE;
  }
  LogicalResult result = failure();
  auto run = [&] { result = MlirOptMain(file->os(), std::move(source), registry, config); };
  if (!guard) {
    run();
  } else if (!runGuarded(run)) {
    llvm::errs() << name << ": error: malformed bytecode\n";
    return EXIT_FAILURE;
  }
  // Without this the file is removed.
  if (succeeded(result))
    file->keep();
  return asMainReturnCode(result);
}

int llopt_lsp_main(int count, const char *const *arguments, MlirDialectRegistry registry) {
  hideOptionsOfLLVM();
  return asMainReturnCode(MlirLspServerMain(count, const_cast<char **>(arguments), *unwrap(registry)));
}
