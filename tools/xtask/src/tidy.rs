//! `cargo xtask tidy`: the rules of the house that no compiler checks.
//!
//! 1. Crates depend on each other only along the arrows of [`arrows`].
//! 2. Every source file opens with a line that says what it is; a long one says why it is long.
//! 3. No file or folder has a name that says nothing, or a number in place of a name.
//! 4. No mark of unfinished work; what is left for later names the condition it waits for.
//! 5. No path of somebody's machine.
//! 6. Relative links in the documents lead somewhere, down to the heading.
//! 7. No files of a crate import each other in a circle.
//! 8. Code generation knows vendors in `targets/` only, and their folders have the same files.
//! 9. No long passage of code is repeated without a reason.
//! 10. Only the bridges to MLIR and LLVM have `unsafe` code.
//! 11. Passes, plans, code generation and interpreter know no op by its name.
//! 12. Only `llopt-dialects` looks at the kind of an encoding.
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
    /// Counted from 1; absent when the file as a whole is meant.
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
            // Binary test data has no lines to look at; a deleted file has nothing at all.
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
