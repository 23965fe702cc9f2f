//! Code generation outside of `targets/` names no vendor, and the vendors' folders have the same files.
//!
//! A reader who knows one vendor's folder can then navigate the other, and a missing file shows a feature that a
//! vendor lacks. [`SINGLE`] lists files without a counterpart, each with its reason; [`NAMED`] lists files outside of
//! `targets/` that may name a vendor. An unnecessary line of either list is a finding.

use std::collections::BTreeSet;
use std::path::Path;

use super::Finding;
use super::rust;

/// Where the vendors' folders are.
const TARGETS: &str = "crates/llopt-codegen/src/targets/";
/// The code that must not name a vendor.
const NEUTRAL: &str = "crates/llopt-codegen/src/";
/// The vendors' folders.
const FOLDERS: [&str; 2] = ["nvptx", "amdgpu"];

/// Files that only one of the folders has, and why.
const SINGLE: &[(&str, &str)] = &[
    (
        "nvptx/partition.rs",
        "AMD's GPUs have no barriers for some of the warps of a block",
    ),
    (
        "nvptx/warp_group.rs",
        "AMD's matrix units take the operands of one warp",
    ),
    (
        "nvptx/bulk.rs",
        "AMD's GPUs have no unit that copies boxes by descriptor",
    ),
    (
        "nvptx/widen.rs",
        "AMD's GPUs widen four bits by permutes, which are in elementwise.rs, and bytes by an instruction",
    ),
    (
        "amdgpu/copy.rs",
        "NVIDIA's copies to shared memory name each thread's place, as its stores do, and are in memory.rs",
    ),
    (
        "amdgpu/overflow.rs",
        "NVIDIA's conversions to small floats say themselves that they saturate",
    ),
    (
        "amdgpu/schedule.rs",
        "NVIDIA's assembler orders instructions by itself",
    ),
];

/// Files outside of `targets/` that name a vendor, and why.
const NAMED: &[(&str, &str)] = &[(
    "llvm/c_api.rs",
    "LLVM's back ends are registered and told their switches by name, once for the process",
)];

/// Parts of words that refer to a vendor.
const NAMES: [&str; 6] = ["nvptx", "amdgpu", "nvvm", "amdgcn", "nvidia", "amdhsa"];

/// Finds vendor names in neutral code and files without a counterpart.
pub fn check(files: &[(&Path, &str)]) -> Vec<Finding> {
    check_against(files, SINGLE, NAMED)
}

fn check_against(
    files: &[(&Path, &str)],
    single: &[(&str, &str)],
    named: &[(&str, &str)],
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut naming = BTreeSet::new();
    for (path, text) in files {
        let Some(inside) = path.to_str().and_then(|path| path.strip_prefix(NEUTRAL)) else {
            continue;
        };
        if inside.starts_with("targets/") {
            continue;
        }
        for (index, line) in rust::code_with_literals(text).lines().enumerate() {
            let Some(name) = vendor_in(line) else {
                continue;
            };
            naming.insert(inside.to_owned());
            if !named.iter().any(|(file, _)| *file == inside) {
                let text = format!("`{name}`: only `targets/` knows a vendor");
                findings.push(Finding::of_line(path, index + 1, text));
            }
        }
    }
    for (file, _) in named.iter().filter(|(file, _)| !naming.contains(*file)) {
        let path = Path::new(NEUTRAL).join(file);
        let text = "may name a vendor and does not: take it off the list";
        findings.push(Finding::of_file(&path, text));
    }
    let inside = |path: &Path| path.to_str()?.strip_prefix(TARGETS).map(str::to_owned);
    let there: BTreeSet<String> = files.iter().filter_map(|(path, _)| inside(path)).collect();
    let lacks_twin = |file: &str| {
        let (folder, name) = file.split_once('/')?;
        let other = FOLDERS.iter().find(|other| **other != folder)?;
        let twin = format!("{other}/{name}");
        (FOLDERS.contains(&folder) && !there.contains(&twin)).then_some(twin)
    };
    for file in &there {
        if let Some(twin) = lacks_twin(file)
            && !single.iter().any(|(name, _)| name == file)
        {
            let text = format!("has no twin `{twin}`, and no reason for that is listed");
            findings.push(Finding::of_file(&Path::new(TARGETS).join(file), text));
        }
    }
    for (file, _) in single {
        if !there.contains(*file) || lacks_twin(file).is_none() {
            let text = "is listed as a file without twin, and is none";
            findings.push(Finding::of_file(&Path::new(TARGETS).join(file), text));
        }
    }
    findings
}

/// The vendor's name in a line of code.
fn vendor_in(line: &str) -> Option<&'static str> {
    if rust::words(line).any(|word| word == "Vendor") {
        return Some("Vendor");
    }
    let line = line.to_lowercase();
    NAMES.into_iter().find(|name| line.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<_> = files
            .iter()
            .map(|&(path, text)| (Path::new(path), text))
            .collect();
        let single = [("nvptx/one.rs", "there is one")];
        let named = [("llvm/known.rs", "it registers")];
        let findings = check_against(&files, &single, &named);
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn vendors_outside_and_files_without_twin_are_found() {
        let path = |inside: &str| format!("crates/llopt-codegen/src/{inside}");
        let [known, one, two, ops] = [
            "llvm/known.rs",
            "targets/nvptx/one.rs",
            "targets/amdgpu/two.rs",
            "ops/a.rs",
        ]
        .map(path);
        let known = (&*known, "fn a() { initialize_nvptx() }");
        let one = (&*one, "fn a() {}");
        assert!(findings(&[known, one]).is_empty());
        assert_eq!(findings(&[known]).len(), 1);
        assert_eq!(findings(&[one]).len(), 1);
        let found = findings(&[
            known,
            one,
            (&two, ""),
            (&ops, "// NVIDIA\nf(\"llvm.nvvm.x\")"),
        ]);
        assert_eq!(
            found,
            [
                "crates/llopt-codegen/src/ops/a.rs:2: `nvvm`: only `targets/` knows a vendor",
                "crates/llopt-codegen/src/targets/amdgpu/two.rs: has no twin `nvptx/two.rs`, and no reason for \
                 that is listed",
            ]
        );
    }
}
