//! `--persistent-programs`: a block computes program after program, while a warp of its own fetches ahead for the next.
//!
//! A block that computes one tile of a product begins with an empty pipeline and ends with an idle matrix unit: until
//! the first tiles of the factors have arrived, and while the result is converted and stored. Where several blocks are
//! resident on a multiprocessor, others run meanwhile; a tile that is large enough to keep the matrix unit busy leaves
//! no room for a second block. So no more blocks are launched than are resident, and each computes many programs:
//!
//! ```text
//! program p = program_id                     for p = program_id to programs step num_programs
//! …                                            …
//! for k = …                                    for k = …
//!   sum = dot load A[p, k], load B[p, k]         sum = dot load A[p, k], load B[p, k]
//! store C[p], sum                              store C[p], sum
//! ```
//!
//! The loop over programs with the loop over k in it is what authors write as a *persistent* kernel, and is treated
//! as one: a producer warp copies the tiles of the next programs while the last one is stored
//! ([`crate::pipelining`]).
//!
//! # The launch
//!
//! The grid is one-dimensional and has at most as many blocks as are resident. The extents of the author's grid are
//! three more parameters of the kernel. Programs are numbered as the hardware numbers blocks, the first dimension
//! fastest, so blocks compute them in nearly the order in which they would have been started.
//!
//! # When it is correct
//!
//! Programs of a launch may be executed in any order, as long as none waits for another. So the kernel must only load
//! and store, and nothing that it loads is volatile or atomic. The function has no branches and one loop of products, or
//! several in sequence, each of which goes on with the results of the one before. These become one
//! ([`crate::loops::concatenate`]), so that what is copied and computed ahead goes on from one to the next.
//!
//! # The order of programs
//!
//! Blocks compute programs in turns. Where programs take longer along one axis of the grid ([`crate::longest_first`]), they
//! compute pairs of a long one and a short one, and the shortest at the end (`folded`); not where a block chooses between
//! two loops, for which it must know its programs before.
//!
//! A loop whose loads became tensor copies has another version beside it, for sizes at which they are not equal
//! ([`crate::tensor_copies`]). The choice depends on the program. Here a block chooses once for all of its programs
//! (`crate::choice`): its loop with copies, or its loop without.
//!
//! # When it is done
//!
//! Where all factors of the products that the loop loads come by tensor copies, which one thread can issue, and where a
//! block leaves no room for another one anyway: its sums and the buffers of its loop are too large. Kernels that make
//! descriptors themselves stay as they are: with a descriptor for each access in a loop, attention took longer.

mod folded;
mod launched;

use std::collections::HashSet;

use llopt_dialects::meaning::facts::Control;
use llopt_dialects::tables::module::{PERSISTENT_PROPOSAL, PROGRAM_EXTENTS};
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt;
use llopt_dialects::ttng::TensormapCreateOp;
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{AttributeExt, BlockExt, OperationExt, RegionExt, ValueExt, Walk, attr, key};
use llopt_mlir::pass::{PassRun, PassSpec};
use llopt_mlir::rewrite::Rewriter;
use llopt_target::Target;
use melior::ir::r#type::IntegerType;
use melior::ir::{BlockRef, Location, Module, OperationRef, Value, ValueLike};

use crate::choice::Choice;
use crate::layouts::retype_function;
use crate::longest_first::{self, may_wait};
use crate::loops::builder::yield_values;
use crate::loops::clone::Mapping;
use crate::loops::concatenate::Concatenation;
use crate::loops::view::{For, If, is_loop};
use crate::pipelining::place;
use crate::products::{is_product, operands, source_of};
use folded::Folded;
use launched::Launched;

/// The pass.
pub static REWRITE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["tt", "arith", "scf"],
    ..PassSpec::new(
        "persistent-programs",
        "let each block compute several programs",
        run,
    )
};

fn run(module: OperationRef<'_, '_>, _run: &mut PassRun) -> Result<(), Complaint> {
    rewrite(module, None);
    Ok(())
}

/// A block as it is without the loop over programs.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// Its target.
    pub target: Target,
    /// Its warps.
    pub warps: u32,
    /// The buffers that the pipeline has for each factor.
    pub stages: u32,
}

/// Registers of a thread beside its sums: addresses, and the numbers of the loop.
const BESIDE_SUMS: u32 = 40;

/// What became of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersistentAccount {
    /// `file:line:col` of the loop of products.
    pub location: String,
    /// The reason why each block computes one program; none if it computes several.
    pub reason: Option<String>,
}

/// Lets blocks of a module's kernel compute several programs each, if that is possible and, with a `block`, if no other
/// block would be resident beside it. Answers an account of a kernel with products.
pub fn rewrite(module: OperationRef<'_, '_>, block: Option<Block>) -> Option<PersistentAccount> {
    for_kernel(module, |function| {
        possible(module, function, block)?;
        let axis = longest_first::rising(function)
            .iter()
            .position(|rises| *rises);
        concatenate(function)?;
        Kernel::of(function)?.rewrite(module, axis)
    })
}

/// Leaves an attribute of the module if [`rewrite`] would change it.
pub fn propose(module: OperationRef<'_, '_>, block: Block) -> Option<PersistentAccount> {
    for_kernel(module, |function| {
        possible(module, function, Some(block))?;
        module.set_discardable_attr(PERSISTENT_PROPOSAL, attr::unit(module.ctx()));
        Err("only launches of many programs would gain from more".to_owned())
    })
}

/// Changes nothing.
///
/// # Errors
/// Why a block computes one program.
fn possible<'c: 'a, 'a>(
    module: OperationRef<'c, 'a>,
    function: OperationRef<'c, 'a>,
    block: Option<Block>,
) -> Result<(), String> {
    if loops_in_sequence(function).len() < 2 {
        return Kernel::of(function)?.is_possible(block);
    }
    let trial = Module::from_operation((*module).clone()).ok_or("it is no module")?;
    let account = for_kernel(trial.as_operation(), |function| {
        concatenate(function)?;
        Kernel::of(function)?.is_possible(block)
    });
    account
        .and_then(|account| account.reason)
        .map_or(Ok(()), Err)
}

/// The loops of products directly in a function.
fn loops_in_sequence<'c: 'a, 'a>(function: OperationRef<'c, 'a>) -> Vec<For<'c, 'a>> {
    let body = function
        .region_ref(0)
        .and_then(|region| region.single_block());
    let operations = body.into_iter().flat_map(BlockExt::operations);
    let loops = operations.filter_map(For::of);
    loops.filter(|of| has_products(of.operation())).collect()
}

/// Makes the loops of products of a function one loop.
///
/// # Errors
/// Why two of them cannot; others may be one.
fn concatenate(function: OperationRef<'_, '_>) -> Result<(), String> {
    let mut loops = loops_in_sequence(function).into_iter();
    let Some(mut of) = loops.next() else {
        return Ok(());
    };
    for next in loops {
        if !(factors_are_copied(of) && factors_are_copied(next)) {
            return Err("its factors are not all loaded through descriptors".to_owned());
        }
        let both = Concatenation::of(of, next);
        let both =
            both.map_err(|reason| format!("it is one of several loops of products, and {reason}"))?;
        of = both.apply(&mut Rewriter::new(function.ctx()));
    }
    Ok(())
}

/// What becomes of a kernel with products.
fn for_kernel<'c: 'a, 'a>(
    module: OperationRef<'c, 'a>,
    change: impl FnOnce(OperationRef<'c, 'a>) -> Result<(), String>,
) -> Option<PersistentAccount> {
    let mut kernels = Vec::new();
    let mut products = Vec::new();
    module.for_each_op(Walk::PreOrder, |operation| {
        if Control::of(operation) == Control::Function {
            kernels.push(operation);
        }
        if is_product(operation) {
            products.push(operation);
        }
    });
    let location = products.first().map(|product| place(*product))?;
    let outcome = match kernels[..] {
        [kernel] => change(kernel),
        _ => Err("the module has several functions".to_owned()),
    };
    Some(PersistentAccount {
        location,
        reason: outcome.err(),
    })
}

/// A kernel whose blocks can compute several programs.
struct Kernel<'c, 'a> {
    function: OperationRef<'c, 'a>,
    body: BlockRef<'c, 'a>,
    /// The loop of products whose factors are copied.
    copying: For<'c, 'a>,
    /// The choice between that loop and another one, if there is one.
    choice: Option<Choice<'c, 'a>>,
}

impl<'c: 'a, 'a> Kernel<'c, 'a> {
    fn of(function: OperationRef<'c, 'a>) -> Result<Self, String> {
        let body = function
            .region_ref(0)
            .and_then(|region| region.single_block());
        let body = body.ok_or("the function has branches")?;
        let mut found: Vec<For<'c, 'a>> = Vec::new();
        let mut refused = None;
        function.for_each_op(Walk::PreOrder, |operation| {
            let products = operation.region_refs().len() > 0 && has_products(operation);
            found.extend(For::of(operation).filter(|_| products));
            refused = refused.take().or_else(|| more_than_access(operation));
        });
        if let Some(reason) = refused {
            return Err(reason);
        }
        let mut copying = found.iter().copied().filter(|of| factors_are_copied(*of));
        let copying = match (copying.next(), copying.next()) {
            (Some(of), None) => of,
            (Some(_), Some(_)) => return Err("it is one of several loops of products".to_owned()),
            (None, _) => {
                return Err("its factors are not all loaded through descriptors".to_owned());
            }
        };
        if copying.operations().into_iter().any(is_loop) {
            return Err("there are loops in the loop".to_owned());
        }
        let around = copying.operation().parent_op();
        let choice = match around {
            Some(around) if around == function => None,
            Some(around) => Some(Choice::of(around, body).ok_or(NOT_IN_FUNCTION)?),
            None => return Err(NOT_IN_FUNCTION.to_owned()),
        };
        let others = found.len() - 1;
        if others > usize::from(choice.is_some()) {
            return Err("it is one of several loops of products".to_owned());
        }
        Ok(Self {
            function,
            body,
            copying,
            choice,
        })
    }

    /// Changes nothing.
    fn is_possible(&self, block: Option<Block>) -> Result<(), String> {
        block.map_or(Ok(()), |block| self.is_alone(block))?;
        self.slice(&self.of_program()).map(|_| ())
    }

    /// Why a multiprocessor would have fewer blocks.
    fn is_alone(&self, block: Block) -> Result<(), String> {
        let bytes =
            |value: Value<'c, 'a>| RankedTensor::of(value.r#type()).map_or(0, RankedTensor::bytes);
        let sums: u64 = self.copying.carried().into_iter().map(bytes).sum();
        let loads = self.copying.operations().into_iter();
        let loads = loads.filter_map(tt::DescriptorLoadOp::of);
        let of_stage: u64 = loads.map(|load| bytes(load.result())).sum();
        let threads = block.warps * block.target.warp_size();
        let of_thread = u32::try_from(sums / 4 / u64::from(threads.max(1))).unwrap_or(u32::MAX);
        let registers = of_thread.saturating_add(BESIDE_SUMS);
        let shared = of_stage * u64::from(block.stages.max(1));
        match block.target.resident_blocks(threads, registers, shared) {
            1 => Ok(()),
            several => Err(format!(
                "{several} blocks are resident on a multiprocessor, and one computes while another one waits"
            )),
        }
    }

    /// The operations that decide between two loops.
    fn slice(&self, inside: &[OperationRef<'c, 'a>]) -> Result<Vec<OperationRef<'c, 'a>>, String> {
        let slice = self.choice.as_ref().map(|choice| choice.slice(inside));
        Ok(slice.transpose()?.unwrap_or_default())
    }

    /// Puts a loop over programs around it; they take longer along an axis, if there is one.
    fn rewrite(self, module: OperationRef<'c, 'a>, axis: Option<usize>) -> Result<(), String> {
        let inside = self.of_program();
        let slice = self.slice(&inside)?;
        let (location, context) = (self.copying.operation().loc(), module.ctx());
        let extents = self.add_extents(location);
        let mut rewriter = Rewriter::new(context);
        launched::count_programs(self.function, extents);
        rewriter.set_before(self.body.operations().last().ok_or("it has no end")?);
        let launched = Launched::new(&mut rewriter, location, extents);
        let is_copying = self.choice.as_ref().map(|choice| {
            let holds = launched.always_holds(&mut rewriter, choice, &slice);
            let others = launched.begin(&mut rewriter, holds, false);
            let mut mapping = Mapping::new();
            let mut conditionals = Vec::new();
            for &operation in &inside {
                let copy = mapping.copy(&mut rewriter, operation);
                if choice.operations().any(|of| of == operation) {
                    conditionals.push(copy);
                }
            }
            yield_values(&mut rewriter, location, &[]);
            for of in conditionals {
                keep(&mut rewriter, of, 1);
            }
            launched.number_programs(&mut rewriter, others);
            rewriter.set_after(others.operation());
            (holds, others)
        });
        let folded = axis.filter(|_| is_copying.is_none());
        let folded = folded.map(|axis| Folded::new(&mut rewriter, &launched, axis));
        let of = match (is_copying, &folded) {
            (Some((holds, _)), _) => launched.begin(&mut rewriter, holds, true),
            (None, Some(folded)) => folded.begin(&mut rewriter, &launched),
            (None, None) => launched.begin_always(&mut rewriter),
        };
        yield_values(&mut rewriter, location, &[]);
        let end = of.terminator();
        for operation in &inside {
            operation.move_op_before(end);
        }
        if let Some(choice) = &self.choice {
            for of in choice.operations() {
                keep(&mut rewriter, of, 0);
            }
        }
        match &folded {
            Some(folded) => {
                let products = self.copying.operation();
                folded.number_programs(&mut rewriter, &launched, of, products);
            }
            None => launched.number_programs(&mut rewriter, of),
        }
        if let Some((_, others)) = is_copying {
            // Behind it, they ask for no registers before it.
            others
                .operation()
                .move_op_before(self.body.operations().last().ok_or("it has no end")?);
        }
        module.set_discardable_attr(PROGRAM_EXTENTS, attr::unit(context));
        Ok(())
    }

    /// Adds the parameters with the extents of the author's grid.
    fn add_extents(&self, location: Location<'c>) -> [Value<'c, 'a>; 3] {
        let context = self.function.ctx();
        let i32 = IntegerType::new(context, 32).into();
        let attributes = self
            .function
            .attr(ATTRIBUTES)
            .and_then(AttributeExt::as_array);
        let extents = [(); 3].map(|()| self.body.append_argument(i32, location));
        let mut attributes = attributes.unwrap_or_default();
        let none = attr::dictionary(context, &[]);
        attributes.resize(self.body.argument_values().len(), none);
        self.function
            .set_attr(ATTRIBUTES, attr::array(context, &attributes));
        retype_function(self.function);
        extents
    }

    /// The operations that are executed for each program. Numbers that do not depend on the program are computed before.
    fn of_program(&self) -> Vec<OperationRef<'c, 'a>> {
        let mut inside = Vec::new();
        let mut known = HashSet::new();
        let mut operations: Vec<_> = self.body.operations().collect();
        operations.pop();
        for operation in operations {
            let is_of_program = operation
                .operand_values()
                .any(|operand| known.contains(&key(operand)));
            let is_number = operation
                .result_types()
                .all(|result| RankedTensor::of(result).is_none());
            let is_pure = operation.is_memory_effect_free()
                && operation.is_speculatable()
                && operation.region_refs().len() == 0
                && tt::GetProgramIdOp::of(operation).is_none();
            if is_of_program || !is_number || !is_pure {
                known.extend(operation.result_values().map(key));
                inside.push(operation);
            }
        }
        inside
    }
}

/// The attributes of a function's arguments.
const ATTRIBUTES: &str = "arg_attrs";
/// The loop is not where a loop over programs could be around it.
const NOT_IN_FUNCTION: &str = "it is in a loop or a condition";

/// Puts one block of a conditional in its place.
fn keep<'c: 'a, 'a>(rewriter: &mut Rewriter<'c, 'a>, branch: OperationRef<'c, 'a>, index: usize) {
    if let Some(branch) = If::of(branch) {
        branch.keep(rewriter, index);
    }
}

/// Whether an operation has products directly in its body.
fn has_products(of: OperationRef<'_, '_>) -> bool {
    let body = of.region_ref(0).and_then(RegionExt::entry);
    body.is_some_and(|body| body.operations().any(is_product))
}

/// Why programs with this operation must not, or should not, be executed one after another.
fn more_than_access(operation: OperationRef<'_, '_>) -> Option<String> {
    let makes =
        tt::MakeTensorDescOp::of(operation).is_some() || TensormapCreateOp::of(operation).is_some();
    if makes {
        return Some("the kernel makes descriptors itself".to_owned());
    }
    may_wait(operation).then(|| {
        format!(
            "programs may wait for each other at {}",
            operation.name_str()
        )
    })
}

/// Whether all factors of a loop's products that are loaded in it are loaded through descriptors, and there are some.
fn factors_are_copied<'c: 'a, 'a>(of: For<'c, 'a>) -> bool {
    let products = of.operations().into_iter();
    let factors = products
        .filter(|operation| is_product(*operation))
        .flat_map(operands);
    let loads: Vec<OperationRef<'c, 'a>> = factors
        .map(source_of)
        .filter_map(ValueExt::defining_op)
        .filter(|maker| maker.parent_op() == Some(of.operation()))
        .filter(|maker| {
            tt::LoadOp::of(*maker).is_some() || tt::DescriptorLoadOp::of(*maker).is_some()
        })
        .collect();
    let mut loads = loads.into_iter().peekable();
    loads.peek().is_some() && loads.all(|load| tt::DescriptorLoadOp::of(load).is_some())
}
