//! What the pipelines do with a module before code generation: read it, check that it fits the
//! options, run passes over it, print it.

use llopt_mlir::diagnostic;
use llopt_mlir::ir::{AttributeExt, LocationExt, OperationExt};
use llopt_mlir::pass::{PipelineError, run_pipeline};
use llopt_target::Target;
use melior::Context;
use melior::ir::{Module, OperationRef};

use crate::{
    Artifact, ArtifactKind, Compilation, Diagnostic, Error, Metadata, Options, Source, Timings,
};

/// Parses and verifies a source.
///
/// # Errors
/// Of class invalid input, with what the parser or a verifier said.
pub(crate) fn parse<'c>(context: &'c Context, source: &Source) -> Result<Module<'c>, Error> {
    llopt_mlir::parse_module(context, source.contents(), source.name()).map_err(|diagnostics| {
        Error::invalid(diagnostics.iter().map(Diagnostic::from_mlir).collect())
    })
}

/// Checks that the module carries layouts, and that they are for the warps, blocks and the GPU of
/// the options.
///
/// # Errors
/// Of class unsupported without layouts, of class invalid input if something does not fit.
pub(crate) fn require_layouts(module: &Module<'_>, options: &Options) -> Result<(), Error> {
    let root = module.as_operation();
    let invalid =
        |message: String| Error::invalid(vec![Diagnostic::error(location_of(root), message)]);
    let Some(num_warps) = number(root, "ttg.num-warps") else {
        return Err(Error::unsupported(
            location_of(root),
            root.name_str(),
            "it carries no layouts, and the pass convert-triton-to-tritongpu that would choose \
             them does not exist yet",
        ));
    };
    let num_ctas = number(root, "ttg.num-ctas").unwrap_or(1);
    if let Some(wanted) = options.num_warps.filter(|&wanted| wanted != num_warps) {
        return Err(invalid(format!(
            "the module is laid out for {num_warps} warps, not for the {wanted} of --num-warps"
        )));
    }
    if let Some(wanted) = options.num_ctas.filter(|&wanted| wanted != num_ctas) {
        return Err(invalid(format!(
            "the module is laid out for {num_ctas} blocks per cluster, not for the {wanted} of \
             --num-ctas"
        )));
    }
    let target = options.target;
    let threads = number(root, "ttg.threads-per-warp").unwrap_or(32);
    let written = root.attr("ttg.target").and_then(AttributeExt::as_str);
    let vendor = written
        .and_then(|name| Target::parse(name).ok())
        .map(Target::vendor);
    if threads != target.warp_size() || vendor.is_some_and(|vendor| vendor != target.vendor()) {
        let written = written.unwrap_or("a target it does not name");
        return Err(invalid(format!(
            "the module is laid out for {written} with {threads} threads per warp, which {target} \
             cannot run"
        )));
    }
    Ok(())
}

/// Runs a textual pipeline.
///
/// # Errors
/// Of class invalid input if a pass reports an error, of class bug if the pipeline is malformed.
pub(crate) fn run_passes(
    context: &Context,
    module: &Module<'_>,
    pipeline: &str,
) -> Result<(), Error> {
    let (result, diagnostics) = diagnostic::capture(context, || {
        run_pipeline(module.as_operation(), pipeline, false)
    });
    match result {
        Ok(()) => Ok(()),
        Err(PipelineError::Failed { .. }) if !diagnostics.is_empty() => Err(Error::invalid(
            diagnostics.iter().map(Diagnostic::from_mlir).collect(),
        )),
        Err(error) => Err(Error::bug(error.to_string())),
    }
}

/// The module as text.
pub(crate) fn printed(
    module: &Module<'_>,
    kind: ArtifactKind,
    options: &Options,
    timings: Timings,
) -> Compilation {
    let root = module.as_operation();
    let num_warps = number(root, "ttg.num-warps").or(options.num_warps);
    let num_ctas = number(root, "ttg.num-ctas").or(options.num_ctas);
    Compilation {
        artifact: Artifact::new(kind, format!("{root}\n")),
        metadata: Metadata::of_module(num_warps.unwrap_or(4), num_ctas.unwrap_or(1), options),
        timings,
        warnings: Vec::new(),
    }
}

fn number(operation: OperationRef<'_, '_>, name: &str) -> Option<u32> {
    u32::try_from(operation.attr(name)?.as_bits()?).ok()
}

/// The place of an op as `file:line:col`.
fn location_of(operation: OperationRef<'_, '_>) -> String {
    match operation.loc().file_position() {
        Some((file, line, column)) => format!("{file}:{line}:{column}"),
        None => String::new(),
    }
}
