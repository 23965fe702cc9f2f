//! Compilations share LLVM's objects for a target; none may depend on what another one left there.

use std::fs;
use std::path::Path;

use llopt::{ArtifactKind, Compiler, Options, Source, Target};

/// The assembly of an example.
fn assembly(target: &str, kernel: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let file = root
        .join(target.replace(':', "-"))
        .join(format!("{kernel}.ttgir"));
    let text = fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let target = Target::parse(target).expect("a known target");
    let compilation = Compiler::new(Options::new(target))
        .compile(
            &Source::new(kernel, text),
            ArtifactKind::assembly_of(target),
        )
        .unwrap_or_else(|error| panic!("{kernel}: {error}"));
    compilation.artifact.text().expect("text").to_owned()
}

#[test]
fn code_does_not_depend_on_what_was_compiled_before() {
    for target in ["cuda:90", "hip:gfx942"] {
        let first = assembly(target, "vecadd_fp32");
        for between in [
            "control_flow",
            "cast_from_fp32",
            "integers",
            "masked_copy_i8",
        ] {
            let _ = assembly(target, between);
            assert_eq!(
                assembly(target, "vecadd_fp32"),
                first,
                "after {between} for {target}"
            );
        }
    }
}

#[test]
fn compilations_at_once_have_machines_of_their_own() {
    let expected = assembly("hip:gfx942", "integers");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..3 {
                    assert_eq!(assembly("hip:gfx942", "integers"), expected);
                }
            });
        }
    });
}

/// The assembly of a kernel with `calls` calls of one function that is not inlined.
fn calling(target: &str, calls: usize) -> String {
    let target = Target::parse(target).expect("a known target");
    let body: String = (0..calls)
        .map(|i| {
            let next = i + 1;
            format!("    %x{next} = tt.call @step(%x{i}, %p) : (i32, !tt.ptr<i32>) -> i32\n")
        })
        .collect();
    let text = format!(
        r#"module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = {lanes} : i32, ttg.target = "{target}"}} {{
  tt.func private @step(%x: i32, %p: !tt.ptr<i32>) -> i32 attributes {{noinline = true}} {{
    %old = tt.load %p : !tt.ptr<i32>
    %sum = arith.addi %old, %x : i32
    tt.store %p, %sum : !tt.ptr<i32>
    tt.return %sum : i32
  }}
  tt.func public @kernel(%p: !tt.ptr<i32>, %x0: i32) attributes {{noinline = false}} {{
{body}    tt.store %p, %x{calls} : !tt.ptr<i32>
    tt.return
  }}
}}
"#,
        lanes = target.warp_size(),
    );
    let compilation = Compiler::new(Options::new(target))
        .compile(
            &Source::new("calls.ttgir", text),
            ArtifactKind::assembly_of(target),
        )
        .unwrap_or_else(|error| panic!("{calls} calls for {target}: {error}"));
    compilation.artifact.text().expect("text").to_owned()
}

/// LLVM numbers the calls of PTX by a counter of the process; the text must not depend on its value.
#[test]
fn calls_are_numbered_alike_on_every_thread_and_in_every_order() {
    for target in ["cuda:90", "hip:gfx942"] {
        let orders: [&[usize]; 2] = [&[1, 2, 3, 5, 1], &[5, 3, 2, 1, 5, 2]];
        let texts: Vec<(usize, String)> = std::thread::scope(|scope| {
            let threads = orders.map(|order| {
                scope.spawn(move || -> Vec<(usize, String)> {
                    let text = |calls: &usize| (*calls, calling(target, *calls));
                    order.iter().map(text).collect()
                })
            });
            let joined = threads.map(|thread| thread.join().expect("a thread that compiled"));
            joined.into_iter().flatten().collect()
        });
        for (calls, text) in &texts {
            let marks = text.matches("// callseq ").count();
            assert!(target.starts_with("hip") || marks == 2 * calls, "{text}");
            let first = texts.iter().find(|(other, _)| other == calls);
            assert_eq!(
                first.map(|(_, text)| text),
                Some(text),
                "{calls} calls for {target}"
            );
        }
    }
}
