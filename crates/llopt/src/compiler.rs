//! The phases of a compilation from a source to an artefact, and the function that runs them.
//!
//! The passes of a module before code generation are data: [`crate::pipeline`].

use std::rc::Rc;

use inkwell::targets::TargetMachine;
use llopt_codegen::error::CodegenError;
use llopt_codegen::llvm::diagnostics::Diagnostics;
use llopt_codegen::llvm::machine::Machine;
use llopt_codegen::walk::location::describe;
use llopt_codegen::walk::lower::LoweredModule;
use llopt_codegen::{llvm::device_library, llvm::emit, llvm::optimize, walk::lower};
use llopt_dialects::tt::ExternElementwiseOp;
use llopt_dialects::ttg::WarpSpecializeOp;
use llopt_dialects::ttng::WarpGroupDotOp;
use llopt_mlir::ir::{OperationExt, Walk};
use llopt_plan::plans::Plans;
use llopt_transforms::axis::AxisAnalysis;
use melior::Context;
use melior::ir::Module;
use melior::ir::operation::OperationLike;

use crate::own_thread::in_own_thread_within;
use crate::pipeline::{self, Stage};
use crate::residency::Block;
use crate::toolchain::{Objection, Subject};
use crate::{
    Artifact, ArtifactKind, Compilation, Diagnostic, Error, ErrorClass, Metadata, Options,
    Severity, Source, Timings, code_object, input, isolation, module, session, toolchain,
};

/// Compiles modules, one per call. It has no state except its options: any number of threads may use one at once.
#[derive(Clone, Debug)]
pub struct Compiler {
    options: Options,
}

impl Compiler {
    /// A compiler with these options.
    pub fn new(options: Options) -> Self {
        Self { options }
    }

    /// Its options.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Compiles a module from its form to the requested form.
    ///
    /// # Errors
    /// See [`ErrorClass`]. A bug in llopt writes the source to a file of the
    /// [reproducer directory](Options::reproducer_directory).
    pub fn compile(&self, source: &Source, kind: ArtifactKind) -> Result<Compilation, Error> {
        let target = self.options.target;
        if !kind.exists_for(target) {
            let message = format!("there is no {kind} for {target}");
            return Err(Error::invalid(vec![Diagnostic::error("", message)]));
        }
        if let Some(defect) = Diagnostic::of_source(source) {
            return Err(Error::invalid(vec![defect]));
        }
        let (input, options) = (source.clone(), self.options.clone());
        in_own_thread_within(Some(self.options.budget), move || {
            run(&input, &options, kind)
        })
        .map_err(|error| match error.class() {
            ErrorClass::Bug => match self.reproducer(source, kind, &error) {
                Some(path) => error.with_reproducer(path),
                None => error,
            },
            _ => error,
        })
    }

    /// Writes the source after a comment with the options and the error.
    fn reproducer(
        &self,
        source: &Source,
        kind: ArtifactKind,
        error: &Error,
    ) -> Option<std::path::PathBuf> {
        let directory = self.options.reproducer_directory.as_deref()?;
        let comment = source.text().map_or_else(String::new, |_| {
            let (version, target) = (crate::VERSION, self.options.target);
            format!("llopt {version} compile --target {target} --emit {kind}\n{error}")
        });
        isolation::write_reproducer(directory, &comment, source.contents())
    }
}

/// All phases, from text to the artefact, in the order in which they run.
fn run(source: &Source, options: &Options, kind: ArtifactKind) -> Result<Compilation, Error> {
    let target = options.target;
    let codegen = options.codegen();
    let mut time = Timings::default();
    let mut kept = Vec::new();
    let keep = |form: ArtifactKind| form != kind && options.keep.contains(&form);

    let context = time.phase("context", session::shared_context)?;
    let module = time.phase("parse", || input::read(&context, source, options))?;
    if kind == ArtifactKind::Ttir {
        return Ok(module::printed(&module, kind, options, time));
    }
    if keep(ArtifactKind::Ttir) && !module::has_layouts(&module) {
        let text = time.phase("print", || module::text(&module));
        kept.push(Artifact::new(ArtifactKind::Ttir, text));
    }
    to_layouts(&context, &module, options, &mut time)?;
    if kind == ArtifactKind::Ttgir {
        return Ok(module::printed(&module, kind, options, time));
    }
    if keep(ArtifactKind::Ttgir) {
        let text = time.phase("print", || module::text(&module));
        kept.push(Artifact::new(ArtifactKind::Ttgir, text));
    }

    let llvm = inkwell::context::Context::create();
    let said = Diagnostics::of(&llvm);
    let machine = time.phase("target machine", || Machine::of(target))?;
    let lowered = to_llvm(&context, &module, &llvm, &machine, options, &mut time)?;
    let mut metadata = Metadata::of(&lowered.metadata, options);
    let kernel = lowered.module;
    let mut assembly = None;
    if options.optimize {
        let optimized = time.phase("optimise", || optimize::optimize(&kernel, target, &machine))?;
        assembly = optimized.assembly;
    }

    if keep(ArtifactKind::Llvm) {
        let text = time.phase("print", || kernel.print_to_string().to_string());
        kept.push(Artifact::new(ArtifactKind::Llvm, text));
    }

    let mut objections = Vec::new();
    let artifact = match kind {
        ArtifactKind::Ttir | ArtifactKind::Ttgir | ArtifactKind::Llvm => time.phase("emit", || {
            Artifact::new(kind, kernel.print_to_string().to_string())
        }),
        ArtifactKind::Ptx | ArtifactKind::Amdgcn => {
            let text = match assembly {
                Some(text) => Ok(text),
                None => time.phase("emit", || emit::assembly(kernel, target, &machine)),
            };
            Artifact::new(kind, unless_refused(&said, text)?)
        }
        ArtifactKind::Cubin => {
            let ptx = time.phase("emit", || emit::assembly(kernel, target, &machine));
            let ptx = unless_refused(&said, ptx)?;
            if keep(ArtifactKind::Ptx) {
                kept.push(Artifact::new(ArtifactKind::Ptx, ptx.clone()));
            }
            let block = Block {
                threads: metadata.num_warps * metadata.warp_size,
                shared: metadata.shared.into(),
            };
            let assembled =
                time.phase("assemble", || toolchain::assemble_ptx(&ptx, block, options))?;
            metadata.resources = Some(assembled.resources);
            let told = assembled.objections.into_iter();
            objections.extend(told.map(|objection| located(&module, objection)));
            Artifact::new(kind, assembled.cubin)
        }
        ArtifactKind::Hsaco => {
            let object = time.phase("emit", || emit::object(kernel, target, &machine));
            let object = unless_refused(&said, object)?;
            let linked = time.phase("link", || emit::link_code_object(&object, &codegen))?;
            metadata.resources = code_object::resources(&linked, &metadata.name);
            Artifact::new(kind, linked)
        }
    };
    let warnings = said.take_warnings();
    Ok(Compilation {
        artifact,
        kept,
        metadata,
        libraries: lowered.libraries,
        timings: time,
        warnings: warnings
            .iter()
            .map(|text| Diagnostic::from_llvm(Severity::Warning, text))
            .chain(objections)
            .collect(),
    })
}

/// The assembler's objection, with the location of the first op that may have caused it.
fn located(module: &Module<'_>, objection: Objection) -> Diagnostic {
    let mut first = None;
    module
        .as_operation()
        .for_each_op(Walk::PreOrder, |operation| {
            let is_meant = match objection.about {
                Subject::Products => WarpGroupDotOp::of(operation).is_some(),
                Subject::Registers => WarpSpecializeOp::of(operation).is_some(),
            };
            if is_meant && first.is_none() {
                first = Some(module::location_of(operation));
            }
        });
    Diagnostic {
        severity: Severity::Warning,
        ..Diagnostic::error(first.unwrap_or_default(), objection.message)
    }
}

/// The phases that choose layouts for a module without layouts, and check the layouts of one that has them.
///
/// # Errors
/// See [`ErrorClass`].
pub(crate) fn to_layouts<'c>(
    context: &'c Context,
    module: &Module<'c>,
    options: &Options,
    time: &mut Timings,
) -> Result<(), Error> {
    let plans = Rc::new(Plans::new(options.target));
    if module::has_layouts(module) {
        module::check_split(module, options)?;
    } else {
        pipeline::run(Stage::Tiles, context, module, options, &plans, time)?;
    }
    pipeline::run(Stage::Layouts, context, module, options, &plans, time)
}

/// The phases from layouts to LLVM IR that is linked but not optimised.
///
/// # Errors
/// See [`ErrorClass`].
pub(crate) fn to_llvm<'c, 'ctx>(
    context: &'c Context,
    module: &Module<'c>,
    llvm: &'ctx inkwell::context::Context,
    machine: &TargetMachine,
    options: &Options,
    time: &mut Timings,
) -> Result<LoweredModule<'ctx>, Error> {
    let target = options.target;
    let codegen = options.codegen();
    let plans = Rc::new(Plans::new(target));
    pipeline::run(Stage::Memory, context, module, options, &plans, time)?;
    let facts = time.phase("axis info", || {
        AxisAnalysis::with_proofs(module.as_operation()).into_facts()
    });
    let mut lowered = time.phase("lower", || {
        lower::lower(module, llvm, machine, &facts, &plans, &codegen)
    })?;
    lowered.libraries = time.phase("link libraries", || {
        let optimizer = options.optimize.then_some(machine);
        device_library::link(llvm, &lowered.module, target, optimizer, &codegen)
            .map_err(|error| at_its_call(error, module))
    })?;
    Ok(lowered)
}

/// An error about a function that the kernel names is one of the kernel, at the operation that names it.
fn at_its_call(error: CodegenError, module: &Module<'_>) -> CodegenError {
    let CodegenError::UndefinedFunction { function, .. } = &error else {
        return error;
    };
    let mut named = None;
    module
        .as_operation()
        .for_each_op(Walk::PreOrder, |operation| {
            let call = ExternElementwiseOp::of(operation);
            if named.is_none() && call.is_some_and(|call| call.symbol() == *function) {
                named = Some(describe(operation.location()));
            }
        });
    match named {
        Some(location) => CodegenError::Invalid {
            location,
            message: error.to_string(),
        },
        None => error,
    }
}

/// The result of the back end, unless LLVM has reported an error meanwhile: then the result may differ from the
/// kernel's meaning.
fn unless_refused<T>(said: &Diagnostics<'_>, result: Result<T, CodegenError>) -> Result<T, Error> {
    let errors = said.take_errors();
    if errors.is_empty() {
        return Ok(result?);
    }
    Err(Error::from_llvm(&errors.join("\n")))
}
