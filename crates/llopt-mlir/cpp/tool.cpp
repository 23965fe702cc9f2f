//===- tool.cpp - passes, pipelines, parsing, and MLIR's tools --------------===//

#include "model.h"
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
#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Support/ToolUtilities.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"
#include <shared_mutex>
#ifdef __linux__
#include <csignal>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

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

//===------------------------------------------------------ guarding parsers ---===//

/// How deep brackets may nest. MLIR's parser, verifier and printer recurse without a limit of
/// their own; real modules stay below thirty.
static constexpr unsigned kMaxNesting = 256;

/// The offset of the first bracket that is nested too deep in text, or npos. Strings and comments
/// do not count, and the marker of split input starts anew.
static size_t findDeepNesting(StringRef text) {
  unsigned depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
    case '(':
    case '[':
    case '{':
    case '<':
      if (++depth > kMaxNesting)
        return i;
      break;
    case '>':
      if (i > 0 && text[i - 1] == '-')
        break; // an arrow
      [[fallthrough]];
    case ')':
    case ']':
    case '}':
      depth -= depth > 0;
      break;
    case '"':
      for (++i; i < text.size() && text[i] != '"' && text[i] != '\n'; ++i)
        if (text[i] == '\\')
          ++i;
      break;
    case '/':
      if (text.substr(i).starts_with("//")) {
        if (text.substr(i).starts_with(kDefaultSplitMarker))
          depth = 0;
        i = std::min(text.find('\n', i), text.size());
      }
      break;
    default:
      break;
    }
  }
  return StringRef::npos;
}

/// Reports what must not reach a parser; true when nothing is wrong.
static bool checkSource(const llvm::MemoryBuffer &buffer,
                        function_ref<void(unsigned line, unsigned column, const Twine &message)> report) {
  if (isBytecode(buffer))
    return true;
  StringRef text = buffer.getBuffer();
  size_t offset = findDeepNesting(text);
  if (offset == StringRef::npos)
    return true;
  size_t lineStart = text.rfind('\n', offset) + 1; // npos + 1 is the start of the text
  report(text.take_front(offset).count('\n') + 1, offset - lineStart + 1,
         "brackets are nested deeper than " + Twine(kMaxNesting) + " levels");
  return false;
}

/// Whether MLIR's bytecode reader survives a file. It trusts counts: a damaged file can make it
/// abort, loop or write past its buffers. So a child process reads first, with bounds on time and
/// memory. True also where nothing can be found out.
///
/// The child has but one thread. Should another thread of the parent have held a lock that the
/// reader needs, the child sleeps until the alarm; sleeping costs no processor time, which tells
/// this case from a reader that loops.
static bool survivesReading([[maybe_unused]] llvm::MemoryBufferRef buffer,
                            [[maybe_unused]] const DialectRegistry &registry) {
#ifdef __linux__
  constexpr unsigned kProcessorSeconds = 2, kWallSeconds = 20;
  constexpr rlim_t kBytes = rlim_t(8) << 30;
  pid_t child = fork();
  if (child < 0)
    return true;
  if (child == 0) {
    // What the reader says is for the second reading.
    int null = open("/dev/null", O_WRONLY);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    rlimit time{kProcessorSeconds, kProcessorSeconds}, memory{kBytes, kBytes}, core{0, 0};
    setrlimit(RLIMIT_CPU, &time);
    setrlimit(RLIMIT_AS, &memory);
    setrlimit(RLIMIT_CORE, &core);
    for (int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE, SIGALRM})
      ::signal(signal, SIG_DFL);
    alarm(kWallSeconds);
    // The parent may have handlers that never return.
    llvm::remove_fatal_error_handler();
    llvm::remove_bad_alloc_error_handler();
    llvm::install_fatal_error_handler(+[](void *, const char *, bool) { _exit(1); });
    {
      DialectRegistry dialects;
      registry.appendTo(dialects);
      MLIRContext context(dialects, MLIRContext::Threading::DISABLED);
      context.allowUnregisteredDialects();
      Block block;
      (void)readBytecodeFile(buffer, &block, ParserConfig(&context, /*verifyAfterParse=*/false));
    }
    _exit(0);
  }
  int status = 0;
  rusage usage{};
  while (wait4(child, &status, 0, &usage) < 0)
    if (errno != EINTR)
      return true;
  bool slept = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM && usage.ru_utime.tv_sec < 1;
  return slept || (WIFEXITED(status) && WEXITSTATUS(status) == 0);
#else
  return true;
#endif
}

/// Runs code that may crash on malformed bytecode, as the second line of defence; false when it
/// did. What the crashed code had allocated leaks.
static bool runGuarded(function_ref<void()> run) {
  // Enabling twice does nothing; the handlers of Rust's runtime stay behind LLVM's.
  llvm::CrashRecoveryContext::Enable();
  llvm::CrashRecoveryContext recovery;
  return recovery.RunSafely(run);
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
  if (!checkSource(*source, [&](unsigned line, unsigned column, const Twine &message) {
        llvm::errs() << name << ":" << line << ":" << column << ": error: " << message << "\n";
      }))
    return EXIT_FAILURE;
  std::unique_ptr<llvm::ToolOutputFile> file = openOutputFile(output, &error);
  if (!file) {
    llvm::errs() << error << "\n";
    return EXIT_FAILURE;
  }
  bool bytecode = isBytecode(*source);
  if (bytecode && !survivesReading(*source, registry)) {
    llvm::errs() << name << ": error: malformed bytecode\n";
    return EXIT_FAILURE;
  }
  LogicalResult result = failure();
  auto run = [&] { result = MlirOptMain(file->os(), std::move(source), registry, config); };
  if (!bytecode) {
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

MlirOperation llopt_parse(MlirContext contextHandle, MlirStringRef source, MlirStringRef name, bool verify) {
  MLIRContext *context = unwrap(contextHandle);
  // The lexer wants a terminating zero and the bytecode reader alignment: a copy has both.
  std::unique_ptr<llvm::MemoryBuffer> buffer = llvm::MemoryBuffer::getMemBufferCopy(unwrap(source), unwrap(name));
  if (!checkSource(*buffer, [&](unsigned line, unsigned column, const Twine &message) {
        emitError(FileLineColLoc::get(context, unwrap(name), line, column)) << message;
      }))
    return {};
  bool bytecode = isBytecode(*buffer);
  auto reportMalformed = [&] { emitError(FileLineColLoc::get(context, unwrap(name), 0, 0)) << "malformed bytecode"; };
  if (bytecode && !survivesReading(*buffer, context->getDialectRegistry())) {
    reportMalformed();
    return {};
  }
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  OwningOpRef<ModuleOp> module;
  auto parse = [&] { module = parseSourceFile<ModuleOp>(sources, ParserConfig(context, verify)); };
  if (!bytecode) {
    parse();
  } else if (!runGuarded(parse)) {
    reportMalformed();
    return {};
  }
  return wrap(module.release().getOperation());
}
