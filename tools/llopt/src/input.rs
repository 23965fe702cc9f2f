//! Reading the file that a command works on.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context, Result};

/// The name of the input in diagnostics, and its contents.
///
/// # Errors
/// The file cannot be read.
pub fn read(path: &Path) -> Result<(String, Vec<u8>)> {
    if path == Path::new("-") {
        let mut contents = Vec::new();
        io::stdin()
            .lock()
            .read_to_end(&mut contents)
            .context("cannot read standard input")?;
        return Ok(("<stdin>".to_owned(), contents));
    }
    let name = path.display().to_string();
    let contents = fs::read(path).with_context(|| format!("cannot read '{name}'"))?;
    Ok((name, contents))
}
