//! The reference interpreter: executes a `tt`/`ttg` module on whole tensors, by the meaning of its operations.
//!
//! It knows no layout, no warp and no LLVM. A tensor is its shape and its elements in row-major order; an operation
//! is a function from tensors to tensors; layout conversions and barriers do nothing; a shared-memory buffer is an
//! array with a view. The programs of a grid run one after another. Where the machine and this interpreter agree on
//! random inputs, lowering, layouts and synchronisation are right.
//!
//! Floating point: element by element, each operation rounds once in the type of its operands, as the machine does,
//! and uses the machine's functions on rows, which are tested against the host and against exhaustive tables. Sums
//! differ in order: a reduction here combines along its axis in ascending order, a dot product adds exact products in
//! double precision and rounds once, while compiled code combines in the order of its layout. Every element therefore
//! has a bound on the difference to compiled code ([`Bounds`]), which is zero (equal bit for bit) unless it depends
//! on such a sum or from a function with a documented error.
//!
//! Two operations leave their results open: `tt.cat`, and `tt.reshape` with `allow_reorder`, may put the elements in
//! any order; here they keep their order.
//!
//! An unknown operation is an error that names it.

mod assembly;
mod bound;
mod combine;
mod descriptor;
mod elementwise;
mod failure;
mod function;
mod library;
mod limits;
mod meaning;
mod memory;
mod partitions;
mod product;
mod program;
mod shape;
mod value;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use llopt_dialects::meaning::facts::Control;
use llopt_dialects::meaning::kinds::{AssemblyOp, ControlOp};
use llopt_dialects::tables::types::TensorDesc;
use llopt_dialects::{Op, scf, tt, ttg};
use llopt_mlir::ir::{AttributeExt, BlockExt, OperationExt, RegionExt, Walk};
use melior::ir::{BlockRef, Module, OperationRef, Value as Handle, ValueLike};

use crate::error::{Error, LaunchError};
use crate::machine::launch::{Argument, Launch, map_buffers};
use crate::memory::global::GlobalMemory;

use bound::Doubts;
use failure::{Failure, Interpreted, unknown, wrong};
use function::Function;
use limits::{DEEPEST, OPERATION};
use meaning::Room;
use program::{Barriers, Flow, Located, Program};
use value::{Descriptor, Element, Tensor, Value, View, shape_of};

pub use limits::Limits;

/// Bounds on the differences between the numbers in buffers and those of compiled code.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bounds {
    /// For each buffer, by the position of its argument: the bound of the element at an offset in bytes. Elements
    /// that are not listed must be equal; the bound is infinite where nothing is known.
    pub buffers: BTreeMap<usize, BTreeMap<u64, f64>>,
}

/// Runs the kernel of `module` (its only public function) on whole tensors. Buffers among the arguments have the
/// contents that the kernel left; the result is the bound on the difference to compiled code. The launch's block size
/// and shared memory are not used, and null pointers after the module's own parameters (scratch memory) are ignored.
///
/// # Errors
/// [`Error::NoKernel`], [`Error::Launch`], [`Error::Unsupported`] for an operation that is not known, and
/// [`Error::Stopped`] when an assertion fails, an access is out of bounds or a program does not end.
pub fn run(module: &Module<'_>, launch: &mut Launch) -> Result<Bounds, Error> {
    run_within(module, launch, Limits::default())
}

/// The same, with limits for each program.
///
/// # Errors
/// As [`run`].
pub fn run_within(
    module: &Module<'_>,
    launch: &mut Launch,
    limits: Limits,
) -> Result<Bounds, Error> {
    let mut again = launch.clone();
    let (bounds, meetings) = run_knowing(module, launch, limits, HashSet::new())?;
    if meetings.is_empty() {
        return Ok(bounds);
    }
    // The result of an atomic is certain where no other atomic uses its address, which only the end of a run shows.
    let (bounds, _) = run_knowing(module, &mut again, limits, meetings)?;
    *launch = again;
    Ok(bounds)
}

/// A run that knows the addresses that several atomics use; also returns those that it found.
fn run_knowing(
    module: &Module<'_>,
    launch: &mut Launch,
    limits: Limits,
    contended: HashSet<u64>,
) -> Result<(Bounds, HashSet<u64>), Error> {
    let root = module.as_operation();
    let (kernel, entry) = kernel_of(root)?;
    let parameters: Vec<Handle<'_, '_>> = entry.argument_values().collect();
    let given = &launch.arguments;
    let scratch = given.get(parameters.len()..).unwrap_or_default();
    if given.len() < parameters.len() || scratch.iter().any(|a| *a != Argument::Null) {
        return Err(LaunchError::ArgumentCount {
            expected: parameters.len(),
            given: given.len(),
        }
        .into());
    }
    let mut memory = GlobalMemory::new();
    let (arguments, buffers) = arguments_in(&mut memory, &parameters, given)?;
    map_buffers(launch, &mut memory)?;
    let doubts = Doubts::knowing(contended);
    let mut outcome = Ok(());
    let [nx, ny, nz] = launch.grid;
    'grid: for z in 0..nz {
        for y in 0..ny {
            for x in 0..nx {
                let mut program = Program {
                    module: root,
                    memory: &memory,
                    id: [x, y, z],
                    grid: launch.grid,
                    values: HashMap::new(),
                    arrays: Vec::new(),
                    doubts: &doubts,
                    undecided: false,
                    descriptors: HashMap::new(),
                    scratch: 0,
                    barriers: Barriers::new(),
                    depth: 0,
                    work: limits.work,
                    room: limits.memory,
                    limits,
                };
                let result = program.function(kernel, arguments.clone());
                if let Err((failure, op)) = result {
                    outcome = Err(program.error(failure, op));
                    break 'grid;
                }
            }
        }
    }
    let meetings = doubts.meetings();
    let bounds = buffers_after(launch, &memory, buffers, &doubts.into_bounds());
    outcome.map(|()| (bounds, meetings))
}

/// The buffers among the arguments: the argument, and its address in memory.
type Buffers = Vec<(usize, u64)>;

/// The only public function of a module, and its first block.
fn kernel_of<'c, 'a>(
    root: OperationRef<'c, 'a>,
) -> Result<(OperationRef<'c, 'a>, BlockRef<'c, 'a>), Error> {
    let mut kernels = Vec::new();
    root.for_each_op(Walk::PreOrder, |op| {
        if Control::of(op) == Control::Function
            && op.attr("sym_visibility").and_then(|v| v.as_str()) != Some("private")
        {
            kernels.push(op);
        }
    });
    let name = |op: &OperationRef<'_, '_>| {
        op.attr("sym_name")
            .and_then(|n| n.as_str())
            .unwrap_or("")
            .to_owned()
    };
    let [kernel] = kernels[..] else {
        return Err(Error::NoKernel {
            wanted: None,
            available: kernels.iter().map(name).collect(),
        });
    };
    let entry = kernel.region_ref(0).and_then(RegionExt::entry);
    match entry {
        Some(entry) => Ok((kernel, entry)),
        None => Err(Error::NoKernel {
            wanted: Some(name(&kernel)),
            available: Vec::new(),
        }),
    }
}

/// The values of the parameters, and the buffers among them.
fn arguments_in(
    memory: &mut GlobalMemory,
    parameters: &[Handle<'_, '_>],
    given: &[Argument],
) -> Result<(Vec<Value>, Buffers), Error> {
    let mut buffers = Vec::new();
    let mut arguments = Vec::new();
    for (index, (parameter, argument)) in parameters.iter().zip(given).enumerate() {
        let mismatch = || LaunchError::ArgumentKind {
            index,
            expected: parameter.r#type().to_string(),
            given: argument.kind(),
        };
        if TensorDesc::of(parameter.r#type()).is_some() {
            let Argument::Descriptor(given) = argument else {
                return Err(mismatch().into());
            };
            let base = memory.add(&given.contents, true, true);
            buffers.push((index, base));
            let bytes = i64::from(given.element_bytes);
            let strides = given.strides.iter().map(|&s| s as i64 * bytes);
            arguments.push(Value::Descriptor(Rc::new(Descriptor {
                base,
                shape: given.shape.iter().map(|&extent| extent as i64).collect(),
                strides: strides.collect(),
                nan: given.fill_nan,
            })));
            continue;
        }
        let element = Element::of(parameter.r#type()).ok_or_else(mismatch)?;
        let bits = match (element, argument) {
            (Element::Pointer(_), Argument::Buffer(bytes)) => {
                let address = memory.add(bytes, true, true);
                buffers.push((index, address));
                address
            }
            (Element::Pointer(_), Argument::Uninitialized(size)) => {
                let address = memory.add(&vec![0; *size], true, true);
                buffers.push((index, address));
                address
            }
            (Element::Pointer(_), Argument::Null) => 0,
            (Element::Pointer(_), Argument::Address(address)) => *address,
            (Element::Int(width), Argument::Int(value)) => {
                *value as u64 & crate::machine::row::mask(width)
            }
            (Element::Real(real), Argument::Real(value)) => real.encode(*value),
            (Element::Real(real), Argument::Int(value)) => real.encode(*value as f64),
            _ => return Err(mismatch().into()),
        };
        arguments.push(Value::Tensor(Tensor::scalar(element, bits)));
    }
    Ok((arguments, buffers))
}

/// Returns the buffers as the run left them, and the bound of each element.
fn buffers_after(
    launch: &mut Launch,
    memory: &GlobalMemory,
    buffers: Buffers,
    doubtful: &HashMap<u64, f64>,
) -> Bounds {
    let mut bounds = Bounds::default();
    for (index, address) in buffers {
        let contents = memory.contents(address);
        let inside = address..address + contents.len() as u64;
        let own = doubtful.iter().filter(|(at, _)| inside.contains(at));
        bounds.buffers.insert(
            index,
            own.map(|(at, bound)| (at - address, *bound)).collect(),
        );
        launch.arguments[index] = Argument::Buffer(contents);
    }
    bounds
}

impl<'c, 'a> Program<'c, 'a, '_> {
    fn error(&self, failure: Failure, op: OperationRef<'c, 'a>) -> Error {
        let instruction = op.name_str().to_owned();
        match failure {
            Failure::Unknown(what) => Error::Unsupported {
                what,
                function: op
                    .parent_named(tt::FuncOp::NAME)
                    .and_then(|f| f.attr("sym_name"))
                    .and_then(|n| n.as_str())
                    .unwrap_or_default()
                    .to_owned(),
                instruction,
            },
            Failure::Wrong(message) => Error::Stopped {
                block: self.id,
                message: format!("{instruction}: {message}"),
                report: Box::default(),
            },
        }
    }

    fn key(handle: Handle<'c, 'a>) -> usize {
        handle.to_raw().ptr as usize
    }

    fn set(&mut self, handle: Handle<'c, 'a>, value: Value) {
        self.room = self.room.saturating_sub(value.bytes());
        if let Some(before) = self.values.insert(Self::key(handle), value) {
            self.room += before.bytes();
        }
    }

    /// Subtracts the cost of an operation from the limits, before it is executed.
    fn charge(&mut self, op: OperationRef<'c, 'a>) -> Interpreted<()> {
        let elements = op.result_types().fold(0u64, |sum, of| {
            let extents = shape_of(of).into_iter();
            sum.saturating_add(extents.fold(1, |count, extent| count.saturating_mul(extent as u64)))
        });
        // An element needs its bits, and mostly a bound and a temporary copy.
        if elements.saturating_mul(24) > self.room {
            return wrong(format!(
                "with its {elements} elements the program takes more than {} MiB",
                self.limits.memory >> 20
            ));
        }
        let Some(left) = self.work.checked_sub(elements.saturating_add(OPERATION)) else {
            return wrong(format!(
                "no end after computing {} elements",
                self.limits.work
            ));
        };
        self.work = left;
        Ok(())
    }

    fn get(&self, handle: Handle<'c, 'a>) -> Interpreted<Value> {
        self.values
            .get(&Self::key(handle))
            .cloned()
            .ok_or_else(|| Failure::Unknown("a value that nothing defines".to_owned()))
    }

    fn tensor(&self, handle: Handle<'c, 'a>) -> Interpreted<Tensor> {
        match self.get(handle)? {
            Value::Tensor(tensor) => Ok(tensor),
            other => unknown(format!("{other:?} as a tensor")),
        }
    }

    fn optional(&self, handle: Option<Handle<'c, 'a>>) -> Interpreted<Option<Tensor>> {
        handle.map(|h| self.tensor(h)).transpose()
    }

    fn operand(&self, op: OperationRef<'c, 'a>, index: usize) -> Interpreted<Tensor> {
        match op.operand_value(index) {
            Some(handle) => self.tensor(handle),
            None => unknown("this number of operands"),
        }
    }

    /// A condition of control flow.
    fn condition(&mut self, op: OperationRef<'c, 'a>) -> Interpreted<bool> {
        let condition = self.operand(op, 0)?;
        self.undecided |= condition.bound_at(0) > 0.0;
        Ok(condition.only()? & 1 == 1)
    }

    fn view(&self, handle: Handle<'c, 'a>) -> Interpreted<View> {
        match self.get(handle)? {
            Value::View(view) if self.arrays[view.array].freed => wrong(
                "it uses a buffer of shared memory after that was given back (ttg.local_dealloc)",
            ),
            Value::View(view) => Ok(view),
            other => unknown(format!("{other:?} as a memory descriptor")),
        }
    }

    /// Calls a function.
    fn function(
        &mut self,
        function: OperationRef<'c, 'a>,
        arguments: Vec<Value>,
    ) -> Located<'c, 'a, Vec<Value>> {
        let Some(mut block) = function.region_ref(0).and_then(RegionExt::entry) else {
            return Err((
                Failure::Unknown("a function without a body".to_owned()),
                function,
            ));
        };
        if self.depth == DEEPEST {
            return Err((
                Failure::Wrong(format!("calls nest deeper than {DEEPEST}")),
                function,
            ));
        }
        self.depth += 1;
        let mut arguments = arguments;
        loop {
            match self.block(block, arguments)? {
                Flow::Values(values) => {
                    self.depth -= 1;
                    return Ok(values);
                }
                Flow::Branch(target, values) => {
                    block = target;
                    arguments = values;
                }
                Flow::Condition(..) => {
                    return Err((
                        Failure::Unknown("a condition outside of a loop".to_owned()),
                        function,
                    ));
                }
            }
        }
    }

    /// Executes a region of one block.
    fn region(
        &mut self,
        op: OperationRef<'c, 'a>,
        index: usize,
        arguments: Vec<Value>,
    ) -> Located<'c, 'a, Flow<'c, 'a>> {
        match op.region_ref(index).and_then(RegionExt::entry) {
            Some(block) => self.block(block, arguments),
            None => Ok(Flow::Values(Vec::new())),
        }
    }

    /// The values a region yields.
    fn yielded(
        &mut self,
        op: OperationRef<'c, 'a>,
        index: usize,
        arguments: Vec<Value>,
    ) -> Located<'c, 'a, Vec<Value>> {
        match self.region(op, index, arguments)? {
            Flow::Values(values) => Ok(values),
            _ => Err((Failure::Unknown("a branch out of a region".to_owned()), op)),
        }
    }

    fn block(
        &mut self,
        block: BlockRef<'c, 'a>,
        arguments: Vec<Value>,
    ) -> Located<'c, 'a, Flow<'c, 'a>> {
        for (handle, value) in block.argument_values().zip(arguments) {
            self.set(handle, value);
        }
        for op in block.operations() {
            self.spend(op)?;
            if let Some(flow) = self.terminator(op).map_err(|f| (f, op))? {
                return Ok(flow);
            }
            let results = match self.control(op)? {
                Some(results) => results,
                None => self.operation(op).map_err(|f| (f, op))?,
            };
            for (handle, value) in op.result_values().zip(results) {
                self.set(handle, value);
            }
        }
        Ok(Flow::Values(Vec::new()))
    }

    /// Counts an operation.
    fn spend(&mut self, op: OperationRef<'c, 'a>) -> Located<'c, 'a, ()> {
        self.charge(op).map_err(|failure| (failure, op))
    }

    fn terminator(&mut self, op: OperationRef<'c, 'a>) -> Interpreted<Option<Flow<'c, 'a>>> {
        let all = |this: &Self, from: usize, to: usize| -> Interpreted<Vec<Value>> {
            op.operand_values()
                .skip(from)
                .take(to - from)
                .map(|v| this.get(v))
                .collect()
        };
        let count = op.operand_values().len();
        Ok(Some(match Control::of(op) {
            Control::Yield | Control::Return | Control::Result => {
                Flow::Values(all(self, 0, count)?)
            }
            Control::Condition => {
                let taken = self.condition(op)?;
                Flow::Condition(taken, all(self, 1, count)?)
            }
            Control::Branch => match op.successor_refs().next() {
                Some(target) => Flow::Branch(target, all(self, 0, count)?),
                None => return unknown("a branch to nowhere"),
            },
            Control::ConditionalBranch => {
                let taken = self.condition(op)?;
                let targets: Vec<_> = op.successor_refs().collect();
                let [yes, no] = targets[..] else {
                    return unknown("a branch to nowhere");
                };
                let split = 1 + yes.argument_values().len();
                if taken {
                    Flow::Branch(yes, all(self, 1, split)?)
                } else {
                    Flow::Branch(no, all(self, split, count)?)
                }
            }
            Control::Computes
            | Control::Function
            | Control::Call
            | Control::For
            | Control::While
            | Control::Choice
            | Control::Masked
            | Control::Concurrent
            | Control::Partitions
            | Control::ConcurrentYield
            | Control::PartitionEnd => return Ok(None),
        }))
    }

    /// Operations with regions, and calls.
    fn control(&mut self, op: OperationRef<'c, 'a>) -> Located<'c, 'a, Option<Vec<Value>>> {
        let at = |f: Failure| (f, op);
        Ok(Some(match Control::of(op) {
            Control::For => self.counted_loop(op)?,
            Control::Choice if scf::IfOp::of(op).is_some() => {
                let taken = self.condition(op).map_err(at)?;
                self.yielded(op, usize::from(!taken), Vec::new())?
            }
            Control::While => self.conditional_loop(op)?,
            Control::Call => self.call(op)?,
            Control::Concurrent => match ttg::WarpSpecializeOp::of(op) {
                Some(op) => self.specialize(op)?,
                None => return Ok(None),
            },
            Control::Computes => match Op::of(op).and_then(ControlOp::of) {
                Some(ControlOp::TtReduce(reduce)) => self.reduce(reduce)?,
                Some(ControlOp::TtScan(scan)) => self.scan(scan)?,
                // The region contains operations on single elements, which mean the same on all elements at once,
                // unless it branches: then it is executed element by element.
                Some(ControlOp::TtMapElementwise(map)) if map.pack() == 1 => {
                    self.map_elementwise(op)?
                }
                // With several elements at once: not known. The other ops are parts of control flow, or the arms of
                // such parts.
                Some(
                    ControlOp::TtMapElementwise(_)
                    | ControlOp::TtReturn(_)
                    | ControlOp::TtCall(_)
                    | ControlOp::TtMapElementwiseReturn(_)
                    | ControlOp::TtReduceReturn(_)
                    | ControlOp::TtScanReturn(_)
                    | ControlOp::TtgWarpSpecialize(_)
                    | ControlOp::TtgWarpSpecializePartitions(_)
                    | ControlOp::TtgWarpYield(_)
                    | ControlOp::TtgWarpReturn(_),
                )
                | None => return Ok(None),
            },
            Control::Function
            | Control::Return
            | Control::Condition
            | Control::Choice
            | Control::Masked
            | Control::Yield
            | Control::Result
            | Control::Partitions
            | Control::ConcurrentYield
            | Control::PartitionEnd
            | Control::Branch
            | Control::ConditionalBranch => return Ok(None),
        }))
    }

    /// A loop with a counter; returns the values that its last iteration yields.
    fn counted_loop(&mut self, op: OperationRef<'c, 'a>) -> Located<'c, 'a, Vec<Value>> {
        let at = |f: Failure| (f, op);
        let bound = |i| -> Interpreted<i64> { self.operand(op, i)?.signed() };
        let (low, high, step) = (
            bound(0).map_err(at)?,
            bound(1).map_err(at)?,
            bound(2).map_err(at)?,
        );
        let element = self.operand(op, 0).map_err(at)?.element;
        for i in 0..3 {
            let bound = self.operand(op, i).map_err(at)?.bound_at(0);
            self.undecided |= bound > 0.0;
        }
        let mut carried: Vec<Value> = op
            .operand_values()
            .skip(3)
            .map(|v| self.get(v))
            .collect::<Interpreted<_>>()
            .map_err(at)?;
        let mut i = low;
        while i < high {
            let mut arguments = vec![Value::Tensor(Tensor::scalar(
                element,
                i as u64 & element.mask(),
            ))];
            arguments.extend(carried);
            carried = self.yielded(op, 0, arguments)?;
            match i.checked_add(step.max(1)) {
                Some(next) => i = next,
                None => break,
            }
        }
        Ok(carried)
    }

    /// A loop with a condition; returns the values with which it ends.
    fn conditional_loop(&mut self, op: OperationRef<'c, 'a>) -> Located<'c, 'a, Vec<Value>> {
        let at = |f: Failure| (f, op);
        let mut values: Vec<Value> = op
            .operand_values()
            .map(|v| self.get(v))
            .collect::<Interpreted<_>>()
            .map_err(at)?;
        loop {
            match self.region(op, 0, values)? {
                Flow::Condition(true, inner) => values = self.yielded(op, 1, inner)?,
                Flow::Condition(false, last) => return Ok(last),
                _ => {
                    return Err(at(Failure::Unknown(
                        "a loop without a condition".to_owned(),
                    )));
                }
            }
        }
    }

    /// A call of a function of the module.
    fn call(&mut self, op: OperationRef<'c, 'a>) -> Located<'c, 'a, Vec<Value>> {
        let at = |f: Failure| (f, op);
        let arguments: Vec<Value> = op
            .operand_values()
            .map(|v| self.get(v))
            .collect::<Interpreted<_>>()
            .map_err(at)?;
        let callee = op
            .attr("callee")
            .and_then(|symbol| self.module.lookup_symbol(symbol));
        match callee {
            Some(callee) => self.function(callee, arguments),
            None => Err(at(Failure::Unknown(
                "the function that is called".to_owned(),
            ))),
        }
    }

    /// Operations without regions.
    fn operation(&mut self, op: OperationRef<'c, 'a>) -> Interpreted<Vec<Value>> {
        let unknown = || unknown(format!("the operation {}", op.name_str()));
        let Some(typed) = Op::of(op) else {
            return unknown();
        };
        let results = match meaning::room(typed) {
            Room::Nothing => Some(Vec::new()),
            Room::Made(what) => Some(vec![Value::Tensor(shape::made_of_nothing(op, what)?)]),
            Room::Shape(op) => Some(self.shape_operation(op)?),
            Room::Elementwise => self.elementwise_operation(typed)?,
            Room::Assembly(AssemblyOp::TtElementwiseInlineAsm(assembly)) => {
                Some(self.inline_assembly(assembly)?)
            }
            Room::Product(op) => Some(vec![Value::Tensor(self.product_operation(op)?)]),
            Room::Memory(op) => Some(self.memory_operation(op)?),
            Room::Descriptor(op) => Some(self.descriptor_operation(op)?),
            Room::Control | Room::Unknown => None,
        };
        results.map_or_else(unknown, Ok)
    }

    /// An elementwise operation, with the bounds of its result.
    fn elementwise_operation(&mut self, op: Op<'c, 'a>) -> Interpreted<Option<Vec<Value>>> {
        let Some(function) = Function::of(op) else {
            return Ok(None);
        };
        let op = op.operation();
        if function == Function::Select && op.result_types().any(|of| TensorDesc::of(of).is_some())
        {
            // What has no elements is one of the two as a whole.
            let condition = self.operand(op, 0)?;
            self.undecided |= condition.bound_at(0) > 0.0;
            let chosen = if condition.only()? & 1 == 1 { 1 } else { 2 };
            let chosen = op.operand_value(chosen).map(|value| self.get(value));
            return chosen
                .transpose()
                .map(|value| value.map(|value| vec![value]));
        }
        let Some(mut result) = self.elementwise(op, function)? else {
            return Ok(None);
        };
        let operands: Vec<Tensor> = (0..op.operand_values().len())
            .map(|i| self.operand(op, i))
            .collect::<Interpreted<_>>()?;
        let operands = &operands;
        bound::Elementwise { function, operands }.bound(&mut result);
        Ok(Some(vec![Value::Tensor(result)]))
    }
}
