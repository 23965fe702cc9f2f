//! MLIR's passes on the test dialect, passes and patterns written in Rust.

use std::{cell::Cell, rc::Rc};

use crate::{
    dialect::{SAMPLE, parse},
    toy,
};
use llopt_mlir::{
    diagnostic::{self, Complaint},
    ir::{OperationExt, Walk},
    pass::{self, PassOption, PassRun, PassSpec, PipelineError},
    rewrite::{GreedyConfig, PatternSpec, Patterns, Rewriter},
};
use melior::ir::OperationRef;

/// The module after a pipeline.
fn run(source: &str, pipeline: &str) -> String {
    pass::register_upstream_passes();
    let context = toy::context();
    let module = parse(&context, source);
    pass::run_pipeline(module.as_operation(), pipeline, true).expect("runs");
    module.as_operation().to_string()
}

#[test]
fn folding_uses_materialised_constants() {
    let text = run(
        r#"toy.func private @f(%x: i32) -> i32 {
  %a = toy.constant 2 : i32
  %b = toy.constant 3 : i32
  %c = toy.add %a, %b : i32
  %zero = toy.constant 0 : i32
  %d = toy.add %zero, %x : i32
  %e = toy.add %d, %c : i32
  %n = toy.neg %e : i32
  %m = toy.neg %n : i32
  toy.return %m : i32
}"#,
        "canonicalize",
    );
    assert_eq!(
        text,
        "module {
  toy.func private @f(%arg0: i32) -> i32 {
    %k = toy.constant 5 : i32
    %0 = toy.add %arg0, %k : i32
    toy.return %0 : i32
  }
}
"
    );
}

#[test]
fn cse_minds_resources() {
    // A store to shared memory does not come between two loads of global memory.
    let text = run(
        r#"toy.func private @f(%p: !toy.ptr<i32>, %q: !toy.ptr<i32>, %v: i32) -> (i32, i32, i32) {
  %0 = "toy.load"(%p) : (!toy.ptr<i32>) -> i32
  "toy.shared_store"(%q, %v) : (!toy.ptr<i32>, i32) -> ()
  %1 = "toy.load"(%p) : (!toy.ptr<i32>) -> i32
  "toy.store"(%q, %v) : (!toy.ptr<i32>, i32) -> ()
  %2 = "toy.load"(%p) : (!toy.ptr<i32>) -> i32
  toy.return %0, %1, %2 : i32, i32, i32
}"#,
        "cse",
    );
    // MLIR's CSE does not look at resources between reads, only at writes: both writes count.
    assert_eq!(text.matches("toy.load").count(), 3, "{text}");
    let text = run(
        r#"toy.func private @f(%p: !toy.ptr<i32>) -> (i32, i32) {
  %0 = "toy.load"(%p) : (!toy.ptr<i32>) -> i32
  %1 = "toy.load"(%p) : (!toy.ptr<i32>) -> i32
  %2 = "toy.load"(%p) <{volatile}> : (!toy.ptr<i32>) -> i32
  %3 = "toy.alloc"() : () -> !toy.ptr<i32>
  toy.return %0, %1 : i32, i32
}"#,
        "cse,canonicalize",
    );
    // One plain load is left, the volatile one stays, the unused allocation goes.
    assert_eq!(text.matches("toy.load").count(), 2, "{text}");
    assert!(!text.contains("toy.alloc"), "{text}");
}

#[test]
fn inliner_takes_callees_of_one_and_several_blocks() {
    let text = run(
        r#"toy.func private @one(%x: i32) -> i32 {
  %0 = toy.neg %x : i32
  toy.return %0 : i32
}
toy.func private @two(%c: i1, %x: i32) -> i32 {
  cf.cond_br %c, ^bb1, ^bb2
^bb1:
  toy.return %x : i32
^bb2:
  %0 = toy.neg %x : i32
  toy.return %0 : i32
}
toy.func public @f(%c: i1, %x: i32) -> i32 {
  %0 = toy.call @one(%x) : (i32) -> i32
  %1 = toy.call @two(%c, %0) : (i1, i32) -> i32
  toy.return %1 : i32
}"#,
        "inline,symbol-dce",
    );
    assert!(!text.contains("toy.call"), "{text}");
    assert!(!text.contains("@one") && !text.contains("@two"), "{text}");
    // The branches of the second callee met in one block, so canonicalization made a select.
    assert!(text.contains("arith.select %arg0"), "{text}");
}

#[test]
fn loops_lose_their_invariants_and_become_branches() {
    let source = r#"toy.func public @f(%n: i32, %p: !toy.ptr<i32>) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  scf.for %i = %zero to %n step %one : i32 {
    %0 = toy.neg %n : i32
    "toy.store"(%p, %0) : (!toy.ptr<i32>, i32) -> ()
  }
  toy.return
}"#;
    let text = run(source, "loop-invariant-code-motion");
    assert!(text.find("toy.neg") < text.find("scf.for"), "{text}");
    let text = run(source, "convert-scf-to-cf");
    assert!(text.contains("cf.cond_br"), "{text}");
}

#[test]
fn sccp_goes_through_region_branches() {
    let text = run(
        r#"toy.func public @f(%c: i1) -> i32 {
  %0 = toy.either %c {
    %a = toy.constant 4 : i32
    toy.yield %a : i32
  } else {
    %b = toy.constant 4 : i32
    toy.yield %b : i32
  } -> i32
  %one = toy.constant 1 : i32
  %1 = toy.add %0, %one : i32
  toy.return %1 : i32
}"#,
        "sccp",
    );
    assert!(text.contains("toy.constant 5 : i32"), "{text}");
}

#[test]
fn integer_ranges_reach_upstream_passes() {
    let text = run(
        r#"toy.func public @f() -> i1 {
  %a = arith.constant 3 : i32
  %b = arith.constant 4 : i32
  %sum = toy.add %a, %b : i32
  %limit = arith.constant 100 : i32
  %less = arith.cmpi slt, %sum, %limit : i32
  toy.return %less : i1
}"#,
        "int-range-optimizations",
    );
    assert!(text.contains("true"), "{text}");
}

static COUNT: PassSpec = PassSpec {
    options: &[
        PassOption::text("what", "the operation to count", "toy.add"),
        PassOption::integer("limit", "how many are too many", "10"),
        PassOption::flag("loud", "whether to say so"),
    ],
    statistics: &[("counted", "operations counted")],
    dependencies: &["scf"],
    ..PassSpec::new("toy-count", "Counts operations.", count)
};

fn count(operation: OperationRef<'_, '_>, run: &mut PassRun) -> Result<(), Complaint> {
    let what = run.text("what").to_owned();
    let mut found = 0;
    operation.for_each_op(Walk::PreOrder, |nested| {
        found += i64::from(nested.is_named(&what));
    });
    run.count(0, found as u64);
    run.preserve_all();
    if run.flag("loud") {
        let _ = diagnostic::remark(operation.loc(), format!("{found} of {what}")).emit();
    }
    if found > run.integer("limit") {
        return Err(Complaint::new(format!("has {found} of `{what}`")).note("too many"));
    }
    Ok(())
}

/// Adds its runs to the number that the caller shares, if there is one.
static COUNTS_RUNS: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    ..PassSpec::new("toy-counts-runs", "Counts its runs.", |_, run| {
        if let Some(runs) = run.shared::<Cell<u32>>() {
            runs.set(runs.get() + 1);
        }
        Ok(())
    })
};

#[test]
fn passes_share_what_the_caller_of_a_pipeline_gives_them() {
    COUNTS_RUNS.register();
    let context = toy::context();
    let module = parse(&context, SAMPLE);
    let runs = Rc::new(Cell::new(0u32));
    let pipeline = "toy-counts-runs,toy-counts-runs";
    pass::run_pipeline_sharing(module.as_operation(), pipeline, true, &runs).expect("runs");
    assert_eq!(runs.get(), 2);
    // Nothing is shared afterwards, and nothing of another type is taken for it.
    pass::run_pipeline(module.as_operation(), pipeline, true).expect("runs");
    let other = Rc::new("text");
    pass::run_pipeline_sharing(module.as_operation(), pipeline, true, &other).expect("runs");
    assert_eq!((runs.get(), Rc::strong_count(&runs)), (2, 1));
}

static PANICS: PassSpec = PassSpec {
    operation: Some("toy.func"),
    ..PassSpec::new("toy-panics", "Panics.", |_, _| panic!("pass of a test"))
};

#[test]
fn passes_from_rust_have_options_and_fail_with_diagnostics() {
    COUNT.register();
    COUNT.register();
    PANICS.register();
    pass::register_upstream_passes();
    let context = toy::context();
    let module = parse(&context, SAMPLE);
    let go = |pipeline: &str| {
        let (result, diagnostics) = diagnostic::capture(&context, || {
            pass::run_pipeline(module.as_operation(), pipeline, true)
        });
        (result, diagnostic::render(&diagnostics))
    };
    assert_eq!(go("toy-count"), (Ok(()), String::new()));
    assert_eq!(
        go("builtin.module(toy-count{loud what=toy.yield},cse)"),
        (Ok(()), "test.mlir:3:1: remark: 3 of toy.yield\n".to_owned())
    );
    let (result, text) = go("toy-count{limit=0}");
    assert!(
        matches!(result, Err(PipelineError::Failed { .. })),
        "{result:?}"
    );
    assert!(
        text.starts_with("test.mlir:3:1: error: 'builtin.module' op has 1 of `toy.add`\n"),
        "{text}"
    );
    assert!(text.contains("\ntest.mlir:3:1: note: too many\n"), "{text}");
    let (result, _) = go("toy-count{limit=many}");
    assert_eq!(
        result.map_err(|error| error.to_string()),
        Err("invalid pass pipeline `toy-count{limit=many}`: \
             option `limit` of pass `toy-count` takes an integer, not `many`\n\
             failed to add `toy-count` with options `limit=many`"
            .to_owned())
    );
    let (result, _) = go("nothing-of-the-kind");
    assert!(
        matches!(result, Err(PipelineError::Invalid { .. })),
        "{result:?}"
    );
    let (result, text) = go("toy.func(toy-panics)");
    assert!(
        matches!(result, Err(PipelineError::Failed { .. })),
        "{result:?}"
    );
    assert!(text.contains("bug in llopt: pass of a test"), "{text}");
}

#[test]
fn patterns_apply_greedily() {
    static TO_CONSTANT: PatternSpec = PatternSpec::new("neg of constant", |operation, rewriter| {
        fold_negation(operation, rewriter)
    })
    .at("toy.neg");
    fn fold_negation<'c, 'a>(
        operation: OperationRef<'c, 'a>,
        rewriter: &mut Rewriter<'c, 'a>,
    ) -> llopt_mlir::rewrite::Rewritten {
        use llopt_mlir::ir::{AttributeExt, ValueExt, attr};
        use llopt_mlir::rewrite::NoMatch;
        let source = operation
            .operand_value(0)
            .and_then(ValueExt::defining_op)
            .filter(|source| source.is_named("toy.constant"))
            .ok_or(NoMatch)?;
        let value = source.attr("value").ok_or(NoMatch)?;
        let negated = attr::integer(value.value_type(), -value.as_i64().ok_or(NoMatch)?);
        rewriter.set_before(operation);
        let made = rewriter
            .create(
                "toy.constant",
                operation.loc(),
                &[],
                None,
                &[("value", negated)],
            )
            .map_err(|_| NoMatch)?;
        rewriter.replace(operation, &made.result_values().collect::<Vec<_>>());
        Ok(())
    }
    let context = toy::context();
    let module = parse(
        &context,
        "toy.func private @f() -> i32 {
  %a = toy.constant 2 : i32
  %b = toy.neg %a : i32
  toy.return %b : i32
}",
    );
    let patterns = Patterns::new(&context, &[&TO_CONSTANT]);
    assert_eq!(
        patterns.apply(module.as_operation(), GreedyConfig::default()),
        Ok(true)
    );
    assert_eq!(
        patterns.apply(module.as_operation(), GreedyConfig::default()),
        Ok(false)
    );
    let text = module.as_operation().to_string();
    assert!(
        text.contains("toy.constant -2") && !text.contains("toy.neg"),
        "{text}"
    );
    let all = Patterns::with_canonicalization(&context, &[]);
    assert_eq!(
        all.apply(module.as_operation(), GreedyConfig::default()),
        Ok(false)
    );
}
