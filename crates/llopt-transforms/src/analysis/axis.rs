//! Axis information: what is known, at compile time, about the integers and addresses that a
//! tensor holds along each of its dimensions ([`llopt_plan::facts`]), and how it is found.
//!
//! # The objects
//!
//! Let `x` be a tensor of integers (or of addresses, counted in bytes), `i` an index and `e_d` the
//! unit vector of dimension `d`. Three powers of two describe dimension `d`:
//!
//! - **constancy** `k`: `x` is the same throughout every aligned run of `k` positions along `d`.
//! - **contiguity** `c`: throughout every aligned run of `c` positions along `d`,
//!   `x[i + j·e_d] = x[i] + j·s`, where the *step* `s` is 1 for integers and the size of the
//!   pointee in bytes for addresses.
//! - **divisibility** `v`: `v` divides the first element of each of those runs of `c` positions;
//!   with `c = 1`, it divides every element.
//!
//! In addition there are two facts about the tensor as a whole: its **constant** value, if all elements are one known
//! integer, and whether it is **non-negative** as a signed number.
//!
//! Two consequences are used everywhere. Positions that begin a run of `r` positions, `r` a power of
//! two, are divisible by `v` if `r ≥ c` and by `min(v, r·s)` otherwise (a multiple of `v` plus a
//! multiple of `r·s`): [`DimFacts::divisibility_at`]. And the greatest common divisor of two powers
//! of two is the smaller one, so that "gcd" is `min` below.
//!
//! # The lattice
//!
//! Facts are ordered by what they imply. *Unvisited* (no facts at all, `Option::None` in the
//! analysis) is the top, [`AxisFacts::unknown`] the bottom, and [`AxisFacts::meet`] keeps what holds
//! for both of two possible values of a block argument. Every chain descends through exponents, so
//! a fixed point is reached; at the fixed point each claim follows from the claims about the
//! operands, hence by induction over an execution all claims hold.
//!
//! # The central lemma
//!
//! Let `x` be contiguous over runs of `c` positions whose first elements `v` divides, let `y` be
//! constant over runs of `k` and divisible by `w` there, and let `e = min(c, k, v, w)` with `v` and
//! `w` taken at the runs in question. Then within each aligned run of `e` positions,
//! `x = e·m + j` with `0 ≤ j < e`, and `y = e·p`. Therefore, in each such run:
//!
//! - `x / y = ⌊m / p⌋` does not vary (`x ≥ 0` is needed where division truncates),
//! - `x mod y = e·(m mod p) + j` is contiguous,
//! - `x < y` and `x ≥ y`, that is `m < p` and `m ≥ p`, do not vary,
//! - `x | y` and `x ^ y` are contiguous, `x & y` does not vary.
//!
//! [`integer`] is this lemma and its relatives, one function for each operation.
//!
//! # Wrapping
//!
//! Machine integers are residues modulo `2^w`. Contiguity and divisibility are claims about residues, so additions
//! and multiplications keep them however they wrap. Sign extension of a run that crosses the sign boundary would
//! break it, but a run of `min(c, v/s)` positions starts at a multiple of its length and cannot cross a boundary that
//! is itself a multiple of it. Memory accesses only ever rely on that aligned part
//! ([`DimFacts::aligned_contiguity`]); a longer contiguity is a hint for choosing layouts. Constancy, which masks
//! rely on, is always claimed with the aligned part alone. Non-negativity assumes that signed index arithmetic does
//! not overflow, as every address computation of the source language does, and that a scalar by which a non-negative
//! scalar is divided is a count: kernels divide a program's number by the tiles of a group, and wrap the rows of the
//! resulting tile with a remainder, which is contiguous only for non-negative numbers.
//!
//! # Alternative rejected
//!
//! Ranges of values, or a symbolic stride for each dimension, would answer more questions; neither
//! widened a single access of the kernels at hand, and both make the meet and the tests much
//! larger. The sign is the one bit of range information that division and remainder need. Strides that are
//! constants decide how many sectors an access touches; `strides` finds them apart from the facts.

pub mod address;
mod analysis;
pub mod integer;
mod op;
mod print;
pub mod shape;
pub mod strides;

pub use analysis::AxisAnalysis;
pub use llopt_plan::facts::{AxisFacts, DimFacts, Pow2};
pub use print::PRINT_AXIS_INFO;
