//! The differential fuzzer: random tile programs, run with every engine, whose results must agree.
//!
//! # The comparison
//!
//! A [`Program`] is a kernel in tile IR with layouts. [`check::check`] runs it three times on the same random
//! buffers: by the reference interpreter, which ignores layouts; by the simulated machine on the LLVM IR that
//! lowering emits for a target; and by the machine on that IR after LLVM's O3. Every output must agree bit for bit
//! (all NaNs of a type count as one, and so do the two zeros), and the machine's sanitizer must find nothing: no race
//! in shared memory, no read of uninitialised memory, no access out of bounds, no divergent barrier.
//!
//! # Restrictions on programs
//!
//! The result of a program must be determined by its meaning. The generator therefore
//!
//! - sums floating-point numbers in an order that depends on the layout only where every partial sum is exact: over
//!   small non-negative integers ([`facts::Facts::bound`]);
//! - uses the bits of a floating-point number only where it is not the result of arithmetic, since the payload of a
//!   NaN is not defined ([`facts::Facts::bits`]);
//! - masks indices, shift amounts and divisors, and lets two elements of one atomic operation have the same address
//!   only where the operation commutes and its result is not used.
//!
//! # Hostile input
//!
//! [`mutate::mutate`] changes a valid kernel into an unusual one. The compiler must give some answer for it; which
//! one is not checked.
//!
//! # Failing cases
//!
//! [`shrink::shrink`] makes the program smaller while it keeps failing the same way. The result is written as a
//! [`Case`](case::Case): a `.ttgir` file whose first lines specify the target and the buffers. The files of
//! `tests/cases` are such cases; a test runs them all.

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
