//! What products of four warps together are on a target that has them.

use crate::llvm::emitter::{Emitter, V};

/// The types of a product's operands and result, by the names of the instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupTypes {
    /// Of the result.
    pub result: &'static str,
    /// Of the first operand.
    pub first: &'static str,
    /// Of the second operand.
    pub second: &'static str,
    /// Bits of an element of the operands.
    pub bits: u32,
    /// Whether the result is of integers.
    pub integers: bool,
}

/// The first operand of one instruction.
#[derive(Clone, Debug)]
pub enum FirstOperand<'ctx> {
    /// In shared memory: a matrix descriptor.
    Memory(V<'ctx>),
    /// In registers: words of 32 bits.
    Registers(Vec<V<'ctx>>),
}

/// Whether an instruction adds to what the result's registers hold.
#[derive(Clone, Copy, Debug)]
pub enum Adds<'ctx> {
    /// It does.
    Always,
    /// It does not: they need hold nothing.
    Never,
    /// It does where this truth value says so.
    If(V<'ctx>),
}

/// One instruction.
#[derive(Clone, Debug)]
pub struct GroupStep<'ctx> {
    /// Its result, by number among [`GroupProduct::results`].
    pub result: usize,
    /// The first operand.
    pub first: FirstOperand<'ctx>,
    /// The second operand: a matrix descriptor.
    pub second: V<'ctx>,
    /// Whether it adds.
    pub adds: Adds<'ctx>,
}

/// Several instructions that make up one group.
#[derive(Clone, Debug)]
pub struct GroupProduct<'ctx> {
    /// The types.
    pub types: GroupTypes,
    /// Columns of one instruction.
    pub columns: u32,
    /// The registers of each result, of 32 bits each: what they hold before, or `None` where nobody reads that.
    pub results: Vec<Option<Vec<V<'ctx>>>>,
    /// Registers of one result.
    pub registers: usize,
    /// The instructions, in order.
    pub steps: Vec<GroupStep<'ctx>>,
    /// Whether the elements of the first operand lie next to each other along its rows, where it is in memory.
    pub first_transposed: bool,
    /// The same of the second along its columns.
    pub second_transposed: bool,
    /// Whether the group ends with them, or more follow.
    pub ends: bool,
    /// Whether to wait for the results.
    pub waits: bool,
}

/// Products of a group of four warps that run beside the program.
pub trait WarpGroupHooks {
    /// Starts a product; the registers of all results, one result after the other. Unless it waits, nobody may
    /// touch them before [`WarpGroupHooks::wait`], which hands them on.
    fn multiply<'ctx>(&self, e: &Emitter<'ctx>, product: &GroupProduct<'ctx>) -> Vec<V<'ctx>>;

    /// Waits until at most so many products run, and hands on registers: what was in them before must not be read
    /// later, nor what is in them afterwards earlier.
    fn wait<'ctx>(&self, e: &Emitter<'ctx>, pending: u32, registers: &[V<'ctx>]) -> Vec<V<'ctx>>;
}
