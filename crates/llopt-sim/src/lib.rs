//! A SIMT machine: executes the LLVM IR that a compiler emits for NVIDIA and AMD GPUs, lane by lane, on a CPU.
//!
//! It is one half of the project's oracle: it runs what the code generator produced, before and after optimisation,
//! with every vendor intrinsic and piece of inline assembly in it, and returns the contents of memory. It also counts
//! what the hardware would count, and a sanitizer reports what a correct kernel never does.
//!
//! # Execution model
//!
//! A *warp* of 32 or 64 *lanes* executes one instruction for all of its lanes at once. Lanes that disagree on a branch
//! diverge. The machine follows four rules:
//!
//! 1. A **path** is a set of lanes that stand at the same instruction with the same call stack. A warp begins as one
//!    path of all its lanes. A path executes its instructions in order, each for all of its lanes.
//! 2. **Divergence.** At a branch whose condition differs between lanes the path splits: one path per target. Each
//!    sees the values of its own lanes, since every value is a row with one element per lane.
//! 3. **Reconvergence.** The lanes of a split meet again at the branch's immediate post-dominator, the first block
//!    that all paths to the function's end go through. The machine remembers this as a *region*: the block, and the
//!    lanes that will arrive. A path that reaches the block of its innermost region waits; when the last lane
//!    arrives, one path with all of them continues. Regions nest like the branches do; in a loop that lanes leave at
//!    different iterations, all iterations share one region, since they share the post-dominator. Lanes that leave
//!    the kernel are no longer expected, and control flow into a trap is ignored.
//! 4. **Convergent operations.** An operation that names its members (`shfl.sync` and similar ones, `ldmatrix`,
//!    `mma.sync`, barriers of the whole block) waits until all members that are still alive stand at it; paths of one
//!    warp that have reached it execute it together. This is how independent thread scheduling on NVIDIA hardware
//!    behaves: while one path waits, its siblings run. If no sibling can run any more, the missing members can never
//!    arrive; the sanitizer reports this and lets each path execute the operation alone. AMD's cross-lane operations
//!    name no members: they act on the lanes of the path, as the hardware acts on those in `exec`.
//!
//! Which path runs next, and which warp, is fixed, so that executions repeat exactly. No path runs forever while
//! others can run: after a fixed number of instructions a sibling, or another warp, gets its turn, so that lanes can
//! spin on a value that other lanes write.
//!
//! # Layers
//!
//! `translate` turns LLVM IR, intrinsics and inline assembly into bytecode on rows; `machine` contains the grid,
//! blocks, warps and paths that execute it, and the report; `memory` contains global and shared memory, the cost of
//! accesses, the copy engine and the sanitizer's shadow; `units` contains what a warp does as a whole (exchanges,
//! matrix products, tiles, printing); `numbers` contains floating-point formats in software. None of them knows from
//! which tensor or layout a value came. `reference` is separate: it interprets the tile IR itself.
//!
//! # Example
//!
//! ```
//! use llopt_sim::{Argument, Launch, Machine, Options};
//! use llopt_target::Target;
//!
//! let kernel = "
//! define ptx_kernel void @twice(ptr addrspace(1) %p) {
//!   %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
//!   %a = getelementptr i32, ptr addrspace(1) %p, i32 %i
//!   %x = load i32, ptr addrspace(1) %a
//!   %y = shl i32 %x, 1
//!   store i32 %y, ptr addrspace(1) %a
//!   ret void
//! }
//! declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()";
//! let machine = Machine::from_ir(kernel.as_bytes(), Target::parse("cuda:90").unwrap(), None).unwrap();
//! let input: Vec<u8> = (0..32u32).flat_map(u32::to_le_bytes).collect();
//! let mut launch = Launch::new([1, 1, 1], 32, vec![Argument::Buffer(input)]);
//! let report = machine.run(&mut launch, &Options::default()).unwrap();
//! let Argument::Buffer(output) = &launch.arguments[0] else { unreachable!() };
//! assert_eq!(output[4 * 31], 62);
//! assert_eq!((report.global.load_instructions, report.global.load_sectors), (1, 4));
//! assert!(report.findings.is_empty());
//! ```

// The static copy of LLVM that inkwell's declarations are linked against.
use mlir_sys as _;

mod error;
mod machine;
mod memory;
mod numbers;
pub mod reference;
mod translate;
mod units;

pub use error::{Error, LaunchError};
pub use machine::entry::Machine;
pub use machine::launch::{Argument, Launch, Mapping, Options, Order, Progress, TensorArgument};
pub use machine::removal::{Change, Evidence, Removal};
pub use machine::report::{Finding, FindingKind, GlobalTraffic, LineReport, Report, SharedTraffic};
