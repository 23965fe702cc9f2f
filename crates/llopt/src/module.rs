//! Operations on a module before code generation: read it, check that it fits the options, run passes, print it.

use std::rc::Rc;

use llopt_dialects::tables::module as launch;
use llopt_dialects::tables::module::TARGET;
use llopt_mlir::diagnostic;
use llopt_mlir::ir::{AttributeExt, LocationExt, OperationExt};
use llopt_mlir::pass::{PipelineError, run_pipeline_sharing};
use llopt_plan::plans::Plans;
use llopt_plan::request::{CONVERSION_PLAN, GATHER_PLAN};
use llopt_target::Target;
use llopt_transforms::layouts::Unrelated;
use melior::Context;
use melior::ir::attribute::StringAttribute;
use melior::ir::{Module, OperationRef};

use crate::{
    Artifact, ArtifactKind, Compilation, Diagnostic, Error, Metadata, Options, Source, Timings,
};

/// Parses and verifies a source.
///
/// # Errors
/// Of class invalid input, with the messages of the parser or a verifier.
pub(crate) fn parse<'c>(context: &'c Context, source: &Source) -> Result<Module<'c>, Error> {
    llopt_mlir::parse_module(context, source.contents(), source.name()).map_err(|diagnostics| {
        Error::invalid(diagnostics.iter().map(Diagnostic::from_mlir).collect())
    })
}

/// Warps of a block that the module is laid out for, without those that only issue copies.
pub(crate) fn num_warps(module: &Module<'_>, options: &Options) -> u32 {
    let own = number(module.as_operation(), launch::NUM_WARPS).or(options.num_warps);
    own.unwrap_or(4)
}

/// Whether the module specifies the number of warps of its layouts.
pub(crate) fn has_layouts(module: &Module<'_>) -> bool {
    number(module.as_operation(), launch::NUM_WARPS).is_some()
}

/// The error for an op whose layouts are not related in a known way.
pub(crate) fn unrelated(unrelated: Unrelated<'_, '_>) -> Error {
    let operation = unrelated.operation;
    let reason = format!("it {}", unrelated.reason);
    Error::unsupported(location_of(operation), operation.name_str(), reason)
}

/// Checks that the loops of a module with layouts are shared by the blocks that the options name, if they name any.
///
/// # Errors
/// Of class invalid input if they are not: it is too late to share them.
pub(crate) fn check_split(module: &Module<'_>, options: &Options) -> Result<(), Error> {
    let root = module.as_operation();
    if options.split_k == 1 || launch::cluster_split(root) == options.split_k {
        return Ok(());
    }
    let message =
        "blocks can share loops of kernels without layouts (.ttir) only; this one has layouts";
    Err(Error::invalid(vec![Diagnostic::error(
        location_of(root),
        message.to_owned(),
    )]))
}

/// Checks that the layouts of a module are for the warps, blocks and the GPU of the options.
///
/// # Errors
/// Of class invalid input if one of them does not fit.
pub(crate) fn check_layouts(module: &Module<'_>, options: &Options) -> Result<(), Error> {
    let root = module.as_operation();
    let invalid =
        |message: String| Error::invalid(vec![Diagnostic::error(location_of(root), message)]);
    let num_warps = number(root, launch::NUM_WARPS).unwrap_or(4);
    let num_ctas = number(root, launch::NUM_CTAS).unwrap_or(1);
    let wanted = options.num_warps.filter(|_| !options.chooses_warps());
    if let Some(wanted) = wanted.filter(|&wanted| wanted != num_warps) {
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
    let threads = number(root, launch::THREADS_PER_WARP).unwrap_or(32);
    let written = root.attr(launch::TARGET).and_then(AttributeExt::as_str);
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
    check_threads(num_warps, target).map_err(invalid)
}

/// Whether a block can have this many warps; the reason otherwise.
pub(crate) fn check_threads(num_warps: u32, target: Target) -> Result<(), String> {
    let threads = u64::from(num_warps) * u64::from(target.warp_size());
    let most = target.max_threads_per_block();
    if threads > u64::from(most) {
        return Err(format!(
            "{num_warps} warps are {threads} threads of a block; {target} has {most} at most"
        ));
    }
    Ok(())
}

/// Writes the GPU into the module, where the passes that plan code read it.
pub(crate) fn set_target<'c>(context: &'c Context, module: &Module<'c>, target: Target) {
    let name = StringAttribute::new(context, &target.to_string());
    module.as_operation().set_attr(TARGET, name.into());
}

/// Writes the requested kinds of plans to the module, where code generation reads them.
pub(crate) fn set_requests<'c>(context: &'c Context, module: &Module<'c>, options: &Options) {
    let conversion = options.conversion_plan.map(|plan| plan.to_string());
    let gather = options.gather_plan.map(|plan| plan.to_string());
    for (name, plan) in [(CONVERSION_PLAN, conversion), (GATHER_PLAN, gather)] {
        if let Some(plan) = plan {
            let plan = StringAttribute::new(context, &plan);
            module.as_operation().set_attr(name, plan.into());
        }
    }
}

/// Runs a textual pipeline whose passes share plans.
///
/// # Errors
/// Of class invalid input if a pass reports an error, of class bug if the pipeline is malformed.
pub(crate) fn run_passes(
    context: &Context,
    module: &Module<'_>,
    pipeline: &str,
    plans: &Rc<Plans>,
) -> Result<(), Error> {
    let (result, diagnostics) = diagnostic::capture(context, || {
        run_pipeline_sharing(module.as_operation(), pipeline, false, plans)
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
pub(crate) fn text(module: &Module<'_>) -> String {
    format!("{}\n", module.as_operation())
}

/// The module as the artefact of a compilation that ends before code generation.
pub(crate) fn printed(
    module: &Module<'_>,
    kind: ArtifactKind,
    options: &Options,
    timings: Timings,
) -> Compilation {
    let root = module.as_operation();
    let num_warps = number(root, launch::NUM_WARPS).or(options.num_warps);
    let num_ctas = number(root, launch::NUM_CTAS).or(options.num_ctas);
    let num_ctas = num_ctas.unwrap_or(1) * launch::cluster_split(root);
    Compilation {
        artifact: Artifact::new(kind, text(module)),
        kept: Vec::new(),
        metadata: Metadata::of_module(num_warps.unwrap_or(4), num_ctas, options),
        libraries: Vec::new(),
        timings,
        warnings: Vec::new(),
    }
}

fn number(operation: OperationRef<'_, '_>, name: &str) -> Option<u32> {
    u32::try_from(operation.attr(name)?.as_bits()?).ok()
}

/// The location of an op as `file:line:col`.
pub(crate) fn location_of(operation: OperationRef<'_, '_>) -> String {
    match operation.loc().file_position() {
        Some((file, line, column)) => format!("{file}:{line}:{column}"),
        None => String::new(),
    }
}
