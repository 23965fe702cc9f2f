//! The questions of neutral emission to a target: a trait, with one implementation per vendor.
//!
//! A hook exists only where the vendors' *instructions* differ. Where a capability differs, neutral code
//! asks `target.has(Feature::X)` itself.

mod bulk;
mod caching;
mod matrix;
mod partition;
mod warp_copies;
pub(crate) mod warp_group;

use inkwell::types::BasicTypeEnum;
use llopt_plan::element::{Element, Float8};
use llopt_plan::reduction::warp::WarpCombination;
use llopt_target::Target;

pub use bulk::{BoxCopy, BulkHooks, Descriptor};
pub use caching::{Cache, Caching, Eviction};
pub use matrix::MatrixHooks;
pub use partition::PartitionHooks;
pub use warp_copies::{CopySource, WarpCopies, WarpCopy};
pub use warp_group::{Adds, FirstOperand, GroupProduct, GroupStep, GroupTypes, WarpGroupHooks};

use crate::llvm::emitter::{Emitter, V};

/// The words of one access: `count` contiguous integers of `bits` bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words {
    /// Bits of a word: 8, 16, 32 or 64.
    pub bits: u32,
    /// The number of words.
    pub count: u32,
}

impl Words {
    /// The words of `elements` elements of `element_bits` bits each (whole bytes): 32-bit ones where
    /// the elements are smaller and fill them.
    #[must_use]
    pub fn of(element_bits: u32, elements: u32) -> Self {
        let total = element_bits * elements;
        let bits = total.min(element_bits.max(32));
        Self {
            bits,
            count: total / bits,
        }
    }

    /// Bytes of the whole access.
    #[must_use]
    pub fn bytes(self) -> u32 {
        self.bits * self.count / 8
    }
}

/// One access of a thread to global memory.
#[derive(Clone, Copy, Debug)]
pub struct Access<'ctx> {
    /// The address.
    pub pointer: V<'ctx>,
    /// Whether it happens; always when absent.
    pub mask: Option<V<'ctx>>,
    /// The words that are transferred.
    pub words: Words,
    /// Cache hints.
    pub caching: Caching,
}

/// An access that loads, and the words that are taken where its mask is false.
#[derive(Clone, Debug)]
pub struct MaskedLoad<'ctx> {
    /// The access.
    pub access: Access<'ctx>,
    /// The words; zeros when absent.
    pub other: Option<Vec<V<'ctx>>>,
}

/// One access of a thread through a buffer descriptor: `base` is uniform, `offset` counts bytes.
#[derive(Clone, Copy, Debug)]
pub struct BufferAccess<'ctx> {
    /// The descriptor, from [`BufferHooks::descriptor`].
    pub descriptor: V<'ctx>,
    /// Bytes from the base.
    pub offset: V<'ctx>,
    /// Whether it happens; always when absent.
    pub mask: Option<V<'ctx>>,
    /// The words that are transferred.
    pub words: Words,
    /// Cache hints.
    pub caching: Caching,
}

/// A location in memory, given by a descriptor.
#[derive(Clone, Copy, Debug)]
pub struct BufferPlace<'ctx> {
    /// The descriptor, from [`BufferHooks::descriptor`].
    pub descriptor: V<'ctx>,
    /// Bytes from the base.
    pub offset: V<'ctx>,
}

/// What an atomic does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Integer addition.
    Add,
    /// Floating-point addition.
    AddFloat,
    /// Signed maximum.
    Max,
    /// Signed minimum.
    Min,
    /// Unsigned maximum.
    UnsignedMax,
    /// Unsigned minimum.
    UnsignedMin,
    /// The new value replaces the old one.
    Exchange,
}

/// What an atomic orders in addition to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ordering {
    /// Nothing.
    Relaxed,
    /// Later accesses are not moved before it.
    Acquire,
    /// Earlier accesses are not moved after it.
    Release,
    /// Both.
    AcquireRelease,
}

/// Which accesses a fence orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FenceOrdering {
    /// Later ones are not moved before it.
    Acquire,
    /// Earlier ones are not moved after it.
    Release,
}

/// The scope of an atomic's ordering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The threads of the block.
    Block,
    /// The threads of the device.
    Device,
    /// All processors.
    System,
}

/// One atomic of a thread.
#[derive(Clone, Copy, Debug)]
pub struct Atomic<'ctx> {
    /// The type of the updated element.
    pub element: Element,
    /// The address of the first element.
    pub pointer: V<'ctx>,
    /// Whether it happens; always when absent.
    pub mask: Option<V<'ctx>>,
    /// The ordering.
    pub ordering: Ordering,
    /// The scope of the ordering.
    pub scope: Scope,
}

/// An asynchronous copy of one lane from global to shared memory.
#[derive(Clone, Copy, Debug)]
pub struct AsyncCopy<'ctx> {
    /// The destination in shared memory.
    pub to: V<'ctx>,
    /// The source in global memory.
    pub from: V<'ctx>,
    /// The number of bytes.
    pub bytes: u32,
    /// The bytes of the aligned block around the source that should be in the second-level cache afterwards.
    pub cached_block: Option<u32>,
    /// Whether this thread copies; always when absent.
    pub acts: Option<V<'ctx>>,
    /// Whether the data are read; otherwise zeros are written.
    pub mask: Option<V<'ctx>>,
}

/// One matrix instruction that moves data between registers and shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatrixAccess {
    /// The name in the target's table.
    pub name: &'static str,
    /// Whether it transposes.
    pub transposed: bool,
    /// The width of the elements it permutes.
    pub element_bits: u32,
    /// 32-bit registers per lane.
    pub registers: u32,
}

/// Functions of floats that are more than one LLVM instruction on some target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Math {
    /// e to the power of x.
    Exp,
    /// 2 to the power of x.
    Exp2,
    /// Natural logarithm.
    Log,
    /// Logarithm to base 2.
    Log2,
    /// Sine.
    Sin,
    /// Cosine.
    Cos,
    /// Square root, fast.
    Sqrt,
    /// Square root, correctly rounded.
    PreciseSqrt,
    /// Reciprocal square root.
    Rsqrt,
    /// Error function.
    Erf,
    /// Largest integer not above.
    Floor,
    /// Smallest integer not below.
    Ceil,
    /// Any other function of the math dialect, by its name in the C library.
    Other(&'static str),
}

/// How a narrowing conversion rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// To the nearest, ties to even.
    NearestEven,
    /// Towards zero.
    TowardZero,
}

/// A float that microscaled tensors are made of (OCP MX).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SmallFloat {
    /// Four bits, two in a byte.
    E2m1,
    /// Eight bits.
    Eight(Float8),
}

/// The promises of a kernel's entry about its launch.
#[derive(Clone, Copy, Debug)]
pub struct Launch {
    /// Threads per block.
    pub threads: u32,
    /// Blocks per cluster.
    pub blocks_per_cluster: u32,
    /// Limit of 32-bit registers per thread, when one was requested.
    pub max_registers: Option<u32>,
    /// Warps per execution unit to aim for; 0 leaves it to LLVM.
    pub waves_per_eu: u32,
    /// Whether `f32` denormals may be flushed.
    pub flush_denormals: bool,
}

/// The source location of an assertion, for its message.
#[derive(Clone, Copy, Debug)]
pub struct SourcePlace<'a> {
    /// The file, or `unknown`.
    pub file: &'a str,
    /// The line, or 0.
    pub line: u32,
}

/// A hint of the program to the instruction scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// Only instructions of these kinds (a mask) may be moved over this point.
    Barrier {
        /// The mask; zero for none.
        may_pass: i64,
    },
    /// So many instructions of these kinds come next in a pipeline of such groups.
    Group {
        /// The mask of kinds.
        kinds: i64,
        /// The number of instructions.
        instructions: i64,
        /// The pipeline's number.
        pipeline: i64,
    },
    /// After each of the last so many executions of a matrix instruction, an instruction that computes follows, if
    /// there is one: while the unit is busy, others can run.
    BesideProducts(u32),
    /// The priority of the warp among those that could issue.
    Priority(i64),
}

/// The accesses to memory that a warp may have outstanding after a wait; absent kinds are not waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessCounts {
    /// Loads of global memory.
    pub loads: Option<u32>,
    /// Stores to global memory.
    pub stores: Option<u32>,
    /// Accesses to shared memory.
    pub shared: Option<u32>,
}

/// A step of programmatic dependent launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GridDependency {
    /// Waits for the kernel before.
    Wait,
    /// Lets the kernel after start.
    LaunchDependents,
}

/// The lexical rules of the vendor's assembler.
#[derive(Clone, Copy, Debug)]
pub struct AssemblyRules {
    /// The tokens that begin a comment up to the end of the line.
    pub comments: &'static [&'static str],
    /// The characters that separate statements.
    pub separators: &'static str,
    /// The directives that a text inside of a function may have, in lower case.
    pub directives: &'static [&'static str],
    /// Whether braces make blocks.
    pub blocks: bool,
}

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

    /// The four signed 8-bit integers of a word of 32 bits, the lowest first, as `f16` or `bf16`, if that is faster
    /// for words than for single integers.
    fn widen_int8<'ctx>(
        &self,
        _e: &Emitter<'ctx>,
        _word: V<'ctx>,
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

/// Access to memory through buffer descriptors: a uniform base with a range, and an offset per lane.
pub trait BufferHooks {
    /// A descriptor for the memory behind `base`.
    fn descriptor<'ctx>(&self, e: &Emitter<'ctx>, base: V<'ctx>) -> V<'ctx>;

    /// An offset at which nothing is written and zero is read where the mask is false.
    fn masked_offset<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        mask: Option<V<'ctx>>,
        offset: V<'ctx>,
    ) -> V<'ctx>;

    /// Loads words through a descriptor; lanes without mask get zero.
    fn load<'ctx>(&self, e: &Emitter<'ctx>, access: &BufferAccess<'ctx>) -> Vec<V<'ctx>>;

    /// Updates an element, or as many as an instruction takes, at a location that replaces `atomic.pointer`. Answers
    /// the old values.
    fn atomic_update<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        update: Update,
        place: BufferPlace<'ctx>,
        atomic: &Atomic<'ctx>,
        values: &[V<'ctx>],
    ) -> Vec<V<'ctx>>;

    /// Writes `new` if the old value is `expected`. Answers the old value.
    fn compare_and_swap<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        place: BufferPlace<'ctx>,
        atomic: &Atomic<'ctx>,
        expected: V<'ctx>,
        new: V<'ctx>,
    ) -> V<'ctx>;

    /// Stores words through a descriptor.
    fn store<'ctx>(&self, e: &Emitter<'ctx>, access: &BufferAccess<'ctx>, words: &[V<'ctx>]);
}
