//! The design of a pipelined loop, decided before anything is changed.

use super::loads::Load;
use super::running::Running;
use crate::loops::pipeline::End;
use crate::loops::view::For;

/// Where data that are loaded to registers are stored to their buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Storing {
    /// At the end of the iteration that loads them.
    AtOnce,
    /// In the next iteration, before the data for the one after it are loaded to the same registers.
    BeforeNext,
    /// In the next iteration, after the data for the one after it are loaded: registers hold both.
    BesideNext,
}

/// The design of a pipelined loop.
pub(super) struct Design<'c, 'a> {
    pub(super) of: For<'c, 'a>,
    /// The loads that are issued earlier.
    pub(super) loads: Vec<Load<'c, 'a>>,
    /// Products that run on into the next iteration.
    pub(super) running: Vec<Running<'c, 'a>>,
    /// Stages; loads are in the first and everything else in the last.
    pub(super) stages: usize,
    /// Whether copies come before the products of an iteration ([`super::depth`]).
    pub(super) early: bool,
    /// Where what is loaded to registers is stored.
    pub(super) storing: Storing,
    /// How the loop ends.
    pub(super) end: End,
}

impl<'c: 'a, 'a> Design<'c, 'a> {
    /// Buffers of each ring: one for each iteration by which loads are ahead, and one that a product still reads or
    /// that the iteration before has read.
    pub(super) fn slots(&self) -> usize {
        self.stages - 1 + usize::from(self.early || !self.running.is_empty())
    }
}
