//! Every file of `examples/` with the command: printed text parses and prints the same again, and compilation gives
//! assembly, and an object where the environment specifies the vendor's assembler (`cargo xtask test` does).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fs, thread};

const LLOPT: &str = env!("CARGO_BIN_EXE_llopt");

/// The variables with the paths of device libraries.
const LIBRARIES: [&str; 2] = ["LLOPT_LIBDEVICE", "LLOPT_OCML"];

fn folders() -> Vec<PathBuf> {
    sorted(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples"),
        |path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().contains('-'))
        },
    )
}

fn sorted(folder: &Path, wanted: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .expect("the examples are in the repository")
        .map(|entry| entry.expect("the folder can be listed").path())
        .filter(|path| wanted(path))
        .collect();
    paths.sort();
    paths
}

/// The error of compiling one file to one kind, if there is one.
fn complaint(source: &Path, target: &str, kind: &str, folder: &Path) -> Option<String> {
    let name = source.file_stem()?.to_string_lossy().into_owned();
    let stem = format!("{}.{name}", target.replace(':', "-"));
    let output = folder.join(format!("{stem}.{kind}"));
    let metadata = folder.join(format!("{stem}.{kind}.json"));
    let done = Command::new(LLOPT)
        .arg("compile")
        .arg(source)
        .args(["--target", target, "--emit", kind, "-o"])
        .arg(&output)
        .arg("--metadata")
        .arg(&metadata)
        .output()
        .expect("the command starts");
    let said = String::from_utf8_lossy(&done.stderr);
    if !done.status.success() {
        let library_is_missing = LIBRARIES
            .iter()
            .any(|name| said.contains(name) && env::var_os(name).is_none());
        return (!library_is_missing).then(|| format!("{target} {name} to {kind}: {said}"));
    }
    let text = fs::read_to_string(&metadata).expect("the metadata was written");
    let facts: serde_json::Value = serde_json::from_str(&text).expect("the metadata is JSON");
    let made = fs::read(&output).expect("the artefact was written");
    let symbol = facts["name"].as_str().unwrap_or_default().as_bytes();
    let defines_kernel = !symbol.is_empty() && made.windows(symbol.len()).any(|w| w == symbol);
    (!defines_kernel).then(|| format!("{target} {name} to {kind}: no symbol for the kernel"))
}

/// The example files of each target, by the target's name.
fn examples() -> Vec<(String, Vec<PathBuf>)> {
    let targets: Vec<_> = folders()
        .into_iter()
        .map(|folder| {
            let name = folder
                .file_name()
                .expect("a folder has a name")
                .to_string_lossy();
            let files = sorted(&folder, |path| {
                path.extension().is_some_and(|e| e == "ttgir")
            });
            assert!(files.len() >= 12, "{name} has its examples");
            (name.replacen('-', ":", 1), files)
        })
        .collect();
    assert_eq!(targets.len(), 7, "one folder for each target");
    targets
}

/// The output of `llopt` for a file, as the optimiser without passes.
fn printed(file: &Path) -> String {
    let done = Command::new(LLOPT)
        .arg(file)
        .output()
        .expect("the command starts");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{}: {said}", file.display());
    String::from_utf8(done.stdout).expect("the text is UTF-8")
}

#[test]
fn printed_text_parses_and_prints_the_same() {
    let scratch = tempfile::tempdir().expect("a folder for outputs");
    let again = scratch.path().join("again.ttgir");
    for file in examples().into_iter().flat_map(|(_, files)| files) {
        let once = printed(&file);
        fs::write(&again, &once).expect("the text can be written");
        assert_eq!(once, printed(&again), "{}", file.display());
    }
}

#[test]
fn examples_compile() {
    let mut work = Vec::new();
    for (target, files) in examples() {
        let (assembly, object, program) = if target.starts_with("cuda:") {
            ("ptx", "cubin", "LLOPT_PTXAS")
        } else {
            ("amdgcn", "hsaco", "LLOPT_LLD")
        };
        for file in files {
            work.push((file.clone(), target.clone(), assembly));
            if env::var_os(program).is_some() {
                work.push((file, target.clone(), object));
            }
        }
    }
    let scratch = tempfile::tempdir().expect("a folder for outputs");
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut complaints = Vec::new();
        while let Some((file, target, kind)) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
            complaints.extend(complaint(file, target, kind, scratch.path()));
        }
        complaints
    };
    // Two at a time, since most of the time is spent in the child processes.
    let complaints: Vec<String> = thread::scope(|scope| {
        let workers = [scope.spawn(worker), scope.spawn(worker)];
        workers
            .into_iter()
            .flat_map(|w| w.join().expect("no worker panics"))
            .collect()
    });
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
