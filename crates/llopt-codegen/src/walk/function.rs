//! A function during emission, as the code of each op sees it: the registers of values, their types, the threads that
//! execute the code, errors with the op's location.
//!
//! The code of an op is a function of its own file, whose `use` lines say what else it needs. There are no cyclic
//! imports, so this file knows no op. If a region is emitted in the middle of an op, as a reduction emits its
//! combination, the function from an operation to its code ([`EmitOperation`]) is a field of the lowering.

use llopt_mlir::ir::{ValueExt, key};
use std::collections::HashMap;
use std::rc::Rc;

use inkwell::basic_block::BasicBlock;
use inkwell::debug_info::DISubprogram;
use llopt_plan::elementwise;
use llopt_plan::facts::{DimFacts, Pow2, ValueFacts};
use llopt_plan::plans::Plans;
use llopt_plan::tensor::{TensorType, ValueType};
use llopt_plan::types::Types;
use llopt_target::Feature;
use melior::ir::operation::OperationLike;
use melior::ir::{Attribute, OperationRef, Value, ValueLike};

use crate::error::CodegenError;
use crate::llvm::emitter::{Emitter, V};
use crate::targets::hooks::Hooks;
use crate::values::registers::Registers;
use crate::values::threads::Threads;
use crate::walk::blocks::Blocks;
use crate::walk::context::ExecutionContext;
use crate::walk::copy_log::CopyLog;
use crate::walk::decision::{Choice, Journal};
use crate::walk::late::Late;
use crate::walk::location::{LineTable, describe};
use crate::walk::packed_masks::PackedMasks;
use crate::walk::workers::{KERNEL_BARRIER, Workers};

/// The elements that one access moves, at most: the bytes of the widest vector.
const MOST_OF_ACCESS: Pow2 = Pow2::from_log2(4);

/// The result of emitting one operation.
pub(crate) type Lowered<T = ()> = Result<T, CodegenError>;

/// The data that all functions of a module share.
pub(crate) struct Program<'r> {
    /// The vendor's instructions.
    pub(crate) hooks: &'r dyn Hooks,
    /// The facts about addresses and masks.
    pub(crate) facts: &'r ValueFacts,
    /// The plans of ops.
    pub(crate) plans: &'r Plans,
    /// Warps that run a kernel's own code.
    pub(crate) num_warps: u32,
    /// Warps per block, those of partitions included.
    pub(crate) launched_warps: u32,
    /// Registers of each thread at the start, if warp partitions change that number.
    pub(crate) divided_registers: Option<u32>,
    /// Blocks per cluster, as layouts have them.
    pub(crate) num_ctas: u32,
    /// Blocks that share the sums of a program.
    pub(crate) cluster_split: u32,
    /// Threads per warp.
    pub(crate) threads_per_warp: u32,
    /// Whether all barriers order global memory ([`llopt_plan::global_order`]).
    pub(crate) orders_global_memory: bool,
    /// Whether a simulator checks indices.
    pub(crate) check_indices: bool,
    /// Whether a simulator is told the live ranges of buffers.
    pub(crate) mark_buffers: bool,
    /// The recorded decisions.
    pub(crate) journal: Journal,
}

impl Program<'_> {
    /// Blocks per cluster, as they are launched: each cluster runs one program.
    pub(crate) fn blocks_per_cluster(&self) -> u32 {
        self.num_ctas * self.cluster_split
    }
}

/// Arguments that every function gets in addition to those of the source.
pub(crate) struct HiddenArguments<'ctx> {
    /// The start of the function's shared memory.
    pub(crate) shared: V<'ctx>,
    /// Scratch space in global memory.
    pub(crate) global_scratch: V<'ctx>,
    /// Scratch space of the profiler.
    pub(crate) profile_scratch: V<'ctx>,
}

/// A function being emitted.
pub(crate) struct FunctionLowering<'r, 'ctx> {
    /// The LLVM side.
    pub(crate) e: &'r Emitter<'ctx>,
    /// The data that all functions share.
    pub(crate) program: &'r Program<'r>,
    /// Source types, resolved once each.
    pub(crate) types: &'r Types,
    /// The warps that execute what is being emitted.
    pub(crate) context: ExecutionContext,
    /// The current thread's position in layouts.
    pub(crate) threads: Threads<'ctx>,
    /// The warps of partitions, if this is a kernel that has some.
    pub(crate) workers: Option<Workers<'ctx>>,
    /// Where the partition that is being emitted ends.
    pub(crate) partition_end: Option<BasicBlock<'ctx>>,
    /// The hidden arguments; absent if nothing can need them.
    pub(crate) hidden: HiddenArguments<'ctx>,
    /// Whether this is the entry point.
    pub(crate) is_kernel: bool,
    /// Asynchronous copies, and waits for them.
    pub(crate) copies: CopyLog<'ctx>,
    /// Operations that are emitted late, and anew.
    pub(crate) late: Late<'ctx>,
    /// Masks that are in the bits of words.
    pub(crate) packed_masks: PackedMasks<'ctx>,
    lines: Option<(&'r mut LineTable<'ctx>, DISubprogram<'ctx>)>,
    /// The LLVM blocks of source blocks.
    pub(super) blocks: Blocks<'ctx>,
    /// Emits one operation: the code of an op that has regions walks over other ops.
    emit: EmitOperation,
    values: HashMap<usize, Registers<'ctx>>,
}

/// Emits one operation of a function.
pub(crate) type EmitOperation = fn(&mut FunctionLowering<'_, '_>, OperationRef<'_, '_>) -> Lowered;

impl<'r, 'ctx> FunctionLowering<'r, 'ctx> {
    /// Begins a function whose entry block is the current one.
    pub(crate) fn new(
        e: &'r Emitter<'ctx>,
        program: &'r Program<'r>,
        types: &'r Types,
        hidden: HiddenArguments<'ctx>,
        is_kernel: bool,
        emit: EmitOperation,
        lines: Option<(&'r mut LineTable<'ctx>, DISubprogram<'ctx>)>,
    ) -> Self {
        let mut context = ExecutionContext::block(program.num_warps);
        if program.launched_warps > program.num_warps {
            context.barrier = Some(KERNEL_BARRIER);
        }
        let threads = Threads::new(e.block(), 0, context.warps * program.threads_per_warp);
        Self {
            e,
            program,
            types,
            context,
            threads,
            workers: None,
            partition_end: None,
            hidden,
            is_kernel,
            copies: CopyLog::default(),
            late: Late::default(),
            packed_masks: PackedMasks::default(),
            lines,
            blocks: Blocks::default(),
            emit,
            values: HashMap::new(),
        }
    }

    /// The vendor's instructions.
    pub(crate) fn hooks(&self) -> &'r dyn Hooks {
        self.program.hooks
    }

    /// Records a decision about an op.
    pub(crate) fn record(&self, op: OperationRef<'_, '_>, choice: impl FnOnce() -> Choice) {
        if !self.late.is_again(op) {
            self.program.journal.record(op, choice);
        }
    }

    // Values.

    /// The registers of a value.
    pub(crate) fn registers(&self, value: Value<'_, '_>) -> Registers<'ctx> {
        self.values
            .get(&key(value))
            .cloned()
            .unwrap_or_else(|| panic!("bug in llopt: used before it is emitted: {value}"))
    }

    /// The registers of all operands.
    pub(crate) fn all_operands(&self, op: OperationRef<'_, '_>) -> Vec<Registers<'ctx>> {
        op.operands().map(|value| self.registers(value)).collect()
    }

    /// The one register of a scalar.
    pub(crate) fn scalar(&self, value: Value<'_, '_>) -> V<'ctx> {
        self.registers(value)[0]
    }

    /// The registers of a value, if it has been emitted.
    pub(crate) fn known_registers(&self, value: Value<'_, '_>) -> Option<Registers<'ctx>> {
        self.values.get(&key(value)).cloned()
    }

    /// Removes the registers of a value.
    pub(crate) fn unbind(&mut self, value: Value<'_, '_>) {
        self.values.remove(&key(value));
    }

    /// Sets the registers of a value.
    pub(crate) fn bind(&mut self, value: Value<'_, '_>, registers: Registers<'ctx>) {
        self.values.insert(key(value), registers);
    }

    /// Sets the registers of the first result of an operation.
    pub(crate) fn bind_result(
        &mut self,
        op: OperationRef<'_, '_>,
        registers: impl Into<Registers<'ctx>>,
    ) {
        self.bind_result_at(op, 0, registers);
    }

    /// Sets the registers of a result of an operation.
    pub(crate) fn bind_result_at(
        &mut self,
        op: OperationRef<'_, '_>,
        index: usize,
        registers: impl Into<Registers<'ctx>>,
    ) {
        let value = result(op, index);
        let registers = self.one_for_each_run(value, registers.into());
        self.bind(value, registers);
    }

    /// One LLVM value for all registers of a thread that are known to hold the same number in every thread: they are
    /// in one aligned run along which the value does not vary. A mask `i < n` with `n` a multiple of the vector is
    /// then one comparison for the vector, and not one for each element, which the optimiser could not derive, since
    /// it does not know what divides `n`. For the same reason a remainder `i % n` is computed once for a run of `i`, and
    /// a sum for each of the others. What an op promises is believed of what one access moves alone ([`ValueFacts::proven`]).
    fn one_for_each_run(
        &self,
        value: Value<'_, '_>,
        registers: Registers<'ctx>,
    ) -> Registers<'ctx> {
        if registers.len() == 1 || registers.iter().all(|other| *other == registers[0]) {
            return registers;
        }
        // The first register of a run may belong to another part.
        if self.late.is_part() {
            return registers;
        }
        let known = self.program.facts;
        let (Ok(ValueType::Tensor(tensor)), Some(facts), Some(proven)) =
            (self.type_of(value), known.of(value), known.proven(value))
        else {
            return registers;
        };
        let equal = facts.dims.iter().zip(&proven.dims);
        let equal: Vec<u64> = equal
            .map(|(known, proven)| known.constancy.min(MOST_OF_ACCESS).max(proven.constancy))
            .map(Pow2::get)
            .collect();
        // What remains of numbers that follow each other follows each other, too; a division takes long.
        let divides = value
            .defining_op()
            .is_some_and(elementwise::is_integer_quotient);
        if divides {
            let follows = |dim: &DimFacts| dim.contiguity > dim.constancy;
            let counts: Vec<bool> = proven.dims.iter().map(follows).collect();
            let runs = proven.dims.iter().zip(&equal).zip(&counts);
            let runs: Vec<u64> = runs
                .map(|((dim, equal), counts)| match counts {
                    true => dim.contiguity.get(),
                    false => *equal,
                })
                .collect();
            if let Some(first) = tensor.first_of_runs(&runs)
                && let Some(distances) = tensor.distances_in_runs(&first, &runs, &counts)
            {
                let of_run = first.into_iter().zip(distances);
                let register = |(first, distance): (usize, i64)| {
                    let number: V<'_> = registers[first];
                    self.e.add(number, self.e.int_like(number, distance))
                };
                return of_run.map(register).collect();
            }
        }
        match tensor.first_of_runs(&equal) {
            Some(first) => first.into_iter().map(|first| registers[first]).collect(),
            None => registers,
        }
    }

    /// Tells a simulator that an index must be below a bound, if it checks indices.
    pub(crate) fn expect_below(&self, index: V<'ctx>, bound: u32) {
        if self.program.check_indices {
            self.e.expect_below(index, bound);
        }
    }

    /// The type of a value.
    pub(crate) fn type_of(&self, value: Value<'_, '_>) -> Lowered<ValueType> {
        self.types
            .resolve(value.r#type())
            .map_err(|message| CodegenError::Invalid {
                location: describe(value.location()),
                message,
            })
    }

    /// The type of an operation's first result.
    pub(crate) fn result_type(&self, op: OperationRef<'_, '_>) -> Lowered<ValueType> {
        self.type_of(result(op, 0))
    }

    /// The tensor type of a value that its verifier promises to be a tensor.
    pub(crate) fn tensor_of(
        &self,
        op: OperationRef<'_, '_>,
        value: Value<'_, '_>,
    ) -> Lowered<Rc<TensorType>> {
        match self.type_of(value)? {
            ValueType::Tensor(tensor) => Ok(tensor),
            ValueType::Scalar(_) => Err(self.invalid(op, "a tensor is expected here")),
        }
    }

    // Threads.

    /// The threads that execute what is being emitted.
    pub(crate) fn own_threads(&self) -> u32 {
        self.context.warps * self.program.threads_per_warp
    }

    /// Waits for all warps that execute this code, and orders their accesses to shared memory.
    pub(crate) fn barrier(&self) {
        self.barrier_of(self.program.orders_global_memory);
    }

    /// Waits for all warps that execute this code, and orders their accesses to all memory.
    pub(crate) fn barrier_of_all_memory(&self) {
        self.barrier_of(true);
    }

    fn barrier_of(&self, all_memory: bool) {
        let (hooks, e) = (self.hooks(), self.e);
        match (self.context.barrier, hooks.partitions()) {
            (Some(_), _) if self.context.warps == 1 => hooks.warp_barrier(e),
            (Some(id), Some(partitions)) => {
                partitions.barrier_of(e, id, self.own_threads());
            }
            _ if all_memory => hooks.barrier(e),
            _ => hooks.shared_memory_barrier(e),
        }
    }

    /// A linear function of the thread's number in its block (lanes, then warps) and of the block's number.
    pub(crate) fn linear(&self, thread_bases: &[u32], block_bases: &[u32]) -> V<'ctx> {
        self.threads
            .linear(self.e, self.hooks(), thread_bases, block_bases)
    }

    /// Whether an odd number of the given bits of lane, warp and block are set.
    pub(crate) fn parity(&self, lanes: u32, warps: u32, blocks: u32) -> V<'ctx> {
        let lane_bits = self.program.threads_per_warp.trailing_zeros();
        self.threads
            .parity(self.e, self.hooks(), lanes | warps << lane_bits, blocks)
    }

    // Errors.

    /// An error: this operation cannot be emitted, for a reason if only some aspect of it is not supported.
    pub(crate) fn unsupported(
        &self,
        op: OperationRef<'_, '_>,
        reason: Option<String>,
    ) -> CodegenError {
        CodegenError::UnsupportedOp {
            location: describe(op.location()),
            op: name(op),
            target: self.hooks().target(),
            reason,
        }
    }

    /// An error unless the target has a capability that this operation needs.
    pub(crate) fn require(&self, op: OperationRef<'_, '_>, feature: Feature) -> Lowered {
        let target = self.hooks().target();
        if target.has(feature) {
            return Ok(());
        }
        Err(CodegenError::MissingFeature {
            location: describe(op.location()),
            op: name(op),
            feature,
            target,
        })
    }

    /// An error: the source breaks a rule here.
    pub(crate) fn invalid(&self, op: OperationRef<'_, '_>, message: &str) -> CodegenError {
        CodegenError::Invalid {
            location: describe(op.location()),
            message: format!("'{}': {message}", name(op)),
        }
    }

    // Ops.

    /// Emits one operation.
    pub(crate) fn operation(&mut self, op: OperationRef<'_, '_>) -> Lowered {
        (self.emit)(self, op)
    }

    // Elementwise application.

    /// Applies a pure function to the operands' registers, one call for each distinct tuple of them. A scalar is the
    /// operand of every register.
    pub(crate) fn map(
        &self,
        operands: &[Registers<'ctx>],
        mut apply: impl FnMut(&Emitter<'ctx>, &[V<'ctx>]) -> V<'ctx>,
    ) -> Registers<'ctx> {
        use inkwell::values::AsValueRef;
        let count = operands
            .iter()
            .map(|registers| registers.len())
            .max()
            .unwrap_or(1);
        let mut known: HashMap<[usize; 3], V<'ctx>> = HashMap::new();
        let mut tuple: Vec<V<'ctx>> = Vec::with_capacity(operands.len());
        let values: Vec<Option<V<'ctx>>> =
            (0..count)
                .map(|register| {
                    tuple.clear();
                    tuple.extend(operands.iter().map(|registers| {
                        registers[if registers.len() == 1 { 0 } else { register }]
                    }));
                    if self.late.leaves_out(register, count) {
                        return None;
                    }
                    if tuple.len() > 3 || count == 1 {
                        return Some(apply(self.e, &tuple));
                    }
                    let mut names = [0; 3];
                    for (name, value) in names.iter_mut().zip(&tuple) {
                        *name = value.as_value_ref() as usize;
                    }
                    Some(*known.entry(names).or_insert_with(|| apply(self.e, &tuple)))
                })
                .collect();
        // Registers outside of the part are never used.
        let some = values.iter().flatten().next().copied();
        values
            .iter()
            .filter_map(|value| value.or_else(|| Some(self.e.poison(some?.get_type()))))
            .collect()
    }

    /// Makes the first result of an operation a function of the operands, elementwise.
    pub(crate) fn each(
        &mut self,
        op: OperationRef<'_, '_>,
        function: impl FnMut(&Emitter<'ctx>, &[V<'ctx>]) -> V<'ctx>,
    ) -> Lowered {
        let operands = self.all_operands(op);
        let result = self.map(&operands, function);
        self.bind_result(op, result);
        Ok(())
    }

    /// Sets the operation, or none, to which the code emitted from here on belongs.
    pub(super) fn set_location(&mut self, op: Option<OperationRef<'_, '_>>) {
        match (&mut self.lines, op) {
            (Some((lines, subprogram)), Some(op)) => {
                let location = lines.location(op.location(), *subprogram);
                self.e.builder().set_current_debug_location(location);
            }
            _ => self.e.builder().unset_current_debug_location(),
        }
    }
}

// Access to parts of the source that exist in verified IR.

/// The name of an operation.
pub(crate) fn name(op: OperationRef<'_, '_>) -> String {
    op.name()
        .as_string_ref()
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

/// A result of an operation.
pub(crate) fn result<'c, 'a>(op: OperationRef<'c, 'a>, index: usize) -> Value<'c, 'a> {
    op.result(index)
        .expect("bug in llopt: the operation has this result")
        .into()
}

/// An operand of an operation.
pub(crate) fn operand<'c, 'a>(op: OperationRef<'c, 'a>, index: usize) -> Value<'c, 'a> {
    op.operand(index)
        .expect("bug in llopt: the operation has this operand")
}

/// An integer attribute.
pub(crate) fn integer_attribute(op: OperationRef<'_, '_>, name: &str) -> Option<i64> {
    let attribute: Attribute<'_> = op.attribute(name).ok()?;
    melior::ir::attribute::IntegerAttribute::try_from(attribute)
        .ok()
        .map(|integer| integer.value())
}
