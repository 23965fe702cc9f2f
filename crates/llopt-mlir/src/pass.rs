//! Passes written in Rust.
//!
//! A [`PassSpec`] is a `static` with a plain function: a pass has no state of its own except its options, because
//! MLIR clones passes for its threads. Once registered, a pass is selected by `--argument` on the command line of
//! [`crate::opt_main`] and by its argument in textual pipelines; [`run_pipeline`] runs such a pipeline on an
//! operation.

pub(crate) mod hooks;
mod register;

use crate::{
    diagnostic::Complaint,
    ffi::{self, LloptSink},
};
use melior::ir::OperationRef;
use std::{any::Any, cell::RefCell, rc::Rc, str::FromStr};

/// A pass as data.
pub struct PassSpec {
    /// The name on the command line and in pipelines, e.g. `tritongpu-coalesce`.
    pub argument: &'static str,
    /// One line for `--help`.
    pub description: &'static str,
    /// The operation that the pass runs on, e.g. `builtin.module` or `tt.func`; `None` for any.
    pub operation: Option<&'static str>,
    /// Dialects whose operations the pass makes; they are loaded before it runs.
    pub dependencies: &'static [&'static str],
    /// Options.
    pub options: &'static [PassOption],
    /// Counters for `--mlir-pass-statistics`: (name, description).
    pub statistics: &'static [(&'static str, &'static str)],
    /// Transforms the operation. A complaint fails the pass and is reported on the operation.
    pub run: for<'c, 'a> fn(OperationRef<'c, 'a>, &mut PassRun) -> Result<(), Complaint>,
}

/// An option of a pass.
pub struct PassOption {
    /// The name, e.g. `num-stages`.
    pub name: &'static str,
    /// One line for `--help`.
    pub description: &'static str,
    /// The form of the values.
    pub kind: OptionKind,
    /// The value when the option is not given.
    pub default: &'static str,
}

impl PassOption {
    /// An option that is `true` or `false`, and `false` unless it is given.
    #[must_use]
    pub const fn flag(name: &'static str, description: &'static str) -> Self {
        Self {
            name,
            description,
            kind: OptionKind::Bool,
            default: "false",
        }
    }

    /// An option that is an integer.
    #[must_use]
    pub const fn integer(
        name: &'static str,
        description: &'static str,
        default: &'static str,
    ) -> Self {
        Self {
            name,
            description,
            kind: OptionKind::Int,
            default,
        }
    }

    /// An option that is any text.
    #[must_use]
    pub const fn text(
        name: &'static str,
        description: &'static str,
        default: &'static str,
    ) -> Self {
        Self {
            name,
            description,
            kind: OptionKind::Text,
            default,
        }
    }
}

/// The form of an option's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionKind {
    /// `true`, `false`, or nothing for true.
    Bool,
    /// A decimal integer of 64 bits.
    Int,
    /// Any text.
    Text,
}

impl OptionKind {
    fn accepts(self, value: &str) -> bool {
        match self {
            Self::Bool => matches!(value, "" | "true" | "false" | "1" | "0"),
            Self::Int => i64::from_str(value).is_ok(),
            Self::Text => true,
        }
    }

    fn describe(self) -> &'static str {
        match self {
            Self::Bool => "`true` or `false`",
            Self::Int => "an integer",
            Self::Text => "text",
        }
    }
}

impl PassSpec {
    /// A pass on any operation, without options.
    pub const fn new(
        argument: &'static str,
        description: &'static str,
        run: for<'c, 'a> fn(OperationRef<'c, 'a>, &mut PassRun) -> Result<(), Complaint>,
    ) -> Self {
        Self {
            argument,
            description,
            operation: None,
            dependencies: &[],
            options: &[],
            statistics: &[],
            run,
        }
    }
}

/// One run of a pass: its options, and what the pass reports to MLIR.
pub struct PassRun {
    raw: LloptSink,
    spec: &'static PassSpec,
}

impl PassRun {
    fn value(&self, name: &str) -> &str {
        let index = self
            .spec
            .options
            .iter()
            .position(|option| option.name == name)
            .unwrap_or_else(|| panic!("pass `{}` has no option `{name}`", self.spec.argument));
        // SAFETY: the pass is live during its run, and so are its options.
        unsafe { ffi::text(ffi::llopt_pass_option(self.raw, index as isize)) }
    }

    /// The value of an option as text.
    ///
    /// # Panics
    /// When the spec has no such option, which is a bug of the pass; the same holds below.
    pub fn text(&self, name: &str) -> &str {
        self.value(name)
    }

    /// The value of a boolean option.
    pub fn flag(&self, name: &str) -> bool {
        matches!(self.value(name), "" | "true" | "1")
    }

    /// The value of an integer option; zero for a value that is not an integer, which registering the option as
    /// [`OptionKind::Int`] excludes.
    pub fn integer(&self, name: &str) -> i64 {
        self.value(name).parse().unwrap_or_default()
    }

    /// The value that the caller of the pipeline shares with its passes, if it is of this type.
    pub fn shared<T: 'static>(&self) -> Option<Rc<T>> {
        SHARED.with_borrow(|all| Rc::clone(all.last()?).downcast().ok())
    }

    /// Declares that the pass changed nothing, so that analyses stay valid.
    pub fn preserve_all(&mut self) {
        // SAFETY: the pass is live during its run.
        unsafe { ffi::llopt_pass_preserve_all(self.raw) }
    }

    /// Adds to a counter by its position in the spec.
    pub fn count(&mut self, statistic: usize, amount: u64) {
        // SAFETY: the pass is live during its run; the bridge checks the position.
        unsafe { ffi::llopt_pass_add_statistic(self.raw, statistic as isize, amount) }
    }
}

/// A textual pipeline that cannot be run or failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PipelineError {
    /// The text is not a pipeline: unknown pass, bad option, wrong nesting.
    #[error("invalid pass pipeline `{pipeline}`: {reason}")]
    Invalid {
        /// The text.
        pipeline: String,
        /// MLIR's message.
        reason: String,
    },
    /// A pass failed and has reported the reason.
    #[error("a pass of `{pipeline}` failed")]
    Failed {
        /// The text.
        pipeline: String,
    },
}

/// Runs a textual pipeline such as `canonicalize,cse` or `builtin.module(tt.func(cse))` on an
/// operation. `verify` runs the verifier after each pass.
///
/// # Errors
/// See [`PipelineError`].
pub fn run_pipeline(
    operation: OperationRef<'_, '_>,
    pipeline: &str,
    verify: bool,
) -> Result<(), PipelineError> {
    let mut error: Vec<u8> = Vec::new();
    // SAFETY: the operation is live, the collector outlives the call.
    let success = unsafe {
        ffi::llopt_run_pipeline(
            operation.to_raw(),
            ffi::string_ref(pipeline),
            verify,
            ffi::collector(&mut error),
        )
    };
    if success {
        return Ok(());
    }
    let pipeline = pipeline.to_owned();
    Err(if error.is_empty() {
        PipelineError::Failed { pipeline }
    } else {
        PipelineError::Invalid {
            pipeline,
            reason: String::from_utf8_lossy(&error).trim().to_owned(),
        }
    })
}

thread_local! {
    /// The values shared with the passes of the pipelines that run in this thread, the innermost last.
    static SHARED: RefCell<Vec<Rc<dyn Any>>> = const { RefCell::new(Vec::new()) };
}

/// Runs a textual pipeline as [`run_pipeline`] does, with a value that its passes can read ([`PassRun::shared`]): a
/// pass need not compute again what an earlier one has computed. Passes that MLIR runs in its own threads do not see
/// it.
///
/// # Errors
/// See [`PipelineError`].
pub fn run_pipeline_sharing<T: 'static>(
    operation: OperationRef<'_, '_>,
    pipeline: &str,
    verify: bool,
    shared: &Rc<T>,
) -> Result<(), PipelineError> {
    /// Removes the value, also after a panic.
    struct Shares;
    impl Drop for Shares {
        fn drop(&mut self) {
            SHARED.with_borrow_mut(Vec::pop);
        }
    }
    SHARED.with_borrow_mut(|all| all.push(Rc::clone(shared) as Rc<dyn Any>));
    let _until_the_end = Shares;
    run_pipeline(operation, pipeline, verify)
}

/// Registers MLIR's own passes that are useful on these dialects: canonicalize, cse, sccp, symbol-dce, inline,
/// loop-invariant-code-motion, convert-scf-to-cf and similar ones.
pub fn register_upstream_passes() {
    // SAFETY: the bridge guards MLIR's registry and registers once.
    unsafe { ffi::llopt_register_upstream_passes() }
}
