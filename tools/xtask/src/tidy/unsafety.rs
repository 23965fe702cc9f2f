//! The places that may contain `unsafe`: the bridges to MLIR and LLVM, and the few files listed.
//!
//! All other code uses safe types. [`ALLOWED`] lists folders and files with the reason for `unsafe`; an unnecessary
//! line of it is a finding.

use std::path::Path;

use super::Finding;
use super::rust;

/// Folders and files with `unsafe` code, and the reasons.
const ALLOWED: &[(&str, &str)] = &[
    ("crates/llopt-mlir/src/", "the bridge to MLIR"),
    (
        "crates/llopt-codegen/src/llvm/addresses.rs",
        "LLVM's C interface takes addresses apart",
    ),
    (
        "crates/llopt-codegen/src/llvm/c_api.rs",
        "what inkwell lacks of LLVM's interface",
    ),
    (
        "crates/llopt-codegen/src/llvm/diagnostics.rs",
        "LLVM hands over what it has to say by a callback",
    ),
    (
        "crates/llopt-codegen/src/llvm/emitter/",
        "inkwell's addresses of elements trust the type they are given",
    ),
    ("crates/llopt-capi/src/", "the interface for C"),
    (
        "crates/llopt/src/own_thread.rs",
        "handlers of the process for what LLVM and the allocator do",
    ),
    (
        "crates/llopt/src/isolation.rs",
        "a process that splits in two, and what the two share",
    ),
    (
        "crates/llopt-fuzz/src/main.rs",
        "a process for each hostile input",
    ),
    (
        "crates/llopt-sim/src/translate/ir.rs",
        "what inkwell lacks of LLVM's interface",
    ),
    (
        "crates/llopt-sim/src/memory/global.rs",
        "memory that several threads of the machine write",
    ),
];

/// Finds `unsafe` code elsewhere, and unnecessary lines of the list.
pub fn check(files: &[(&Path, &str)]) -> Vec<Finding> {
    check_against(files, ALLOWED)
}

fn check_against(files: &[(&Path, &str)], allowed: &[(&str, &str)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut needed = vec![false; allowed.len()];
    for (path, text) in files {
        let name = path.to_string_lossy();
        if !(name.starts_with("crates/") && name.contains("/src/")) {
            continue;
        }
        let code = rust::code(text);
        let lines = code.lines().enumerate();
        let mut unsafe_lines =
            lines.filter(|(_, line)| rust::words(line).any(|word| word == "unsafe"));
        let Some((index, _)) = unsafe_lines.next() else {
            continue;
        };
        match allowed
            .iter()
            .position(|(place, _)| name.starts_with(place))
        {
            Some(place) => needed[place] = true,
            None => {
                let text = "`unsafe` outside of the bridges to MLIR and LLVM";
                findings.push(Finding::of_line(path, index + 1, text));
            }
        }
    }
    for ((place, _), _) in allowed.iter().zip(needed).filter(|(_, needed)| !needed) {
        let text = "may have `unsafe` code and has none: take it off the list";
        findings.push(Finding::of_file(Path::new(place), text));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_code_is_found_outside_of_its_places() {
        let allowed = [("crates/a/src/", "a bridge")];
        let bridge = (Path::new("crates/a/src/lib.rs"), "unsafe fn f() {}");
        let found = |other: &str| {
            let files = [bridge, (Path::new("crates/b/src/lib.rs"), other)];
            check_against(&files, &allowed).len()
        };
        assert_eq!(found("fn g() { \"unsafe\"; } // unsafe"), 0);
        assert_eq!(found("fn g() {\n    unsafe { f() }\n}"), 1);
        assert_eq!(check_against(&[], &allowed).len(), 1);
    }
}
