//===- rewrite.cpp - patterns and the greedy driver -------------------------===//

#include "model.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace llopt;

namespace {
/// A pattern whose rewrite is a Rust function.
struct RustPattern : RewritePattern {
  RustPattern(const LloptPattern &pattern, MLIRContext *context)
      : RewritePattern(unwrap(pattern.root), pattern.benefit, context), spec(pattern.spec) {}
  struct AnyRoot {};
  RustPattern(const LloptPattern &pattern, MLIRContext *context, AnyRoot)
      : RewritePattern(MatchAnyOpTypeTag(), pattern.benefit, context), spec(pattern.spec) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    return success(hooks->pattern_rewrite(spec, wrap(op), wrap(static_cast<RewriterBase *>(&rewriter))));
  }

  const void *spec;
};
} // namespace

void llopt::addPattern(RewritePatternSet &set, const LloptPattern &pattern) {
  std::unique_ptr<RustPattern> made =
      unwrap(pattern.root).empty()
          ? std::make_unique<RustPattern>(pattern, set.getContext(), RustPattern::AnyRoot())
          : std::make_unique<RustPattern>(pattern, set.getContext());
  set.add(std::move(made));
}

void llopt_patterns_add(MlirRewritePatternSet set, const LloptPattern *pattern) {
  llopt::addPattern(*unwrap(set), *pattern);
}

void llopt_patterns_add_canonicalization(MlirRewritePatternSet handle) {
  RewritePatternSet &set = *unwrap(handle);
  MLIRContext *context = set.getContext();
  for (Dialect *dialect : context->getLoadedDialects())
    dialect->getCanonicalizationPatterns(set);
  for (RegisteredOperationName name : context->getRegisteredOperations())
    name.getCanonicalizationPatterns(set, context);
}

bool llopt_apply_greedily(MlirOperation op, MlirFrozenRewritePatternSet patterns, const LloptGreedyConfig *config,
                          bool *changed) {
  GreedyRewriteConfig greedy;
  greedy.setUseTopDownTraversal(config->topDown)
      .setMaxIterations(config->maxIterations < 0 ? GreedyRewriteConfig::kNoLimit : config->maxIterations)
      .enableFolding(config->fold)
      .setRegionSimplificationLevel(config->simplifyRegions ? GreedySimplifyRegionLevel::Normal
                                                            : GreedySimplifyRegionLevel::Disabled);
  return succeeded(applyPatternsGreedily(unwrap(op), *unwrap(patterns), greedy, changed));
}
