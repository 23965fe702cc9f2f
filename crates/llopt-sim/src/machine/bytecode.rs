//! The machine's own form of a module: [`crate::translate::decode`] produces it once, and every warp executes it.
//!
//! A function's values live in a frame of numbered *slots*; a slot is one [row](crate::machine::row) per warp. An
//! LLVM value of a wide or aggregate type occupies several slots, one per scalar leaf, so extracting from a value or
//! building one costs nothing: it only renames slots. Constants are slots too, filled when a frame is made. The
//! remaining operations are scalar operations on rows ([`Op::Map1`] and similar ones), collective operations of
//! lanes, and memory accesses.
//!
//! The form is immutable, contains no object of LLVM, and is shared by all threads.

pub(crate) use crate::machine::row::Slot;
use crate::machine::row::{Row1, Row2, Row3};
use crate::units::matrix::Matrix;

/// Number of a block in its function.
pub(crate) type BlockId = u32;
/// Number of an edge in its function.
pub(crate) type EdgeId = u32;
/// Number of a [`Site`].
pub(crate) type SiteId = u32;

/// A place in the module that findings and counters refer to: a memory access or a collective operation.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// Name of the function.
    pub(crate) function: String,
    /// The instruction as LLVM prints it, without metadata.
    pub(crate) text: String,
    /// Index into [`Program::lines`].
    pub(crate) line: u32,
}

/// A line of source.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Line {
    pub(crate) file: String,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// A decoded module.
pub(crate) struct Program {
    pub(crate) functions: Vec<Function>,
    pub(crate) kernel: usize,
    pub(crate) parameters: Vec<Parameter>,
    /// Memory of the module's own globals outside shared memory, in the order of their regions.
    pub(crate) globals: Vec<Global>,
    /// Bytes of shared memory that the module declares with a size.
    pub(crate) shared_static: u64,
    /// Offset at which dynamic shared memory starts.
    pub(crate) shared_dynamic: u64,
    pub(crate) sites: Vec<Site>,
    pub(crate) lines: Vec<Line>,
    /// Whether any reachable code has an atomic operation on global memory.
    pub(crate) global_atomics: bool,
    /// Blocks of a cluster.
    pub(crate) cluster: u32,
    /// Registers that each thread has at the start, if the kernel says so.
    pub(crate) registers: Option<u32>,
}

/// A global variable's memory.
pub(crate) struct Global {
    pub(crate) bytes: Vec<u8>,
    pub(crate) constant: bool,
}

/// The kind of argument that a parameter takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Parameter {
    /// A pointer of that many bits.
    Pointer(u32),
    /// An integer of that many bits.
    Int(u32),
    /// A floating-point number.
    Real(crate::machine::row::Real),
    /// A pointer to a private copy of that many bytes.
    ByValue(u64),
    /// Anything else, by its name for the message.
    Other(String),
}

/// A decoded function.
#[derive(Default)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// Rows of a frame.
    pub(crate) slots: u32,
    /// Rows with a fixed value.
    pub(crate) constants: Vec<(Slot, u64)>,
    /// Slots of the parameters' leaves.
    pub(crate) parameters: Vec<Slot>,
    /// Slots to which a return writes the result's leaves.
    pub(crate) results: Vec<Slot>,
    pub(crate) blocks: Vec<Block>,
    pub(crate) edges: Vec<Edge>,
    /// Bytes of private memory per lane.
    pub(crate) local_bytes: u64,
}

/// Straight-line code.
pub(crate) struct Block {
    pub(crate) ops: Vec<Op>,
    /// Line of each op.
    pub(crate) lines: Vec<u32>,
    pub(crate) terminator: Terminator,
    pub(crate) terminator_line: u32,
    /// The block where lanes that diverge here reconverge; the number of blocks denotes the function's end.
    pub(crate) meets_at: BlockId,
}

/// An edge from one block to another, with the values that the target's phi nodes receive along it.
pub(crate) struct Edge {
    pub(crate) target: BlockId,
    /// (phi, value), in an order in which no move overwrites what a later one reads.
    pub(crate) moves: Vec<(Slot, Slot)>,
}

/// How a block ends.
pub(crate) enum Terminator {
    Jump(EdgeId),
    Branch {
        condition: Slot,
        then: EdgeId,
        otherwise: EdgeId,
    },
    Switch {
        value: Slot,
        cases: Vec<(u64, EdgeId)>,
        default: EdgeId,
    },
    /// Copies the leaves of the result and leaves the function.
    Return(Vec<Slot>),
    /// Ends the lanes (`exit`, `s_endpgm`).
    Exit,
    Unreachable(SiteId),
}

/// Special registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Special {
    ThreadId(usize),
    BlockId(usize),
    /// Number of the block in its cluster, and how many blocks a cluster has.
    ClusterRank,
    ClusterBlocks,
    /// Coordinates of the cluster, and how many clusters there are; clusters extend along x.
    ClusterId(usize),
    GridClusters(usize),
    BlockThreads(usize),
    GridBlocks(usize),
    Lane,
    WarpId,
    WarpCount,
    WarpSize,
    /// Mask of lanes below, at or below, at, at or above, above the lane itself.
    LaneMask(LaneMask),
    /// A clock: the number of instructions this warp has executed.
    Clock,
    /// The processor's number, which here is the block's number.
    Processor,
    DynamicSharedBytes,
    TotalSharedBytes,
    /// Base address of the hidden kernel arguments.
    HiddenArguments,
    /// Lanes of this path.
    ActiveMask,
}

/// Relation of lanes to the lane that executes the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaneMask {
    Lt,
    Le,
    Eq,
    Ge,
    Gt,
}

/// Address spaces that the machine distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Space {
    /// Decided by the address at run time.
    Generic,
    Global,
    Shared,
    Constant,
    Local,
}

/// A scalar piece of an access: bytes `offset..offset + bytes` of the memory are the low bytes of a slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) slot: Slot,
    pub(crate) offset: u32,
    pub(crate) bytes: u32,
}

/// How an access computes its address.
#[derive(Clone, Debug)]
pub(crate) enum Address {
    /// Slot plus constant.
    Flat { base: Slot, offset: i64 },
    /// AMD buffer resource: base and stride in `low`, size in bytes and flags in `high`; an access that is not inside
    /// the size reads zero and writes nothing.
    Buffer {
        low: Slot,
        high: Slot,
        offset: Slot,
        scalar_offset: Slot,
    },
}

/// Whether an access loads or stores.
pub(crate) use llopt_target::banks::Access as AccessKind;

/// A load or a store.
#[derive(Debug)]
pub(crate) struct Access {
    pub(crate) kind: AccessKind,
    pub(crate) address: Address,
    pub(crate) space: Space,
    pub(crate) parts: Box<[Part]>,
    /// Bytes from the address to past the last part.
    pub(crate) bytes: u32,
    /// Bytes that the instruction moves: the parts, and the bytes that a constant mask leaves out.
    pub(crate) width: u32,
    pub(crate) align: u32,
    /// Ordered against other accesses: exempt from race detection.
    pub(crate) synchronizing: bool,
    pub(crate) site: SiteId,
}

/// Read-modify-write operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtomicOp {
    Exchange,
    Add,
    Sub,
    And,
    Nand,
    Or,
    Xor,
    SMax,
    SMin,
    UMax,
    UMin,
    /// `old >= value ? 0 : old + 1`.
    IncrementWrap,
    /// `old == 0 || old > value ? value : old - 1`.
    DecrementWrap,
    SubConditional,
    SubSaturate,
    FAdd(crate::machine::row::Real),
    /// An addition that AMD's units apply to several halves at once. A NaN keeps its payload when -0 is added to it;
    /// code adds -0 to a neighbouring half that it must not change.
    FAddTogether(crate::machine::row::Real),
    FSub(crate::machine::row::Real),
    FMax(crate::machine::row::Real),
    FMin(crate::machine::row::Real),
    CompareExchange,
}

/// An atomic on one or more elements at consecutive addresses (packed halves have two).
#[derive(Debug)]
pub(crate) struct Atomic {
    pub(crate) op: AtomicOp,
    pub(crate) address: Address,
    pub(crate) space: Space,
    /// Bits of one element.
    pub(crate) bits: u32,
    /// Slots of the old values; empty when they have no use.
    pub(crate) old: Vec<Slot>,
    pub(crate) value: Vec<Slot>,
    pub(crate) compare: Vec<Slot>,
    pub(crate) site: SiteId,
}

/// How a lane of a shuffle finds its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShuffleMode {
    Up,
    Down,
    Butterfly,
    Index,
}

/// The result of a vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vote {
    All,
    Any,
    Uniform,
    Ballot,
}

/// Collective operations of the lanes of a warp.
#[derive(Debug)]
pub(crate) enum Collective {
    /// PTX `shfl.sync`.
    Shuffle {
        mode: ShuffleMode,
        dst: Slot,
        in_range: Option<Slot>,
        value: Slot,
        lane: Slot,
        clamp: Slot,
    },
    Vote {
        vote: Vote,
        dst: Slot,
        predicate: Slot,
    },
    /// Lanes with the same value (`all` false) or whether all agree (`all` true, with the mask or 0).
    Match {
        all: bool,
        dst: Slot,
        agree: Option<Slot>,
        value: Slot,
    },
    /// PTX `redux.sync`.
    Reduce {
        op: AtomicOp,
        dst: Slot,
        value: Slot,
    },
    /// One lane of the set: (mask of it, whether this lane is the one).
    Elect {
        leader: Slot,
        chosen: Slot,
    },
    /// Only synchronises.
    Meet,
    /// AMD data-parallel primitives.
    Dpp {
        dst: Slot,
        old: Slot,
        value: Slot,
        control: u32,
        row_mask: u32,
        bank_mask: u32,
        bound_control: bool,
    },
    /// DPP8: eight 3-bit selectors.
    Dpp8 {
        dst: Slot,
        value: Slot,
        selector: u32,
    },
    /// `ds_bpermute`: pulls from the lane at byte address / 4.
    PermuteBackward {
        dst: Slot,
        address: Slot,
        value: Slot,
    },
    /// `ds_permute`: pushes to the lane at byte address / 4.
    PermuteForward {
        dst: Slot,
        address: Slot,
        value: Slot,
    },
    /// `ds_swizzle`.
    Swizzle {
        dst: Slot,
        value: Slot,
        pattern: u32,
    },
    ReadLane {
        dst: Slot,
        value: Slot,
        lane: Slot,
    },
    ReadFirstLane {
        dst: Slot,
        value: Slot,
    },
    WriteLane {
        dst: Slot,
        value: Slot,
        lane: Slot,
        old: Slot,
    },
    /// `v_permlane16` (`cross` false) and `v_permlanex16`.
    PermuteLane16 {
        dst: Slot,
        old: Slot,
        value: Slot,
        low: Slot,
        high: Slot,
        fetch_inactive: bool,
        bound_control: bool,
        cross: bool,
    },
    /// `v_permlane16_swap` (16) and `v_permlane32_swap` (32).
    SwapLanes {
        first: Slot,
        second: Slot,
        a: Slot,
        b: Slot,
        rows: u32,
    },
    /// `v_permlane64`.
    PermuteLane64 {
        dst: Slot,
        value: Slot,
    },
    /// The machine's matrix units.
    Matrix(Box<Matrix>),
}

/// The tiles of `ldmatrix` and `stmatrix`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tile {
    /// 8x8 elements of 16 bits.
    Halves,
    /// The same, transposed.
    TransposedHalves,
    /// Bytes, transposed: 16x16 that are loaded, 8x16 that are stored.
    TransposedBytes,
}

/// `ldmatrix` and `stmatrix`.
#[derive(Debug)]
pub(crate) struct TileAccess {
    pub(crate) kind: AccessKind,
    pub(crate) tile: Tile,
    /// Number of tiles: 1, 2 or 4.
    pub(crate) tiles: u32,
    pub(crate) address: Slot,
    /// The 32-bit registers of a lane, equally many for each tile.
    pub(crate) registers: Vec<Slot>,
    pub(crate) site: SiteId,
}

/// AMD's transposing loads from shared or global memory: within each group of 16 lanes a block of elements that lies
/// in memory row by row (one row per lane) is loaded column by column.
#[derive(Debug)]
pub(crate) struct TransposeLoad {
    pub(crate) space: Space,
    pub(crate) address: Slot,
    /// Bits of an element: 4, 6, 8 or 16.
    pub(crate) element_bits: u32,
    /// Bytes each lane reads.
    pub(crate) bytes: u32,
    /// 64-bit or 32-bit pieces of the result, low first, each with its width in bits.
    pub(crate) parts: Vec<(Slot, u32)>,
    pub(crate) site: SiteId,
}

/// Operations on barriers of the block.
#[derive(Clone, Debug)]
pub(crate) enum Barrier {
    /// Waits at barrier `id` for `threads` threads (0: the whole block).
    Sync {
        id: Slot,
        threads: Option<Slot>,
        /// A vote over all threads.
        reduce: Option<BarrierVote>,
    },
    /// Counts as arrived and continues.
    Arrive { id: Slot, threads: Slot },
    /// Arrives at the barrier of the cluster and continues.
    ClusterArrive,
    /// Waits until all threads of the cluster have arrived there.
    ClusterWait,
    /// `setmaxnreg`: releases registers, or waits until that many are available for each thread.
    Registers { count: u32, more: bool },
}

/// A vote at a barrier.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BarrierVote {
    pub(crate) vote: Vote,
    pub(crate) predicate: Slot,
    pub(crate) dst: Slot,
    /// The result is the number of threads that agree.
    pub(crate) count: bool,
}

/// Asynchronous copies and the barriers that count them.
#[derive(Debug)]
pub(crate) enum Async {
    /// `cp.async`: `size` bytes, those from `valid` on filled with zeros.
    Copy {
        shared: Slot,
        global: Slot,
        size: u32,
        valid: Option<Slot>,
        site: SiteId,
    },
    Commit,
    /// A value that a lane has loaded is stored in shared memory once the load has been waited for.
    StoreLater {
        address: Slot,
        words: Vec<Slot>,
        size: u32,
        site: SiteId,
    },
    /// Waits until at most that many groups are pending.
    Wait(u32),
    /// Waits for all copies, committed or not.
    WaitAll,
    /// `mbarrier.init`.
    BarrierInit {
        address: Slot,
        count: Slot,
        site: SiteId,
    },
    /// `mbarrier.inval`.
    BarrierInvalidate {
        address: Slot,
    },
    /// `mbarrier.arrive`, optionally with an expected number of bytes first, with the state as its result.
    BarrierArrive {
        address: Slot,
        state: Option<Slot>,
        count: Option<Slot>,
        expect_bytes: Option<Slot>,
        /// Whether an arrival is counted (`expect_tx` alone does not).
        arrive: bool,
        site: SiteId,
    },
    /// `mbarrier.test_wait` and `try_wait`: returns whether the phase is complete.
    BarrierTest {
        address: Slot,
        done: Slot,
        parity: Slot,
        /// `parity` is a state rather than a parity bit.
        by_state: bool,
        site: SiteId,
    },
    /// `cp.async.mbarrier.arrive`.
    BarrierTrackCopies {
        address: Slot,
        increment: bool,
        site: SiteId,
    },
    /// `cp.async.bulk` and similar instructions.
    Bulk(BulkCopy),
    /// `cp.async.bulk.commit_group`.
    BulkCommit,
    /// `cp.async.bulk.wait_group`: waits until at most that many groups are pending.
    BulkWait(u32),
    /// `fence.proxy.async`.
    ProxyFence,
    /// A descriptor object at this address was written, by `tensormap.cp_fenceproxy`, which releases it.
    DescriptorRelease(Slot),
    /// `fence.proxy.tensormap` with `acquire`, of the object at this address.
    DescriptorAcquire(Slot),
    /// `wgmma.fence`.
    ProductFence,
    /// A product of a warp group begins; it reads these registers, and is part of this piece of assembly.
    ProductBegin {
        registers: Vec<Slot>,
        assembly: SiteId,
        site: SiteId,
    },
    /// An operand of a product is read from shared memory.
    FetchOperand(SharedOperand),
    /// `wgmma.commit_group`.
    ProductCommit,
    /// `wgmma.wait_group`: waits until at most that many groups are pending.
    ProductWait(u32),
}

/// An operand of a warp group's product in shared memory.
#[derive(Debug)]
pub(crate) struct SharedOperand {
    /// Matrix descriptor.
    pub(crate) descriptor: Slot,
    /// Rows of A, or columns of B, that a warp reads.
    pub(crate) outer: usize,
    pub(crate) element: crate::units::matrix::Element,
    /// The element that each place of the warp's registers gets.
    pub(crate) deal: crate::units::matrix::Deal,
    pub(crate) fields: Vec<crate::units::matrix::Field>,
    pub(crate) k_contiguous: bool,
    /// The rows are those of the warp in its group.
    pub(crate) of_warp_group: bool,
    pub(crate) site: SiteId,
}

/// A copy between global and shared memory by the copy engine.
#[derive(Debug)]
pub(crate) struct BulkCopy {
    pub(crate) shared: Slot,
    pub(crate) direction: Direction,
    pub(crate) what: BulkExtent,
    pub(crate) site: SiteId,
}

/// The direction of a bulk copy.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Direction {
    /// To shared memory; this mbarrier counts the bytes.
    In { barrier: Slot },
    /// From shared memory, replacing the old contents or combined with them; part of the lane's next group.
    Out { reduce: Option<BulkReduce> },
}

/// How a bulk copy combines its data with the old contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BulkReduce {
    Add,
    Min,
    Max,
    Increment,
    Decrement,
    And,
    Or,
    Xor,
}

/// The extent of a bulk copy.
#[derive(Debug)]
pub(crate) enum BulkExtent {
    /// That many consecutive bytes.
    Bytes { global: Slot, bytes: Slot },
    /// A box of the tensor that a descriptor object describes, beginning at these coordinates, innermost first.
    Box {
        descriptor: Slot,
        coordinates: Vec<Slot>,
    },
}

/// One operation.
pub(crate) enum Op {
    /// The same value under another name.
    Copy {
        dst: Slot,
        a: Slot,
    },
    Map1 {
        f: Row1,
        dst: Slot,
        a: Slot,
    },
    Map2 {
        f: Row2,
        dst: Slot,
        a: Slot,
        b: Slot,
    },
    Map3 {
        f: Row3,
        dst: Slot,
        a: Slot,
        b: Slot,
        c: Slot,
    },
    Special {
        what: Special,
        dst: Slot,
    },
    /// Executes the next `length` ops only in the lanes whose `predicate` is set (negated: not set).
    Guard {
        predicate: Slot,
        negate: bool,
        length: u32,
    },
    Access(Box<Access>),
    Atomic(Box<Atomic>),
    Collective(Box<Meeting>),
    Tiles(Box<TileAccess>),
    TransposeLoad(Box<TransposeLoad>),
    Barrier(Box<Barrier>, SiteId),
    Async(Box<Async>, SiteId),
    /// Private memory: the address of `offset` in the frame's part.
    Alloca {
        dst: Slot,
        offset: u64,
    },
    Call(Box<Call>),
    /// Memory ordering.
    Fence(Fence, SiteId),
    /// Waits for the kernel before, which the launch overlaps with.
    GridWait(SiteId),
    /// Costs an instruction and does nothing (waits on counters, hints).
    Nothing,
    /// Stops the kernel with a finding.
    Trap(SiteId),
    Print(Box<Print>),
    /// A condition that must hold, for the sanitizer.
    Expect(Box<Expectation>),
    /// Where a buffer of shared memory begins or ends, for the sanitizer.
    Life(Box<Life>),
}

/// What a fence orders for the other threads of the block. On AMD a barrier by itself orders no memory: a release comes
/// before it, and an acquire after it. The machine executes in order, so a fence matters only for what is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fence {
    /// Earlier accesses come before what a later barrier orders.
    pub(crate) releases: bool,
    /// Later accesses come after what an earlier barrier has ordered.
    pub(crate) acquires: bool,
}

/// The life of a buffer of shared memory begins or ends.
#[derive(Debug)]
pub(crate) struct Life {
    /// Its address.
    pub(crate) address: Slot,
    pub(crate) bytes: u64,
    pub(crate) begins: bool,
    pub(crate) site: SiteId,
}

/// A condition on a value that the sanitizer checks.
#[derive(Debug)]
pub(crate) struct Expectation {
    pub(crate) value: Slot,
    /// The number of alternatives of an index; `None` for a divisor, which must not be zero.
    pub(crate) below: Option<u64>,
    pub(crate) site: SiteId,
}

/// A collective with the lanes that must take part.
#[derive(Debug)]
pub(crate) struct Meeting {
    pub(crate) what: Collective,
    /// Slot of the member mask of a `.sync` operation; lanes wait until all members have arrived. `None`: the lanes
    /// that have arrived.
    pub(crate) members: Option<Slot>,
    pub(crate) site: SiteId,
}

/// A call of another function of the module.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) callee: usize,
    /// (parameter slot there, slot here).
    pub(crate) arguments: Vec<(Slot, Slot)>,
    /// (slot here, result slot there).
    pub(crate) results: Vec<(Slot, Slot)>,
}

/// Output of `printf` and similar functions.
#[derive(Debug)]
pub(crate) enum Print {
    /// `vprintf(format, arguments)`; the number of arguments is written to `dst`.
    Vprintf {
        dst: Option<Slot>,
        format: Slot,
        arguments: Slot,
    },
    /// `__assertfail(message, file, line, function, …)`.
    AssertFail {
        message: Slot,
        file: Slot,
        line: Slot,
        function: Slot,
    },
    /// Begins a message on AMD; returns its descriptor.
    Begin { dst: Slot },
    /// Appends a string; the last part flushes.
    AppendString {
        dst: Slot,
        string: Slot,
        length: Slot,
        last: Slot,
    },
    /// Appends up to seven 64-bit arguments.
    AppendArguments {
        dst: Slot,
        count: Slot,
        arguments: Vec<Slot>,
        last: Slot,
    },
}
