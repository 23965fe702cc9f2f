//! The version of the interface, and how a call ended.

/// The version of this interface. A caller hands the one of its header to `llopt_open`.
pub const LLOPT_ABI_VERSION: u32 = 1;

/// How a call ended. For a compilation it says whose fault a failure is.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum llopt_status_t {
    /// All is well.
    LLOPT_OK = 0,
    /// The kernel breaks a rule; the diagnostics say which and where.
    LLOPT_INVALID_INPUT = 1,
    /// The kernel is well formed, and the target or this release cannot do what it asks.
    LLOPT_UNSUPPORTED = 2,
    /// Something outside the compiler is missing or failed: a file, a device library, an assembler.
    LLOPT_ENVIRONMENT = 3,
    /// A mistake in llopt.
    LLOPT_BUG = 4,
    /// The call breaks a rule of this interface: a null pointer, a text that is not UTF-8, an
    /// option, an artefact or an interface version that does not exist.
    LLOPT_MISUSE = 5,
}

impl From<llopt::ErrorClass> for llopt_status_t {
    fn from(class: llopt::ErrorClass) -> Self {
        match class {
            llopt::ErrorClass::InvalidInput => Self::LLOPT_INVALID_INPUT,
            llopt::ErrorClass::Unsupported => Self::LLOPT_UNSUPPORTED,
            llopt::ErrorClass::Environment => Self::LLOPT_ENVIRONMENT,
            llopt::ErrorClass::Bug => Self::LLOPT_BUG,
        }
    }
}
