//! Where to find device libraries that are not named: the directories of toolkits, Debian's packages and Python
//! packages.
//!
//! A library that is named, by an option or an environment variable, is used as it is and never replaced by another.
//! The vendors know the places of their libraries.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// A library that some toolkit brings.
pub(crate) struct Library {
    /// Its name.
    pub(crate) name: &'static str,
    /// The prefixes of the names of its functions.
    pub(crate) prefixes: &'static [&'static str],
    /// The option of the command that names it.
    pub(crate) option: &'static str,
    /// The path given by that option, or by an equivalent setting.
    pub(crate) named: Option<PathBuf>,
    /// The environment variables that name it; the first one is llopt's own.
    pub(crate) variables: &'static [&'static str],
    /// The places to search.
    pub(crate) places: fn() -> Vec<PathBuf>,
    /// The file in a place, if places are directories.
    pub(crate) file: Option<&'static str>,
}

/// The result of a search.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    /// The library.
    pub(crate) found: Option<PathBuf>,
    /// Whether it was searched for because it was not named.
    pub(crate) searched: bool,
    /// The places that were searched, in order.
    pub(crate) looked_in: Vec<String>,
}

impl Library {
    fn path(&self, place: &Path) -> PathBuf {
        self.file
            .map_or_else(|| place.to_owned(), |file| place.join(file))
    }

    /// The first of its places that has it, unless it is named.
    pub(crate) fn search(&self) -> Place {
        let variables = || self.variables.iter().find_map(|name| variable(name));
        if let Some(named) = self.named.clone().or_else(variables) {
            return Place {
                found: Some(self.path(&named)),
                ..Place::default()
            };
        }
        self.search_in((self.places)())
    }

    fn search_in(&self, places: Vec<PathBuf>) -> Place {
        Place {
            found: places
                .iter()
                .map(|place| self.path(place))
                .find(|path| path.is_file()),
            searched: true,
            looked_in: places
                .iter()
                .map(|place| place.display().to_string())
                .collect(),
        }
    }
}

/// Toolkits that variables name, or that are in their usual places.
pub(crate) fn toolkits(variables: &[&str], usual: &str) -> impl Iterator<Item = PathBuf> {
    let named: Vec<PathBuf> = variables.iter().filter_map(|name| variable(name)).collect();
    named.into_iter().chain([PathBuf::from(usual)])
}

fn variable(name: &str) -> Option<PathBuf> {
    let value: Option<OsString> = env::var_os(name).filter(|value| !value.is_empty());
    value.map(PathBuf::from)
}

/// Files of Python packages, in the active virtual environment, the user's and the system's.
pub(crate) fn in_python(files: &[&str]) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = Vec::new();
    for root in ["VIRTUAL_ENV", "CONDA_PREFIX"]
        .into_iter()
        .filter_map(variable)
    {
        folders.extend(versions(&root.join("lib"), "site-packages"));
    }
    if let Some(home) = variable("HOME") {
        folders.extend(versions(&home.join(".local/lib"), "site-packages"));
    }
    folders.extend(versions(Path::new("/usr/local/lib"), "dist-packages"));
    folders.push("/usr/lib/python3/dist-packages".into());
    let file = |folder: &PathBuf| {
        files
            .iter()
            .map(|file| folder.join(file))
            .collect::<Vec<_>>()
    };
    folders.iter().flat_map(file).collect()
}

/// `lib/python3.*/packages`, the newest version first.
fn versions(lib: &Path, packages: &str) -> Vec<PathBuf> {
    let minor = |path: &PathBuf| {
        let name = path.file_name()?.to_str()?;
        name.strip_prefix("python3.")?.parse::<u32>().ok()
    };
    let entries = fs::read_dir(lib).into_iter().flatten().flatten();
    let mut found: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| Some((minor(&entry.path())?, entry.path())))
        .collect();
    found.sort_by_key(|(minor, _)| std::cmp::Reverse(*minor));
    found
        .into_iter()
        .map(|(_, path)| path.join(packages))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_place_that_has_the_file_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| folder.path().join(name));
        fs::create_dir_all(&b).unwrap();
        fs::write(b.join("mathematics.bc"), "").unwrap();
        let library = |named: Option<&Path>| Library {
            name: "mathematics",
            prefixes: &[],
            option: "--mathematics",
            named: named.map(Path::to_owned),
            variables: &[],
            places: Vec::new,
            file: Some("mathematics.bc"),
        };
        let place = library(None).search_in(vec![a.clone(), b.clone()]);
        assert_eq!(place.found, Some(b.join("mathematics.bc")));
        assert!(place.searched && place.looked_in.len() == 2);
        let place = library(None).search_in(vec![a.clone()]);
        assert_eq!(place.found, None);
        // A named path is kept, whether it exists or not.
        let place = library(Some(&a)).search();
        assert_eq!(place.found, Some(a.join("mathematics.bc")));
        assert!(!place.searched);
    }

    #[test]
    fn newer_pythons_come_first() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["python3.9", "python3.11", "python2.7", "other"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let expected = ["python3.11/p", "python3.9/p"].map(|name| folder.path().join(name));
        assert_eq!(versions(folder.path(), "p"), expected);
    }
}
