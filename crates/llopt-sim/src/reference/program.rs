//! The state of one program of the grid while it is interpreted.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use melior::ir::{BlockRef, OperationRef};

use crate::memory::global::GlobalMemory;

use super::bound::Doubts;
use super::failure::Failure;
use super::limits::Limits;
use super::value::{Array, Descriptor, Value};

/// A failure with the operation at which it happened.
pub(super) type Located<'c, 'a, T> = Result<T, (Failure, OperationRef<'c, 'a>)>;

/// How a block of operations ended.
pub(super) enum Flow<'c, 'a> {
    /// A terminator gave these values to the enclosing operation.
    Values(Vec<Value>),
    /// `scf.condition`: whether to continue, and the values.
    Condition(bool, Vec<Value>),
    /// A branch.
    Branch(BlockRef<'c, 'a>, Vec<Value>),
}

/// One program of the grid.
pub(super) struct Program<'c, 'a, 'm> {
    pub(super) module: OperationRef<'c, 'a>,
    pub(super) memory: &'m GlobalMemory,
    pub(super) id: [u32; 3],
    pub(super) grid: [u32; 3],
    pub(super) values: HashMap<usize, Value>,
    /// Buffers of shared memory.
    pub(super) arrays: Vec<Array>,
    /// Bounds of the contents of global memory.
    pub(super) doubts: &'m Doubts,
    /// Whether compiled code may have taken another branch.
    pub(super) undecided: bool,
    /// Descriptors that the program has made, by the address of the object.
    pub(super) descriptors: HashMap<u64, Rc<Descriptor>>,
    /// The last address of scratch memory that was allocated.
    pub(super) scratch: u64,
    /// Barriers in shared memory, which count where groups of warps run in parallel.
    pub(super) barriers: Barriers,
    /// Functions that have been called and have not returned.
    pub(super) depth: u32,
    /// Work that is left.
    pub(super) work: u64,
    /// Bytes that are left for values and arrays.
    pub(super) room: u64,
    pub(super) limits: Limits,
}

/// A barrier in shared memory.
#[derive(Clone, Debug)]
pub(super) struct Barrier {
    /// Arrivals of a phase, and the number that the current phase still needs.
    pub(super) expected: i64,
    pub(super) missing: i64,
    /// Bytes that are announced and have not arrived.
    pub(super) bytes: i64,
    /// Completed phases.
    pub(super) phase: u64,
}

impl Barrier {
    pub(super) fn settle(&mut self) {
        if self.missing <= 0 && self.bytes == 0 {
            self.phase += 1;
            self.missing = self.expected;
        }
    }
}

/// The barriers of a program, by array and offset.
pub(super) type Barriers = BTreeMap<(usize, usize), Barrier>;
