//! Compilations share what LLVM builds for a target; none may see what another one left there.

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
