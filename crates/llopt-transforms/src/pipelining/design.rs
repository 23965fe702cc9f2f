//! The design of a pipelined loop, decided before anything is changed.

use melior::ir::OperationRef;

use super::loads::Load;
use super::running::Running;
use crate::loops::pipeline::End;
use crate::loops::view::For;

/// The design of a pipelined loop.
pub(super) struct Design<'c, 'a> {
    pub(super) of: For<'c, 'a>,
    /// The loads that are issued earlier.
    pub(super) loads: Vec<Load<'c, 'a>>,
    /// Loads that the addresses of these depend on ([`super::indirect`]).
    pub(super) feeders: Vec<OperationRef<'c, 'a>>,
    /// Products that run on into the next iteration.
    pub(super) running: Vec<Running<'c, 'a>>,
    /// Stages; loads are in the first and everything else in the last.
    pub(super) stages: usize,
    /// Whether copies come before the products of an iteration ([`super::depth`]).
    pub(super) early: bool,
    /// Whether what is loaded to registers is held there for an iteration ([`super::order`]).
    pub(super) held: bool,
    /// Whether loaded registers are stored in the iteration after the one that issues the loads ([`super::depth`]).
    pub(super) outstanding: bool,
    /// How the loop ends.
    pub(super) end: End,
}

impl<'c: 'a, 'a> Design<'c, 'a> {
    /// Buffers of each ring: one for each iteration by which loads are ahead, except one that is still in registers,
    /// and one that a product still reads or that the iteration before has read.
    pub(super) fn slots(&self) -> usize {
        self.stages - 1 + usize::from(self.early || !self.running.is_empty())
            - usize::from(self.outstanding)
    }
}
