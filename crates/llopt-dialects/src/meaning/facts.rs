//! The declared facts about an op, for code that does not know which op it is.
//!
//! `dialects/facts.td` defines the facts, and the `.td` files give their values: for these dialects next to the
//! definitions of ops, for MLIR's in `dialects/upstream.td`. The values are enumerations. Passes, plans and the
//! interpreter match them without a wildcard, so that a new value is a compile error in each of them until it is
//! handled, and a new op only has to declare its kind.

/// The declared facts about an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpFacts {
    /// Its part in control flow.
    pub control: Control,
    /// How the layouts of its operands and results are related.
    pub layouts: Transfer,
    /// The kind of access to memory, if the op prefers a layout of its own.
    pub anchor: Option<LayoutAnchor>,
    /// Its step in asynchronous work.
    pub asynchronous: Option<Asynchronous>,
    /// The accesses that it orders.
    pub synchronization: Synchronization,
    /// The purpose of its scratch memory.
    pub scratch: ScratchUse,
    /// What it computes.
    pub meaning: Meaning,
    /// What is known of the integers and addresses in its results.
    pub integers: Integers,
}

impl OpFacts {
    /// Nothing is declared.
    pub const NONE: Self = Self {
        control: Control::Computes,
        layouts: Transfer::Unknown,
        anchor: None,
        asynchronous: None,
        synchronization: Synchronization::None,
        scratch: ScratchUse::None,
        meaning: Meaning::Unknown,
        integers: Integers::Unknown,
    };
}

/// The part of an op in control flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// None: it computes its results, and its regions, if it has any, are part of that.
    Computes,
    /// A function.
    Function,
    /// A call of a function.
    Call,
    /// The end of a function.
    Return,
    /// The region runs any number of times, given by bounds and a step.
    For,
    /// The first region, then perhaps the second and the first again.
    While,
    /// The end of the first region of a [`Control::While`]: continues with the second, or leaves the op.
    Condition,
    /// One of the regions, or none, runs once.
    Choice,
    /// A choice whose region yields the results by a terminator of its own, which does not count as flow.
    Masked,
    /// The end of a region of a loop or a choice.
    Yield,
    /// The end of a region that is part of an op's computation.
    Result,
    /// All regions run at the same time, on different warps.
    Concurrent,
    /// Holds the partitions of a concurrent op.
    Partitions,
    /// The end of the region of a concurrent op that yields its results.
    ConcurrentYield,
    /// The end of a partition.
    PartitionEnd,
    /// Continues at another block.
    Branch,
    /// Continues at one of two blocks.
    ConditionalBranch,
}

/// How the layouts of the tensors of an op are related.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// In no known way.
    Unknown,
    /// All have one layout.
    Same,
    /// The result has one more axis, `axis`.
    ExpandDims,
    /// The axes of the result are those of the operand in another order, `order`.
    Transpose,
    /// The result has the elements of the operand in another shape.
    Reshape,
    /// The operands are the halves of the result along its last axis.
    Join,
    /// The results are the halves of the operand along its last axis.
    Split,
    /// The result has two elements for each of the operand along an axis, `axis`.
    Unpack,
    /// The results are without an axis of the operands, `axis`.
    Reduce,
    /// The result has the layout of the indices.
    Gather,
    /// The result may have any layout.
    Histogram,
    /// The result has the layout of the accumulator, which determines those of the factors.
    Product,
}

/// An access to memory that prefers a layout of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutAnchor {
    /// Reads global memory.
    Load,
    /// Writes global memory.
    Store,
    /// Updates global memory.
    Update,
    /// Updates global memory where it has an expected value.
    CompareAndSwap,
    /// Reads or writes a buffer in shared memory.
    Buffer,
}

/// A step of an op in asynchronous work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asynchronous {
    /// The op's step.
    pub step: Step,
    /// The unit that does the work.
    pub unit: Unit,
}

/// A step of asynchronous work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It issues work.
    Issues,
    /// It commits issued work to a group, or to a transaction barrier.
    Commits,
    /// It waits for work.
    Waits,
}

/// A unit that works asynchronously.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Copies of single threads.
    Copy,
    /// A unit that copies tiles.
    Bulk,
    /// A matrix unit.
    Product,
}

impl Unit {
    /// Whether it accesses shared memory through a proxy of its own, so that a fence must separate its accesses from
    /// those of the threads.
    pub const fn has_own_proxy(self) -> bool {
        match self {
            Self::Copy => false,
            Self::Bulk | Self::Product => true,
        }
    }
}

/// The accesses that an op orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Synchronization {
    /// None.
    None,
    /// Those of all threads of the block, or of the partition that runs it.
    Block,
    /// Those of threads with those of copy and matrix units.
    Proxies,
}

/// The purpose of an op's scratch memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScratchUse {
    /// Nothing.
    None,
    /// Moving the elements of a tensor to other threads.
    Conversion,
    /// Moving scales to their elements.
    Scales,
    /// Moving elements into the order in which an op on registers takes them.
    Regrouping,
    /// Distributing the single result of an update to all threads.
    Update,
    /// Partial results of a reduction.
    Reduction,
    /// Partial results of a scan.
    Scan,
    /// The source of a gather.
    Gather,
    /// The counts.
    Histogram,
    /// Values that are passed to other warps.
    Captures,
    /// A tensor descriptor that is being created.
    TensorMap,
    /// The tensor of a block, which other blocks read.
    ClusterSum,
}

/// What an op computes, in terms of whole tensors. The reference interpreter has a module for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Not declared.
    Unknown,
    /// Nothing: it only affects threads and time.
    Nothing,
    /// Control flow: it is defined by its regions, or ends one, or calls a function.
    Control,
    /// It creates tensors, or moves their elements.
    Shape,
    /// A function of the elements at each position.
    Elementwise(ElementFunction),
    /// It is defined by its assembly.
    Assembly,
    /// Sums of products, and the scaling of factors.
    Product,
    /// It reads or writes memory, or refers to a part of it.
    Memory,
    /// It accesses a tensor through a descriptor, or waits for such an access.
    Descriptor,
}

/// The function of an elementwise op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementFunction {
    /// The upper half of a product of integers.
    HighHalf,
    /// A quotient of floats, rounded once.
    Quotient,
    /// A square root, rounded once.
    Root,
    /// A float between two bounds.
    Clamp,
    /// A float of another type.
    Conversion,
    /// The same bits.
    Bits,
    /// A pointer moved by some elements.
    Offset,
    /// A function of a device library.
    Library,
}

/// What is known of the integers and addresses in the results of an op, given what is known of its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Integers {
    /// Nothing, which is always correct.
    Unknown,
    /// They are elements of the operand, at any positions.
    Same,
    /// Those of the operand as other numbers or addresses of the same bits.
    Bits,
    /// Each element is a function of the elements at the same position.
    Elementwise,
    /// As [`Integers::Elementwise`], if the op is declared pure.
    IfPure,
    /// As [`Integers::Elementwise`], unless memory may change between two reads.
    Read,
    /// Consecutive numbers.
    Range,
    /// A number that is not negative, the same in the whole program.
    Program,
    /// One element, at all positions.
    Splat,
    /// The only element.
    Element,
    /// The operand with one more axis, `axis`.
    ExpandDims,
    /// The operand, repeated along axes of extent 1.
    Broadcast,
    /// The operand with its axes in another order, `order`.
    Transpose,
    /// The operand in another shape.
    Reshape,
    /// The operands as halves along a new last axis.
    Join,
    /// The halves of the operand along its last axis.
    Split,
    /// One operand after the other.
    Concatenate,
    /// An address and an offset in elements.
    Address,
}
