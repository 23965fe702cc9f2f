//! One walk over a function: blocks in an order in which definitions come before uses, operations in the
//! order they stand, each emitted by the file of its family.

use std::collections::HashMap;
use std::rc::Rc;

use inkwell::basic_block::BasicBlock;
use inkwell::debug_info::DISubprogram;
use llopt_plan::facts::ValueFacts;
use llopt_plan::plans::Plans;
use llopt_plan::tensor::{TensorType, ValueType};
use llopt_plan::types::Types;
use llopt_target::Feature;
use melior::ir::operation::OperationLike;
use melior::ir::{
    Attribute, BlockLike, BlockRef, OperationRef, RegionLike, RegionRef, Value, ValueLike,
};

use crate::error::CodegenError;
use crate::llvm::emitter::{Emitter, V};
use crate::targets::hooks::Hooks;
use crate::values::threads::Threads;
use crate::walk::carried::Carried;
use crate::walk::context::ExecutionContext;
use crate::walk::copy_log::CopyLog;
use crate::walk::decision::{Choice, Journal};
use crate::walk::late::Late;
use crate::walk::location::{LineTable, describe};
pub(crate) use crate::walk::names::{argument, block_key, key};
use crate::walk::workers::{KERNEL_BARRIER, Workers};

/// The LLVM values that carry one source value: one per register, or one for a scalar.
pub(crate) type Registers<'ctx> = Rc<[V<'ctx>]>;

/// What emission of one operation gives.
pub(crate) type Lowered<T = ()> = Result<T, CodegenError>;

/// What is the same for all functions of a module.
pub(crate) struct Program<'r> {
    /// The vendor's instructions.
    pub(crate) hooks: &'r dyn Hooks,
    /// What is known about addresses and masks.
    pub(crate) facts: &'r ValueFacts,
    /// What the code of ops does.
    pub(crate) plans: &'r Plans,
    /// Warps that run a kernel's own code.
    pub(crate) num_warps: u32,
    /// Warps per block, those of partitions included.
    pub(crate) launched_warps: u32,
    /// Registers of each thread at the start, of which groups of warps may have others while they run code of
    /// their own.
    pub(crate) divided_registers: Option<u32>,
    /// Blocks per cluster.
    pub(crate) num_ctas: u32,
    /// Threads per warp.
    pub(crate) threads_per_warp: u32,
    /// Whether all barriers order global memory ([`llopt_plan::global_order`]).
    pub(crate) orders_global_memory: bool,
    /// Whether a simulator looks at indices.
    pub(crate) check_indices: bool,
    /// Whether a simulator is told where buffers begin and end.
    pub(crate) mark_buffers: bool,
    /// Where decisions are written down.
    pub(crate) journal: Journal,
}

/// Arguments that every function gets beside those of the source.
pub(crate) struct HiddenArguments<'ctx> {
    /// Where the function's shared memory begins.
    pub(crate) shared: V<'ctx>,
    /// Scratch space in global memory.
    pub(crate) global_scratch: V<'ctx>,
    /// Scratch space of the profiler.
    pub(crate) profile_scratch: V<'ctx>,
}

/// A function being emitted.
pub(crate) struct FunctionLowering<'r, 'c, 'a, 'ctx> {
    /// The LLVM side.
    pub(crate) e: &'r Emitter<'ctx>,
    /// What is the same for all functions.
    pub(crate) program: &'r Program<'r>,
    /// Source types, resolved once each.
    pub(crate) types: &'r Types,
    /// The warps that execute what is being emitted.
    pub(crate) context: ExecutionContext,
    /// This thread's place in layouts.
    pub(crate) threads: Threads<'ctx>,
    /// The warps of partitions, if this is a kernel that has some.
    pub(crate) workers: Option<Workers<'c, 'a, 'ctx>>,
    /// Where the partition that is being emitted ends.
    pub(crate) partition_end: Option<BasicBlock<'ctx>>,
    /// The arguments beside the source's; absent where nothing can need them.
    pub(crate) hidden: HiddenArguments<'ctx>,
    /// Whether this is the entry point.
    pub(crate) is_kernel: bool,
    /// Copies that run beside the program, and waits for them.
    pub(crate) copies: CopyLog<'ctx>,
    /// What is emitted late, and anew.
    pub(crate) late: Late<'ctx>,
    lines: Option<(&'r mut LineTable<'ctx>, DISubprogram<'ctx>)>,
    values: HashMap<usize, Registers<'ctx>>,
    blocks: HashMap<usize, Block<'ctx>>,
    exits: Vec<Exit<'ctx>>,
}

/// Where a source block went.
#[derive(Clone)]
struct Block<'ctx> {
    llvm: BasicBlock<'ctx>,
    carried: Vec<Carried<'ctx>>,
}

/// Where the terminators of an inlined region lead.
struct Exit<'ctx> {
    to: BasicBlock<'ctx>,
    arrivals: Vec<(BasicBlock<'ctx>, Vec<Registers<'ctx>>)>,
}

impl<'r, 'c: 'a, 'a, 'ctx> FunctionLowering<'r, 'c, 'a, 'ctx> {
    /// Begins a function whose entry block is the current one.
    pub(crate) fn new(
        e: &'r Emitter<'ctx>,
        program: &'r Program<'r>,
        types: &'r Types,
        hidden: HiddenArguments<'ctx>,
        is_kernel: bool,
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
            lines,
            values: HashMap::new(),
            blocks: HashMap::new(),
            exits: Vec::new(),
        }
    }

    /// The vendor's instructions.
    pub(crate) fn hooks(&self) -> &'r dyn Hooks {
        self.program.hooks
    }

    /// Writes down what is decided about an op.
    pub(crate) fn record(&self, op: OperationRef<'c, 'a>, choice: impl FnOnce() -> Choice) {
        if !self.late.is_again(op) {
            self.program.journal.record(op, choice);
        }
    }

    // Values.

    /// The registers of a value.
    pub(crate) fn registers(&self, value: Value<'c, 'a>) -> Registers<'ctx> {
        self.values
            .get(&key(value))
            .cloned()
            .expect("bug in llopt: a value is emitted before its uses")
    }

    /// The one register of a scalar.
    pub(crate) fn scalar(&self, value: Value<'c, 'a>) -> V<'ctx> {
        self.registers(value)[0]
    }

    /// The registers of a value, if it has been emitted.
    pub(crate) fn known_registers(&self, value: Value<'c, 'a>) -> Option<Registers<'ctx>> {
        self.values.get(&key(value)).cloned()
    }

    /// Forgets which registers carry a value.
    pub(crate) fn unbind(&mut self, value: Value<'c, 'a>) {
        self.values.remove(&key(value));
    }

    /// Says which registers carry a value.
    pub(crate) fn bind(&mut self, value: Value<'c, 'a>, registers: Registers<'ctx>) {
        self.values.insert(key(value), registers);
    }

    /// Says which registers carry the first result of an operation.
    pub(crate) fn bind_result(
        &mut self,
        op: OperationRef<'c, 'a>,
        registers: impl Into<Registers<'ctx>>,
    ) {
        self.bind_result_at(op, 0, registers);
    }

    /// Says which registers carry a result of an operation.
    pub(crate) fn bind_result_at(
        &mut self,
        op: OperationRef<'c, 'a>,
        index: usize,
        registers: impl Into<Registers<'ctx>>,
    ) {
        let value = result(op, index);
        let registers = self.one_for_each_run(value, registers.into());
        self.bind(value, registers);
    }

    /// One LLVM value for all registers of a thread that are known to hold the same number, whatever the
    /// thread: they lie in one aligned run along which the value does not vary. A mask `i < n` with `n` a
    /// multiple of the vector is then one comparison for the vector, and not one for each element, which
    /// the optimiser could not find out: it does not know what divides `n`.
    fn one_for_each_run(
        &self,
        value: Value<'c, 'a>,
        registers: Registers<'ctx>,
    ) -> Registers<'ctx> {
        if registers.len() == 1 || registers.iter().all(|other| *other == registers[0]) {
            return registers;
        }
        // The first of a run may be of another part.
        if self.late.is_part() {
            return registers;
        }
        let (Ok(ValueType::Tensor(tensor)), Some(facts)) =
            (self.type_of(value), self.program.facts.of(value))
        else {
            return registers;
        };
        let runs: Vec<u64> = facts.dims.iter().map(|dim| dim.constancy.get()).collect();
        match tensor.first_of_runs(&runs) {
            Some(first) => first.into_iter().map(|first| registers[first]).collect(),
            None => registers,
        }
    }

    /// Tells a simulator that an index must be below a bound, if one looks.
    pub(crate) fn expect_below(&self, index: V<'ctx>, bound: u32) {
        if self.program.check_indices {
            self.e.expect_below(index, bound);
        }
    }

    /// The type of a value.
    pub(crate) fn type_of(&self, value: Value<'c, 'a>) -> Lowered<ValueType> {
        self.types
            .resolve(value.r#type())
            .map_err(|message| CodegenError::Invalid {
                location: describe(value.location()),
                message,
            })
    }

    /// The type of an operation's first result.
    pub(crate) fn result_type(&self, op: OperationRef<'c, 'a>) -> Lowered<ValueType> {
        self.type_of(result(op, 0))
    }

    /// The tensor type of a value that its verifier promises to be a tensor.
    pub(crate) fn tensor_of(
        &self,
        op: OperationRef<'c, 'a>,
        value: Value<'c, 'a>,
    ) -> Lowered<Rc<TensorType>> {
        match self.type_of(value)? {
            ValueType::Tensor(tensor) => Ok(tensor),
            ValueType::Scalar(_) => Err(self.invalid(op, "a tensor is expected here")),
        }
    }

    // Threads.

    /// Waits for all warps that execute this code, and for what they do to shared memory.
    pub(crate) fn barrier(&self) {
        self.barrier_of(self.program.orders_global_memory);
    }

    /// Waits for all warps that execute this code, and for what they do to any memory.
    pub(crate) fn barrier_of_all_memory(&self) {
        self.barrier_of(true);
    }

    fn barrier_of(&self, all_memory: bool) {
        let (hooks, e) = (self.hooks(), self.e);
        match (self.context.barrier, hooks.partitions()) {
            (Some(_), _) if self.context.warps == 1 => hooks.warp_barrier(e),
            (Some(id), Some(partitions)) => {
                partitions.barrier_of(e, id, self.context.warps * self.program.threads_per_warp);
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

    /// This operation cannot be emitted, for a reason if it is not the operation as such.
    pub(crate) fn unsupported(
        &self,
        op: OperationRef<'c, 'a>,
        reason: Option<String>,
    ) -> CodegenError {
        CodegenError::UnsupportedOp {
            location: describe(op.location()),
            op: name(op),
            target: self.hooks().target(),
            reason,
        }
    }

    /// This operation needs a capability.
    pub(crate) fn require(&self, op: OperationRef<'c, 'a>, feature: Feature) -> Lowered {
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

    /// The source breaks a rule here.
    pub(crate) fn invalid(&self, op: OperationRef<'c, 'a>, message: &str) -> CodegenError {
        CodegenError::Invalid {
            location: describe(op.location()),
            message: format!("'{}': {message}", name(op)),
        }
    }

    // Elementwise application.

    /// Applies a pure function to the operands' registers, one call for each distinct tuple of them.
    /// Scalars count for all registers.
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
        // What is left out is nobody's concern.
        let some = values.iter().flatten().next().copied();
        values
            .iter()
            .filter_map(|value| value.or_else(|| Some(self.e.poison(some?.get_type()))))
            .collect()
    }

    // The walk.

    /// Emits the blocks of a function's body. The entry block's arguments are `arguments`.
    pub(crate) fn body(
        &mut self,
        region: RegionRef<'c, 'a>,
        arguments: Vec<Registers<'ctx>>,
    ) -> Lowered {
        let entry = self.e.block();
        let Some(first) = region.first_block() else {
            return Ok(());
        };
        let start = self.e.new_block(self.e.function());
        self.e.enter(start);
        for (i, registers) in arguments.into_iter().enumerate() {
            self.bind(argument(first, i), registers);
        }
        self.blocks.insert(
            block_key(first),
            Block {
                llvm: start,
                carried: Vec::new(),
            },
        );
        self.walk_blocks(first, true)?;
        self.settle_waits();
        // The entry block, where the threads' numbers are computed, leads into the body.
        self.e.enter(entry);
        self.set_location(None);
        self.e.branch(start);
        Ok(())
    }

    /// Emits the blocks that are reachable from `first`, for which a block exists already if `is_entered`.
    fn walk_blocks(&mut self, first: BlockRef<'c, 'a>, first_exists: bool) -> Lowered {
        let order = reverse_post_order(first);
        self.copies.expect(&order);
        for block in order.iter().skip(usize::from(first_exists)) {
            self.open_block(*block)?;
        }
        for block in order {
            let llvm = self.blocks[&block_key(block)].llvm;
            self.e.enter(llvm);
            self.copies.enter(block);
            self.find_late(block)?;
            let mut next = block.first_operation();
            while let Some(op) = next {
                next = op.next_in_block();
                self.set_location(Some(op));
                self.operation_in_time(op)?;
            }
        }
        Ok(())
    }

    /// Makes the LLVM block of a source block, with the phis of its arguments.
    fn open_block(&mut self, block: BlockRef<'c, 'a>) -> Lowered {
        let llvm = self.e.new_block(self.e.function());
        self.e.enter(llvm);
        self.set_location(None);
        let mut carried = Vec::with_capacity(block.argument_count());
        for i in 0..block.argument_count() {
            let value = argument(block, i);
            let of = self.type_of(value)?;
            let count = self.distinct_registers(&of).count();
            let plans = self.program.plans;
            carried.push(Carried::new(self.e, plans, value, &of, count));
        }
        // All phis stand before what takes their words apart.
        for (i, carried) in carried.iter().enumerate() {
            let value = argument(block, i);
            let of = self.type_of(value)?;
            let distinct = carried.registers(self.e);
            self.bind(value, self.spread(&of, &distinct));
        }
        self.blocks
            .insert(block_key(block), Block { llvm, carried });
        Ok(())
    }

    /// The registers of a type that hold different elements.
    pub(crate) fn distinct_registers<'t>(
        &self,
        of: &'t ValueType,
    ) -> Box<dyn Iterator<Item = usize> + 't> {
        match of {
            ValueType::Scalar(_) => Box::new(std::iter::once(0)),
            ValueType::Tensor(tensor) => Box::new(
                (0..tensor.registers()).filter(|register| tensor.canonical(*register) == *register),
            ),
        }
    }

    /// All registers of a type from its distinct ones.
    pub(crate) fn spread(&self, of: &ValueType, distinct: &[V<'ctx>]) -> Registers<'ctx> {
        match of {
            ValueType::Scalar(_) => distinct.into(),
            ValueType::Tensor(tensor) if distinct.len() == tensor.registers() => distinct.into(),
            ValueType::Tensor(tensor) => {
                let mut place = HashMap::new();
                for register in 0..tensor.registers() {
                    let next = place.len();
                    place.entry(tensor.canonical(register)).or_insert(next);
                }
                (0..tensor.registers())
                    .map(|register| distinct[place[&tensor.canonical(register)]])
                    .collect()
            }
        }
    }

    /// Passes block arguments: adds what flows from the current block into the phis of `to`.
    pub(crate) fn flow_into(
        &mut self,
        to: BlockRef<'c, 'a>,
        arguments: &[Value<'c, 'a>],
    ) -> Lowered<BasicBlock<'ctx>> {
        self.copies.branch(to, arguments);
        let from = self.e.block();
        let target = self.blocks[&block_key(to)].clone();
        for (carried, value) in target.carried.iter().zip(arguments) {
            let of = self.type_of(*value)?;
            let registers = self.registers(*value);
            let distinct: Vec<V<'ctx>> = self
                .distinct_registers(&of)
                .map(|register| registers[register])
                .collect();
            carried.flow(self.e, self.hooks(), &distinct, from);
        }
        Ok(target.llvm)
    }

    /// Emits a copy of a region with its block arguments bound, and returns what its terminator yields.
    pub(crate) fn inline_region(
        &mut self,
        op: OperationRef<'c, 'a>,
        region: RegionRef<'c, 'a>,
        arguments: &[Registers<'ctx>],
    ) -> Lowered<Vec<Registers<'ctx>>> {
        let first = region
            .first_block()
            .ok_or_else(|| self.invalid(op, "its region has no block"))?;
        for (i, registers) in arguments.iter().enumerate() {
            self.bind(argument(first, i), registers.clone());
        }
        if first.next_in_region().is_none() {
            // One block: straight-line code where we are.
            let mut next = first.first_operation();
            while let Some(inner) = next {
                next = inner.next_in_block();
                if next.is_none() {
                    return Ok(inner
                        .operands()
                        .map(|value| self.registers(value))
                        .collect());
                }
                self.set_location(Some(inner));
                self.operation(inner)?;
            }
            return Err(self.invalid(op, "its region has no terminator"));
        }
        let function = self.e.function();
        let (start, end) = (self.e.new_block(function), self.e.new_block(function));
        self.e.branch(start);
        self.blocks.insert(
            block_key(first),
            Block {
                llvm: start,
                carried: Vec::new(),
            },
        );
        self.exits.push(Exit {
            to: end,
            arrivals: Vec::new(),
        });
        let place = self.copies.place();
        self.walk_blocks(first, true)?;
        self.copies.go_back(place);
        let exit = self
            .exits
            .pop()
            .expect("bug in llopt: regions are left in the order they were entered");
        self.e.enter(end);
        let width = exit.arrivals.first().map_or(0, |(_, values)| values.len());
        Ok((0..width)
            .map(|i| {
                let count = exit.arrivals[0].1[i].len();
                (0..count)
                    .map(|register| {
                        let phi = self.e.phi(exit.arrivals[0].1[i][register].get_type());
                        for (from, values) in &exit.arrivals {
                            phi.add_incoming(&[(&values[i][register], *from)]);
                        }
                        phi.as_basic_value()
                    })
                    .collect()
            })
            .collect())
    }

    /// Leaves the innermost region that is being inlined with the operands of its terminator.
    pub(crate) fn leave_region(&mut self, op: OperationRef<'c, 'a>) -> Lowered {
        let values: Vec<Registers<'ctx>> =
            op.operands().map(|value| self.registers(value)).collect();
        let from = self.e.block();
        let Some(exit) = self.exits.last_mut() else {
            return Err(self.invalid(op, "it stands outside of a region that it could leave"));
        };
        exit.arrivals.push((from, values));
        let to = exit.to;
        self.e.branch(to);
        Ok(())
    }

    fn set_location(&mut self, op: Option<OperationRef<'c, 'a>>) {
        match (&mut self.lines, op) {
            (Some((lines, subprogram)), Some(op)) => {
                let location = lines.location(op.location(), *subprogram);
                self.e.builder().set_current_debug_location(location);
            }
            _ => self.e.builder().unset_current_debug_location(),
        }
    }
}

// Access to the source that verified IR makes infallible.

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

/// The blocks reachable from `first`, each before the blocks it dominates, and where there is a choice what the
/// first successor leads to before the others. So the body of a loop stands before its exit, and the branch
/// back can fall through to the exit: LLVM's NVPTX back end cannot turn conditions round, and would branch
/// twice in each iteration.
fn reverse_post_order<'c, 'a>(first: BlockRef<'c, 'a>) -> Vec<BlockRef<'c, 'a>> {
    let mut seen = std::collections::HashSet::from([block_key(first)]);
    let mut order = Vec::new();
    let mut stack = vec![(first, first.successor_count())];
    while let Some((block, left)) = stack.pop() {
        if let Some(next) = left.checked_sub(1) {
            stack.push((block, next));
            if let Ok(successor) = block.successor(next)
                && seen.insert(block_key(successor))
            {
                stack.push((successor, successor.successor_count()));
            }
        } else {
            order.push(block);
        }
    }
    order.reverse();
    order
}
