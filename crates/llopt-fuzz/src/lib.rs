//! The differential fuzzer: random tile programs, run by every engine, whose results must agree.
//!
//! # What is compared
//!
//! A [`Program`] is a kernel in tile IR with layouts. [`check::check`] runs it three times on the same
//! random buffers: by the reference interpreter, which knows no layouts; by the simulated machine on the
//! LLVM IR that lowering emits for a target; and by the machine on that IR after LLVM's O3. Every output
//! must agree bit for bit (all NaNs of a type count as one, and so do the two zeros), and the machine's
//! sanitizer must find nothing: no race in shared memory, no read of what nobody wrote, no access out of
//! bounds, no divergent barrier.
//!
//! # What makes that possible
//!
//! A program may only compute what its meaning determines. The generator therefore
//!
//! - sums floating-point numbers in an order of the layout's choosing only where every partial sum is
//!   exact: over small non-negative integers ([`facts::Facts::bound`]);
//! - looks at the bits of a floating-point number only where no arithmetic has touched it, since the
//!   payload of a NaN is nobody's promise ([`facts::Facts::bits`]);
//! - masks indices, shift amounts and divisors, and lets two elements of one atomic operation meet at an
//!   address only where the operation commutes and its result is not used.
//!
//! # Hostile input
//!
//! [`mutate::mutate`] changes a good kernel into one that nobody would write. Of that only an answer is asked, not which.
//!
//! # The way of a failing case
//!
//! [`shrink::shrink`] makes the program smaller while it keeps failing the same way. What is left is
//! written as a [`Case`](case::Case): a `.ttgir` file whose first lines name the target and the buffers.
//! The files of `tests/cases` are such cases; a test runs them all.

pub mod case;
pub mod check;
pub mod element;
pub mod facts;
pub mod generate;
pub mod layouts;
pub mod mutate;
pub mod program;
pub mod shrink;

pub use program::Program;
