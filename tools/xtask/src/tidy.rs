//! `cargo xtask tidy`: the project's rules that no compiler checks.
//!
//! 1. Crates depend on each other only along the arrows of [`arrows`].
//! 2. Every source file begins with a line that describes it; a long file says why it is long.
//! 3. No file or folder has a meaningless name, or a number instead of a name.
//! 4. No mark of unfinished work; a later task names the condition that it waits for.
//! 5. No path that exists only on one machine.
//! 6. Relative links in the documents lead to an existing file and heading.
//! 7. No files of a crate import each other in a cycle.
//! 8. Code generation knows vendors only in `targets/`, and their folders have the same files.
//! 9. No long passage of code is repeated without a reason.
//! 10. Only the bridges to MLIR and LLVM have `unsafe` code.
//! 11. Passes, plans, code generation and the interpreter identify no op by its name.
//! 12. Only `llopt-dialects` matches on the kind of an encoding.
//! 13. No type has more methods than a file can show.
//!
//! All findings are printed in the compiler's `file:line: text` form, and any one of them
//! makes the command fail.

mod arrows;
mod circles;
mod clones;
mod kinds;
mod links;
mod methods;
mod op_names;
mod rust;
mod sources;
mod unsafety;
mod vendors;

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::{process, workspace};

/// One broken rule at one place.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    /// Relative to the workspace root.
    path: PathBuf,
    /// Counted from 1; absent if the finding is about the whole file.
    line: Option<usize>,
    text: String,
}

impl Finding {
    fn of_file(path: &Path, text: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            line: None,
            text: text.into(),
        }
    }

    fn of_line(path: &Path, line: usize, text: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            line: Some(line),
            text: text.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.path.display())?;
        if let Some(line) = self.line {
            write!(f, "{line}:")?;
        }
        write!(f, " {}", self.text)
    }
}

/// Prints every broken rule; fails if there is one.
pub fn run() -> Result<()> {
    let root = workspace::root();
    let files = tracked_files(&root)?;
    let mut findings = arrows::check(&workspace::metadata()?)?;
    let mut rust = Vec::new();
    let mut definitions = Vec::new();
    for path in &files {
        findings.extend(sources::check_path(path));
        let Ok(text) = std::fs::read_to_string(root.join(path)) else {
            // Binary test data has no lines; a deleted file has no contents.
            continue;
        };
        findings.extend(sources::check_text(path, &text));
        if path.extension().is_some_and(|e| e == "md") {
            findings.extend(links::check(&root, path, &text));
        }
        if path.extension().is_some_and(|e| e == "td") {
            definitions.push((path.as_path(), text));
        } else if path.extension().is_some_and(|e| e == "rs") {
            rust.push((path.as_path(), text));
        }
    }
    let rust: Vec<(&Path, &str)> = rust.iter().map(|(path, text)| (*path, &**text)).collect();
    let definitions: Vec<(&Path, &str)> = definitions
        .iter()
        .map(|(path, text)| (*path, &**text))
        .collect();
    findings.extend(circles::check(&rust));
    findings.extend(vendors::check(&rust));
    findings.extend(clones::check(&rust));
    findings.extend(unsafety::check(&rust));
    findings.extend(kinds::check(&rust));
    findings.extend(methods::check(&rust));
    findings.extend(op_names::check(&definitions, &rust));
    for finding in &findings {
        println!("{finding}");
    }
    if !findings.is_empty() {
        bail!("{} findings in {} files", findings.len(), files.len());
    }
    println!("tidy: {} files, no findings", files.len());
    Ok(())
}

/// Every file that is in version control or about to be.
fn tracked_files(root: &Path) -> Result<Vec<PathBuf>> {
    let text = process::read(Command::new("git").current_dir(root).args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]))?;
    let mut files: Vec<PathBuf> = text
        .split('\0')
        .filter(|name| !name.is_empty())
        .map(PathBuf::from)
        .collect();
    files.sort();
    files.dedup();
    Ok(files)
}
