//! Structured loops as things to transform: views, clones, carried values, peeling, rotation, unrolling, motion.
//!
//! # The objects
//!
//! A loop `for i = lower to upper step s iter_args(x = x0) { … yield x' }` runs its body for
//! `i = lower, lower + s, …` below `upper`; a *carried* value is an argument `x` of the body, which is `x0` in the
//! first iteration, `x'` of the one before in the others, and whose last `x'` (or `x0`) is a result.
//!
//! # The laws
//!
//! Each transformation keeps what the loop does, in the same order, whatever the bounds are: none of them asks for
//! constants. Where constants are known ([`induction`]) there is less code. Wanted of a loop is only that
//! it ends as MLIR has it: the step is positive, and `upper - 1 + s` does not leave the type.
//!
//! - [`carried::add`] and [`carried::drop_needless`] change what is carried and nothing else.
//! - [`peel::first`] and [`peel::last`] take one iteration out of the loop. Whether there is one may be known only at
//!   run time; then the copy stands in a branch.
//! - [`rotate::rotate`] computes a part of each iteration in the one before it: the ways of a software pipeline.
//! - [`pipeline::pipeline`] lets iterations overlap: a loop of several stages, each of another iteration.
//! - [`unroll::unroll`] makes a few iterations one.
//! - [`flatten::flatten`] makes one loop of two, of which one is in the other.
//! - [`motion::hoist_invariants`] and [`motion::sink_into_branch`] move what has no effect to where it runs less often.
//!
//! The tests run random loops before and after each of them in the reference interpreter
//! (`crates/llopt/tests/compiler/loops.rs`).
//!
//! # Road not taken
//!
//! MLIR has some of these for C++, without an interface for C, and with other laws: its peeling wants constants, its
//! unrolling of unknown bounds computes with signed numbers that may overflow.

pub(crate) mod builder;
pub mod carried;
pub mod clone;
pub mod flatten;
pub mod induction;
pub mod motion;
pub mod peel;
pub mod pipeline;
pub mod rotate;
pub mod unroll;
pub mod view;

pub use flatten::FLATTEN;
pub use unroll::UNROLL;
