//! What is declared of an op, for whoever asks without knowing which op it is.
//!
//! `dialects/facts.td` has the questions, the `.td` files the answers: those of our ops beside their
//! definitions, those of MLIR's in `dialects/upstream.td`. The answers are enumerations. Passes, plans and
//! the interpreter match them without a wildcard, so that a new kind of answer is an error in each of
//! them until it is answered there, and a new op has only to declare which kind it is.

/// What is declared of an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpFacts {
    /// Its part in control flow.
    pub control: Control,
    /// How the layouts of its operands and results hang together.
    pub layouts: Transfer,
    /// The access to memory that asks for a layout of its own.
    pub anchor: Option<LayoutAnchor>,
    /// What it does to work that completes later.
    pub asynchronous: Option<Asynchronous>,
    /// Whom it brings into order.
    pub synchronization: Synchronization,
    /// What its code uses scratch memory for.
    pub scratch: ScratchUse,
    /// What it computes.
    pub meaning: Meaning,
    /// What is known of the integers and addresses that it computes.
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
    /// The region runs any number of times, as often as bounds and a step say.
    For,
    /// The first region, then perhaps the second and the first again.
    While,
    /// The end of the first region of a [`Control::While`]: on to the second, or out.
    Condition,
    /// One of the regions, or none, runs once.
    Choice,
    /// A choice whose region computes the results by an end of its own, which is not seen as flow.
    Masked,
    /// The end of a region of a loop or a choice.
    Yield,
    /// The end of a region that an op computes with.
    Result,
    /// All regions run at the same time, on warps of their own.
    Concurrent,
    /// Holds the partitions of a concurrent op.
    Partitions,
    /// The end of the region of a concurrent op that gives its results.
    ConcurrentYield,
    /// The end of a partition.
    PartitionEnd,
    /// Goes on at another block.
    Branch,
    /// Goes on at one of two blocks.
    ConditionalBranch,
}

/// How the layouts of the tensors of an op hang together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// In no way that is known.
    Unknown,
    /// All have one layout.
    Same,
    /// The result has one axis more, `axis`.
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
    /// The result lies as the indices do.
    Gather,
    /// The result lies in any way.
    Histogram,
    /// The result lies as the accumulator does, and the factors as both want.
    Product,
}

/// An access to memory that asks for a layout of its own.
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

/// What an op does to work that completes later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asynchronous {
    /// The op's step.
    pub step: Step,
    /// What does the work.
    pub unit: Unit,
}

/// A step of asynchronous work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It begins.
    Issues,
    /// What has begun becomes a group, or is counted by a transaction barrier.
    Commits,
    /// It is waited for.
    Waits,
}

/// What does asynchronous work.
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
    /// Whether it goes to shared memory by a way with an order of its own, so that a fence must stand
    /// between its accesses and those of the threads.
    pub const fn has_own_proxy(self) -> bool {
        match self {
            Self::Copy => false,
            Self::Bulk | Self::Product => true,
        }
    }
}

/// Whom an op brings into order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Synchronization {
    /// Nobody.
    None,
    /// All threads of the block, or of the partition that runs it.
    Block,
    /// The accesses of threads with those of copy and matrix units.
    Proxies,
}

/// What the code of an op uses scratch memory for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScratchUse {
    /// Nothing.
    None,
    /// To bring the elements of a tensor to other threads.
    Conversion,
    /// To bring scales to the elements that they belong to.
    Scales,
    /// To bring elements into the order that an op on registers takes them in.
    Regrouping,
    /// To hand the one result of an update to all threads.
    Update,
    /// Partial results of a reduction.
    Reduction,
    /// Partial results of a scan.
    Scan,
    /// What is gathered from.
    Gather,
    /// The counts.
    Histogram,
    /// Values that are handed to other warps.
    Captures,
    /// A tensor descriptor that is being made.
    TensorMap,
}

/// What an op computes, as far as a program of whole tensors can see. The reference interpreter has a room for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Nobody has said.
    Unknown,
    /// Nothing: what it does concerns threads and time.
    Nothing,
    /// Its regions say it, or it ends one, or it calls a function.
    Control,
    /// It makes tensors, or moves their elements.
    Shape,
    /// A function of the elements at each position.
    Elementwise(ElementFunction),
    /// What the assembly in it says.
    Assembly,
    /// Sums of products, and the scaling of factors.
    Product,
    /// It reads or writes memory, or names a part of it.
    Memory,
    /// It reads or writes a tensor that is described as a whole, or waits for that.
    Descriptor,
}

/// What an elementwise op computes of the elements at each position.
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
    /// A pointer some elements on.
    Offset,
    /// A function of a device library.
    Library,
}

/// What is known of the integers and addresses in the results of an op, by what is known of its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Integers {
    /// Nothing, which is always right.
    Unknown,
    /// They are those of the operand, at whatever places.
    Same,
    /// Those of the operand as other numbers or addresses of the same bits.
    Bits,
    /// Each element follows from the elements at the same position, and from nothing else.
    Elementwise,
    /// As [`Integers::Elementwise`], if the op says that it is pure.
    IfPure,
    /// As [`Integers::Elementwise`], unless memory may change between two reads.
    Read,
    /// Consecutive numbers.
    Range,
    /// A number that is not negative, the same in the whole program.
    Program,
    /// One element, everywhere.
    Splat,
    /// The only element.
    Element,
    /// The operand with one axis more, `axis`.
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
