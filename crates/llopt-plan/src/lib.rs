//! What the code of each op will do, before there is code, and what that costs.
//!
//! A *plan* says how an op's elements reach the places where they are wanted: which registers are combined, which
//! lanes exchange data, what goes through shared memory, and who waits for whom. It follows from the layouts of the
//! op's operands and results, from what is known of their values ([`facts`]) and from the target alone. Allocation of
//! shared memory, placement of barriers, the choice of layouts and emission all follow the same plan, so they cannot
//! disagree.
//!
//! | op | plan |
//! |---|---|
//! | `ttg.convert_layout` | [`conversion`], by the plans of `llopt_layout::plan` |
//! | `tt.reshape`, `tt.trans`, `tt.join`, … | [`regroup`]: a renaming and a conversion |
//! | `tt.reduce` | [`reduction`]: in the thread, in the warp, in shared memory |
//! | `tt.scan` | [`scan`] |
//! | `tt.gather` | [`gather`] |
//! | `tt.dot`, `tt.dot_scaled` | [`product`], by division of layouts in `llopt_layout::matrix_product` |
//! | products larger than the registers | [`late_operands`]: which part of the operands is emitted with the product |
//! | `amdg.upcast_mxfp` | [`upcast`]: a conversion of the scales |
//! | loads, stores, atomics | [`global_access`], [`atomic`], with what they touch of memory: [`sectors`] |
//! | buffers in shared memory | [`buffer`]: how large they are |
//! | accesses to shared memory | [`shared_access`], and which words of a factor they bring together: [`operand_words`] |
//! | `ttng.warp_group_dot` | [`group_operand`]: how operands in shared memory are read |
//! | asynchronous copies | [`copy_sectors`] |
//! | loads issued iterations ahead | [`ring`]: the layout of their buffers |
//! | copies that hardware counts | [`copy_count`], [`lane_order`] |
//!
//! [`plans`] keeps the plans of a compilation. [`scratch`] says for any op how much shared memory it takes and who
//! reads it, [`warp_parts`] which bytes of it each warp touches, [`legality`] which layouts have no plan, and
//! [`search_limit`] where a search ended at its limit.
//!
//! A folder is a subject (`values`, `movement`, `combining`, `memory`, `matrix`, `loops`); each of its modules is public at
//! the root by its own name.
//!
//! This crate knows no LLVM and emits nothing. It never runs a pass: the result of an analysis that a plan relies on
//! is an argument.

mod combining;
pub mod legality;
mod loops;
mod matrix;
mod memory;
mod movement;
pub mod plans;
pub mod search_limit;
mod values;

pub use combining::{cluster_sum, elementwise, reduction, scan};
pub use loops::{schedule, turns};
pub use matrix::{group_operand, late_operands, product, upcast};
pub use memory::{
    atomic, buffer, copy_count, copy_sectors, global_access, global_order, lane_order,
    operand_words, ring, scratch, sectors, shared_access, warp_parts,
};
pub use movement::{cluster, conversion, gather, priced, regroup, request};
pub use values::{element, facts, tensor, types, words};
