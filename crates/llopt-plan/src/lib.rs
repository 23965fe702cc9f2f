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
//! | accesses to shared memory | [`shared_access`] |
//! | `ttng.warp_group_dot` | [`group_operand`]: how operands in shared memory are read |
//! | asynchronous copies | [`copy_sectors`] |
//! | loads issued iterations ahead | [`ring`]: the layout of their buffers |
//! | copies that hardware counts | [`copy_count`], [`lane_order`] |
//!
//! [`plans`] keeps the plans of a compilation. [`scratch`] says for any op how much shared memory it takes and who
//! reads it, [`warp_parts`] which bytes of it each warp touches, [`legality`] which layouts have no plan, and
//! [`search_limit`] where a search ended at its limit.
//!
//! This crate knows no LLVM and emits nothing. It never runs a pass: the result of an analysis that a plan relies on
//! is an argument.

pub mod atomic;
pub mod buffer;
pub mod cluster;
pub mod cluster_sum;
pub mod conversion;
pub mod copy_count;
pub mod copy_sectors;
pub mod element;
pub mod elementwise;
pub mod facts;
pub mod gather;
pub mod global_access;
pub mod global_order;
pub mod group_operand;
pub mod lane_order;
pub mod late_operands;
pub mod legality;
pub mod plans;
pub mod priced;
pub mod product;
pub mod reduction;
pub mod regroup;
pub mod request;
pub mod ring;
pub mod scan;
pub mod schedule;
pub mod scratch;
pub mod search_limit;
pub mod sectors;
pub mod shared_access;
pub mod tensor;
pub mod turns;
pub mod types;
pub mod upcast;
pub mod warp_parts;
pub mod words;
