//! Whole modules through the readers and writers of text and bytecode.

use melior::{
    Context,
    dialect::DialectRegistry,
    ir::{Module, operation::OperationLike},
};
use std::{
    fs,
    path::{Path, PathBuf},
};

fn context() -> Context {
    let registry = DialectRegistry::new();
    llopt_dialects::register(&registry).unwrap();
    let context = Context::new();
    context.append_dialect_registry(&registry);
    context
}

fn parse<'c>(context: &'c Context, source: &[u8], name: &str) -> Result<Module<'c>, String> {
    llopt_mlir::parse_module(context, source, name).map_err(|diagnostics| {
        let lines: Vec<_> = diagnostics.iter().map(ToString::to_string).collect();
        lines.join("\n")
    })
}

/// The modules under `examples/`, of all targets.
fn examples() -> Vec<PathBuf> {
    fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, files);
            } else if path
                .extension()
                .is_some_and(|extension| extension == "ttir" || extension == "ttgir")
            {
                files.push(path);
            }
        }
    }
    let mut files = Vec::new();
    collect(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples"),
        &mut files,
    );
    files.sort();
    assert!(files.len() > 50, "{} examples", files.len());
    files
}

#[test]
fn examples_survive_text_and_bytecode() {
    let context = context();
    for path in examples() {
        let name = path.to_string_lossy();
        let source = fs::read(&path).unwrap();
        let first = parse(&context, &source, &name).unwrap_or_else(|error| panic!("{error}"));
        let printed = first.as_operation().to_string();
        let second = parse(&context, printed.as_bytes(), &name).unwrap();
        assert_eq!(second.as_operation().to_string(), printed, "{name}");
        let third = parse(&context, &first.as_operation().write_bytecode(), &name).unwrap();
        assert_eq!(third.as_operation().to_string(), printed, "{name}");
    }
}
