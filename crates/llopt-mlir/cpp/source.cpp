//===- source.cpp - reading text and bytecode that nobody vouches for -------===//
//
// MLIR's text parser recurses without a limit, unfolds what aliases share, and has a
// few errors, so text is looked over first. Its bytecode reader trusts what it reads: a damaged file can make it abort,
// loop, or write past its buffers, now or in the next thing that uses the heap. So no
// process of ours reads bytecode with it. A child does, within bounds of time and
// memory, and sends back the module as text with all locations, which the parent
// parses as it parses any text.
//
//===----------------------------------------------------------------------===//

#include "source.h"
#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/ToolUtilities.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/SourceMgr.h"
#ifdef __linux__
#include <csignal>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

using namespace mlir;
using namespace llopt;

//===------------------------------------------------------------------ text ---===//

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

namespace {
/// What must not reach a parser, and where.
struct Defect {
  size_t offset;
  std::string message;
};
} // namespace

/// The length of the longest integer in text. MLIR turns digits into numbers in time that grows with the square.
static constexpr size_t kMaxDigits = 1024;

/// The text for which the uses of aliases may stand, in bytes. An alias may name others twice, and MLIR prints, compares
/// and walks what is behind it as often as it is named.
static constexpr uint64_t kMaxUnfolded = uint64_t(64) << 20;

static bool isWord(char c) { return isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '.'; }

namespace {
/// The definition of an alias: what it names, and the text that it stands for.
struct Alias {
  uint64_t unfolded = 0;
  uint64_t own = 0;
  SmallVector<StringRef, 4> uses;
};

/// Goes over the tokens of text once: strings and comments are left out.
class Scanner {
public:
  explicit Scanner(StringRef text) : text(text) {}

  std::optional<Defect> scan() {
    for (size_t i = 0; i < text.size();) {
      char c = text[i];
      if (c == '"') {
        for (++i; i < text.size() && text[i] != '"' && text[i] != '\n'; ++i)
          if (text[i] == '\\')
            ++i;
        ++i;
      } else if (text.substr(i).starts_with("//")) {
        if (text.substr(i).starts_with(kDefaultSplitMarker))
          leaveDefinition(i);
        i = std::min(text.find('\n', i), text.size());
      } else if (c == '\n') {
        if (depth == 0)
          leaveDefinition(i);
        ++i;
      } else if (StringRef("([{<").contains(c)) {
        ++depth;
        ++i;
      } else if (StringRef(")]}").contains(c) || (c == '>' && (i == 0 || text[i - 1] != '-'))) {
        depth -= depth > 0;
        ++i;
      } else if ((c == '#' || c == '!') && i + 1 < text.size() && isWord(text[i + 1])) {
        i = name(i);
      } else if (isWord(c)) {
        size_t end = text.substr(i).find_if_not(isWord);
        StringRef word = text.slice(i, end == StringRef::npos ? text.size() : i + end);
        if (auto defect = check(word, i))
          return defect;
        i += word.size();
      } else {
        ++i;
      }
    }
    leaveDefinition(text.size());
    return unfold();
  }

private:
  /// A word that is no name of an alias.
  std::optional<Defect> check(StringRef word, size_t at) {
    if (isdigit(static_cast<unsigned char>(word[0])) && word.size() > kMaxDigits)
      return Defect{at, "a number has more than " + std::to_string(kMaxDigits) + " digits"};
    // MLIR asks such an array how many bits an index has, which nothing says.
    if (word == "array") {
      StringRef rest = text.drop_front(at + word.size()).ltrim();
      if (rest.consume_front("<") && rest.ltrim().starts_with("index") &&
          !rest.ltrim().drop_front(5).take_while(isWord).size())
        return Defect{at, "elements of an array of numbers cannot have the type 'index'"};
    }
    return std::nullopt;
  }

  /// A name of an alias: its definition at the start of a statement, its use elsewhere.
  size_t name(size_t at) {
    size_t length = text.substr(at + 1).find_if_not(isWord);
    size_t end = length == StringRef::npos ? text.size() : at + 1 + length;
    StringRef name = text.slice(at, end);
    StringRef rest = text.drop_front(end).ltrim(" \t");
    bool starts = depth == 0 && current.empty() && rest.starts_with("=") && !rest.starts_with("==") &&
                  text.slice(text.rfind('\n', at) + 1, at).trim().empty();
    if (starts) {
      current = name;
      begin = at;
      order.push_back(name);
      aliases[name] = Alias();
    } else if (!current.empty()) {
      aliases[current].uses.push_back(name);
    } else {
      uses.emplace_back(name, at);
    }
    return end;
  }

  void leaveDefinition(size_t end) {
    if (current.empty())
      return;
    aliases[current].own = end - begin;
    current = {};
  }

  /// Adds up what names stand for. Definitions mostly come before their uses; those of places come after, so that text
  /// is gone through both ways.
  std::optional<Defect> unfold() {
    auto settle = [&](StringRef name) {
      Alias &alias = aliases[name];
      uint64_t sum = std::min<uint64_t>(alias.own, kMaxUnfolded);
      for (StringRef use : alias.uses)
        sum += stands(use);
      alias.unfolded = std::min(sum, 2 * kMaxUnfolded);
    };
    for (unsigned round = 0; round < 2; ++round) {
      for (StringRef name : order)
        settle(name);
      for (StringRef name : llvm::reverse(order))
        settle(name);
    }
    for (StringRef name : order)
      if (aliases[name].unfolded > kMaxUnfolded)
        return Defect{size_t(name.data() - text.data()), describe(name)};
    uint64_t total = 0;
    for (auto [name, at] : uses) {
      total += stands(name);
      if (total > kMaxUnfolded)
        return Defect{at, describe(name)};
    }
    return std::nullopt;
  }

  uint64_t stands(StringRef name) const {
    auto found = aliases.find(name);
    return found == aliases.end() ? 0 : found->second.unfolded;
  }
  static std::string describe(StringRef name) {
    return ("with '" + name + "', aliases stand for more than " + Twine(kMaxUnfolded >> 20) + " MiB of text").str();
  }

  StringRef text;
  unsigned depth = 0;
  /// The alias being defined, and where that began.
  StringRef current;
  size_t begin = 0;
  llvm::StringMap<Alias> aliases;
  SmallVector<StringRef> order;
  /// Uses outside of definitions.
  SmallVector<std::pair<StringRef, size_t>> uses;
};
} // namespace

/// What must not reach a parser, if anything.
static std::optional<Defect> findDefect(StringRef text) {
  size_t offset = findDeepNesting(text);
  if (offset != StringRef::npos)
    return Defect{offset, "brackets are nested deeper than " + std::to_string(kMaxNesting) + " levels"};
  return Scanner(text).scan();
}

/// Reports what must not reach a parser; true when nothing is wrong.
bool llopt::checkSource(const llvm::MemoryBuffer &buffer,
                        function_ref<void(unsigned line, unsigned column, const Twine &message)> report) {
  if (isBytecode(buffer))
    return true;
  StringRef text = buffer.getBuffer();
  std::optional<Defect> defect = findDefect(text);
  if (!defect)
    return true;
  size_t lineStart = text.rfind('\n', defect->offset) + 1; // npos + 1 is the start of the text
  report(text.take_front(defect->offset).count('\n') + 1, defect->offset - lineStart + 1, defect->message);
  return false;
}

//===-------------------------------------------------------------- bytecode ---===//

#ifdef __linux__
namespace {
/// What the child sends: records of a tag, a length of eight bytes, and as many bytes. Tags are
/// diagnostics (by severity) and, last, the module.
enum Tag : char { kNote = 'n', kWarning = 'w', kError = 'e', kRemark = 'r', kModule = 'm' };

/// The sending end.
class Sender {
public:
  explicit Sender(int pipe) : pipe(pipe) {}

  void send(Tag tag, StringRef text) {
    char head[9] = {tag};
    llvm::support::endian::write64le(head + 1, text.size());
    write({head, sizeof(head)});
    write(text);
  }
  void send(Diagnostic &diagnostic) {
    send(tagOf(diagnostic.getSeverity()), diagnostic.str());
    for (Diagnostic &note : diagnostic.getNotes())
      send(kNote, note.str());
  }

private:
  static Tag tagOf(DiagnosticSeverity severity) {
    switch (severity) {
    case DiagnosticSeverity::Note:
      return kNote;
    case DiagnosticSeverity::Warning:
      return kWarning;
    case DiagnosticSeverity::Remark:
      return kRemark;
    case DiagnosticSeverity::Error:
      break;
    }
    return kError;
  }
  void write(StringRef text) {
    while (!text.empty()) {
      ssize_t written = ::write(pipe, text.data(), text.size());
      if (written < 0 && errno != EINTR)
        _exit(1);
      text = text.drop_front(std::max<ssize_t>(written, 0));
    }
  }
  int pipe;
};
} // namespace

/// The bytes of address space that this process has.
static rlim_t addressSpace() {
  char text[32] = {};
  int file = open("/proc/self/statm", O_RDONLY);
  if (file < 0 || read(file, text, sizeof(text) - 1) <= 0)
    return 0;
  close(file);
  return strtoull(text, nullptr, 10) * sysconf(_SC_PAGESIZE);
}

/// What the child does: reads, prints, sends. Never returns.
[[noreturn]] static void readAndSend(llvm::MemoryBufferRef buffer, const DialectRegistry &registry, int pipe) {
  // Real files take a fraction of this.
  const rlim_t mebibytes = buffer.getBufferSize() >> 20;
  const rlim_t seconds = 1 + mebibytes, bytes = addressSpace() + (rlim_t(1) << 30) + (mebibytes << 30);
  int null = open("/dev/null", O_WRONLY);
  dup2(null, STDOUT_FILENO);
  dup2(null, STDERR_FILENO);
  rlimit time{seconds, seconds}, memory{bytes, bytes}, core{0, 0};
  setrlimit(RLIMIT_CPU, &time);
  setrlimit(RLIMIT_AS, &memory);
  setrlimit(RLIMIT_CORE, &core);
  for (int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE, SIGALRM, SIGPIPE})
    ::signal(signal, SIG_DFL);
  alarm(20 + 10 * mebibytes);
  // The parent may have handlers that never return.
  llvm::remove_fatal_error_handler();
  llvm::remove_bad_alloc_error_handler();
  llvm::install_fatal_error_handler(+[](void *, const char *, bool) { _exit(1); });

  Sender sender(pipe);
  DialectRegistry dialects;
  registry.appendTo(dialects);
  MLIRContext context(dialects, MLIRContext::Threading::DISABLED);
  context.allowUnregisteredDialects();
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) { sender.send(diagnostic); });
  Block block;
  if (failed(readBytecodeFile(buffer, &block, ParserConfig(&context, /*verifyAfterParse=*/false))))
    _exit(0);
  // Whatever the command line says about printing.
  OpPrintingFlags flags;
  flags.printGenericOpForm().enableDebugInfo().useLocalScope(false).skipRegions(false);
  flags.elideLargeElementsAttrs(INT64_MAX).elideLargeResourceString(UINT64_MAX);
  std::string text;
  llvm::raw_string_ostream stream(text);
  for (Operation &op : block) {
    op.print(stream, flags);
    stream << "\n";
  }
  sender.send(kModule, text);
  // Destructors have nothing to add but chances to crash.
  _exit(0);
}

/// All that comes through a pipe, up to a limit.
static std::string receive(int pipe, size_t limit) {
  std::string received;
  char chunk[1 << 16];
  while (received.size() <= limit) {
    ssize_t count = read(pipe, chunk, sizeof(chunk));
    if (count == 0)
      break;
    if (count > 0)
      received.append(chunk, count);
    else if (errno != EINTR)
      break;
  }
  return received;
}

namespace {
/// What one child made of it.
struct Answer {
  enum { NoChild, Slept, Died, Spoke } state = NoChild;
  std::string received;
};
} // namespace

static Answer askChild(llvm::MemoryBufferRef buffer, const DialectRegistry &registry) {
  Answer answer;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return answer;
  pid_t child = fork();
  if (child == 0)
    readAndSend(buffer, registry, ends[1]);
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    return answer;
  }
  // Attributes share their parts in bytecode and repeat them in text; this is far beyond what
  // real modules make of that.
  const size_t limit = (size_t(256) << 20) + 64 * buffer.getBufferSize();
  answer.received = receive(ends[0], limit);
  close(ends[0]); // the child gets a signal should it go on writing
  int status = 0;
  rusage usage{};
  while (wait4(child, &status, 0, &usage) < 0 && errno == EINTR)
    ;
  // The child has but one thread. Should another thread of the parent have held a lock that the
  // reader needs, the child sleeps until the alarm; sleeping costs no processor time, which tells
  // this case from a reader that loops.
  constexpr long kAsleep = 200000;
  bool alarmed = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
  if (alarmed && usage.ru_utime.tv_sec == 0 && usage.ru_utime.tv_usec < kAsleep)
    answer.state = Answer::Slept;
  else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || answer.received.size() > limit)
    answer.state = Answer::Died;
  else
    answer.state = Answer::Spoke;
  return answer;
}
#endif

BytecodeText llopt::readBytecode([[maybe_unused]] llvm::MemoryBufferRef buffer,
                                 [[maybe_unused]] const DialectRegistry &registry) {
  BytecodeText result;
#ifdef __linux__
  constexpr unsigned kAttempts = 3;
  Answer answer;
  for (unsigned attempt = 0; attempt < kAttempts; ++attempt) {
    answer = askChild(buffer, registry);
    if (answer.state != Answer::Slept)
      break;
  }
  if (answer.state == Answer::NoChild)
    return result;
  result.state = BytecodeText::Malformed;
  if (answer.state != Answer::Spoke)
    return result;
  for (StringRef rest = answer.received; rest.size() >= 9;) {
    Tag tag = static_cast<Tag>(rest[0]);
    uint64_t size = llvm::support::endian::read64le(rest.data() + 1);
    rest = rest.drop_front(9);
    if (size > rest.size())
      break;
    StringRef text = rest.take_front(size);
    rest = rest.drop_front(size);
    if (tag == kModule) {
      result.state = BytecodeText::Read;
      result.text = text.str();
    } else {
      DiagnosticSeverity severity = tag == kNote      ? DiagnosticSeverity::Note
                                    : tag == kWarning ? DiagnosticSeverity::Warning
                                    : tag == kRemark  ? DiagnosticSeverity::Remark
                                                      : DiagnosticSeverity::Error;
      result.said.emplace_back(severity, text.str());
    }
  }
#endif
  return result;
}

bool BytecodeText::saidError() const {
  return llvm::any_of(said, [](const auto &line) { return line.first == DiagnosticSeverity::Error; });
}

bool llopt::runGuarded(function_ref<void()> run) {
  // Enabling twice does nothing; the handlers of Rust's runtime stay behind LLVM's.
  llvm::CrashRecoveryContext::Enable();
  llvm::CrashRecoveryContext recovery;
  return recovery.RunSafely(run);
}

//===----------------------------------------------------------------- C API ---===//

/// Repeats in the parent what a child's reader has said.
static void repeat(const BytecodeText &bytecode, Location location) {
  std::optional<InFlightDiagnostic> last;
  for (auto &[severity, text] : bytecode.said) {
    if (severity == DiagnosticSeverity::Note && last) {
      last->attachNote() << text;
      continue;
    }
    last.reset(); // reports it
    last.emplace(location.getContext()->getDiagEngine().emit(location, severity));
    *last << text;
  }
}

MlirOperation llopt_parse(MlirContext contextHandle, MlirStringRef source, MlirStringRef nameHandle, bool verify) {
  MLIRContext *context = unwrap(contextHandle);
  StringRef name = unwrap(nameHandle);
  // The lexer wants a terminating zero and the bytecode reader alignment: a copy has both.
  std::unique_ptr<llvm::MemoryBuffer> buffer = llvm::MemoryBuffer::getMemBufferCopy(unwrap(source), name);
  Location whole = FileLineColLoc::get(context, name, 0, 0);
  bool guard = false;
  if (isBytecode(*buffer)) {
    BytecodeText bytecode = readBytecode(*buffer, context->getDialectRegistry());
    repeat(bytecode, whole);
    switch (bytecode.state) {
    case BytecodeText::Malformed:
      if (!bytecode.saidError())
        emitError(whole) << "malformed bytecode";
      return {};
    case BytecodeText::Read:
      buffer = llvm::MemoryBuffer::getMemBufferCopy(bytecode.text, (name + kAsText).str());
      break;
    case BytecodeText::Unknown:
      guard = true;
      break;
    }
  }
  if (!checkSource(*buffer, [&](unsigned line, unsigned column, const Twine &message) {
        emitError(FileLineColLoc::get(context, buffer->getBufferIdentifier(), line, column)) << message;
      }))
    return {};
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  OwningOpRef<ModuleOp> module;
  auto parse = [&] { module = parseSourceFile<ModuleOp>(sources, ParserConfig(context, verify)); };
  if (!guard) {
    parse();
  } else if (!runGuarded(parse)) {
    emitError(whole) << "malformed bytecode";
    return {};
  }
  return wrap(module.release().getOperation());
}
