//! Products that follow one another step by step.
//!
//! A product of a warp group whose first factor is computed in registers runs while threads go on, and reads these
//! registers until it is complete. So the factor of the next product must not be computed into them before, and where
//! one product follows another in a loop, threads and matrix units would wait for each other:
//!
//! ```text
//!   wait for the product before           for each step along k:
//!   compute the factor              →       wait for this step of the product before
//!   product                                 compute this step of the factor
//!                                           this step of the product
//! ```
//!
//! Each step along k reads registers of its own, and a product is a group of instructions for each step. Groups complete
//! in the order in which they were issued, so there are as many unfinished groups as a product has steps when the first
//! step waits, and to wait for the oldest is to leave one less. When a product has been issued, all steps of the one
//! before are complete: memory that it has read may be written.

/// The attribute of a product that waits, before each of its steps, for the same step of the product before.
pub const IN_TURN: &str = "llopt.in_turn";
