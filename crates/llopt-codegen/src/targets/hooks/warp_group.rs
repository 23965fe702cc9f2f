//! Products of four warps together, on a target that has them.

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

/// A matrix in shared memory, as an instruction takes it.
#[derive(Clone, Copy, Debug)]
pub struct MatrixDescriptor<'ctx> {
    /// The field of the address, of 32 bits: the same for all instructions that read the operand.
    pub address: V<'ctx>,
    /// What the descriptor has beside: the fields that are constants, and what an instruction adds to the address. The sum
    /// of the lower halves does not carry.
    pub constant: u64,
}

/// The first operand of one instruction.
#[derive(Clone, Debug)]
pub enum FirstOperand<'ctx> {
    /// In shared memory.
    Memory(MatrixDescriptor<'ctx>),
    /// In registers: words of 32 bits.
    Registers(Vec<V<'ctx>>),
}

/// Whether an instruction adds to the old contents of the result's registers.
#[derive(Clone, Copy, Debug)]
pub enum Adds<'ctx> {
    /// It does.
    Always,
    /// It does not: their contents do not matter.
    Never,
    /// It does if this value is true.
    If(V<'ctx>),
}

/// One instruction.
#[derive(Clone, Debug)]
pub struct GroupStep<'ctx> {
    /// Its result, by number among [`GroupProduct::results`].
    pub result: usize,
    /// The first operand.
    pub first: FirstOperand<'ctx>,
    /// The second operand.
    pub second: MatrixDescriptor<'ctx>,
    /// Whether it adds.
    pub adds: Adds<'ctx>,
}

/// Several instructions that form one group.
#[derive(Clone, Debug)]
pub struct GroupProduct<'ctx> {
    /// The types.
    pub types: GroupTypes,
    /// Columns of one instruction.
    pub columns: u32,
    /// The 32-bit registers of each result: their contents before, or `None` if these are not read.
    pub results: Vec<Option<Vec<V<'ctx>>>>,
    /// Registers of one result.
    pub registers: usize,
    /// The instructions, in order.
    pub steps: Vec<GroupStep<'ctx>>,
    /// Whether the elements of the first operand are contiguous along its rows, if it is in memory.
    pub first_transposed: bool,
    /// The same of the second along its columns.
    pub second_transposed: bool,
    /// Whether the group ends with these instructions, or more follow.
    pub ends: bool,
    /// Whether to wait for the results.
    pub waits: bool,
}

/// Asynchronous products of a group of four warps.
pub trait WarpGroupHooks {
    /// Starts a product; returns the registers of all results, one result after the other. Unless it waits, nothing
    /// may use them before [`WarpGroupHooks::wait`], which passes them on.
    fn multiply<'ctx>(&self, e: &Emitter<'ctx>, product: &GroupProduct<'ctx>) -> Vec<V<'ctx>>;

    /// Waits until at most so many products are outstanding, and passes registers on: their old values must not be
    /// read later, nor the new values earlier.
    fn wait<'ctx>(&self, e: &Emitter<'ctx>, pending: u32, registers: &[V<'ctx>]) -> Vec<V<'ctx>>;
}
