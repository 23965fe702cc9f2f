//! Programs outside this process: NVIDIA's assembler.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::metadata::Resources;
use crate::residency::{self, Block};
use crate::{Error, Options};

/// The path of `ptxas`: the option if given, else the environment variable `LLOPT_PTXAS`, else Triton's
/// `TRITON_PTXAS_PATH`, else `bin/ptxas` below `CUDA_HOME` or `CUDA_PATH`, else the search path, else
/// `/usr/local/cuda/bin/ptxas`.
///
/// # Errors
/// Of class [`Environment`](crate::ErrorClass::Environment): there is no such file, or it is in none of these places.
pub fn find_ptxas(option: Option<&Path>) -> Result<PathBuf, Error> {
    if let Some(path) = option {
        return existing(path, "option --ptxas");
    }
    for variable in ["LLOPT_PTXAS", "TRITON_PTXAS_PATH"] {
        if let Some(path) = set(variable) {
            return existing(Path::new(&path), variable);
        }
    }
    let toolkits = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(set);
    toolkits
        .map(|toolkit| Path::new(&toolkit).join("bin/ptxas"))
        .chain(on_search_path("ptxas"))
        .chain([PathBuf::from("/usr/local/cuda/bin/ptxas")])
        .find(|path| path.is_file())
        .ok_or_else(|| {
            Error::environment(
                "cannot make a cubin: no 'ptxas' found; it is part of every CUDA toolkit and of \
                 the Python package nvidia-cuda-nvcc, and is looked for in --ptxas, LLOPT_PTXAS, \
                 TRITON_PTXAS_PATH, CUDA_HOME, CUDA_PATH, and PATH",
            )
        })
}

fn set(variable: &str) -> Option<OsString> {
    env::var_os(variable).filter(|value| !value.is_empty())
}

fn existing(path: &Path, origin: &str) -> Result<PathBuf, Error> {
    if path.is_file() {
        return Ok(path.to_owned());
    }
    let path = path.display();
    Err(Error::environment(format!(
        "'{path}', given by {origin}, is not a file"
    )))
}

fn on_search_path(program: &str) -> impl Iterator<Item = PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let directories: Vec<PathBuf> = env::split_paths(&path).collect();
    let program = program.to_owned();
    directories
        .into_iter()
        .map(move |directory| directory.join(&program))
}

/// A message of `ptxas` that it deviates from the PTX.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Objection {
    /// Its subject.
    pub(crate) about: Subject,
    /// The message of `ptxas`.
    pub(crate) message: String,
}

/// What `ptxas` may do differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// It serialises warp-group products.
    Products,
    /// It ignores requests for numbers of registers.
    Registers,
}

/// The numbers of messages about code that is correct but slow.
const OBJECTIONS: &[(&str, Subject)] = &[
    ("C7507", Subject::Registers),
    ("C7508", Subject::Registers),
    ("C7510", Subject::Products),
    ("C7511", Subject::Products),
    ("C7512", Subject::Products),
    ("C7514", Subject::Products),
    ("C7515", Subject::Products),
    ("C7517", Subject::Products),
    ("C7518", Subject::Products),
    ("C7519", Subject::Products),
];

/// The objections in the text that `ptxas --verbose` prints, each once.
fn objections_in(said: &str) -> Vec<Objection> {
    let mut all: Vec<Objection> = Vec::new();
    for line in said.lines() {
        let known = OBJECTIONS
            .iter()
            .find(|(number, _)| line.contains(&format!("({number})")));
        let Some(&(number, about)) = known else {
            continue;
        };
        let text = line
            .split_once(&format!("({number})"))
            .map_or(line, |(_, text)| text);
        let objection = Objection {
            about,
            message: format!("ptxas {number}: {}", text.trim()),
        };
        if !all.contains(&objection) {
            all.push(objection);
        }
    }
    all
}

/// The result of assembling PTX.
pub(crate) struct Assembled {
    /// The object.
    pub(crate) cubin: Vec<u8>,
    /// Its resources.
    pub(crate) resources: Resources,
    /// Its deviations from the PTX.
    pub(crate) objections: Vec<Objection>,
}

/// Assembles PTX into a cubin; for few programs, or once more if [registers](crate::residency) may be distributed better.
///
/// # Errors
/// Of class [`Environment`](crate::ErrorClass::Environment) if `ptxas` is missing or cannot be run, of class
/// [`Bug`](crate::ErrorClass::Bug) if it rejects the PTX, with its message.
pub(crate) fn assemble_ptx(ptx: &str, block: Block, options: &Options) -> Result<Assembled, Error> {
    let is_free = options.max_registers.is_none();
    if is_free
        && options.few_programs
        && let Some(ptx) = residency::for_few_programs(ptx)
    {
        return assemble(&ptx, options);
    }
    let first = assemble(ptx, options)?;
    if !is_free {
        return Ok(first);
    }
    for again in block.again(ptx, &first.cubin, options.target) {
        // A single instruction may need more registers than one more block leaves, such as a warp-group product.
        let Ok(second) = assemble(&again, options) else {
            continue;
        };
        if block.is_worth_it(&first.cubin, &second.cubin, options.target) {
            return Ok(second);
        }
    }
    Ok(first)
}

/// Assembles PTX into a cubin.
///
/// # Errors
/// Those of [`assemble_ptx`].
fn assemble(ptx: &str, options: &Options) -> Result<Assembled, Error> {
    let ptxas = find_ptxas(options.ptxas.as_deref())?;
    let failed = |action: &str, error: std::io::Error| {
        Error::environment(format!("cannot {action} for ptxas: {error}"))
    };
    let directory = tempfile::Builder::new()
        .prefix("llopt-")
        .tempdir()
        .map_err(|error| failed("make a directory", error))?;
    let [input, output] = ["kernel.ptx", "kernel.cubin"].map(|name| directory.path().join(name));
    fs::write(&input, ptx).map_err(|error| failed("write the input", error))?;

    let mut command = Command::new(&ptxas);
    command
        .arg("--verbose")
        .arg(format!("--gpu-name={}", options.target.llvm_cpu()))
        .arg(format!("--fmad={}", options.fp_fusion));
    if options.line_info {
        command.arg("--generate-line-info");
    }
    if let Some(registers) = options.max_registers {
        command.arg(format!("--maxrregcount={registers}"));
    }
    command
        .args([OsStr::new("--output-file"), output.as_os_str()])
        .arg(&input)
        .stdin(Stdio::null());
    let outcome = command.output().map_err(|error| {
        Error::environment(format!("cannot run '{}': {error}", ptxas.display()))
    })?;
    let said = String::from_utf8_lossy(&outcome.stdout) + String::from_utf8_lossy(&outcome.stderr);
    if !outcome.status.success() {
        let said = said.trim_end();
        if is_about_assembly(ptx, said) {
            return Err(Error::refused_assembly(said));
        }
        return Err(Error::bug(format!(
            "ptxas ({}) refuses the PTX:\n{said}",
            outcome.status
        )));
    }
    let cubin = fs::read(&output).map_err(|error| failed("read the output", error))?;
    Ok(Assembled {
        cubin,
        resources: resources_in(&said),
        objections: objections_in(&said),
    })
}

/// Whether the first line that `ptxas` complains about, as in `ptxas kernel.ptx, line 12; error : …`, came from
/// inline assembly, which LLVM puts between two comments. llopt's own assembly is between comments, too, but is not
/// rejected.
fn is_about_assembly(ptx: &str, said: &str) -> bool {
    let line = said.split_once(", line ").and_then(|(_, rest)| {
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse::<usize>().ok()
    });
    let Some(line) = line else { return false };
    let mut inside = false;
    for text in ptx.lines().take(line) {
        match text.trim() {
            "// begin inline asm" => inside = true,
            "// end inline asm" => inside = false,
            _ => {}
        }
    }
    inside
}

/// The resources in the text that `ptxas --verbose` prints, such as
/// `Used 32 registers, used 1 barriers, 512 bytes smem` and `8 bytes spill stores`.
fn resources_in(said: &str) -> Resources {
    let before = |unit: &str| -> Option<u32> {
        let end = said.find(unit)?;
        let digits = said[..end].trim_end().rsplit(|c: char| !c.is_ascii_digit());
        digits.into_iter().next()?.parse().ok()
    };
    let spilled = [before(" bytes spill stores"), before(" bytes spill loads")];
    Resources {
        registers: before(" registers"),
        spilled_bytes: spilled.iter().flatten().copied().reduce(|a, b| a + b),
        static_shared: Some(before(" bytes smem").unwrap_or(0)),
        scratch: before(" bytes stack frame"),
        ..Resources::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_read_from_what_ptxas_prints() {
        let said = "ptxas info    : 0 bytes gmem\n\
             ptxas info    : Compiling entry function 'k' for 'sm_90a'\n\
             ptxas info    : Function properties for k\n    \
             16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n\
             ptxas info    : Used 32 registers, used 1 barriers, 512 bytes smem\n";
        let expected = Resources {
            registers: Some(32),
            spilled_bytes: Some(20),
            static_shared: Some(512),
            scratch: Some(16),
            ..Resources::default()
        };
        assert_eq!(resources_in(said), expected);
    }

    #[test]
    fn what_ptxas_does_otherwise_is_told_once() {
        let said = "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to \
             determine register count at entry.\n\
             ptxas info    : (C7517) warpgroup.wait is injected in around line 19 by compiler to allow \
             use of registers defined by GMMA in function 'k'\n\
             ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to \
             determine register count at entry.\n\
             ptxas info    : Used 30 registers, used 0 barriers\n";
        let found = objections_in(said);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].about, Subject::Registers);
        assert!(
            found[1]
                .message
                .starts_with("ptxas C7517: warpgroup.wait is injected")
        );
    }

    #[test]
    fn complaints_about_inline_assembly_are_told_apart() {
        let ptx =
            "add.s32 %r1, %r2, %r3;\n\t// begin inline asm\n\tgarbage\n\t// end inline asm\nret;\n";
        let said =
            |line: u32| format!("ptxas kernel.ptx, line {line}; fatal   : Parsing error near 'x'");
        assert!(is_about_assembly(ptx, &said(3)));
        assert!(!is_about_assembly(ptx, &said(1)) && !is_about_assembly(ptx, &said(5)));
        assert!(!is_about_assembly(ptx, "out of memory"));
    }

    #[test]
    fn a_path_that_is_not_a_file_is_named() {
        let error = find_ptxas(Some(Path::new("/nonexistent/ptxas"))).unwrap_err();
        assert_eq!(
            error.to_string(),
            "error: '/nonexistent/ptxas', given by option --ptxas, is not a file"
        );
    }
}
