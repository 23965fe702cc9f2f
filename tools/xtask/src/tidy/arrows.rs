//! The allowed dependencies between crates: the architecture, as a table.
//!
//! The table applies to ordinary and build dependencies. Tests may in addition use [`TEST_ARROWS`]; a test that needs
//! more belongs in `crates/llopt`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use super::Finding;

/// The allowed dependencies of one crate of the workspace.
struct Row {
    name: &'static str,
    /// Other crates of the workspace.
    workspace: &'static [&'static str],
    /// Crates that contain MLIR, LLVM or TableGen.
    foundation: &'static [&'static str],
}

const fn row(
    name: &'static str,
    workspace: &'static [&'static str],
    foundation: &'static [&'static str],
) -> Row {
    Row {
        name,
        workspace,
        foundation,
    }
}

/// In the order in which data flows. `mlir-sys` links the only copy of LLVM, so a crate that uses inkwell depends on
/// it at least for that.
const ARROWS: &[Row] = &[
    row("llopt-layout", &[], &[]),
    row("llopt-target", &["llopt-layout"], &[]),
    row("llopt-mlir", &[], &["melior", "mlir-sys"]),
    row(
        "llopt-dialects",
        &["llopt-mlir", "llopt-layout", "llopt-target"],
        &["melior", "tblgen"],
    ),
    row(
        "llopt-plan",
        &[
            "llopt-dialects",
            "llopt-mlir",
            "llopt-layout",
            "llopt-target",
        ],
        &["melior"],
    ),
    row(
        "llopt-transforms",
        &[
            "llopt-plan",
            "llopt-dialects",
            "llopt-mlir",
            "llopt-layout",
            "llopt-target",
        ],
        &["melior"],
    ),
    row(
        "llopt-codegen",
        &[
            "llopt-plan",
            "llopt-dialects",
            "llopt-mlir",
            "llopt-layout",
            "llopt-target",
        ],
        &["melior", "mlir-sys", "inkwell"],
    ),
    row(
        "llopt-sim",
        &["llopt-target", "llopt-dialects", "llopt-mlir"],
        &["melior", "mlir-sys", "inkwell"],
    ),
    row(
        "llopt",
        &[
            "llopt-layout",
            "llopt-target",
            "llopt-mlir",
            "llopt-dialects",
            "llopt-plan",
            "llopt-transforms",
            "llopt-codegen",
            "llopt-sim",
        ],
        &["melior", "inkwell"],
    ),
    row(
        "llopt-view",
        &[
            "llopt",
            "llopt-layout",
            "llopt-target",
            "llopt-mlir",
            "llopt-dialects",
        ],
        &["melior"],
    ),
    row("llopt-capi", &["llopt"], &[]),
    row(
        "llopt-fuzz",
        &["llopt", "llopt-dialects", "llopt-layout", "llopt-target"],
        &["melior"],
    ),
    row("llopt-cli", &["llopt", "llopt-view"], &[]),
    row("triton-llopt", &["llopt"], &[]),
    row("xtask", &[], &[]),
];

/// Crates that everyone below them may use in tests: `(user, used)`.
const TEST_ARROWS: &[(&str, &str)] = &[];

/// External crates that only the rows naming them may use.
const FOUNDATION: &[&str] = &["melior", "mlir-sys", "inkwell", "llvm-sys", "tblgen"];

/// Crates without any dependencies outside their tests.
const FREE_OF_DEPENDENCIES: &[&str] = &["llopt-layout"];

/// Compares the output of `cargo metadata --no-deps` with the table.
pub fn check(metadata: &Value) -> Result<Vec<Finding>> {
    let packages = metadata["packages"]
        .as_array()
        .context("`cargo metadata` lists no packages")?;
    let names: Vec<&str> = packages.iter().filter_map(|p| p["name"].as_str()).collect();
    let root = Path::new(metadata["workspace_root"].as_str().unwrap_or_default());
    let mut findings = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        let manifest = PathBuf::from(package["manifest_path"].as_str().unwrap_or_default());
        let manifest = manifest.strip_prefix(root).unwrap_or(&manifest);
        let Some(row) = ARROWS.iter().find(|row| row.name == name) else {
            findings.push(Finding::of_file(
                manifest,
                format!("crate `{name}` has no row in the table of allowed arrows"),
            ));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let used = dependency["name"].as_str().unwrap_or_default();
            let in_tests = dependency["kind"].as_str() == Some("dev");
            let allowed = if names.contains(&used) {
                row.workspace.contains(&used)
                    || used == name
                    || (in_tests && TEST_ARROWS.contains(&(name, used)))
            } else if FOUNDATION.contains(&used) {
                row.foundation.contains(&used)
            } else {
                in_tests || !FREE_OF_DEPENDENCIES.contains(&name)
            };
            if !allowed {
                findings.push(Finding::of_file(
                    manifest,
                    format!("crate `{name}` must not depend on `{used}`"),
                ));
            }
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::check;

    fn findings(package: &str, dependency: &str, kind: Option<&str>) -> usize {
        let crates = ["llopt-layout", "llopt-transforms", "llopt-codegen"];
        let packages: Vec<_> = crates
            .iter()
            .map(|name| {
                let dependencies = if *name == package {
                    json!([{"name": dependency, "kind": kind}])
                } else {
                    json!([])
                };
                json!({"name": name, "manifest_path": "/w/Cargo.toml", "dependencies": dependencies})
            })
            .collect();
        check(&json!({"workspace_root": "/w", "packages": packages}))
            .expect("the packages are listed")
            .len()
    }

    #[test]
    fn only_arrows_of_the_table_pass() {
        assert_eq!(findings("llopt-codegen", "llopt-layout", None), 0);
        assert_eq!(findings("llopt-codegen", "inkwell", None), 0);
        assert_eq!(findings("llopt-codegen", "llopt-transforms", None), 1);
        assert_eq!(
            findings("llopt-codegen", "llopt-transforms", Some("dev")),
            1
        );
        assert_eq!(findings("llopt-transforms", "inkwell", Some("build")), 1);
        assert_eq!(findings("llopt-layout", "thiserror", None), 1);
        assert_eq!(findings("llopt-layout", "proptest", Some("dev")), 0);
    }

    #[test]
    fn a_crate_without_a_row_is_found() {
        let metadata = json!({"packages": [
            {"name": "llopt-extras", "manifest_path": "/w/Cargo.toml", "dependencies": []}
        ]});
        assert_eq!(check(&metadata).expect("the packages are listed").len(), 1);
    }
}
