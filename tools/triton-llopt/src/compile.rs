//! Compilation: tile IR in, every form of the kernel out.

use std::collections::HashMap;
use std::path::PathBuf;

use llopt::{ArtifactKind, Compiler, Options, Source, Target, TargetMetadata, propose_split};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::failure;

/// The properties of a target (`cuda:90`), as JSON: Triton's description of it, and its limits.
#[pyfunction]
pub(crate) fn describe_target(py: Python<'_>, target: &str) -> PyResult<String> {
    let target = Target::parse(target)
        .map_err(|error| failure::raise(py, "UnknownTargetError", (error.to_string(),)))?;
    let TargetMetadata {
        backend,
        arch,
        warp_size,
    } = TargetMetadata::of(target);
    let facts = serde_json::json!({
        "backend": backend,
        "arch": arch,
        "warp_size": warp_size,
        "shared_memory_limit": target.shared_memory_limit(),
        "max_threads_per_block": target.max_threads_per_block(),
    });
    Ok(facts.to_string())
}

/// The result of a compilation.
#[pyclass(frozen, module = "triton_llopt._llopt")]
pub(crate) struct Compiled {
    /// Bytes, by the name of the form.
    artifacts: HashMap<&'static str, Vec<u8>>,
    /// Launch metadata as JSON, with Triton's keys.
    #[pyo3(get)]
    metadata: String,
    /// Seconds of each phase, in the order in which they ran, as JSON.
    #[pyo3(get)]
    timings: String,
    /// Rendered warnings.
    #[pyo3(get)]
    warnings: Vec<String>,
}

#[pymethods]
impl Compiled {
    /// The kernel as a `str`, for the forms that are text.
    fn text(&self, form: &str) -> PyResult<&str> {
        let bytes = self.find(form)?;
        std::str::from_utf8(bytes).map_err(|_| PyValueError::new_err(format!("{form} is no text")))
    }

    /// The kernel as `bytes`.
    fn bytes<'py>(&self, py: Python<'py>, form: &str) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, self.find(form)?))
    }
}

impl Compiled {
    fn find(&self, form: &str) -> PyResult<&[u8]> {
        let found = self.artifacts.get(form).map(Vec::as_slice);
        found.ok_or_else(|| PyValueError::new_err(format!("the form {form} was not asked for")))
    }
}

/// Compiles `source`, text or bytecode called `name` in diagnostics, for `target` (`cuda:90`), up to the last of
/// `forms`; the others are returned as well. Options have the names and the defaults of Triton's. The interpreter
/// lock is released meanwhile. With `split_k=0` no loop is shared, and the metadata has a `split_proposal`: the text of
/// a [`Proposal`](super::splitting::Proposal), or null.
#[pyfunction]
#[pyo3(signature = (
    source, name, target, forms, *, num_warps=None, num_stages=None, num_ctas=None,
    split_k=1, tile_parts=1, tile_rows=0, single_wave=false, streamed=false, enable_fp_fusion=true, maxnreg=None, line_info=true, libdevice=None, ocml=None,
    libraries=Vec::new(), enable_reflect_ftz=true, allow_flush_denorm=false, waves_per_eu=0,
    keep_print_calls=false, tensor_copies=None, persistent=None, dependent_launch=false,
))]
#[expect(
    clippy::too_many_arguments,
    reason = "keyword arguments of Python, one for each option"
)]
pub(crate) fn compile(
    py: Python<'_>,
    source: Vec<u8>,
    name: String,
    target: &str,
    forms: Vec<String>,
    num_warps: Option<u32>,
    num_stages: Option<u32>,
    num_ctas: Option<u32>,
    split_k: u32,
    tile_parts: u32,
    tile_rows: u32,
    single_wave: bool,
    streamed: bool,
    enable_fp_fusion: bool,
    maxnreg: Option<u32>,
    line_info: bool,
    libdevice: Option<PathBuf>,
    ocml: Option<PathBuf>,
    libraries: Vec<PathBuf>,
    enable_reflect_ftz: bool,
    allow_flush_denorm: bool,
    waves_per_eu: u32,
    keep_print_calls: bool,
    tensor_copies: Option<&str>,
    persistent: Option<&str>,
    dependent_launch: bool,
) -> PyResult<Compiled> {
    let target = Target::parse(target)
        .map_err(|error| failure::raise(py, "UnknownTargetError", (error.to_string(),)))?;
    let forms: Vec<ArtifactKind> = forms
        .iter()
        .map(|form| form.parse())
        .collect::<Result<_, _>>()
        .map_err(|error: llopt::UnknownKind| PyValueError::new_err(error.to_string()))?;
    let Some(&last) = forms.iter().max() else {
        return Err(PyValueError::new_err("no form is asked for"));
    };

    let mut options = Options::new(target);
    options.num_warps = num_warps;
    options.num_stages = num_stages.unwrap_or(options.num_stages);
    options.num_ctas = num_ctas;
    options.split_k = split_k.max(1);
    options.tile_parts = tile_parts;
    options.tile_rows = tile_rows;
    options.single_wave = single_wave;
    options.streamed = streamed;
    options.fp_fusion = enable_fp_fusion;
    options.max_registers = maxnreg;
    options.line_info = line_info;
    options.libdevice = libdevice;
    options.ocml = ocml;
    options.libraries = libraries;
    options.library_flushes_denormals = enable_reflect_ftz;
    options.flush_denormals = allow_flush_denorm;
    options.waves_per_eu = waves_per_eu;
    options.keep_print_calls = keep_print_calls;
    options.dependent_launch = dependent_launch;
    for (name, value) in [("tensor_copies", tensor_copies), ("persistent", persistent)] {
        let Some(value) = value else { continue };
        options
            .set(name, value)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
    }
    options.keep = forms;

    let source = Source::new(name, source);
    let (compilation, proposal) = py
        .detach(|| {
            let proposal = match split_k {
                0 => propose_split(&source, &options)?,
                _ => None,
            };
            let compilation = Compiler::new(options).compile(&source, last)?;
            Ok((compilation, proposal))
        })
        .map_err(|error| failure::of_compilation(py, &error, &source))?;
    let as_json = |result: serde_json::Result<String>| {
        result.map_err(|error| PyValueError::new_err(error.to_string()))
    };
    let proposal = proposal.map(|proposal| as_json(serde_json::to_string(&proposal)));
    let mut metadata = serde_json::json!(compilation.metadata);
    if split_k == 0 {
        metadata["split_proposal"] = serde_json::json!(proposal.transpose()?);
    }
    Ok(Compiled {
        metadata: metadata.to_string(),
        timings: as_json(serde_json::to_string(&compilation.timings))?,
        warnings: compilation
            .warnings
            .iter()
            .map(ToString::to_string)
            .collect(),
        artifacts: compilation
            .kept
            .into_iter()
            .chain([compilation.artifact])
            .map(|artifact| (artifact.kind().name(), artifact.into_bytes()))
            .collect(),
    })
}
