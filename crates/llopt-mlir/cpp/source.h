//===- source.h - reading text and bytecode that nobody vouches for ---------===//
#ifndef LLOPT_SOURCE_H
#define LLOPT_SOURCE_H

#include "model.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/MemoryBuffer.h"

namespace llopt {

/// Reports what must not reach the text parser; true when nothing is wrong.
bool checkSource(const llvm::MemoryBuffer &buffer,
                 llvm::function_ref<void(unsigned line, unsigned column, const llvm::Twine &message)> report);

/// What follows the name of a bytecode file in places of its text.
inline constexpr llvm::StringLiteral kAsText = " as text";

/// Bytecode as text.
struct BytecodeText {
  enum State {
    /// There was no child to ask.
    Unknown,
    /// It is no bytecode; what the reader said, if anything, explains it.
    Malformed,
    /// It is a module, not verified yet.
    Read,
  };
  State state = Unknown;
  std::string text;
  std::vector<std::pair<mlir::DiagnosticSeverity, std::string>> said;

  bool saidError() const;
};

/// Reads bytecode in a child process.
BytecodeText readBytecode(llvm::MemoryBufferRef buffer, const mlir::DialectRegistry &registry);

/// Runs code that may crash on malformed bytecode, for want of a child; false when it did. What the
/// crashed code had allocated leaks.
bool runGuarded(llvm::function_ref<void()> run);

} // namespace llopt

#endif // LLOPT_SOURCE_H
