//! Whether wide iterations are faster, by the work of an iteration before there are layouts.
//!
//! # The model
//!
//! The body is priced twice, with the tiles as they are and with twice as many elements along the axis that walks:
//!
//! - `I` cycles in which schedulers issue instructions: those for each element of a thread (`llopt-plan` has their number), and
//!   for each combination of a reduction. A tensor with fewer elements than there are threads has one in each of them, so rows
//!   and columns cost the same in a wide iteration as in a narrow one.
//! - `X` cycles of special functions.
//! - `M` cycles of the matrix units, by the table of instructions.
//!
//! Where one product takes what threads compute from another one, an iteration waits for both, and overlaps parts of them
//! with other blocks. Attention with heads of 64 on an H100 (64 x 64, four warps) without one of the terms, and without two,
//! takes
//!
//! ```text
//! I + M / 2 + X / 4                  where products of groups of warps are asynchronous
//! I + M + X / 4                      where each warp executes its own
//! ```
//!
//! and `max(I, X, M)` where no product takes what is computed from another one. There, a tile of twice the size saves nothing:
//! a sum of products does nothing for each iteration.
//!
//! # Registers and blocks
//!
//! A thread needs registers for the values that are live at the same time (except what products take from shared memory), and for
//! the sums and factors of asynchronous products that run at the same time: the assembler serialises them otherwise. A
//! loop stays as it was if a wide iteration needs more than there are. It also takes more shared memory, so fewer blocks are
//! resident. That changes nothing as long as each scheduler has two warps, of which one issues while the other waits; a loop of
//! which that is no longer so stays as it was.
//!
//! Elements without neighbours in memory, as the channels of a convolution's input, come through a register each, all those of a
//! pipeline's first iterations together.
//!
//! A loop of which a single wide iteration is left has no pipeline: all that it loads comes through registers, and is live
//! from the loads, which are together, to its uses.
//!
//! As many bytes as before are outstanding in half as many stages. A loop has more of them, up to the number that the
//! program asks for, as long as schedulers have their warps.
//!
//! # The odd iteration
//!
//! Sizes are multiples of tiles more often than not. But where the number of iterations follows from the number of the
//! program, as in front of a diagonal, half of all programs have an odd one. It has no pipeline, so it takes the latency of
//! memory as well where too few warps are resident to hide it. Attention with heads of 64 in tiles of 64 x 64, of which a
//! multiprocessor has several blocks: causal rows of 4,096 take 0.96 of the time (H100).
//!
//! # Loops that become one
//!
//! Two loops in sequence become one where blocks compute several programs ([`crate::persistent`]), which a rest between them
//! prevents. That is done for blocks of which one fills a multiprocessor, so loops of others are free to be wide.
//!
//! # Alternatives rejected
//!
//! *Twice as many warps* where the registers of as many are too few. Heads of 64 in tiles of 128 x 128 by eight warps take 0.94
//! of the cycles of two iterations of 128 x 64 by four, but only one such block is resident, and nothing overlaps with its
//! beginning and its end.
//!
//! *Layouts for both forms of the module*, of which the pipeline's schedules are compared: the search for layouts is what
//! takes longest before code generation, so a compilation would take a quarter longer.

use std::collections::HashMap;

use llopt_dialects::arith::ConstantOp;
use llopt_dialects::tables::types::{Pointer, RankedTensor, element_or_self};
use llopt_dialects::tt::{FuncOp, LoadOp, MakeRangeOp, SplatOp};
use llopt_mlir::ir::{OperationExt, TypeExt, ValueExt, key};
use llopt_plan::elementwise;
use llopt_plan::plans::Plans;
use llopt_target::{Feature, Target};
use melior::ir::{OperationRef, Value, ValueLike};

use super::axes::{Relation, shape};
use super::proof::Proof;
use super::rewrite::FACTOR;
use crate::axis::AxisAnalysis;
use crate::layouts::times;
use crate::loops::induction::is_multiple;
use crate::loops::needs::needs;
use crate::loops::view::For;
use crate::pipelining::{ISSUERS, POINTER, is_special, matrix_cycles};
use crate::products::is_product;
use crate::whole_tiles::depends_on_program;

/// Warps of a scheduler, of which one issues while the other waits.
const WARPS: u32 = 2;
/// The part of the matrix units' cycles that an iteration takes longer for them, and of special functions'.
const EXPOSED_MATRIX: f64 = 0.5;
const EXPOSED_SPECIAL: f64 = 0.25;
/// The number of stages of a loop that is not pipelined.
const UNPIPELINED: u32 = 1;
/// Registers of a thread for addresses and counters.
const BESIDE: u32 = 40;
/// Bytes of the smallest asynchronous copy.
const LEAST_COPIED: u64 = 4;
/// By which part of it an iteration must become shorter.
const MARGIN: f64 = 0.02;

/// What the model is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The GPU.
    pub target: Target,
    /// Warps of a block.
    pub num_warps: u32,
    /// The stages of loops that do not say so themselves.
    pub stages: u32,
    /// Whether two loops in sequence become one later, where that is possible.
    pub concatenates: bool,
}

/// The cycles of iterations, and the stages of the wide ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cycles {
    /// Of two iterations as they were.
    pub narrow: u32,
    /// Of a wide one.
    pub wide: u32,
    /// The stages of the loop of wide iterations; 0 for as many as hide latencies.
    pub stages: u32,
}

/// Whether a loop becomes one of wide iterations, where the program asks for so many stages.
///
/// # Errors
/// The reason why not.
pub(super) fn compare(
    of: For<'_, '_>,
    proof: &Proof<'_, '_>,
    asked: u32,
    setting: Setting,
) -> Result<Cycles, String> {
    let plans = Plans::new(setting.target);
    let body = |factor| Body::new(of, proof, factor, setting, &plans).work();
    let (narrow, wide) = (body(1)?, body(FACTOR)?);
    let (target, warps) = (setting.target, setting.num_warps);
    let threads = warps * target.warp_size();
    let most = target.plain_registers_of_each(threads);
    let resident = |work: &Work, stages: u32| resident(work, stages, setting);
    let enough = |blocks: u32| blocks * warps >= WARPS * ISSUERS;
    let before = resident(&narrow, asked);
    let (two, one) = (f64::from(FACTOR) * narrow.cycles, wide.cycles);
    let is_varied =
        !is_multiple(of, FACTOR) && [of.lower(), of.upper()].into_iter().any(depends_on_program);
    let one = match is_varied {
        true => {
            let latency = match enough(before) {
                true => 0,
                false => target.global_costs().latency,
            };
            one + odd_iteration(of, &narrow, latency)
        }
        false => one,
    };
    if one > two * (1.0 - MARGIN) {
        return Err(format!(
            "two iterations take about {two:.0} cycles by the model, and a wide one would take {one:.0}"
        ));
    }
    if wide.registers > most {
        return Err(format!(
            "a wide iteration would need about {} registers of a thread, of which there are {most}",
            wide.registers
        ));
    }
    let bytes = |work: &Work, stages: u32| work.bytes_of(stages, target);
    let fewest = asked.saturating_sub(1).div_ceil(FACTOR).max(1) + 1;
    let room = u64::from(target.shared_memory_limit());
    if asked != UNPIPELINED && bytes(&wide, fewest) > room {
        return Err(format!(
            "{fewest} stages of wide iterations would take {} bytes of shared memory, of which there are {room}",
            bytes(&wide, fewest)
        ));
    }
    let after = resident(&wide, fewest);
    if enough(before) && !enough(after) {
        return Err(format!(
            "{} warps would be resident instead of {}, too few to hide latencies",
            after * warps,
            before * warps
        ));
    }
    let ahead = match asked {
        UNPIPELINED => 0,
        _ => fewest - 1,
    };
    let scattered = ahead * Body::new(of, proof, FACTOR, setting, &plans).scattered();
    if scattered > 0 && wide.registers + scattered > most {
        return Err(format!(
            "elements that are too far apart to be moved together would take {scattered} registers of a thread, with their addresses, on their way to shared memory"
        ));
    }
    let mut depths = (fewest..=asked.max(fewest)).rev();
    let stages = depths.find(|stages| {
        let blocks = resident(&wide, *stages);
        blocks == after || enough(blocks)
    });
    Ok(Cycles {
        narrow: two.ceil() as u32,
        wide: one.ceil() as u32,
        stages: match asked {
            0 | UNPIPELINED => asked,
            _ => stages.unwrap_or(fewest),
        },
    })
}

/// Whether one block of the loop as it is fills a multiprocessor, where the program asks for so many stages.
pub(super) fn is_alone(
    of: For<'_, '_>,
    proof: &Proof<'_, '_>,
    asked: u32,
    setting: Setting,
) -> bool {
    let plans = Plans::new(setting.target);
    Body::new(of, proof, 1, setting, &plans)
        .work()
        .is_ok_and(|narrow| resident(&narrow, asked, setting) <= 1)
}

/// The blocks on a multiprocessor.
fn resident(work: &Work, stages: u32, setting: Setting) -> u32 {
    let target = setting.target;
    let threads = setting.num_warps * target.warp_size();
    let registers = work.registers.min(target.plain_registers_of_each(threads));
    target.resident_blocks(threads, registers, work.bytes_of(stages, target))
}

/// What an odd iteration costs each of the wide ones of a loop whose iterations vary from none to as many as other loops
/// have: in half of all programs it waits for memory, as it has no pipeline, if that has a latency that nothing hides, and for
/// what it computes.
fn odd_iteration(of: For<'_, '_>, narrow: &Work, latency: u32) -> f64 {
    let single = narrow.cycles + f64::from(latency);
    let iterations = times(of.operation()) / 2.0;
    single / 2.0 * f64::from(FACTOR) / iterations
}

/// The work of an iteration.
struct Work {
    cycles: f64,
    /// Registers of a thread.
    registers: u32,
    /// Bytes of shared memory of what an iteration loads for products, and of what they take from before the loop.
    bytes: u64,
    besides: u64,
}

impl Work {
    /// Bytes of shared memory of a block, with so many stages.
    fn bytes_of(&self, stages: u32, target: Target) -> u64 {
        // What goes through registers on its way to shared memory has a buffer less.
        let less = u32::from(!target.has(Feature::AsyncCopy));
        self.besides + u64::from(stages.max(2) - less) * self.bytes
    }
}

/// A body with so many times the elements along the axis that walks.
struct Body<'b, 'c, 'a> {
    of: For<'c, 'a>,
    proof: &'b Proof<'c, 'a>,
    factor: u32,
    /// Warps of a block.
    warps: u32,
    target: Target,
    plans: &'b Plans,
}

impl<'b, 'c: 'a, 'a> Body<'b, 'c, 'a> {
    fn new(
        of: For<'c, 'a>,
        proof: &'b Proof<'c, 'a>,
        factor: u32,
        setting: Setting,
        plans: &'b Plans,
    ) -> Self {
        Self {
            of,
            proof,
            factor,
            warps: setting.num_warps,
            target: setting.target,
            plans,
        }
    }

    fn work(&self) -> Result<Work, String> {
        let operations = self.of.operations();
        let products: Vec<OperationRef> = operations
            .iter()
            .copied()
            .filter(|operation| is_product(*operation))
            .collect();
        if products.is_empty() {
            return Err("memory paces a loop without products".to_owned());
        }
        let target = self.target;
        let (mut matrix, mut issued, mut special) = (0.0, 0.0, 0.0);
        for &operation in &operations {
            if is_product(operation) {
                let cycles = matrix_cycles(operation, self.plans);
                let cycles = cycles.ok_or("threads would multiply")?;
                matrix += f64::from(cycles * self.factor_of_product(operation));
                continue;
            }
            let each_warp = f64::from(self.warps) / f64::from(ISSUERS);
            let number = each_warp * self.instructions(operation);
            issued += number;
            if is_special(operation) {
                special += number * f64::from(target.special_function_cycles());
            }
        }
        let is_chain = products.iter().any(|product| {
            let needed = needs(self.of, *product);
            products
                .iter()
                .any(|other| other != product && needed.contains(other))
        });
        let exposed = match target.has(Feature::WarpGroupMma) {
            true => EXPOSED_MATRIX,
            false => 1.0,
        };
        let (bytes, besides) = self.bytes(&products);
        Ok(Work {
            cycles: match is_chain {
                true => issued + exposed * matrix + EXPOSED_SPECIAL * special,
                false => f64::max(matrix, f64::max(issued, special)),
            },
            registers: self.registers().max(self.running(&products))
                + self.kept(&products)
                + BESIDE,
            bytes,
            besides,
        })
    }

    /// The factor by which a product has more terms.
    fn factor_of_product(&self, product: OperationRef<'c, 'a>) -> u32 {
        let axes = &self.proof.axes;
        let walks = (0..product.operand_values().len()).any(|index| {
            axes.of_operand(product, index)
                .contains(&self.proof.walking)
        });
        if walks { self.factor } else { 1 }
    }

    /// Elements of a tensor, of which an operation takes one.
    fn elements(&self, value: Value<'c, 'a>, axes: &[usize]) -> u64 {
        let elements: i64 = shape(value).iter().product();
        let factor = if axes.contains(&self.proof.walking) {
            self.factor
        } else {
            1
        };
        elements.unsigned_abs() * u64::from(factor)
    }

    /// Elements of a tensor in each thread.
    fn of_thread(&self, elements: u64) -> f64 {
        let threads = self.warps * self.target.warp_size();
        (elements as f64 / f64::from(threads)).max(1.0)
    }

    /// Instructions of each thread for an operation.
    fn instructions(&self, operation: OperationRef<'c, 'a>) -> f64 {
        let axes = &self.proof.axes;
        let Some(result) = operation.result_value(0) else {
            return 0.0;
        };
        let is_tensor = RankedTensor::of(result.r#type()).is_some();
        match Relation::of(operation) {
            Relation::Reduces(dim) => {
                let of = axes.of_operand(operation, 0);
                let Some(operand) = operation.operand_value(0) else {
                    return 0.0;
                };
                let along = self.elements(operand, &of);
                let results = self.elements(result, &axes.of_value(result));
                let extent = shape(operand).get(dim).copied().unwrap_or(1);
                let lanes = self.target.warp_size().min(extent as u32);
                // An exchange and a combination for each pair of halves.
                let in_warp = 2.0 * f64::from(lanes.max(1).ilog2()) * self.of_thread(results);
                self.of_thread(along) + in_warp
            }
            Relation::Elements if is_tensor && !is_renamed(operation) => {
                let each = match is_special(operation) {
                    true => 1.0,
                    false => elementwise::instructions_on(operation, self.target).into(),
                };
                each * self.of_thread(self.elements(result, &axes.of_value(result)))
            }
            Relation::Unknown if is_tensor => {
                self.of_thread(self.elements(result, &axes.of_value(result)))
            }
            Relation::Elements
            | Relation::Repeats
            | Relation::ExpandsAt(_)
            | Relation::Permutes(_)
            | Relation::Multiplies
            | Relation::LoadsBlock
            | Relation::Unknown => 0.0,
        }
    }

    /// Whether there are several iterations, of which one loads what the next ones take.
    fn is_pipelined(&self) -> bool {
        times(self.of.operation()) > f64::from(self.factor)
    }

    /// Whether the matrix units read a value from shared memory: it was loaded ahead, and at most its dimensions were
    /// permuted.
    fn is_in_memory(&self, value: Value<'c, 'a>) -> bool {
        let Some(made) = value.defining_op() else {
            return false;
        };
        if let Relation::Permutes(_) = Relation::of(made) {
            let of = made.operand_value(0);
            return of.is_some_and(|of| self.is_in_memory(of));
        }
        let is_loaded = LoadOp::of(made).is_some() || Relation::of(made) == Relation::LoadsBlock;
        // What is loaded before the loop stays where units read it.
        match self.of.is_outside(value) {
            true => is_loaded && self.target.has(Feature::WarpGroupMma),
            false => is_loaded && self.is_pipelined(),
        }
    }

    /// Bytes of what products take from shared memory: for each iteration, and from before the loop.
    fn bytes(&self, products: &[OperationRef<'c, 'a>]) -> (u64, u64) {
        let (mut own, mut besides) = (HashMap::new(), HashMap::new());
        for &product in products {
            for index in 0..2 {
                let Some(value) = product.operand_value(index) else {
                    continue;
                };
                if !self.is_in_memory(value) {
                    continue;
                }
                let bits = element_or_self(value.r#type())
                    .bit_width()
                    .unwrap_or(u32::BITS);
                let elements = self.elements(value, &self.proof.axes.of_operand(product, index));
                let bytes = elements * u64::from(bits) / 8;
                let place = if self.of.is_outside(value) {
                    &mut besides
                } else {
                    &mut own
                };
                place.insert(key(value), bytes);
            }
        }
        (own.values().sum(), besides.values().sum())
    }

    /// Registers of a thread for the elements that an iteration loads one by one, as no copy moves so few neighbours, or the smallest
    /// ones do, and for their addresses.
    fn scattered(&self) -> u32 {
        let function = self.of.operation().parent_named(FuncOp::NAME);
        let facts = function.map(AxisAnalysis::of);
        let operations = self.of.operations().into_iter();
        let loads = operations.filter_map(LoadOp::of).filter_map(|load| {
            let facts = facts.as_ref()?.facts(load.ptr());
            let tensor = RankedTensor::of(load.result().r#type())?;
            let bytes = tensor
                .element()
                .bit_width()
                .unwrap_or(u32::BITS)
                .div_ceil(8);
            let dims = facts.dims.iter();
            let neighbours = dims.map(|dim| dim.contiguity.get()).max()?;
            let is_scattered = neighbours * u64::from(bytes) <= LEAST_COPIED;
            is_scattered.then(|| {
                let axes = self.proof.axes.of_value(load.result());
                let threads = u64::from(self.warps * self.target.warp_size());
                (1 + POINTER) * self.elements(load.result(), &axes).div_ceil(threads) as u32
            })
        });
        loads.sum()
    }

    /// Registers of a thread for a value.
    fn words(&self, value: Value<'c, 'a>) -> u32 {
        let Some(tensor) = RankedTensor::of(value.r#type()) else {
            return 0;
        };
        let element = tensor.element();
        let is_free = self.is_in_memory(value)
            || Pointer::of(element).is_some()
            || value.defining_op().is_some_and(is_renamed);
        if is_free {
            return 0;
        }
        let axes = match self.of.is_outside(value) {
            true => Vec::new(),
            false => self.proof.axes.of_value(value),
        };
        let bits = u64::from(element.bit_width().unwrap_or(u32::BITS));
        let threads = self.warps * self.target.warp_size();
        let bits = self.elements(value, &axes) * bits;
        u32::try_from(bits.div_ceil(u64::from(threads * u32::BITS))).unwrap_or(u32::MAX / 4)
    }

    /// The registers of a thread for products that run at the same time: the last one still adds, and reads its factor, when
    /// the first one of the next iteration begins. Where threads execute products themselves, none do.
    fn running(&self, products: &[OperationRef<'c, 'a>]) -> u32 {
        if !self.target.has(Feature::WarpGroupMma) {
            return 0;
        }
        let of_product = |product: &OperationRef<'c, 'a>| {
            let sum = product.result_value(0).map_or(0, |sum| self.words(sum));
            let factor = product.operand_value(0);
            sum + factor.map_or(0, |factor| self.words(factor))
        };
        products.iter().map(of_product).sum()
    }

    /// The registers of a thread for factors from before the loop.
    fn kept(&self, products: &[OperationRef<'c, 'a>]) -> u32 {
        let factors = products
            .iter()
            .flat_map(|product| product.operand_values().take(2));
        let kept = factors.filter(|factor| self.of.is_outside(*factor));
        kept.map(|factor| self.words(factor)).sum()
    }

    /// The most registers of a thread that are live after an operation, where products write over what they add to.
    fn registers(&self) -> u32 {
        let operations = self.of.operations();
        let end = operations.len();
        let mut last: HashMap<usize, (usize, u32)> = HashMap::new();
        let mut uses = |value: Value<'c, 'a>, at: usize| {
            last.insert(key(value), (at, self.words(value)));
        };
        for (at, operation) in operations.iter().enumerate() {
            for value in operation
                .operand_values()
                .filter(|value| !self.of.is_outside(*value))
            {
                uses(value, at);
                // What is renamed is still in the registers of what it names.
                let mut named = value;
                while let Some(made) = named.defining_op().filter(|made| is_renamed(*made))
                    && let Some(of) = made.operand_value(0)
                {
                    named = of;
                    uses(named, at);
                }
            }
        }
        for value in self.of.yielded() {
            uses(value, end);
        }
        let carried = self.of.carried();
        let mut live: HashMap<usize, (usize, u32)> = HashMap::new();
        let begin = |live: &mut HashMap<usize, (usize, u32)>, value: Value<'c, 'a>| {
            if let Some(&use_of) = last.get(&key(value)) {
                live.insert(key(value), use_of);
            }
        };
        for value in carried {
            begin(&mut live, value);
        }
        let mut most = 0;
        for (at, operation) in operations.iter().enumerate() {
            live.retain(|_, (until, _)| *until > at);
            for value in operation.result_values() {
                begin(&mut live, value);
            }
            let now = live.values().map(|(_, words)| *words).sum();
            most = most.max(now);
        }
        most
    }
}

/// Whether the result of an operation is in the registers of its operand, or in none.
fn is_renamed(operation: OperationRef<'_, '_>) -> bool {
    ConstantOp::of(operation).is_some()
        || SplatOp::of(operation).is_some()
        || MakeRangeOp::of(operation).is_some()
        || matches!(
            Relation::of(operation),
            Relation::Repeats | Relation::ExpandsAt(_) | Relation::Permutes(_)
        )
}
