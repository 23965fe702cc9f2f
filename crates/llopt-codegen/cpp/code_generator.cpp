//===- code_generator.cpp - LLVM's code generator without some of its passes -===//
//
// LLVM's C interface runs a back end with all its passes. A back end adds them one by one to a pass manager, so one
// that does not take all of them leaves passes out. Which ones these are is not decided here.
//
//===----------------------------------------------------------------------===//

#include "llvm-c/TargetMachine.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Pass.h"
#include "llvm/PassInfo.h"
#include "llvm/PassRegistry.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;

/// A pass that is left out: its run of that number, counted from one, or all of them for zero; and whether the back
/// end has it.
struct LloptOmittedPass {
  const char *name;
  unsigned run;
  bool isFound;
};

namespace {

/// A pass manager that does not take certain passes, nor a pass right after itself, as where one that was between them
/// is left out: it would find nothing.
class Selection final : public legacy::PassManagerBase {
public:
  explicit Selection(MutableArrayRef<LloptOmittedPass> omitted)
      : omitted(omitted) {}

  void add(Pass *pass) override {
    const PassInfo *info =
        PassRegistry::getPassRegistry()->getPassInfo(pass->getPassID());
    if (isOmitted(info) || pass->getPassID() == last) {
      delete pass;
      return;
    }
    last = pass->getPassID();
    passes.add(pass);
  }

  void run(Module &module) { passes.run(module); }

private:
  bool isOmitted(const PassInfo *info) {
    if (!info)
      return false;
    const StringRef name = info->getPassArgument();
    const unsigned run = ++runs[name];
    const auto *found = find_if(omitted, [&](const LloptOmittedPass &of) {
      return name == of.name && (of.run == 0 || of.run == run);
    });
    if (found == omitted.end())
      return false;
    omitted[found - omitted.begin()].isFound = true;
    return true;
  }

  MutableArrayRef<LloptOmittedPass> omitted;
  StringMap<unsigned> runs;
  AnalysisID last = nullptr;
  legacy::PassManager passes;
};

} // namespace

/// The assembly or the object of a module, made without those passes; null if the target has no such
/// output. The module is rewritten.
extern "C" LLVMMemoryBufferRef
llopt_generate_code(LLVMModuleRef module, LLVMTargetMachineRef machine,
                    LLVMCodeGenFileType kind, LloptOmittedPass *omitted,
                    size_t count) {
  Module &ir = *unwrap(module);
  TargetMachine &target = *reinterpret_cast<TargetMachine *>(machine);
  ir.setDataLayout(target.createDataLayout());

  SmallString<0> text;
  raw_svector_ostream stream(text);
  Selection passes(MutableArrayRef(omitted, count));
  const CodeGenFileType type = kind == LLVMAssemblyFile
                                   ? CodeGenFileType::AssemblyFile
                                   : CodeGenFileType::ObjectFile;
  if (target.addPassesToEmitFile(passes, stream, /*DwoOut=*/nullptr, type))
    return nullptr;
  passes.run(ir);
  return wrap(MemoryBuffer::getMemBufferCopy(text.str()).release());
}
