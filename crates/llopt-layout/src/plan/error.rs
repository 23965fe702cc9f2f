//! Why there is no plan.

use core::fmt;

use crate::LayoutError;

/// Why a conversion has no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanError {
    /// The layouts do not fit together.
    Layout(LayoutError),
    /// The width of an element is not a power of two from 8 to 128.
    ElementBits {
        /// The width as given.
        bits: u32,
    },
    /// A layout has more lanes than a warp of the machine.
    TooManyLanes {
        /// The lanes of the layouts, as log2.
        lanes_log2: u32,
        /// The lanes of the machine, as log2.
        machine_log2: u32,
    },
    /// The data crosses blocks, and the machine does not support that.
    NoCluster,
    /// The data has to go through shared memory and does not fit, in any number of rounds.
    SharedMemory {
        /// The least number of bytes needed.
        needed: u32,
        /// The number of bytes available.
        limit: u32,
    },
    /// No pair of instructions has the requested kinds.
    NoInstruction,
    /// A plan without movement was requested, but elements leave their threads.
    LeavesThread,
    /// A plan inside warps was requested, but elements leave their warps.
    LeavesWarp,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanError::Layout(error) => error.fmt(f),
            PlanError::ElementBits { bits } => {
                write!(
                    f,
                    "elements of {bits} bits: a power of two from 8 to 128 is required"
                )
            }
            PlanError::TooManyLanes {
                lanes_log2,
                machine_log2,
            } => write!(
                f,
                "the layouts have 2^{lanes_log2} lanes, a warp of this machine has 2^{machine_log2}"
            ),
            PlanError::NoCluster => {
                f.write_str("the conversion crosses blocks, which this machine cannot do")
            }
            PlanError::SharedMemory { needed, limit } => write!(
                f,
                "the conversion needs {needed} bytes of shared memory; {limit} are available"
            ),
            PlanError::NoInstruction => {
                f.write_str("no pair of shared-memory instructions of the kinds asked for fits")
            }
            PlanError::LeavesThread => f.write_str("elements leave their threads"),
            PlanError::LeavesWarp => f.write_str("elements leave their warps"),
        }
    }
}

impl core::error::Error for PlanError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            PlanError::Layout(error) => Some(error),
            _ => None,
        }
    }
}

impl From<LayoutError> for PlanError {
    fn from(error: LayoutError) -> PlanError {
        PlanError::Layout(error)
    }
}
