//! Python packages in a separate folder below `target/`: the user's packages are not changed, and Debian's Python
//! needs no virtual environment for it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::{process, workspace};

/// A folder with packages, for `PYTHONPATH`.
pub struct Packages {
    folder: PathBuf,
}

impl Packages {
    /// The folder `target/python/NAME`.
    pub fn named(name: &str) -> Result<Self> {
        let folder = workspace::target_directory()?.join("python").join(name);
        Ok(Self { folder })
    }

    /// Installs `requirements` unless the folder already contains `module`.
    pub fn ensure(&self, module: &str, requirements: &[&str]) -> Result<()> {
        if self.folder.join(module).exists() {
            return Ok(());
        }
        process::run(self.pip_install().args(requirements))
    }

    /// Builds and installs a package of this repository, in place of an earlier build.
    pub fn install(&self, package: &Path) -> Result<()> {
        process::run(
            self.pip_install()
                .args(["--upgrade", "--no-deps"])
                .arg(package),
        )
    }

    /// `python3`, with the packages on its path.
    pub fn python(&self) -> Command {
        let mut command = Command::new("python3");
        command
            .current_dir(workspace::root())
            .env("PYTHONPATH", &self.folder);
        command
    }

    /// A program of one of the packages.
    pub fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.folder.join("bin").join(name));
        command
            .current_dir(workspace::root())
            .env("PYTHONPATH", &self.folder);
        command
    }

    fn pip_install(&self) -> Command {
        let mut command = Command::new("python3");
        command
            .current_dir(workspace::root())
            .args(["-m", "pip", "install", "--quiet", "--target"])
            .arg(&self.folder);
        command
    }
}
