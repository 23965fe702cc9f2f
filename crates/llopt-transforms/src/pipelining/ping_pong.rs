//! `--tritonamdgpu-block-pingpong`: the halves of a block take turns in a loop of products, so that one multiplies while
//! the other accesses memory.
//!
//! # The rewritten loop
//!
//! [`llopt_plan::turns`] has the theory: why barriers come in pairs, and what the schedule gains. The pass cuts the
//! body of a pipelined loop whose data go through registers, here with products in two parts:
//!
//! ```text
//!                                        wait if in the second half     cond_barrier
//! for i …                                for i …
//!   next a = load A[i + 1]                 next a, next b = load …       memory 0
//!   next b = load B[i + 1]                 a 0, a 1, b 0, b 1 = read …
//!   a = read buffer of A                   barrier
//!   b = read buffer of B                   sum = dot a 0, b 0, sum       products 0
//!   sum = dot a, b, sum                    barrier
//!   store next a                           store next a, next b          memory 1
//!   store next b                           barrier
//!                                          sum = dot a 1, b 1, sum       products 1
//!                                          barrier
//!                                        wait if in the first half      cond_barrier
//! ```
//!
//! Where a body stores what the iteration before has loaded, loads follow the stores, into the same registers: such loops
//! need not be unrolled so that registers change places.
//!
//! Products run at a higher priority (`rocdl.s.setprio`), so that the other half's accesses do not take their issue slots, and
//! LLVM's scheduler moves nothing out of them or into them (`rocdl.sched.barrier`). The halves are the warps with lower and
//! with higher numbers: waves are distributed over the SIMD units in turn, so each unit has waves of both.
//!
//! # When
//!
//! The target has priorities of waves and barriers that count waves; a SIMD unit has as many waves of one half as of the
//! other; no second block is resident, which would multiply meanwhile; registers suffice; and by the model an iteration
//! is faster by [`MARGIN`]. On request the model and the second block are ignored. A loop whose form does not allow it
//! stays as it is, and the account says why.

use llopt_dialects::amdg::CondBarrierOp;
use llopt_dialects::arith::CmpIPredicate;
use llopt_dialects::layout::encoding::Encoding;
use llopt_dialects::layout::transfer;
use llopt_dialects::meaning::facts::{Control, OpFacts, Synchronization};
use llopt_dialects::meaning::resource::GLOBAL_MEMORY;
use llopt_dialects::tables::types::{MemDesc, MemDescParts, RankedTensor};
use llopt_dialects::tt::DotOp;
use llopt_dialects::ttg::{LocalBarrierOp, LocalLoadOp, LocalStoreOp, MemDescSubsliceOp};
use llopt_dialects::{Op, rocdl};
use llopt_layout::Dim;
use llopt_layout::banks::Access;
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::dialect::EffectKind;
use llopt_mlir::ir::{OperationExt, TypeExt, ValueExt, Walk, attr};
use llopt_mlir::pass::{PassOption, PassRun, PassSpec};
use llopt_mlir::rewrite::Rewriter;
use llopt_plan::plans::Plans;
use llopt_plan::scratch::{Readers, scratch};
use llopt_plan::shared_access::{self, Buffer};
use llopt_plan::turns::{Iteration, held};
use llopt_target::Feature;
use melior::ir::r#type::IntegerType;
use melior::ir::{Location, OperationRef, Value, ValueLike};

use super::account::place;
use super::graph::{ISSUERS, executions};
use super::live_registers::{live_registers, words};
use super::warps::shared_bytes;
use super::{ring, warps_of};
use crate::allocation::plans_of;
use crate::loops::builder::{Arithmetic, IN_CONTEXT};
use crate::loops::unroll::{FACTOR, RARE};
use crate::loops::view::For;
use crate::products::is_product;
use crate::request::Request;

/// By how many per cent the interval must become shorter: the model has no queues, and in step LLVM's scheduler overlaps
/// more than the model says.
const MARGIN: u32 = 10;
/// Registers of a thread for addresses and counters.
const BESIDE: u32 = 40;
/// The dialects of which operations are made.
pub const DIALECTS: &[&str] = &["amdg", "arith", "rocdl", "ttg"];

/// The pass.
pub static TAKE_TURNS: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: DIALECTS,
    options: &[
        PassOption::integer(
            "num-stages",
            "in how many stages loops were pipelined; with one there is nothing to do",
            "2",
        ),
        PassOption::flag("force", "take turns even where the model predicts no gain"),
    ],
    ..PassSpec::new(
        "tritonamdgpu-block-pingpong",
        "let one half of a block multiply while the other accesses memory",
        run,
    )
};

fn run(module: OperationRef<'_, '_>, run: &mut PassRun) -> Result<(), Complaint> {
    if run.integer("num-stages") < 2 {
        return Ok(());
    }
    let request = match run.flag("force") {
        true => Request::Everywhere,
        false => Request::WhereFaster,
    };
    take_turns(module, request, &*plans_of(module, run)?);
    Ok(())
}

/// A loop whose halves take turns.
#[derive(Clone, Debug, PartialEq)]
pub struct Turns {
    /// The parts of the products, and the pairs of clusters of an iteration.
    pub parts: u32,
    /// The cycles of an iteration by the model.
    pub interval: u32,
    /// Those of an iteration whose warps are all in step.
    pub in_step: u32,
}

/// What became of a loop with products whose data go through registers to shared memory.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnsAccount {
    /// `file:line:col` of the loop.
    pub location: String,
    /// The turns, or why there are none.
    pub outcome: Result<Turns, String>,
}

/// Lets halves of blocks take turns in the loops of a module.
pub fn take_turns(
    module: OperationRef<'_, '_>,
    request: Request,
    plans: &Plans,
) -> Vec<TurnsAccount> {
    if !plans.target().has(Feature::WavePriority) {
        return Vec::new();
    }
    let mut loops = Vec::new();
    module.for_each_op(Walk::PostOrder, |operation| {
        loops.extend(For::of(operation).filter(|of| is_pipelined(*of)));
    });
    let warps = warps_of(module);
    let each = loops.into_iter().map(|of| TurnsAccount {
        location: place(of.operation()),
        outcome: rewrite(of, warps, request, plans),
    });
    each.collect()
}

/// Whether a loop multiplies, and stores to shared memory what it loads, in more than a few last iterations.
fn is_pipelined(of: For<'_, '_>) -> bool {
    if of.operation().discardable_attr(RARE).is_some() {
        return false;
    }
    let operations = of.operations();
    let is_store = |operation: &OperationRef<'_, '_>| LocalStoreOp::of(*operation).is_some();
    operations.iter().any(|operation| is_product(*operation))
        && operations.iter().any(is_store)
        && operations.iter().any(|operation| is_load(*operation))
}

/// Whether an operation reads a tensor from global memory, and does nothing else.
fn is_load(operation: OperationRef<'_, '_>) -> bool {
    let effects = operation.effects().unwrap_or_default();
    let mut reads = effects.iter().map(|effect| {
        let resource = effect.resource;
        effect.kind == EffectKind::Read
            && resource.is_some_and(|resource| std::ptr::eq(resource, &GLOBAL_MEMORY))
    });
    !effects.is_empty()
        && reads.all(|is_read| is_read)
        && operation.region_refs().next().is_none()
        && operation.result_types().any(TypeExt::is_tensor)
}

/// The body of a loop by the clusters to which its operations belong.
struct Body<'c, 'a> {
    of: For<'c, 'a>,
    product: DotOp<'c, 'a>,
    /// The reads of both factors.
    reads: [LocalLoadOp<'c, 'a>; 2],
    /// Loads, and whatever else waits for neither loads nor products.
    first: Vec<OperationRef<'c, 'a>>,
    /// Stores, and what computes with what was loaded.
    last: Vec<OperationRef<'c, 'a>>,
    /// Whether what an iteration stores was loaded in it.
    stores_its_own: bool,
}

impl<'c: 'a, 'a> Body<'c, 'a> {
    /// Sorts the operations of a loop.
    ///
    /// # Errors
    /// Its form does not allow turns; the text says why.
    fn of(of: For<'c, 'a>, plans: &Plans) -> Result<Self, String> {
        let operations = of.operations();
        let mut products = operations
            .iter()
            .filter(|operation| is_product(**operation));
        let (Some(product), None) = (products.next(), products.next()) else {
            return Err("it has several products".to_owned());
        };
        let product = DotOp::of(*product).ok_or("its product has scales, or runs by itself")?;
        let read = |factor: Value<'c, 'a>| {
            let read = LocalLoadOp::defining(factor).filter(|read| {
                read.token().is_none()
                    && read.operation().parent_op() == Some(of.operation())
                    && factor.users().count() == 1
            });
            read.ok_or("a factor is not just read from shared memory")
        };
        let reads = [read(product.a())?, read(product.b())?];
        let mut body = Self {
            of,
            product,
            reads,
            first: Vec::new(),
            last: Vec::new(),
            stores_its_own: false,
        };
        let mut loaded: Vec<Value> = Vec::new();
        for operation in operations {
            if operation == product.operation()
                || reads.iter().any(|read| read.operation() == operation)
            {
                continue;
            }
            let needs = |values: &[Value<'c, 'a>]| {
                let mut operands = operation.operand_values();
                operands.any(|operand| values.contains(&operand))
            };
            let name = operation.name_str();
            if needs(&[product.d()]) {
                return Err(format!("'{name}' needs the product in the same iteration"));
            }
            if scratch(operation, plans)
                .is_some_and(|scratch| !matches!(scratch.readers, Readers::Warp { .. }))
            {
                return Err(format!("all warps exchange data for '{name}'"));
            }
            let is_store = LocalStoreOp::of(operation).is_some();
            let is_before = |read: &LocalLoadOp<'c, 'a>| operation.is_before(read.operation());
            if is_store && reads.iter().any(is_before) {
                return Err("it stores to shared memory before it reads a factor".to_owned());
            }
            let facts = OpFacts::of(operation);
            let computes = facts.control == Control::Computes
                && facts.asynchronous.is_none()
                && facts.synchronization == Synchronization::None
                && operation.region_refs().next().is_none()
                && operation.is_memory_effect_free();
            if !(is_store || is_load(operation) || computes) || is_hint(operation) {
                return Err(format!("it contains '{name}'"));
            }
            if needs(&loaded) {
                body.stores_its_own |= is_store;
                if is_load(operation) {
                    return Err("it loads addresses".to_owned());
                }
            }
            if is_store || needs(&loaded) {
                loaded.extend(operation.result_values());
                body.last.push(operation);
            } else {
                if is_load(operation) {
                    loaded.extend(operation.result_values());
                }
                body.first.push(operation);
            }
        }
        Ok(body)
    }

    fn stores(&self) -> impl Iterator<Item = LocalStoreOp<'c, 'a>> {
        self.last
            .iter()
            .filter_map(|operation| LocalStoreOp::of(*operation))
    }

    /// Registers of a thread for both factors.
    fn factors(&self, plans: &Plans) -> u32 {
        let reads = self.reads.iter();
        reads.map(|read| ring::words(read.result(), plans)).sum()
    }

    /// The loads from global memory.
    fn loads(&self) -> impl Iterator<Item = OperationRef<'c, 'a>> {
        self.first
            .iter()
            .copied()
            .filter(|operation| is_load(*operation))
    }

    /// Registers of a thread with products in so many parts.
    fn registers(&self, parts: u32, plans: &Plans) -> u32 {
        // What is carried to the stores of the next iteration has the registers of what is stored.
        let loads = self.loads().filter(|_| self.stores_its_own);
        let loads = loads.flat_map(|load| load.result_values().collect::<Vec<_>>());
        let kept = self.of.carried().into_iter().chain(loads);
        let kept: u32 = kept.map(|value| words(value, plans)).sum();
        kept + held(self.factors(plans), parts) + BESIDE
    }

    /// The type of a part of a factor, if its registers are those of the whole divided among the parts, and its buffer
    /// can be cut so.
    fn part(&self, factor: usize, parts: u32, plans: &Plans) -> Option<RankedTensor<'c>> {
        let whole = RankedTensor::of(self.reads[factor].result().r#type())?;
        let mut shape = whole.shape();
        let along = k_of(factor, shape.len())?;
        let extent = shape.get(along)? / i64::from(parts);
        shape[along] = extent;
        let part = RankedTensor::get(&shape, whole.element(), whole.encoding());
        let registers = |of| Some(ring::tensor(plans, of)?.registers() as u32);
        let divides = extent > 0 && registers(part)? * parts == registers(whole.r#type())?;
        let buffer = MemDesc::of(self.reads[factor].src().r#type())?;
        RankedTensor::of(part).filter(|_| divides && is_cut(buffer, along, extent))
    }

    /// The most parts into which the instructions of the products can be divided along k, a power of two.
    fn steps(&self, plans: &Plans) -> u32 {
        let is_possible = |parts: &u32| {
            (0..self.reads.len()).all(|factor| self.part(factor, *parts, plans).is_some())
        };
        let all = std::iter::successors(Some(1u32), |parts| parts.checked_mul(2));
        all.take_while(is_possible).last().unwrap_or(1)
    }

    /// What an iteration of a block does, for the model.
    fn iteration(&self, warps: u32, plans: &Plans) -> Option<Iteration> {
        let target = plans.target();
        let (products, _) = executions(self.product.operation(), plans)?;
        let memory = target.global_costs();
        let loads = self
            .loads()
            .flat_map(|load| load.result_values().collect::<Vec<_>>());
        let words: u32 = loads.map(|value| ring::words(value, plans)).sum();
        let widest = target.max_global_access_bits() / u32::BITS;
        let bytes = words * warps * target.warp_size() * (u32::BITS / 8);
        let transfer = bytes.div_ceil(memory.shared_cache_bytes);
        let price = |tensor: Value<'c, 'a>, buffer: Value<'c, 'a>, direction| {
            price(tensor, buffer, direction, plans)
        };
        let all = warps as f32;
        let mut reads = 0.0;
        for read in &self.reads {
            reads += all * price(read.result(), read.src(), Access::Load)?;
        }
        let mut stores = 0.0;
        for store in self.stores() {
            stores += all * price(store.src(), store.dst(), Access::Store)?;
        }
        Some(Iteration {
            products: products as f32,
            steps: self.steps(plans),
            reads,
            stores,
            issue: words.div_ceil(widest.max(1)) as f32 * all * memory.instruction,
            arrival: (memory.latency + transfer) as f32,
            stored_later: !self.stores_its_own,
            barrier: target.movement_costs().block_barrier,
        })
    }
}

/// The dimension along which the products of a factor are added: the last one of the first factor.
fn k_of(factor: usize, rank: usize) -> Option<usize> {
    rank.checked_sub(factor + 1)
}

/// Whether a buffer can be cut along a dimension into parts of this extent: each is a view at an offset of its own, so
/// no swizzle crosses the cuts, and nothing is between elements.
fn is_cut(buffer: MemDesc<'_>, along: usize, extent: i64) -> bool {
    let shape = buffer.shape();
    let layout = || {
        let encoding = Encoding::from_attribute(buffer.encoding()?).ok()?;
        let layout = encoding.linear_layout(&transfer::extents(&shape)).ok()?;
        let elements = layout.in_dim_size(Dim::OFFSET);
        let is_dense = encoding.elements_in_memory(elements) == elements;
        layout.invert().ok().filter(|_| is_dense)
    };
    let Some(places) = layout() else {
        return false;
    };
    let mut cuts = std::iter::successors(Some(extent), |cut| cut.checked_mul(2))
        .take_while(|cut| *cut < shape[along]);
    cuts.all(|cut| {
        let at = |dim: usize| if dim == along { cut } else { 0 };
        let position: Vec<(Dim, u32)> = (0..shape.len())
            .map(|dim| (Dim::tensor(dim), u32::try_from(at(dim)).unwrap_or(0)))
            .collect();
        places.apply(&position).is_ok_and(|reached| {
            let mut offsets = reached.iter().filter(|(dim, _)| *dim == Dim::OFFSET);
            offsets.all(|(_, offset)| offset.is_power_of_two())
        })
    })
}

/// Whether an operation guides the instruction scheduler, or is about single threads.
fn is_hint(operation: OperationRef<'_, '_>) -> bool {
    matches!(Op::of(operation), Some(Op::Rocdl(_)))
}

/// The cycles of a warp's access to a buffer.
fn price<'c: 'a, 'a>(
    tensor: Value<'c, 'a>,
    buffer: Value<'c, 'a>,
    direction: Access,
    plans: &Plans,
) -> Option<f32> {
    let target = plans.target();
    let memory = MemDesc::of(buffer.r#type())?;
    let encoding = Encoding::from_attribute(memory.encoding()?).ok()?;
    let layout = encoding
        .linear_layout(&transfer::extents(&memory.shape()))
        .ok()?;
    let tensor = ring::tensor(plans, tensor.r#type())?;
    let buffer = Buffer {
        layout: &layout,
        element: tensor.element,
        max_bits: u32::MAX,
    };
    let access = match direction {
        Access::Store => shared_access::store(&tensor, &buffer, None, 1, target),
        Access::Load => shared_access::access(&tensor, &buffer, direction, None, 1, target),
    };
    access
        .ok()
        .map(|access| shared_access::price(&access, target))
}

/// Lets the halves of a block take turns in a loop.
fn rewrite<'c: 'a, 'a>(
    of: For<'c, 'a>,
    warps: u32,
    request: Request,
    plans: &Plans,
) -> Result<Turns, String> {
    let target = plans.target();
    if !warps.is_multiple_of(2 * ISSUERS) {
        return Err(format!(
            "its {warps} warps are not two halves for each of {ISSUERS} units"
        ));
    }
    let body = Body::of(of, plans)?;
    let iteration = body
        .iteration(warps, plans)
        .ok_or("its accesses or products have no price")?;
    let threads = warps * target.warp_size();
    let limit = target.registers_of_each(threads);
    let fastest = iteration
        .divisions()
        .filter(|parts| body.registers(*parts, plans) <= limit)
        .min_by(|one, other| {
            let of = |parts: u32| iteration.in_turns(parts);
            of(*one).total_cmp(&of(*other)).then(one.cmp(other))
        });
    let Some(parts) = fastest else {
        return Err(match iteration.steps {
            1 => {
                "one instruction multiplies all of k, and the products cannot be divided".to_owned()
            }
            steps => format!(
                "a thread has {limit} registers, and {} are needed even with products in {steps} parts",
                body.registers(steps, plans)
            ),
        });
    };
    let turns = Turns {
        parts,
        interval: iteration.in_turns(parts).ceil() as u32,
        in_step: iteration.in_step().ceil() as u32,
    };
    if request == Request::WhereFaster {
        let beside = live_registers(of, plans) + BESIDE <= target.registers_of_each(2 * threads)
            && 2 * shared_bytes(of, 1) <= u64::from(target.shared_memory_limit());
        if beside {
            return Err("a second block is resident, which multiplies meanwhile".to_owned());
        }
        if turns.interval * (100 + MARGIN) > turns.in_step * 100 {
            return Err(format!(
                "an iteration takes about {} cycles with all warps in step, and {} in turns",
                turns.in_step, turns.interval
            ));
        }
    }
    body.cut(parts, threads, plans)
        .ok_or("its parts have no type")?;
    Ok(turns)
}

impl<'c: 'a, 'a> Body<'c, 'a> {
    /// Orders the operations by clusters, with barriers between them.
    fn cut(&self, parts: u32, threads: u32, plans: &Plans) -> Option<()> {
        let types = [self.part(0, parts, plans)?, self.part(1, parts, plans)?];
        let location = self.product.operation().loc();
        let mut rewriter = Rewriter::new(self.of.operation().ctx());
        let end = self.of.terminator();
        let comes_later =
            |operation: &OperationRef<'c, 'a>| !self.stores_its_own && is_load(*operation);
        for operation in self
            .first
            .iter()
            .filter(|operation| !comes_later(operation))
        {
            rewriter.move_before(*operation, end);
        }
        let mut sum = self.product.c();
        let mut read: Vec<[Value; 2]> = Vec::new();
        for part in 0..parts {
            if part + 1 == parts {
                let loads = self.first.iter().filter(|operation| comes_later(operation));
                for operation in self.last.iter().chain(loads) {
                    rewriter.move_before(*operation, end);
                }
            }
            rewriter.set_before(end);
            // Both of the last two before what the stores overwrite.
            let until = match part + 2 == parts {
                true => parts,
                false => (part + 1).min(parts),
            };
            while read.len() < until as usize {
                let at = read.len() as i64;
                let a = self.read_part(&mut rewriter, 0, types[0], at)?;
                let b = self.read_part(&mut rewriter, 1, types[1], at)?;
                read.push([a, b]);
            }
            rewriter.insert(LocalBarrierOp::build(location));
            hint(
                &mut rewriter,
                location,
                rocdl::SchedBarrierOp::NAME,
                ("mask", 32, 0),
            );
            hint(
                &mut rewriter,
                location,
                rocdl::SetPrioOp::NAME,
                ("priority", 16, 1),
            );
            let product = rewriter.clone_op(self.product.operation());
            let [a, b] = read[part as usize];
            for (index, operand) in [a, b, sum].into_iter().enumerate() {
                product.set_operand_value(index, operand);
            }
            sum = product.result_value(0)?;
            hint(
                &mut rewriter,
                location,
                rocdl::SetPrioOp::NAME,
                ("priority", 16, 0),
            );
            hint(
                &mut rewriter,
                location,
                rocdl::SchedBarrierOp::NAME,
                ("mask", 32, 0),
            );
            rewriter.insert(LocalBarrierOp::build(location));
        }
        rewriter.replace(self.product.operation(), &[sum]);
        for read in self.reads {
            rewriter.erase(read.operation());
        }
        self.of.operation().remove_attr(FACTOR);
        self.delay_a_half(&mut rewriter, threads)
    }

    /// Reads a part of a factor at the place of the rewriter.
    fn read_part(
        &self,
        rewriter: &mut Rewriter<'c, 'a>,
        factor: usize,
        part: RankedTensor<'c>,
        number: i64,
    ) -> Option<Value<'c, 'a>> {
        let read = self.reads[factor];
        let location = read.operation().loc();
        let whole = MemDesc::of(read.src().r#type())?.parts()?;
        let along = k_of(factor, whole.shape.len())?;
        let mut offsets = vec![0; whole.shape.len()];
        offsets[along] = i32::try_from(number * part.shape()[along]).ok()?;
        let view = MemDesc::get(&MemDescParts {
            shape: part.shape(),
            ..whole
        });
        let view = MemDescSubsliceOp::build(location, view, read.src(), &offsets);
        let view = rewriter.insert(view).result_value(0)?;
        let read = LocalLoadOp::build(location, part.r#type(), view, None);
        rewriter.insert(read).result_value(0)
    }

    /// Makes the second half of the warps begin the loop one barrier later, and the first half wait for it at the end.
    fn delay_a_half(&self, rewriter: &mut Rewriter<'c, 'a>, threads: u32) -> Option<()> {
        let operation = self.of.operation();
        let location = operation.loc();
        rewriter.set_before(operation);
        let number = IntegerType::new(rewriter.context(), 32).into();
        let thread = rewriter
            .create(
                rocdl::ThreadIdXOp::NAME,
                location,
                &[],
                Some(&[number]),
                &[],
            )
            .expect(IN_CONTEXT)
            .result_value(0)?;
        let mut arithmetic = Arithmetic { rewriter, location };
        let half = arithmetic.constant(number, i64::from(threads / 2));
        let is_late = arithmetic.compare(CmpIPredicate::Sge, thread, half);
        let is_early = arithmetic.compare(CmpIPredicate::Slt, thread, half);
        // What comes before the loop is ordered while both halves are in step.
        rewriter.insert(LocalBarrierOp::build(location));
        rewriter.insert(CondBarrierOp::build(location, is_late));
        rewriter.set_after(operation);
        rewriter.insert(CondBarrierOp::build(location, is_early));
        Some(())
    }
}

/// Inserts an operation of the `rocdl` dialect with one attribute: its name, bits and value.
fn hint<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    location: Location<'c>,
    name: &str,
    (attribute, bits, value): (&str, u32, i64),
) {
    let of = IntegerType::new(rewriter.context(), bits).into();
    let value = attr::integer(of, value);
    rewriter
        .create(name, location, &[], Some(&[]), &[(attribute, value)])
        .expect(IN_CONTEXT);
}
