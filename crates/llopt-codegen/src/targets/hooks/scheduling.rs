//! Hints of a program to the instruction scheduler.

/// A hint of the program to the instruction scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// Only instructions of these kinds (a mask) may be moved over this point.
    Barrier {
        /// The mask; zero for none.
        may_pass: i64,
    },
    /// So many instructions of these kinds come next in a pipeline of such groups.
    Group {
        /// The mask of kinds.
        kinds: i64,
        /// The number of instructions.
        instructions: i64,
        /// The pipeline's number.
        pipeline: i64,
    },
    /// After each of the last so many executions of a matrix instruction, an instruction that computes follows, if
    /// there is one: while the unit is busy, others can run.
    BesideProducts(u32),
    /// The priority of the warp among those that could issue.
    Priority(i64),
}
