//! Source files of a crate that import each other in a cycle.
//!
//! A file imports another when a path in it (in a `use`, or in code, beginning with `crate`, `super`, `self` or a
//! child module) leads to an item that the other file defines. A re-export is followed: a file that names `a::Item`
//! imports the file that defines `Item`, not the file of `a` that re-exports it. Tests are not counted, and a `mod`
//! line is not an import.
//!
//! Files in a cycle can only be read, moved and tested together, so there must be none.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::Finding;
use super::rust::{self, Import};

/// One source file of a crate.
struct Source {
    path: PathBuf,
    /// Its position in the tree of modules.
    module: Vec<String>,
    imports: Vec<Import>,
    /// Paths outside of `use`.
    paths: Vec<Vec<String>>,
    /// Names of the items that it defines.
    defines: BTreeSet<String>,
    /// All words outside of `use`.
    words: BTreeSet<String>,
}

impl Source {
    fn new(path: &Path, module: Vec<String>, text: &str) -> Self {
        let code = rust::code(text);
        let (imports, rest) = rust::imports(&code);
        let words: Vec<&str> = rust::words(&rest).collect();
        // `mod name;` only declares the file.
        let used = (0..words.len()).filter(|&at| at == 0 || words[at - 1] != "mod");
        let keywords = [
            "fn",
            "struct",
            "enum",
            "trait",
            "type",
            "const",
            "static",
            "union",
            "macro_rules",
        ];
        let defined = words.windows(2).filter(|pair| keywords.contains(&pair[0]));
        Self {
            path: path.to_path_buf(),
            module,
            imports,
            paths: rust::inner_paths(&rest),
            defines: defined.map(|pair| pair[1].to_owned()).collect(),
            words: used.map(|at| words[at].to_owned()).collect(),
        }
    }
}

/// The files of one crate.
struct Crate {
    sources: Vec<Source>,
    modules: BTreeMap<Vec<String>, usize>,
}

impl Crate {
    fn new(sources: Vec<Source>) -> Self {
        let modules = sources.iter().enumerate();
        let modules = modules.map(|(index, source)| (source.module.clone(), index));
        Self {
            modules: modules.collect(),
            sources,
        }
    }

    /// The path from the root of the crate, if it leads into the crate.
    fn absolute(&self, from: usize, path: &[String]) -> Option<Vec<String>> {
        let here = &self.sources[from].module;
        let mut rest = path;
        let mut base = match path.first()?.as_str() {
            "crate" => Vec::new(),
            "self" | "super" => here.clone(),
            child => {
                let mut module = here.clone();
                module.push(child.to_owned());
                self.modules.contains_key(&module).then(|| here.clone())?
            }
        };
        while let Some((first, others)) = rest.split_first() {
            match first.as_str() {
                "crate" | "self" => {}
                "super" => {
                    base.pop();
                }
                _ => break,
            }
            rest = others;
        }
        base.extend(rest.iter().cloned());
        Some(base)
    }

    /// The file that defines what an absolute path leads to.
    fn file_of(&self, path: &[String], depth: usize) -> Option<usize> {
        let (length, file) = (0..=path.len())
            .rev()
            .find_map(|length| Some((length, *self.modules.get(&path[..length])?)))?;
        let Some(item) = path.get(length).filter(|_| depth < 8) else {
            return Some(file);
        };
        let source = &self.sources[file];
        if source.defines.contains(item) {
            return Some(file);
        }
        let named = source.imports.iter().filter(|import| import.name == *item);
        let globs = source.imports.iter().filter(|import| import.name == "*");
        for import in named.chain(globs) {
            let Some(mut target) = self.absolute(file, &import.path) else {
                continue;
            };
            if import.name == "*" {
                target.pop();
                target.push(item.clone());
            }
            target.extend(path[length + 1..].iter().cloned());
            let found = self.file_of(&target, depth + 1);
            let defines = |at: usize| self.sources[at].defines.contains(item);
            if let Some(found) = found
                && (import.name != "*" || defines(found))
            {
                return Some(found);
            }
        }
        Some(file)
    }

    /// The files that a file imports.
    fn imported(&self, from: usize) -> BTreeSet<usize> {
        let source = &self.sources[from];
        // An item that is re-exported and not used here is not an import of this file.
        let used = source
            .imports
            .iter()
            .filter(|import| !import.public || source.words.contains(&import.name));
        let paths = used.map(|import| &import.path).chain(&source.paths);
        let files = paths.filter_map(|path| self.file_of(&self.absolute(from, path)?, 0));
        files.filter(|&file| file != from).collect()
    }

    /// The cycles: files that reach each other, as sorted lists.
    fn circles(&self) -> Vec<Vec<PathBuf>> {
        let count = self.sources.len();
        let direct: Vec<BTreeSet<usize>> = (0..count).map(|file| self.imported(file)).collect();
        let reached: Vec<BTreeSet<usize>> = (0..count)
            .map(|from| {
                let mut reached = BTreeSet::new();
                let mut open = vec![from];
                while let Some(file) = open.pop() {
                    open.extend(direct[file].iter().filter(|&&next| reached.insert(next)));
                }
                reached
            })
            .collect();
        let mut circles = BTreeSet::new();
        for from in (0..count).filter(|&from| reached[from].contains(&from)) {
            let both = reached[from]
                .iter()
                .filter(|&&to| reached[to].contains(&from));
            let mut files: Vec<PathBuf> = both.map(|&to| self.sources[to].path.clone()).collect();
            files.sort();
            circles.insert(files);
        }
        circles.into_iter().collect()
    }
}

/// The crate's folder and the module of a source file; `None` for a test, an example or a build script.
fn place(path: &Path) -> Option<(PathBuf, Vec<String>)> {
    let text = path.to_str()?;
    let (folder, inside) = text.split_once("/src/")?;
    let inside = inside.strip_suffix(".rs")?;
    let mut module: Vec<String> = inside.split('/').map(str::to_owned).collect();
    match module.last()?.as_str() {
        "mod" => {
            module.pop();
        }
        "lib" | "main" if module.len() == 1 => module.clear(),
        _ => {}
    }
    (!inside.starts_with("bin/")).then(|| (folder.into(), module))
}

/// Finds cycles.
pub fn check(files: &[(&Path, &str)]) -> Vec<Finding> {
    let mut crates: BTreeMap<PathBuf, Vec<Source>> = BTreeMap::new();
    for (path, text) in files {
        if let Some((folder, module)) = place(path) {
            let sources = crates.entry(folder).or_default();
            sources.push(Source::new(path, module, text));
        }
    }
    let circles: Vec<Vec<PathBuf>> = crates
        .into_values()
        .flat_map(|sources| Crate::new(sources).circles())
        .collect();
    circles
        .into_iter()
        .map(|circle| {
            let names: Vec<_> = circle
                .iter()
                .map(|file| file.display().to_string())
                .collect();
            let text = format!("files that import each other: {}", names.join(", "));
            Finding::of_file(&circle[0], text)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<_> = files
            .iter()
            .map(|&(path, text)| (Path::new(path), text))
            .collect();
        let findings = check(&files);
        findings.into_iter().map(|finding| finding.text).collect()
    }

    #[test]
    fn files_that_import_each_other_are_found() {
        let files = [
            ("c/src/lib.rs", "mod a;\nmod b;\nmod d;"),
            ("c/src/a.rs", "use crate::b::B;\npub struct A;"),
            ("c/src/b.rs", "pub struct B(super::d::D);"),
            ("c/src/d.rs", "use super::a::A as Other;\npub struct D;"),
        ];
        let text = "files that import each other: c/src/a.rs, c/src/b.rs, c/src/d.rs";
        assert_eq!(circles(&files), [text]);
        assert!(circles(&files[..3]).is_empty());
    }

    #[test]
    fn a_file_that_hands_items_on_is_looked_through() {
        let files = [
            ("c/src/lib.rs", "mod a;"),
            (
                "c/src/a/mod.rs",
                "mod b;\nmod d;\npub use b::*;\npub use d::D;",
            ),
            ("c/src/a/b.rs", "pub struct B;"),
            ("c/src/a/d.rs", "use crate::a::B;\npub struct D;"),
        ];
        assert!(circles(&files).is_empty());
    }

    #[test]
    fn a_parent_whose_item_a_child_uses_does_not_use_the_child() {
        let child = ("c/src/a/b.rs", "use super::A;\npub fn b(_: A) {}");
        let parent = (
            "c/src/a.rs",
            "mod b;\npub struct A;\npub fn c() { b::b(A) }",
        );
        // A call through the bare name of a child module is written without `use`; it is not detected.
        assert!(circles(&[parent, child]).is_empty());
        let parent = (
            "c/src/a.rs",
            "mod b;\nuse b::b;\npub struct A;\nfn c() { b(A) }",
        );
        assert_eq!(circles(&[parent, child]).len(), 1);
    }

    #[test]
    fn tests_may_import_what_imports_them() {
        let files = [
            ("c/src/a.rs", "use crate::b::B;\npub struct A;"),
            (
                "c/src/b.rs",
                "pub struct B;\n#[cfg(test)]\nmod tests { use crate::a::A; }",
            ),
        ];
        assert!(circles(&files).is_empty());
    }
}
