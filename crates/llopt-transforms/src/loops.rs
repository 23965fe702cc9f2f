//! Transformations of structured loops: views, clones, carried values, peeling, rotation, unrolling, motion.
//!
//! # The objects
//!
//! A loop `for i = lower to upper step s iter_args(x = x0) { … yield x' }` runs its body for
//! `i = lower, lower + s, …` below `upper`; a *carried* value is an argument `x` of the body, which is `x0` in the
//! first iteration, `x'` of the one before in the others, and whose last `x'` (or `x0`) is a result.
//!
//! # The laws
//!
//! Each transformation preserves what the loop does, in the same order, for all bounds: none of them requires
//! constants. Where constants are known ([`induction`]) there is less code. A loop must only be finite as MLIR
//! defines it: the step is positive, and `upper - 1 + s` does not overflow.
//!
//! - [`carried::add`] and [`carried::drop_needless`] change only the carried values.
//! - [`peel::first`] and [`peel::last`] take one iteration out of the loop. Whether there is one may be known only at
//!   run time; then the copy is inside a conditional.
//! - [`rotate::rotate`] computes a part of each iteration in the one before it: a software pipeline of two stages.
//! - [`pipeline::pipeline`] overlaps iterations: a loop of several stages, each of another iteration.
//! - [`unroll::unroll`] makes one iteration of a few.
//! - [`flatten::flatten`] makes one loop of two nested ones.
//! - [`MERGE_INDUCTIONS`] computes carried numbers that count with the loop from its induction variable.
//! - [`CARRY_NUMBERS`] carries one number instead of a tensor of which all elements advance by it.
//! - [`concatenate::Concatenation`] makes one loop of two that follow one another.
//! - [`motion::hoist_invariants`] and [`motion::sink_into_branch`] move operations without effects to where they run
//!   less often, [`motion::sink_behind`] to where their results do not occupy registers in a loop.
//!
//! The tests run random loops before and after each of them in the reference interpreter
//! (`crates/llopt/tests/compiler/loops.rs`).
//!
//! # Alternative rejected
//!
//! MLIR has some of these in C++, without a C interface and with other preconditions: its peeling needs constants,
//! and its unrolling of unknown bounds computes with signed numbers that may overflow.

pub(crate) mod advance;
pub(crate) mod builder;
pub mod carried;
pub mod clone;
pub mod concatenate;
pub mod flatten;
pub mod induction;
mod merge_inductions;
pub mod motion;
pub(crate) mod needs;
pub mod peel;
pub mod pipeline;
pub mod rotate;
pub mod uniform_inductions;
pub mod unroll;
pub(crate) mod vectorize;
pub mod view;

pub use flatten::FLATTEN;
pub use merge_inductions::MERGE_INDUCTIONS;
pub use uniform_inductions::CARRY_NUMBERS;
pub use unroll::UNROLL;
