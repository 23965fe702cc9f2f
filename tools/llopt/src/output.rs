//! Files that are written completely or not at all.
//!
//! Contents are written to a temporary file in the directory of the destination, which is then renamed over it. A
//! reader of the destination sees either the old contents or the new ones.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;

/// The destination of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Standard output, written `-`.
    Standard,
    /// A file.
    File(PathBuf),
}

impl From<&str> for Output {
    fn from(text: &str) -> Self {
        match text {
            "-" => Self::Standard,
            path => Self::File(path.into()),
        }
    }
}

impl Output {
    /// Writes a value as indented JSON.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn write_json(&self, value: &impl Serialize) -> Result<()> {
        let mut text = serde_json::to_string_pretty(value).context("cannot write JSON")?;
        text.push('\n');
        self.write(text.as_bytes())
    }

    /// Writes all of `contents`, or nothing.
    ///
    /// # Errors
    /// The destination cannot be written; a file keeps its old contents.
    pub fn write(&self, contents: &[u8]) -> Result<()> {
        match self {
            Self::Standard => {
                let mut stdout = io::stdout().lock();
                let written = stdout.write_all(contents).and_then(|()| stdout.flush());
                written.context("cannot write to standard output")
            }
            Self::File(path) => replace(path, contents)
                .with_context(|| format!("cannot write '{}'", path.display())),
        }
    }
}

fn replace(path: &Path, contents: &[u8]) -> io::Result<()> {
    // A link is preserved: its target is replaced. An existing file that is not regular (a terminal, a pipe,
    // /dev/null) cannot be replaced and is written to.
    let destination = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let existing = fs::metadata(&destination).ok();
    if existing.as_ref().is_some_and(|file| !file.is_file()) {
        return fs::OpenOptions::new()
            .write(true)
            .open(&destination)?
            .write_all(contents);
    }
    let directory = match destination.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    // Here the error of a missing directory does not name a temporary file.
    fs::metadata(directory)?;
    let permissions = match existing {
        Some(file) => file.permissions(),
        // The permissions of any created file, subject to the user's mask.
        None => fs::Permissions::from_mode(0o666),
    };
    let mut file = tempfile::Builder::new()
        .prefix(".llopt-")
        .permissions(permissions)
        .tempfile_in(directory)?;
    file.write_all(contents)?;
    file.persist(&destination)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_through_a_link_and_keeps_its_permissions() -> Result<()> {
        let directory = tempfile::tempdir()?;
        let [file, link] = ["file", "link"].map(|name| directory.path().join(name));
        fs::write(&file, "old")?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640))?;
        std::os::unix::fs::symlink(&file, &link)?;
        Output::File(link.clone()).write(b"new")?;
        assert_eq!(fs::read_to_string(&file)?, "new");
        assert_eq!(fs::metadata(&file)?.permissions().mode() & 0o777, 0o640);
        assert!(fs::symlink_metadata(&link)?.is_symlink());
        assert_eq!(fs::read_dir(directory.path())?.count(), 2);
        Ok(())
    }

    #[test]
    fn a_missing_directory_is_named() {
        let error = Output::from("/nonexistent/k.ptx").write(b"").unwrap_err();
        assert_eq!(
            format!("{error:#}"),
            "cannot write '/nonexistent/k.ptx': No such file or directory (os error 2)"
        );
    }
}
