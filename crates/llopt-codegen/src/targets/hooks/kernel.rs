//! The frame of a kernel: its launch, its place in a chain of launches, its assertions, and the language of its
//! assembler.

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
