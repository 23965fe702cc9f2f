//! The questions of neutral emission to a target: a trait, with one implementation per vendor.
//!
//! A hook exists only where the vendors' *instructions* differ. Where a capability differs, neutral code
//! asks `target.has(Feature::X)` itself. The files below have what these questions are about, one for each family, and
//! the questions that only some vendors can answer, each a trait of its own.

mod atomic;
mod buffer;
mod bulk;
mod caching;
mod kernel;
mod math;
mod matrix;
mod memory;
mod partition;
mod scheduling;
mod warp_copies;
pub(crate) mod warp_group;

use inkwell::types::BasicTypeEnum;
use llopt_plan::element::Element;
use llopt_plan::reduction::warp::WarpCombination;
use llopt_target::Target;

pub use atomic::{Atomic, FenceOrdering, Ordering, Scope, Update};
pub use buffer::{BufferAccess, BufferHooks, BufferPlace};
pub use bulk::{BoxCopy, BulkHooks, Descriptor};
pub use caching::{Cache, Caching, Eviction};
pub use kernel::{AssemblyRules, GridDependency, Launch, SourcePlace};
pub use math::{Math, Rounding, SmallFloat};
pub use matrix::MatrixHooks;
pub use memory::{Access, AccessCounts, AsyncCopy, MaskedLoad, MatrixAccess, Words};
pub use partition::PartitionHooks;
pub use scheduling::Scheduling;
pub use warp_copies::{CopySource, WarpCopies, WarpCopy};
pub use warp_group::{Adds, FirstOperand, GroupProduct, GroupStep, GroupTypes, WarpGroupHooks};

use crate::llvm::emitter::{Emitter, V};

/// The instructions of a vendor.
pub trait Hooks {
    /// The architecture compiled for.
    fn target(&self) -> Target;

    /// The rules of the assembler's language.
    fn assembly_rules(&self) -> AssemblyRules;

    /// The number of this thread in its block.
    fn thread_in_block<'ctx>(&self, e: &Emitter<'ctx>) -> V<'ctx>;

    /// The number of this block in its cluster.
    fn block_in_cluster<'ctx>(&self, e: &Emitter<'ctx>) -> V<'ctx>;

    /// The number of this program along `axis`.
    fn program_id<'ctx>(&self, e: &Emitter<'ctx>, axis: u32, blocks_per_cluster: u32) -> V<'ctx>;

    /// The number of programs along `axis`.
    fn num_programs<'ctx>(&self, e: &Emitter<'ctx>, axis: u32, blocks_per_cluster: u32) -> V<'ctx>;

    /// Waits for all threads of the block, and orders their memory accesses.
    fn barrier<'ctx>(&self, e: &Emitter<'ctx>);

    /// Waits for all threads of the block, and orders their accesses to shared memory.
    fn shared_memory_barrier(&self, e: &Emitter<'_>) {
        self.barrier(e);
    }

    /// Waits for all threads of the block, without ordering memory.
    fn execution_barrier(&self, e: &Emitter<'_>) {
        self.barrier(e);
    }

    /// Waits until the warp has at most so many accesses outstanding; `false`, with nothing emitted, on targets whose
    /// programs do not wait for accesses.
    fn wait_for_accesses(&self, _e: &Emitter<'_>, _most: AccessCounts) -> bool {
        false
    }

    /// Gives the instruction scheduler a hint; `false`, with nothing emitted, if the target has none.
    fn schedule(&self, _e: &Emitter<'_>, _guide: Scheduling) -> bool {
        false
    }

    /// A copy of a word that LLVM cannot identify with the original.
    fn copy_of<'ctx>(&self, _e: &Emitter<'ctx>, word: V<'ctx>) -> V<'ctx> {
        word
    }

    /// Memory of each thread for `count` values, which LLVM does not promote to registers; `None` if it is of no use.
    fn private_memory<'ctx>(
        &self,
        _e: &Emitter<'ctx>,
        _of: BasicTypeEnum<'ctx>,
        _count: u32,
    ) -> Option<V<'ctx>> {
        None
    }

    /// Orders the shared-memory accesses of the threads of a warp.
    fn warp_barrier<'ctx>(&self, e: &Emitter<'ctx>);

    /// The 32-bit word of lane `lane ^ xor`.
    fn shuffle_xor<'ctx>(&self, e: &Emitter<'ctx>, word: V<'ctx>, xor: u32) -> V<'ctx>;

    /// Exchanges the first word of the lanes that have the bit `lane` in their number with the second word of the
    /// lanes that do not; `None` when the target has no instruction for it.
    fn swap_lanes<'ctx>(
        &self,
        _e: &Emitter<'ctx>,
        _words: [V<'ctx>; 2],
        _lane: u32,
    ) -> Option<[V<'ctx>; 2]> {
        None
    }

    /// The 32-bit word of lane `lane`.
    fn shuffle_from<'ctx>(&self, e: &Emitter<'ctx>, word: V<'ctx>, lane: V<'ctx>) -> V<'ctx>;

    /// The 32-bit word of the lane that a linear function of the lane's number names, given by the images of its bits;
    /// `None` where [`Hooks::shuffle_from`] is the only way.
    fn map_lanes<'ctx>(
        &self,
        _e: &Emitter<'ctx>,
        _word: V<'ctx>,
        _source: &[u32],
    ) -> Option<V<'ctx>> {
        None
    }

    /// A word of 32 bits from any bytes of two words: for each byte of the result, the lowest first, 0 to 3 takes a
    /// byte of `low`, 4 to 7 one of `high`.
    fn permute_bytes<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        low: V<'ctx>,
        high: V<'ctx>,
        bytes: [u8; 4],
    ) -> V<'ctx> {
        self.permute_bytes_by(e, low, high, self.permute_selector(e, bytes))
    }

    /// The selector for [`Hooks::permute_bytes_by`].
    fn permute_selector<'ctx>(&self, e: &Emitter<'ctx>, bytes: [u8; 4]) -> V<'ctx>;

    /// The same with a selector that is a value, and may differ between threads.
    fn permute_bytes_by<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        low: V<'ctx>,
        high: V<'ctx>,
        selector: V<'ctx>,
    ) -> V<'ctx>;

    /// The combination of a 32-bit word of all lanes, in every lane; `None` where there is no instruction.
    fn combine_warp<'ctx>(
        &self,
        _e: &Emitter<'ctx>,
        _combination: WarpCombination,
        _word: V<'ctx>,
    ) -> Option<V<'ctx>> {
        None
    }

    /// Orders this kernel with the one before or after; nothing on targets without dependent launch.
    fn grid_dependency(&self, _e: &Emitter<'_>, _step: GridDependency) {}

    /// LLVM's name of the synchronisation scope of a block.
    fn block_scope(&self) -> &'static str;

    /// The bytes that one copy from global to shared memory can move, widest first.
    fn async_copy_bytes(&self) -> &'static [u32] {
        &[]
    }

    /// Starts a copy from global to shared memory; `false`, with nothing emitted, when the target has no
    /// such copy of this size.
    fn async_copy<'ctx>(&self, _e: &Emitter<'ctx>, _copy: &AsyncCopy<'ctx>) -> bool {
        false
    }

    /// Makes a group of the copies started so far, where waits count groups.
    fn async_commit(&self, _e: &Emitter<'_>) {}

    /// Waits until at most so many groups are outstanding, where waits count groups.
    fn async_wait(&self, _e: &Emitter<'_>, _groups: u32) {}

    /// Copies of whole warps for which waits count instructions, on targets that have these instead.
    fn warp_copies(&self) -> Option<&dyn WarpCopies> {
        None
    }

    /// Loads 32-bit registers by a matrix instruction; `None` when the target has no such.
    fn load_matrix<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        access: &MatrixAccess,
        address: V<'ctx>,
    ) -> Option<Vec<V<'ctx>>>;

    /// Stores 32-bit registers by a matrix instruction; `false` when the target has no such.
    fn store_matrix<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        access: &MatrixAccess,
        address: V<'ctx>,
        registers: &[V<'ctx>],
    ) -> bool;

    /// Loads words; `other` has one value per word, taken where the mask is false.
    fn load<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        access: &Access<'ctx>,
        other: Option<&[V<'ctx>]>,
    ) -> Vec<V<'ctx>>;

    /// Whether two loads, one after the other, are emitted together because they depend on one condition.
    fn share_condition(&self, _one: &Access<'_>, _next: &Access<'_>) -> bool {
        false
    }

    /// Loads the words of several accesses of which each shares its condition with the next one.
    fn load_all<'ctx>(&self, e: &Emitter<'ctx>, loads: &[MaskedLoad<'ctx>]) -> Vec<Vec<V<'ctx>>> {
        let all = loads.iter();
        all.map(|load| self.load(e, &load.access, load.other.as_deref()))
            .collect()
    }

    /// Stores words.
    fn store<'ctx>(&self, e: &Emitter<'ctx>, access: &Access<'ctx>, words: &[V<'ctx>]);

    /// Orders the thread's accesses before and after it for the threads of a scope.
    fn order_memory(&self, e: &Emitter<'_>, ordering: FenceOrdering, scope: Scope);

    /// Updates `values.len()` neighbouring elements (as many as [`llopt_plan::atomic::width`] allows) and returns the
    /// old values; undefined where the mask is false.
    fn atomic_update<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        update: Update,
        atomic: &Atomic<'ctx>,
        values: &[V<'ctx>],
    ) -> Vec<V<'ctx>>;

    /// Writes `new` if the old value is `expected`, and returns the old value.
    fn compare_and_swap<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        atomic: &Atomic<'ctx>,
        expected: V<'ctx>,
        new: V<'ctx>,
    ) -> V<'ctx>;

    /// A function of one float of 32 or 64 bits (`element`); `None` if the target has no form of it.
    fn math<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        function: Math,
        element: Element,
        arguments: &[V<'ctx>],
    ) -> Option<V<'ctx>>;

    /// `a / b`, as fast as the language allows.
    fn divide<'ctx>(&self, e: &Emitter<'ctx>, element: Element, a: V<'ctx>, b: V<'ctx>) -> V<'ctx>;

    /// `a / b` of `f32`, correctly rounded.
    fn divide_precisely<'ctx>(&self, e: &Emitter<'ctx>, a: V<'ctx>, b: V<'ctx>) -> V<'ctx>;

    /// Clamps `x` to `[-limit, limit]` in fewer instructions than a minimum and a maximum, if there are such.
    fn clip<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        element: Element,
        x: V<'ctx>,
        limit: V<'ctx>,
        propagate_nan: bool,
    ) -> Option<V<'ctx>>;

    /// Converts between float types, all registers of a thread at once; `None` if the target has no instruction, and
    /// the neutral code is used.
    fn convert_floats<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        from: Element,
        to: Element,
        rounding: Rounding,
        values: &[V<'ctx>],
    ) -> Option<Vec<V<'ctx>>>;

    /// Whether `bf16`s are added and multiplied as `f32`s, and [`Hooks::narrowed_to_bf16`] is shorter than LLVM's
    /// code.
    fn computes_bf16_as_singles(&self) -> bool {
        false
    }

    /// The result of one operation on two `bf16`s, rounded to the nearest `bf16`; `is_exact` promises that it is one.
    fn narrowed_to_bf16<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        single: V<'ctx>,
        _is_exact: bool,
    ) -> V<'ctx> {
        e.fptrunc(single, e.context.bf16_type().into())
    }

    /// The eight 4-bit floats of a word of 32 bits, the lowest first, as `f16` or `bf16`, if there is an instruction
    /// for looking up bytes.
    fn widen_fp4<'ctx>(
        &self,
        _e: &Emitter<'ctx>,
        _word: V<'ctx>,
        _to: Element,
    ) -> Option<Vec<V<'ctx>>> {
        None
    }

    /// Two small floats of a word times a scale, as a vector of `to`, if one instruction does that. The scale is an
    /// `f32` of which only the exponent is used; `place` is the number of the pair in the word.
    fn widen_scaled_pair<'ctx>(
        &self,
        _e: &Emitter<'ctx>,
        _from: SmallFloat,
        _word: V<'ctx>,
        _place: u32,
        _scale: V<'ctx>,
        _to: Element,
    ) -> Option<V<'ctx>> {
        None
    }

    /// The four 8-bit integers of a word of 32 bits, signed or not, the lowest first, as `f16` or `bf16`, if that is
    /// faster for words than for single integers.
    fn widen_int8<'ctx>(
        &self,
        _e: &Emitter<'ctx>,
        _word: V<'ctx>,
        _is_signed: bool,
        _to: Element,
    ) -> Option<Vec<V<'ctx>>> {
        None
    }

    /// Prints; `format` ends with a newline, `arguments` carry whether they are signed.
    fn print<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        format: V<'ctx>,
        format_bytes: usize,
        arguments: &[(V<'ctx>, bool)],
    );

    /// Reports a failed assertion and stops the kernel.
    fn assert_fail<'ctx>(&self, e: &Emitter<'ctx>, message: &str, place: SourcePlace<'_>);

    /// Replaces a library function that the frontend called, by another name or by code; `None` keeps the call.
    fn library_function<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        symbol: &str,
        result: Element,
        arguments: &[V<'ctx>],
    ) -> Option<V<'ctx>>;

    /// Makes `function` a kernel.
    fn mark_kernel<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        function: inkwell::values::FunctionValue<'ctx>,
        launch: Launch,
    );

    /// Matrix instructions, where emission knows some.
    fn matrices(&self) -> Option<&dyn MatrixHooks> {
        None
    }

    /// Barriers in shared memory and bulk copies, where the vendor has them.
    fn bulk(&self) -> Option<&dyn BulkHooks> {
        None
    }

    /// Products of groups of four warps, where the vendor has them.
    fn warp_group(&self) -> Option<&dyn WarpGroupHooks> {
        None
    }

    /// A number that all lanes of a warp hold, in a register of the warp where the hardware has such.
    fn of_all_lanes<'ctx>(&self, _e: &Emitter<'ctx>, number: V<'ctx>) -> V<'ctx> {
        number
    }

    /// The instructions for warp partitions, where the vendor has them.
    fn partitions(&self) -> Option<&dyn PartitionHooks> {
        None
    }

    /// Access through buffer descriptors, where the hardware has them.
    fn buffers(&self) -> Option<&dyn BufferHooks> {
        None
    }
}
